"""The base of all wrappers: every verb goes to the inner backend through one hook.

A wrapper changes when or whether a verb happens and what is said about it, never what it means,
so it passes the conformance suite its inner backend passes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from dibs.backend._base import Backend, Draft, Entry, Object, Outcome

__all__ = ["WrapperBackend"]

T = TypeVar("T")


class WrapperBackend(Backend):
    """Delegates everything to ``inner``. Meant to be subclassed: override ``_around`` or a verb."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.traits = inner.traits
        self.root = inner.root

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        """What happens around every verb; ``call`` performs it on the inner backend."""
        return call()

    def prepare(self) -> None:
        return self._around("prepare", "", self.inner.prepare)

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        return self._around("stage", "", lambda: self.inner.stage(data, durable=durable))

    def create(self, key: str, draft: Draft) -> Outcome:
        return self._around("create", key, lambda: self.inner.create(key, draft))

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        return self._around("replace", key, lambda: self.inner.replace(key, draft, version))

    def discard(self, draft: Draft) -> bool:
        return self._around("discard", "", lambda: self.inner.discard(draft))

    def read(self, key: str) -> Object | None:
        return self._around("read", key, lambda: self.inner.read(key))

    def stream(self, key: str, start: int = 0) -> Iterator[bytes] | None:
        return self._around("stream", key, lambda: self.inner.stream(key, start))

    def at_once(self, call: Callable[[str], T], keys: Sequence[str]) -> builtins.list[T]:
        return self.inner.at_once(call, keys)  # of the wrapper's own verbs: each of them is seen

    def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
        return self._around("list", prefix, lambda: self.inner.list(prefix, after, details=details))

    def folders(self, prefix: str) -> builtins.list[str]:
        return self._around("folders", prefix, lambda: self.inner.folders(prefix))

    def put(self, key: str, draft: Draft) -> Outcome:
        return self._around("put", key, lambda: self.inner.put(key, draft))

    def names(self, prefix: str) -> builtins.list[str]:
        return self._around("names", prefix, lambda: self.inner.names(prefix))

    def stamp(self, prefix: str) -> str | None:
        return self._around("stamp", prefix, lambda: self.inner.stamp(prefix))

    def version(self, key: str) -> str | None:
        return self._around("version", key, lambda: self.inner.version(key))

    def touch(self, key: str) -> bool:
        return self._around("touch", key, lambda: self.inner.touch(key))

    def delete(self, key: str) -> bool:
        return self._around("delete", key, lambda: self.inner.delete(key))

    def now(self) -> float:
        return self._around("now", "", self.inner.now)
