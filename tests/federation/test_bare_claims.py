"""Where mkdir claims, a name can be taken by somebody who died before it wrote: nobody then waits for ever, or works in a circle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.federation.rounds import keys_of, model, same
from tests.parts import FakeClock, FakeMachine

from dibs import RecordError, RoundTimeout, Store, UnsureError
from dibs.backend import FolderBackend
from dibs.federation import fedavg, gather
from dibs.store import RoundKeys

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
    return gather(
        store, model("a"), **{"run": "r", "round": 0, "clients": ["a"], "client": "a", "within": 500, **options}
    )


def test_an_averaging_that_was_claimed_and_never_written_is_followed(store: Store) -> None:
    bare(store, KEYS.averaging(0, 0))
    assert same(one(store), fedavg({"a": model("a")}))
    assert "averaging/1.json" in keys_of(store)


def test_it_is_waited_for_no_longer_than_one_was_told(store: Store) -> None:
    bare(store, KEYS.averaging(0, 0))
    with pytest.raises(RoundTimeout, match="has been averaging"):
        one(store, within=5)


@pytest.mark.parametrize("key", [KEYS.terms(0), KEYS.update(0, "a"), KEYS.average(0)])
def test_what_was_claimed_and_never_written_is_named(store: Store, key: str) -> None:
    bare(store, key)
    with pytest.raises(UnsureError, match=key):
        one(store)
    assert len(keys_of(store)) < 9


def test_a_folder_where_the_averaging_should_be_is_named(tmp_path: Path) -> None:
    """It takes the name, and no listing shows it."""
    (tmp_path / "s" / KEYS.averaging(0, 0)).mkdir(parents=True)
    backend = FolderBackend(tmp_path / "s")
    backend.prepare()
    with pytest.raises(RecordError, match="averaging/0"):
        one(Store.over(backend, FakeMachine()))
