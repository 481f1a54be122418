"""Who asks and is told: dibs' samplers and their peers, each made from a name, a function and a seed."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

from bench.search.space import Function

__all__ = ["PEERS", "Player", "player"]

PEERS = ("optuna", "optuna-gp", "neps")


class Player(Protocol):
    """Asks for a point, later tells its score."""

    version: str

    def ask(self, n: int) -> dict[str, Any]: ...
    def tell(self, n: int, score: float) -> None: ...


class Dibs:
    """A sampler of dibs, given the whole history at every ask."""

    def __init__(self, name: str, function: Function, seed: int) -> None:
        from dibs import Choice, Float, Int, Space
        from dibs.search import make_sampler

        made: dict[str, Any] = {}
        for param, s in function.space.items():
            parent = function.when.get(param)
            when = {parent[0]: list(parent[1])} if parent else None
            if s[0] == "choice":
                made[param] = Choice(*s[1], when=when)
            else:
                made[param] = (Float if s[0] == "float" else Int)(s[1], s[2], log=s[3], when=when)
        self.space, self.sampler = Space(made), make_sampler(name, seed=seed, goal="min")
        self.version = str(self.sampler.version)
        self.rows: dict[int, Any] = {}

    def ask(self, n: int) -> dict[str, Any]:
        from dibs import History

        point = self.sampler.ask(self.space, n, History.of(self.rows.values()))
        assert point is not None
        self.rows[n] = (n, point, None, "running", None)
        return point

    def tell(self, n: int, score: float) -> None:
        self.rows[n] = (n, self.rows[n][1], score, "done", None)


class Optuna:
    """The peer as it comes: its default sampler, or its Gaussian process."""

    def __init__(self, name: str, function: Function, seed: int) -> None:
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        samplers = optuna.samplers
        self.study = optuna.create_study(
            sampler=samplers.GPSampler(seed=seed) if name == "optuna-gp" else samplers.TPESampler(seed=seed)
        )
        self.version = optuna.__version__
        self.function = function
        self.space: dict[str, Any] = {
            param: CategoricalDistribution(s[1])
            if s[0] == "choice"
            else (FloatDistribution if s[0] == "float" else IntDistribution)(s[1], s[2], log=s[3])
            for param, s in function.space.items()
        }
        self.trials: dict[int, Any] = {}

    def ask(self, n: int) -> dict[str, Any]:
        if not self.function.when:
            trial = self.trials[n] = self.study.ask(self.space)
            return dict(trial.params)
        trial, point = self.study.ask(), {}
        for param, distribution in self.space.items():
            parent = self.function.when.get(param)
            if parent is None or point.get(parent[0]) in parent[1]:
                point[param] = trial._suggest(param, distribution)
        self.trials[n] = trial
        return point

    def tell(self, n: int, score: float) -> None:
        self.study.tell(self.trials[n], score)


class Neps:
    """NePS's Bayesian optimisation, its own choice for a space without conditions, fidelities and priors."""

    def __init__(self, function: Function, seed: int) -> None:
        import logging
        from importlib.metadata import version

        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        import neps
        import numpy as np
        import torch

        np.random.seed(seed)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.version = version("neural-pipeline-search")
        params = {
            param: neps.Categorical(list(s[1]))
            if s[0] == "choice"
            else (neps.Float if s[0] == "float" else neps.Integer)(s[1], s[2], log=s[3])
            for param, s in function.space.items()
        }
        self.search = neps.AskAndTell(
            neps.algorithms.bayesian_optimization(type("Searched", (neps.PipelineSpace,), params)())
        )
        self.trials: dict[int, Any] = {}

    def ask(self, n: int) -> dict[str, Any]:
        self.trials[n] = self.search.ask()
        return dict(self.trials[n].config)

    def tell(self, n: int, score: float) -> None:
        self.search.tell(self.trials[n], score)


def player(name: str, function: Function, seed: int) -> Player:
    """The one of that name."""
    if name == "neps":
        return Neps(function, seed)
    return Optuna(name, function, seed) if name in PEERS else Dibs(name, function, seed)
