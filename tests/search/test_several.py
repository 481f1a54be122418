"""Several goals and constraints: what the samplers that learn make of them, whatever the history is."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.space.spaces import points, spaces, typed_items

from dibs.errors import UsageError
from dibs.search import (
    CMAES,
    GP,
    NSGA2,
    STATES,
    TPE,
    Auto,
    History,
    Random,
    Sampler,
    Sobol,
    _goals,
    make_sampler,
    non_dominated,
)
from dibs.search._fronts import undominated
from dibs.search._goals import merged
from dibs.space import Space

from .elsewhere import OTHER, said_elsewhere
from .golden_models import MIXED, NUMBERS
from .golden_several import CASES, FILE, LIBRARY, answer, sequences
from .several import CASES as FUNCTIONS
from .several import WHOLE, hypervolume, played
from .test_models import done

KINDS = [Auto, GP, TPE, NSGA2]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
LEARNERS = pytest.mark.parametrize("kind", [GP, TPE, NSGA2], ids=lambda kind: kind.name)
BOTH: Any = ("min", "max")
FEW = settings(deadline=None, max_examples=25)


def rows_of(space: Space, count: int, goals: int = 2, start: int = 0) -> list[Any]:
    """Done rows of Sobol points with all that can be said of them."""
    found = []
    for n in range(count):
        point = Sobol(seed=9).ask(space, n)
        scores, excess = answer(space, point, goals)
        found.append((n + start, point, scores, "done", None, excess))
    return found


def test_the_sequences_are_those_of_their_versions() -> None:
    """See golden_several.py before you change anything here."""
    assert sequences(CASES + LIBRARY) == json.loads(FILE.read_text())


@pytest.mark.parametrize("change", OTHER, ids=lambda change: ",".join(change.values()))
def test_another_machine_gives_the_same_points(change: dict[str, str]) -> None:
    code = (
        "from tests.search import golden_several as g; "
        "found = g.sequences(g.CASES); scipy = [m for m in sys.modules if m.startswith(('scipy', 'cmaes'))]; "
        "print(json.dumps([found | g.sequences(g.LIBRARY), scipy]))"
    )
    found, loaded = said_elsewhere(code, change)
    assert found == json.loads(FILE.read_text())
    assert loaded == []


def test_who_can_do_with_several_goals() -> None:
    for name in ("auto", "gp", "grid", "nsga2", "random", "sobol", "tpe"):
        assert make_sampler(name, seed=0, goal=BOTH).goal == BOTH
    with pytest.raises(UsageError, match="'cmaes' searches for one goal, not 2: take one of auto, gp, grid, nsga2"):
        make_sampler("cmaes", seed=0, goal=BOTH)
    with pytest.raises(UsageError):
        CMAES(goal=BOTH)


@EACH
def test_order_names_and_directions(kind: type[Sampler]) -> None:
    rows = rows_of(MIXED, 30)
    sampler = kind(seed=3, goal=BOTH)
    asked = sampler.ask(MIXED, 40, History.of(rows))
    assert pickle.loads(pickle.dumps(sampler)).ask(MIXED, 40, History.of(rows[::-1])) == asked
    turned = [(n, p, (a, -b), *rest) for n, p, (a, b), *rest in rows]
    assert kind(seed=3, goal=("min", "min")).ask(MIXED, 40, History.of(turned)) == asked
    assert len({repr(sampler.ask(MIXED, n, History.of(rows))) for n in range(40, 46)}) == 6
    goals = [
        repr([kind(seed=3, goal=g).ask(MIXED, n, History.of(rows)) for n in (40, 41, 42)])
        for g in (BOTH, ("max", "min"))
    ]
    assert goals[0] != goals[1]


@EACH
def test_constraints_that_all_keep_change_little_and_none_reported_nothing(kind: type[Sampler]) -> None:
    rows = done(NUMBERS, 40)
    plain = kind(seed=3, goal="min").ask(NUMBERS, 50, History.of(rows))
    assert kind(seed=3, goal="min").ask(NUMBERS, 50, History.of([(*row, None) for row in rows])) == plain
    assert kind(seed=3, goal="min").ask(NUMBERS, 50, History.of([(*row, math.nan) for row in rows])) == plain


@EACH
def test_scores_of_another_number_of_goals_are_not_learnt_from(kind: type[Sampler]) -> None:
    sampler, rows = kind(seed=3, goal=BOTH), rows_of(NUMBERS, 40)
    asked = sampler.ask(NUMBERS, 99, History.of(rows))
    odd = [(n + 50, p, scores, state, step, -1.0) for (n, p, *_, state, step, _), scores in zip(
        rows_of(NUMBERS, 3), [(-1e9, 1e9, 0.0), -1e9, None], strict=True
    )]  # fmt: skip
    assert sampler.ask(NUMBERS, 99, History.of(rows + odd)) == asked
    three = History.of(rows_of(NUMBERS, 40, goals=3))
    assert sampler.ask(NUMBERS, 99, three) == sampler.ask(NUMBERS, 99)
    assert sampler.ask(NUMBERS, 99, History.of(done(NUMBERS, 40))) == sampler.ask(NUMBERS, 99)
    assert kind(seed=3, goal="min").ask(NUMBERS, 99, History.of(rows)) == kind(seed=3, goal="min").ask(NUMBERS, 99)


# -- any history -------------------------------------------------------------------------------------------------------

wild = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, 1.5, 1.5, math.inf, -math.inf, math.nan])
)


@st.composite
def histories(draw: st.DrawFn, space: Space, goals: int) -> History:
    """Points of the space and others, with any scores, states and constraints; now and then all alike or all too far."""
    rows: list[Any] = []
    few = draw(st.lists(st.one_of(points(space), st.just({"elsewhere": 1})), min_size=1, max_size=8))
    scores = st.lists(wild, min_size=goals, max_size=goals).map(tuple) if goals > 1 else wild
    kept = draw(st.sampled_from([wild, st.none(), st.just(1e308), st.floats(0.1, 9), st.one_of(st.none(), wild)]))
    alike = draw(st.booleans())
    for n in range(draw(st.integers(8, 40))):
        state = draw(st.sampled_from(["done"] * 8 + list(STATES)))
        given_scores = (1e308, -1e308, 0.0)[:goals] if alike and goals > 1 else draw(scores)
        rows.append((n, dict(few[n % len(few)]), given_scores if state == "done" else None, state, None, draw(kept)))
    return History.of(rows)


@pytest.mark.parametrize("kind", [*KINDS, CMAES], ids=lambda kind: kind.name)
@FEW
@given(st.data(), st.integers(0, 10**6))
def test_any_history_gives_a_point_of_the_space(kind: type[Sampler], data: st.DataObject, n: int) -> None:
    space = data.draw(spaces())
    goals = data.draw(st.integers(1, 3)) if kind.several else 1
    if kind is CMAES and any(space[name].when for name in space.names):
        with pytest.raises(UsageError, match="no space with conditions"):
            kind(seed=1, goal="min").ask(space, n)
        return
    history = data.draw(histories(space, goals))
    few = {"population": 4} if kind in (NSGA2, CMAES) else {}  # enough to learn from
    sampler = kind(**few, seed=1, goal="min" if goals == 1 else ("min", "max", "min")[:goals])
    point = sampler.ask(space, n, history)
    assert typed_items(space.check(point)) == typed_items(point or {})
    assert set(point or ()) == space.active(point or {})


# -- what they find ----------------------------------------------------------------------------------------------------


@LEARNERS
@pytest.mark.parametrize("name", ["zdt2", "disc"])
def test_the_front_dominates_more_than_that_of_chance(kind: type[Sampler], name: str) -> None:
    """What is left to the whole hypervolume, of what chance leaves after as many trials: the seeds are few but fixed."""
    case = FUNCTIONS[name]
    trials, seeds, share = {"gp": (80, 2, 0.25), "tpe": (120, 3, 0.8), "nsga2": (160, 4, 0.65)}[kind.name]

    def left(made: type[Sampler]) -> float:
        games = [played(made(seed=s, goal=case.goals), case, trials) for s in range(seeds)]
        return sum(WHOLE[name] - hypervolume(game, case) for game in games)

    assert left(kind) < share * left(Random)


@LEARNERS
def test_one_goal_and_constraints(kind: type[Sampler]) -> None:
    """Where 2 in 100 random points are allowed, the best that keeps the constraints; 2 seeds."""
    case = FUNCTIONS["alone"]

    def found(made: type[Sampler]) -> tuple[float, int]:
        rows = [row for s in range(2) for row in played(made(seed=s, goal="min"), case, 70)]
        allowed = [row[2] for row in rows if row[5] <= 0]
        return min(allowed, default=math.inf), len(allowed)

    best, allowed = found(kind)
    by_chance, rarely = found(Random)
    assert best < by_chance
    assert allowed > 3 * rarely


def test_nothing_keeps_the_constraints_yet() -> None:
    """Scores that lead away from where constraints are nearly kept mislead nobody."""
    rows = [(n, p, -s[0], state, step, s[0] - 0.1) for n, p, s, state, step, _ in rows_of(NUMBERS, 30)]
    history = History.of(rows)
    nearest = {"gp": 0.5, "tpe": 0.8}
    for kind in (GP, TPE):
        asked = [kind(seed=s, goal="min").ask(NUMBERS, 40, history) for s in range(5)]
        by_chance = [Random(seed=s).ask(NUMBERS, 40) for s in range(5)]
        ours, theirs = (np.mean([answer(NUMBERS, p, 1)[0] for p in every]) for every in (asked, by_chance))
        assert ours < nearest[kind.name] * theirs


def test_the_weighed_score_is_the_same_whatever_is_remembered() -> None:
    """The front that it is measured on is found again among what is new: the last blocks of rows."""
    random = np.random.default_rng(0)
    table = random.random((1_500, 4))
    table[:, 0] = -table[:, 1:].sum(axis=1)
    table[1_300:, 2] -= 0.5  # what came last beats some of what is remembered
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    for rows in (1, 255, 256, 511, 512, 513, 1_023, 1_024, 1_299, 1_500):
        some = table[:rows]
        low, worst = some.min(axis=0), some[non_dominated(some, ("min",) * 4)].max(axis=0)
        parts = (some - low) / np.where(worst > low, worst - low, 1.0) * weights
        assert np.array_equal(merged(some, weights), parts.max(axis=1) + 0.05 * parts.sum(axis=1))


def test_an_ask_looks_at_what_is_new_in_a_long_front_only(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    table = random.random((5_000, 3))
    table[:, 0] = -table[:, 1:].sum(axis=1)
    merged(table[:4_999], np.ones(3) / 3)
    looked: list[int] = []
    monkeypatch.setattr(_goals, "undominated", lambda rows: (looked.append(len(rows)), undominated(rows))[1])
    merged(table, np.ones(3) / 3)
    assert 0 < sum(looked) < 1_000
