"""Over a network that lies: lost answers and requests, late writes, old listings, errors. The bits do not change."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.federation.rounds import model, same
from tests.parts import FakeClock, FakeMachine, at_once

from dibs import Store, StoreError
from dibs.backend import FaultyBackend, MemoryBackend
from dibs.federation import Gathered, fedavg, gather, verify

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("bucket", [False, True], ids=["folder-like", "bucket-like"])
@pytest.mark.parametrize("seed", range(12))
def test_there_is_one_average_all_the_same(seed: int, bucket: bool) -> None:
    clock = FakeClock()
    inner = MemoryBackend(conditional_replace=bucket, clock=clock.wall)

    def one(at: int, client: str) -> Any:
        backend = FaultyBackend(
            inner, random.Random(f"{seed} {client}"), lost_answer=0.1, lost_request=0.1, late=0.05, conflict=0.1,
            stale_list=0.3, read_error=0.02, stage_error=0.02,
        )  # fmt: skip
        machine = FakeMachine(at + 1)
        machine.clock = (
            clock  # hours go by in a second: an averager that could not even say that it gave up is quiet soon
        )
        store = Store.over(backend, machine, patience_s=60.0)
        for _ in range(50):  # as a user's own loop, or a scheduler, starts a client again
            try:
                return gather(
                    store, model(client), run="r", round=0, clients=NAMES, client=client, within=1e9, stale_s=2e4
                )
            except StoreError as wrong:
                last = wrong
        return last

    got = at_once([lambda at=at, client=client: one(at, client) for at, client in enumerate(NAMES)])
    assert all(isinstance(each, Gathered) for each in got), got
    assert [same(each, fedavg({name: model(name) for name in NAMES})) for each in got] == [True] * 3
    assert {each.update for each in got} <= {"new", "same"}
    assert [each.state for each in verify(Store.over(inner), "r")] == ["same"]
