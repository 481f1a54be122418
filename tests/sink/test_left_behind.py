"""A main process that is killed leaves its folder; the next one removes it if the first is certainly dead, and no other."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sink.programs import ROOT

from dibs import Sink
from dibs.sink import _owner
from dibs.sink._owner import OWNER, is_left_behind

MAIN = """
import os, sys
from dibs import Sink

sink = Sink.create()
sink.record(1.0, artifact=b"x" * 100_000)
heir = os.fork() if sys.argv[1:] else 1
if heir == 0:  # as who becomes a daemon, or a worker that outlives its main process
    os.close(1)
    if sys.argv[1] == "closes":  # all that it has, as daemons do
        os.closerange(3, 1000)
    sys.stdin.read()  # until the test ends it
    os._exit(0)
print(sink.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIBS_SINK_DIR", str(tmp_path))
    return tmp_path


class Main:
    """A main process that has created a sink and recorded a trial."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def main() -> Iterator[Main]:
    made = Main()
    yield made
    made.end()


def test_the_folder_of_a_killed_main_process_goes_with_the_next_sink(main: Main, place: Path) -> None:
    with Sink.create() as ours:
        assert main.folder.is_dir()  # it lives
        assert not is_left_behind(ours.folder)
    main.kill()
    with Sink.create() as ours:
        assert list(place.iterdir()) == [Path(ours.folder)]
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("how", ["forks", "closes"])
def test_one_that_a_fork_still_uses_stays(place: Path, how: str) -> None:
    main = Main(how)
    main.kill()
    with Sink.create():
        assert main.folder.is_dir()
        best = Sink(main.folder).best()
        assert best is not None
        assert best.score == 1.0
    assert main.process.stdin is not None
    main.process.stdin.close()  # and so the fork ends
    lock = os.open(main.folder / OWNER, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)  # until it has
    os.close(lock)
    with Sink.create() as ours:
        assert list(place.iterdir()) == [Path(ours.folder)]
    main.process.stdin = open(os.devnull, "w")  # noqa: PTH123, SIM115
    main.end()


def test_a_zombie_is_dead(main: Main) -> None:
    main.process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, main.process.pid, os.WEXITED | os.WNOWAIT)
    assert is_left_behind(str(main.folder))


def test_what_a_user_put_there_stays_with_the_folder(main: Main, caplog: pytest.LogCaptureFixture) -> None:
    (main.folder / "thesis.tex").write_text("mine")
    main.kill()
    with Sink.create(), Sink.create():
        assert [path.name for path in main.folder.iterdir()] == ["thesis.tex"]
    assert caplog.records == []


CHANGES: list[dict[str, Any]] = [
    {"boot": "another machine, or before it was started anew"},
    {"namespaces": "another container"},
    {"boot": ""},
    {"pid": 0},
    {"pid": -1},
    {"pid": True},
    {"pid": 1 << 40},
    {"pid": "1"},
    {"start": ""},
    {"start": 5},
    {"pid": os.getpid(), "start": _owner._me(os.getpid())["start"]},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " ".join(change))
def test_whoever_may_live_is_left_alone(main: Main, change: dict[str, Any]) -> None:
    main.kill()
    owner = json.loads((main.folder / OWNER).read_bytes())
    (main.folder / OWNER).write_text(json.dumps({**owner, **change}))
    with Sink.create():
        assert len(list(main.folder.iterdir())) == 4
    (main.folder / OWNER).write_text(json.dumps({**owner, "pid": os.getpid()}))  # a number that was given out again
    assert is_left_behind(str(main.folder))


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b"[" * 4000, b"\xff", b"9" * 9000, None], ids=repr)
def test_what_is_no_evidence_is_none(main: Main, content: bytes | None) -> None:
    main.kill()
    (main.folder / OWNER).unlink()
    if content is None:
        os.mkfifo(main.folder / OWNER)  # nobody waits for it
    else:
        (main.folder / OWNER).write_bytes(content)
    with Sink.create():
        assert len(list(main.folder.iterdir())) == 4


def test_a_link_is_not_followed(main: Main, place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    main.kill()
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "kept"
    main.folder.rename(elsewhere)
    (place / "dibs-sink-link").symlink_to(elsewhere)
    with Sink.create():
        assert len(list(elsewhere.iterdir())) == 4
    (place / "dibs-sink-link").unlink()
    elsewhere.rename(main.folder)
    (main.folder / OWNER).rename(place / "owner")
    (main.folder / OWNER).symlink_to(place / "owner")
    with Sink.create():
        assert len(list(main.folder.iterdir())) == 4


def test_another_users_folder_is_left_alone(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    main.kill()
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    with Sink.create():
        assert main.folder.is_dir()


def test_descriptors_that_somebody_closed_and_used_again_are_not_closed(tmp_path: Path) -> None:
    sink = Sink.create()
    fd = _owner._locks[sink.folder][0]
    os.close(fd)  # as a daemon closes all it has
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_RDWR)
    if other != fd:
        os.dup2(other, fd)
    sink.cleanup()
    assert os.write(fd, b"still open") == 10
    for each in {fd, other}:
        os.close(each)


def test_nothing_of_a_folder_is_open_when_it_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS keeps what is open under another name in the very folder, which then cannot be removed."""
    real, seen = os.rmdir, []

    def rmdir(path: Any, **options: Any) -> None:
        mapped = Path("/proc/self/maps").read_text()
        is_open = [str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
        seen.append(
            [line for line in (*mapped.splitlines(), *is_open) if str(path) in line and line.endswith("(deleted)")]
        )
        real(path, **options)

    sink = Sink.create()
    assert str(sink.folder) in Path("/proc/self/maps").read_text()
    monkeypatch.setattr(os, "rmdir", rmdir)
    sink.cleanup()
    assert seen == [[]]


def test_numbers_of_another_proc_are_no_evidence(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that has pids of its own and sees the /proc of its host."""
    main.kill()
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path, *args: "4711" if path == "/proc/self" else real(path, *args))
    assert not is_left_behind(str(main.folder))
    monkeypatch.undo()
    assert is_left_behind(str(main.folder))


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    with Sink.create():
        pass
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        with Sink.create() as sink:
            sink.record(1.0, artifact="x")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert "dibs-sink-" not in Path("/proc/self/maps").read_text()
