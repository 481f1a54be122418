"""What the torture reads of a bucket: the bytes that lie there, fetched when they changed, gone when they are gone."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import obstore
import pytest
from tests.buckets.servers import Server

from dibs.backend import BucketBackend
from dibs.errors import UsageError
from dibs.testing import torture
from dibs.testing._torture_bucket import Bucket
from dibs.testing._torture_objective import Hurried

pytestmark = pytest.mark.usefixtures("credentials")


@pytest.fixture
def url(server: Server, place: str) -> str:
    return f"{server.url(place)}?endpoint={server.endpoint}"


@pytest.fixture
def other(server: Server, place: str) -> Any:
    """Whoever else writes there."""
    return BucketBackend(server.url(place), server.options())._client()


def test_only_what_changed_is_fetched(url: str, other: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Bucket(tmp_path, url)
    for key in ("study/s/a.json", "study/s/b.json", "blobs/00/c"):
        obstore.put(other, key, b"1")
    fetched: list[str] = []
    get = obstore.get
    monkeypatch.setattr(obstore, "get", lambda client, key: fetched.append(key) or get(client, key))
    disk.raw("s")
    obstore.put(other, "study/s/a.json", b"22")
    obstore.delete(other, "study/s/b.json")
    disk.raw("s")
    assert sorted(fetched[:3]) == ["blobs/00/c", "study/s/a.json", "study/s/b.json"]
    assert fetched[3:] == ["study/s/a.json"]
    there = {path.relative_to(disk.store).as_posix() for path in disk.store.rglob("*") if path.is_file()}
    assert there == {"study/s/a.json", "blobs/00/c"}
    path = disk.store / "study/s/a.json"
    assert path.read_bytes() == b"22"
    assert path.stat().st_mtime == obstore.head(other, "study/s/a.json")["last_modified"].timestamp()


def test_hands(url: str, other: Any, tmp_path: Path) -> None:
    disk = Bucket(tmp_path, url)
    obstore.put(other, "study/s/trial/a.json", b"0123456789")
    assert disk.keys("study/s/trial/") == ["study/s/trial/a.json"]
    disk.truncate("study/s/trial/a.json", 0.5)
    assert bytes(obstore.get(other, "study/s/trial/a.json").bytes()) == b"01234"
    disk.remove("study/s/trial/a.json")
    disk.remove("study/s/trial/a.json")
    disk.truncate("study/s/trial/a.json", 0.5)
    assert disk.listing() == {}, "what is gone stays gone"


def test_a_prefix_with_something_in_it_is_left_alone(
    url: str, other: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    obstore.put(other, "thesis.tex", b"")
    assert torture.main(["--bucket", url, "--store", str(tmp_path / "new")]) == 2
    assert "not empty" in capsys.readouterr().err


def test_what_cannot_be_opened(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="cannot be listed"):
        Bucket(tmp_path, url.replace("studies", "nobucket"))
    with pytest.raises(UsageError, match="cannot be opened"):
        Bucket(tmp_path, "nothing://bucket/p")


def test_hurry_reaches_whoever_the_objective_is_sent_to() -> None:
    """A bucket's workers beat each second, and the processes that they start."""
    code = """
import pickle, sys
from dibs.study import _quiet
assert _quiet.beat_s_of(4.0, folder=False) == 30.0
pickle.loads(sys.stdin.buffer.read())
assert _quiet.beat_s_of(4.0, folder=False) == 1.0
"""
    sent = pickle.dumps(Hurried("j", "w1", "s", 0.1, 0.2))
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("more", [["--only", "fill"], ["--tmpfs"], ["--clocks", "stamps"], ["--claim", "mkdir"]])
def test_what_is_about_folders(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        torture.main(["--bucket", "s3://bucket/p", *more])
    assert ended.value.code == 2
    assert "there are kill, stop, term" in (said := capsys.readouterr().err) or "not with --bucket" in said
