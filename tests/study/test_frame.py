"""study.frame(): one row per trial, for pandas or polars, or a sentence that names both."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.study.frames import a_study

from dibs import Choice, Float, Space, Study, UsageError
from dibs.study import _frame
from dibs.study._frame import columns_of

SPACE = Space(x=Float(0.0, 1.0), c=Choice("a", 1, None, (1, 2)), y=Float(0.0, 1.0, when={"c": ["a"]}))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    study = a_study(tmp_path, SPACE)
    study.claimer(13).step()
    return study


def test_the_columns(study: Study) -> None:
    columns = columns_of(study.results(), SPACE.names)
    assert list(columns) == [
        "n", "attempt", "state", "score", "point.c", "point.x", "point.y", "me", "host", "started", "took_s", "reason",
    ]  # fmt: skip
    assert {len(column) for column in columns.values()} == {13}
    assert columns["n"] == list(range(13))
    assert columns["state"] == ["done"] * 3 + ["failed"] + ["done"] * 8 + ["running"]
    assert columns["score"][3] is None
    assert columns["score"][0] == columns["point.x"][0]
    assert "ValueError" in columns["reason"][3]
    assert [y is None for y in columns["point.y"]] == [c != "a" for c in columns["point.c"]]
    assert set(columns["point.c"]) == {"a", 1, None, "(1, 2)"}


def test_several_scores_and_constraints_are_columns_of_their_own(tmp_path: Path) -> None:
    study = Study(tmp_path / "store", "s", SPACE, goal=["min", "max"], sampler="sobol")
    assert [name for name in columns_of(study.results(), goals=2) if name.startswith("score")] == ["score.0", "score.1"]
    for trial in study.trials(3):
        with trial:
            trial.done([trial.n, 1] if trial.n else [1], constraints={"gb": -0.5} if trial.n == 2 else None)
    columns = columns_of(study.results(), SPACE.names, goals=2)
    assert (columns["score.0"], columns["score.1"]) == ([None, 1.0, 2.0], [None, 1.0, 1.0])
    assert columns["constraint.gb"] == [None, None, -0.5]
    assert "score" not in columns


def test_a_reason_can_be_written_whatever_was_raised(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "dibs")  # a report of this test could not be sent with what is logged
    for trial in study.trials(14):
        with trial:
            raise ValueError("é \ud800")
    said = columns_of(study.results(), SPACE.names)["reason"][13]
    assert said == "ValueError: é \\ud800"
    assert said.encode("utf-8")


def test_a_study_without_trials_has_its_columns(tmp_path: Path) -> None:
    study = Study(tmp_path / "store", "s", SPACE, goal="min")
    assert columns_of(study.results(), SPACE.names)["point.y"] == []


def test_a_parameter_may_be_called_as_a_field_is(tmp_path: Path) -> None:
    study = Study(tmp_path / "store", "s", {"n": Float(0.0, 1.0), "state": Choice("a")}, goal="min")
    for trial in study.trials(1):
        trial.done(1.0)
    columns = columns_of(study.results())
    assert (columns["n"], columns["state"], columns["point.state"]) == ([0], ["done"], ["a"])


def test_neither_library_is_a_sentence(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(_frame, "import_module", missing)
    with pytest.raises(UsageError, match="pandas or polars"):
        study.frame()
