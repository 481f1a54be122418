"""Wrote tests/data/format-1/, a small store of format 1 with one of everything. Never run it over what is there:

old data is a fixture, and later versions must read those very bytes. ``python -m tests.data.make_format_1 FOLDER``
makes another one to compare with. Machines are made up, so that nothing of a real one is in it.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

from tests.parts import FakeMachine, plant

from dibs import Choice, Float, Int, Space, Study
from dibs.backend import FolderBackend
from dibs.record import encode
from dibs.store import Store, _opening

LONG = "Spam filters, round 2: " + "é\U0001f600/" * 20
SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    opt=Choice("adam", "sgd"),
    momentum=Float(0.0, 0.99, when={"opt": ["sgd"]}),
    ngrams=Choice((1, 1), (1, 2), (1.0, "x", None), True, 1, 1.0, "1", None),
    epochs=30,
)
WISH = {"lr": 0.003, "layers": 2, "opt": "sgd", "momentum": 0.5, "ngrams": (1, 2), "epochs": 30}
TRACE = 'Traceback (most recent call last):\n  File "search.py", line 3, in objective\nValueError: the loss is nan\n'


def store_at(root: Path, pid: int, me: str) -> Store:
    """The store as a made-up machine of that name sees it."""
    machine = FakeMachine(pid, host=me)
    machine.clock.now += pid
    return Store.over(FolderBackend(root), machine, url=str(root))


def make(root: Path) -> None:
    """One of everything."""
    os.environ["DIBS_ME"] = "somebody"
    _opening.mount_type = lambda path: "ext4"
    _opening.open_folder(root, FakeMachine(1, host="node1"), create=True, unchecked=False)
    main_study(root)
    rolled_study(root)
    stopped = Study(store_at(root, 30, "node3"), "Stopped?", {"x": Float(0, 1)}, goal="max", sampler="random", seed=3)
    for trial in stopped.trials(1):
        trial.done(0.5)
    for _ in range(2):
        stopped.stop()
        stopped.resume()
    stopped.stop()
    names = store_at(root, 40, "node4")
    for name in ("model", "Model/v2", "..", "nul", "x" * 200):
        names.claim(name, names.put(b"weights of " + name.encode()), {"name": name, "round": 1})
    names.bind("model", None, {"round": 2, "é": [1, 1.0, None]})
    for left in (root / "tmp").iterdir():
        left.unlink()
    (root / "tmp").rmdir()


def main_study(root: Path) -> None:
    """Trials 0 to 8 with an end of every kind, a wish to serve, an attached result."""
    study = Study(
        store_at(root, 10, "node1"), LONG, SPACE, goal="min", sampler="sobol", seed=7, stale_s=600, max_step=30, me="a"
    )
    clock = study.store.machine.clock
    file = root / "tmp" / "weights"
    file.write_bytes(bytes(range(256)))
    for trial in study.trials(4):
        clock.now += 12.5  # type: ignore[attr-defined]
        if trial.n == 0:
            for step, loss in ((0, 0.9), (1, math.nan), (29, 0.051)):
                trial.report(loss, step)
            trial.save("ck.pt", file)
            trial.done()
            study.enqueue(WISH)  # served as trial 1
        elif trial.n == 1:
            trial.done(0.25)
        elif trial.n == 2:
            trial.fail("ValueError: the loss is nan", TRACE)
        elif trial.attempt == 0:
            trial.fail("ValueError: freed by retry", TRACE)
            assert study.retry(3) == [3]
        else:
            trial.done(0.125)
    held = [attempt for attempt in (study.claimer(9).step() for _ in range(5)) if hasattr(attempt, "close")]
    rescued, interrupted, pruned, running, again = held
    study.view.notes.release(rescued.n, 0, "b")
    other = Study(store_at(root, 20, "node2"), LONG, me="b")
    other.claimer(9).step().close("done", score=0.0625, step=3)
    interrupted.close("interrupted", reason="SIGTERM")
    pruned.add(0.9, 0)
    pruned.add(0.8, 1)
    pruned.close("pruned", score=0.8, step=1, reason="worse than the median at step 1")
    running.add(0.75, 0)
    running.show(force=True)
    again.close("failed", reason="OSError: a retry is left", again=True)
    study.enqueue({**WISH, "ngrams": None})
    study.attach({**WISH, "layers": 8}, 0.5)
    body = {
        **running._held.body,
        "n": 12,
        "of": 13,
        "point": {"lr": 0.1},
        "a field of later": {"kept": [1]},
        "state": "done",
    }
    plant(study.store, study.store.keys(LONG).attempt(12, 0), encode({**body, "score": 9}))


def rolled_study(root: Path) -> None:
    """Five trials in a roll, of which one file is gone: the copy is the record."""
    study = Study(store_at(root, 50, "node5"), "rolled", {"x": Float(0, 1)}, goal="min", sampler="random", seed=5)
    for trial in study.trials(5):
        trial.done(float(trial.n))
    reader = Study(store_at(root, 51, "node5"), "rolled")
    reader.view.refresh()
    reader.view.rolls.threshold = 5
    reader.view.publish(None)
    reader.store.backend.delete(reader.store.keys("rolled").attempt(3, 0))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
