"""Slots and the cap over a study: who may take which, that no more run than said, and when the cap is soft."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once, body_at, plant
from tests.study.processes import SPACE, end, open_study, program, run, start

from dibs import Store, Study
from dibs.backend import MemoryBackend
from dibs.study._attempt import Attempt
from dibs.study._capped import Capped
from dibs.study._claimer import Idle
from dibs.study._session import Session
from dibs.study._slots import Hold, Slots, Standing, StudyRack, choose, standing


class Hall:
    """One backend, a clock for all, and machines that share it."""

    def __init__(self, bucket: bool = False) -> None:
        self.now = 1_000_000.0
        self.backend = MemoryBackend(conditional_replace=bucket, clock=lambda: self.now)
        self.machines: list[FakeMachine] = []
        self.dead: set[int] = set()
        self.first = self.store()
        Study(self.first, "s", SPACE, goal="min", seed=1)

    def store(self) -> Store:
        machine = FakeMachine(pid=len(self.machines) + 1)
        machine.dead = self.dead
        self.machines.append(machine)
        return Store.over(self.backend, machine)

    def slots(self, count: int = 2, store: Store | None = None) -> Slots:
        store = store or self.store()
        rack = StudyRack(store, store.keys("s"), count, f"w{store.machine.pid()}")
        return Slots(store, rack, f"the cap of {count} running trials", beat_s=10.0, stale_s=60.0)

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        for machine in self.machines:
            machine.clock.now += seconds

    def die(self, slots: Slots) -> None:
        self.dead.add(slots.store.machine.pid())


@pytest.fixture(params=[False, True], ids=["folder", "bucket"])
def hall(request: pytest.FixtureRequest) -> Hall:
    return Hall(bucket=request.param)


def taken(slots: Slots) -> Hold:
    hold = slots.take()
    assert hold is not None
    return hold


# ---- the pure part


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Standing.HELD),
        ({"released": True}, Standing.FREE),
        ({"released": True, "gone": True}, Standing.FREE),
        ({"gone": True}, Standing.DEAD),
        ({"silent_s": 61, "watched_s": 20}, Standing.QUIET),
        ({"silent_s": 60, "watched_s": 20}, Standing.HELD),
        ({"silent_s": 61, "watched_s": 19}, Standing.HELD),  # a clock of its own may be an hour behind: watch
        ({"silent_s": 61, "watched_s": 60, "beat_s": 30}, Standing.HELD),  # three beats are longer
        ({"silent_s": 91, "watched_s": 60, "beat_s": 30}, Standing.QUIET),
    ],
)
def test_how_a_slot_stands(changes: dict[str, float], expected: Standing) -> None:
    facts = {"released": False, "gone": False, "silent_s": 0, "watched_s": 0, "beat_s": 10, "stale_s": 60, **changes}
    assert standing(**facts) is expected  # type: ignore[arg-type]


def test_what_is_free_comes_before_what_is_only_quiet_and_what_is_held_never() -> None:
    for order in itertools.permutations(Standing):
        standings = dict(enumerate(order))
        chosen = [standings[slot] for slot in choose(standings)]
        assert chosen == [Standing.FREE, Standing.DEAD, Standing.QUIET]
    free = dict.fromkeys(range(3), Standing.FREE)
    assert [choose(free, first) for first in (0, 1, 200)] == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]


# ---- taking and handing on


def test_no_more_than_there_are_and_each_generation_once(hall: Hall) -> None:
    holds = [taken(hall.slots()), taken(hall.slots())]
    assert sorted(hold.n for hold in holds) == [0, 1]
    late = hall.slots()
    assert late.take() is None
    holds[1].release()
    again = taken(late)
    assert (again.n, again.generation) == (holds[1].n, 1)
    assert hall.slots().take() is None
    body = body_at(hall.first, f"study/s/slot/{again.n}/1.json")
    assert (body["kind"], body["state"], body["of"], body["generation"]) == ("slot", "held", 2, 1)
    assert not holds[1].lost() or holds[1].closed


def test_many_at_once_get_three_of_three(hall: Hall) -> None:
    crowd = [hall.slots(3) for _ in range(12)]
    got = [hold for hold in at_once([slots.take for slots in crowd]) if hold is not None]
    assert sorted(hold.n for hold in got) == [0, 1, 2]
    for hold in got:
        hold.release()
    got = [hold for hold in at_once([slots.take for slots in crowd]) if hold is not None]
    assert sorted((hold.n, hold.generation) for hold in got) == [(0, 1), (1, 1), (2, 1)]


def test_the_dead_hold_nothing(hall: Hall) -> None:
    first = hall.slots(1)
    hold = taken(first)
    other = hall.slots(1)
    assert other.take() is None
    hall.die(first)
    assert taken(other).generation == 1
    assert hold.lost()
    hold.release()  # too late, and harmless: its own record, which does not count any more
    assert hall.slots(1).take() is None


def test_the_quiet_are_passed_over_late_and_with_a_word(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    hold = taken(hall.slots(1))
    other = hall.slots(1)
    for _ in range(10):  # it beats
        hall.pass_s(50)
        hold.beat()
        assert other.take() is None
    hall.pass_s(61)
    fresh = hall.slots(1)
    assert fresh.take() is None  # who has not watched it for two beats does not know
    assert caplog.text == ""
    late = taken(other)
    assert (late.generation, hold.lost(), late.lost()) == (1, True, False)
    assert (
        "the cap of 1 running trials is soft: slot 0 is taken from w2 (fake, process 2), which is quiet" in caplog.text
    )


def test_what_does_not_read_is_held_until_it_is_quiet(hall: Hall) -> None:
    plant(hall.first, "study/s/slot/0/0.json", b"half")
    slots = hall.slots(1)
    assert slots.take() is None
    hall.pass_s(150)
    assert slots.take() is None or hall.backend.traits.conditional_replace
    hall.pass_s(3600)
    assert (slots.take() or taken(slots)).generation == 1


def test_a_beat_of_hundreds_of_digits_is_no_beat(hall: Hall) -> None:
    plant(hall.first, "study/s/slot/0/0.json", b'{"v":1,"beat_s":1' + b"0" * 400 + b"}")
    assert hall.slots(1).take() is None


def test_another_number_of_slots_is_told_once(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    holds = [taken(hall.slots(3)) for _ in range(3)]
    next(hold for hold in holds if hold.n == 1).release()
    assert taken(hall.slots(2)).n == 1
    assert caplog.messages == [
        "the cap of 2 running trials is soft: others work with another number, and only each by its own"
    ]


def test_a_beat_on_its_way_does_not_take_a_slot_back(monkeypatch: pytest.MonkeyPatch) -> None:
    hall = Hall(bucket=True)  # where a beat rewrites the record
    slots = hall.slots(1)
    hold = taken(slots)
    arrived, go, rewrite = threading.Event(), threading.Event(), slots.store.settler.rewrite

    def slow(held: Any, body: dict[str, Any]) -> None:
        if body["state"] == "held":
            arrived.set()
            assert go.wait(60)
        rewrite(held, body)

    monkeypatch.setattr(slots.store.settler, "rewrite", slow)
    beat, release = threading.Thread(target=hold.beat), threading.Thread(target=hold.release)
    beat.start()
    assert arrived.wait(60)
    release.start()
    release.join(0.1)  # it waits for the beat; were it through, the beat would come later
    go.set()
    beat.join()
    release.join()
    assert body_at(hall.first, hall.first.keys("s").slot(0, 0))["state"] == "released"


def test_whoever_waited_while_it_was_handed_on_is_not_left_behind(hall: Hall) -> None:
    first, late = taken(hall.slots(1)), hall.slots(1)
    assert late.take() is None
    first.release()
    for generation in (1, 2):
        hold = taken(hall.slots(1))
        assert hold.generation == generation
        assert late.take() is None
        hold.release()
    assert taken(late).generation == 3


# ---- the cap


def capped(hall: Hall, trials: int, count: int = 1, rescue_after_s: float | None = None) -> Capped:
    slots = hall.slots(count)
    study = Study(slots.store, "s")
    return Capped(study.claimer(trials, rescue_after_s), slots, Session(slots.store.machine.clock))


def claimed(worker: Capped) -> Attempt:
    got = worker.step()
    assert isinstance(got, Attempt)
    return got


def generations(hall: Hall) -> list[str]:
    return sorted(entry.key.removeprefix("study/s/slot/") for entry in hall.backend.list("study/s/slot/"))


def test_who_has_no_slot_claims_nothing(hall: Hall) -> None:
    one, two = capped(hall, 4), capped(hall, 4)
    trial = claimed(one)
    assert two.step() == Idle("capped", "the cap of 1 running trials is reached")
    trial.close("done", score=1.0)
    assert two.step() == Idle("capped", "the cap of 1 running trials is reached")  # kept for the next trial
    claimed(one).close("done", score=1.0)
    one.leave()
    claimed(two).close("done", score=1.0)
    assert generations(hall) == ["0/0.json", "0/1.json"]
    assert [result.n for result in Study(hall.first, "s").results()] == [0, 1, 2]


def test_nobody_takes_a_slot_with_nothing_to_claim(hall: Hall) -> None:
    one, two = capped(hall, 1, count=2), capped(hall, 1, count=2)
    trial = claimed(one)
    assert [two.step().why for _ in range(3)] == ["held"] * 3  # type: ignore[union-attr]
    assert len(generations(hall)) == 1
    trial.close("done", score=1.0)
    assert one.step() == Idle("settled")
    assert two.step() == Idle("settled")
    key = next(entry.key for entry in hall.backend.list("study/s/slot/"))
    assert body_at(hall.first, key)["state"] == "released"


def test_a_rescue_needs_a_slot_and_gets_one(hall: Hall) -> None:
    one = capped(hall, 1, count=2)
    claimed(one)
    hall.die(one._slots)
    two = capped(hall, 1, count=2)
    assert claimed(two).attempt == 1


def test_who_lost_its_slot_looks_for_another_before_it_goes_on(hall: Hall) -> None:
    one, two = capped(hall, 4), capped(hall, 4)
    trial = claimed(one)
    assert two.step() == Idle("capped", "the cap of 1 running trials is reached")
    hall.pass_s(61)
    claimed(two)  # it took the first one for quiet
    trial.close("done", score=1.0)
    assert one.step() == Idle("capped", "the cap of 1 running trials is reached")


def test_release_at_the_end_of_a_process_that_ends_at_once(hall: Hall) -> None:
    one, two = capped(hall, 2), capped(hall, 2)
    claimed(one).close("done", score=1.0)
    for last in one._session.lasts:
        last()
    claimed(two)


# ---- real processes

TOGETHER = """
CAP = 2
from dibs.study import _loop
_loop._LONGEST_PAUSE_S = 0.2

def crowded():
    return all((HERE / f"mark-{k}").exists() for k in range(CAP))

def objective(trial):
    mine = None
    for k in range(CAP):  # of two that begin at the same moment only one gets a mark
        try:
            os.close(os.open(HERE / f"mark-{k}", os.O_CREAT | os.O_EXCL))
            mine = HERE / f"mark-{k}"
            break
        except FileExistsError:
            continue
    if mine is None:
        (HERE / f"overshoot-{trial.n}").touch()
        return 1.0
    looks = 0
    while looks < 20 or not (HERE / "full").exists():  # stay for a moment, the first ones until all there may be are there
        if crowded():
            (HERE / "full").touch()
            break
        looks += 1
        time.sleep(0.005)
    mine.unlink()
    return trial.point["x"]

if __name__ == "__main__":
    print(study(me=sys.argv[1]).run(objective, 24, workers=2, max_running=CAP, progress=False).why)
"""


def test_three_runs_with_two_workers_each_stay_under_a_cap_of_two(tmp_path: Path) -> None:
    paths = [program(tmp_path, TOGETHER, f"p{at}.py") for at in range(3)]
    processes = [start(path, f"m{at}") for at, path in enumerate(paths)]
    answers = [end(process) for process in processes]
    assert {(code, out) for code, out, _ in answers} <= {(0, "settled\n"), (0, "held\n")}, answers
    assert list(tmp_path.glob("overshoot-*")) == []
    assert (tmp_path / "full").exists()
    study = open_study(tmp_path)
    assert [(r.n, r.attempt, r.state) for r in study.results()] == [(n, 0, "done") for n in range(24)]
    bodies = [json.loads(path.read_text()) for path in (tmp_path / "store/study/s/slot").rglob("*.json")]
    assert {body["state"] for body in bodies} == {"released"}


def test_the_marks_would_see_it(tmp_path: Path) -> None:
    body = TOGETHER.replace("max_running=CAP", "max_running=None").replace("CAP = 2", "CAP = 1")
    body = body.replace('all((HERE / f"mark-{k}").exists() for k in range(CAP))', 'any(HERE.glob("overshoot-*"))')
    code, _, err = run(program(tmp_path, body), "m")
    assert code == 0, err
    assert list(tmp_path.glob("overshoot-*")) != []


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    body = """
def objective(trial):
    if trial.n < 2 and trial.attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

if __name__ == "__main__":
    print(study().run(objective, 4, workers=2, max_running=1, progress=False).why)
"""
    code, out, err = run(program(tmp_path, body))
    assert (code, out) == (0, "settled\n"), err
    assert [(r.attempt, r.state) for r in open_study(tmp_path).results()] == [(1, "done")] * 2 + [(0, "done")] * 2


def test_a_wait_for_the_cap_is_told_and_ends_with_the_time(tmp_path: Path) -> None:
    from dibs.study._events import Event, Waiting

    study = open_study(tmp_path)
    other = Study(study.store.url, "s")
    rack = StudyRack(other.store, other.store.keys("s"), 1, "ann")
    taken(Slots(other.store, rack, "", 60.0, 3600.0))
    events: list[Event] = []
    summary = study.run(lambda trial: 1.0, 3, max_running=1, time_s=0.2, on_event=events.append)
    assert (summary.why, summary.ran, summary.unfinished) == ("time", 0, True)
    assert [e for e in events if isinstance(e, Waiting)] == [Waiting(0, 0, "the cap of 1 running trial is reached")]


def test_in_one_process_the_cap_costs_one_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    study = open_study(tmp_path)
    assert study.run(lambda trial: 1.0, 5, max_running=3, progress=False).why == "settled"
    assert len(list((tmp_path / "store/study/s/slot").rglob("*.json"))) == 1
    assert caplog.text == ""


def test_however_a_run_ends_its_slot_is_free(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    with pytest.raises(ZeroDivisionError):
        study.run(lambda trial: 1 / 0, 5, max_failures=1, max_running=1, progress=False)
    assert body_at(study.store, "study/s/slot/0/0.json")["state"] == "released"
