"""tests/data/format-1-goals/ was written once by the first writer of several goals and constraints, and is read as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.make_format_1_goals import NAME
from tests.study.formats import copy_of

from dibs import RefusedError, Store, Study
from dibs.record import decode, encode
from dibs.upkeep import check

DATA = Path(__file__).parents[1] / "data" / "format-1-goals"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return copy_of(DATA, tmp_path, monkeypatch)


def test_nothing_of_it_was_changed() -> None:
    files = list(DATA.rglob("*.json"))
    assert len(files) == 12
    for path in files:
        data = path.read_bytes()
        assert encode(decode(data, path.name)) == data


def test_several_goals(store: Store) -> None:
    study = Study(store, NAME)
    assert study.goal == ("min", "max")
    assert [(result.state, result.scores, result.constraints) for result in study.results()] == [
        ("done", (0.0, 4.0), None),
        ("failed", (), None),
        ("done", (2.0, 2.0), {"gb": -1.5, "é": -1.0}),
        ("done", (3.0, 1.0), {"gb": -0.5, "é": -1.0}),
        ("done", (4.0, 0.0), {"gb": 0.5, "é": -1.0}),
    ]
    assert [result.n for result in study.front()] == [0]
    history = study.finished()
    assert history.scores.tolist() == [[0.5, 7], [0, 4], [2, 2], [3, 1], [4, 0]]
    assert [None if excess != excess else excess for excess in history.excess.tolist()] == [0.25, None, -1, -0.5, 0.5]
    with pytest.raises(RefusedError, match="goal"):
        Study(store, NAME, goal=["max", "min"])


def test_constraints_with_one_goal(store: Store) -> None:
    study = Study(store, "bound")
    assert (study.best().n, study.best().score, study.best().constraints) == (1, 1.0, {"kg": 0.0})
    assert [result.score for result in study.results()] == [0.0, 1.0, 2.0]


def test_nothing_is_wrong_with_it(store: Store) -> None:
    assert [finding for finding in check(store, deep=True).findings if finding.fault] == []
