"""Samplers and what they see: pure, history in, point out; nothing here can reach a store."""

from ._auto import Auto
from ._gp import GP
from ._grid import Grid
from ._history import STATES, History, Pair, Row
from ._random import Random
from ._sampler import Goal, Sampler, make_sampler, register
from ._sobol import Sobol
from ._tpe import TPE

__all__ = [
    "GP",
    "STATES",
    "TPE",
    "Auto",
    "Goal",
    "Grid",
    "History",
    "Pair",
    "Random",
    "Row",
    "Sampler",
    "Sobol",
    "make_sampler",
    "register",
]
