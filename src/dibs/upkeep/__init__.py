"""Looking after a store: check says what is wrong and what to do, gc removes what nothing can need."""

from ._check import check
from ._findings import Finding, Report
from ._gc import Garbage, Removal, collect, find_garbage

__all__ = ["Finding", "Garbage", "Removal", "Report", "check", "collect", "find_garbage"]
