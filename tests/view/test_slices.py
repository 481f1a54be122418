"""Scores along one parameter and over two: every result is somewhere, and in the right place."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import body_at, plant
from tests.space.spaces import json_like, params, units
from tests.view.studies import SPACE, Lab

from dibs import Choice, Constant, Float, Int, Space, Study
from dibs.errors import UsageError
from dibs.space import Param
from dibs.view import Summary, best_so_far, contour, slices
from dibs.view._rulers import Ruler

CONDITIONAL = Space(
    x=Float(0, 1), k=Int(1, 3), opt=Choice("adam", "sgd"), momentum=Float(0, 1, when={"opt": ["sgd"]}), epochs=30
)


def studied(space: Space, results: list[tuple[dict[str, Any], float]], name: str = "it", goal: Any = "min") -> Lab:
    """A study of done trials with just these points and scores."""
    lab = Lab(defined=False)
    lab.name = name
    study = Study(lab.store, name, space, goal=goal)
    for point, _ in results:
        study.enqueue(point)
    scores = {json.dumps(space.check(point), sort_keys=True): score for point, score in results}
    for trial in study.trials(len(results)):
        with trial:
            trial.done(scores[json.dumps(trial.point, sort_keys=True)])
    return lab


@given(params, st.lists(units, max_size=20))
def test_every_value_lies_in_the_band_that_says_so(param: Param, us: list[float]) -> None:
    ruler = Ruler("p", param)
    bands = ruler.axis.bands
    assert bands
    for u in [0.0, *us, 1.0]:
        value = param.value(u)
        band = bands[ruler.at(ruler.value(value))]
        if ruler.axis.kind == "choice":
            assert (type(band.choice), band.choice) == (type(value), value)
        else:
            last = band is bands[-1] or isinstance(param, Int)
            assert band.low is not None
            assert band.high is not None
            assert band.low <= value
            assert value <= band.high if last else value < band.high


@given(params)
def test_bands_of_numbers_follow_one_another_from_end_to_end(param: Param) -> None:
    bands = Ruler("p", param).axis.bands
    if isinstance(param, Int):
        assert (bands[0].low, bands[-1].high) == (param.low, param.cell(param.cells - 1))
        assert all(one.high + param.step == next.low for one, next in itertools.pairwise(bands))
        assert all(one.low <= one.high for one in bands)
    elif isinstance(param, Float) and param.cells is None:
        assert (bands[0].low, bands[-1].high) == (param.low, param.high)
        assert all(one.high == next.low and one.low < next.low for one, next in itertools.pairwise(bands))
    assert len(bands) <= 8 or isinstance(param, Choice)


def test_a_slice_has_every_result_and_each_band_its_own() -> None:
    lab = studied(CONDITIONAL, [({"x": x / 8, "k": 1 + x % 3, "opt": "adam"}, float(x)) for x in range(8)])
    told = slices(lab.source())
    assert [one.axis.name for one in told.slices] == ["k", "momentum", "opt", "x"]
    by_name = {one.axis.name: one for one in told.slices}
    assert sorted((spot.value, spot.score) for spot in by_name["x"].spots) == [(x / 8, float(x)) for x in range(8)]
    assert [band.count for band in by_name["x"].bands] == [1] * 8
    assert [(band.low, band.high) for band in by_name["k"].axis.bands] == [(1, 1), (2, 2), (3, 3)]
    trial = next(result.n for result in Study(lab.store, "it").results() if result.score == 1.0)
    assert by_name["k"].bands[1] == Summary(3, 1.0, 4.0, 4.0, trial, 3)  # x = 1, 4, 7
    assert by_name["momentum"].inactive == 8
    assert by_name["momentum"].spots == ()
    assert by_name["opt"].bands == (
        Summary(8, 0.0, 3.5, 3.5, by_name["opt"].bands[0].n, 8), Summary(0, None, None, None, None, 0),
    )  # fmt: skip


def test_the_best_of_a_band_goes_by_the_goal() -> None:
    points = [{"x": x, "k": 1, "opt": "adam"} for x in (0.1, 0.2, 0.3)]
    results = list(zip(points, [1.0, 3.0, 2.0], strict=True))
    for goal, best in (("min", 1.0), ("max", 3.0)):
        (one,) = slices(studied(CONDITIONAL, results, goal=goal).source(), ["k"]).slices
        assert one.bands[0].best == best


def test_failed_pruned_and_running_trials_are_not_results_and_attached_ones_are() -> None:
    lab = Lab()
    lab.trial(0, "failed")
    lab.trial(1, "pruned", [0.01])
    lab.trial(2, "done", [0.2])
    lab.begin(3)
    lab.study.attach(lab.point(5), 0.1)
    told = slices(lab.source(), ["lr"])
    assert (told.results, told.attached) == (2, 1)
    assert [(spot.n, spot.score) for spot in told.slices[0].spots] == [(None, 0.1), (2, 0.2)]


def test_types_are_told_apart_and_said_in_json() -> None:
    space = Space(c=Choice(True, 1, 1.0, "1", None, (1, 2)))
    lab = studied(space, [])
    study = Study(lab.store, "it")
    for k, value in enumerate(space["c"].values):  # type: ignore[attr-defined]
        study.attach({"c": value}, float(k))
    (one,) = slices(lab.source()).slices
    assert [band.best for band in one.bands] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    said = [spot["value"] for spot in json.loads(json.dumps(one.to_json()))["spots"]]
    assert sorted(map(repr, said)) == sorted(map(repr, [True, 1, 1.0, "1", None, {"tuple": [1, 2]}]))


def test_values_that_are_none_of_the_parameters_are_counted_and_left_out() -> None:
    lab = Lab()
    for n in range(3):
        lab.trial(n, "done", [float(n)])
    key = lab.store.keys("spam").attempt(1, 0)
    for hostile in ("a text", 1e300, True, None, {"tuple": [1]}):
        body = body_at(lab.store, key)
        plant(lab.store, key, {**body, "point": {**body["point"], "lr": hostile}})
        told = slices(lab.source(), ["lr"]).slices[0]
        assert (told.outside, len(told.spots), sum(band.count for band in told.bands)) == (1, 2, 2), hostile
        assert contour(lab.source(), "lr", "opt").outside == 1


def test_scores_as_large_as_a_float_can_be_do_not_overflow() -> None:
    lab = Lab()
    for n, score in enumerate([1.7e308, 1.7e308, -1.7e308, 1.7e308]):
        lab.trial(n, "done", [score])
    (one,) = slices(lab.source(), ["opt"]).slices
    assert one.bands[1].median == 1.7e308
    assert one.bands[1].mean == pytest.approx(0.85e308)
    json.dumps(slices(lab.source()).to_json(), allow_nan=False)


def test_what_is_no_parameter_is_said_with_those_there_are() -> None:
    source = studied(CONDITIONAL, []).source()
    with pytest.raises(UsageError, match=r"no parameter 'lr'; it has 'epochs', 'k', 'momentum', 'opt', 'x'"):
        slices(source, ["lr"])
    with pytest.raises(UsageError, match="'epochs' is a constant"):
        slices(source, ["epochs"])
    with pytest.raises(UsageError, match="two parameters"):
        contour(source, "x", "x")
    assert len(slices(source, ["x", "x"]).slices) == 1


def test_without_a_definition_the_axes_are_those_seen() -> None:
    lab = Lab(defined=False)
    for n in range(3):
        lab.trial(n, "done", [float(n)])
    told = {one.axis.name: one.axis for one in slices(lab.source()).slices}
    assert (told["lr"].kind, told["lr"].assumed, told["opt"].kind) == ("float", True, "choice")
    assert (told["lr"].bands[0].low, told["lr"].bands[-1].high) == (0.001, 0.003)
    with pytest.raises(UsageError, match="seen: 'lr', 'opt'"):
        slices(lab.source(), ["x"])
    empty = Lab(defined=False)
    empty.begin(0)
    assert slices(empty.source()).slices == ()


def test_a_contour_has_every_result_in_one_cell() -> None:
    points = [({"x": x / 8, "k": 1 + x % 3, "opt": "sgd", "momentum": 0.5}, float(x)) for x in range(8)]
    told = contour(studied(CONDITIONAL, points).source(), "x", "k")
    assert sum(cell.scores.count for cell in told.cells) == len(told.spots) == 8
    for spot in told.spots:
        (cell,) = [cell for cell in told.cells if cell.x == int(spot.x * 8) and cell.y == spot.y - 1]
        assert (cell.scores.count, cell.scores.best) == (1, spot.score)
    assert (told.x.name, told.y.name, len(told.y.bands)) == ("x", "k", 3)


def test_inactive_parameters_are_counted() -> None:
    points = [
        ({"x": 0.5, "k": 1, "opt": "adam"}, 1.0), ({"x": 0.5, "k": 1, "opt": "sgd", "momentum": 0.25}, 2.0),
    ]  # fmt: skip
    told = contour(studied(CONDITIONAL, points).source(), "momentum", "opt")
    assert (told.inactive, len(told.spots), told.cells[0].scores.best) == (1, 1, 2.0)
    assert (told.cells[0].x, told.cells[0].y) == (2, 1)


def test_a_constant_among_the_searched_needs_no_special_case() -> None:
    assert Ruler("c", Constant("x")).axis.bands[0].choice == "x"
    assert math.isclose(Ruler("f", Float(1.0, 1.0)).axis.bands[0].high or 0.0, 1.0)


def test_reading_writes_nothing() -> None:
    lab = Lab()
    lab.trial(0, "done", [0.2])
    slices(lab.source())  # the source's backend refuses every writing verb
    contour(lab.source(), "lr", "opt")
    assert SPACE.axes == ("lr", "opt")


@given(st.dictionaries(st.sampled_from(["lr", "opt", "x", ""]), json_like, max_size=4), json_like, st.booleans())
def test_whatever_somebody_wrote_into_a_record_the_others_are_shown(point: Any, score: Any, defined: bool) -> None:
    lab = Lab(defined=defined)
    for n in range(3):
        lab.trial(n, "done", [float(n)])
    key = lab.store.keys("spam").attempt(1, 0)
    plant(lab.store, key, json.dumps({**body_at(lab.store, key), "point": point, "score": score}))
    told = slices(lab.source())
    for one in told.slices:
        assert len(one.spots) + one.inactive + one.outside == told.results >= 2
    names = [one.axis.name for one in told.slices]
    for picture in (told, best_so_far(lab.source()), contour(lab.source(), names[0], names[1])):
        json.dumps(picture.to_json(), allow_nan=False)
