"""The folder backend among real processes: races, kills, forks; and what it asks of the system on its hot path."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from dibs.backend import FolderBackend, Outcome
from dibs.testing._backend_races import race_processes

WON = Outcome.WON


@contextmanager
def running(code: str, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A fresh Python that runs the code, and its output; killed at the end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout
        finally:
            process.kill()


@pytest.mark.parametrize("claim", ["link", "mkdir"])
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_eight_processes_and_a_hundred_names(tmp_path: Path, claim: str, start: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python >= 3.12 warns of forks among threads
        race_processes(FolderBackend(tmp_path, claim=claim), start, racers=8, names=100)  # type: ignore[arg-type]
    assert list(FolderBackend(tmp_path, claim=claim).list("tmp/")) == []


def test_a_kill_between_stage_and_create_leaves_a_temporary_and_nothing_else(tmp_path: Path) -> None:
    code = """if True:
        import signal, sys
        from dibs.backend import FolderBackend
        draft = FolderBackend(sys.argv[1]).stage(b"half")
        print(draft.temp, flush=True)
        signal.pause()"""
    backend = FolderBackend(tmp_path)
    with running(code, tmp_path) as (process, output):
        temp = output.readline().strip()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert list(backend.list("")) == []
    assert [entry.key for entry in backend.list("tmp/")] == [temp]
    assert f"-{process.pid}-" in temp
    assert backend.create("a/x", backend.stage(b"whole")) is WON


@pytest.mark.parametrize("claim", ["link", "mkdir"])
def test_whatever_instruction_a_kill_hits_no_record_is_half_written(tmp_path: Path, claim: str) -> None:
    code = """if True:
        import itertools, json, sys
        from dibs.backend import FolderBackend
        backend = FolderBackend(sys.argv[1], claim=sys.argv[2])
        for n in itertools.count():
            draft = backend.stage(json.dumps({"n": n, "state": "running", "pad": "x" * 4000}).encode())
            backend.create(f"a/{n:08d}.json", draft)
            backend.discard(draft)
            backend.replace(f"a/{n:08d}.json", backend.stage(json.dumps({"n": n, "state": "done", "pad": "y" * 9000}).encode()), None)
            print(n, flush=True)"""
    for run in range(3):
        backend = FolderBackend(tmp_path / str(run), claim=claim)
        backend.prepare()
        with running(code, backend.root, claim) as (process, output):
            closed = [int(output.readline()) for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            closed += [int(line) for line in output]
        states = {}
        for entry in backend.list("a/"):
            held = backend.read(entry.key)
            assert held is not None
            if held.data or claim == "link":  # with mkdir a claim may have lost its winner before the record came
                record = json.loads(held.data)
                states[record["n"]] = record["state"]
        assert {n for n, state in states.items() if state == "done"} >= set(closed)
        assert len(list(backend.list("tmp/"))) <= 1


AUDIT = """if True:
    import sys
    from dibs.backend import FolderBackend
    backend = FolderBackend(sys.argv[1], claim=sys.argv[2])
    def claim(key):
        draft = backend.stage(b"1")
        backend.create(key, draft)
        backend.discard(draft)
    def rewrite(key):
        backend.replace(key, backend.stage(b"2"), None)
    claim("a/0"), backend.now()
    seen, watched = [], ("open", "os.")
    sys.addaudithook(lambda event, arguments: seen.append(event) if event.startswith(watched) else None)
    for name, call in {
        "claim": lambda: claim("a/1"), "lose": lambda: claim("a/1"), "rewrite": lambda: rewrite("a/1"),
        "read": lambda: backend.read("a/1"), "touch": lambda: backend.touch("a/1"), "now": backend.now,
        "list": lambda: list(backend.list("a/")),
    }.items():
        seen.clear()
        call()
        print(name, *seen)
"""


@pytest.mark.parametrize(
    ("claim", "expected"),
    [("link", "open os.link os.remove"), ("mkdir", "open os.mkdir os.rename")],
)
def test_the_hot_path_asks_nothing_needless(tmp_path: Path, claim: str, expected: str) -> None:
    run = subprocess.run([sys.executable, "-c", AUDIT, tmp_path, claim], check=True, capture_output=True, text=True)
    assert dict(line.split(" ", 1) for line in run.stdout.splitlines()) == {
        "claim": expected,
        "lose": "open os.link os.remove" if claim == "link" else "open os.mkdir os.remove",
        "rewrite": "open os.rename",
        "read": "open",
        "touch": "os.utime",
        "now": "os.utime",
        "list": "os.scandir",
    }


def test_only_durable_writes_are_synced_and_new_folders_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.path.relpath(Path(f"/proc/self/fd/{fd}").readlink(), tmp_path).partition("/tmp/")[0])
        real(fd)

    if not Path("/proc/self/fd").exists():
        pytest.skip("which file is synced is looked up in /proc")
    backend = FolderBackend(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    assert backend.create("a/b/x", backend.stage(b"1")) is WON
    assert synced == []
    draft = backend.stage(b"2", durable=True)
    assert synced == [draft.temp]
    assert backend.replace("a/b/x", draft, None) is WON
    assert synced == [draft.temp, "a/b", "a", "."], "folders that others made may not be on the disk yet either"
    del synced[:]
    draft = backend.stage(b"3", durable=True)
    assert backend.create("a/c/y", draft) is WON
    assert synced == [draft.temp, "a/c", "a"]
    del synced[:]
    draft = backend.stage(b"4", durable=True)
    assert backend.replace("a/c/y", draft, None) is WON
    assert synced == [draft.temp, "a/c"]
    assert backend.delete("a/c/y")
    (tmp_path / "a" / "c").rmdir()
    del synced[:]
    draft = backend.stage(b"5", durable=True)
    assert backend.create("a/c/y", draft) is WON
    assert synced == [draft.temp, "a/c", "a"], "a folder that was made anew is synced anew"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_childs_temporaries_carry_its_own_pid(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path)
    backend.stage(b"")
    backend.now()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            backend.stage(b"")
            backend.now()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    by_pid = sorted(entry.key.split("-")[-2] for entry in backend.list("tmp/"))
    assert by_pid == sorted([str(os.getpid())] * 2 + [str(child)] * 2)


def test_the_package_starts_light() -> None:
    code = "import sys, dibs.backend; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(run.stdout.split())
    assert loaded & {"socket", "multiprocessing", "random", "subprocess", "tempfile", "dibs.backend._faulty"} == set()
    assert "dibs.backend._folder" in loaded
