"""Bytes under keys: the storage contract, its backends and the wrappers around them."""

from __future__ import annotations

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome, Traits
from dibs.backend._folder import FolderBackend
from dibs.backend._memory import MemoryBackend

__all__ = ["Backend", "Draft", "Entry", "FolderBackend", "MemoryBackend", "Object", "Outcome", "Traits"]
