"""Cells: one program run in a folder of its own, under limits, and why it ended. Knows no study and no sweep.

What only a run needs is loaded by it: limits are known to every worker.
"""

from typing import TYPE_CHECKING

from dibs._lazy import lazily

from ._limits import UNLIMITED, Limits, is_limit, size_of, size_text, span_of, span_text
from ._usage import family, resident

if TYPE_CHECKING:
    from ._causes import LOST, Cause, Evidence, classify
    from ._claim import claim_folder, folder_owner
    from ._command import Command
    from ._environ import check_values, text_of, variables_of
    from ._evidence import tail_of
    from ._frozen import Frozen, copied, freeze, frozen_in, private_folder
    from ._holding import hold
    from ._isolation import Isolation, isolation_status
    from ._process import Ending, Job, Watcher, run
    from ._template import Line, Template, Words, check_names, parse
    from ._told import Told

__all__ = [
    "LOST", "UNLIMITED", "Cause", "Command", "Ending", "Evidence", "Frozen", "Isolation", "Job", "Limits", "Line",
    "Template", "Told", "Watcher", "Words", "check_names", "check_values", "claim_folder", "classify", "copied",
    "family", "folder_owner", "freeze", "frozen_in", "hold", "is_limit", "isolation_status", "parse", "private_folder",
    "resident", "run", "size_of", "size_text", "span_of", "span_text", "tail_of", "text_of", "variables_of",
]  # fmt: skip

__getattr__, __dir__ = lazily(__name__, {
    "_causes": ["LOST", "Cause", "Evidence", "classify"],
    "_claim": ["claim_folder", "folder_owner"],
    "_command": ["Command"],
    "_environ": ["check_values", "text_of", "variables_of"],
    "_evidence": ["tail_of"],
    "_frozen": ["Frozen", "copied", "freeze", "frozen_in", "private_folder"],
    "_holding": ["hold"],
    "_isolation": ["Isolation", "isolation_status"],
    "_process": ["Ending", "Job", "Watcher", "run"],
    "_template": ["Line", "Template", "Words", "check_names", "parse"],
    "_told": ["Told"],
})  # fmt: skip
