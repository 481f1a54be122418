"""The storage contract: bytes under keys, few verbs, no default for an atomic one.

A key is ``/``-separated segments of ``[a-z0-9._%-]``; no key is ever a prefix of another.
A backend knows nothing of records, nonces or studies, and never retries: it says WON, LOST or UNSURE
and leaves it to the store's settling module to find out. The surprising part is the *draft*: a write is
staged once and then tried, so that a try that lands late is the same write and never an older one.
"""

from __future__ import annotations

import builtins
import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from dibs.errors import RecordError

__all__ = ["Backend", "Draft", "Entry", "Object", "Outcome", "Traits"]

T = TypeVar("T")


class Outcome(enum.Enum):
    """What a create or a replace can say. UNSURE: it may have happened, or may happen yet."""

    WON = "won"
    LOST = "lost"
    UNSURE = "unsure"


class Object(NamedTuple):
    """What a name pointed at: always one whole write, or ``b""`` for a name claimed but not yet written."""

    data: bytes
    version: str  # changes whenever the bytes do; the etag of a bucket
    modified: float  # seconds since the epoch, by the store's clock


class Entry(NamedTuple):
    """One line of a listing. Without ``details`` a backend may leave version "", modified 0.0, size -1."""

    key: str
    version: str
    modified: float
    size: int


class Draft:
    """One staged write: the full bytes, waiting at a unique temporary. Belongs to the backend that made it."""

    __slots__ = ("data", "durable", "owned", "size", "spent", "temp")

    def __init__(self, data: bytes | None, temp: str, size: int, durable: bool) -> None:
        self.data = data  # None where the bytes were streamed to the temporary
        self.temp = temp  # the temporary's name; unique over all machines
        self.size = size
        self.durable = durable
        self.owned = False  # the claim is certainly ours though the bytes may not be there yet (mkdir won)
        self.spent = False  # the temporary is certainly gone (renamed into place or unlinked)


@dataclass(frozen=True)
class Traits:
    """What a backend can do, as data."""

    name: str  # "memory", "folder", "bucket"
    claim: str  # "link", "mkdir", "put"
    conditional_replace: bool  # replace() honours ``version`` (a bucket's If-Match)
    touch: bool  # touch() moves ``modified`` without a rewrite
    listing_sorted: bool  # list() yields keys in byte order
    stamps: bool = False  # stamp() says when a folder may have changed


class Backend(ABC):
    """Bytes under keys. Thread-safe, picklable, and safe to use after a fork.

    Every verb raises StoreError (with the key) when it failed and that is certain; the two atomic verbs
    return UNSURE when it is not. No verb retries, and none sleeps.
    """

    traits: Traits
    root: Path | None = None  # the local folder behind the keys, where there is one

    def prepare(self) -> None:  # noqa: B027 - a backend with nothing to make has nothing to do here
        """Make what must exist before the first write; StoreError if that is not possible. Idempotent."""

    @abstractmethod
    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        """Put the full bytes at a temporary nobody else uses; no observer sees them under any key.

        ``durable``: the bytes survive a power cut once create or replace has answered WON.
        """

    @abstractmethod
    def create(self, key: str, draft: Draft) -> Outcome:
        """Give the draft's bytes a name only if the name does not exist; of all callers at most one is told WON.

        May be called again with the same draft after UNSURE. A call that lands after ``discard`` changes nothing
        on a folder (link(2) of a missing file); on a bucket it may still land, with the same bytes.
        """

    @abstractmethod
    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        """Put the draft's bytes under the key as a whole; a reader sees the old bytes or the new ones.

        LOST: the temporary is gone (it landed earlier, or somebody removed it), or, with
        ``traits.conditional_replace``, the key's version is not ``version`` (which is then required).
        Elsewhere ``version`` is ignored and an existing key is not required.
        """

    @abstractmethod
    def discard(self, draft: Draft) -> bool:
        """Remove the temporary; True if it is certainly gone, so that no earlier try can land any more.

        Idempotent, free when the draft is spent. On a bucket there is nothing to remove: True.
        """

    @abstractmethod
    def read(self, key: str) -> Object | None:
        """The whole bytes under the key, or None if there is no such key. Never a part of a write."""

    @abstractmethod
    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        """The bytes from the ``start``-th on in chunks of at most 1 MiB, or None if there is no such key."""

    @abstractmethod
    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        """The keys that start with ``prefix`` (which ends in ``/``) and sort behind ``after``, at any depth.

        Not a snapshot: a name created or removed meanwhile may be in it or not; all others are, once.
        """

    @abstractmethod
    def folders(self, prefix: str) -> builtins.list[str]:
        """The distinct next segments behind ``prefix`` that have keys below them, sorted."""

    def put(self, key: str, draft: Draft) -> Outcome:
        """Put the draft's bytes under a key whose bytes nobody disputes (a blob's digest), whole, whoever was first."""
        if not self.traits.conditional_replace:
            return self.replace(key, draft, None)
        version = self.version(key)
        return self.create(key, draft) if version is None else self.replace(key, draft, version)

    def read_many(self, keys: Sequence[str]) -> builtins.list[Object | RecordError | None]:
        """``read`` of each key, in order; what does not read is its RecordError. A slow backend reads at once."""
        return self.at_once(self._read_or_error, keys)

    def at_once(self, call: Callable[[str], T], keys: Sequence[str]) -> builtins.list[T]:
        """``call`` of each key, in order; at the same time (in threads) where waiting is most of the work."""
        return [call(key) for key in keys]

    def _read_or_error(self, key: str) -> Object | RecordError | None:
        try:
            return self.read(key)
        except RecordError as wrong:
            return wrong

    def names(self, prefix: str) -> builtins.list[str]:
        """The distinct next segments behind ``prefix``, keys and folders alike, in any order.

        Like ``list`` no snapshot; a backend that can list one folder cheaply overrides it.
        """
        return builtins.list({entry.key[len(prefix) :].partition("/")[0]: None for entry in self.list(prefix)})

    def stamp(self, prefix: str) -> str | None:
        """What changes when a name directly behind ``prefix`` comes, goes or is rewritten; "" where there is none.

        A hint, perhaps coarse and perhaps late (a folder's mtime). None: this backend has no such hint.
        """
        return None

    def version(self, key: str) -> str | None:
        """The version ``read`` would give, without the bytes; None if there is no such key."""
        there = self.read(key)
        return there.version if there is not None else None

    @abstractmethod
    def touch(self, key: str) -> bool:
        """Move the key's ``modified`` to the store's now; False if there is no such key. Only with ``traits.touch``."""

    @abstractmethod
    def delete(self, key: str) -> bool:
        """Remove the key; False if it was not there."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since the epoch by the clock that stamps ``modified`` (a probe is written for it)."""
