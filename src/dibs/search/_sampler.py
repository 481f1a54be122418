"""What a sampler is: a pure function of (space, n, history), its seed and its goal or goals.

Nothing is handed out and nothing kept: whoever asks for index n with the same history gets the same point,
on every machine. A sampler never sees a store, a clock or a random source; chance is ``_canon.chance``.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias

from dibs.errors import RefusedError, UsageError
from dibs.space import Space, Value

from ._history import Pair
from ._named import Known, made

__all__ = ["Goal", "Goals", "Sampler", "a_goal", "make_sampler", "register"]

Goal: TypeAlias = Literal["min", "max"]
#: one goal, or two to eight
Goals: TypeAlias = Goal | tuple[Goal, ...]

_MOST_GOALS = 8


class Sampler(ABC):
    """Subclass it with a ``name``, a ``version`` and ``ask``, and pass an instance to a Study.

    ``version`` names a sequence of points: raise it whenever the same (seed, n, history) would give another point.
    ``seed`` None means that the study's is filled in; asked without one, it counts as 0.
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    needs_history: ClassVar[bool] = True  #: False: ``ask`` ignores the history, so nobody need read it
    several: ClassVar[bool] = False  #: whether it can be asked with several goals
    seed: int | None = None
    goal: Goals | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = f"{cls.__module__}.{cls.__qualname__}"

    def __init__(self, seed: int | None = None, goal: Goals | None = None) -> None:
        self.seed, self.goal = _a_seed(seed), self._a_goal(goal)

    @abstractmethod
    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Value] | None:
        """The point of index ``n``, or None if there is none: the sampler ran out before ``n``.

        ``history``: a History, or (point, score or None) pairs; None = running. The same on every machine.
        """

    def size(self, space: Space) -> int | None:
        """How many indexes have a point; None = all."""
        return None

    def args(self) -> dict[str, Any]:
        """What ``__init__`` must be given, besides seed and goal, to make this sampler again: JSON."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Name, version and arguments, as they stand in study.json."""
        return {"name": self.name, "version": self.version, "args": self.args()}

    def seeded(self, seed: int | None, goal: Goals | None) -> Self:
        """A copy with seed and goal filled in; RefusedError, naming both values, if it has another one already.

        UsageError for several goals if it knows what to do with one only.
        """
        twin = copy.copy(self)
        for field, theirs in (("seed", _a_seed(seed)), ("goal", self._a_goal(goal))):
            ours = getattr(self, field)
            if theirs is None:
                continue
            if ours is not None and ours != theirs:
                raise RefusedError(
                    f"the sampler's {field} is {ours!r} and the study's {theirs!r}: leave the sampler's out",
                    field=field,
                    theirs=theirs,
                    ours=ours,
                )
            object.__setattr__(twin, field, theirs)  # whatever the subclass thinks of assignment
        return twin

    def _needed_goal(self) -> Goals:
        """The goal. Raises UsageError without one: it is never guessed."""
        if self.goal is None:
            raise UsageError(f"sampler {self.name!r} needs a goal: {type(self).__name__}(goal='min') or goal='max'")
        return self.goal

    def _a_goal(self, goal: Any) -> Goals | None:
        wanted = None if goal is None else a_goal(goal)
        if isinstance(wanted, tuple) and not self.several:
            able = ", ".join(kind.name for kind in _KNOWN.every() if kind.several)
            raise UsageError(f"sampler {self.name!r} searches for one goal, not {len(wanted)}: take one of {able}")
        return wanted

    def __repr__(self) -> str:
        filled = {field: getattr(self, field) for field in ("seed", "goal") if getattr(self, field) is not None}
        args = ", ".join(f"{key}={value!r}" for key, value in (self.args() | filled).items())
        return f"{type(self).__name__}({args})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sampler):
            return NotImplemented
        return (self.describe(), self.seed, self.goal) == (other.describe(), other.seed, other.goal)

    def __hash__(self) -> int:
        return hash((self.name, self.version, self.seed, self.goal))


_KNOWN: Known[Sampler] = Known({
    "auto": "_auto", "cmaes": "_cmaes", "gp": "_gp", "grid": "_grid", "nsga2": "_nsga2", "random": "_random",
    "sobol": "_sobol", "tpe": "_tpe",
})  # fmt: skip


def register(sampler: type[Sampler]) -> type[Sampler]:
    """Make a sampler known by its name to :func:`make_sampler`."""
    _KNOWN.add(sampler)
    return sampler


def make_sampler(
    spec: str | Mapping[str, Any] | Sampler, *, seed: int | None = None, goal: Goals | None = None
) -> Sampler:
    """The sampler that a name, a ``describe()`` from study.json, or an instance means, with seed and goal filled in.

    Raises UsageError for an unknown name, version or argument, and for one that cannot search for so many goals;
    RefusedError for an instance with another seed or goal.
    """
    if isinstance(spec, Sampler):
        return spec.seeded(seed, goal)
    found = made("sampler", spec, _KNOWN, " or a Sampler", given=("seed", "goal"))
    return found.seeded(seed, goal)


def _a_seed(seed: Any) -> int | None:
    if seed is not None and (type(seed) is not int or not -(2**63) <= seed < 2**63):
        raise UsageError(f"seed {seed!r} must be an int of 64 bits")
    return seed


def a_goal(goal: Any) -> Goals:
    """``goal`` as it is kept: "min" or "max", or a tuple of two to eight of them (a list will do). Raises UsageError."""
    if isinstance(goal, str) and goal in ("min", "max"):
        return goal  # type: ignore[return-value]
    if not isinstance(goal, list | tuple):
        raise UsageError(f"goal {goal!r:.80} must be 'min' or 'max', or a list of these")
    wrong = [each for each in goal if not isinstance(each, str) or each not in ("min", "max")]
    if wrong:
        raise UsageError(f"goal {wrong[0]!r:.80} must be 'min' or 'max'")
    if len(goal) == 1:
        raise UsageError(f"a list of one goal is one goal: write goal={goal[0]!r}")
    if not 2 <= len(goal) <= _MOST_GOALS:
        raise UsageError(f"{len(goal)} goals: a study has one, or a list of 2 to {_MOST_GOALS}")
    return tuple(goal)
