"""A bucket keeps the storage contract, like every other backend."""

from __future__ import annotations

import gc
import os
import warnings

import pytest
from tests.buckets.servers import Server

from dibs.backend import Backend, BucketBackend
from dibs.errors import StoreError
from dibs.testing import BackendSuite


class TestBucket(BackendSuite):
    clock_slack_s = 1.5  # whole seconds

    test_touch_moves_the_stamp_and_nothing_else = None  # a bucket cannot touch

    @pytest.fixture
    def backend(self, server: Server, place: str) -> Backend:
        return BucketBackend(server.url(place), server.options())

    def test_it_works_after_a_fork(self, backend: Backend) -> None:
        """The client's threads do not survive a fork: the child is told, instead of waiting for ever."""
        backend.now()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                backend.read("a/b.json")
            except StoreError as told:
                os._exit(0 if "spawn" in str(told) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_streamed_draft_that_nobody_discards_goes_in_silence() -> None:
    """Its temporary file is closed, also where both are part of a cycle that is collected in any order."""
    unraisable: list[object] = []
    draft = BucketBackend("s3://bucket/prefix", {}).stage(iter([b"never", b"sent"]))
    cycle: list[object] = [draft]
    cycle.append(cycle)
    del draft, cycle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", unraisable.append)
        gc.collect()
    assert unraisable == []
