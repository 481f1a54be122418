"""The memory backend plays a folder and a bucket: each by the whole suite and the state machine."""

from __future__ import annotations

import pytest
from hypothesis import settings

from dibs.backend import MemoryBackend, Outcome
from dibs.testing import BackendMachine, BackendSuite


class TestMemoryFolder(BackendSuite):
    pickles = False

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


class TestMemoryBucket(BackendSuite):
    pickles = False

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend(conditional_replace=True)


class FolderMachine(BackendMachine):
    def make_backend(self) -> MemoryBackend:
        return MemoryBackend()


class BucketMachine(BackendMachine):
    def make_backend(self) -> MemoryBackend:
        return MemoryBackend(conditional_replace=True)


TestFolderMachine = FolderMachine.TestCase
TestBucketMachine = BucketMachine.TestCase
TestFolderMachine.settings = TestBucketMachine.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)


def test_the_clock_is_the_callers() -> None:
    times = iter([10.0, 20.0, 30.0])
    backend = MemoryBackend(clock=lambda: next(times))
    assert backend.create("a/x", backend.stage(b"")) is Outcome.WON
    assert backend.now() == 20.0
    assert backend.touch("a/x")
    assert [entry.modified for entry in backend.list("a/", details=True)] == [30.0]


def test_a_buckets_late_write_lands_after_discard() -> None:
    backend = MemoryBackend(conditional_replace=True)
    draft = backend.stage(b"late")
    assert backend.discard(draft)
    assert backend.create("a/x", draft) is Outcome.WON
