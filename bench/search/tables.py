"""Real tables, made searchable everywhere by a forest of extremely randomised trees (Geurts et al. 2006) over the rows.

The rows are tables/NAME.csv, made by recipe.py. ``least`` is the best of many points of the forest itself, found once
by ``python bench/search/tables.py`` and kept in tables/least.json: nobody can be below it by much.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench.search.recipe import HERE, SPACES, _neighbour
from bench.search.space import Function, Spec, When, drawn

__all__ = ["FLOOR", "table"]

_TREES = 30
_ABSENT = -0.5
FLOOR = 1e-3  # a forest is made of steps, and cross-validation tells no more apart


def _features(space: Spec, point: dict[str, Any]) -> list[float]:
    """Numbers on the searched scale in [0, 1], a choice as indicators; what is absent lies outside."""
    row: list[float] = []
    for name, s in space.items():
        if s[0] == "choice":
            row += [float(point.get(name) == value) for value in s[1]]
        elif name not in point:
            row.append(_ABSENT)
        elif s[3]:
            row.append(math.log(point[name] / s[1]) / math.log(s[2] / s[1]))
        else:
            row.append((point[name] - s[1]) / (s[2] - s[1]))
    return row


class Forest:
    """The mean of trees fitted to the rows; the same in every process of one version of scikit-learn."""

    def __init__(self, space: Spec, points: list[dict[str, Any]], scores: list[float]) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        self._space = space
        rows = np.array([_features(space, point) for point in points], np.float32)
        fit = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=0).fit(rows, np.array(scores))
        trees = [tree.tree_ for tree in fit.estimators_]
        first = np.cumsum([0] + [tree.node_count for tree in trees])
        self._roots = first[:-1]
        self._feature = np.concatenate([tree.feature for tree in trees])
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        self._value = np.concatenate([tree.value[:, 0, 0] for tree in trees])
        step = [(np.stack([t.children_left, t.children_right]) + start) for t, start in zip(trees, first, strict=False)]
        self._next = np.concatenate(step, axis=1)

    def __call__(self, point: dict[str, Any]) -> float:
        row = np.array(_features(self._space, point), np.float32).astype(np.float64)
        at = self._roots
        while True:
            feature = self._feature[at]
            inner = feature >= 0
            if not inner.any():
                return float(self._value[at].mean())
            right = (row[feature] > self._threshold[at]).astype(np.int64)
            at = np.where(inner, self._next[right, at], at)


@lru_cache
def _forest(name: str) -> Forest:
    _, space, _ = SPACES[name]
    points, scores = [], []
    with (HERE / f"{name}.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            scores.append(float(line.pop("score")))
            points.append({
                n: v if space[n][0] == "choice" else (int if space[n][0] == "int" else float)(v)
                for n, v in line.items() if v != ""
            })  # fmt: skip
    # a diverged run is as bad as a bad one: what lies beyond the ninetieth percentile is not told apart
    return Forest(space, points, np.minimum(scores, np.quantile(scores, 0.9)).tolist())


def table(name: str) -> Function:
    """The function of a table."""
    _, space, when = SPACES[name]
    least = json.loads((HERE / "least.json").read_text())[name]
    return Function(name, space, _forest(name), least, when=when, floor=FLOOR)


def _least(space: Spec, when: When, value: Any, seed: int) -> float:
    """A long climb: many points by chance, then moves of the best hundred."""
    rng = np.random.default_rng([seed, 3])
    pool = sorted((value(p), k, p) for k, p in enumerate(drawn(space, when, rng) for _ in range(20000)))[:100]
    for k in range(20000, 60000):
        point = _neighbour(space, when, pool[int(rng.integers(len(pool)))][2], rng)
        new = value(point)
        if new < pool[-1][0]:
            pool = sorted([*pool[:-1], (new, k, point)])
    return float(pool[0][0])


if __name__ == "__main__":
    path = HERE / "least.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or SPACES:
        _, space, when = SPACES[name]
        known[name] = round(_least(space, when, _forest(name), 0), 7)
        print(name, known[name])
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
