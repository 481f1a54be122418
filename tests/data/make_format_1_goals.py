"""Wrote tests/data/format-1-goals/: what of format 1 came later, several goals and constraints. Never run it over that.

``python -m tests.data.make_format_1_goals FOLDER`` makes another one to compare with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.data.make_format_1 import store_at
from tests.parts import FakeMachine

from dibs import Float, Study
from dibs.store import _opening

NAME = "two goals"


def make(root: Path) -> None:
    """Five trials of two goals, three in a roll of which one file is gone; an attached result; one goal with constraints."""
    os.environ["DIBS_ME"] = "somebody"
    _opening.mount_type = lambda path: "ext4"
    _opening.open_folder(root, FakeMachine(1, host="node1"), create=True, unchecked=False)
    study = Study(
        store_at(root, 10, "node1"), NAME, {"x": Float(0, 1)}, goal=["min", "max"], sampler="random", seed=5
    )  # fmt: skip
    study.view.rolls.threshold = 3
    for trial in study.trials(5):
        if trial.n == 1:
            trial.done([1.5])
            continue
        trial.report(0.25)
        trial.done([trial.n, 4 - trial.n], constraints={"gb": trial.n - 3.5, "é": -1} if trial.n > 1 else None)
    study.attach({"x": 0.5}, [0.5, 7], constraints={"gb": 0.25})
    study.store.backend.delete(study.store.keys(NAME).attempt(2, 0))
    bound = Study(store_at(root, 20, "node2"), "bound", {"x": Float(0, 1)}, goal="max", sampler="random", seed=5)
    for trial in bound.trials(3):
        trial.done(trial.n, constraints={"kg": trial.n - 1})
    for left in (root / "tmp").iterdir():
        left.unlink()
    (root / "tmp").rmdir()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
