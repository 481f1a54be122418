"""A store in a bucket (S3, GCS, Azure, or a server that speaks S3) through obstore; an extra, loaded when opened.

A claim is a conditional PUT (``If-None-Match: *``, RFC 9110 13.1.2), a rewrite carries ``If-Match``. The client's own
retries are off: it would resend a claim whose answer was lost and tell the winner that it lost. So anything but a clear
answer is UNSURE here, and the settling module reads the name.
"""

from __future__ import annotations

import builtins
import itertools
import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, TypeVar

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._bucket_client import connect, demand_client
from dibs.backend._bucket_errors import said, store_error
from dibs.backend._checksums import checksums
from dibs.backend._names import check_key, check_prefix
from dibs.errors import DibsError, RecordError, StoreError, UsageError

__all__ = ["BucketBackend"]

T = TypeVar("T")
_NUMBERED = re.compile(r"\d+/[^/]+\.json")
_NOTHING_THERE = ("", "NoSuchKey", "BlobNotFound")  # a HEAD is answered without a code

_PARALLEL = 48  # reads at once; a bucket answers one in tens of milliseconds
_SPOOL_BYTES = 8 << 20
_CHUNK_BYTES = 1 << 20
_PART_BYTES = 8 << 20  # of a large object per request, up and down: what a failure costs, and what memory holds
_PARTS_AT_ONCE = 4
_MOST_PARTS = 9_000  # S3 takes 10,000
_LIMIT_BYTES = 64 << 20
TIMEOUT_S = 30.0
_BULK_TIMEOUT_S = 300.0  # for a part of a large object: 8 MiB in 30 s is more than some uplinks can do
_runtime_of: int | None = None  # the process whose obstore runtime is running: a fork does not inherit its threads


class _File(Draft):
    """A draft of streamed bytes, in memory up to 8 MiB and in a temporary file beyond."""

    __slots__ = ("__weakref__", "file")

    def __init__(self, file: IO[bytes], temp: str, size: int, durable: bool) -> None:
        super().__init__(None, temp, size, durable)
        self.file = file
        weakref.finalize(self, file.close)  # a __del__ may run after the file's own, where both are part of a cycle


class BucketBackend(Backend):
    """Bytes under keys below ``url`` (``s3://bucket/prefix``, ``gs://``, ``az://``), with ``options`` for the client.

    Credentials come the ecosystem's way (environment, profile, instance role) unless ``options`` name them.
    Thread-safe and picklable; a process forked after the first request must open its own store, and is told so.
    ``keeps_versions``: whether the last write was answered with a version's id (None before the first one).
    """

    def __init__(self, url: str, options: dict[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        demand_client(url)
        self.url, self.options, self.timeout_s = url.rstrip("/"), dict(options or {}), timeout_s
        self.keeps_versions: bool | None = None
        self._by_generation = self.url.startswith("gs:")  # GCS compares generations, the others etags
        self.traits = Traits("bucket", "put", conditional_replace=True, touch=False, listing_sorted=False)
        self._clients: dict[float, Any] = {}  # by time-out
        self._pool: ThreadPoolExecutor | None = None
        self._serial = itertools.count(1)

    def __repr__(self) -> str:
        return f"BucketBackend({self.url!r})"

    def __reduce__(self) -> tuple[type[BucketBackend], tuple[str, dict[str, str], float]]:
        return BucketBackend, (self.url, self.options, self.timeout_s)

    # writing

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        temp = f"request {next(self._serial)} of {os.getpid()}"  # nothing lies anywhere until it is sent
        if isinstance(data, bytes):
            return Draft(data, temp, len(data), durable)
        file: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_BYTES)  # noqa: SIM115 because the draft closes it
        try:
            for chunk in data:
                file.write(chunk)
        except BaseException:
            file.close()
            raise
        return _File(file, temp, file.tell(), durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        return self._put(key, draft, "create")

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        if version is None:
            raise UsageError(f"replacing {key} in a bucket needs the version that was read")
        return self._put(key, draft, {"version": version} if self._by_generation else {"e_tag": f'"{version}"'})

    def put(self, key: str, draft: Draft) -> Outcome:
        """Nobody disputes the bytes, so there is no doubt to settle: what went wrong is a StoreError that may pass.

        A durable draft is there, byte for byte, once this returns: the server's etag or a second look says so.
        """
        check_key(key)
        import obstore

        part = max(_PART_BYTES, -(-draft.size // _MOST_PARTS))
        told = self._ask(
            "write",
            key,
            lambda client: obstore.put(
                client, key, _body(draft), mode="overwrite", chunk_size=part, max_concurrency=_PARTS_AT_ONCE
            ),
            timeout_s=max(self.timeout_s, _BULK_TIMEOUT_S) if draft.size > _PART_BYTES else None,
        )
        if draft.durable and not self._arrived(key, draft, part, str(told["e_tag"] or "").strip('"')):
            raise StoreError(
                f"{self.url}/{key} has other bytes than were sent: they changed on their way", key=key, passing=True
            )
        return Outcome.WON

    def _arrived(self, key: str, draft: Draft, part: int, etag: str) -> bool:
        """Whether what the server has is what was sent. Where its etag is an MD5, as S3's mostly is, that costs nothing."""
        sent = checksums(_chunks(draft, part))
        if etag in (sent.whole, sent.by_parts):
            return True
        return sent.sha256 == checksums(self.stream(key) or iter(())).sha256

    def _put(self, key: str, draft: Draft, mode: Any) -> Outcome:
        check_key(key)
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        client = self._client()  # without one nothing was sent, and there is no doubt to settle
        try:
            told = obstore.put(client, key, _body(draft), mode=mode, use_multipart=False)
            self.keeps_versions = not self._by_generation and bool(told["version"])
        except (AlreadyExistsError, PreconditionError):
            return Outcome.LOST  # a 409 looks the same and proves nothing: the name decides
        except Exception as error:
            certain = store_error(error, "write", self.url, key, writing=True)
            if certain is not None:
                raise certain from error
            return Outcome.UNSURE
        return Outcome.WON

    def discard(self, draft: Draft) -> bool:
        if isinstance(draft, _File) and not draft.spent:
            draft.file.close()
        draft.spent = True
        return True

    def delete(self, key: str) -> bool:
        there = self.version(key) is not None
        if there:
            import obstore

            self._ask("delete", key, lambda client: obstore.delete(client, key))
        return there

    def touch(self, key: str) -> bool:
        raise UsageError("a bucket cannot touch: rewrite the record (traits.touch is False)")

    # reading

    def read(self, key: str) -> Object | None:
        check_key(key)
        import obstore

        found = self._ask("read", key, lambda client: obstore.get(client, key), missing=None)
        if found is None:
            return None
        meta = found.meta
        if meta["size"] > _LIMIT_BYTES:
            raise RecordError(f"{key} is larger than a record may be: it can only be streamed", key=key)
        data = self._ask("read", key, lambda client: bytes(found.bytes()))
        return Object(data, self._version(meta), meta["last_modified"].timestamp())

    def at_once(self, call: Callable[[str], T], keys: Sequence[str]) -> builtins.list[T]:
        if len(keys) < 2:
            return super().at_once(call, keys)
        self._client()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="dibs-bucket")
        try:
            return builtins.list(self._pool.map(call, keys))
        except RuntimeError:  # the interpreter is on its way out and starts no threads any more
            return super().at_once(call, keys)

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        """By parts, each a request of its own: a time-out or a break costs one part, whatever the size."""
        check_key(key)
        meta = self._head(key)
        return None if meta is None else self._parts(key, start, meta["size"], self._version(meta))

    def _parts(self, key: str, start: int, size: int, version: str) -> Iterator[bytes]:
        while start < size:
            end = min(size, start + _PART_BYTES)
            data = self._ask(
                "read",
                key,
                lambda client, asked=(start, end): _range(client, key, asked, None if self._by_generation else version),
                timeout_s=max(self.timeout_s, _BULK_TIMEOUT_S),
            )
            for at in range(0, len(data), _CHUNK_BYTES):
                yield bytes(data[at : at + _CHUNK_BYTES])
            start = end

    def version(self, key: str) -> str | None:
        found = self._head(key)
        return None if found is None else self._version(found)

    def _head(self, key: str) -> Any:
        check_key(key)
        import obstore

        return self._ask("read", key, lambda client: obstore.head(client, key), missing=None)

    def _version(self, meta: Any) -> str:
        """An etag goes without its quotes: Azure's listings leave them out."""
        return str(meta["version"] or "") if self._by_generation else str(meta["e_tag"] or "").strip('"')

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        check_prefix(prefix)
        return self._listed(prefix, after)

    def _listed(self, prefix: str, after: str) -> Iterator[Entry]:
        import obstore

        # some servers skip a whole folder for an offset that is not shaped like a key, and some sort folder by folder
        # (a/ before a-b/), which is the same only where folders are numbers
        offset = after if after.startswith(prefix) and _NUMBERED.fullmatch(after, len(prefix)) else None
        chunks = self._ask("list", prefix, lambda client: iter(obstore.list(client, prefix or None, offset=offset)))
        while True:
            chunk = self._ask("list", prefix, lambda client: next(chunks, None))
            if chunk is None:
                return
            for meta in sorted(chunk, key=lambda meta: meta["path"]):
                if meta["path"] > after and meta["path"].startswith(prefix):  # not the marker of the "folder" itself
                    yield Entry(meta["path"], self._version(meta), meta["last_modified"].timestamp(), meta["size"])

    def names(self, prefix: str) -> builtins.list[str]:
        folders, keys = self._level(prefix)
        return folders + keys

    def folders(self, prefix: str) -> builtins.list[str]:
        return sorted(self._level(prefix)[0])

    def now(self) -> float:
        import obstore

        key = f"tmp/clock-{os.getpid()}-{os.urandom(6).hex()}.json"
        self._ask("write", key, lambda client: obstore.put(client, key, b"{}"))
        stamp = self._ask("read", key, lambda client: obstore.head(client, key))["last_modified"].timestamp()
        self._ask("delete", key, lambda client: obstore.delete(client, key))
        return float(stamp)

    def _level(self, prefix: str) -> tuple[builtins.list[str], builtins.list[str]]:
        """The next segments behind the prefix: those with keys below them, and keys."""
        check_prefix(prefix)
        import obstore

        found = self._ask("list", prefix, lambda client: obstore.list_with_delimiter(client, prefix or None))
        cut = len(prefix)
        return (
            [folder[cut:].strip("/") for folder in found["common_prefixes"]],
            [
                name for meta in found["objects"] if (name := meta["path"][cut:])
            ],  # a "folder" that a console made has none
        )

    # the client

    def _ask(self, verb: str, key: str, call: Any, *, timeout_s: float | None = None, **default: Any) -> Any:
        """A request that changes nothing that matters; StoreError when it fails, ``missing`` where there is nothing."""
        try:
            return call(self._client(timeout_s))
        except StopIteration:
            return None
        except DibsError:
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and "missing" in default and said(error).code in _NOTHING_THERE:
                return default["missing"]
            raise (store_error(error, verb, self.url, key, writing=False) or error) from error

    def _client(self, timeout_s: float | None = None) -> Any:
        global _runtime_of
        if _runtime_of not in (None, os.getpid()):
            raise StoreError(
                f"{self.url} was in use before this process was forked, and its connections do not survive that: "
                'start processes with the "spawn" method, or open the store in the child alone'
            )
        timeout_s = timeout_s or self.timeout_s
        client = self._clients.get(timeout_s)
        if client is None:
            client = self._clients[timeout_s] = connect(self.url, self.options, timeout_s)
        _runtime_of = os.getpid()
        return client


def _body(draft: Draft) -> Any:
    if isinstance(draft, _File):
        draft.file.seek(0)
        return draft.file
    return draft.data


def _chunks(draft: Draft, size: int) -> Iterator[bytes]:
    """What was sent, cut as it was sent."""
    body = _body(draft)
    if isinstance(body, bytes):
        yield from (body[at : at + size] for at in range(0, len(body), size))
        return
    while chunk := body.read(size):
        yield chunk


def _range(client: Any, key: str, asked: tuple[int, int], etag: str | None) -> memoryview:
    """A part of an object that has not changed since its etag was seen (else StoreError)."""
    import obstore

    options: Any = {"range": asked, **({"if_match": f'"{etag}"'} if etag else {})}
    data = memoryview(obstore.get(client, key, options=options).bytes())
    if len(data) != asked[1] - asked[0]:
        raise StoreError(f"{key}: the server sent {len(data)} bytes of {asked[1] - asked[0]}", key=key, passing=True)
    return data
