"""One lap: who waits, when it ends, what it counts; and the ways to claim, bare and as a store claims."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once

from dibs.backend import FolderBackend
from dibs.doctor._models import Lap
from dibs.doctor._race import alone, lap
from dibs.doctor._ways import WAYS, way
from dibs.errors import StoreError
from dibs.store import Here, Settler


class Told:
    """A way that answers as it was told, each answer after ``took_s``."""

    def __init__(self, machine: FakeMachine, answers: list[bool | StoreError | None], took_s: float = 0.01) -> None:
        self.machine, self.answers, self.took_s, self.robbed = machine, answers, took_s, 0
        self.claimed: list[str] = []

    def claim(self, name: str) -> bool | None:
        self.claimed.append(name)
        self.machine.clock.now += self.took_s
        answer = self.answers[len(self.claimed) - 1]
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def owner(self, name: str) -> int | None:
        return None


class Steady(FakeMachine):
    """Draws the largest number each time."""

    def entropy(self, size: int) -> bytes:
        return b"\xff" * size


def ran(*answers: Any, pace_s: float = 0.1, limit_s: float = 100.0) -> tuple[Lap, Told, list[float]]:
    machine = Steady()
    told = Told(machine, list(answers))
    return lap(told, range(len(answers)), pace_s, limit_s, machine), told, machine.clock.slept


def test_winners_wait_and_losers_do_not() -> None:
    seen, told, slept = ran(True, False, None, False, True)
    assert told.claimed == ["0000", "0001", "0002", "0003", "0004"]
    assert (seen.tried, seen.won, seen.unsure, seen.broken) == (5, [0, 4], [2], "")
    assert slept == [0.2, 0.2]
    assert seen.attempt_s == pytest.approx(0.01)


def test_who_wins_again_and_again_waits_longer_up_to_a_point() -> None:
    _, _, slept = ran(True, True, True, True, False, True)
    assert slept == pytest.approx([0.2, 0.4, 0.6, 0.6, 0.2])


def test_a_lap_ends_when_its_time_is_over() -> None:
    seen, told, _ = ran(*[False] * 10, limit_s=0.035)
    assert (seen.tried, len(told.claimed)) == (4, 4)


def test_what_does_not_work_ends_the_lap_and_says_why() -> None:
    seen, _, _ = ran(False, StoreError("no links"), True)
    assert (seen.tried, seen.won, seen.broken) == (1, [], "no links")


def test_a_pace_is_never_nothing_nor_minutes() -> None:
    assert (Lap().pace_s(), Lap(attempt_s=0.01).pace_s(), Lap(attempt_s=60.0).pace_s()) == (0.002, 0.01, 0.25)


@pytest.mark.parametrize("bare", [False, True], ids=["as a store", "bare"])
@pytest.mark.parametrize("name", WAYS)
def test_each_way_gives_a_name_to_one_and_says_to_whom(tmp_path: Path, name: str, bare: bool) -> None:
    ways = [way(name, tmp_path / "w", Here(), seat, bare=bare) for seat in (0, 1)]
    assert ways[1].owner("0000") is None
    assert [each.claim("0000") for each in ways] == [True, False]
    assert [each.claim("0001") for each in reversed(ways)] == [True, False]
    marked = not (bare and name == "mkdir")
    assert [each.owner("0000") for each in ways] == ([0, 0] if marked else [None, None])
    assert ways[0].owner("0001") == (1 if marked else None)
    assert [each.robbed for each in ways] == [0, 0]


@pytest.mark.parametrize("name", WAYS)
def test_threads_have_one_winner_per_name(tmp_path: Path, name: str) -> None:
    ways = [way(name, tmp_path / "w", Here(), seat, bare=True) for seat in range(4)]
    won = at_once([lambda each=each: [n for n in range(50) if each.claim(f"{n:04d}")] for each in ways])
    assert sorted(n for theirs in won for n in theirs) == list(range(50))


def test_a_link_that_was_refused_may_have_been_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def doubtful(source: Any, target: Any, **more: Any) -> None:
        link(source, target, **more)
        raise PermissionError(errno.EPERM, "an answer to somebody else")

    mine, other = (way("link", tmp_path / "w", Here(), seat, bare=True) for seat in (0, 1))
    monkeypatch.setattr(os, "link", doubtful)
    assert mine.claim("0000") is True
    monkeypatch.setattr(os, "link", link)
    assert other.claim("0000") is False
    assert mine.claim("0000") is True, "asked twice, as an NFS client may"


@pytest.mark.parametrize("name", WAYS)
def test_a_way_that_is_not_there_says_so(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = way(name, tmp_path / "w", Here(), 0, bare=True)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    for call in ("link", "open", "mkdir"):
        monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StoreError, match="does not work here: Operation not supported"):
        runner.claim("0000")


def test_a_winner_that_is_robbed_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = way("link", tmp_path / "w", Here(), 0)
    claim = Settler.claim

    def robbed(self: Settler, key: str, body: dict[str, Any], **more: Any) -> Any:
        held = claim(self, key, body, **more)
        other = FolderBackend(tmp_path / "w")
        other.delete(key)
        assert claim(Settler(other, Here()), key, body) is not None
        return held

    monkeypatch.setattr(Settler, "claim", robbed)
    assert runner.claim("0000") is True
    assert runner.robbed == 1


def test_racing_alone_sees_a_second_claim_that_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settler, "claim", lambda self, key, body, **more: None)
    assert alone("mkdir", tmp_path / "w", Here())[0] == "a second claim of one name is not refused"
