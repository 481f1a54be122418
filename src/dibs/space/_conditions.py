"""Which parameter depends on which: checked once when a space is made, never again.

The order that comes out puts every parent before its children, and a child as soon as its last parent is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from dibs.errors import SpaceError

from ._numeric import Int
from ._param import Choice, Constant, Param
from ._values import Value, shown, typed

__all__ = ["in_order", "takes"]


def takes(param: Param, value: Value) -> bool:
    """Whether ``param`` can have ``value``, by type and value."""
    try:
        return typed(param.check(value)) == typed(value)
    except SpaceError:
        return False


def _check_condition(name: str, param: Param, params: Mapping[str, Param]) -> None:
    for parent, values in (param.when or {}).items():
        if parent not in params:
            raise SpaceError(
                f"{name}: its condition names {parent!r}, which is no parameter of the space", parameter=name
            )
        above = params[parent]
        if not isinstance(above, Choice | Int | Constant):
            raise SpaceError(
                f"{name}: its condition names {parent!r}, a Float; only a Choice, an Int or a Constant can decide",
                parameter=name,
            )
        for value in values:
            if not takes(above, value):
                hint = "; for any of several values write a list" if isinstance(value, tuple) else ""
                raise SpaceError(
                    f"{name}: its condition waits for {parent!r} to be {shown(value)} ({type(value).__name__}), "
                    f"which {parent!r} = {shown(above)} cannot be{hint}",
                    parameter=name,
                )


def in_order(params: Mapping[str, Param]) -> tuple[str, ...]:
    """The names, parents first; SpaceError for an unknown parent, a value it cannot take, or a circle."""
    waiting: dict[str, int] = {}
    children: dict[str, list[str]] = {}
    for name, param in params.items():
        _check_condition(name, param, params)
        waiting[name] = len(param.when or ())
        for parent in param.when or ():
            children.setdefault(parent, []).append(name)
    order: list[str] = []
    stack = sorted((name for name, count in waiting.items() if not count), reverse=True)
    while stack:
        name = stack.pop()
        order.append(name)
        for child in sorted(children.get(name, ()), reverse=True):
            waiting[child] -= 1
            if not waiting[child]:
                stack.append(child)
    if len(order) < len(params):
        stuck = sorted(params.keys() - set(order))
        raise SpaceError(
            f"{stuck[0]}: the conditions of {shown(stuck)} wait for each other in a circle", parameter=stuck[0]
        )
    return tuple(order)
