"""What is searched: own functions here, BBOB's and real tables beside it. Which is in which set stands in README.md.

All but the tables are shifted by the seed. Noisy ones tell a sampler another value than the regret is taken on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .bbob import bbob
from .space import Function, Spec
from .tables import FLOOR, table

__all__ = ["DEV", "EASY", "HARD", "make"]


def _vector(point: dict[str, Any], shift: Any) -> Any:
    return np.array([point[f"x{i}"] for i in range(len(shift))]) - shift


def _box(dims: int, low: float, high: float) -> Spec:
    return {f"x{i}": ("float", low, high, False) for i in range(dims)}


def ackley10(rng: Any) -> Function:
    shift = rng.uniform(-20, 20, 10)

    def value(point: dict[str, Any]) -> float:
        x = _vector(point, shift)
        a, b = math.sqrt(float((x * x).mean())), float(np.cos(2 * math.pi * x).mean())
        return 20 + math.e - 20 * math.exp(-0.2 * a) - math.exp(b)

    return Function("ackley10", _box(10, -32.768, 32.768), value, 0.0)


def rastrigin5(rng: Any) -> Function:
    shift = rng.uniform(-3, 3, 5)

    def value(point: dict[str, Any]) -> float:
        x = _vector(point, shift)
        return float((x * x - 10 * np.cos(2 * math.pi * x) + 10).sum())

    return Function("rastrigin5", _box(5, -5.12, 5.12), value, 0.0)


def rosenbrock5(rng: Any) -> Function:
    shift = rng.uniform(-0.8, 0.8, 5)

    def value(point: dict[str, Any]) -> float:
        x = _vector(point, shift)
        return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())

    return Function("rosenbrock5", _box(5, -2.048, 2.048), value, 0.0)


_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = np.array([
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
])  # fmt: skip
_C = np.array([1.0, 1.2, 3.0, 3.2])


def _hartmann(shift: Any) -> Callable[[dict[str, Any]], float]:
    def value(point: dict[str, Any]) -> float:
        x = _vector(point, shift)
        return -float(_C @ np.exp(-(_A * (x - _P) ** 2).sum(axis=1)))

    return value


def hartmann6(rng: Any) -> Function:
    return Function("hartmann6", _box(6, 0, 1), _hartmann(rng.uniform(-0.003, 0.1, 6)), -3.32237)


def hart6noisy(rng: Any) -> Function:
    return Function(
        "hart6noisy",
        _box(6, 0, 1),
        _hartmann(rng.uniform(-0.003, 0.1, 6)),
        -3.32237,
        lambda true, normal: true + 0.25 * normal,
    )


def branin2(rng: Any) -> Function:
    shift = rng.uniform(-1, 1, 2)

    def value(point: dict[str, Any]) -> float:
        x, y = _vector(point, shift)
        bowl = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
        return bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10

    return Function("branin2", {"x0": ("float", -5, 10, False), "x1": ("float", 0, 15, False)}, value, 0.397887)


def mixed8(rng: Any) -> Function:
    """Two log floats, two floats, two ints, two choices; the choices bend the valley, so they are no mere offsets."""
    at, good = rng.uniform(0.2, 0.8, 6), rng.integers(0, 4, 2)
    space: Spec = {
        "a": ("float", 1e-5, 1e-1, True), "b": ("float", 1e-3, 1e3, True), "c": ("float", -1, 1, False),
        "d": ("float", 0, 10, False), "e": ("int", 1, 12, False), "f": ("int", 1, 1024, True),
        "g": ("choice", ["r", "s", "t", "u"]), "h": ("choice", ["v", "w", "x", "y"]),
    }  # fmt: skip

    def value(point: dict[str, Any]) -> float:
        u = [
            (math.log10(point["a"]) + 5) / 4, (math.log10(point["b"]) + 3) / 6, (point["c"] + 1) / 2, point["d"] / 10,
            (point["e"] - 0.5) / 12, math.log2(point["f"]) / 10,
        ]  # fmt: skip
        g, h = "rstu".index(point["g"]), "vwxy".index(point["h"])
        off = 0.12 * ((g - good[0]) % 4)
        total = sum(abs(x - t - off) ** 1.5 for x, t in zip(u[:4], at[:4], strict=True))
        total += (
            0.7 * abs(u[4] - round(at[4] * 12 - 0.5 + 1e-9) / 12 - 0.5 / 12)
            + 0.7 * (u[5] - round(at[5] * 10) / 10) ** 2
        )
        return total + 0.15 * ((g != good[0]) + (h != good[1]) * (1 + u[2]))

    return Function("mixed8", space, value, 0.0)


def grid(rng: Any) -> Function:
    """The table ``svc_cancer`` on a finite grid of 1,440 points."""
    whole = table("svc_cancer")
    space: Spec = {
        "kernel": ("choice", ("rbf", "poly", "sigmoid")), "scale": ("choice", ("none", "standard", "minmax")),
        "c": ("int", 0, 7, False), "g": ("int", 0, 9, False), "degree": ("int", 2, 3, False),
    }  # fmt: skip

    def value(point: dict[str, Any]) -> float:
        c, gamma = 10.0 ** (point["c"] - 3), 10.0 ** (-6 + point["g"] * 7 / 9)
        return whole.value({**point, "C": c, "gamma": gamma, "coef0": 0.0})

    every = [
        {"kernel": k, "scale": s, "c": c, "g": g, "degree": d}
        for k in space["kernel"][1] for s in space["scale"][1] for c in range(8) for g in range(10) for d in (2, 3)
    ]  # fmt: skip
    return Function("grid", space, value, min(map(value, every)), floor=FLOOR)


def branches10(rng: Any) -> Function:
    """Three methods with three parameters of their own each: a bowl, a valley, a bowl with waves, none far ahead."""
    at, worth = rng.uniform(0.2, 0.8, (3, 3)), rng.permutation(3) * 0.1
    space: Spec = {"method": ("choice", ("bowl", "valley", "waves"))}
    space |= {f"{m}{i}": ("float", 0.0, 1.0, False) for m in space["method"][1] for i in range(3)}
    when = {f"{m}{i}": ("method", (m,)) for m in space["method"][1] for i in range(3)}

    def value(point: dict[str, Any]) -> float:
        k = space["method"][1].index(point["method"])
        x = np.array([point[f"{point['method']}{i}"] for i in range(3)]) - at[k]
        if k == 1:
            x = np.array([x[0], 5.0 * (x[1] - 2.0 * x[0] * x[0]), 5.0 * (x[2] - x[1])])
        waves = 0.05 * float((1.0 - np.cos(12.0 * math.pi * x)).sum()) if k == 2 else 0.0
        return float(worth[k]) + float((x * x).sum()) + waves

    return Function("branches10", space, value, 0.0, when=when)


def sgd_when(rng: Any) -> Function:
    """The table ``sgd_cancer`` with a condition: ``power`` is there with one schedule only."""
    whole = table("sgd_cancer")
    return Function(
        "sgd_when", whole.space, lambda point: whole.value({"power": 0.5, **point}), whole.least,
        when={"power": ("rate", ("invscaling",))}, floor=FLOOR,
    )  # fmt: skip


_OWN = {
    f.__name__: f
    for f in (
        ackley10, rastrigin5, rosenbrock5, hart6noisy, branin2, hartmann6, mixed8, grid, branches10, sgd_when,
    )
}  # fmt: skip

HARD = (
    "ackley10", "rastrigin5", "rosenbrock5", "hart6noisy", "bbob08-10", "bbob10-5", "bbob13-10", "bbob15-5", "bbob16-3",
    "bbob17-10", "bbob03-10", "bbob21-5", "bbob24-5", "bbob113-5", "svc_cancer", "svc_digits", "mlp_digits",
    "gbm_diabetes",
)  # fmt: skip
EASY = ("branin2", "hartmann6", "mixed8", "grid")
DEV = (
    "bbob04-5", "bbob06-10", "bbob09-10", "bbob18-10", "bbob19-3", "bbob22-5", "bbob119-5", "sgd_cancer",
    "svr_diabetes", "sgd_when", "branches10",
)  # fmt: skip


def make(name: str, seed: int) -> Function:
    """The function as that seed shifts it."""
    if name.startswith("bbob"):
        return bbob(name, seed)
    return _OWN[name](np.random.default_rng([seed, 77])) if name in _OWN else table(name)
