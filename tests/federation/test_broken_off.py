"""Ctrl-C, or a signal that ends a process, before and after every call to the store: nobody waits for it, and it is no strike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from tests.federation.rounds import backend_of, model, same
from tests.parts import FakeMachine

from dibs import Store
from dibs.backend import Backend
from dibs.backend._wrapper import WrapperBackend
from dibs.federation import fedavg, gather
from dibs.federation._look import Round

T = TypeVar("T")
ALONE: dict[str, Any] = {"run": "r", "round": 0, "clients": ["a"], "client": "a", "within": 50.0}


class BrokenOff(WrapperBackend):
    """Ctrl-C at that call, from 1."""

    def __init__(self, inner: Backend, at: int, when: Literal["before", "after"]) -> None:
        super().__init__(inner)
        self.at, self.when, self.calls = at, when, 0

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        self.calls += 1
        due = self.calls == self.at
        if due and self.when == "before":
            raise KeyboardInterrupt(f"before {verb} {key}")
        answer = call()
        if due:
            raise KeyboardInterrupt(f"after {verb} {key}")
        return answer


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["memory", "bucket", "link", "mkdir"])
def test_broken_off_at_every_call(kind: str, when: Literal["before", "after"], tmp_path: Path) -> None:
    expected = fedavg({"a": model("a")})
    for at in range(1, 200):
        backend, machine = backend_of(kind, tmp_path / f"{at}"), FakeMachine(9)
        said = ""
        try:
            gather(Store.over(BrokenOff(backend, at, when), machine, patience_s=5.0), model("a"), **ALONE)
        except KeyboardInterrupt as broken:
            said = str(broken)
        seen = Round(Store.over(backend, machine), "r", 0).refresh()
        open_ones = [k for k, each in seen.tries.items() if each.of is not None and not each.closed]
        assert open_ones == [] or seen.end is not None, (at, said)
        if kind != "mkdir" or not any(each.of is None for each in seen.tries.values()):  # a bare claim is watched
            before = machine.clock.monotonic()
            assert same(gather(Store.over(backend, machine), model("a"), **ALONE), expected), (at, said)
            assert machine.clock.monotonic() - before < 5.0, (at, said)
        if not said:
            break
    assert not said
    assert at > 15
