"""The points every sampler gives, kept in golden.json: a study's later trials must not change under it.

A difference means another sequence: raise the sampler's ``version``, then run ``python -m tests.search.golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dibs._canon import to_json
from dibs.search import make_sampler
from dibs.space import Choice, Float, Int, Space

FILE = Path(__file__).with_name("golden.json")

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    drop=Float(0, 0.5, step=0.1),
    shift=Float(-3, 7),
    layers=Int(1, 8),
    width=Int(16, 1024, log=True),
    opt=Choice("adam", "sgd", None, True, 1, 1.0, (3, 3)),
    momentum=Float(0, 0.99, when={"opt": ["sgd"]}),
    nesterov=Choice(True, False, when={"opt": ["sgd", None]}),
    epochs=30,
)
SPECS: list[dict[str, Any]] = [
    {"name": "random", "version": 1, "args": {}},
    {"name": "sobol", "version": 1, "args": {}},
    {"name": "grid", "version": 1, "args": {"steps": 3}},
]
INDEXES = (0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 1000, 99_999)
SEEDS = (0, 4242)


def sequences() -> list[dict[str, Any]]:
    """Sampler, seed, index and point, as JSON."""
    rows = []
    for spec in SPECS:
        for seed in SEEDS:
            sampler = make_sampler(spec, seed=seed, goal="min")
            for n in INDEXES:
                point = sampler.ask(SPACE, n)
                shown = None if point is None else {name: to_json(value) for name, value in point.items()}
                rows.append({"sampler": spec, "seed": seed, "n": n, "point": shown})
    return rows


def main() -> None:
    FILE.write_text("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in sequences()) + "\n]\n")


if __name__ == "__main__":
    main()
