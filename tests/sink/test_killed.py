"""SIGKILL before every call by which a process changes the spool, a full disk, and a file size limit: real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dibs import Sink

ROOT = Path(__file__).parents[2]

KILLED = """
import json, os, signal, sys
from dibs import Sink
from dibs.sink import _spool
from tests.sink.disk import Disk

sink, disk = Sink(sys.argv[1]), Disk()
_spool.os = disk
told_r, told_w = os.pipe()

def victim(k):
    disk.begin()
    assert sink.record(1.0 + 10 * k, artifact=["old", k], params={"k": k, "n": 1})
    os.write(told_w, b"1")
    disk.begin()
    disk.before = lambda name, count: count == k and os.kill(os.getpid(), signal.SIGKILL)
    assert sink.record(2.0 + 10 * k, artifact=["new", k], params={"k": k, "n": 2})
    os.write(told_w, b"2")

for k in range(1, 100):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            victim(k)
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    best = sink.best({"k": k})
    blobs = sum(name.startswith(f"blob-{pid}-") for name in os.listdir(sink.folder))
    print(json.dumps([k, status, len(os.read(told_r, 2)), blobs, best._asdict()]))
    if status == 0:
        break
"""

LIMITED = """
import logging, resource, sys
from dibs import Sink
logging.basicConfig()
sink = Sink(sys.argv[1])
assert sink.record(1.0, artifact=b"x" * 1000, params=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
assert sink.record(3.0, artifact=b"x" * 100_000, params=3)  # the score, without the artefact
assert sink.record(2.0, artifact=b"x" * 2000, params=2)  # which is tried again by the next that has a better one
"""


def run(program: str, folder: Path) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), folder],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_worker_killed_at_every_call_leaves_a_complete_pair(tmp_path: Path) -> None:
    runs = run(KILLED, tmp_path)
    for k, status, told, _blobs, best in runs:
        assert told == (2 if status == 0 else 1)
        assert best["params"]["k"] == k
        assert best["score"] == best["artifact_score"] == best["params"]["n"] + 10 * k
        assert best["artifact"] == [{1: "old", 2: "new"}[best["params"]["n"]], k]
        assert best["artifact_is_winner"]
        assert best["skipped"] == 0
    assert [status for _, status, *_ in runs] == [-9] * (len(runs) - 1) + [0]
    # it did stop between the blob and the metadata (two blobs, the old result), and between that and the old blob's end
    seen = {(blobs, best["params"]["n"]) for *_, blobs, best in runs}
    assert seen == {(1, 1), (2, 1), (2, 2), (1, 2)}


def rolled_back(sink: Sink, fill: Callable[[], None], relax: Callable[[], None]) -> None:
    """A disk without room: the marks stay, and when there is room again the next trial is taken."""
    assert sink.record(1.0, artifact=b"x" * 1000, params=1)
    fill()
    assert not sink.record(3.0, artifact=b"x" * 60_000, params=3)
    best = sink.best()
    assert best is not None
    assert (best.score, best.artifact_params, best.artifact, best.skipped) == (1.0, 1, b"x" * 1000, 0)
    relax()
    assert sink.record(2.0, artifact=b"x" * 2000, params=2)
    best = sink.best()
    assert best is not None
    assert (best.score, best.artifact_params, best.artifact_is_winner) == (2.0, 2, True)
    names = sorted(path.name.partition("-")[0] for path in Path(sink.folder).iterdir())
    assert names == [".dibs", "blob", "kept", "seen"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path]).returncode:
        pytest.skip("a small file system needs root")
    try:
        monkeypatch.setenv("DIBS_SINK_DIR", str(tmp_path))
        filler = tmp_path / "filler"

        def fill() -> None:
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4096)):
                    pass

        with Sink.create() as sink:
            rolled_back(sink, fill, filler.unlink)
        assert "No space left on device" in caplog.text
        fill()
        with Sink.create() as sink:  # a full disk still has room for a folder, and is of no use
            assert tmp_path not in Path(sink.folder).parents
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_an_artefact_too_large_for_the_disk(tmp_path: Path) -> None:
    run(LIMITED, tmp_path)
    best = Sink(tmp_path).best()
    assert best is not None
    assert (best.score, best.params, best.artifact_score, best.artifact_params) == (3.0, 3, 2.0, 2)
    assert (best.artifact_error or "").startswith("could not be written: [Errno 27] File too large")
    assert len(list(tmp_path.glob("blob-*"))) == 1


def test_a_folder_in_which_nothing_can_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "gone"
    sink = Sink(place)
    assert not sink.record(1.0, artifact="x")
    assert len(caplog.records) == 1
    assert not sink.record(2.0)
    assert len(caplog.records) == 1  # once per process and sink
    place.mkdir()
    assert sink.record(0.5, artifact="y")  # nothing was taken as recorded
    best = sink.best()
    assert best is not None
    assert (best.score, best.artifact) == (0.5, "y")
    place.chmod(0o500)
    if os.geteuid() != 0:  # root writes anywhere
        assert not sink.record(9.0)
    place.chmod(0o700)
