"""The shell lines around a worker. Pure. Every value is quoted here: a name or a path is never read as shell.

``exec`` puts the worker in the shell's place, so that a signal sent to the one reaches the other.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ._profile import Profile
from ._request import Request

__all__ = ["argv_of", "env_for", "script_of", "wants_of"]


def env_for(request: Request, profile: Profile) -> dict[str, str]:
    """Variables whose values are said; the job's win."""
    return {name: value for name, value in {**profile.env, **request.env}.items() if value is not None}


def wants_of(request: Request, profile: Profile) -> tuple[str, ...]:
    """Variables that go by their names."""
    return tuple(name for name, value in {**profile.env, **request.env}.items() if value is None)


def script_of(request: Request, profile: Profile, wants: Iterable[str] = ()) -> str:
    """The lines of a worker: what must be set is asked for, the profile's lines, and the command in the shell's place."""
    asked = [f': "${{{name}:?goes by its name, and is not set on this machine}}"' for name in wants]
    before = ["set -e", *profile.before, "set +e"] if profile.before else []
    words = ("sh", "-c", request.run) if isinstance(request.run, str) else request.run
    return "\n".join([*asked, *before, f"exec {shlex.join(words)}"])


def argv_of(request: Request, profile: Profile, wants: Iterable[str] = ()) -> tuple[str, ...]:
    """A worker as one command: its words if nothing has to come before them, else through ``sh``."""
    if profile.before or wants:
        return ("sh", "-c", script_of(request, profile, wants))
    return ("sh", "-c", request.run) if isinstance(request.run, str) else request.run
