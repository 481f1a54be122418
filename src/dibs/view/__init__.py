"""Read models: what status, watch, ui and report show, computed once from a store. Reads only.

No reader takes a lock or writes a byte, so ages count back from the newest stamp seen in the study: they are
lower bounds, and a store that is read-only is as readable as any.
"""

from ._detail import trial_detail
from ._models import (
    AttemptDetail,
    Part,
    Problem,
    Row,
    Running,
    Script,
    StoreStatus,
    StudyLine,
    StudyStatus,
    TrialDetail,
)
from ._plain import Plain
from ._source import Source
from ._status import study_status
from ._stores import store_status
from ._table import STATES, best_rows, results_table
from ._words import ago, duration, point_text, score_text

__all__ = [
    "STATES", "AttemptDetail", "Part", "Plain", "Problem", "Row", "Running", "Script", "Source", "StoreStatus", "StudyLine",
    "StudyStatus", "TrialDetail", "ago", "best_rows", "duration", "point_text", "results_table", "score_text",
    "store_status", "study_status", "trial_detail",
]  # fmt: skip
