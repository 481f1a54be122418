"""How one platform is reached, what it offers there, and what outlives a worker. Pure; reads no file and no secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dibs.errors import UsageError

from ._keys import a_name, a_table, a_text, env_of, texts_of
from ._kinds import KINDS, Kind, kind_named, options_of
from ._resources import Resources

__all__ = ["Profile"]

_KEYS = ("kind", "offers", "survives", "before", "env", "store")


@dataclass(frozen=True)
class Profile:
    """A platform. ``offers``: to one worker, or to all together where the kind says so; what is not said is taken to
    be there, except devices.

    ``survives``: "stop" and "destroy" -> folders that are still there after a pre-emption or requeue, and after the
    machine was given up; without a word of it nothing is known. ``before``: lines for the shell ahead of every worker.
    ``env``: as a job's. ``store``: the store as the workers see it. ``options``: of its kind.
    """

    name: str
    kind: str
    offers: Resources = field(default_factory=Resources)
    survives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    env: Mapping[str, str | None] = field(default_factory=dict)
    store: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, name: str, where: str) -> Profile:
        """From a file's table. Raises UsageError naming the place, the key, and what to write instead."""
        kind = a_table(value, where).get("kind")
        if kind is None:
            raise UsageError(f'{where}: it has no kind: put kind = "slurm" (or {", ".join(KINDS)}) into it')
        kind_named(kind, where)
        table = a_table(value, where, (*_KEYS, kind))
        survives = a_table(table.get("survives", {}), f"{where}: survives", ("stop", "destroy"))
        before = table.get("before", [])
        return cls(
            a_name(name, f"{where}: its name"),
            kind,
            Resources.of(table.get("offers", {}), f"{where}: offers"),
            {what: texts_of(folders, f"{where}: survives: {what}") for what, folders in survives.items()},
            texts_of([before] if isinstance(before, str) else before, f"{where}: before"),
            env_of(table.get("env", {}), f"{where}: env"),
            a_text(table["store"], f"{where}: store") if "store" in table else None,
            options_of(kind, table.get(kind, {}), f"{where}: {kind}"),
        )

    @property
    def row(self) -> Kind:
        """Its kind's row."""
        return KINDS[self.kind]

    @property
    def shares(self) -> bool:
        """Whether the workers see this machine's folders at the same paths."""
        return self.row.shares and self.row.apart not in self.options

    @property
    def stays(self) -> bool:
        """Whether the workers outlive the command that starts them."""
        return self.row.apart is None or self.row.apart in self.options
