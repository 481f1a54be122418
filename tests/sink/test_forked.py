"""A signal handler forks in the middle of a commit, and both go on: the parent's files are the parent's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.sink.disk import Disk
from tests.sink.looks import files, found

from dibs import Sink
from dibs.sink import _spool

CALLS = 12  # of a commit: 3 for the blob, 4 for what names it, 1 for the old blob, 4 for the numbers


@pytest.mark.parametrize("first", ["child", "parent"])
@pytest.mark.parametrize("at", range(1, CALLS + 2))
def test_a_fork_after_each_call_of_a_commit(
    first: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``first``: the child is at its end before the parent goes on, or begins when the parent has a better one."""
    sink, disk, ours, waits = Sink(tmp_path), Disk(), os.getpid(), os.pipe()
    assert sink.record(1.0, artifact="old", params=1)
    monkeypatch.setattr(_spool, "os", disk)
    children = []

    def forks(name: str, count: int) -> None:
        if count != at:
            return
        children.append(os.fork())
        if first == "child" and children[0]:
            assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
        if first == "parent" and not children[0]:
            os.close(waits[1])
            os.read(waits[0], 1)

    disk.after = forks
    answer = False
    try:
        answer = sink.record(2.0, artifact="new", params=2)
    finally:
        if os.getpid() != ours:
            os._exit(0)
    disk.begin()
    assert answer
    assert (found(sink).score, found(sink).artifact, found(sink).skipped) == (2.0, "new", 0)
    assert sink.record(3.0, artifact="best", params=3)
    for end in reversed(waits):
        os.close(end)
    if first == "parent" and children:
        os.waitpid(children[0], 0)
    assert (found(sink).score, found(sink).artifact, found(sink).artifact_params) == (3.0, "best", 3)
    assert (found(sink).tied_count, found(sink).skipped) == (1, 0)
    assert files(sink) == ["blob", "kept", "seen"]
    assert bool(children) == (at <= CALLS)
