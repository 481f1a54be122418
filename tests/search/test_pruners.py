"""What every pruner keeps: a verdict is a function of the curves, and a good trial has nothing to fear."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dibs.errors import UsageError
from dibs.search import (
    AnyOf,
    Asha,
    Curve,
    Diverged,
    Hyperband,
    Median,
    Patience,
    Percentile,
    Pruner,
    Threshold,
    make_pruner,
)

NAN = math.nan
SETTINGS = settings(deadline=None, max_examples=40)
SPECS: list[Any] = ["median", {"name": "percentile", "args": {"percent": 30}}, "asha", "hyperband"]
EACH = pytest.mark.parametrize("spec", SPECS, ids=["median", "percentile", "asha", "hyperband"])
finite = st.floats(-1e300, 1e300)
values = finite | st.sampled_from([NAN, math.inf, -math.inf])
states = st.sampled_from(["running", "done", "pruned", "failed", "interrupted"])
steps = st.sets(st.integers(0, 30), max_size=10).map(sorted)
drawn = st.tuples(states, st.dictionaries(st.integers(0, 30), values, max_size=10))


def curve(n: int, *numbers: float, state: str = "running") -> Curve:
    return Curve(n, state, enumerate(numbers))


def curves(n: int) -> st.SearchStrategy[Curve]:
    """Any curve, on a grid of its own."""
    return drawn.map(lambda made: Curve(n, made[0], sorted(made[1].items())))


CROWDS = st.lists(drawn, max_size=12).map(
    lambda all_of: [Curve(n, state, sorted(pairs.items())) for n, (state, pairs) in enumerate(all_of, start=1)]
)


def made(spec: Any, goal: Any = "min", **more: Any) -> Pruner:
    return make_pruner(spec, goal=goal, seed=7, **{"max_step": 27, **more})


# what holds for all that compare


@EACH
@SETTINGS
@given(CROWDS, steps, st.sampled_from(["min", "max"]))
def test_the_best_at_every_step_is_never_stopped(spec: Any, others: list[Curve], grid: list[int], goal: Any) -> None:
    pruner = made(spec, goal)
    least = -1e301 if goal == "min" else 1e301
    own = Curve(0, "running")
    for step in grid:
        own.add(step, least)
        assert pruner.verdict(own, others) is None


@EACH
@SETTINGS
@given(CROWDS, curves(0))
def test_more_mirrors_less(spec: Any, others: list[Curve], own: Curve) -> None:
    def turned(one: Curve) -> Curve:
        return Curve(one.n, one.state, [(step, -value) for step, value in one.pairs])

    less = made(spec, "min").verdict(own, others)
    more = made(spec, "max").verdict(turned(own), [turned(peer) for peer in others])
    assert (less is None) == (more is None)
    if less is not None and more is not None and "peers" in less.seen:
        assert less.seen["peers"] == more.seen["peers"]
        assert abs(float(less.seen["value"])) == abs(float(more.seen["value"]))


@EACH
@SETTINGS
@given(CROWDS, curves(0), st.randoms(use_true_random=False))
def test_order_means_nothing_and_what_was_seen_is_json(spec: Any, others: list[Curve], own: Curve, rng: Any) -> None:
    pruner = made(spec)
    said = pruner.verdict(own, others)
    mixed = [*others]
    rng.shuffle(mixed)
    assert pruner.verdict(own, mixed) == said
    if said is not None:
        assert json.loads(json.dumps(said.body(), allow_nan=False)) == said.body()
        assert said.seen["step"] == own.last
        assert len(said.reason.splitlines()) == 1


@EACH
@SETTINGS
@given(CROWDS, curves(0), curves(99))
def test_only_those_who_got_there_vote(spec: Any, others: list[Curve], own: Curve, short: Curve) -> None:
    """A running curve that ends before the step (or the rung) changes nothing, however good it is."""
    pruner = made(spec)
    rung = max((r for r in (1, 3, 9) if r <= own.last), default=0) if spec in ("asha", "hyperband") else own.last
    before = Curve(99, "running", [pair for pair in short.pairs if pair[0] < min(rung, own.last)])
    crossed = [r for r in (1, 3, 9) if own.before < r <= own.last]
    if spec in ("asha", "hyperband") and len(crossed) > 1:
        return  # it may have reached one of them
    assert pruner.verdict(own, [*others, before]) == pruner.verdict(own, others)


@EACH
def test_nan_where_it_is_due_stops_at_once_and_fetches_nothing(spec: Any) -> None:
    def nobody(least: int, most: int) -> Any:
        raise AssertionError("fetched")

    said = made(spec).verdict(Curve(0, "running", [(0, 1.0), (9, NAN)]), nobody)
    assert said is not None
    assert said.reason == "nan at step 9"


@pytest.mark.parametrize("spec", [*SPECS, "diverged", "patience", ["diverged", "median"]], ids=str)
def test_never_at_the_last_step(spec: Any) -> None:
    others = [Curve(n, "done", [(0, 0.0), (9, 0.0), (27, 0.0)]) for n in range(1, 20)]
    for last in (27, 30):
        assert made(spec).verdict(Curve(0, "running", [(0, 1.0), (last, NAN)]), others) is None
    assert made(spec).verdict(Curve(0, "running", [(0, 1.0), (26, NAN)]), others) is not None


# median, percentile


def test_the_worse_half_is_stopped() -> None:
    others = [curve(n, 9.0, float(n)) for n in range(1, 7)]
    pruner = made("median")
    assert pruner.verdict(curve(0, 9.0, 3.5), others) is None
    said = pruner.verdict(curve(0, 9.0, 3.6), others)
    assert said is not None
    assert said.reason == "its best by step 1, 3.6, is worse than the median 3.5 of 6 others"
    assert {key: said.seen[key] for key in ("step", "value", "threshold", "peers")} == {
        "step": 1, "value": 3.6, "threshold": 3.5, "peers": 6,
    }  # fmt: skip
    assert pruner.verdict(curve(0, 9.0, 3.6), others[:4]) is None, "five have to be there before anybody is stopped"
    assert pruner.verdict(curve(0, 3.0, 99.0), others) is None, "its best so far counts"


def test_a_stopped_curve_votes_with_its_best_for_ever_after_and_one_that_crashed_does_not() -> None:
    running = [curve(n, 1.0, 1.0, 1.0, 1.0) for n in range(1, 6)]
    ours = curve(0, 9.0, 9.0, 9.0, 2.0)
    assert made("median").verdict(ours, running) is not None
    for state, stopped in (("pruned", True), ("done", True), ("failed", False), ("interrupted", False)):
        ended = [curve(n, 5.0, 6.0, state=state) for n in range(6, 13)]
        assert (made("median").verdict(ours, [*running, *ended]) is None) == stopped, state


def test_a_digest_tells_what_was_seen() -> None:
    others = [curve(n, 1.0) for n in range(1, 7)]
    said = [
        made("median").verdict(curve(0, 2.0), each) for each in (others, others[::-1], [*others[:5], curve(6, 1.1)])
    ]
    digests = [one.seen["digest"] for one in said if one is not None]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("warmup", "every", "due"), [(0, 1, [0, 2, 3, 7, 8]), (3, 1, [3, 7, 8]), (0, 4, [0, 7, 8]), (2, 3, [2, 7, 8])]
)
def test_warmup_and_every(warmup: int, every: int, due: list[int]) -> None:
    own, asked = Curve(0, "running"), []
    for step in (0, 2, 3, 7, 8):
        own.add(step, 1.0)
        if Median(warmup=warmup, every=every).due(own):
            asked.append(step)
    assert asked == due


def test_what_is_not_finite_is_the_worst_of_others() -> None:
    for worst in (NAN, math.inf, -math.inf):
        others = [curve(n, worst if n % 2 else 1.0) for n in range(1, 9)]
        assert made("median").verdict(curve(0, 1e9), others) is None
        assert made("median").verdict(curve(0, 1e9), others[1:]) is not None


# asha, hyperband


def test_rungs_are_fixed_with_the_study() -> None:
    def rungs(max_step: int, **args: Any) -> list[int]:
        return Asha(**args).fitted(goal="min", max_step=max_step).steps(0)

    assert rungs(81) == [1, 3, 9, 27]
    assert rungs(80) == [1, 3, 9]
    assert rungs(1000) == [12, 36, 108, 324]
    assert rungs(2) == [1]
    assert rungs(100, min_step=5, eta=2) == [5, 10, 20, 40]
    assert Asha().fitted(goal="min", max_step=81).args() == {"min_step": 1, "eta": 3}
    with pytest.raises(UsageError, match="must be above"):
        rungs(1)


def test_only_the_best_third_passes_a_rung() -> None:
    pruner = made("asha")
    others = [Curve(n, "running", [(1, float(n))]) for n in range(1, 9)]
    passed = [value for value in range(10) if not pruner.verdict(Curve(0, "running", [(1, value + 0.5)]), others)]
    assert passed == [0, 1, 2]
    said = pruner.verdict(Curve(0, "running", [(0, 4.0), (2, 3.5)]), [*others, Curve(9, "running", [(0, 0.0)])])
    assert said is not None
    assert said.reason == "its best by rung 1, 4, is not among the best 3 of the 9 that got there"
    assert (said.seen["rung"], said.seen["step"], said.seen["threshold"]) == (1, 2, 3.0)
    assert pruner.verdict(Curve(0, "running", [(1, 9.0)]), []) is None, "nobody to lose against"
    assert pruner.verdict(Curve(0, "running", [(1, 1.0)]), others[:1]) is None, "as good as the best"


def test_asked_once_for_a_rung_and_by_the_value_at_the_rung() -> None:
    pruner = made("asha")
    others = [Curve(n, "running", [(1, 5.0), (3, 4.0), (4, 0.0)]) for n in range(1, 9)]
    grid = [(0, 9.0), (1, 4.0), (2, 9.0), (4, 9.0)]
    asked = [step for at, (step, _) in enumerate(grid) if pruner.due(Curve(0, "running", grid[: at + 1]))]
    assert asked == [1, 4]
    assert pruner.verdict(Curve(0, "running", grid), others) is None, "4.0 by rung 3 is as good as theirs by rung 3"
    worse = Curve(0, "running", [(0, 9.0), (2, 4.5), (4, 0.0)])
    assert pruner.verdict(worse, others) is not None, "what it has beyond the rung does not count"
    assert pruner.verdict(Curve(0, "running", [(5, 9.0)]), others) is None, "no value by any rung it has crossed"


def test_a_bracket_is_a_function_of_seed_and_index() -> None:
    pruner = made("hyperband", max_step=81)
    assert isinstance(pruner, Hyperband)
    assert pruner.args() == {"min_step": 1, "eta": 3, "brackets": 4}
    brackets = [pruner.bracket(n) for n in range(400)]
    assert brackets == [make_pruner("hyperband", goal="min", max_step=81, seed=7).bracket(n) for n in range(400)]  # type: ignore[attr-defined]
    assert brackets[:8] == [3, 1, 3, 1, 0, 1, 0, 2], "frozen with version 1"
    assert all(70 < brackets.count(bracket) < 130 for bracket in range(4))
    assert [pruner.steps(brackets.index(bracket)) for bracket in range(4)] == [[1, 3, 9, 27], [3, 9, 27], [9, 27], [27]]


def test_brackets_do_not_mix() -> None:
    pruner = made("hyperband", max_step=81)
    assert isinstance(pruner, Hyperband)
    own = next(n for n in range(100) if pruner.bracket(n) == 0)
    for same in (True, False):
        ns = [n for n in range(100) if (pruner.bracket(n) == 0) == same and n != own]
        others = [Curve(n, "done", [(1, 0.0)]) for n in ns]
        assert (pruner.verdict(Curve(own, "running", [(1, 1.0)]), others) is not None) == same


# those that need nobody


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_diverged(value: float) -> None:
    said = made("diverged", max_step=None).verdict(curve(0, 1.0, value))
    assert said is not None
    assert said.body() == {
        "pruner": "diverged",
        "reason": f"{value} at step 1",
        "seen": {"step": 1, "value": str(value)},
    }
    assert Diverged().verdict(curve(0, 1.0, 2.0)) is None


def test_threshold() -> None:
    pruner = Threshold(lower=-1.0, upper=5.0, warmup=1)
    assert [pruner.verdict(curve(0, *made)) is None for made in ((9.0,), (9.0, 5.0), (0.0, -1.0))] == [True] * 3
    for value, word in ((5.5, "5.5 at step 1 is above 5"), (-2.0, "-2 at step 1 is below -1"), (NAN, "nan at step 1")):
        said = pruner.verdict(curve(0, 0.0, value))
        assert said is not None
        assert said.reason == word
    said = pruner.verdict(curve(0, 0.0, math.inf))
    assert said is not None
    assert said.seen == {"step": 1, "value": "inf", "threshold": 5.0}


def test_patience() -> None:
    pruner = made({"name": "patience", "args": {"steps": 3, "margin": 0.1}})
    own, said = Curve(0, "running"), None
    for step, value in enumerate([5.0, 3.0, 2.95, 2.93, 2.85, 2.84, 2.80, 2.79]):
        own.add(step, value)
        assert said is None
        said = pruner.verdict(own)
    assert said is not None
    assert said.reason == "no better than 2.79 for 3 steps"
    assert said.seen == {"step": 7, "value": 2.79, "since": 4}
    assert made({"name": "patience", "args": {"steps": 3}}, "max").verdict(curve(0, 1.0, 2.0, 3.0, 4.0, 5.0)) is None


@SETTINGS
@given(st.lists(values, max_size=20), st.sampled_from([1, -1]), st.sampled_from([0.0, 0.5]))
def test_a_curve_that_grows_is_the_curve_that_was_there(numbers: list[float], sign: int, margin: float) -> None:
    grown = Curve(0, "running")
    for step, value in enumerate(numbers):
        grown.add(2 * step, value)
        whole = Curve(0, "running", grown.pairs)
        assert [grown.best(at, sign) for at in range(2 * step + 2)] == [
            whole.best(at, sign) for at in range(2 * step + 2)
        ]
        assert grown.best_step(sign, margin) == whole.best_step(sign, margin)
    assert [grown.best(2 * at, -sign) for at in range(len(numbers))] == [
        min((-sign * v if math.isfinite(v) else math.inf) for v in numbers[: at + 1]) for at in range(len(numbers))
    ]


# several, and by name


def test_several_are_one_and_the_first_reason_counts() -> None:
    pruner = made(["diverged", {"name": "threshold", "args": {"upper": 5.0}}, "asha"])
    assert isinstance(pruner, AnyOf)
    assert pruner.label == "diverged,threshold,asha"

    def nobody(least: int, most: int) -> Any:
        raise AssertionError("fetched")

    assert pruner.verdict(curve(0, 1.0), nobody) is None, "asha is not due, so nothing is fetched"
    said = pruner.verdict(curve(0, 1.0, 6.0), nobody)
    assert said is not None
    assert said.pruner == "threshold"
    others = [Curve(n, "running", [(1, 0.0)]) for n in range(1, 5)]
    assert (pruner.verdict(curve(0, 1.0, 2.0), others) or said).pruner == "asha"
    assert (pruner.at_rung(curve(0, 1.0)), pruner.at_rung(curve(0, 1.0, 2.0))) == (False, True)
    assert not made("diverged,patience").needs_curves


@pytest.mark.parametrize(
    "pruner",
    [Median(3, 2, 5), Percentile(10.0), Asha(2, 4), Hyperband(brackets=2), Threshold(upper=1.0), Patience(4, 0.5),
     Diverged(), AnyOf(["diverged", Median(7)])],
    ids=lambda one: one.name,
)  # fmt: skip
def test_a_description_makes_it_again(pruner: Pruner) -> None:
    fitted = made(pruner, max_step=81)
    described = json.loads(json.dumps(fitted.describe()))
    assert made(described, max_step=81) == fitted
    assert hash(made(described, max_step=81)) == hash(fitted)
    assert repr(made(described, max_step=81)) == repr(fitted)
    assert made(pruner.describe(), max_step=81) == fitted, "what was left out is filled in the same way"


def test_rungs_of_a_step_that_no_float_holds() -> None:
    fitted = made("asha", max_step=2**62 + 1)
    assert made(fitted.describe(), max_step=2**62 + 1) == fitted


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("hedian", "unknown pruner 'hedian': the known ones are asha, diverged, hyperband, median"),
        ({"name": "median", "version": 2}, "version 2"),
        ({"name": "median", "version": True}, "True is no version of pruner"),
        ({"name": "median", "args": {"x": 1}}, "does not take"),
        ({"name": "threshold", "args": {"upper": 10**400}}, "must be a finite number"),
        ({"name": "threshold", "args": {"upper": 10**9000}}, "must be a finite number"),
        ({"name": "median", "args": {"startup": 10**9000}}, "must be an int"),
        ({"name": "median", "args": [1]}, "cannot be the arguments"),
        ({"name": "median", "extra": 1}, "'extra'"),
        (Median, r"Median\(\)"),
        (3, "is no pruner"),
        ([], "a list of pruners"),
        (["diverged", ["median", "asha"]], "not lists"),
        ("threshold", "lower or an upper"),
        ({"name": "threshold", "args": {"lower": 2, "upper": 1}}, "above upper"),
        ({"name": "threshold", "args": {"upper": NAN}}, "finite"),
        ({"name": "percentile", "args": {"percent": 100}}, "between 0 and 100"),
        ({"name": "median", "args": {"startup": 0}}, "at least 1"),
        ({"name": "asha", "args": {"eta": 1}}, "at least 2"),
        ({"name": "patience", "args": {"margin": -1}}, "negative"),
        ({"name": "hyperband", "args": {"brackets": 9}}, "more than the 3 rungs"),
    ],
)  # fmt: skip
def test_what_is_no_pruner_is_said(spec: Any, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        made(spec)


def test_rungs_need_a_last_step() -> None:
    with pytest.raises(UsageError, match="'asha' needs to know how long a trial is: say max_step="):
        make_pruner("asha", goal="min")
    with pytest.raises(UsageError, match="'hyperband' needs"):
        make_pruner("diverged,hyperband", goal="min")
    assert make_pruner("asha").name == "asha", "a name alone is not a study's pruner yet"
    with pytest.raises(UsageError, match="goal"):
        Median(1).verdict(curve(0, 1.0), [curve(1, 1.0)])


def test_one_of_your_own() -> None:
    class Seventh(Pruner):
        def decide(self, own: Curve, others: Any) -> Any:
            return None

    pruner = make_pruner(Seventh(), goal="min")
    assert pruner.name.endswith("Seventh")
    assert pruner.verdict(curve(0, 1.0)) is None
