"""CMA-ES: index n's point is a function of the settled generations before it, and it finds what it should."""

from __future__ import annotations

import builtins
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.space.spaces import typed_items

from dibs.errors import UsageError
from dibs.search import CMAES, History, Random, make_sampler
from dibs.search import _evolution as module
from dibs.space import Choice, Constant, Float, Int, Space

from .golden_models import CONDITIONAL, FINITE, MIXED, NUMBERS, played, score
from .golden_several import FILE, STEPPED

SIZE = 9  # of a generation in NUMBERS, 4 + 3 ln 6


def rows_of(space: Space, count: int, population: int | None = None) -> list[Any]:
    """A study run by one worker."""
    sampler, rows = CMAES(population=population, seed=3, goal="min"), []
    for n in range(count):
        point = sampler.ask(space, n, History.of(rows))
        rows.append((n, point, score(space, point), "done", None))
    return rows


ROWS = rows_of(NUMBERS, 4 * SIZE)


def asked(rows: list[Any], n: int = 5 * SIZE, **given: Any) -> Any:
    return CMAES(**{"seed": 3, "goal": "min", **given}).ask(NUMBERS, n, History.of(rows))


def changed(n: int, *end: Any) -> list[Any]:
    """The rows with the end of one changed: score, state, step (and excess)."""
    return [row if row[0] != n else (*row[:2], *end) for row in ROWS]


def test_the_point_is_a_function_of_settled_generations() -> None:
    plain = asked(ROWS)
    assert asked(ROWS[::-1]) == plain
    twin = pickle.loads(pickle.dumps(CMAES(seed=3, goal="min")))
    assert twin.ask(NUMBERS, 5 * SIZE, History.of(ROWS)) == plain
    with ThreadPoolExecutor(4) as pool:
        assert all(p == plain for p in pool.map(lambda _: asked(ROWS), range(8)))
    assert asked(ROWS, 5 * SIZE + 1) != plain
    assert asked(ROWS, seed=4) != plain
    assert asked([(n, p, -y, *rest) for n, p, y, *rest in ROWS], goal="max") == plain
    more = [(4 * SIZE + k, p, -9.0, "done", None) for k, (_, p, *_) in enumerate(ROWS[: SIZE - 1])]
    assert asked(ROWS + more) == plain  # the fifth generation is not full
    full = [*more, (5 * SIZE - 1, ROWS[9][1], -9.0, "done", None)]
    assert asked(ROWS + full) != plain
    assert asked(ROWS + full, 5 * SIZE - 1) == asked(ROWS, 5 * SIZE - 1)  # is no earlier one of its own
    attached = [(-1, ROWS[0][1], -99.0, "done", None)]
    assert asked(ROWS + attached) == plain


def test_of_scores_only_the_order_counts_and_failures_rank_last() -> None:
    plain = asked(ROWS)
    assert asked([(n, p, math.exp(3 * y) - 5.0, *rest) for n, p, y, *rest in ROWS]) == plain
    worst = max(ROWS[SIZE : 2 * SIZE], key=lambda row: row[2])[0]
    best = min(ROWS[SIZE : 2 * SIZE], key=lambda row: row[2])[0]
    for end in ((None, "failed", None), (0.0, "pruned", 3), (math.nan, "done", None), (1e308, "done", None)):
        assert asked(changed(worst, *end)) == plain
        assert asked(changed(best, *end)) != plain
    assert asked(changed(worst, -1e308, "done", None, 0.5)) == plain  # breaks a constraint
    assert asked(changed(best, -1e308, "done", None, -0.5)) == plain


def test_generations_that_are_not_full_are_not_waited_for() -> None:
    """Nor those with a foreign point; nor with nothing to compare: the others count as they are."""
    without = asked([row for row in ROWS if not SIZE <= row[0] < 2 * SIZE])
    assert without != asked(ROWS)
    assert asked(changed(SIZE + 2, None, "running", None)) == without
    assert asked(changed(SIZE + 2, None, "interrupted", None)) == without
    assert asked([row if row[0] != SIZE + 2 else (row[0], {"x0": 1e9}, *row[2:]) for row in ROWS]) == without
    nothing = [row if not SIZE <= row[0] < 2 * SIZE else (*row[:2], None, "failed", None) for row in ROWS]
    assert asked(nothing) == without
    assert asked([row for row in ROWS if row[0] != SIZE + 2]) == without


def test_what_was_asked_before_does_not_matter() -> None:
    for n in range(0, 4 * SIZE, 5):
        asked(ROWS[:n], n)
    code = (
        "from tests.search.test_cmaes import *; module._known.clear(); "
        f"print(repr(CMAES(seed=3, goal='min').ask(NUMBERS, {5 * SIZE}, History.of(ROWS))))"
    )
    root = FILE.parents[2]
    first = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True).stdout
    assert repr(asked(ROWS)) == first.strip()


def test_what_is_remembered_is_that_of_the_same_points() -> None:
    """Other points with the same indexes and scores are another history."""
    first = asked(ROWS)
    mirrored = [(n, {name: 5.0 - at for name, at in p.items()}, *rest) for n, p, *rest in ROWS]
    other = asked(mirrored)
    module._known.clear()
    assert asked(mirrored) == other != first


def test_most_asks_replay_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    plain = module._solutions
    monkeypatch.setattr(module, "_solutions", lambda *args: told.append(len(args[-1])) or plain(*args))
    module._known.clear()
    first = asked(ROWS)
    assert len(told) == 4
    assert [asked(ROWS, n) == first for n in range(5 * SIZE, 6 * SIZE)].count(True) == 1
    asked(changed(3 * SIZE, 0.5, "done", None))
    assert len(told) == 5
    monkeypatch.setattr(module, "_REMEMBERED", 6)
    module._known.clear()
    assert asked(ROWS) == first
    assert len(module._known) == 4
    monkeypatch.setattr(module, "_REMEMBERED", 2)
    assert asked(ROWS) == first
    asked(changed(0, 0.5, "done", None))
    assert len(module._known) <= 3


# -- spaces ------------------------------------------------------------------------------------------------------------


def test_a_space_it_cannot_search_is_refused_before_there_is_a_study() -> None:
    for refused in (
        lambda: CMAES().size(CONDITIONAL),
        lambda: CMAES(goal="min").ask(CONDITIONAL, 0),
    ):
        with pytest.raises(UsageError, match=r"no space with conditions .* take tpe"):
            refused()
    assert CMAES().size(MIXED) is None
    with pytest.raises(UsageError, match="needs a goal"):
        CMAES(seed=0).ask(NUMBERS, 0)
    for wrong in (3, 0, True, 9.5, "9"):
        with pytest.raises(UsageError, match="population"):
            CMAES(population=wrong)  # type: ignore[arg-type]
    again = make_sampler(CMAES(population=12).describe(), seed=1, goal="max")
    assert again == CMAES(population=12, seed=1, goal="max")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "cmaes":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    for refused in (lambda: CMAES().size(NUMBERS), lambda: asked(ROWS)):
        with pytest.raises(UsageError, match=r"needs the library cmaes: pip install 'dibs\[cmaes\]'"):
            refused()
    assert make_sampler("cmaes", seed=0, goal="min").describe()["name"] == "cmaes"  # whoever only reads needs nothing


ODD = {
    "one number": Space(x=Float(0, 1)),
    "one number and a choice": Space(x=Float(0, 1), c=Choice("a", "b")),
    "choices": Space(a=Choice("a", "b", "c"), b=Choice(1, 1.0, True, None)),
    "one choice of one": Space(a=Choice("a"), x=Float(2, 2)),
    "steps": Space(a=Int(1, 3), b=Choice(1, 2, 3, ordered=True), c=Float(0, 1, step=0.5), d=Int(1, 9, log=True)),
    "nothing": Space(a=Constant(3)),
    "many": Space({f"x{i}": Float(0, 1) for i in range(40)}),
}


@pytest.mark.parametrize("space", ODD.values(), ids=ODD.keys())
def test_any_space_without_conditions(space: Space) -> None:
    for n, point in enumerate(played(CMAES(seed=1, goal="min"), space, 60)):
        assert typed_items(space.check(point)) == typed_items(point), n


@pytest.mark.parametrize("value", [0.0, 1e308, -1e308])
def test_scores_that_say_nothing(value: float) -> None:
    sampler, rows = CMAES(seed=1, goal="min"), []
    for n in range(40):
        point = sampler.ask(MIXED, n, History.of(rows))
        rows.append((n, point, value, "done", None))
    assert len({repr(row[1]) for row in rows}) == 40


def test_a_finite_space_is_never_repeated_while_there_is_more() -> None:
    size = FINITE.size() or 0
    rows = rows_of(FINITE, size)
    assert len({repr(row[1]) for row in rows}) == size
    assert typed_items(FINITE.check(CMAES(seed=3, goal="min").ask(FINITE, size, History.of(rows)))) != []


# -- what it finds -----------------------------------------------------------------------------------------------------


def best(sampler: Any, space: Space, trials: int) -> float:
    return min(score(space, p) for p in played(sampler, space, trials))


@pytest.mark.parametrize(
    ("space", "share"), [(NUMBERS, 0.1), (STEPPED, 0.5), (MIXED, 0.8)], ids=["numbers", "stepped", "mixed"]
)
def test_it_finds_more_than_chance_does(space: Space, share: float) -> None:
    """What is left to the best score there is, 2 seeds."""
    least = 0.1 * (6 - space.dims)
    ours = sum(best(CMAES(seed=s, goal="min"), space, 200) - least for s in range(2))
    chance = sum(best(Random(seed=s), space, 200) - least for s in range(2))
    assert ours < share * chance


def test_it_goes_on_elsewhere_when_it_has_converged() -> None:
    """A thousand trials of one parameter: no generation is drawn from a point."""
    space = Space(x=Float(0, 1))
    rows: list[Any] = []
    for n in range(1_000):
        point = CMAES(seed=1, goal="min").ask(space, n, History.of(rows))
        rows.append((n, point, abs(point["x"] - 0.3), "done", None))
    late = [row[1]["x"] for row in rows[500:]]
    assert max(late) - min(late) > 0.3
    assert min(row[2] for row in rows) < 1e-7


def test_axes_of_few_cells() -> None:
    """Two of the four switches cost more alone than both or none."""
    space = Space({**{f"x{i}": Float(-5, 5) for i in range(4)}, **{f"b{i}": Int(0, 1) for i in range(4)}})

    def value(p: Any) -> float:
        numbers, switches = sum(p[f"x{i}"] ** 2 for i in range(4)), [p[f"b{i}"] for i in range(4)]
        return float(numbers + 2 * switches.count(0) + (3 if switches[0] != switches[1] else 0))

    rows: list[Any] = []
    for n in range(250):
        point = CMAES(seed=1, goal="min").ask(space, n, History.of(rows))
        rows.append((n, point, value(point), "done", None))
    assert min(row[2] for row in rows) < 0.1
