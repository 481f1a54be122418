"""Opening a store in a bucket: what the URL says, and the proof that the server keeps its conditions.

A server that accepts a second conditional PUT of one key would hand every trial to everybody, so a store is created
only after a probe that was refused as it should be. The verdict lies in the marker, which is created once: of ten
thousand workers one pays for the probe.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from dibs.backend import Backend, BucketBackend, Outcome, RetryingBackend
from dibs.errors import StoreError
from dibs.record import decode

from ._bucket_url import bucket_url, read_url
from ._keys import COPY_OF, MARKER
from ._machine import Machine
from ._marker import create_marker, read_marker
from ._opening import in_job_array

__all__ = ["bucket_url", "open_bucket", "probe_bucket", "raw_bucket"]

log = logging.getLogger("dibs")
_OPENING_S = 10.0  # so long an outage is waited out before a store is open; then 30 s
_NO_VERSION = "1234567890123456"  # of no object: an etag to some servers, a generation to others


def open_bucket(url: str, machine: Machine, *, create: bool | None) -> tuple[Backend, dict[str, Any]]:
    """The backend behind a bucket's URL and the marker's body. Raises UsageError and StoreError with the remedy."""
    base, options = read_url(url)
    inner = BucketBackend(base, options)
    marker = _opened(inner, machine, create=create)
    return RetryingBackend(inner, machine.clock, machine.entropy), marker


def raw_bucket(url: str, machine: Machine) -> Backend:
    """The bucket behind a URL, whether or not there is a store in it. Raises UsageError."""
    return RetryingBackend(BucketBackend(*read_url(url)), machine.clock, machine.entropy, _OPENING_S)


def probe_bucket(url: str, machine: Machine) -> None:
    """What every creation of a store tries; StoreError if the server does not keep conditions, or refuses."""
    inner = BucketBackend(*read_url(url))
    backend, base = RetryingBackend(inner, machine.clock, machine.entropy, _OPENING_S), inner.url
    if read_marker(backend, base) is None:
        _demand_empty(backend, base)
        _demand_outside(inner)
    _probe(backend, machine, base)


def _opened(inner: BucketBackend, machine: Machine, *, create: bool | None) -> dict[str, Any]:
    backend, base = RetryingBackend(inner, machine.clock, machine.entropy, _OPENING_S), inner.url
    marker = read_marker(backend, base)
    if marker is not None:
        return marker
    if create is False:
        raise StoreError(f"there is no store at {base}: check the URL, or create it: dibs run, exec and sweep plan do")
    if create is None and in_job_array(os.environ):
        raise StoreError(
            f"there is no store at {base}, and a task of a job array does not create one: create it once beforehand, "
            "or say --create (create=True)"
        )
    _demand_empty(backend, base)
    _demand_outside(inner)
    _probe(backend, machine, base)
    if inner.keeps_versions:
        log.warning(
            "%s keeps every version of an object, and each heartbeat makes one: suspend versioning, or let a lifecycle rule "
            "expire noncurrent versions after a day",
            base,
        )
    return create_marker(backend, machine, base, "conditional")


def _demand_empty(backend: Backend, base: str) -> None:
    """A prefix that holds something else is somebody else's: a store would mix with it."""
    found = [name for name in backend.names("") if name not in ("tmp", "probe", MARKER, COPY_OF)]
    if found:
        raise StoreError(f"{base} holds other objects ({found[0]!r}, ...) and no store: give a prefix of its own")


def _demand_outside(backend: BucketBackend) -> None:
    """Inside another store, each would find the other's objects; who may not look above the prefix is believed."""
    scheme, _, path = backend.url.partition("://")
    above = path
    while "/" in above:
        above = above.rpartition("/")[0]
        try:
            there = BucketBackend(f"{scheme}://{above}", backend.options, backend.timeout_s).read(MARKER)
            found = there is not None and decode(there.data, MARKER).get("kind") == "dibs"
        except StoreError:
            continue
        if found:
            raise StoreError(f"{backend.url} lies inside the store {scheme}://{above}: give a prefix of its own")


def _probe(backend: Backend, machine: Machine, base: str) -> None:
    """Two conditional PUTs of one key and two rewrites; a server that accepts the wrong ones is refused."""
    key = f"probe/{machine.entropy(8).hex()}.json"
    try:
        outcomes = [backend.create(key, backend.stage(b'{"probe":%d}' % turn)) for turn in (1, 2)]
        there = backend.read(key)
        if outcomes[0] is Outcome.UNSURE or there is None:
            raise StoreError(f"{base}: the server gave no clear answer to a first write: try again")
        if outcomes == [Outcome.WON, Outcome.WON]:
            raise StoreError(
                f"{base}: this server accepted a second conditional PUT (If-None-Match: *) of one key, so every trial would "
                "be handed to everybody; use AWS S3, R2, GCS, Azure, a recent MinIO or SeaweedFS, or a shared folder"
            )
        if outcomes != [Outcome.WON, Outcome.LOST]:
            raise StoreError(f"{base}: something else writes under probe/ of this prefix: give one of its own")
        if backend.replace(key, backend.stage(b'{"probe":3}'), _NO_VERSION) is Outcome.WON:
            raise StoreError(
                f"{base}: this server accepted a rewrite with a wrong version (If-Match), so a late heartbeat could undo a "
                "result; use AWS S3, R2, GCS, Azure, a recent MinIO or SeaweedFS, or a shared folder"
            )
        if backend.replace(key, backend.stage(b'{"probe":4}'), there.version) is Outcome.LOST:
            raise StoreError(
                f"{base}: this server refused a rewrite with the right version (If-Match): it cannot be used, nor can a "
                "bucket that locks what is in it (object lock, retention)"
            )
    finally:
        backend.delete(key)
