"""What a pruner is: a pure function of curves that has a reason to stop a trial, or none.

Nothing is handed out and nothing kept. A verdict depends on what was seen, and others see other things, so it is
written down with what it was based on and never made again. A pruner never sees a store, a clock or a random source.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from dibs._canon import digest
from dibs.errors import UsageError

from ._curve import Curve
from ._named import Known, made
from ._sampler import Goal

__all__ = ["Pruner", "PrunerSpec", "Verdict", "make_pruner", "register_pruner", "seen_of", "word"]


class Verdict(NamedTuple):
    """Stop: ``reason`` is one sentence, ``seen`` what it is based on, as JSON; ``pruner`` said so."""

    pruner: str
    reason: str
    seen: dict[str, Any]

    def body(self) -> dict[str, Any]:
        """As it stands in a trial's blob."""
        return {"pruner": self.pruner, "reason": self.reason, "seen": self.seen}


class Pruner(ABC):
    """Subclass it with a ``name``, a ``version`` and ``decide``, and pass an instance to a Study.

    ``version`` names a rule: raise it whenever the same curves would give another verdict.
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    needs_max_step: ClassVar[bool] = False  #: True: a study without a ``max_step`` is refused
    most: ClassVar[int] = 1024  #: so many closed curves at most are shown to it, drawn by index; running ones besides
    goal: Goal | None = None
    max_step: int | None = None
    seed: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = f"{cls.__module__}.{cls.__qualname__}"

    @property
    def needs_curves(self) -> bool:
        """False: ``decide`` looks at nobody else's curve, so none is fetched."""
        return True

    @abstractmethod
    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        """Why to stop at the last step of ``own``, or None. ``others``: one curve per other trial, in any order."""

    def due(self, own: Curve) -> bool:
        """Whether there may be something to say at the last step of ``own``, whatever the others did."""
        return True

    def needs(self, own: Curve) -> int:
        """The step that a closed curve must have reached to have a say at the last step of ``own``; 0: each has."""
        return 0

    def at_rung(self, own: Curve) -> bool:
        """Whether the last step of ``own`` is one of few at which curves are compared: worth showing at once."""
        return False

    def verdict(
        self, own: Curve, others: Sequence[Curve] | Callable[[int, int], Sequence[Curve]] = ()
    ) -> Verdict | None:
        """Why to stop, or None. Nothing is said at ``max_step`` or beyond; NaN where it is due needs no others.

        ``others``: the curves of the other trials, or what fetches them, called only if they are needed, with what
        ``needs`` says and ``most``.
        """
        if not len(own) or (self.max_step is not None and own.last >= self.max_step) or not self.due(own):
            return None
        if math.isnan(own.values[-1]):
            return Verdict(self.name, f"nan at step {own.last}", {"step": own.last, "value": "nan"})
        if not self.needs_curves:
            return self.decide(own, ())
        return self.decide(own, others(self.needs(own), self.most) if callable(others) else others)

    def fitted(self, *, goal: Goal | None = None, max_step: int | None = None, seed: int | None = None) -> Self:
        """A copy for a study of that goal, max_step and seed; UsageError if it cannot be one's pruner."""
        twin = copy.copy(self)
        for field, value in (("goal", goal), ("max_step", max_step), ("seed", seed)):
            if value is not None:
                object.__setattr__(twin, field, value)  # whatever the subclass thinks of assignment
        if goal is not None and self.needs_max_step and twin.max_step is None:
            raise UsageError(
                f"pruner {self.name!r} needs to know how long a trial is: say max_step= (--max-step), the last step it reports"
            )
        return twin

    @property
    def sign(self) -> int:
        """1 if less is better, -1 if more is. Raises UsageError without a goal: it is never guessed."""
        if self.goal is None:
            raise UsageError(f"pruner {self.name!r} does not know what is better: give it a goal, fitted(goal=...)")
        return 1 if self.goal == "min" else -1

    def args(self) -> dict[str, Any]:
        """What ``__init__`` must be given to make this pruner again: JSON."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Name, version and arguments, as they stand in study.json."""
        return {"name": self.name, "version": self.version, "args": self.args()}

    @property
    def label(self) -> str:
        """What a person calls it: its name."""
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.args().items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pruner):
            return NotImplemented
        return (self.describe(), self.goal, self.max_step, self.seed) == (
            other.describe(), other.goal, other.max_step, other.seed,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.version, self.goal, self.max_step, self.seed))


PrunerSpec: TypeAlias = str | Mapping[str, Any] | Pruner | Sequence[str | Mapping[str, Any] | Pruner]


def seen_of(voters: Sequence[Curve], step: int, values: Sequence[float], sign: int) -> dict[str, Any]:
    """What a verdict says of its peers: how many, and the digest of their (n, step, value)."""
    told = sorted(zip((curve.n for curve in voters), values, strict=True))
    rows = [[n, step, word(sign * value)] for n, value in told]
    return {"peers": len(rows), "digest": digest(rows)}


def word(value: float) -> float | str:
    """A value as JSON: NaN and infinities are "nan", "inf", "-inf"."""
    return value if math.isfinite(value) else str(value)


_KNOWN: Known[Pruner] = Known({
    "any": "_any", "asha": "_asha", "diverged": "_simple", "hyperband": "_asha", "median": "_median",
    "patience": "_simple", "percentile": "_median", "threshold": "_simple",
})  # fmt: skip


def register_pruner(pruner: type[Pruner]) -> type[Pruner]:
    """Make a pruner known by its name to :func:`make_pruner`."""
    _KNOWN.add(pruner)
    return pruner


def make_pruner(
    spec: PrunerSpec, *, goal: Goal | None = None, max_step: int | None = None, seed: int | None = None
) -> Pruner:
    """The pruner that a name, a ``describe()`` from study.json, an instance or several of these mean, made to fit.

    Several (a list, or names with commas between) stop a trial as soon as one of them would. Raises UsageError for an
    unknown name, version or argument, and for one that cannot do without a ``max_step``.
    """
    if isinstance(spec, str) and "," in spec:
        spec = [name.strip() for name in spec.split(",")]
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        if len(spec) == 1:
            return make_pruner(spec[0], goal=goal, max_step=max_step, seed=seed)
        spec = {"name": "any", "args": {"of": list(spec)}}
    found = spec
    if not isinstance(found, Pruner):
        found = made("pruner", spec, _KNOWN, ", a Pruner, or a list of these", hidden=("any",))
    return found.fitted(goal=goal, max_step=max_step, seed=seed)
