"""From a name, or from what study.json says, to an instance: the same for samplers and for pruners. Pure.

The kinds that come with dibs are loaded once somebody asks for them: those that learn are most of this package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, ClassVar, Protocol, TypeVar

from dibs.errors import UsageError

__all__ = ["Known", "Named", "made"]


class Named(Protocol):
    """What is known by a name, and changes its meaning only with its version."""

    name: ClassVar[str]
    version: ClassVar[int]


T = TypeVar("T", bound=Named)


class Known(dict[str, type[T]]):
    """What was registered so far, by name; ``homes``: the module in this package in which a name is registered."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        super().__init__()
        self.homes = homes

    def add(self, kind: type[T]) -> None:
        """Known by its name from now on, also where another kind was."""
        self.find(kind.name)  # or what comes with dibs would take the name of a user's own when it is loaded later
        self[kind.name] = kind

    def find(self, name: str) -> type[T] | None:
        """The kind of that name, loaded if need be."""
        if name not in self and name in self.homes:
            import_module(f".{self.homes[name]}", __package__)
        return self.get(name)

    def every(self) -> list[type[T]]:
        """All of them, sorted by name."""
        names = sorted({*self, *self.homes})
        return [kind for name in names if (kind := self.find(name)) is not None]

    def names(self, hidden: Collection[str] = ()) -> str:
        """Their names, as a sentence lists them."""
        return ", ".join(sorted({*self, *self.homes}.difference(hidden)))


def made(
    what: str, spec: Any, known: Known[T], also: str, *, given: Collection[str] = (), hidden: Collection[str] = ()
) -> T:
    """The ``what`` ("sampler", "pruner") that a name or a ``describe()`` means, one of ``known``.

    ``also`` says in an error what could be passed instead, beside all names that are not ``hidden``; ``given``: arguments
    that come from the study.
    Raises UsageError for an unknown name, version or argument.
    """
    if isinstance(spec, type):
        raise UsageError(f"pass an instance of the {what}: {spec.__name__}()")
    names = known.names(hidden)
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        raise UsageError(f"{spec!r} is no {what}: pass one of {names}{also}")
    unknown = sorted(str(key) for key in spec if key not in ("name", "version", "args"))
    if unknown:
        raise UsageError(f"a {what} has name, version and args, not {unknown[0]!r}")
    kind = known.find(spec["name"])
    if kind is None:
        raise UsageError(
            f"unknown {what} {spec['name']!r}: the known ones are {names}; one of your own is passed as an instance"
        )
    _check_version(what, kind, spec.get("version", kind.version))
    args = spec.get("args", {})
    if not isinstance(args, Mapping) or any(not isinstance(key, str) or key in given for key in args):
        raise UsageError(f"{args!r} cannot be the arguments of {what} {kind.name!r}")
    try:
        return kind(**args)
    except TypeError as error:
        raise UsageError(f"{what} {kind.name!r} does not take {dict(args)!r}: {error}") from None


def _check_version(what: str, kind: type[Named], version: Any) -> None:
    if type(version) is not int or version < 1:
        raise UsageError(f"{version!r} is no version of {what} {kind.name!r}")
    if version > kind.version:
        raise UsageError(
            f"{what} {kind.name!r} version {version} comes from a later dibs, this one knows {kind.version}: upgrade"
        )
    if version < kind.version:
        raise UsageError(
            f"{what} {kind.name!r} version {version} is from an earlier dibs, this one makes {kind.version}: "
            "go on with the earlier one, or give the new search another name"
        )
