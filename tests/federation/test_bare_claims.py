"""Where mkdir claims, a name can be taken by somebody who died before it wrote: nobody then waits for ever, or works in a circle."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.federation.rounds import keys_of, model, same
from tests.parts import FakeClock, FakeMachine, body_at, plant

from dibs import RecordError, RoundTimeout, Store
from dibs.backend import FolderBackend
from dibs.federation import fedavg, gather, verify
from dibs.record import encode
from dibs.store import RoundKeys
from dibs.upkeep import check

KEYS = RoundKeys("r")


class Stamped(FolderBackend):
    """The store's clock is the machine's, as far as it goes on."""

    clock: FakeClock

    def now(self) -> float:
        return super().now() + self.clock.now - 1000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    backend = Stamped(tmp_path / "s", claim="mkdir")
    backend.prepare()
    machine = FakeMachine()
    backend.clock = machine.clock
    return Store.over(backend, machine, patience_s=60.0)


def bare(store: Store, key: str) -> None:
    root = store.backend.root
    assert root is not None
    path = root / f"{key}{_suffix()}"
    path.mkdir(parents=True)


def _suffix() -> str:
    from dibs.backend._folder import CLAIM

    return CLAIM


def one(store: Store, **options: Any) -> Any:
    export = options.pop("export", model("a"))
    return gather(store, export, **{"run": "r", "round": 0, "clients": ["a"], "client": "a", "within": 500, **options})


def test_an_averaging_that_was_claimed_and_never_written_is_followed(store: Store) -> None:
    bare(store, KEYS.averaging(0, 0))
    assert same(one(store), fedavg({"a": model("a")}))
    assert "averaging/1.json" in keys_of(store)


def test_it_is_waited_for_no_longer_than_one_was_told(store: Store) -> None:
    bare(store, KEYS.averaging(0, 0))
    with pytest.raises(RoundTimeout, match="has been averaging"):
        one(store, within=5)


def test_averagings_that_were_never_written_are_no_poison(store: Store) -> None:
    """Who died before it had read an update did not die over it."""
    for attempt in range(5):
        bare(store, KEYS.averaging(0, attempt))
    for _ in range(500):
        with suppress(RoundTimeout):
            got = one(store, within=5)
    assert same(got, fedavg({"a": model("a")}))


NAMES = {"terms": KEYS.terms(0), "client/a": KEYS.update(0, "a"), "average": KEYS.average(0)}


@pytest.mark.parametrize("name", NAMES)
def test_what_was_claimed_and_never_written_is_followed_by_the_next_number(store: Store, name: str) -> None:
    bare(store, NAMES[name])
    before = store.machine.clock.monotonic()
    got = one(store)
    assert (got.update, same(got, fedavg({"a": model("a")}))) == ("new", True)
    assert store.machine.clock.monotonic() - before < 70
    assert f"again/{name}/1.json" in keys_of(store)
    assert [each.state for each in verify(store, "r")] == ["same"]
    assert one(store, export=None).digest == one(store).digest == got.digest
    assert [finding for finding in check(store, deep=True).findings if finding.fault] == []
    one(store, round=1, keep=1)
    assert not store.has(got.digest)
    assert not store.has(body_at(store, KEYS.update(0, "a", 1 if "client" in name else 0))["blob"])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_followed_in_the_end_by_calls_that_none_of_them_wait_so_long(store: Store, name: str) -> None:
    bare(store, NAMES[name])
    with pytest.raises(RoundTimeout, match=NAMES[name]) if name != "average" else nullcontext():
        one(store, within=5)
    for _ in range(20):
        with suppress(RoundTimeout):
            got = one(store, within=5)
    assert same(got, fedavg({"a": model("a")}))


def test_all_of_them_at_once(store: Store) -> None:
    for key in (*NAMES.values(), KEYS.averaging(0, 0), KEYS.forgotten(0), KEYS.terms(0, 1), KEYS.average(0, 1)):
        bare(store, key)
    got = one(store, within=5000)
    assert same(got, fedavg({"a": model("a")}))
    for round in (1, 2):
        one(store, round=round, keep=1)  # one whose putting away was claimed and never begun is put away all the same
    assert not store.has(got.digest)
    assert one(store, round=3, keep=1).round == 3


def test_a_list_that_is_written_late_changes_nothing_that_was_decided(store: Store) -> None:
    """The first who averages sleeps before its record; the second one's list is another, and ends the round."""
    clients = {"clients": ["a", "b"], "quorum": 1, "grace": 0}
    bare(store, KEYS.averaging(0, 0))
    got = one(store, **clients)
    assert got.missing == ("b",)
    other = {"b": "0" * 64}
    plant(store, KEYS.averaging(0, 0), encode({**body_at(store, KEYS.averaging(0, 1)), "attempt": 0, "of": other}))
    assert [each.state for each in verify(store, "r")] == ["same"]
    assert one(store, **clients).update == "same"


def test_a_folder_where_the_averaging_should_be_is_named(tmp_path: Path) -> None:
    """It takes the name, and no listing shows it."""
    (tmp_path / "s" / KEYS.averaging(0, 0)).mkdir(parents=True)
    backend = FolderBackend(tmp_path / "s")
    backend.prepare()
    with pytest.raises(RecordError, match="averaging/0"):
        one(Store.over(backend, FakeMachine()))
