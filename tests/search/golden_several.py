"""The points given where there are several goals or constraints, and those of ``nsga2`` and ``cmaes``, kept in golden_several.json.

Played as in golden_models.py, with the same rules: a difference means another sequence, so raise the sampler's
``version``, then run ``python -m tests.search.golden_several``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dibs._canon import to_json
from dibs.search import History, make_sampler
from dibs.space import Float, Int, Space

from .golden_models import CONDITIONAL, FINITE, MIXED, NUMBERS, score

FILE = Path(__file__).with_name("golden_several.json")

STEPPED = Space(x=Float(-5, 10), y=Float(1e-3, 1, log=True, prior=0.1), k=Int(1, 8), width=Int(16, 1024, log=True))
SPACES = {"mixed": MIXED, "conditional": CONDITIONAL, "finite": FINITE, "numbers": NUMBERS, "stepped": STEPPED}

#: sampler, space, number of goals, whether there are constraints
CASES = [
    *(("gp", space, goals, limited) for space in ("numbers", "finite") for goals, limited in ((2, False), (1, True))),
    ("gp", "conditional", 3, True),
    ("auto", "mixed", 2, True),
    *(("tpe", space, goals, limited) for space in ("mixed", "numbers") for goals, limited in ((2, False), (1, True))),
    *(("nsga2", space, goals, True) for space in ("mixed", "conditional", "finite") for goals in (1, 3)),
    ("nsga2", "numbers", 2, False),
]
LIBRARY = [
    *(("cmaes", space, 1, False) for space in ("mixed", "numbers", "stepped", "finite")),
    ("cmaes", "numbers", 1, True),
]
TRIALS, WORKERS = 48, 5


def answer(space: Space, point: Any, goals: int) -> tuple[Any, float]:
    """Scores, of which the second should be large, and an excess, by arithmetic alone."""
    unit = list(space.unit(point).values())
    first = score(space, point)
    every = (first, sum(unit) / len(unit), sum(abs(at - 0.6) for at in unit))
    return first if goals == 1 else every[:goals], 0.45 - sum(unit) / len(unit)


def played(name: str, space: Space, goals: int, limited: bool, seed: int = 4242) -> list[dict[str, Any]]:
    """The points of a study in which trial n ends when n + 1 + n % WORKERS is asked for; a few fail or are pruned."""
    goal = "min" if goals == 1 else ("min", "max", "min")[:goals]
    sampler = make_sampler(name, seed=seed, goal=goal)  # type: ignore[arg-type]
    points: list[Any] = []
    for n in range(TRIALS):
        rows: list[Any] = []
        for k, point in enumerate(points):
            ended = k + 1 + k % WORKERS <= n
            state = "running" if not ended else {11: "failed", 17: "pruned"}.get(k % 20, "done")
            scores, excess = answer(space, point, goals) if state == "done" else (None, None)
            rows.append((k, point, scores, state, None, excess if limited and k % 7 else None))
        points.append(sampler.ask(space, n, History.of(rows)))
    return points


def sequences(cases: list[Any]) -> dict[str, list[Any]]:
    """Case -> its points, as JSON."""
    return {
        f"{name} {space} {goals}{' limited' * limited}": [
            {k: to_json(v) for k, v in point.items()} for point in played(name, SPACES[space], goals, limited)
        ]
        for name, space, goals, limited in cases
    }


def main() -> None:
    cases = [
        f"{json.dumps(case)}: [\n" + ",\n".join(json.dumps(point, sort_keys=True) for point in points) + "\n]"
        for case, points in sequences(CASES + LIBRARY).items()
    ]
    FILE.write_text("{\n" + ",\n".join(cases) + "\n}\n")


if __name__ == "__main__":
    main()
