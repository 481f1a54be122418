"""What every sampler without a history keeps: same point for the same (seed, n), whoever asks, in whatever order."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.space.spaces import SETTINGS, spaces, typed_items

from dibs.errors import RefusedError, UsageError
from dibs.search import Grid, History, Random, Sampler, Sobol, make_sampler
from dibs.space import Choice, Float, Int, Space

from .golden import FILE, SPACE, sequences

EACH = pytest.mark.parametrize("sampler", [Random(seed=3), Sobol(seed=3), Grid(3, seed=3)], ids=lambda s: s.name)


def test_the_sequences_are_those_of_their_versions() -> None:
    """See golden.py before you change anything here."""
    for ours, kept in zip(sequences(), json.loads(FILE.read_text()), strict=True):
        assert json.dumps(ours, sort_keys=True) == json.dumps(kept, sort_keys=True)


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_another_process_asks_alike_and_loads_no_scipy(hash_seed: str) -> None:
    code = (
        "import json, random, sys, numpy; random.seed(1); numpy.random.seed(1); from tests.search import golden; "
        "rows = golden.sequences(); print(json.dumps([rows, sorted(m for m in sys.modules if m.startswith('scipy'))]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": hash_seed}
    root = FILE.parents[2]
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd=root, capture_output=True, text=True, check=True)
    rows, scipy = json.loads(run.stdout)
    assert scipy == []
    assert json.dumps(rows, sort_keys=True) == json.dumps(sequences(), sort_keys=True)


@EACH
def test_order_history_and_declaration_mean_nothing(sampler: Sampler) -> None:
    forward = [sampler.ask(SPACE, n) for n in range(40)]
    turned = Space(dict(reversed(list(SPACE.params.items()))))
    history = History.of([(0, forward[0] or {}, 1.0, "done", None)])
    assert [sampler.ask(SPACE, n) for n in reversed(range(40))] == forward[::-1]
    assert [sampler.ask(turned, n, history) for n in range(40)] == forward
    assert [pickle.loads(pickle.dumps(sampler)).ask(SPACE, n, [({}, None)]) for n in range(40)] == forward
    assert [sampler.ask(SPACE, np.int64(n)) for n in range(5)] == forward[:5]
    assert len({repr(point) for point in forward}) > 35
    assert not sampler.needs_history


@EACH
def test_another_seed_is_another_sequence(sampler: Sampler) -> None:
    other = type(sampler)(seed=4)
    assert [sampler.ask(SPACE, n) for n in range(5)] != [other.ask(SPACE, n) for n in range(5)]
    unseeded = type(sampler)()
    assert [unseeded.ask(SPACE, n) for n in range(5)] == [unseeded.seeded(0, None).ask(SPACE, n) for n in range(5)]


@EACH
@SETTINGS
@given(spaces(), st.integers(0, 10**8))
def test_whatever_comes_out_is_in_the_space(sampler: Sampler, space: Space, n: int) -> None:
    size = sampler.size(space)
    point = sampler.ask(space, n if size is None else n % size)
    assert point is not None
    assert typed_items(space.check(point)) == typed_items(point)
    assert typed_items(space.point(space.unit(point))) == typed_items(point) or sampler.name == "grid"


def test_a_new_parameter_moves_no_other_of_random() -> None:
    grown = Space({**SPACE.params, "aaa": Float(0, 1), "zzz": Int(1, 5)})
    for n in range(10):
        point = Random(seed=1).ask(grown, n)
        assert {name: point[name] for name in point if name not in ("aaa", "zzz")} == Random(seed=1).ask(SPACE, n)


def test_random_is_uniform() -> None:
    space = Space(x=Float(0, 1), k=Int(1, 4), lr=Float(1e-4, 1, log=True), c=Choice("a", "b"))
    drawn = [Random(seed=1).ask(space, n) for n in range(2000)]
    for share, of in [
        (0.25, lambda p: p["x"] < 0.25),
        (0.25, lambda p: p["k"] == 4),
        (0.25, lambda p: p["lr"] < 1e-3),
        (0.5, lambda p: p["c"] == "a"),
        (0.125, lambda p: p["c"] == "a" and p["x"] >= 0.75),
    ]:
        assert sum(map(of, drawn)) / 2000 == pytest.approx(share, abs=0.03)


# -- names, arguments, seeds ---------------------------------------------------------------------------------------


class Corner(Sampler):
    """Somebody else's sampler, which never heard of ``__init__``."""

    version = 7

    def __init__(self, corner: float = 0.0) -> None:
        self.corner = corner

    def ask(self, space: Space, n: int, history: Any = ()) -> Any:
        return space.point([self.corner] * space.dims)

    def args(self) -> dict[str, Any]:
        return {"corner": self.corner}


@EACH
def test_a_sampler_is_made_again_from_its_description(sampler: Sampler) -> None:
    again = make_sampler(json.loads(json.dumps(sampler.describe())), seed=3, goal="max")
    assert again == sampler.seeded(3, "max")
    assert again.describe() == sampler.describe()
    assert hash(again) == hash(sampler.seeded(3, "max"))
    assert again != sampler
    assert again.ask(SPACE, 5) == sampler.ask(SPACE, 5)
    assert make_sampler(sampler.name).describe()["name"] == sampler.name
    assert repr(sampler).startswith(type(sampler).__name__)
    assert "seed=3" in repr(sampler)


def test_seed_and_goal_are_filled_in_once() -> None:
    plain = Sobol()
    asked = plain.seeded(7, "min")
    assert (asked.seed, asked.goal) == (7, "min")
    assert asked.seeded(7, "min") == asked == asked.seeded(None, None)
    for again, field, ours, theirs in [
        (lambda: asked.seeded(8, "min"), "seed", 7, 8),
        (lambda: make_sampler(asked, seed=7, goal="max"), "goal", "min", "max"),
    ]:
        with pytest.raises(RefusedError) as caught:
            again()
        assert (caught.value.field, caught.value.ours, caught.value.theirs) == (field, ours, theirs)
        assert repr(ours) in str(caught.value)
        assert repr(theirs) in str(caught.value)
    assert (plain.seed, plain.goal) == (None, None)  # filled in means a copy


def test_somebody_elses_sampler_is_as_good() -> None:
    made = make_sampler(Corner(0.5), seed=1, goal="min")
    assert (made.seed, made.goal, made.needs_history) == (1, "min", True)
    assert made.describe() == {"name": f"{__name__}.Corner", "version": 7, "args": {"corner": 0.5}}
    assert made.size(SPACE) is None
    assert made.ask(Space(x=Float(0, 1)), 3) == {"x": 0.5}
    with pytest.raises(UsageError, match="one of your own is passed as an instance"):
        make_sampler(made.describe())


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("tpee", "unknown sampler 'tpee': the known ones are auto, cmaes, gp, grid, nsga2, random, sobol, tpe"),
        ({"name": "sobol", "version": 99}, "comes from a later dibs"),
        ({"name": "sobol", "version": 0}, "no version"),
        ({"name": "sobol", "version": "1"}, "no version"),
        ({"name": "grid", "args": {"step": 3}}, "does not take {'step': 3}"),
        ({"name": "grid", "args": {"steps": 0}}, "must be an int above 0"),
        ({"name": "grid", "args": {"steps": True}}, "must be an int above 0"),
        ({"name": "grid", "args": [3]}, "cannot be the arguments"),
        ({"name": "random", "args": {"seed": 3}}, "cannot be the arguments"),
        ({"name": "random", "colour": 3}, "name, version and args, not 'colour'"),
        ({"version": 1}, "is no sampler"),
        (None, "is no sampler"),
        (Random, "pass an instance of the sampler: Random()"),
    ],
)
def test_what_is_no_sampler(spec: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_sampler(spec, seed=0, goal="min")
    assert says in str(caught.value)


@pytest.mark.parametrize("wrong", [{"seed": True}, {"seed": 1.0}, {"seed": 2**63}, {"goal": "minimise"}])
def test_wrong_seeds_and_goals(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Random(**wrong)
    with pytest.raises(UsageError):
        make_sampler("random", **wrong)


def test_an_earlier_version_is_not_replayed_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sobol, "version", 2)
    with pytest.raises(UsageError, match="from an earlier dibs"):
        make_sampler({"name": "sobol", "version": 1})


# -- several goals -----------------------------------------------------------------------------------------------------


def test_several_goals_are_kept_as_a_tuple() -> None:
    asked = make_sampler("sobol", seed=1, goal=["min", "max"])  # type: ignore[arg-type]
    assert asked.goal == ("min", "max")
    assert asked == Sobol(seed=1).seeded(1, ("min", "max")) == asked.seeded(None, ("min", "max"))
    assert hash(asked) == hash(Sobol(seed=1, goal=("min", "max")))
    assert asked.ask(SPACE, 3) == Sobol(seed=1).ask(SPACE, 3)
    with pytest.raises(RefusedError, match="goal is"):
        asked.seeded(1, ("max", "min"))


@pytest.mark.parametrize(
    ("goal", "says"),
    [
        (["min"], "write goal='min'"),
        ([], "0 goals"),
        (["min"] * 9, "9 goals: a study has one, or a list of 2 to 8"),
        (["min", "MAX"], "goal 'MAX' must be 'min' or 'max'"),
        (["min", None], "goal None must be"),
        ([["min"], "max"], "must be"),
        ({"min": "max"}, "or a list of these"),
        (np.array(["min", "max"]), "or a list of these"),
        ("min,max", "or a list of these"),
    ],
)
def test_goals_that_cannot_be_meant(goal: Any, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Random(goal=goal)
    assert says in str(caught.value)


def test_a_sampler_for_one_goal_says_who_can_do_more() -> None:
    for made in (lambda: Corner().seeded(1, ("min", "min")), lambda: make_sampler(Corner(), goal=("min", "min"))):
        with pytest.raises(
            UsageError, match=r"Corner' searches for one goal, not 2: take one of .*grid.*random, sobol"
        ):
            made()
