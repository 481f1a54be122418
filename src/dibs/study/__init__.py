"""Studies: the functions (take, report, ...), and Study and Trial, which are the same thing in comfort."""

from dibs.cell import Limits

from ._functions import Taken, abandoned, finished, in_flight, report, rescue, take
from ._results import TrialResult
from ._study import Study
from ._trial import Trial

__all__ = [
    "Limits", "Study", "Taken", "Trial", "TrialResult", "abandoned", "finished", "in_flight", "report", "rescue", "take",
]  # fmt: skip
