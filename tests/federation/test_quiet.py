"""Who averages and stands still is followed when its patience is over, and not while it beats; on a clock of the test's own."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from tests.federation.rounds import model, same
from tests.parts import FakeClock, FakeMachine, body_at, plant

from dibs import RoundTimeout, Store, StoreError
from dibs.backend import MemoryBackend
from dibs.federation import fedavg, gather
from dibs.record import encode
from dibs.store import RoundKeys

KEYS = RoundKeys("r")
ALONE = {"run": "r", "round": 0, "clients": ["a"], "client": "a", "stale_s": 60.0}


def begun(store: Store, attempts: int = 1, beat_s: float = 10.0) -> None:
    """A round whose updates are there, and that somebody on another machine averages."""
    with pytest.raises(RoundTimeout):
        gather(store, model("a"), **{**ALONE, "clients": ["a", "b"], "run": "other", "within": 0.001})
    for attempt in range(attempts):
        body = {
            **store.head("averaging"), "who": {"me": "far", "host": "far", "boot": "f", "pid": 1, "token": "t"},
            "state": "running", "of": {"a": "0" * 64}, "beat_s": beat_s, "nonce": f"{attempt:032}",
        }  # fmt: skip
        plant(store, KEYS.averaging(0, attempt), encode(body))


def published(store: Store) -> None:
    """The client's update, so that the list above can name it."""
    digest = body_at(store, KEYS.update(0, "a"))["digest"]
    body = body_at(store, KEYS.averaging(0, 0))
    plant(store, KEYS.averaging(0, 0), encode({**body, "of": {"a": digest}}))


def store_of(clock: FakeClock) -> Store:
    machine = FakeMachine()
    machine.clock = clock
    return Store.over(MemoryBackend(clock=clock.wall), machine)


def ready(clock: FakeClock, attempts: int = 1) -> Store:
    store = store_of(clock)
    with pytest.raises(RoundTimeout):
        gather(store, model("a"), **{**ALONE, "clients": ["a", "b"], "within": 0.001})
    begun(store, attempts)
    published(store)
    return store


TWO = {**ALONE, "clients": ["a", "b"]}


def test_a_quiet_one_is_followed_after_its_patience() -> None:
    clock = FakeClock()
    store = ready(clock)
    before = clock.now
    got = gather(store, model("a"), **{**TWO, "within": 500})
    assert same(got, fedavg({"a": model("a")}))
    assert body_at(store, KEYS.average(0))["attempt"] == 1
    assert 60 <= clock.now - before < 70


def test_patience_doubles_with_every_quiet_one() -> None:
    clock = FakeClock()
    store = ready(clock, attempts=2)
    before = clock.now
    gather(store, model("a"), **{**TWO, "within": 500})
    assert 120 <= clock.now - before < 130


def test_one_that_beats_is_waited_for_and_named_in_the_end() -> None:
    class Beating(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if beats:
                store.backend.touch(KEYS.averaging(0, 0))

    beats, clock = False, Beating()
    store = ready(clock)
    beats = True
    with pytest.raises(RoundTimeout, match=r"nobody is missing, and 'far' has been averaging"):
        gather(store, model("a"), **{**TWO, "within": 500})


def test_who_waits_does_not_end_for_a_lost_answer_but_for_an_outage() -> None:
    class Failing(MemoryBackend):
        failing = 0

        def list(self, prefix: str, after: str = "", *, details: bool = False) -> Any:
            self.failing -= 1
            if self.failing > 0:
                raise StoreError("made up", key=prefix)
            return super().list(prefix, after, details=details)

    class Breaking(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if backend.failing < -3:  # it waits by now
                backend.failing = many

    many, clock = 5, Breaking()
    backend = Failing(clock=clock.wall)
    machine = FakeMachine()
    machine.clock = clock
    store = Store.over(backend, machine, patience_s=60.0)
    with pytest.raises(RoundTimeout):
        gather(store, model("a"), **{**TWO, "within": 30})
    many = 1000
    with pytest.raises(StoreError, match="made up"):
        gather(store, model("a"), **{**TWO, "within": 3000})


def test_the_time_counts_from_when_somebody_began_to_average() -> None:
    """Else a quorum at the last moment would leave no time to average."""
    clock = FakeClock()
    store = ready(clock)
    with pytest.raises(RoundTimeout):
        gather(store, model("a"), **{**TWO, "within": 50})  # shorter than the patience
    assert store.backend.read(KEYS.averaging(0, 1)) is None


def test_short_calls_find_a_quiet_one_too_in_the_end() -> None:
    """Each begins to watch anew; without a few seconds more none of them would ever be sure."""
    clock = FakeClock()
    store = ready(clock)
    for _ in range(30):
        with suppress(RoundTimeout):
            gather(store, model("a"), **{**TWO, "within": 5})
    assert body_at(store, KEYS.average(0))["attempt"] == 1


def test_the_time_does_not_count_anew_with_each_that_follows() -> None:
    """Else nobody could say when a call ends."""

    class Relay(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if started and self.now - self.last > 40:
                self.last = self.now
                key = KEYS.averaging(0, self.attempt)
                body = body_at(store, key)
                plant(store, key, encode({**body, "state": "interrupted"}))
                self.attempt += 1
                plant(store, KEYS.averaging(0, self.attempt), encode({**body, "nonce": f"{self.attempt:032}"}))

        last, attempt = 0.0, 0

    started, clock = False, Relay()
    store = ready(clock)
    started, clock.last = True, clock.now
    before = clock.now
    with pytest.raises(RoundTimeout, match=r"'far' has been averaging \(attempt"):
        gather(store, model("a"), **{**TWO, "within": 100})
    assert 100 <= clock.now - before < 110


def test_an_outage_is_not_waited_for_longer_than_the_round() -> None:
    class Down(MemoryBackend):
        down = False

        def list(self, prefix: str, after: str = "", *, details: bool = False) -> Any:
            if self.down:
                raise StoreError("made up", key=prefix)
            return super().list(prefix, after, details=details)

    class Breaking(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            backend.down = True

    clock = Breaking()
    backend = Down(clock=clock.wall)
    machine = FakeMachine()
    machine.clock = clock
    before = clock.now
    with pytest.raises(StoreError, match="made up"):
        gather(Store.over(backend, machine, patience_s=60.0), model("a"), **{**TWO, "within": 5})
    assert clock.now - before < 10
