"""The store: claim, bind, resolve, scan and blobs. The claim, once; the only place that knows key names."""

from ._copies import adopt, mark_copy
from ._keys import ADOPTED, BLOCK, COPY_OF, MARKER, HostKeys, JournalKeys, RoundKeys, StudyKeys, SweepKeys, blob_key
from ._machine import Here, Machine
from ._names import escape, unescape
from ._opening import is_bucket, local_path, look, open_folder
from ._settle import Held, Pauses, Settler
from ._store import Name, Store
from ._verdicts import METHODS, Verdict, Weighed, weigh, write_verdict

__all__ = [
    "ADOPTED", "BLOCK", "COPY_OF", "MARKER", "METHODS", "Held", "Here", "HostKeys", "JournalKeys", "Machine", "Name",
    "Pauses", "RoundKeys", "Settler", "Store", "StudyKeys", "SweepKeys", "Verdict", "Weighed", "adopt", "blob_key", "escape", "is_bucket", "local_path", "look",
    "mark_copy", "open_folder", "unescape", "weigh", "write_verdict",
]  # fmt: skip
