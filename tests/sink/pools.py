"""Real pools, each a way of losing what workers saw: ``python -m tests.sink.pools NAME`` prints what the sink has as JSON.

A program of its own, so that a fork is a fork of this and of no test runner. The objective's object stays behind in the
workers; what comes back is what they recorded.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from dibs import Sink

POINTS = [(7 * k) % 40 for k in range(40)]  # the best is neither the first nor the last


class Model:
    """What a worker fits, and nobody gets back."""

    def __init__(self, x: int) -> None:
        self.x, self.pid = x, os.getpid()


def objective(sink: Sink, x: int) -> float:
    """Best at 31."""
    score = -float((x - 31) ** 2)
    sink.record(score, artifact=Model(x), params={"x": x}, pid=os.getpid())
    return score


def fork(sink: Sink) -> None:
    sink.record(-10_000.0, artifact=Model(0))  # the children are copies of a process that has a mark
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.starmap(objective, [(sink, x) for x in POINTS], chunksize=1)


def each_its_own(sink: Sink) -> None:
    """A process per trial."""
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        pool.starmap(
            objective, [(sink, x) for x in sorted(POINTS, key=lambda x: -abs(x - 31))[-8:] + POINTS], chunksize=1
        )


def spawn(sink: Sink) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        pool.starmap(objective, [(sink, x) for x in POINTS], chunksize=1)


def loky(sink: Sink) -> None:
    from joblib import Parallel, delayed

    Parallel(n_jobs=3, backend="loky", batch_size=1)(delayed(objective)(sink, x) for x in POINTS)


def optuna(sink: Sink) -> None:
    """One study per worker over one journal, as those do it who want processes: joblib runs them."""
    import optuna as theirs
    from joblib import Parallel, delayed
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = f"{sink.folder}.journal"

    def part(seed: int) -> None:
        theirs.logging.set_verbosity(theirs.logging.WARNING)
        study = theirs.load_study(
            study_name="s",
            storage=JournalStorage(JournalFileBackend(path)),
            sampler=theirs.samplers.RandomSampler(seed),
        )
        study.optimize(lambda trial: objective(sink, trial.suggest_int("x", 0, 40)), n_trials=8)

    storage = JournalStorage(JournalFileBackend(path))
    study = theirs.create_study(study_name="s", storage=storage, direction="maximize")
    Parallel(n_jobs=3, backend="loky", batch_size=1)(delayed(part)(seed) for seed in range(3))
    assert (best := sink.best(study.best_params)) is not None
    assert (best.score, best.params, best.matched_best_params) == (study.best_value, study.best_params, True)


def dask(sink: Sink) -> None:
    from distributed import Client

    with Client(processes=True, n_workers=3, threads_per_worker=2, dashboard_address=":0") as client:
        client.gather(client.map(lambda x: objective(sink, x), POINTS, pure=False))


def locked(sink: Sink) -> None:
    """A fork in the middle of another thread's commit: the child does not wait for a thread that it has not."""
    from dibs.sink import _marks

    sink.record(-10_000.0)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with _marks.mark_of(sink.folder).lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pids = [forked(lambda x=x: objective(sink, x)) for x in (30, 31)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    done.set()
    thread.join()
    assert codes == [0, 0]


def pid_again(sink: Sink) -> None:
    """A child whose child is given the first process's pid: what it has inherited of that is not its own."""
    from dibs.sink import _folder, _marks

    sink.record(0.0, artifact="theirs")
    ours = os.getpid()

    def child() -> None:
        assert not _marks._marks
        assert not any(_folder._made.values())
        os.getpid = lambda: ours  # type: ignore[assignment]
        assert sink.record(0.0, artifact="a namesake's")  # which is no better, had this the other's mark

    assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0
    assert len([name for name in os.listdir(sink.folder) if name.startswith("kept-")]) == 2  # noqa: PTH208


def forks_when_pickled(sink: Sink) -> None:
    """An artefact whose own pickling forks: one of the two goes on, and it is the first."""

    class Forking:
        def __reduce__(self) -> Any:
            self.pid = os.fork()
            return int, (self.pid,)

    ours, artifact = os.getpid(), Forking()
    answer = sink.record(1.0, artifact=artifact)
    if os.getpid() != ours:
        os._exit(int(answer))
    assert answer
    assert os.waitstatus_to_exitcode(os.waitpid(artifact.pid, 0)[1]) == 0
    assert (best := sink.best()) is not None
    assert best.artifact == artifact.pid
    assert best.tied_count == 1


def child_ends(sink: Sink) -> None:
    """A child that ends as a program does, with its atexit calls, after leaving a block: the folder is not its own."""

    def child() -> None:
        with sink:
            objective(sink, 31)
        import atexit

        atexit._run_exitfuncs()

    assert os.waitstatus_to_exitcode(os.waitpid(forked(child), 0)[1]) == 0


def made_by_a_worker(sink: Sink) -> None:
    """A sink within the objective, by one who forgets to clean up: it goes with the worker."""
    for start in ("fork", "spawn", "forkserver"):
        pool = multiprocessing.get_context(start).Pool(1)
        folders = pool.map(forgotten, [1.0, 2.0])
        pool.close()
        pool.join()
        assert not [folder for folder in folders if os.path.exists(folder)]  # noqa: PTH110
    objective(sink, 31)


def forgotten(score: float) -> str:
    made = Sink.create()
    assert made.record(score)
    return made.folder


def forked(action: Callable[[], Any]) -> int:
    """A child that does that and says by its code whether it could."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return pid


def said(sink: Sink) -> Iterator[tuple[str, Any]]:
    """What the main process is left with."""
    best = sink.best({"x": 31})
    assert best is not None
    yield from best._replace(artifact=None)._asdict().items()
    yield "artifact_x", getattr(best.artifact, "x", None)
    yield "artifact_pid", getattr(best.artifact, "pid", None)
    yield "main", os.getpid()
    yield "blobs", len({name for name in os.listdir(sink.folder) if name.startswith("blob-")})  # noqa: PTH208
    yield "kept", len({name for name in os.listdir(sink.folder) if name.startswith("kept-")})  # noqa: PTH208


if __name__ == "__main__":
    logging.basicConfig()
    from tests.sink import pools  # its objective by name, not as this program's own

    with Sink.create() as created:
        getattr(pools, sys.argv[1])(created)
        print(json.dumps(dict(said(created))))
