"""The store: names pointing at small records, and blobs by digest.

Of all callers on all machines at most one is told it claimed a name; what a reader sees is always one
whole write. Nothing here knows what a trial is; studies build on the same claim through ``settler``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, final

from dibs._canon import dumps
from dibs._clock import iso
from dibs.backend import Backend
from dibs.errors import NotOwner, RecordError, UsageError
from dibs.record import FORMAT, decode

from . import _blobs
from ._copies import Bar, source_of
from ._keys import StudyKeys, name_key
from ._machine import Here, Machine, default_me
from ._names import unescape
from ._opening import is_bucket, local_path, open_folder
from ._settle import Held, Settler

__all__ = ["Name", "Store"]

log = logging.getLogger("dibs")


@dataclass(frozen=True, slots=True)
class Name:
    """What a claimed name points at: a blob's digest (or None) and a small mapping."""

    name: str
    digest: str | None
    meta: dict[str, Any] = field(default_factory=dict)
    who: dict[str, Any] = field(default_factory=dict)


@final
class Store:
    """A folder that several machines mounted: ``Store("/mnt/shared/studies")`` or a ``file:///`` URL; or a bucket they
    can all reach: ``Store("s3://bucket/prefix")``, ``gs://``, ``az://`` (with the extra ``bucket``: obstore).

    Guarantee: of all callers of :meth:`claim` for one name at most one is told True, and no reader ever sees
    part of a record or a blob. Thread-safe, fork-safe (a forked process opens its own where it is a bucket), picklable.

    ``create``: True makes a missing store (in a parent that exists), False never does, None (the default)
    makes one except inside a job array, where a missing mount would begin a thousand private searches.
    ``unchecked``: trust a mount of a type that is known to lie or not known at all.
    ``fsync``: what survives a power cut: "result" (closed records, blobs and notes; the default), "all" (claims
    too), "none".
    Raises StoreError (the path is a file, missing, read-only, full, or on a mount nobody vouches for).
    """

    def __init__(
        self, url: str | os.PathLike[str], create: bool | None = None, unchecked: bool = False, fsync: str = "result"
    ) -> None:
        machine = Here()
        if isinstance(url, str) and is_bucket(url):
            from ._opening_bucket import open_bucket

            backend, self.marker = open_bucket(url, machine, create=create)
            self._set(backend, machine, url)
            self._bar(source_of(backend))
            return
        root = local_path(url)
        backend, self.marker = open_folder(root, machine, create=create, unchecked=unchecked, fsync=fsync)
        self._set(backend, machine, str(root))
        self._bar(source_of(backend))

    @classmethod
    def on_bucket(
        cls, endpoint: str, bucket: str, prefix: str = "", *, create: bool | None = None, **options: str | bool | None
    ) -> Store:
        """A store in a bucket of a server that speaks S3; the same as ``Store("s3://bucket/prefix?endpoint=...")``.

        Plain http only where the endpoint says so. Credentials come from the environment, a profile or the machine's
        role. Raises UsageError, and StoreError (no such bucket, no permission, a server that does not keep conditions).
        """
        from ._bucket_url import bucket_url

        return cls(bucket_url(endpoint, bucket, prefix, **options), create=create)

    @classmethod
    def over(
        cls, backend: Backend, machine: Machine | None = None, url: str = "memory:", patience_s: float = 60.0
    ) -> Store:
        """A store over a backend that is already open (a wrapper, a fake, a simulator's); no marker is read."""
        store = cls.__new__(cls)
        store.marker = {}
        store._set(backend, machine or Here(), url, patience_s)
        return store

    def _set(self, backend: Backend, machine: Machine, url: str, patience_s: float = 60.0) -> None:
        self.backend, self.machine, self.url = backend, machine, url
        self.settler = Settler(backend, machine, patience_s)
        self.kept: dict[Any, Any] = {}  # read models that readers of this store share; never part of a pickle
        self._held: dict[str, Held] = {}
        self.copy_of: str | None = None

    def _bar(self, source: str | None) -> None:
        """No claims here while it is a copy that nobody has adopted."""
        self.copy_of = source
        self.settler.bar = Bar(self.backend, self.url, source) if source is not None else None

    def demand_own(self) -> None:
        """RefusedError if this store is a copy of another one that nobody has adopted: it hands out nothing."""
        if self.settler.bar is not None:
            self.settler.bar()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "backend": self.backend, "url": self.url, "marker": self.marker, "patience_s": self.settler.patience_s,
            "copy_of": self.copy_of,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.marker = state["marker"]
        self._set(state["backend"], Here(), state["url"], state["patience_s"])
        self._bar(state["copy_of"])

    def __repr__(self) -> str:
        return f"Store({self.url!r})"

    # names

    def claim(self, name: str, digest: str | None = None, meta: Mapping[str, Any] | None = None) -> bool:
        """Give the name to the caller only if nobody has it; at most one caller ever is told True.

        ``digest`` points at a blob that :meth:`put` has stored, or is None; ``meta`` is a small JSON mapping.
        Raises UsageError (no legal name, no digest, a meta that is not JSON), UnsureError, StoreError.
        """
        held = self.settler.claim(name_key(name), self._body(name, digest, meta))
        if held is not None:
            self._held[name] = held
        return held is not None

    def bind(self, name: str, digest: str | None = None, meta: Mapping[str, Any] | None = None) -> None:
        """Point a name this process has claimed at something else, as a whole.

        Raises NotOwner if this process has not claimed it, Superseded if the name was removed and reclaimed.
        """
        held = self._held.get(name)
        if held is None:
            raise NotOwner(f"{name!r} was not claimed by this process: only who claimed a name may bind it")
        self.settler.rewrite(held, self._body(name, digest, meta), durable=True)

    def resolve(self, name: str) -> Name | None:
        """What the name points at, or None if nobody has claimed it. Raises RecordError if it does not parse."""
        key = name_key(name)
        there = self.backend.read(key)
        if there is None:
            return None
        found = _name_of(decode(there.data, key), key)
        if found.name != name:
            raise RecordError(f"{key} holds the name {found.name!r} instead of {name!r}", key=key)
        return found

    def scan(self, prefix: str = "") -> Iterator[Name]:
        """All claimed names that start with ``prefix``; one that does not parse is logged, never an exception."""
        for entry in self.backend.list("name/"):
            whole = unescape(entry.key[5:-5])
            if whole is not None and not whole.startswith(prefix):
                continue  # a name too long for its segment (None) has to be read
            there = self.backend.read(entry.key)
            if there is None:
                continue
            try:
                found = _name_of(decode(there.data, entry.key), entry.key)
            except RecordError as wrong:
                log.warning("%s", wrong)
                continue
            if found.name.startswith(prefix):
                yield found

    # blobs

    def put(self, data: bytes | os.PathLike[str] | BinaryIO | Iterable[bytes]) -> str:
        """Keep bytes under their SHA-256 and return it; durable and whole before it returns.

        Bytes, a Path, an open binary file or chunks; streamed and hashed while written. Raises StoreError, and
        UsageError for what is none of these.
        """
        return _blobs.put(self.backend, data)

    def get(self, digest: str) -> bytes:
        """The blob's bytes, verified. Raises NotFound, or RecordError if they are not what the digest says."""
        return _blobs.get(self.backend, digest)

    def fetch(self, digest: str, path: str | os.PathLike[str]) -> Path:
        """Write the blob to a local file, streamed and verified; the file appears whole or not at all."""
        return _blobs.fetch(self.backend, digest, Path(path))

    def has(self, digest: str) -> bool:
        """Whether the blob is there (it is not verified)."""
        return _blobs.has(self.backend, digest)

    # the rest

    def now(self) -> float:
        """Seconds since the epoch by the store's own clock, whatever the machines think (writes a probe)."""
        return self.backend.now()

    def studies(self) -> list[str]:
        """The names of the studies in this store, sorted."""
        names = []
        for segment in self.backend.folders("study/"):
            name = unescape(segment)
            if name is None:  # too long for a segment: its records know
                name = self._long_name(segment)
            names.append(name)
        return sorted(names)

    def keys(self, study: str) -> StudyKeys:
        """The keys of one study."""
        return StudyKeys(study)

    def me(self, me: str | None = None) -> str:
        """The readable name of this caller: the one given, else ``DIBS_ME``, the Slurm task, or the host."""
        return me or default_me(os.environ)

    def head(self, kind: str, me: str | None = None) -> dict[str, Any]:
        """The head of a new record: version, kind, who and when."""
        return {
            "v": FORMAT,
            "kind": kind,
            "who": self.machine.who(self.me(me)),
            "created_at": iso(self.machine.clock.wall()),
        }

    def _long_name(self, segment: str) -> str:
        for entry in self.backend.list(f"study/{segment}/"):
            there = self.backend.read(entry.key)
            if there is not None:
                try:
                    return str(decode(there.data, entry.key).get("study", segment))
                except RecordError:
                    continue
        return segment

    def _body(self, name: str, digest: str | None, meta: Mapping[str, Any] | None) -> dict[str, Any]:
        if digest is not None:
            _blobs.check(digest)
        if meta is not None and not isinstance(meta, Mapping):
            raise UsageError(f"the meta of {name!r} must be a mapping, not {type(meta).__name__}")
        body = {**self.head("name"), "name": name, "digest": digest, "meta": dict(meta or {})}
        if not all(isinstance(key, str) for key in body["meta"]):
            raise UsageError(f"the meta of {name!r} is not plain JSON (its keys must be texts)")
        try:
            dumps(body["meta"])
        except (TypeError, ValueError, RecursionError) as wrong:
            raise UsageError(f"the meta of {name!r} is not plain JSON ({wrong})") from None
        return body


def _name_of(body: dict[str, Any], key: str) -> Name:
    name, digest, meta, who = body.get("name"), body.get("digest"), body.get("meta"), body.get("who")
    if body.get("kind") != "name" or not isinstance(name, str) or not isinstance(meta, dict):
        raise RecordError(f"{key} is not the record of a name", key=key)
    return Name(name, digest if isinstance(digest, str) else None, meta, who if isinstance(who, dict) else {})
