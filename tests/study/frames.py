"""A study whose table has everything a table can have."""

from __future__ import annotations

from pathlib import Path

from dibs import Space, Study

__all__ = ["a_study"]


def a_study(folder: Path, space: Space) -> Study:
    """Twelve trials with a curve each, of which the fourth failed."""
    study = Study(folder / "store", "s", space, goal="min", seed=3)
    for trial in study.trials(12):
        with trial:
            trial.report(trial.point["x"])
            if trial.n == 3:
                raise ValueError("no")
    return study
