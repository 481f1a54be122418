"""How the tables were made: ``recipe.py [NAME ...]`` writes tables/NAME.csv, in bench/.venv. Done once; takes an hour.

Each is a learner of scikit-learn on a data set that comes with it, scored by cross-validation, less is better. Of the
configurations 60% are even over the space; each later one moves a few parameters of one of the best twentieth so far,
because a table of chance alone is empty where samplers end up.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from bench.search.space import Spec, When, at, drawn

HERE = Path(__file__).resolve().parent / "tables"
KERNELS = ("rbf", "poly", "sigmoid")

_SVM: Spec = {
    "kernel": ("choice", KERNELS), "C": ("float", 1e-3, 1e4, True), "gamma": ("float", 1e-6, 1e1, True),
    "scale": ("choice", ("none", "standard", "minmax")), "coef0": ("float", 0.0, 1.0, False),
    "degree": ("int", 2, 6, False),
}  # fmt: skip
_SVM_WHEN: When = {"coef0": ("kernel", ("poly", "sigmoid")), "degree": ("kernel", ("poly",))}

#: name -> (rows, space, conditions)
SPACES: dict[str, tuple[int, Spec, When]] = {
    "svc_cancer": (1500, _SVM, {}),
    "svc_digits": (1200, _SVM, _SVM_WHEN),
    "mlp_digits": (1000, {
        "lr": ("float", 1e-4, 1.0, True), "alpha": ("float", 1e-6, 1e1, True), "width": ("int", 4, 128, True),
        "depth": ("int", 1, 3, False), "batch": ("int", 8, 256, True), "momentum": ("float", 0.0, 0.99, False),
        "activation": ("choice", ("relu", "tanh", "logistic")), "solver": ("choice", ("adam", "sgd")),
    }, {}),
    "gbm_diabetes": (1000, {
        "lr": ("float", 3e-3, 1.0, True), "trees": ("int", 5, 200, True), "leaves": ("int", 2, 64, True),
        "least": ("int", 1, 64, True), "rows": ("float", 0.2, 1.0, False), "columns": ("float", 0.1, 1.0, False),
        "loss": ("choice", ("squared_error", "absolute_error", "huber")),
    }, {}),
    "sgd_cancer": (1200, {
        "loss": ("choice", ("hinge", "log_loss", "modified_huber", "perceptron")), "alpha": ("float", 1e-7, 1e1, True),
        "eta": ("float", 1e-5, 1e1, True), "mix": ("float", 0.0, 1.0, False),
        "rate": ("choice", ("constant", "invscaling", "adaptive")), "power": ("float", 0.1, 0.9, False),
        "epochs": ("int", 2, 50, True),
    }, {}),
    "svr_diabetes": (1200, {
        "kernel": ("choice", KERNELS), "C": ("float", 1e-2, 1e5, True), "gamma": ("float", 1e-5, 1e1, True),
        "epsilon": ("float", 1e-3, 1e2, True), "coef0": ("float", 0.0, 1.0, False), "degree": ("int", 2, 5, False),
    }, _SVM_WHEN),
}  # fmt: skip


def _learner(name: str, p: dict[str, Any]) -> tuple[Any, str]:
    """The pipeline of a configuration and what scores it (more is better, in scikit-learn's words)."""
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
    from sklearn.svm import SVC, SVR

    match name:
        case "svc_cancer" | "svc_digits":
            scale = {"none": FunctionTransformer, "standard": StandardScaler, "minmax": MinMaxScaler}[p["scale"]]()
            svc = SVC(
                C=p["C"], kernel=p["kernel"], gamma=p["gamma"], degree=p.get("degree", 3), coef0=p.get("coef0", 0.0),
                max_iter=5000,
            )  # fmt: skip
            return make_pipeline(scale, svc), "accuracy"
        case "svr_diabetes":
            svr = SVR(
                C=p["C"], kernel=p["kernel"], gamma=p["gamma"], epsilon=p["epsilon"], degree=p.get("degree", 3),
                coef0=p.get("coef0", 0.0), max_iter=5000,
            )  # fmt: skip
            return make_pipeline(StandardScaler(), svr), "neg_root_mean_squared_error"
        case "sgd_cancer":
            sgd = SGDClassifier(
                loss=p["loss"], penalty="elasticnet", alpha=p["alpha"], l1_ratio=p["mix"], eta0=p["eta"],
                learning_rate=p["rate"], power_t=p["power"], max_iter=p["epochs"], tol=None, random_state=0,
            )  # fmt: skip
            return make_pipeline(StandardScaler(), sgd), "accuracy"
        case "mlp_digits":
            mlp = MLPClassifier(
                (p["width"],) * p["depth"], activation=p["activation"], solver=p["solver"], alpha=p["alpha"],
                batch_size=p["batch"], learning_rate_init=p["lr"], momentum=p["momentum"], max_iter=12, random_state=0,
            )  # fmt: skip
            return make_pipeline(MinMaxScaler(), mlp), "neg_log_loss"
        case "gbm_diabetes":
            return GradientBoostingRegressor(
                learning_rate=p["lr"], n_estimators=p["trees"], max_leaf_nodes=p["leaves"], max_depth=None,
                min_samples_leaf=p["least"], subsample=p["rows"], max_features=p["columns"], loss=p["loss"],
                random_state=0,
            ), "neg_root_mean_squared_error"  # fmt: skip
    raise ValueError(name)


def _scorer(name: str) -> Callable[[dict[str, Any]], float]:
    from sklearn import datasets
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

    x, y = getattr(datasets, "load_" + {"cancer": "breast_cancer"}.get(name[4:], name[4:]))(return_X_y=True)
    if name.endswith("digits"):
        keep = np.random.default_rng(0).permutation(len(x))[:600]
        x, y = x[keep], y[keep]
    kind = KFold if name.endswith("diabetes") else StratifiedKFold
    folds = kind(2 if name == "mlp_digits" else 3, shuffle=True, random_state=0)

    def score(point: dict[str, Any]) -> float:
        learner, scoring = _learner(name, point)
        try:
            loss = -float(np.mean(cross_val_score(learner, x, y, cv=folds, scoring=scoring, error_score="raise")))
        except (ValueError, FloatingPointError):
            loss = np.nan
        # a broken fit is a bad one, and no loss is worse than that
        worst = {"accuracy": 0.0, "neg_log_loss": 20.0}.get(scoring, 1000.0)
        return min(loss, worst) if np.isfinite(loss) else worst

    return score


def _neighbour(space: Spec, when: When, point: dict[str, Any], rng: Any) -> dict[str, Any]:
    """A point with some parameters a tenth of their range away, choices drawn anew."""
    full = drawn(space, {}, rng) | point
    for name, s in space.items():
        if rng.uniform() < 0.5:
            continue
        if s[0] == "choice":
            full[name] = at(s, rng.uniform()) if rng.uniform() < 0.5 else full[name]
            continue
        span = np.log(s[2] / s[1]) if s[3] else s[2] - s[1]
        u = (np.log(full[name] / s[1]) if s[3] else full[name] - s[1]) / span
        full[name] = at(s, float(np.clip(u + rng.normal() * 0.1, 0, 1 - 1e-9)))
    return {n: full[n] for n in space if n not in when or full[when[n][0]] in when[n][1]}


def make(name: str) -> None:
    """One table."""
    count, space, when = SPACES[name]
    score, rng, began = _scorer(name), np.random.default_rng([sum(map(ord, name)), 1]), time.process_time()
    rows: list[tuple[float, dict[str, Any]]] = []
    while len(rows) < count:
        if len(rows) < 0.6 * count:
            point = drawn(space, when, rng)
        else:
            best = sorted(range(len(rows)), key=lambda k: rows[k][0])[: len(rows) // 20]
            point = _neighbour(space, when, rows[best[int(rng.integers(len(best)))]][1], rng)
        point = {n: float(f"{v:.4g}") if isinstance(v, float) else v for n, v in point.items()}
        rows.append((score(point), point))
        if len(rows) % 100 == 0:
            print(f"{name} {len(rows)} of {count}, {time.process_time() - began:.0f} s", file=sys.stderr, flush=True)
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*space, "score"])
        table.writerows([[point.get(n, "") for n in space] + [f"{value:.5g}"] for value, point in rows])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for table in sys.argv[1:] or SPACES:
        make(table)
