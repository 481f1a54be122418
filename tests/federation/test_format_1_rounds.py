"""tests/data/format-1-rounds/ was written once by the first writer of federated rounds, and is read as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.make_format_1_rounds import RUN, export
from tests.study.formats import copy_of

from dibs import RefusedError, RoundStopped, RoundTimeout, Store
from dibs.federation import Tensor, gather, latest, verify
from dibs.record import decode, encode
from dibs.upkeep import check
from dibs.view import run_status

DATA = Path(__file__).parents[1] / "data" / "format-1-rounds"
COMMON = {"run": RUN, "clients": ["a", "b", "c"], "client": "a", "bad": "drop", "within": 0.001}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return copy_of(DATA, tmp_path, monkeypatch)


def test_nothing_of_it_was_changed() -> None:
    files = list(DATA.rglob("*.json"))
    assert len(files) == 28
    for path in files:
        data = path.read_bytes()
        assert encode(decode(data, path.name)) == data


def test_its_averages_are_still_what_their_updates_make(store: Store) -> None:
    assert [(one.round, one.state) for one in verify(store, RUN)] == [
        (0, "put away"), (1, "same"), (2, "same"), (3, "same"), (4, "open"),
    ]  # fmt: skip


def test_what_it_says_of_its_rounds(store: Store) -> None:
    zero, one, two, three, four = run_status(store).rounds
    assert (zero.late, zero.weights, zero.kept) == (("c",), {"a": 1 / 3, "b": 2 / 3}, False)
    assert (one.rejected, one.weights) == ({"c": "tensor 'n/w' holds NaN or an infinity"}, {"a": 0.5, "b": 0.5})
    assert (two.state, three.state, three.reason) == (
        "done",
        "stopped",
        "2 of 3 updates can be averaged, and 3 are wanted",
    )
    assert (four.state, four.answered, four.missing) == ("waiting", ("a",), ("b", "c"))


def test_a_run_goes_on_with_it(store: Store) -> None:
    newest = latest(store, RUN)
    assert newest is not None
    assert newest.round == 2
    half = newest.tensors["n"]["h"]
    assert isinstance(half, Tensor)
    assert (half.words.tolist(), newest.tensors["m"]["c"].item()) == ([0x3F80], 3)
    with pytest.raises(RoundTimeout, match="missing: 'b', 'c'"):
        gather(store, export(1.4), round=4, **COMMON)
    with pytest.raises(RoundStopped):
        gather(store, export(1.3), round=3, quorum=3, **COMMON)
    with pytest.raises(RefusedError, match="quorum"):
        gather(store, export(1.4), round=4, quorum=2, **COMMON)


def test_nothing_is_wrong_with_it(store: Store) -> None:
    assert [finding for finding in check(store, deep=True).findings if finding.fault] == []
