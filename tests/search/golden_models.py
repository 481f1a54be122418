"""The points the samplers that learn give, kept in golden_models.json: other machines must give the same.

Each study is played by W workers, one slower than the next; the objective is arithmetic on the point. A difference
means another sequence: raise the sampler's ``version``, then run ``python -m tests.search.golden_models``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dibs._canon import to_json
from dibs.search import History, Sampler, make_sampler
from dibs.space import Choice, Float, Int, Space

FILE = Path(__file__).with_name("golden_models.json")

MIXED = Space(
    lr=Float(1e-5, 1e-1, log=True, prior=1e-3),
    drop=Float(0, 0.5, step=0.1),
    shift=Float(-3, 7),
    layers=Int(1, 8),
    width=Int(16, 1024, log=True),
    opt=Choice("adam", "sgd", None, True, 1, 1.0, (3, 3)),
    size=Choice("s", "m", "l", ordered=True),
    epochs=30,
)
CONDITIONAL = Space(
    lr=Float(1e-5, 1e-1, log=True),
    opt=Choice("adam", "sgd", None, prior="sgd"),
    momentum=Float(0, 0.99, when={"opt": ["sgd"]}),
    nesterov=Choice(True, False, when={"opt": ["sgd", None]}),
    layers=Int(1, 8),
    skip=Int(1, 4, when={"layers": [3, 4, 5]}),
)
FINITE = Space(a=Int(1, 6), b=Choice("x", "y", "z"), c=Float(0, 1, step=0.25))
NUMBERS = Space({f"x{i}": Float(-5, 10) for i in range(6)})

CASES = [
    *((name, "mixed", MIXED) for name in ("auto", "tpe")),
    *((name, "conditional", CONDITIONAL) for name in ("auto", "gp")),
    *((name, "finite", FINITE) for name in ("gp", "tpe")),
    *((name, "numbers", NUMBERS) for name in ("gp", "tpe")),
]
TRIALS, WORKERS = 36, 5
VERSIONS = {"auto": 2, "gp": 2, "tpe": 1}


def score(space: Space, point: Any) -> float:
    """A valley, by arithmetic alone."""
    unit = space.unit(point)
    return sum((at - 0.3 - 0.05 * k) ** 2 * (1 + k) for k, at in enumerate(unit.values())) + 0.1 * (6 - len(unit))


def played(sampler: Sampler, space: Space, trials: int = TRIALS) -> list[dict[str, Any]]:
    """The points of a study in which trial n ends when n + 1 + n % WORKERS is asked for; a few fail or are pruned."""
    points: list[Any] = []
    for n in range(trials):
        rows: list[Any] = []
        for k, point in enumerate(points):
            ended = k + 1 + k % WORKERS <= n
            state = "running" if not ended else {11: "failed", 17: "pruned"}.get(k % 20, "done")
            rows.append((k, point, score(space, point) if state in ("done", "pruned") else None, state, None))
        points.append(sampler.ask(space, n, History.of(rows)))
    return points


def sequences() -> dict[str, list[Any]]:
    """Case -> its points, as JSON."""
    found = {}
    for name, title, space in CASES:
        sampler = make_sampler({"name": name, "version": VERSIONS[name]}, seed=4242, goal="min")
        found[f"{name} {title}"] = [{k: to_json(v) for k, v in point.items()} for point in played(sampler, space)]
    return found


def main() -> None:
    cases = [
        f"{json.dumps(case)}: [\n" + ",\n".join(json.dumps(point, sort_keys=True) for point in points) + "\n]"
        for case, points in sequences().items()
    ]
    FILE.write_text("{\n" + ",\n".join(cases) + "\n}\n")


if __name__ == "__main__":
    main()
