"""One optimiser with workers of its own, and what the sink brings back: ``sink_players.py NAME`` prints it as JSON.

Runs in that optimiser's virtual environment (bench/sink_optimisers.py makes it), where of dibs only ``src`` is on the path.
Every evaluation also appends a line to a file, which is the witness: the sink must have the best of them, with the model
that was fitted in that worker.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dibs import Sink

MAIN = os.getpid()
N = 24


class Model:
    """What is fitted where the objective runs."""

    def __init__(self, loss: float) -> None:
        self.loss, self.pid = loss, os.getpid()


def evaluate(params: dict[str, Any], sink: Sink) -> float:
    """The loss of a point; the sink and the witness are told."""
    x, y = float(params["x"]), float(params["y"])
    loss = (x - 0.3) ** 2 + abs(y - 2) / 7
    sink.record(loss, artifact=Model(loss), params=params, pid=os.getpid())
    fd = os.open(f"{sink.folder}.seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, f"{json.dumps([loss, os.getpid()])}\n".encode())
    os.close(fd)
    return loss


def hyperopt(sink: Sink) -> Any:
    """Its own workers need Spark or MongoDB: four searches in loky's."""
    from hyperopt import Trials, fmin, hp, tpe
    from joblib import Parallel, delayed

    def search(seed: int) -> tuple[float, Any]:
        import numpy as np

        trials = Trials()
        space = {"x": hp.uniform("x", 0, 1), "y": hp.quniform("y", 0, 9, 1)}
        best = fmin(
            partial(evaluate, sink=sink), space, algo=tpe.suggest, max_evals=N // 4, trials=trials,
            rstate=np.random.default_rng(seed), show_progressbar=False,
        )  # fmt: skip
        return min(trials.losses()), best

    return min(Parallel(n_jobs=2, batch_size=1)(delayed(search)(seed) for seed in range(4)), key=lambda each: each[0])[
        1
    ]


def smac(sink: Sink) -> Any:
    """``n_workers``: dask."""
    from ConfigSpace import Configuration, ConfigurationSpace
    from smac import HyperparameterOptimizationFacade, Scenario

    def target(config: Configuration, seed: int = 0) -> float:
        return evaluate(dict(config), sink)

    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0, 9)}, seed=1)
    scenario = Scenario(
        space, n_trials=N, n_workers=2, deterministic=True, output_directory=Path(f"{sink.folder}.smac"), seed=1
    )
    facade = HyperparameterOptimizationFacade(scenario, target, overwrite=True, logging_level=False)
    best = dict(facade.optimize())
    facade._runner.close()  # else it does so while the interpreter ends, and waits a minute for what is gone by then
    return best


def mango(sink: Sink) -> Any:
    """``scheduler.parallel``: joblib."""
    from mango import Tuner, scheduler
    from scipy.stats import uniform

    @scheduler.parallel(n_jobs=2)
    def objective(x: float, y: int) -> float:
        return evaluate({"x": x, "y": y}, sink)

    tuner = Tuner({"x": uniform(0, 1), "y": range(10)}, objective, {"num_iteration": N // 4, "initial_random": 4})
    return tuner.minimize()["best_params"]


def gpyopt(sink: Sink) -> Any:
    """``num_cores``: a fork per batch and core."""
    import numpy as np
    from GPyOpt.methods import BayesianOptimization

    def objective(points: Any) -> Any:
        return np.array([[evaluate({"x": float(x), "y": float(y)}, sink)] for x, y in points])

    domain = [
        {"name": "x", "type": "continuous", "domain": (0, 1)},
        {"name": "y", "type": "discrete", "domain": tuple(range(10))},
    ]
    search = BayesianOptimization(
        objective, domain, num_cores=2, batch_size=2, initial_design_numdata=6, evaluator_type="random"
    )
    search.run_optimization(max_iter=N // 3)
    return dict(zip(("x", "y"), map(float, search.x_opt), strict=True))


PLAYERS = {"hyperopt": hyperopt, "smac": smac, "arm-mango": mango, "GPyOpt": gpyopt}


def played(name: str) -> dict[str, Any]:
    """What happened, and every way in which it is not what was promised."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["DIBS_SINK_DIR"] = place
        with Sink.create(maximize=False) as sink:
            theirs = PLAYERS[name](sink)
            lines = [json.loads(line) for line in Path(f"{sink.folder}.seen").read_text().splitlines()]
            best = sink.best(prefer_params=theirs)
    assert best is not None
    losses, pids = [loss for loss, _ in lines], {pid for _, pid in lines}
    wrong = {
        "another score than the best": best.score != min(losses),
        "another process than the best's": [best.score, best.scalars["pid"]] not in lines,
        "not the winner's artefact": not best.artifact_is_winner or best.artifact.loss != best.score,
        "an artefact of another process": best.artifact.pid != best.scalars["pid"],
        "nothing ran outside the main process": pids == {MAIN},
        "the winner ran in the main process, so this shows nothing": best.artifact.pid == MAIN,
        "skipped files": best.skipped > 0,
    }
    return {
        "version": version(name), "evaluations": len(lines), "processes": len(pids - {MAIN}), "in_main": MAIN in pids,
        "matched": best.matched_best_params, "wrong": [what for what, is_so in wrong.items() if is_so],
    }  # fmt: skip


if __name__ == "__main__":
    import sink_players  # so that what workers unpickle is found by name

    print("\n" + json.dumps(sink_players.played(sys.argv[1])))
