"""Samplers, pruners and what they see: pure, history or curves in, point or verdict out; nothing here can reach a store.

Each is loaded when first used, or asked for by its name: a worker that draws Sobol points needs none that learns.
"""

from typing import TYPE_CHECKING

from dibs._lazy import lazily

if TYPE_CHECKING:
    from ._any import AnyOf
    from ._asha import Asha, Hyperband
    from ._auto import Auto
    from ._cmaes import CMAES
    from ._curve import Curve
    from ._fronts import non_dominated
    from ._gp import GP
    from ._grid import Grid
    from ._history import STATES, History, Pair, Row, Score
    from ._median import Median, Percentile
    from ._nsga2 import NSGA2
    from ._pruner import Pruner, PrunerSpec, Verdict, make_pruner, register_pruner
    from ._random import Random
    from ._sampler import Goal, Goals, Sampler, a_goal, make_sampler, register
    from ._simple import Diverged, Patience, Threshold
    from ._sobol import Sobol
    from ._tpe import TPE

__getattr__, __dir__ = lazily(__name__, {
    "_any": ["AnyOf"],
    "_asha": ["Asha", "Hyperband"],
    "_auto": ["Auto"],
    "_cmaes": ["CMAES"],
    "_curve": ["Curve"],
    "_fronts": ["non_dominated"],
    "_gp": ["GP"],
    "_grid": ["Grid"],
    "_history": ["STATES", "History", "Pair", "Row", "Score"],
    "_median": ["Median", "Percentile"],
    "_nsga2": ["NSGA2"],
    "_pruner": ["Pruner", "PrunerSpec", "Verdict", "make_pruner", "register_pruner"],
    "_random": ["Random"],
    "_sampler": ["Goal", "Goals", "Sampler", "a_goal", "make_sampler", "register"],
    "_simple": ["Diverged", "Patience", "Threshold"],
    "_sobol": ["Sobol"],
    "_tpe": ["TPE"],
})  # fmt: skip

__all__ = [
    "CMAES",
    "GP",
    "NSGA2",
    "STATES",
    "TPE",
    "AnyOf",
    "Asha",
    "Auto",
    "Curve",
    "Diverged",
    "Goal",
    "Goals",
    "Grid",
    "History",
    "Hyperband",
    "Median",
    "Pair",
    "Patience",
    "Percentile",
    "Pruner",
    "PrunerSpec",
    "Random",
    "Row",
    "Sampler",
    "Score",
    "Sobol",
    "Threshold",
    "Verdict",
    "a_goal",
    "make_pruner",
    "make_sampler",
    "non_dominated",
    "register",
    "register_pruner",
]
