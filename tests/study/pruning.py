"""What tests of pruning have in common: a store that is watched, pruners that are spies, and other people's trials."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.parts import FakeMachine, body_at, store_over

from dibs import Float, Random, Space, StoreError, Study, Trial
from dibs.backend import Backend, WrapperBackend
from dibs.search import Curve, Pruner, Verdict

T = TypeVar("T")
SPACE = Space(x=Float(0, 1))
LAST = 9
LOOPS: list[Any] = []  # still open; the end of the test ends them


class Watching(WrapperBackend):
    """Which keys were read, and how often; ``out``: what raises instead."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.asked: Counter[tuple[str, str]] = Counter()
        self.out: Callable[[str], bool] = lambda key: False

    def _around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        self.asked[verb, key] += 1
        if self.out(key) and verb in ("read", "stream", "list", "version"):
            raise StoreError("it is out", key=key)
        return call()

    def curves(self) -> Counter[str]:
        """Reads of what only a pruner has a use for."""
        found: Counter[str] = Counter()
        for (verb, key), count in self.asked.items():
            if verb in ("read", "stream", "version", "list") and (key.startswith("blobs/") or "/live/" in key):
                found[key] += count
        return found


class Spy(Pruner):
    """Says nothing and remembers what it was asked; ``say`` at a step."""

    name = "tests-spy"

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.asked: list[tuple[int, list[tuple[int, float]], dict[int, Curve]]] = []

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        self.asked.append((own.n, own.pairs, {peer.n: peer for peer in others}))
        return Verdict("spy", "enough", {"step": own.last}) if own.last == self.at else None


class Rungs(Spy):
    """One that compares at steps 1, 3 and 9 only."""

    name = "tests-spy"  # as study.json knows it

    def due(self, own: Curve) -> bool:
        return any(own.before < rung <= own.last for rung in (1, 3, 9))

    def at_rung(self, own: Curve) -> bool:
        return self.due(own)


def study_on(backend: Backend, pid: int = 1, pruner: Any = None, **terms: Any) -> Study:
    store = store_over(backend, FakeMachine(pid))
    return Study(store, "s", SPACE, goal="min", seed=0, sampler=Random(), pruner=pruner, **{"max_step": LAST, **terms})


def claimed(study: Study, trials: int = 100) -> Trial:
    loop = study.trials(trials)
    trial = next(loop)
    LOOPS.append(loop)
    return trial


def pass_s(study: Study, seconds: float) -> None:
    study.store.machine.clock.now += seconds  # type: ignore[attr-defined]


def blob_of(study: Study, n: int, attempt: int = 0) -> dict[str, Any]:
    digest = body_at(study.store, study.view.keys.attempt(n, attempt))["blob"]
    body: dict[str, Any] = json.loads(study.store.get(digest))
    return body


def fill(backend: Backend, done: int = 6, running: int = 2) -> tuple[Study, list[Trial]]:
    """Somebody else's trials: closed ones with curves, and some that run."""
    theirs = study_on(backend, 99, Spy())
    for trial in theirs.trials(done):
        with trial:
            for step in range(4):
                trial.report(float(trial.n + step))
    left = []
    for _ in range(running):
        trial = claimed(theirs)
        trial.report(50.0)
        trial._attempt.show(force=True)
        left.append(trial)
    return theirs, left
