"""What every sampler that learns keeps: the same point for the same history, valid, new, whatever the history is."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.space.spaces import finite_params, points, spaces, typed_items, values

from dibs.errors import UsageError
from dibs.search import GP, STATES, TPE, Auto, History, Sampler, Sobol, make_sampler
from dibs.space import Choice, Float, Int, Space

from .elsewhere import OTHER, said_elsewhere
from .golden_models import CONDITIONAL, FILE, FINITE, MIXED, NUMBERS, played, score, sequences

KINDS = [Auto, GP, TPE]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
LEARNERS = pytest.mark.parametrize("kind", [GP, TPE], ids=lambda kind: kind.name)  # auto is one of them
FEW = settings(deadline=None, max_examples=20)


def done(space: Space, count: int, state: str = "done", seed: int = 9) -> list[Any]:
    """Rows of Sobol points with their scores."""
    drawn = [Sobol(seed=seed).ask(space, n) for n in range(count)]
    return [
        (n, p, None if state in ("running", "failed") else score(space, p), state, None) for n, p in enumerate(drawn)
    ]


def test_the_sequences_are_those_of_their_versions() -> None:
    """See golden_models.py before you change anything here."""
    assert sequences() == json.loads(FILE.read_text())


@pytest.mark.parametrize("change", OTHER, ids=lambda change: ",".join(change.values()))
def test_another_machine_gives_the_same_points_and_needs_no_scipy(change: dict[str, str]) -> None:
    code = (
        "from tests.search import golden_models; "
        "print(json.dumps([golden_models.sequences(), [m for m in sys.modules if m.startswith('scipy')]]))"
    )
    found, scipy = said_elsewhere(code, change)
    assert found == json.loads(FILE.read_text())
    assert scipy == []


@EACH
def test_the_order_of_the_history_and_who_asks_mean_nothing(kind: type[Sampler]) -> None:
    rows = done(MIXED, 30) + [(n + 30, *row[1:]) for n, row in enumerate(done(MIXED, 5, "running", seed=2))]
    asked = kind(seed=3, goal="min").ask(MIXED, 40, History.of(rows))
    twin = kind(seed=3, goal="min")
    assert twin.ask(MIXED, 40, History.of(rows[::-1])) == asked
    assert twin.ask(MIXED, 40, History.of([(n, dict(reversed(p.items())), *rest) for n, p, *rest in rows])) == asked
    assert pickle.loads(pickle.dumps(twin)).ask(MIXED, 40, History.of(rows)) == asked
    assert copy.deepcopy(twin).ask(Space(dict(reversed(MIXED.params.items()))), 40, History.of(rows)) == asked
    with ThreadPoolExecutor(4) as pool:
        assert all(p == asked for p in pool.map(lambda _: twin.ask(MIXED, 40, History.of(rows)), range(8)))
    assert twin.ask(MIXED, 41, History.of(rows)) != asked
    assert kind(seed=4, goal="min").ask(MIXED, 40, History.of(rows)) != asked
    turned = History.of([(n, p, None if y is None else -y, *rest) for n, p, y, *rest in rows])
    assert kind(seed=3, goal="max").ask(MIXED, 40, turned) == asked
    assert kind(seed=3, goal="max").ask(MIXED, 40, History.of(rows)) != asked


@LEARNERS
def test_what_was_asked_before_does_not_matter(kind: type[Sampler]) -> None:
    """Whatever is kept between asks must not show: an asker with a past agrees with a fresh process's first ask."""
    sampler, rows = kind(seed=1, goal="min"), done(NUMBERS, 40)
    for n in range(12, 40, 3):
        sampler.ask(NUMBERS, n, History.of(rows[:n]))
        for point in rows[n][1], rows[0][1]:
            assert isinstance(point, dict)
    code = (
        "from tests.search.test_models import *; "
        f"print({kind.__name__}(seed=1, goal='min').ask(NUMBERS, 33, History.of(done(NUMBERS, 33))))"
    )
    root = FILE.parents[2]
    first = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert repr(sampler.ask(NUMBERS, 33, History.of(rows[:33]))) == first.strip()


@EACH
def test_sobol_points_until_ten_are_scored(kind: type[Sampler]) -> None:
    sampler, sobol = kind(seed=5, goal="min"), Sobol(seed=5)
    nine = done(NUMBERS, 9) + [(n + 9, *row[1:]) for n, row in enumerate(done(NUMBERS, 40, "running"))]
    assert [sampler.ask(NUMBERS, n, History.of(nine)) for n in range(20)] == [sobol.ask(NUMBERS, n) for n in range(20)]
    assert sampler.ask(NUMBERS, 20, History.of(done(NUMBERS, 10))) != sobol.ask(NUMBERS, 20)
    failed = History.of(done(NUMBERS, 30, "failed"))
    assert sampler.ask(NUMBERS, 30, failed) == sobol.ask(NUMBERS, 30)


@EACH
def test_asked_without_a_goal(kind: type[Sampler]) -> None:
    with pytest.raises(UsageError, match="needs a goal"):
        kind(seed=0).ask(MIXED, 0)
    assert make_sampler(kind.name, goal="max").goal == "max"
    assert kind(goal="min").needs_history


# -- any space, any history ------------------------------------------------------------------------------------------

scores = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, -0.0, 1e300, -1e300, 1e-300, 5e-324, 1.5, 1.5, float("inf")])
)


@st.composite
def histories(draw: st.DrawFn, space: Space) -> History:
    """Points of the space and others, with any scores and states, 30 or so."""
    rows = []
    strange = st.dictionaries(st.sampled_from([*space.names, "elsewhere"]), values, max_size=3)
    few = draw(st.lists(st.one_of(points(space), points(space), strange), min_size=1, max_size=8))
    alike = draw(st.booleans())
    for n in range(draw(st.integers(0, 34))):
        state = draw(st.sampled_from(["done"] * 6 + list(STATES)))
        given_score = 0.5 if alike and state == "done" else draw(scores)
        index = draw(st.sampled_from([n, n, n, -1]))
        rows.append((index, dict(few[n % len(few)]), None if state == "running" else given_score, state, None))
    return History.of(rows)


@EACH
@FEW
@given(st.data(), st.integers(0, 10**6))
def test_any_history_gives_a_point_of_the_space(kind: type[Sampler], data: st.DataObject, n: int) -> None:
    space = data.draw(spaces())
    history = data.draw(histories(space))
    point = kind(seed=1, goal="min").ask(space, n, history)
    assert typed_items(space.check(point)) == typed_items(point or {})
    assert set(point or ()) == space.active(point or {})


@EACH
@FEW
@given(spaces(finite_params), st.integers(0, 3))
def test_a_finite_space_is_never_repeated_while_there_is_more(kind: type[Sampler], space: Space, seed: int) -> None:
    size = space.size()
    assert size is not None
    assume(1 <= size <= 40)
    sampler, rows = kind(seed=seed, goal="min"), []
    for n in range(size):
        point = sampler.ask(space, n, History.of(rows))
        state = ("done", "running", "done", "failed", "done", "pruned")[n % 6]
        rows.append((n, point, score(space, point) if state == "done" else None, state, None))
    assert len({repr(row[1]) for row in rows}) == size
    assert typed_items(space.check(sampler.ask(space, size, History.of(rows)) or {}))  # and goes on


@EACH
@pytest.mark.parametrize("goal", ["min", ("min", "max")], ids=["one goal", "two goals"])
def test_no_copy_of_a_trial_is_proposed_at_an_optimum_in_a_corner(kind: type[Sampler], goal: Any) -> None:
    """A step within a cell, or a choice drawn again, ends where it began; without noise the best trial looks best again."""
    space = Space(
        lr=Float(1e-5, 1e-1, log=True), q=Float(0, 1, step=0.1), layers=Int(1, 8), opt=Choice("a", "bb", "ccc")
    )
    sampler, rows = kind(seed=3, goal=goal), []
    for n in range(60):
        point: Any = sampler.ask(space, n, History.of(rows))
        height = point["layers"] + point["q"] + 10 * point["lr"] + len(point["opt"])
        rows.append((n, point, height if goal == "min" else (height, -height * height), "done", None))
    assert len({repr(row[1]) for row in rows}) == 60


@EACH
def test_a_finite_space_too_large_to_list(kind: type[Sampler]) -> None:
    space = Space(a=Int(1, 40), b=Int(1, 8), c=Choice(True, 1, 1.0, "1"), d=Choice(0, 1, when={"c": [1]}))
    every = list(space.points())
    assert len(every) == 40 * 8 * 5
    left = every[777]
    rows = [(n, p, float(n % 7), "done", None) for n, p in enumerate(every) if p is not left]
    assert kind(seed=1, goal="min").ask(space, 5000, History.of(rows)) == left


@EACH
def test_points_of_another_space_are_not_learnt_from(kind: type[Sampler]) -> None:
    rows = done(NUMBERS, 30)
    foreign = [
        (n + 100, {**row[1], **change}, -1e9, "done", None)
        for row in rows[:3]
        for n, change in enumerate([{"x0": 11.0}, {"x0": "0.5"}, {"x0": None}, {"x0": True}, {"x0": [1]}])
    ]
    missing = [(200, {"x0": 1.0}, -1e9, "done", None), (201, {}, -1e9, "done", None)]
    sampler = kind(seed=1, goal="min")
    ours = sampler.ask(NUMBERS, 300, History.of(rows))
    assert sampler.ask(NUMBERS, 300, History.of(rows + foreign + missing)) == ours
    extra = [(n, {**p, "old": 3}, *rest) for n, p, *rest in rows]
    assert sampler.ask(NUMBERS, 300, History.of(extra)) == ours


# -- what they learn ---------------------------------------------------------------------------------------------------


@LEARNERS
@pytest.mark.parametrize("space", [MIXED, CONDITIONAL, NUMBERS], ids=["mixed", "conditional", "numbers"])
def test_they_find_more_than_chance_does(kind: type[Sampler], space: Space) -> None:
    ours = [sum(score(space, p) for p in played(kind(seed=s, goal="min"), space, 45)[20:]) for s in range(2)]
    chance = [sum(score(space, p) for p in played(Sobol(seed=s), space, 45)[20:]) for s in range(2)]
    assert sum(ours) < 0.8 * sum(chance)


@LEARNERS
def test_a_finite_space_is_searched_best_first(kind: type[Sampler]) -> None:
    best = sorted(score(FINITE, p) for p in FINITE.points())[:3]
    found = [score(FINITE, p) for p in played(kind(seed=1, goal="min"), FINITE)[:30]]
    assert set(best) & set(found)


@LEARNERS
def test_a_running_point_repels(kind: type[Sampler]) -> None:
    """Somebody at work where an index would have gone sends it elsewhere."""
    sampler, rows = kind(seed=2, goal="min"), done(NUMBERS, 25)
    for n in range(40, 48):
        free = sampler.ask(NUMBERS, n, History.of(rows))
        taken = sampler.ask(NUMBERS, n, History.of([*rows, (30, free, None, "running", None)]))
        here, there = NUMBERS.unit(free or {}), NUMBERS.unit(taken or {})
        assert max(abs(here[name] - there[name]) for name in here) > 0.01


@LEARNERS
def test_a_running_point_has_no_vote(kind: type[Sampler]) -> None:
    """However many of them there are, the good trials stay the good ones."""
    rows = done(NUMBERS, 20)
    far = [(n + 20, *row[1:]) for n, row in enumerate(done(NUMBERS, 60, "running", seed=3))]
    sampler = kind(seed=2, goal="min")
    with_them = [score(NUMBERS, sampler.ask(NUMBERS, n, History.of(rows + far)) or {}) for n in range(80, 100)]
    without = [score(NUMBERS, sampler.ask(NUMBERS, n, History.of(rows)) or {}) for n in range(80, 100)]
    assert sum(with_them) < 1.5 * sum(without)


# -- priors ------------------------------------------------------------------------------------------------------------


@EACH
def test_a_prior_is_tried_first_and_excludes_nothing(kind: type[Sampler]) -> None:
    space = Space(x=Float(0, 1, prior=0.9), k=Int(1, 100, prior=7), c=Choice("a", "b", "c", prior="b"), y=Float(0, 1))
    sampler = kind(seed=1, goal="min")
    first = sampler.ask(space, 0)
    assert (first["x"], first["k"], first["c"]) == (0.9, 7, "b")
    drawn = [sampler.ask(space, n) for n in range(200)]
    assert 0.5 < sum(abs(p["x"] - 0.9) < 0.2 for p in drawn) / 200 < 0.9
    assert 0.5 < sum(p["c"] == "b" for p in drawn) / 200 < 0.8
    assert min(p["x"] for p in drawn) < 0.1
    assert {p["c"] for p in drawn} == {"a", "b", "c"}
    assert abs(sum(p["y"] for p in drawn) / 200 - 0.5) < 0.05


@LEARNERS
def test_a_wrong_prior_is_overcome_and_a_right_one_helps(kind: type[Sampler]) -> None:
    def best(prior: float | None) -> float:
        space = Space({f"x{i}": Float(0, 1, prior=prior) for i in range(6)})
        games = [played(kind(seed=s, goal="min"), space, 40) for s in range(2)]
        return sum(min(score(space, p) for p in game) for game in games)

    plain, belief = best(None), 2 * score(NUMBERS, NUMBERS.point([0.95] * 6))
    assert best(0.42) < plain
    assert best(0.95) < belief / 2
