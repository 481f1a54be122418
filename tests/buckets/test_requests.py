"""What a bucket is asked, counted: a request costs money and milliseconds, whoever answers it."""

from __future__ import annotations

from collections import Counter

from tests.parts import FakeMachine, store_over

from dibs import Float, Random, Space, Study
from dibs.backend import Backend, CountingBackend, MemoryBackend
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1), y=Float(0, 1))


class Learner(Random):
    """Wants the history, as the default sampler does, and spends no time on it: what is counted is requests."""

    name = "tests-requests"
    needs_history = True


PUT, LIST, GET = ("create", "replace", "put"), ("list", "names", "folders"), ("read", "stream", "version")


def counted(*backends: CountingBackend) -> Counter[str]:
    """Requests by price. The base class reads many by reading each, so every read is counted."""
    verbs: Counter[str] = Counter()
    for backend in backends:
        verbs += backend.counts
    return Counter(
        {"PUT": sum(verbs[v] for v in PUT), "LIST": sum(verbs[v] for v in LIST), "GET": sum(verbs[v] for v in GET)}
    )


def workers(bucket: Backend, count: int) -> list[tuple[Study, CountingBackend]]:
    made = []
    for pid in range(1, count + 1):
        backend = CountingBackend(bucket)
        made.append(
            (Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0, sampler=Learner()), backend)
        )
    return made


def pass_s(studies: list[Study], seconds: float) -> None:
    for study in studies:
        study.store.machine.clock.now += seconds  # type: ignore[attr-defined]


def search(bucket: Backend, trials: int, count: int) -> list[CountingBackend]:
    """``count`` workers in turn, each with one trial running, 300 s a trial."""
    made = workers(bucket, count)
    claimers = [study.claimer(trials) for study, _ in made]
    running: list[Attempt | None] = [None] * count
    for _, backend in made:
        backend.reset()
    while True:
        idle = 0
        for at, claimer in enumerate(claimers):
            held = running[at]
            if held is not None:
                held.add(0.5)
                held.close("done", score=held.point["x"])
            got = claimer.step()
            running[at] = got if isinstance(got, Attempt) else None
            idle += running[at] is None
            pass_s([study for study, _ in made], 300 / count)
        if idle == count:
            return [backend for _, backend in made]


def test_a_study_of_600_trials_and_20_workers_asks_for_little() -> None:
    bucket = MemoryBackend(conditional_replace=True)
    spent = counted(*search(bucket, 600, 20))
    per_trial = {price: count / 600 for price, count in spent.items()}
    assert per_trial["PUT"] <= 3, per_trial
    assert per_trial["LIST"] <= 2, per_trial
    assert per_trial["GET"] <= 70, per_trial


def test_joining_1000_finished_trials_asks_for_little() -> None:
    bucket = MemoryBackend(conditional_replace=True)
    search(bucket, 1_000, 2)
    ((study, backend),) = workers(bucket, 1)
    study.view.refresh()
    assert len(study.view) == 1_000
    assert sum(counted(backend).values()) <= 160, counted(backend)  # the last 128 may be in no roll yet


def test_a_straggler_makes_nobody_list_everything() -> None:
    bucket = MemoryBackend(conditional_replace=True)
    ((slow, _),) = workers(bucket, 1)
    claimer = slow.claimer(1000)
    for _ in range(3):
        got = claimer.step()
        assert isinstance(got, Attempt)
        got.close("done", score=0.0)
    assert isinstance(claimer.step(), Attempt)  # index 3, and it stays
    search(bucket, 1000, 2)
    seen: list[int] = []

    class Watching(CountingBackend):
        def list(self, prefix, after="", *, details=False):  # type: ignore[no-untyped-def]
            found = [*super().list(prefix, after, details=details)]
            if "/trial/" in prefix:
                seen.append(len(found))
            return iter(found)

    late = Study(store_over(Watching(bucket), FakeMachine(9)), "s", SPACE, goal="min", seed=0, sampler=Learner())
    late.view.refresh()
    seen.clear()
    late.view.refresh()
    assert len(late.view) == 1000
    assert max(seen) <= 256, "a listing starts at the lowest block with a missing name"
