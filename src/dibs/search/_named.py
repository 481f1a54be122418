"""From a name, or from what study.json says, to an instance: the same for samplers and for pruners. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from dibs.errors import UsageError

__all__ = ["Named", "made", "names_of"]


class Named(Protocol):
    """What is known by a name, and changes its meaning only with its version."""

    name: ClassVar[str]
    version: ClassVar[int]


T = TypeVar("T", bound=Named)


def names_of(known: Mapping[str, Any], hidden: Collection[str] = ()) -> str:
    """The known names, as a sentence lists them."""
    return ", ".join(sorted(name for name in known if name not in hidden))


def made(what: str, spec: Any, known: Mapping[str, type[T]], names: str, also: str, given: Collection[str] = ()) -> T:
    """The ``what`` ("sampler", "pruner") that a name or a ``describe()`` means, one of ``known``.

    ``names`` and ``also`` say in an error what could be passed instead; ``given``: arguments that come from the study.
    Raises UsageError for an unknown name, version or argument.
    """
    if isinstance(spec, type):
        raise UsageError(f"pass an instance of the {what}: {spec.__name__}()")
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        raise UsageError(f"{spec!r} is no {what}: pass one of {names}{also}")
    unknown = sorted(str(key) for key in spec if key not in ("name", "version", "args"))
    if unknown:
        raise UsageError(f"a {what} has name, version and args, not {unknown[0]!r}")
    kind = known.get(spec["name"])
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
