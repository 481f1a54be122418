"""dibs: N machines search one space together, through nothing but a folder they all mounted.

The names below load what they need when first used, so that starting a worker stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazily

if TYPE_CHECKING:
    from .errors import (
        AlreadyClosed,
        DibsError,
        NewerFormat,
        NoResult,
        NotFound,
        NotOwner,
        RecordError,
        RefusedError,
        RoundStopped,
        RoundTimeout,
        SpaceError,
        StoreError,
        Superseded,
        UnsureError,
        UpdateError,
        UsageError,
    )  # fmt: skip
    from .search import (
        CMAES,
        GP,
        NSGA2,
        TPE,
        Asha,
        Auto,
        Diverged,
        Grid,
        History,
        Hyperband,
        Median,
        Patience,
        Percentile,
        Random,
        Sobol,
        Threshold,
    )  # fmt: skip
    from .sink import Sink, SinkRecord
    from .space import Choice, Constant, Float, Int, Space
    from .store import Store
    from .study import Study, Trial, TrialResult

__getattr__, __dir__ = lazily(__name__, {
    "errors": [
        "AlreadyClosed", "DibsError", "NewerFormat", "NoResult", "NotFound", "NotOwner", "RecordError", "RefusedError",
        "RoundStopped", "RoundTimeout", "SpaceError", "StoreError", "Superseded", "UnsureError", "UpdateError", "UsageError",
    ],
    "search": [
        "CMAES", "GP", "NSGA2", "TPE", "Asha", "Auto", "Diverged", "Grid", "History", "Hyperband", "Median", "Patience",
        "Percentile", "Random", "Sobol", "Threshold",
    ],
    "sink": ["Sink", "SinkRecord"],
    "space": ["Choice", "Constant", "Float", "Int", "Space"],
    "store": ["Store"],
    "study": ["Study", "Trial", "TrialResult"],
})  # fmt: skip

__version__ = "0.1.0"
__all__ = [
    "CMAES", "GP", "NSGA2", "TPE", "AlreadyClosed", "Asha", "Auto", "Choice", "Constant", "DibsError", "Diverged",
    "Float", "Grid", "History", "Hyperband", "Int", "Median", "NewerFormat", "NoResult", "NotFound", "NotOwner",
    "Patience", "Percentile", "Random", "RecordError", "RefusedError", "RoundStopped", "RoundTimeout", "Sink",
    "SinkRecord", "Sobol", "Space", "SpaceError", "Store", "StoreError", "Study", "Superseded", "Threshold", "Trial",
    "TrialResult", "UnsureError", "UpdateError", "UsageError", "__version__",
]  # fmt: skip
