"""What every parameter is, and the two kinds without numbers: Choice and Constant.

A parameter maps the unit interval to its values and back. It is frozen, equal by type and value,
printable as the call that made it, and knows neither its name nor the other parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from dibs._canon import to_json
from dibs.errors import SpaceError

from ._values import Value, as_value, canonical, shown, typed

__all__ = ["BELOW_ONE", "Choice", "Constant", "Param", "When"]

BELOW_ONE = 1 - 2.0**-53


class When(Mapping[str, tuple[Value, ...]]):
    """A condition: parent's name -> the values of which it must have one. All parents must agree."""

    __slots__ = ("_items",)
    _items: dict[str, tuple[Value, ...]]

    def __init__(self, when: Any) -> None:
        if not isinstance(when, Mapping):
            raise SpaceError(f"when={shown(when)}: write when={{'parent': ['value', ...]}}")
        items = {}
        for name, values in when.items():
            if not isinstance(name, str):
                raise SpaceError(f"when={shown(when)}: a parent is named by a str, not {shown(name)}")
            if isinstance(values, list) and not values:
                raise SpaceError(f"when={{{name!r}: []}} can never hold: list at least one value of {name!r}")
            each = {typed(v): v for v in map(as_value, values if isinstance(values, list) else [values])}
            items[name] = tuple(sorted(each.values(), key=canonical))
        self._items = dict(sorted(items.items()))

    def __getitem__(self, name: str) -> tuple[Value, ...]:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr({name: list(values) for name, values in self._items.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        return When, ({name: list(values) for name, values in self._items.items()},)


class Param(ABC):
    """One parameter. ``cells`` is the number of its values, or None for a continuum.

    ``value(unit(v))`` is ``v`` for every value the parameter itself produces. ``prior_at`` is where in the unit
    interval somebody believes a good value to lie, None without a belief; it excludes nothing.
    """

    __slots__ = ("cells", "prior_at", "when")
    cells: int | None
    prior_at: float | None
    when: When | None

    def _fill(self, when: Any, **fields: Any) -> None:
        if not isinstance(when, When):
            when = None if when is None or when == {} else When(when)
        self._keep(when=when, prior_at=None, **fields)

    def _believe(self, prior: Any) -> Any:
        """``prior`` made plain, its place kept."""
        try:
            value = self.check(prior)
        except SpaceError as error:
            raise SpaceError(f"prior={shown(prior)}: {error}") from None
        self._keep(prior_at=self.unit(value))
        return value

    def _keep(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def value(self, u: float) -> Value:
        """The value at ``u`` in [0, 1]."""

    @abstractmethod
    def unit(self, value: Any) -> float:
        """Where a value lies in [0, 1): the centre of its cell."""

    @abstractmethod
    def cell(self, k: int) -> Value:
        """Value number ``k`` of ``cells``."""

    @abstractmethod
    def index(self, value: Any) -> int:
        """The inverse of :meth:`cell`."""

    @abstractmethod
    def check(self, value: Any) -> Value:
        """``value`` made plain, if it is one of the parameter's; else SpaceError saying what is allowed."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """The JSON of the parameter without its condition."""

    @abstractmethod
    def _call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that would make it again, defaults left out, ``when`` left out."""

    def to_json(self) -> dict[str, Any]:
        """The JSON of the parameter, as it stands in study.json."""
        spec = self.spec()
        if self.when is not None:
            spec["when"] = {name: [to_json(v) for v in values] for name, values in self.when.items()}
        return spec

    def free(self) -> Param:
        """The same parameter without its condition and its prior."""
        args, kwargs = self._call()
        kwargs.pop("prior", None)
        return type(self)(*args, **kwargs)

    def _key(self) -> tuple[Any, ...]:
        args, kwargs = self._call()
        when = tuple(self.when.items()) if self.when is not None else None
        return typed((type(self), args, tuple(kwargs.items()), when))

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Param) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        args, kwargs = self._call()
        if self.when is not None:
            kwargs["when"] = self.when
        texts = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return f"{type(self).__name__}({', '.join(texts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        args, kwargs = self._call()
        return _make, (type(self), args, {**kwargs, "when": self.when})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make a new one")


def _make(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return kind(*args, **kwargs)


class Choice(Param):
    """One of ``values``, kept as values: ``True``, ``1``, ``1.0``, ``"1"`` and ``None`` are five different ones.

    ``ordered=True`` says that neighbours are alike (small, medium, large), which samplers may use; ``prior`` is the
    value believed to be good (``...``, the default: none is; None is a value).
    Raises SpaceError for no values, the same one twice, or one that is not None, bool, int, float, str or a tuple.
    """

    __slots__ = ("_index", "ordered", "prior", "values")
    cells: int
    values: tuple[Value, ...]
    ordered: bool
    prior: Any
    _index: dict[tuple[Any, ...], int]

    def __init__(self, *values: Any, ordered: bool = False, prior: Any = ..., when: Any = None) -> None:
        if not values:
            raise SpaceError("Choice() has no values: list at least one")
        if type(ordered) is not bool:
            raise SpaceError(f"ordered={shown(ordered)} must be True or False")
        if len(values) == 1 and isinstance(values[0], list):
            raise SpaceError(f"Choice({shown(values[0])}) is one list: unpack it, Choice(*[...])")
        plain = tuple(map(as_value, values))
        index: dict[tuple[Any, ...], int] = {}
        for k, value in enumerate(plain):
            if index.setdefault(typed(value), k) != k:
                raise SpaceError(f"Choice lists {shown(value)} twice: remove one")
        self._fill(when, values=plain, ordered=ordered, cells=len(plain), _index=index)
        self._keep(prior=prior if prior is ... else self._believe(prior))

    def value(self, u: float) -> Value:
        k = int(u * self.cells)
        return self.values[k if k < self.cells else -1]

    def unit(self, value: Any) -> float:
        return (self._index[typed(value)] + 0.5) / self.cells

    def cell(self, k: int) -> Value:
        return self.values[k]

    def index(self, value: Any) -> int:
        return self._index[typed(value)]

    def check(self, value: Any) -> Value:
        plain = as_value(value)
        k = self._index.get(typed(plain))
        if k is None:
            raise SpaceError(f"{shown(plain)} ({type(plain).__name__}) is not one of {shown(list(self.values))}")
        return self.values[k]

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"choice": [to_json(v) for v in self.values]}
        if self.ordered:
            spec["ordered"] = True
        return spec if self.prior is ... else spec | {"prior": to_json(self.prior)}

    def _call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs: dict[str, Any] = {"ordered": True} if self.ordered else {}
        return self.values, kwargs if self.prior is ... else kwargs | {"prior": self.prior}


class Constant(Param):
    """A parameter that is always ``value``. It takes no part in the search but stands in every point."""

    __slots__ = ("_value",)
    cells: int
    _value: Value

    def __init__(self, value: Any, when: Any = None) -> None:
        self._fill(when, _value=as_value(value), cells=1)

    def value(self, u: float = 0.0) -> Value:
        return self._value

    def unit(self, value: Any) -> float:
        return 0.5

    def cell(self, k: int = 0) -> Value:
        return self._value

    def index(self, value: Any) -> int:
        return 0

    def check(self, value: Any) -> Value:
        plain = as_value(value)
        if typed(plain) != typed(self._value):
            raise SpaceError(f"{shown(plain)} ({type(plain).__name__}) is not the constant {shown(self._value)}")
        return self._value

    def spec(self) -> dict[str, Any]:
        return {"constant": to_json(self._value)}

    def _call(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self._value,), {}
