"""Bytes under keys: the storage contract, its backends and the wrappers around them.

The contract and the two local backends are loaded at once; wrappers and mounts when they are first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._folder import FolderBackend
from dibs.backend._memory import MemoryBackend
from dibs.backend._process import this_process

if TYPE_CHECKING:
    from dibs.backend._bucket import BucketBackend
    from dibs.backend._counting import CountingBackend
    from dibs.backend._crashing import CrashingBackend, Killed
    from dibs.backend._faulty import FaultyBackend
    from dibs.backend._mounts import Judgement, judge, mount_type
    from dibs.backend._retrying import RetryingBackend
    from dibs.backend._slow import SlowBackend
    from dibs.backend._wrapper import WrapperBackend

__all__ = [
    "Backend",
    "BucketBackend",
    "CountingBackend",
    "CrashingBackend",
    "Draft",
    "Entry",
    "FaultyBackend",
    "FolderBackend",
    "Judgement",
    "Killed",
    "MemoryBackend",
    "Object",
    "Outcome",
    "RetryingBackend",
    "SlowBackend",
    "Traits",
    "WrapperBackend",
    "check_endpoint",
    "judge",
    "mount_type",
    "this_process",
]

_LAZY = {
    "RetryingBackend": "_retrying",
    "BucketBackend": "_bucket",
    "CountingBackend": "_counting",
    "CrashingBackend": "_crashing",
    "FaultyBackend": "_faulty",
    "Judgement": "_mounts",
    "Killed": "_crashing",
    "SlowBackend": "_slow",
    "WrapperBackend": "_wrapper",
    "check_endpoint": "_bucket_client",
    "judge": "_mounts",
    "mount_type": "_mounts",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
