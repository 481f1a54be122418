"""Spaces: Float, Int, Choice and Constant under names, with conditions; values to the unit cube and back."""

from ._numeric import Float, Int
from ._param import Choice, Constant, Param
from ._space import Space
from ._tree import Levels, Tree, all_levels, these_levels
from ._values import Value

__all__ = [
    "Choice",
    "Constant",
    "Float",
    "Int",
    "Levels",
    "Param",
    "Space",
    "Tree",
    "Value",
    "all_levels",
    "these_levels",
]
