"""Killed at every call to the store of every public operation: the next worker goes on, and nothing told is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.parts import FakeMachine

from dibs import Float, NotFound, Space, Store, Study, Trial
from dibs.backend import Backend, CrashingBackend, FolderBackend, Killed, MemoryBackend
from dibs.errors import RecordError
from dibs.record import decode
from dibs.study import _claimer, _rolls, report, take
from dibs.upkeep import check as look_after
from dibs.view import Source, study_status

SPACE = Space(x=Float(0, 1))
N = 3
DEAD, VICTIM, NEXT = 7, 9, 3  # processes
When = Literal["before", "after"]


class World:
    """A store, the processes that use it one after the other, and what the one that is killed was told."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.now = 1_000_000.0
        self.dead = {DEAD}
        self.inner: Backend
        if kind in ("memory", "bucket"):
            self.inner = MemoryBackend(conditional_replace=kind == "bucket", clock=lambda: self.now)
        else:
            self.inner = FolderBackend(folder, claim=kind, fsync="none")
            self.inner.prepare()
        self.file = folder.parent / "file"
        if not self.file.exists():
            self.file.write_text("half a model")
        self.done: dict[int, float] = {}
        self.files: dict[int, str] = {}
        self.said: list[str] = []

    def store(self, pid: int, backend: Backend | None = None) -> Store:
        machine = FakeMachine(pid)
        machine.dead = self.dead - {pid}
        return Store.over(backend or self.inner, machine, url=f"{self.folder}", patience_s=5.0)

    def study(self, store: Store, **more: Any) -> Study:
        return Study(store, "spam", SPACE, goal="min", seed=0, stale_s=600, **more)

    def age(self) -> None:
        """Long enough for everything that still runs to be quiet."""
        self.now += 100_000
        for path in self.folder.rglob("*.json*") if self.folder.exists() else ():
            os.utime(path, (1, 1))

    def finish(self, trial: Trial, *, save: bool = False) -> None:
        """What an objective does in the end, and the notes of what it was told."""
        if save:
            self.files[trial.n] = trial.save("state", self.file)
        trial.done(0.5 + trial.n)
        self.done[trial.n] = 0.5 + trial.n


@contextmanager
def trials_of(study: Study, n: int = N) -> Iterator[Iterator[Trial]]:
    """A loop whose process may die in it: closing it is among what the dead can no longer do."""
    loop = study.trials(n)
    try:
        yield loop
    finally:
        with suppress(Killed):
            loop.close()  # type: ignore[attr-defined]


# what the killed process does, each with what was there before


def nothing(world: World) -> None:
    """An empty store."""


def a_study(world: World) -> None:
    """A study with a done trial."""
    for trial in world.study(world.store(1)).trials(1):
        trial.done(0.5)
    world.done[0] = 0.5


def a_dead_worker(world: World) -> None:
    """Trial 0 is done, and trial 1 was running when its process died."""
    a_study(world)
    take(world.store(DEAD), {"x": 0.25}, study="spam", trial=1, goal="min", of=N)


def failures(world: World) -> None:
    """Trial 0 is done, trial 1 failed for good."""
    a_study(world)
    store = world.store(1)
    take(store, {"x": 0.25}, study="spam", trial=1, goal="min", of=N)
    report(store, {"x": 0.25}, [], study="spam", trial=1, state="failed", reason="no")


def two_quiet(world: World) -> None:
    """Trial 1 has ended two processes already, and its third is dead."""
    a_dead_worker(world)
    for attempt in (1, 2):
        take(world.store(DEAD), {"x": 0.25}, study="spam", trial=1, goal="min", attempt=attempt)


def stopped(world: World) -> None:
    a_study(world)
    world.study(world.store(1)).stop()


def unrolled(world: World) -> None:
    """Closed trials in no roll, and one roll of the two that make a higher one."""
    study = world.study(world.store(1))
    study.view.rolls.threshold = 4
    for trial in study.trials(9):
        world.finish(trial)


def create(world: World, store: Store) -> None:
    world.study(store)


def search(world: World, store: Store) -> None:
    with trials_of(world.study(store)) as loop:
        for trial in loop:
            with trial:
                trial.report(1.0)
                store.machine.clock.sleep(2.0)
                trial.report(0.75)
                world.finish(trial, save=True)


def run(world: World, store: Store) -> None:
    def objective(trial: Trial) -> float:
        world.finish(trial)
        return 1.0

    world.study(store).run(objective, N, progress=False)


def fail(world: World, store: Store) -> None:
    with trials_of(world.study(store), 2) as loop:
        for trial in loop:
            with trial:
                raise ValueError("no")


def retries(world: World, store: Store) -> None:
    def objective(trial: Trial) -> float:
        if trial.attempt == 0:
            raise ValueError("no")
        world.finish(trial)
        return 1.0

    world.study(store).run(objective, N, retries=1, progress=False)


def functions(world: World, store: Store) -> None:
    for n, state in enumerate(["done", "interrupted", "pruned"]):
        if take(store, {"x": 0.25}, study="spam", trial=n, goal="min", of=N) is None:
            continue
        report(store, {"x": 0.25}, [1.0], study="spam", trial=n)
        store.machine.clock.sleep(2.0)
        report(store, {"x": 0.25}, [1.0, 0.5 + n], study="spam", trial=n)
        report(store, {"x": 0.25}, [1.0, 0.5 + n], study="spam", trial=n, state=state)
        if state == "done":
            world.done[n] = 0.5 + n


def rescue(world: World, store: Store) -> None:
    assert world.study(store).rescue() == [(1, 0)]
    world.said.append("released")


def retry(world: World, store: Store) -> None:
    assert world.study(store).retry() == [1]
    world.said.append("released")


def wish(world: World, store: Store) -> None:
    study = world.study(store)
    assert study.enqueue({"x": 0.125})
    world.said.append("wished")
    with trials_of(study) as loop:
        for trial in loop:
            with trial:
                world.finish(trial)


def attach(world: World, store: Store) -> None:
    assert world.study(store).attach({"x": 0.125}, -1.0)
    world.said.append("attached")


def stop(world: World, store: Store) -> None:
    assert world.study(store).stop()
    world.said.append("stopped")


def resume(world: World, store: Store) -> None:
    assert world.study(store).resume()
    world.said.append("resumed")


def roll(world: World, store: Store) -> None:
    study = world.study(store)
    study.view.refresh()
    study.view.rolls.threshold = 4
    study.view.publish("me")
    study.view.publish("me")


def names(world: World, store: Store) -> None:
    assert store.claim("model", store.put(b"weights"))
    world.said.append("named")
    store.bind("model", store.put(b"better"))
    world.said.append("bound")


OPERATIONS: dict[str, tuple[Callable[[World], None], Callable[[World, Store], None]]] = {
    "create": (nothing, create), "search": (nothing, search), "run": (a_study, run), "fail": (a_study, fail),
    "retries": (nothing, retries), "functions": (nothing, functions), "after a death": (a_dead_worker, search),
    "rescue": (a_dead_worker, rescue), "poison": (two_quiet, search), "retry": (failures, retry),
    "wish": (a_study, wish), "attach": (a_study, attach), "stop": (a_study, stop), "resume": (stopped, resume),
    "roll": (unrolled, roll), "names": (nothing, names),
}  # fmt: skip


def killed_at(
    world: World, prepare: Callable[[World], None], act: Callable[[World, Store], None], at: int | None, when: When
) -> CrashingBackend:
    """The world after the operation, or after its process died at that call."""
    prepare(world)
    crashing = CrashingBackend(world.inner, at, when)
    with suppress(Killed):
        act(world, world.store(VICTIM, crashing))
    world.dead.add(VICTIM)
    return crashing


def settled(world: World) -> Study:
    """What the next worker makes of it: it goes on, and a person frees what nobody can say is dead."""
    study = world.study(world.store(NEXT))
    if "stopped" in world.said:
        assert list(study.trials(N)) == [], "whoever was told it is stopped can count on that"
    study.resume()
    for _ in range(3):
        for trial in study.trials(N):
            with trial:
                found = trial.load("state")
                assert found is None or found.read_text() == "half a model"
                trial.done(0.75 + trial.n)
            assert trial.state == "done"
        if len(study.results()) == N and not study.results("running"):
            break
        world.age()
        study.rescue()
    return study


def check(world: World, study: Study) -> None:
    """Nothing told is lost, exactly N trials, and whatever does not read is listed."""
    fresh = world.study(world.store(NEXT))
    results = {result.n: result for result in fresh.results()}
    assert sorted(results) == list(range(max(N, len(world.done))))
    assert {result.state for result in results.values()} <= {"done", "pruned", "failed"}
    for n, score in world.done.items():
        assert (results[n].state, results[n].score) == ("done", score)
    for n, digest in world.files.items():
        kept = [seen.record.files.get("state") for seen in fresh.view.whole(n) if seen.record]
        assert digest in kept
        assert fresh.store.get(digest) == b"half a model"
    assert [(r.n, r.state, r.score) for r in study.results()] == [(r.n, r.state, r.score) for r in fresh.results()]
    for n in results:
        points = {str(sorted(seen.record.point.items())) for seen in fresh.view.whole(n) if seen.record}
        assert len(points) == 1, "every attempt has the first one's point"
    if "wished" in world.said:
        assert [result.n for result in results.values() if result.point == {"x": 0.125}] == [1]
    if "attached" in world.said:
        assert -1.0 in list(fresh.finished().score)
    if "released" in world.said:
        assert results[1].attempt == 1
    shown = {problem.key for problem in study_status(Source.over(fresh)).problems}
    assert shown == {key for key in unreadable(world) if not key.startswith("name/")}
    if world.kind != "mkdir":
        assert shown == set(), "only mkdir claims before it writes"
    report = look_after(fresh.store, deep=True)
    assert report.clean, report.findings
    named = {finding.key for finding in report.findings}
    assert named >= {entry.key for entry in world.inner.list("tmp/")} | unreadable(world), "what the dead left is named"


def unreadable(world: World) -> set[str]:
    """The keys whose record does not parse."""
    found = set()
    for entry in [*world.inner.list("study/"), *world.inner.list("name/")]:
        if "/work/" in entry.key:
            continue
        there = world.inner.read(entry.key)
        try:
            decode(there.data if there is not None else b"", entry.key)
        except RecordError:
            found.add(entry.key)
    return found


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_rolls, "JOIN", 2)
    monkeypatch.setattr(_rolls, "MOST", 4)
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "work"))


@pytest.mark.parametrize("kind", ["bucket", "link", "mkdir"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_every_step(operation: str, kind: str, memory_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_claimer, "SWEEPERS", 1 << 64)  # by chance: another run would have another number of steps
    prepare, act = OPERATIONS[operation]
    whole = World(kind, memory_path / "whole")
    steps = killed_at(whole, prepare, act, None, "before").calls
    assert steps > 0
    check(whole, settled(whole))
    # right after a call and right before the next one are the same store; before it, more may have been told
    deaths: list[tuple[int, When]] = [(at, "before") for at in range(1, steps + 1)]
    outlived = 0  # a look more or less: the stamp of a folder moves by ticks, and in one tick two changes are one
    for at, when in [*deaths, (steps, "after")]:
        world = World(kind, memory_path / f"{at}-{when}")
        outlived += not killed_at(world, prepare, act, at, when).dead
        try:
            check(world, settled(world))
            check_names(world)
        except Exception as wrong:
            raise AssertionError(f"killed {when} call {at} of {steps}: {wrong}") from wrong
    assert outlived <= 2, "whoever is to die at a call does"


def check_names(world: World) -> None:
    """A name that was claimed resolves to what its owner was told it points at."""
    store = world.store(NEXT)
    if "named" not in world.said:
        return
    found = store.resolve("model")
    assert found is not None
    assert found.digest is not None
    assert store.get(found.digest) in ((b"better",) if "bound" in world.said else (b"weights", b"better"))


def test_the_test_can_fail(tmp_path: Path) -> None:
    """A close that says it is written before it is would be found."""
    world = World("memory", tmp_path / "store")
    a_study(world)
    world.done[1] = 0.5
    with pytest.raises(AssertionError):
        check(world, settled(world))
    with pytest.raises(NotFound):
        Study(world.store(NEXT), "ham")
