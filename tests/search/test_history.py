"""The history: sorted, immutable, its columns, and what plain lists become."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from dibs.errors import UsageError
from dibs.search import STATES, History

ROWS: list[Any] = [
    (7, {"x": 7}, 0.7, "done", 29),
    (2, {"x": 2}, None, "running", None),
    (5, {"x": 5}, None, "failed", 3),
    (3, {"x": 3}, 0.3, "pruned", 0),
]


def test_sorted_by_index_with_columns() -> None:
    history = History.of(ROWS)
    assert list(history) == [({"x": 2}, None), ({"x": 3}, 0.3), ({"x": 5}, None), ({"x": 7}, 0.7)]
    assert history.n.tolist() == [2, 3, 5, 7]
    assert history.step.tolist() == [-1, 0, 3, 29]
    assert [STATES[code] for code in history.state] == ["running", "pruned", "failed", "done"]
    assert np.array_equal(history.score, [math.nan, 0.3, math.nan, 0.7], equal_nan=True)
    assert [c.dtype.name for c in (history.n, history.score, history.state, history.step)] == [
        "int64",
        "float64",
        "int8",
        "int64",
    ]
    assert history.points == ({"x": 2}, {"x": 3}, {"x": 5}, {"x": 7})
    assert (len(history), bool(history), bool(History())) == (4, True, False)
    assert history.n is history.n


def test_a_sequence() -> None:
    history = History.of(ROWS)
    assert history[0] == ({"x": 2}, None)
    assert history[-1] == ({"x": 7}, 0.7)
    assert isinstance(history[1:3], History)
    assert history[1:3].n.tolist() == [3, 5]
    assert history[::2].n.tolist() == [2, 5]
    assert ({"x": 7}, 0.7) in history
    assert history.index(({"x": 3}, 0.3)) == 1
    with pytest.raises(IndexError):
        history[4]
    with pytest.raises(UsageError, match="reverse"):
        history[::-1]


def test_put_together_only_when_somebody_looks() -> None:
    made = []

    def make() -> History:
        made.append(1)
        return History.of(ROWS)

    later = History.later(4, make)
    both = later + History.of([(1, {"x": 1}, 0.1, "done", None)]) + History.of([])
    assert (len(later), len(both), bool(later), made) == (4, 5, True, [])
    assert both.n.tolist() == [1, 2, 3, 5, 7]
    assert both.points[0] == {"x": 1}
    assert later.points == History.of(ROWS).points
    assert later == History.of(ROWS)
    assert later.score is later.score
    assert made == [1]
    assert pickle.loads(pickle.dumps(History.later(4, make))) == History.of(ROWS)
    assert History.of(ROWS) + History.later(4, make) == History.of([row for row in ROWS for _ in range(2)])
    with pytest.raises(AttributeError, match="nothing"):
        later.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        later.n = later.n  # type: ignore[misc]


@pytest.mark.parametrize("turned", [False, True])
def test_a_long_sum_is_put_together_however_many_wait(turned: bool) -> None:
    total: Any = []
    for n in range(2_000):
        one = History.later(1, lambda n=n: History.of([(n, {"x": n}, float(n), "done", None)]))  # type: ignore[misc]
        total = one + total if turned else total + one
    assert isinstance(total, History)
    assert len(total) == 2_000
    assert total.n.tolist() == list(range(2_000))
    assert [point["x"] for point, _ in total] == list(range(2_000))


def test_a_short_sum_waits() -> None:
    made: list[int] = []

    def one(n: int) -> History:
        return History.later(1, lambda: made.append(n) or History.of([(n, {}, 1.0, "done", None)]))  # type: ignore[func-returns-value]

    total = one(2) + one(1) + one(3) + [({}, 2.0)]
    assert len(total) == 4
    assert not made
    assert total.n.tolist() == [-1, 1, 2, 3]
    assert sorted(made) == [1, 2, 3]


def test_it_does_not_change() -> None:
    history = History.of(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        history.score[0] = 1
    with pytest.raises(AttributeError):
        history.score = np.zeros(4)  # type: ignore[misc]
    with pytest.raises(TypeError):
        history[0] = ({}, 1)  # type: ignore[index]
    assert history + History.of(ROWS[:1]) is not history
    assert len(history) == 4


def test_joining_sorts() -> None:
    finished, flying = History.of(ROWS[::2]), History.of(ROWS[1::2])
    joined = finished + flying
    assert joined == History.of(ROWS) == flying + finished
    assert joined.n.tolist() == [2, 3, 5, 7]
    assert joined != finished
    assert joined != list(joined)
    same = History.of([(7, {"x": "again"}, 1.0, "done", None)])
    assert (joined + same).points[-2:] == ({"x": 7}, {"x": "again"})
    assert (same + joined).points[-2:] == ({"x": "again"}, {"x": 7})


def test_plain_pairs_have_no_index_and_come_first() -> None:
    plain = [({"x": 1}, 0.1), ({"x": 0}, None), ({"x": 2}, math.nan), ({"x": 3}, math.inf)]
    history = History.coerce(plain)
    assert history.n.tolist() == [-1] * 4
    assert history.points == tuple(point for point, _ in plain)
    assert [STATES[code] for code in history.state] == ["done", "running", "failed", "failed"]
    assert [score for _, score in history] == [0.1, None, None, None]
    assert History.coerce(history) is history
    assert (History.of(ROWS) + plain).n.tolist() == [-1] * 4 + [2, 3, 5, 7]
    assert (plain + History.of(ROWS)).n.tolist() == [-1] * 4 + [2, 3, 5, 7]
    assert len(History.coerce(iter(plain))) == 4


def test_numpy_scores_become_plain() -> None:
    history = History.of([(np.int64(1), {}, np.float32(0.5), "done", np.int64(3))])
    assert type(history[0][1]) is float
    assert history == History.of([(1, {}, 0.5, "done", 3)])


@pytest.mark.parametrize("wrong", [[1, 2], [({}, "high")], [({}, 1, 2)], 3, [({}, [1])]])
def test_what_is_no_history(wrong: Any) -> None:
    with pytest.raises(UsageError, match="list of"):
        History.coerce(wrong)


def test_an_unknown_state() -> None:
    with pytest.raises(UsageError, match="'lost' is none of running"):
        History.of([(1, {}, None, "lost", None)])


def test_pickled_and_printed() -> None:
    history = History.of(ROWS)
    assert pickle.loads(pickle.dumps(history)) == history
    assert repr(history) == "<History of 4, 2 with a score>"
    with pytest.raises(TypeError):
        hash(history)


# -- several goals and constraints -------------------------------------------------------------------------------------

MANY: list[Any] = [
    (4, {"x": 4}, (0.4, -4.0), "done", None, -0.5),
    (1, {"x": 1}, None, "running", None),
    (2, {"x": 2}, [0.2, math.nan], "done", None, 3.0),
    (3, {"x": 3}, (0.3, -3.0), "done", 7, None),
]


def test_one_goal_is_a_view_and_no_constraints_cost_nothing() -> None:
    history = History.of(ROWS)
    assert history.scores.shape == (4, 1)
    assert np.shares_memory(history.scores, history.score)
    assert history.excess.shape == (4,)
    assert np.isnan(history.excess).all()
    assert history.excess.strides == (0,)  # one number for all rows
    later = History.later(4, lambda: History.of(ROWS))
    assert np.array_equal(later.scores, history.scores, equal_nan=True)
    with pytest.raises(ValueError, match="read-only"):
        history.scores[0, 0] = 1
    assert (History().scores.shape, History().excess.shape) == ((0, 1), (0,))


def test_several_goals() -> None:
    history = History.of(MANY)
    nan = math.nan
    assert list(history) == [({"x": 1}, None), ({"x": 2}, None), ({"x": 3}, (0.3, -3.0)), ({"x": 4}, (0.4, -4.0))]
    assert history[2] == ({"x": 3}, (0.3, -3.0))
    assert np.array_equal(history.scores, [[nan, nan], [nan, nan], [0.3, -3], [0.4, -4]], equal_nan=True)
    assert np.isnan(history.score).all()
    assert np.array_equal(history.excess, [nan, 3, nan, -0.5], equal_nan=True)
    assert repr(history) == "<History of 4, 2 with a score>"
    assert np.array_equal(history[1:].scores, history.scores[1:], equal_nan=True)
    assert np.array_equal(history[::2].excess, history.excess[::2], equal_nan=True)
    assert pickle.loads(pickle.dumps(history)) == history
    assert History.later(4, lambda: history) == history
    assert History.coerce(history) is history
    columns = history.n, history.score, history.state, history.step, history.points, history.scores, history.excess
    assert History.columns(*columns) == history
    with pytest.raises(ValueError, match="read-only"):
        history.scores[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        history.excess[0] = 1


def test_what_differs_in_the_new_columns_differs() -> None:
    history = History.of(MANY)
    other = [row if row[0] != 4 else (*row[:2], (0.4, -4.5), *row[3:]) for row in MANY]
    kept = [row if row[0] != 4 else (*row[:5], -0.25) for row in MANY]
    assert history != History.of(other)
    assert history != History.of(kept)
    assert history != History.of([row[:5] for row in MANY])
    assert history == History.of(MANY[::-1])


def test_several_goals_are_joined_whatever_joins() -> None:
    whole = History.of(MANY)
    assert History.of(MANY[::2]) + History.of(MANY[1::2]) == whole
    assert History.of(MANY[1::2]) + History.of(MANY[::2]) == whole
    one = History.of([(9, {"x": 9}, 0.9, "done", None), (0, {"x": 0}, None, "running", None)])
    for both in (one + whole, whole + one):
        assert both.n.tolist() == [0, 1, 2, 3, 4, 9]
        assert both.scores.shape == (6, 2)
        assert [score for _, score in both] == [None, None, None, (0.3, -3.0), (0.4, -4.0), None]
        assert np.isnan(both.score).all()
    three = History.of([(7, {"x": 7}, (1.0, 2.0, 3.0), "done", None)]) + whole
    assert three.scores.shape == (5, 3)
    assert [score for _, score in three][-1] == (1.0, 2.0, 3.0)
    assert [score for _, score in three][:4] == [None] * 4


def test_plain_pairs_of_several_scores() -> None:
    history = History.coerce([({"x": 1}, (0.1, 2)), ({"x": 0}, None), ({"x": 2}, (1.0, math.inf)), ({"x": 3}, [3, 4])])
    assert [STATES[code] for code in history.state] == ["done", "running", "failed", "done"]
    assert [score for _, score in history] == [(0.1, 2.0), None, None, (3.0, 4.0)]
