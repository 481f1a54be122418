"""The store: claim, bind, resolve, scan and blobs. The claim, once; the only place that knows key names."""

from ._keys import BLOCK, StudyKeys
from ._machine import Here, Machine
from ._names import escape, unescape
from ._settle import Held, Settler
from ._store import Name, Store

__all__ = ["BLOCK", "Held", "Here", "Machine", "Name", "Settler", "Store", "StudyKeys", "escape", "unescape"]
