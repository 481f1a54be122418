"""The platforms, one row and one module each: what their profiles may say, and what is shared with this machine. Pure.

A module has ``lacks``, ``plan``, ``start`` and ``wait`` as ``_plan.Platform`` says. Another platform is one row and one
module more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from dibs.errors import UsageError

from ._keys import a_count, a_table, a_text, texts_of

__all__ = ["KINDS", "Kind", "kind_named", "options_of"]

Check = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Kind:
    """``module``: its name in this package. ``options``: of its section in a profile, and how each is looked at.

    ``together``: what it offers is for all workers, not for each. ``shares``: it has this machine's folders. ``apart``: the
    option without which the platform is this process's own, and ends with it; with it, it has folders of its own.
    """

    module: str
    options: Mapping[str, Check]
    together: bool = False
    shares: bool = False
    apart: str | None = None


def _tables(value: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{where} must be a list of tables, not {value!r:.80}")
    return tuple(a_table(each, f"{where}[{at}]") for at, each in enumerate(value))


def _amounts(value: Any, where: str) -> dict[str, int | float]:
    table = a_table(value, where)
    for name, count in table.items():
        if isinstance(count, bool) or not isinstance(count, int | float) or not count > 0:
            raise UsageError(f"{where}: {name} must be a positive number, not {count!r:.80}")
    return dict(table)


def _texts_by_name(value: Any, where: str) -> dict[str, str]:
    return {name: a_text(each, f"{where}: {name}") for name, each in a_table(value, where).items()}


def _secrets(value: Any, where: str) -> dict[str, Mapping[str, str]]:
    found = {}
    for name, each in a_table(value, where).items():
        secret = a_table(each, f"{where}: {name}", ("name", "key"))
        for key in ("name", "key"):
            a_text(secret.get(key), f"{where}: {name}: {key}")
        found[name] = secret
    return found


def _claims(value: Any, where: str) -> tuple[Mapping[str, str], ...]:
    for at, each in enumerate(_tables(value, where)):
        for key in a_table(each, f"{where}[{at}]", ("claim", "mount")):
            a_text(each[key], f"{where}[{at}]: {key}")
        if len(each) != 2:
            raise UsageError(f"{where}[{at}] must say claim, the name of a volume's claim, and mount, a path")
    return tuple(value)


def _flags_of(value: Any, where: str) -> tuple[str, ...]:
    found = texts_of(value, where)
    for each in found:
        if not each.startswith("-"):
            raise UsageError(f"{where} must be options such as --nice=10, each a text of its own, not {each!r:.80}")
    return found


def _seconds(value: Any, where: str) -> int:
    return a_count(value, where, 0)


KINDS: Mapping[str, Kind] = {
    "local": Kind("_local", {}, together=True, shares=True),
    "slurm": Kind(
        "_slurm",
        {
            "partition": a_text, "account": a_text, "qos": a_text, "constraint": a_text, "reservation": a_text,
            "gres": a_text, "at_once": a_count, "signal_s": _seconds, "options": _flags_of,
        },
        shares=True,
    ),
    "dask": Kind(
        "_dask", {"address": a_text, "resources": _amounts, "grace_s": _seconds}, shares=True, apart="address"
    ),
    "ray": Kind("_ray", {"address": a_text, "resources": _amounts}),
    "kubernetes": Kind(
        "_kubernetes",
        {
            "image": a_text, "namespace": a_text, "context": a_text, "service_account": a_text, "pull_policy": a_text,
            "grace_s": _seconds, "retries": _seconds, "at_once": a_count, "node_selector": _texts_by_name,
            "tolerations": _tables, "volumes": _claims, "secrets": _secrets, "gpu_resource": a_text,
        },
    ),
}  # fmt: skip


def kind_named(name: Any, where: str) -> Kind:
    """The row of a kind. Raises UsageError naming the nearest, or all."""
    if not isinstance(name, str) or name not in KINDS:
        near = get_close_matches(str(name), KINDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it must be one of {', '.join(KINDS)}"
        raise UsageError(f"{where}: there is no kind {name!r:.80}: {hint}")
    return KINDS[name]


def options_of(kind: str, value: Any, where: str) -> dict[str, Any]:
    """The options of a kind's section, looked at. Raises UsageError."""
    known = KINDS[kind].options
    return {key: known[key](said, f"{where}: {key}") for key, said in a_table(value, where, known).items()}
