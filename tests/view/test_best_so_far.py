"""The best score until then, by index and by the time trials closed."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.parts import body_at, plant
from tests.view.studies import SPACE, Lab

from dibs import Study
from dibs.errors import UsageError
from dibs.view import best_so_far


def timed(lab: Lab, n: int, **changes: Any) -> None:
    """Change what the record of a closed trial says, as a machine with another clock would have written it."""
    key = lab.store.keys(lab.name).attempt(n, 0)
    plant(lab.store, key, {**body_at(lab.store, key), **changes})


def at(second: float, zone: str = "Z") -> str:
    return f"2026-01-01T00:00:{second:06.3f}{zone}"


def test_by_index_and_by_time_are_two_orders() -> None:
    lab = Lab()
    for n, (score, began, took) in enumerate([(0.5, 0, 50), (0.3, 1, 1), (0.9, 2, 2), (0.1, 3, 40)]):
        lab.trial(n, "done", [score])
        timed(lab, n, started_at=at(began), took_s=took)
    told = best_so_far(lab.source())
    assert [trial.best_by_index for trial in told.trials] == [0.5, 0.3, 0.3, 0.1]
    assert [trial.n for trial in told.by_time()] == [1, 2, 3, 0]
    assert [trial.best_by_time for trial in told.by_time()] == [0.3, 0.3, 0.1, 0.1]
    assert [trial.closed_at for trial in told.by_time()] == [at(2), at(4), at(43), at(50)]
    assert told.best is not None
    assert (told.best.n, told.done, told.of, told.goal) == (3, 4, 10, "min")


def test_only_done_trials_count_and_open_ones_are_not_there() -> None:
    lab = Lab()
    lab.trial(0, "failed", reason="RuntimeError: boo")
    lab.trial(1, "pruned", [0.01])
    lab.trial(2, "done", [0.2])
    lab.begin(3)
    lab.trial(4, "interrupted")
    lab.study.attach(lab.point(1), 0.001)
    told = best_so_far(lab.source())
    assert [(t.n, t.state, t.score, t.best_by_index) for t in told.trials] == [
        (0, "failed", None, None), (1, "pruned", 0.01, None), (2, "done", 0.2, 0.2),
    ]  # fmt: skip
    assert (told.done, told.attached) == (1, 1)


def test_a_goal_max_and_nothing_done() -> None:
    lab = Lab(defined=False)
    study = Study(lab.store, "up", SPACE, goal="max")
    lab.name = "up"
    assert best_so_far(lab.source()).best is None
    for trial in study.trials(4):
        with trial:
            trial.done([1.0, 3.0, 2.0, 3.0][trial.n])
    told = best_so_far(lab.source())
    assert [trial.best_by_index for trial in told.trials] == [1.0, 3.0, 3.0, 3.0]
    assert told.best is not None
    assert told.best.n == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"started_at": None}, {"started_at": "yesterday"}, {"started_at": "9999-12-31T23:59:59Z", "took_s": 1e9},
        {"took_s": 1e308}, {"started_at": "0001-01-01T00:00:00+14:00"}, {"started_at": "9999-12-31T23:59:59-14:00"},
    ],
    ids=str,
)  # fmt: skip
def test_times_that_make_no_sense_come_last_and_break_nothing(changes: dict[str, Any]) -> None:
    lab = Lab()
    for n in range(3):
        lab.trial(n, "done", [float(n)])
        timed(lab, n, started_at=at(n), took_s=0.5)
    timed(lab, 0, **changes)
    told = best_so_far(lab.source())
    last = told.by_time()[-1]
    assert (last.n, last.closed_at, last.best_by_time) == (0, None, 0.0)
    json.dumps(told.to_json(), allow_nan=False)


def test_zones_are_heeded_and_a_time_without_one_is_utc() -> None:
    lab = Lab()
    for n, said in enumerate(["2026-01-01T02:00:00+01:00", "2026-01-01T00:30:00", "2026-01-01T01:30:00Z"]):
        lab.trial(n, "done", [float(n)])
        timed(lab, n, started_at=said, took_s=0.0)
    assert [trial.n for trial in best_so_far(lab.source()).by_time()] == [1, 0, 2]


def test_it_agrees_with_going_through_the_trials_one_by_one() -> None:
    lab = Lab()
    chance = random.Random(5)
    for n in range(40):
        lab.trial(n, "done", [chance.choice([0.25, 0.5, 0.75, 1.0])])
        timed(lab, n, started_at=at(chance.randrange(60)), took_s=chance.random())
    told = best_so_far(lab.source())
    order = sorted(told.trials, key=lambda trial: (trial.closed_at, trial.n))
    assert [trial.place for trial in order] == list(range(40))
    for k, trial in enumerate(order):
        assert trial.best_by_time == min(other.score for other in order[: k + 1])
    for k, trial in enumerate(told.trials):
        assert trial.best_by_index == min(other.score for other in told.trials[: k + 1])


def test_without_a_goal_nobody_knows_what_is_better() -> None:
    lab = Lab(defined=False)
    lab.two_goals()
    with pytest.raises(UsageError, match="agree on no goal"):
        best_so_far(lab.source())
