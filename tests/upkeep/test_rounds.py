"""Federated rounds under check, gc and copy: what a round names is missed, kept and copied, unless it was put away."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.federation.rounds import model, together
from tests.parts import body_at, plant

from dibs import Store
from dibs.federation import latest, verify
from dibs.federation._forgetting import forget
from dibs.store import RoundKeys, blob_key
from dibs.upkeep import Copier, check, find_garbage, open_copy

KEYS = RoundKeys("r")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store", create=True)
    for round in range(2):
        together(made, {name: model(name, round) for name in "ab"}, round=round, clip=5.0, base=model("z"))
    return made


def test_a_store_with_rounds_is_as_it_should_be(store: Store) -> None:
    report = check(store, deep=True)
    assert report.findings == ()
    assert find_garbage(store, blob_age_s=-1e9, other_age_s=-1e9).removals == ()


@pytest.mark.parametrize("which", ["update", "average", "layout", "base"])
def test_a_blob_that_a_round_names_is_missed(store: Store, which: str) -> None:
    digest = {
        "update": body_at(store, KEYS.update(1, "a"))["blob"], "average": body_at(store, KEYS.average(1))["blob"],
        "layout": body_at(store, KEYS.terms(1))["layout"], "base": body_at(store, KEYS.terms(1))["base"],
    }[which]  # fmt: skip
    store.backend.delete(blob_key(digest))
    found = check(store).findings
    assert {finding.kind for finding in found} == {"missing"}
    assert any(finding.key.startswith("round/r/0000000") for finding in found)


def test_what_was_put_away_is_not_missed(store: Store) -> None:
    assert forget(store, "r", 0) == 1
    assert not store.has(body_at(store, KEYS.average(0))["blob"])
    assert check(store).findings == ()


def test_what_does_not_belong_is_told(store: Store) -> None:
    plant(store, "round/r/00000000/client/a.txt", b"x")
    plant(store, KEYS.late(0, "a"), b"{")
    assert [(finding.kind, finding.key) for finding in check(store).findings if finding.fault] == [
        ("torn", "round/r/00000000/client/a.txt"), ("torn", KEYS.late(0, "a")),
    ]  # fmt: skip


def test_a_copy_is_as_good(store: Store, tmp_path: Path) -> None:
    copy = open_copy(store, str(tmp_path / "copy"))
    told = Copier(store, copy).run()
    assert told.troubles == []
    assert [one.state for one in verify(copy, "r")] == ["same", "same"]
    newest = latest(copy, "r")
    assert newest is not None
    assert newest.digest == body_at(store, KEYS.average(1))["blob"]
