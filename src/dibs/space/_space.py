"""The space: named parameters, their conditions, and points of it.

Frozen. The order in which parameters are written means nothing, here or to any sampler: everything goes by
sorted names, so that two machines that declare the same parameters have the same space.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from keyword import iskeyword
from types import MappingProxyType
from typing import Any, Self
from unicodedata import category, normalize

from dibs.errors import SpaceError

from ._conditions import in_order
from ._numeric import Float, Int
from ._param import Choice, Constant, Param
from ._text import params_from_json, params_from_plain, params_from_toml, point_from_text
from ._tree import Tree, all_levels
from ._values import Value, a_float, as_value, shown, typed

__all__ = ["Space"]

_MOST_PARAMS = 1000
_FIXED = (Param, bool, int, float, str, tuple, type(None))


class Space:
    """The parameters of a search, by name: ``Space(lr=Float(1e-5, 0.1, log=True), opt=Choice("adam", "sgd"))``.

    A bare value is a Constant. Equal if names and parameters are; hashable, picklable, frozen, printed as the call
    that makes it. Raises SpaceError, naming the parameter, for whatever cannot be meant.
    """

    __slots__ = ("_hash", "_plan", "axes", "names", "order", "params")
    names: tuple[str, ...]  #: all names, sorted
    axes: tuple[str, ...]  #: the names that are not constants, sorted: the axes of the unit cube
    order: tuple[str, ...]  #: all names, parents before the parameters that depend on them
    params: Mapping[str, Param]  #: name -> parameter, sorted by name
    _plan: tuple[tuple[str, Param, tuple[tuple[str, frozenset[Any]], ...]], ...]
    _hash: int

    def __init__(self, mapping: Mapping[str, Any] | None = None, /, **params: Any) -> None:
        if mapping is not None and not isinstance(mapping, Mapping):
            raise SpaceError(f"Space({shown(mapping)}): write Space(name=Float(0, 1), ...) or pass a dict")
        self._setup([*(mapping or {}).items(), *params.items()])

    def _setup(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        found: dict[str, Param] = {}
        for name, param in pairs:
            _check_name(name)
            if name in found:
                raise SpaceError(f"{name} is declared twice", parameter=name)
            found[name] = _as_param(name, param)
            if len(found) > _MOST_PARAMS:
                raise SpaceError(f"a space has at most {_MOST_PARAMS} parameters")
        if not found:
            raise SpaceError("the space is empty: declare at least one parameter, e.g. lr=Float(1e-5, 0.1, log=True)")
        names = tuple(sorted(found))
        order = in_order(found)
        if all(param.when is None for param in found.values()):
            order = names
        plan = tuple((name, found[name], _conditions(found[name])) for name in order)
        fields = {
            "names": names,
            "axes": tuple(name for name in names if not isinstance(found[name], Constant)),
            "order": order,
            "params": MappingProxyType({name: found[name] for name in names}),
            "_plan": plan,
            "_hash": hash(frozenset(found.items())),
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, Any]]) -> Self:
        """The space of (name, parameter) pairs; a name that comes twice is a SpaceError."""
        space = cls.__new__(cls)
        space._setup(pairs)
        return space

    @classmethod
    def from_json(cls, obj: Any) -> Self:
        """The inverse of :meth:`to_json`; SpaceError for anything that is not a space."""
        return cls.from_pairs(params_from_json(obj))

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """A space written in TOML: ``lr = {float = [1e-5, 0.1], log = true}``, ``opt = ["adam", "sgd"]``, ``epochs = 30``."""
        return cls.from_pairs(params_from_toml(text))

    @classmethod
    def from_plain(cls, tables: Any) -> Self:
        """The same of what a parser has made of such a file, of YAML too: tables, lists and plain values."""
        return cls.from_pairs(params_from_plain(tables))

    def to_json(self) -> dict[str, Any]:
        """The space as it stands in study.json."""
        return {name: param.to_json() for name, param in self.params.items()}

    # -- points ------------------------------------------------------------------------------------------------

    @property
    def dims(self) -> int:
        """How many parameters are not constants: the dimension of the unit cube."""
        return len(self.axes)

    def draw(self, u: Callable[[str], float]) -> dict[str, Value]:
        """The point whose parameter ``name`` lies at ``u(name)``; asked only for active ones that are no constants."""
        values: dict[str, Value] = {}
        for name, param, conditions in self._plan:
            if not conditions or _holds(conditions, values):
                values[name] = param.value(0.5 if type(param) is Constant else u(name))
        if self.order is self.names:
            return values
        return {name: values[name] for name in self.names if name in values}

    def point(self, unit: Mapping[str, float] | Collection[float]) -> dict[str, Value]:
        """The point at ``unit``: name -> [0, 1], or one number for each of ``axes``.

        Names come sorted; inactive parameters are absent, and theirs in ``unit`` may be. ``point(unit(p)) == p``,
        types included, for every point the space produces; a caller's own float comes back as the nearest decimal
        that a Float snaps to. Raises SpaceError for a missing, unknown or misplaced coordinate.
        """
        if not isinstance(unit, Mapping):
            if len(unit) != len(self.axes):
                raise SpaceError(f"{len(unit)} coordinates for the {len(self.axes)} axes {shown(list(self.axes))}")
            unit = dict(zip(self.axes, unit, strict=True))
        unknown = unit.keys() - self.axes
        if unknown:
            raise SpaceError(f"{shown(min(unknown))} is not an axis of the space")
        for name, u in unit.items():
            if not 0.0 <= a_float(u, f"{name}: its coordinate") <= 1.0:
                raise SpaceError(f"{name}: {u!r} is not in [0, 1]", parameter=name)
        try:
            return self.draw(unit.__getitem__)
        except KeyError as error:
            raise SpaceError(f"{error.args[0]}: no coordinate given", parameter=error.args[0]) from None

    def unit(self, point: Mapping[str, Any]) -> dict[str, float]:
        """Where ``point`` lies in the unit cube, each in [0, 1): the centre of its cell. Checked first."""
        checked = self.check(point)
        return {name: self.params[name].unit(checked[name]) for name in self.axes if name in checked}

    def active(self, values: Mapping[str, Any]) -> frozenset[str]:
        """The names that belong to a point with these values; a parent not given makes its children inactive."""
        active: dict[str, Any] = {}
        for name, param, conditions in self._plan:
            if not conditions or _holds(conditions, active):
                if type(param) is Constant:
                    active[name] = param.value()
                else:
                    active[name] = as_value(values[name]) if name in values else ...
        return frozenset(active)

    def check(self, point: Mapping[str, Any]) -> dict[str, Value]:
        """A caller's point made plain: numpy scalars become Python's, an int for a Float a float, names sorted.

        Constants may be left out. Raises SpaceError naming the parameter and what it allows for a value that is
        missing, unknown, inactive but given, out of range or of another type.
        """
        if not isinstance(point, Mapping):
            raise SpaceError(f"a point is a dict of values by name, not {shown(point)}")
        for name in point:
            if name not in self.params:
                raise SpaceError(f"{shown(name)} is no parameter of the space, which has {shown(list(self.names))}")
        values: dict[str, Value] = {}
        for name, param, conditions in self._plan:
            if conditions and not _holds(conditions, values):
                if name in point:
                    raise SpaceError(
                        f"{name}: given, but only active when {param.when!r}; leave it out", parameter=name
                    )
                continue
            if name not in point:
                if type(param) is not Constant:
                    raise SpaceError(f"{name}: missing; it is {shown(param)}", parameter=name)
                values[name] = param.value()
                continue
            try:
                values[name] = param.check(point[name])
            except SpaceError as error:
                raise SpaceError(f"{name}: {error}", parameter=name) from None
        return {name: values[name] for name in self.names if name in values}

    def read(self, text: str) -> dict[str, Value]:
        """The point a person wrote: ``lr=0.1 opt=adam``, or a JSON object."""
        return self.check(point_from_text(self, text))

    def size(self) -> int | None:
        """How many points there are, conditions counted; None for a continuum."""
        if any(param.cells is None for param in self.params.values()):
            return None
        return Tree(self, {name: all_levels(param) for name, param in self.params.items()}).size

    def points(self) -> Iterator[dict[str, Value]]:
        """Every point of a finite space once, in an order that depends on nothing but the space."""
        endless = [name for name, param in self.params.items() if param.cells is None]
        if endless:
            raise SpaceError(f"{endless[0]}: a Float without a step has no end of values", parameter=endless[0])
        tree = Tree(self, {name: all_levels(param) for name, param in self.params.items()})
        return map(tree.point, range(tree.size))

    # -- comparing -----------------------------------------------------------------------------------------------

    def differences(self, other: Space) -> list[tuple[str, Any, Any]]:
        """(name, our JSON, their JSON) of each parameter that differs; None where there is none. Sorted by name."""
        ours, theirs = self.to_json(), other.to_json()
        names = sorted(self.params.keys() | other.params.keys())
        return [(n, ours.get(n), theirs.get(n)) for n in names if self.params.get(n) != other.params.get(n)]

    def lookup_float(self, name: str, low: float, high: float, *, log: bool = False, step: float | None = None) -> None:
        """Agree that ``name`` is this Float, whatever its condition; else SpaceError showing both."""
        self._lookup(name, lambda: Float(low, high, log=log, step=step))

    def lookup_int(self, name: str, low: int, high: int, *, log: bool = False, step: int = 1) -> None:
        """Agree that ``name`` is this Int, whatever its condition; else SpaceError showing both."""
        self._lookup(name, lambda: Int(low, high, log=log, step=step))

    def lookup_categorical(self, name: str, choices: Iterable[Any]) -> None:
        """Agree that ``name`` is a Choice of these values, in any order; else SpaceError showing both."""
        frozen = self.params.get(name)
        self._lookup(name, lambda: _reordered(Choice(*choices), frozen))

    def _lookup(self, name: str, ask: Callable[[], Param]) -> None:
        frozen = self.params.get(name)
        if frozen is None:
            raise SpaceError(
                f"{shown(name)} is no parameter of the study, which has {shown(list(self.names))}", parameter=name
            )
        try:
            asked = ask()
        except SpaceError as error:
            raise SpaceError(f"{name}: {error}", parameter=name) from None
        if frozen.free() != asked:
            raise SpaceError(f"{name}: asked for as {asked!r}, but the study has {frozen.free()!r}", parameter=name)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.params

    def __getitem__(self, name: str) -> Param:
        return self.params[name]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self is other or (self._hash == other._hash and self.params == other.params)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if all(map(_is_keyword_argument, self.names)):
            return f"Space({', '.join(f'{name}={param!r}' for name, param in self.params.items())})"
        return f"Space({dict(self.params)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Space, (dict(self.params),)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Space is frozen: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Space is frozen: make a new one")


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise SpaceError(f"a parameter's name is a str with at least one character, not {shown(name)}")
    if any(category(c) in ("Cc", "Cs") for c in name):
        raise SpaceError(f"{name!r} cannot be a parameter's name: it has control characters", parameter=name)


def _is_keyword_argument(name: str) -> bool:
    # Python reads identifiers in NFKC: a micro sign written as a keyword arrives as a Greek mu
    return name.isidentifier() and not iskeyword(name) and normalize("NFKC", name) == name


def _as_param(name: str, param: Any) -> Param:
    try:
        return param if isinstance(param, Param) else Constant(param)
    except SpaceError as error:
        hint = "; for a choice write Choice(*values)" if isinstance(param, list | set) else ""
        raise SpaceError(f"{name}: {error}{hint}", parameter=name) from None


def _conditions(param: Param) -> tuple[tuple[str, frozenset[Any]], ...]:
    return tuple((parent, frozenset(map(typed, values))) for parent, values in (param.when or {}).items())


def _holds(conditions: tuple[tuple[str, frozenset[Any]], ...], values: Mapping[str, Any]) -> bool:
    return all(parent in values and typed(values[parent]) in allowed for parent, allowed in conditions)


def _reordered(asked: Choice, frozen: Param | None) -> Param:
    """``frozen`` freed of its condition if ``asked`` has the same values in whatever order, else ``asked``."""
    if isinstance(frozen, Choice) and set(map(typed, frozen.values)) == set(map(typed, asked.values)):
        return frozen.free()
    return asked
