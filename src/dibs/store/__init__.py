"""The store: claim, bind, resolve, scan and blobs. The claim, once; the only place that knows key names."""

from ._keys import BLOCK, MARKER, HostKeys, StudyKeys
from ._machine import Here, Machine, this_process
from ._names import escape, unescape
from ._opening import local_path, look, open_folder
from ._settle import Held, Settler
from ._store import Name, Store
from ._verdicts import METHODS, Verdict, Weighed, weigh, write_verdict

__all__ = [
    "BLOCK", "MARKER", "METHODS", "Held", "Here", "HostKeys", "Machine", "Name", "Settler", "Store", "StudyKeys",
    "Verdict", "Weighed", "escape", "local_path", "look", "open_folder", "this_process", "unescape", "weigh", "write_verdict",
]  # fmt: skip
