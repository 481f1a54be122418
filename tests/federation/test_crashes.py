"""Killed at every call to the store, before it and after it: the others go on, and there is one average, the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from tests.federation.rounds import backend_of, model, same
from tests.parts import FakeMachine, body_at

from dibs import RoundTimeout, Store
from dibs.backend import Backend, CrashingBackend, Killed
from dibs.federation import Gathered, fedavg, gather, verify
from dibs.store import RoundKeys

When = Literal["before", "after"]
VICTIM, NEXT, AGAIN = 9, 3, 4  # processes
COMMON: dict[str, Any] = {"run": "r", "round": 1, "clients": ["a", "b"], "keep": 1}
EXPECTED = fedavg({"a": model("a"), "b": model("b")})


def store_of(backend: Backend, pid: int) -> Store:
    machine = FakeMachine(pid)
    machine.dead = {VICTIM} - {pid}
    return Store.over(backend, machine, patience_s=5.0)


def victim(backend: Backend, crash_at: int | None, when: When) -> int:
    """``b`` comes last, so that it publishes, averages, and puts the round before away; returns its calls to the store."""
    for round in (0, 1):
        with pytest.raises(RoundTimeout):
            gather(store_of(backend, NEXT), model("a"), client="a", within=0.001, **{**COMMON, "round": round})
        if round == 0:
            gather(store_of(backend, AGAIN), model("b"), client="b", **{**COMMON, "round": round})
    crashing = CrashingBackend(backend, crash_at, when)
    try:
        gather(store_of(crashing, VICTIM), model("b"), client="b", **COMMON)
    except Killed:
        assert crash_at is not None
    return crashing.calls


@pytest.mark.parametrize("kind", ["memory", "bucket", "link", "mkdir"])
def test_killed_at_every_call(kind: str, tmp_path: Path) -> None:
    calls = victim(backend_of(kind, tmp_path / "whole"), None, "before")
    assert calls > 20
    # right after a call and right before the next one are the same store
    deaths: list[tuple[int, When]] = [(at, "before") for at in range(1, calls + 1)]
    for at, when in [*deaths, (calls, "after")]:
        backend = backend_of(kind, tmp_path / f"{at}-{when}")
        victim(backend, at, when)
        got: list[Gathered] = []
        for pid, client in ((AGAIN, "b"), (NEXT, "a")):
            got.append(gather(store_of(backend, pid), model(client), client=client, **COMMON))
        assert [same(each, EXPECTED) for each in got] == [True, True], (at, when)
        assert got[0].digest == got[1].digest
        assert "late" not in {each.update for each in got}
        store, keys = store_of(backend, NEXT), RoundKeys("r")
        assert [one.state for one in verify(store, "r", [1])] == ["same"]
        tries = list(store.backend.list(keys.round(1) + "averaging/"))
        assert 1 <= len(tries) <= 2
        gather(store, model("a"), **{**COMMON, "round": 2, "clients": ["a"], "client": "a", "keep": 2})
        blobs = [body_at(store, key)["blob"] for key in (keys.average(0), keys.update(0, "a"), keys.update(0, "b"))]
        assert not any(map(store.has, blobs)), (at, when)
        assert store.has(got[0].digest)
