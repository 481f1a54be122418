"""One store copied onto another, folder or bucket, while workers run on the first: the same names, the same bytes.

Blobs go before the record that names them, so that a reader of the copy never misses one. What is there is looked at
again before it is touched, so a copy that was killed is simply begun again. The marker stays: what is exclusive on one
side need not be on the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dibs.backend import Backend, Object, Outcome
from dibs.errors import NewerFormat, RecordError, StoreError, UsageError
from dibs.record import decode
from dibs.store import Store, blob_key

from ._copied import Copied, Trouble
from ._copy_finals import copy_finals
from ._copy_place import demand_copy
from ._copy_rules import final, named_blobs, rule_of
from ._layout import place_of
from ._walk import entries_of

__all__ = ["Copier"]

_AT_ONCE = 64
_LARGE_BYTES, _LARGE_AT_ONCE = 1 << 20, 3  # each is in memory by parts of 8 MiB, and in a temporary file as a whole
_TRIES = 5
_OWN = ("marker", "verdict", "adopted")  # what each store says of itself
_PASSING = ("live", "work")  # a running curve and an attempt's own folder are worth nothing without the attempt
_ORDER = {
    "study": 0, "plan": 0, "given": 1, "wish": 1, "release": 1, "stop": 1, "trial": 2, "again": 3, "roll": 4, "blob": 6,
}  # fmt: skip
_SAID = {
    "other": "another owner's record is there: it is left alone",
    "closed twice": "both are closed, differently: the copy's is left alone",
}


class Copier:
    """Copies ``source`` onto ``copy``, pass by pass; what can never change is looked at once.

    ``step`` is told (objects looked at, bytes written) now and then. Raises StoreError, and RefusedError once the copy
    is adopted. Records and blobs are read back after they were written.
    """

    def __init__(self, source: Store, copy: Store, step: Callable[[int, int], None] | None = None) -> None:
        self.source, self.copy, self._step = source, copy, step
        self._done: set[str] = set()
        self._blobs: set[str] = set()
        self._sizes: dict[str, int] = {}  # of the blobs in the source, and in the copy, as listed by this pass
        self._there: dict[str, int] = {}
        self._turns: dict[str, threading.Lock] = {}  # a blob that many records name is sent once
        self._large = threading.BoundedSemaphore(_LARGE_AT_ONCE)
        self._exclusive = copy.backend.traits.conditional_replace

    def run(self) -> Copied:
        """One pass over everything there is."""
        told = Copied()
        entries = list(entries_of(self.source))
        self._sizes = {entry.key: entry.size for entry in entries if place_of(entry.key).kind == "blob"}
        self._there = {entry.key: entry.size for entry in self.copy.backend.list("blobs/", details=True)}
        keys = [entry.key for entry in entries if entry.key not in self._done]
        keys.sort(key=lambda key: (_ORDER.get(place_of(key).kind, 5), key))
        with self._alone():
            for start in range(0, len(keys), _AT_ONCE):
                demand_copy(self.copy)
                for one in self._lane().at_once(self._one, keys[start : start + _AT_ONCE]):
                    told.add(one)
                if self._step is not None:
                    self._step(min(len(keys), start + _AT_ONCE), told.bytes)
            copy_finals(self.source, self.copy, told)
        told.troubles.sort(key=lambda trouble: trouble.key)
        return told

    def _lane(self) -> Backend:
        """The side that is worth asking for several things at once."""
        return (self.copy if self.copy.backend.traits.conditional_replace else self.source).backend

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """On a folder, whose rename asks for no version, one copier at a time; without a lock open records wait."""
        root = self.copy.backend.root
        if root is None:
            yield
            return
        with locked(str(root)) as held:
            self._exclusive = held
            yield

    # one object

    def _one(self, key: str) -> Copied:
        told, place = Copied(), place_of(key)
        if place.kind in _PASSING:
            told.skipped += 1
        elif place.kind == "blob":
            if not self._blob(place.digest, told):
                told.troubles.append(Trouble(key, "its bytes have another digest, or it is no file"))
        elif place.kind not in _OWN:
            self._named(key, place.kind, told)
        return told

    def _named(self, key: str, kind: str, told: Copied) -> None:
        try:
            there = self.source.backend.read(key)
            if there is None or not there.data:
                return  # removed meanwhile; or claimed, and not written yet: the next pass has it
            body = decode(there.data, key)
            if kind == "foreign" and not body.get("nonce"):
                raise RecordError(f"{key} is no object of a store")
        except NewerFormat as wrong:
            raise StoreError(f"{wrong}: nobody knows what it refers to", key=key) from None
        except RecordError as wrong:
            told.troubles.append(Trouble(key, f"it does not read and is not copied: {wrong}"))
            return
        except UsageError:  # such as .nfs0001, or what another program put into the bucket
            told.troubles.append(Trouble(key, "no object of a store has such a name, and it is not copied"))
            return
        for digest, certain in named_blobs(kind, body):
            if not self._blob(digest, told) and certain:
                told.troubles.append(Trouble(key, f"it names the blob {digest}, which is not there or damaged"))
        if self._record(key, there.data, body, told) and final(kind, body):
            self._done.add(key)

    def _record(self, key: str, data: bytes, body: dict[str, Any], told: Copied) -> bool:
        """Bring the copy's record up to this one; whether it now is. Raises StoreError."""
        backend = self.copy.backend
        for turn in range(_TRIES):
            held = _look(backend, key)
            rule = rule_of(data, body, None if held is None else held.data, exclusive=self._exclusive)
            if rule == "same":
                told.records += turn > 0
                told.same += turn == 0
                told.bytes += len(data) if turn else 0
                return True
            if rule == "keep":
                told.kept += 1
                return False
            if rule in _SAID:
                told.troubles.append(Trouble(key, _SAID[rule]))
                return False
            draft = backend.stage(data, durable=True)
            try:
                if held is None:
                    backend.create(key, draft)
                else:
                    backend.replace(key, draft, held.version)
            finally:
                backend.discard(draft)
            # whatever was answered, the next look decides
        raise StoreError(f"{key} could not be written to {self.copy.url}: no clear answer {_TRIES} times", key=key)

    def _blob(self, digest: str, told: Copied) -> bool:
        """Whether the blob is in the copy (now). One of another size there was torn, and is sent again."""
        with self._turns.setdefault(digest, threading.Lock()):
            if digest in self._blobs:
                return True
            key = blob_key(digest)
            there, wanted = self._there.get(key), self._sizes.get(key)
            if there is not None and wanted in (None, there):
                told.same += 1
            else:
                with contextlib.nullcontext() if wanted is not None and wanted <= _LARGE_BYTES else self._large:
                    size = self._send(digest, key)
                if size is not None:
                    told.blobs += 1
                    told.bytes += size
                elif there is not None and self._is_whole(digest, key):
                    told.same += 1  # it is the source's that is damaged
                else:
                    return False
            self._blobs.add(digest)
            self._done.add(key)
            return True

    def _send(self, digest: str, key: str) -> int | None:
        """Copy the bytes, hashed on the way and read back; None if they are missing or damaged."""
        try:
            chunks = self.source.backend.stream(key)
        except RecordError:  # a link, a FIFO, a folder: there are no bytes
            return None
        if chunks is None:
            return None
        hasher = hashlib.sha256()
        draft = self.copy.backend.stage(_hashed(chunks, hasher), durable=True)
        try:
            if hasher.hexdigest() != digest:
                return None
            if self.copy.backend.put(key, draft) is not Outcome.WON:
                raise StoreError(f"the blob {digest} could not be written to {self.copy.url}", key=key)
        finally:
            self.copy.backend.discard(draft)
        if not self._is_whole(digest, key):
            self.copy.backend.delete(key)
            raise StoreError(
                f"the blob {digest} came out differently from {self.copy.url}: it was removed there", key=key
            )
        return draft.size

    def _is_whole(self, digest: str, key: str) -> bool:
        """Whether the copy's bytes have this digest."""
        hasher = hashlib.sha256()
        for _ in _hashed(self.copy.backend.stream(key) or iter(()), hasher):
            pass
        return hasher.hexdigest() == digest


def _look(backend: Backend, key: str) -> Object | None:
    try:
        return backend.read(key)
    except RecordError as wrong:  # a link, a FIFO: nothing of ours
        raise StoreError(f"{key} in the copy cannot be read: {wrong}", key=key) from None


def _hashed(chunks: Iterator[bytes], hasher: Any) -> Iterator[bytes]:
    for chunk in chunks:
        hasher.update(chunk)
        yield chunk


@contextlib.contextmanager
def locked(folder: str) -> Iterator[bool]:
    """Whether nobody else holds this folder; StoreError if somebody does. False where the system cannot say."""
    try:
        import fcntl
    except ImportError:
        yield False
        return
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except BlockingIOError:
            raise StoreError(f"another copy into {folder} is running: one at a time") from None
        except OSError:
            held = False
        yield held
    finally:
        os.close(fd)
