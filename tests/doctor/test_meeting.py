"""Machines meet in a folder: who waits for whom, what is told, and what becomes of those who never come."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once

from dibs.doctor import Guest
from dibs.doctor._meeting import Meeting
from dibs.errors import StoreError, UsageError
from dibs.store import Here


def silent(text: str) -> None:
    pass


def guest(me: str = "north", mount: str = "ext4") -> Guest:
    return Guest(me, "host", 1, mount, me)


def here(folder: Path, machines: int = 2, patience_s: float = 30.0, machine: Any = None, say: Any = silent) -> Meeting:
    return Meeting(folder, machine or Here(), machines, patience_s, say)


def test_all_take_their_seats_tell_and_leave_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "doctor" / "x"

    def take_part(me: str) -> tuple[int, list[str], list[Any]]:
        meeting = here(folder, machines=5)
        meeting.arrive(guest(me))
        told = [meeting.exchange(f"step-{k}", {"me": me, "k": k}) for k in range(3)]
        meeting.leave()
        return meeting.seat, [each.me for each in meeting.guests], [[(t["me"], t["k"]) for t in row] for row in told]

    answers = at_once([lambda me=me: take_part(me) for me in "abcde"])
    seats, names = sorted(seat for seat, _, _ in answers), answers[0][1]
    assert seats == [0, 1, 2, 3, 4]
    assert sorted(names) == list("abcde")
    for _, theirs, told in answers:
        assert theirs == names
        assert told == [[(me, k) for me in names] for k in range(3)]
    assert list(tmp_path.iterdir()) == []


def test_guests_of_one_name_are_told_apart(tmp_path: Path) -> None:
    def take_part() -> list[str]:
        meeting = here(tmp_path / "x")
        meeting.arrive(guest("same"))
        meeting.leave()
        return [each.me for each in meeting.guests]

    assert at_once([take_part, take_part]) == [["same#0", "same#1"]] * 2


def test_each_exchange_is_a_sample_of_the_clocks(tmp_path: Path) -> None:
    def take_part(ahead_s: float) -> dict[int, float]:
        machine = Here()
        clock, monotonic = machine.clock, machine.clock.monotonic
        clock.monotonic = lambda: monotonic() + ahead_s  # type: ignore[method-assign]
        meeting = here(tmp_path / "x", machine=machine)
        meeting.arrive(guest(str(ahead_s)))
        for k in range(3):
            meeting.exchange(str(k), {})
        meeting.leave()
        return meeting.samples

    slow, fast = at_once([lambda: take_part(0.0), lambda: take_part(1000.0)])
    (low,), (high,) = slow.values(), fast.values()
    assert -1000 <= low < -990
    assert 1000 <= high < 1010
    assert low + high >= 0


def test_the_quickest_word_is_the_best_sample(tmp_path: Path) -> None:
    machine = FakeMachine()
    meeting = here(tmp_path / "x", machine=machine)
    meeting.seat = 0
    for at in (990.0, 998.0, 995.0):
        meeting._sample(1, {"at": at})
    assert meeting.samples == {1: 2.0}
    meeting._sample(0, {"at": 0.0})
    assert meeting.samples == {1: 2.0}, "one's own words say nothing"


# whoever does not come; the clock is a fake, so nobody waits


def test_somebody_missing_is_told_with_both_reasons_and_nothing_stays(tmp_path: Path) -> None:
    said: list[str] = []
    meeting = here(tmp_path / "doctor" / "x", patience_s=300, machine=FakeMachine(), say=said.append)
    with pytest.raises(StoreError, match=r"1 of 2 machines came to 'x' in 300 s.*does not show one machine's names"):
        meeting.arrive(guest())
    meeting.abandon()
    assert said == ["waiting for 1 more at 'x': type the same command on another machine"]
    assert list(tmp_path.iterdir()) == []


def plant(folder: Path, ident: str, *, pid: int = 7, of: int = 2) -> Path:
    """A guest's hello."""
    folder.mkdir(parents=True, exist_ok=True)
    who = {"me": "south", "host": "fake", "boot": "b", "pid": pid, "token": f"t-{pid}"}
    path = folder / f"here-{ident}.json"
    path.write_text(json.dumps({"guest": vars(guest("south")), "who": who, "of": of, "at": 1.0}))
    return path


def test_who_stops_in_the_middle_is_named(tmp_path: Path) -> None:
    plant(tmp_path / "x", "ff")
    meeting = here(tmp_path / "x", machine=FakeMachine())
    with pytest.raises(StoreError, match=r"south \(host host, pid 1\) did not get to 'seats' in 30 s"):
        meeting.arrive(guest())


def test_half_a_hello_is_no_hello(tmp_path: Path) -> None:
    path = plant(tmp_path / "x", "ff")
    path.write_text(path.read_text()[:-10])
    with pytest.raises(StoreError, match="1 of 2 machines came"):
        here(tmp_path / "x", machine=FakeMachine()).arrive(guest())


def test_who_was_killed_here_is_not_waited_for(tmp_path: Path) -> None:
    plant(tmp_path / "x", "ff", pid=9)
    machine = FakeMachine()
    machine.dead.add(9)
    with pytest.raises(StoreError, match="1 of 2 machines came"):
        here(tmp_path / "x", machine=machine).arrive(guest())


def test_too_many_is_a_mistake(tmp_path: Path) -> None:
    plant(tmp_path / "x", "fe")
    plant(tmp_path / "x", "ff")
    meeting = here(tmp_path / "x", machine=FakeMachine())
    with pytest.raises(UsageError, match=r"3 machines came to 'x': say --machines N.*another name than --join x"):
        meeting.arrive(guest())
    meeting.abandon()
    assert len(list((tmp_path / "x").iterdir())) == 2, "the meeting of the others goes on"


def test_all_must_say_the_same_number(tmp_path: Path) -> None:
    plant(tmp_path / "x", "ff", of=3)
    with pytest.raises(UsageError, match="said --machines 3, and you 2"):
        here(tmp_path / "x", machine=FakeMachine()).arrive(guest())


def test_a_folder_that_cannot_be_written_to_says_so(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    meeting = here(tmp_path / "x", machine=FakeMachine())
    meeting.folder = tmp_path / "x" / "file"
    meeting.folder.write_text("")
    with pytest.raises(StoreError, match="cannot write to"):
        meeting.exchange("step", {})


@pytest.mark.parametrize("what", ["fifo", "link", "deep", "nobody"])
def test_what_no_machine_wrote_is_nobody_and_is_not_waited_for(tmp_path: Path, what: str) -> None:
    path = tmp_path / "here-0123456789abcdef.json"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/dev/zero")
    else:
        path.write_text("[" * 100_000 if what == "deep" else '{"guest": {}, "who": {}, "of": 2, "at": 0}')
    with pytest.raises(StoreError, match="1 of 2 machines came"):
        here(tmp_path, patience_s=0.0).arrive(guest())
