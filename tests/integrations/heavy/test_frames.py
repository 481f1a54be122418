"""study.frame() with the libraries themselves, and their tables in a pickle that is verified."""

from __future__ import annotations

import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.study.frames import a_study

from dibs import Choice, Float, Int, Space, Study
from dibs._clock import SystemClock
from dibs.study import _frame
from dibs.sweep._loading import Loaded, load_all

pytestmark = pytest.mark.integrations
SPACE = Space(x=Float(0.0, 1.0), k=Int(1, 9), c=Choice("a", 1, None), y=Float(0.0, 1.0, when={"c": ["a"]}))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return a_study(tmp_path, SPACE)


def only(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    def found(name: str) -> Any:
        if name != library:
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(_frame, "import_module", found)


def test_pandas(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "pandas")
    frame = study.frame()
    assert len(frame) == 12
    assert frame["n"].dtype == "int64"
    assert frame["score"].dtype == "float64"
    assert frame["point.k"].dtype == "int64"
    assert frame["score"].isna().tolist() == [n == 3 for n in range(12)]
    assert [type(value) for value in frame["point.c"]] == [type(result.point["c"]) for result in study.results()]
    assert frame.loc[frame["score"].idxmin(), "point.x"] == study.best().point["x"]


def test_polars(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "polars")
    frame = study.frame()
    assert frame.height == 12
    assert frame["score"].null_count() == 1
    assert frame["n"].to_list() == list(range(12))
    assert frame["point.x"].to_list() == [result.point["x"] for result in study.results()]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_in_a_pickle_is_looked_at(library: str, tmp_path: Path) -> None:
    frame = import_module(library).DataFrame
    path = tmp_path / "m.pkl"
    for last, told in [(0.25, "loaded"), (float("inf"), "not finite")]:
        path.write_bytes(pickle.dumps({"scores": frame({"name": ["a", "b"], "loss": [0.5, last]})}))
        assert [loaded.state for loaded in load_all([(path, "pickle")], SystemClock())] == [told]
    assert load_all([(path, "pickle")], SystemClock()) == [Loaded("not finite", "NaN or an infinity in scores")]
