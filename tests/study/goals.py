"""A study of several goals and what its trials end with, for the tests of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from dibs import Float, Random, Sobol, Space, Store, Study
from dibs._canon import digest
from dibs.search import History

__all__ = ["FRONT", "GOAL", "POOL", "SPACE", "Echo", "a_study", "key", "run"]

SPACE = Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0))
GOAL: Any = ["min", "max"]


class Echo(Random):
    """Draws from all it was shown, scores and excess too: another history is another point."""

    name: ClassVar[str] = "tests-echo-goals"
    needs_history: ClassVar[bool] = True
    several: ClassVar[bool] = True

    def ask(self, space: Space, n: int, history: Iterable[Any] = ()) -> dict[str, Any]:
        shown = History.coerce(history)
        said = [shown.n, shown.state, shown.step, shown.score, shown.scores, shown.excess, list(shown.points)]
        x, y = (int(digest([n, repr([part.tolist() if hasattr(part, "tolist") else part for part in said])])[at : at + 8], 16)
                for at in (0, 8))  # fmt: skip
        return {"x": x / 2**32, "y": y / 2**32}


def a_study(store: Store, **terms: Any) -> Study:
    return Study(store, "s", SPACE, **{"goal": GOAL, "seed": 1, "sampler": Sobol(), **terms})


def run(study: Study, ends: Sequence[Any], trials: int | None = None) -> None:
    """Trials one after the other: scores, (scores, constraints), or an exception."""
    for trial, end in zip(study.trials(trials or len(ends)), ends, strict=False):
        with trial:
            if isinstance(end, Exception):
                raise end
            scores, constraints = end if isinstance(end, tuple) else (end, None)
            trial.done(scores, constraints=constraints)


def key(n: int, attempt: int = 0) -> str:
    return f"study/s/{'again' if attempt else 'trial'}/000000/{n:08d}-{attempt}.json"


POOL = [
    [1, 1], [2, 3], [3, 2], ValueError("no"), [1, 1], ([0, 9], {"gb": 0.5, "s": -1}), ([0.5, 0.5], {"gb": -1}), [4, 3],
]  # fmt: skip
FRONT = [0, 1, 4, 6]  # 2 and 7 are dominated by 1, 5 breaks a constraint, 0 and 4 are equal
