"""What would be done, and what was: values that every platform's module deals in. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dibs._clock import Clock

from ._profile import Profile
from ._request import Request

__all__ = ["Call", "Ended", "Here", "Plan", "Platform", "Started", "worst"]

UNFINISHED, INTERRUPTED, KILLED = 6, 143, 137


@dataclass(frozen=True)
class Here:
    """This machine, as far as a plan depends on it. ``bin``: the folder of the interpreter that runs."""

    host: str
    bin: str


@dataclass(frozen=True)
class Call:
    """One command. ``environ``: variables it gets besides those it finds; ``wants``: names that must be set there."""

    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    log: str | None = None
    wants: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` shows it."""
        return {
            "argv": list(self.argv), "environ": dict(self.environ), "cwd": self.cwd, "log": self.log,
            "wants": list(self.wants),
        }  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """Exactly what will be done on one platform: ``files`` (path -> text) are written, then ``calls`` are made there.

    A call is a command here where the platform has one (``sbatch``, ``kubectl``), else a worker. ``look``: how to see
    what they do.
    """

    kind: str
    on: str
    name: str
    store: str
    workers: int
    calls: tuple[Call, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    look: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As ``--json`` shows it."""
        return {
            "kind": self.kind, "on": self.on, "name": self.name, "store": self.store, "workers": self.workers,
            "calls": [call.to_json() for call in self.calls], "files": dict(self.files), "notes": list(self.notes),
            "look": list(self.look),
        }  # fmt: skip


@dataclass(frozen=True)
class Started:
    """What is running. ``ids``: as the platform names it; ``stop``: the command that ends it; ``handle``: for ``wait``.
    ``look``: what could not be planned."""

    plan: Plan
    ids: tuple[str, ...]
    stop: str
    handle: Any = None
    look: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How one worker ended: the exit code of its command, 128 and the signal's number if one ended it."""

    worker: str
    code: int
    why: str = ""


class Platform(Protocol):
    """What a platform's module does."""

    def lacks(self, request: Request, profile: Profile, acting: bool) -> list[str]:
        """What it takes there and is missing, a sentence each; not ``acting``: what a plan itself needs."""
        ...

    def plan(self, request: Request, profile: Profile, store: str, here: Here) -> Plan:
        """Pure: the same arguments give the same files and commands."""
        ...

    def start(self, plan: Plan, wait: bool) -> Started:
        """Do it; nothing is left of it if it fails. Raises UsageError with what the platform said."""
        ...

    def wait(self, started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
        """Until all workers have ended. An interrupt leaves them as the platform would; ``start`` says how to end them."""
        ...


def worst(ended: Sequence[Ended]) -> int:
    """One exit code for all: the largest, but 6 of one ("others run the rest") is nothing where another ended with 0."""
    codes = {each.code for each in ended}
    return max(codes - {UNFINISHED} if 0 in codes else codes, default=0)
