"""Looking after a store: check says what is wrong and what to do, gc removes what nothing can need, copy copies."""

from ._check import check
from ._copied import Copied, Trouble
from ._copy import Copier
from ._copy_place import adopt_copy, open_copy
from ._findings import Finding, Report
from ._gc import Garbage, Removal, collect, find_garbage

__all__ = [
    "Copied",
    "Copier",
    "Finding",
    "Garbage",
    "Removal",
    "Report",
    "Trouble",
    "adopt_copy",
    "check",
    "collect",
    "find_garbage",
    "open_copy",
]
