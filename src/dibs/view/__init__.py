"""Read models: what status, watch, ui and report show, computed once from a store. Reads only.

No reader takes a lock or writes a byte, so ages count back from the newest stamp seen in the study: they are
lower bounds, and a store that is read-only is as readable as any. Each is loaded when first used: whoever shows a
status needs no picture, and who only words a duration no study.
"""

from typing import TYPE_CHECKING

from dibs._lazy import lazily

if TYPE_CHECKING:
    from ._best_so_far import BestSoFar, Settled, best_so_far
    from ._contours import Cell, Contour, Spot2, contour
    from ._detail import trial_detail
    from ._importances import Importance, Importances
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
    from ._rounds import run_lines, run_status
    from ._rulers import Axis, Band
    from ._runs import RoundStatus, RunLine, RunStatus
    from ._scored import Aim, Scored, aim_of, scored
    from ._slices import Slice, Slices, Spot, Summary, slices
    from ._source import Source
    from ._status import study_status
    from ._stores import store_status
    from ._sweep import CellLine, CellRunning, ScriptUse, SweepStatus, sweep_status
    from ._table import STATES, best_rows, front_rows, results_table
    from ._words import ago, constraints_text, duration, goal_text, point_text, score_text, scores_text

__all__ = [
    "STATES", "Aim", "AttemptDetail", "Axis", "Band", "BestSoFar", "Cell", "CellLine", "CellRunning", "Contour",
    "Importance", "Importances", "Part", "Plain", "Problem", "RoundStatus", "Row", "RunLine", "RunStatus", "Running",
    "Scored", "Script", "ScriptUse", "Settled", "Slice", "Slices", "Source", "Spot", "Spot2", "StoreStatus",
    "StudyLine", "StudyStatus", "Summary", "SweepStatus", "TrialDetail", "ago", "aim_of", "best_rows", "best_so_far",
    "constraints_text", "contour", "duration", "front_rows", "goal_text", "point_text", "results_table", "run_lines",
    "run_status", "score_text", "scored", "scores_text", "slices", "store_status", "study_status", "sweep_status",
    "trial_detail",
]  # fmt: skip

__getattr__, __dir__ = lazily(__name__, {
    "_best_so_far": ["BestSoFar", "Settled", "best_so_far"],
    "_contours": ["Cell", "Contour", "Spot2", "contour"],
    "_detail": ["trial_detail"],
    "_importances": ["Importance", "Importances"],
    "_models": ["AttemptDetail", "Part", "Problem", "Row", "Running", "Script", "StoreStatus", "StudyLine", "StudyStatus", "TrialDetail"],
    "_plain": ["Plain"],
    "_rounds": ["run_lines", "run_status"],
    "_rulers": ["Axis", "Band"],
    "_runs": ["RoundStatus", "RunLine", "RunStatus"],
    "_scored": ["Aim", "Scored", "aim_of", "scored"],
    "_slices": ["Slice", "Slices", "Spot", "Summary", "slices"],
    "_source": ["Source"],
    "_status": ["study_status"],
    "_stores": ["store_status"],
    "_sweep": ["CellLine", "CellRunning", "ScriptUse", "SweepStatus", "sweep_status"],
    "_table": ["STATES", "best_rows", "front_rows", "results_table"],
    "_words": ["ago", "constraints_text", "duration", "goal_text", "point_text", "score_text", "scores_text"],
})  # fmt: skip
