"""Machines that race each other in a bucket see what a probe by one cannot."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.parts import at_once

from dibs import StoreError, UsageError
from dibs.backend import Backend, BucketBackend, MemoryBackend
from dibs.doctor import BucketJoined, join_bucket
from dibs.store import Here, _opening_bucket


class ChecksThenActs(MemoryBackend):
    """A gateway that looks first and writes then, with time for another machine in between; alone it is honest."""

    def __init__(self) -> None:
        super().__init__(conditional_replace=True)
        self.both = threading.Barrier(2)

    def create(self, key, draft):  # type: ignore[no-untyped-def]
        free = self.read(key) is None
        if "/race/" in key:
            self.both.wait()
        return self.put(key, draft) if free else super().create(key, draft)


def meet(*backends: Backend, names: int = 60, machines: int = 2, patience_s: float = 60.0) -> list[BucketJoined]:
    def go(at: int) -> BucketJoined:
        return join_bucket(
            backends[at], "here", machines, Here(), me=f"m{at}", names=names, patience_s=patience_s
        )  # fmt: skip

    return at_once([lambda at=at: go(at) for at in range(len(backends))])


def test_an_honest_server(server: Server, place: str) -> None:
    backends = [BucketBackend(server.url(place), server.options()) for _ in range(2)]
    first, second = meet(*backends)
    assert first.races == second.races
    assert [race.several for race in first.races] == [0, 0]
    assert all(race.one > 50 for race in first.races), "whose answer came too late on a busy machine counts as nobody"
    assert sorted(first.guests) == ["m0", "m1"]
    assert list(backends[0].list("")) == []


def test_check_then_act_passes_the_probe_and_is_caught_by_the_race() -> None:
    from tests.parts import FakeMachine

    liar = ChecksThenActs()
    _opening_bucket._probe(liar, FakeMachine(), "s3://x")
    joined, _ = meet(liar, liar)
    claim, rewrite = joined.races
    assert (claim.word, claim.several) == ("lies", 60)
    assert rewrite.several == 0
    assert not joined.fine
    assert "several machines win one name" in joined.verdict


def test_who_is_missing_is_told() -> None:
    backend = MemoryBackend(conditional_replace=True)
    with pytest.raises(StoreError, match="not all 2 machines"):
        join_bucket(backend, "here", 2, Here(), me="a", patience_s=0.2)
    assert list(backend.list("")) == []
    for ident in ("a", "b"):
        backend.put(f"probe/here/here/{ident}.json", backend.stage(b"{}"))
    with pytest.raises(UsageError, match="3 machines came"):
        join_bucket(backend, "here", 2, Here(), me="a", patience_s=5)


def test_the_command(server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)
    url = _opening_bucket.bucket_url(server.endpoint, server.bucket, place)
    words = [sys.executable, "-m", "dibs", "doctor", url, "--json"]
    meeting = [*words, "--join", "x", "--names", "60"]
    both = [subprocess.Popen(meeting, stdout=subprocess.PIPE, text=True, cwd=tmp_path) for _ in range(2)]
    told = [json.loads(each.communicate(timeout=60)[0]) for each in both]
    assert told[0]["races"] == told[1]["races"]
    assert [race["several"] for race in told[0]["races"]] == [0, 0]
    alone = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True)
    assert json.loads(alone.stdout)["fine"]
