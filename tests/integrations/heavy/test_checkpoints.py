"""Checkpoints and tables that only their own library loads: what is hostile or not finite is named all the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dibs._clock import SystemClock
from dibs.sweep._loading import Loaded, load_all

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # the libraries' own


class Bomb:
    """A pickle that, loaded, makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def loaded(path: Path, how: str) -> Loaded:
    (told,) = load_all([(path, how)], SystemClock())
    return told


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is several gigabytes: install it in this environment by hand")


def test_weights_load_and_nan_is_named(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "best.pth"
    weights = {"model": {"w": torch.ones(3), "b": torch.tensor([1.0, float("nan")])}, "epoch": 3, "best": float("inf")}
    torch.save({"model": {"w": torch.ones(3)}, "optimizer": [torch.zeros(2, dtype=torch.int64)]}, path)
    assert loaded(path, "torch") == Loaded("loaded", "2 tensors")
    torch.save(weights, path)
    assert loaded(path, "torch") == Loaded("not finite", "NaN or an infinity in model.b")
    torch.save({"h": torch.tensor([float("inf")]).bfloat16(), "q": torch.tensor([1.0]).to(torch.float8_e5m2)}, path)
    assert loaded(path, "torch") == Loaded("not finite", "NaN or an infinity in h")
    torch.save({"s": torch.eye(3).to_sparse(), "c": torch.ones(2, dtype=torch.complex64)}, path)
    assert loaded(path, "torch").state == "loaded"


def test_a_checkpoint_with_code_in_it_is_not_run(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "best.pth"
    for old in (True, False):
        torch.save({"w": torch.ones(3), "x": Bomb(tmp_path / "boom")}, path, _use_new_zipfile_serialization=not old)
        told = loaded(path, "torch")
        assert (told.state, (tmp_path / "boom").exists()) == ("does not load", False)


def test_a_torn_or_an_empty_checkpoint_does_not_load(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "best.pth"
    torch.save({"epoch": 3}, path)
    assert loaded(path, "torch") == Loaded("does not load", "it holds no tensor")
    torch.save({"w": torch.ones(300)}, path)
    path.write_bytes(path.read_bytes()[:-200])
    assert loaded(path, "torch").state == "does not load"
    path.write_bytes(b"")
    assert loaded(path, "torch").state == "does not load"


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "m.parquet"
    parquet.write_table(
        pyarrow.table({"epoch": [1, 2, None], "loss": [0.5, 0.25, None], "name": ["a", "b", "c"]}), path
    )
    assert loaded(path, "parquet") == Loaded("loaded", "3 rows")
    parquet.write_table(pyarrow.table({"epoch": [1, 2], "loss": [0.5, float("inf")]}), path)
    assert loaded(path, "parquet") == Loaded("not finite", "NaN or an infinity in loss")
    parquet.write_table(pyarrow.table({"loss": pyarrow.array([], pyarrow.float64())}), path)
    assert loaded(path, "parquet").what == "it holds no row"
    path.write_bytes(path.read_bytes()[:-8])
    assert loaded(path, "parquet").state == "does not load"


@pytest.mark.parametrize("kind", ["list", "fixed", "struct", "map", "deep"])
@pytest.mark.parametrize("bad", [False, True])
def test_what_a_column_of_parquet_holds_inside_is_looked_at_too(kind: str, bad: bool, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    one = float("nan") if bad else 2.0
    rows, of = {
        "list": ([[1.0, one, None], None], pa.list_(pa.float32())),
        "fixed": ([[1.0, one], None], pa.list_(pa.float64(), 2)),
        "struct": ([{"x": one, "y": "a"}, None], pa.struct({"x": pa.float64(), "y": pa.string()})),
        "map": ([[("k", one)], None], pa.map_(pa.string(), pa.float64())),
        "deep": ([[{"x": [one]}], []], pa.list_(pa.struct({"x": pa.large_list(pa.float64())}))),
    }[kind]
    path = tmp_path / "m.parquet"
    parquet.write_table(pa.table({"id": [1, 2], "held": pa.array(rows, of)}), path)
    assert loaded(path, "parquet") == (
        Loaded("not finite", "NaN or an infinity in held") if bad else Loaded("loaded", "2 rows")
    )
