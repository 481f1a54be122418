"""How much each parameter mattered: what a method said, and what it could not see. The method itself is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from ._plain import Plain

__all__ = ["Importance", "Importances"]


@dataclass(frozen=True, slots=True)
class Importance(Plain):
    """One parameter. ``importance``: its share of all, 0 to 1; ``raw``: the method's own number.

    ``active``: results that have the parameter; ``values``: how many different values they have. One value tells nothing.
    """

    name: str
    importance: float
    raw: float
    active: int
    values: int


@dataclass(frozen=True, slots=True)
class Importances(Plain):
    """The parameters of a study, the most important first, over ``results`` results, ``attached`` of them from elsewhere.

    ``method`` and ``paper`` name what was computed, ``top`` how many results counted as good ones. ``outside``: results
    left out since they are not of the study's space. ``notes``: what these numbers do not tell, in sentences. ``goal``:
    what is better; with several goals that of number ``which`` of ``goals``.
    """

    study: str
    store: str
    goal: str
    method: str
    paper: str
    results: int
    attached: int
    outside: int
    top: int
    parameters: tuple[Importance, ...]
    notes: tuple[str, ...]
    which: int = 0
    goals: int = 1
