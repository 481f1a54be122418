"""Every wrapper passes the suite its inner backend passes, and then does what it is for."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import pytest

from dibs.backend import (
    Backend,
    CountingBackend,
    CrashingBackend,
    FaultyBackend,
    FolderBackend,
    Killed,
    MemoryBackend,
    Outcome,
    SlowBackend,
    WrapperBackend,
)
from dibs.errors import UsageError
from dibs.testing import BackendSuite

WON, LOST = Outcome.WON, Outcome.LOST


def no_sleep(seconds: float) -> None:
    """At module level, so that it pickles."""


class TestPlain(BackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return WrapperBackend(FolderBackend(tmp_path))


class TestCounting(BackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return CountingBackend(FolderBackend(tmp_path, claim="mkdir"))


class TestSlow(BackendSuite):
    pickles = False  # the memory below does not

    @pytest.fixture
    def backend(self) -> Backend:
        return SlowBackend(MemoryBackend(conditional_replace=True), 0.25, no_sleep)


class TestFaultlessFaulty(BackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return FaultyBackend(FolderBackend(tmp_path), random.Random(1))


class TestDeathlessCrashing(BackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return CrashingBackend(FolderBackend(tmp_path))


def claim(backend: Backend, key: str, data: bytes) -> Outcome:
    draft = backend.stage(data)
    outcome = backend.create(key, draft)
    backend.discard(draft)
    return outcome


def test_a_wrapper_shows_its_inner_traits_and_root(tmp_path: Path) -> None:
    inner = FolderBackend(tmp_path / "new")
    wrapper = CountingBackend(WrapperBackend(inner))
    assert (wrapper.traits, wrapper.root) == (inner.traits, inner.root)
    wrapper.prepare()
    assert (tmp_path / "new").is_dir()


def test_counting_counts_verbs_and_bytes() -> None:
    backend = CountingBackend(MemoryBackend())
    claim(backend, "a/x", b"12345")
    backend.read("a/x")
    backend.read("a/none")
    assert list(backend.list("a/"))
    assert b"".join(backend.stream("a/x") or []) == b"12345"
    assert backend.counts == {"stage": 1, "create": 1, "discard": 1, "read": 2, "list": 1, "stream": 1}
    assert backend.bytes == {"stage": 5, "read": 5, "stream": 5}
    backend.reset()
    assert (backend.counts, backend.bytes) == ({}, {})


def test_slow_waits_before_every_verb() -> None:
    waits: list[float] = []
    backend = SlowBackend(MemoryBackend(), 0.25, waits.append)
    claim(backend, "a/x", b"1")
    backend.now()
    assert waits == [0.25] * 4


@pytest.mark.parametrize(
    ("crash_at", "when", "there", "temps"),
    [
        (1, "before", False, 0),
        (1, "after", False, 1),
        (2, "before", False, 1),
        (2, "after", True, 1),
        (3, "before", True, 1),
        (3, "after", True, 0),
    ],
)
def test_a_crash_stops_at_its_verb_and_cleans_nothing_up(
    tmp_path: Path, crash_at: int, when: Literal["before", "after"], there: bool, temps: int
) -> None:
    inner = FolderBackend(tmp_path)
    backend = CrashingBackend(inner, crash_at, when)
    with pytest.raises(Killed):
        claim(backend, "a/x", b"1")
    assert (inner.read("a/x") is not None) is there
    assert len(list(inner.list("tmp/"))) == temps
    assert backend.calls == crash_at
    with pytest.raises(Killed):
        backend.delete("a/x")
    assert (inner.read("a/x") is not None) is there
    assert backend.calls == crash_at


def test_killed_is_no_exception_and_never_is_a_choice() -> None:
    assert not issubclass(Killed, Exception)
    backend = CrashingBackend(MemoryBackend())
    claim(backend, "a/x", b"1")
    assert backend.calls == 3
    with pytest.raises(UsageError, match="sometime"):
        CrashingBackend(MemoryBackend(), 1, "sometime")  # type: ignore[arg-type]
