"""The nearest ``dibs.toml``, in this folder or one above it: what flags and variables leave open.

A relative store or work folder in it is relative to the file. A key nobody knows is an error, not a typo kept quiet.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dibs.errors import UsageError

__all__ = ["NAME", "find", "settings"]

NAME = "dibs.toml"
_TEXT, _COUNT, _SPAN, _YES = "a text", "a whole number", 'seconds or a text such as "90s", "5m", "2h"', "true or false"
_SIZE = 'bytes or a text such as "512M", "4G"'
_GOAL = "a text, or a list of two or more"
_KINDS = {
    "store": _TEXT, "study": _TEXT, "sweep": _TEXT, "me": _TEXT, "work": _TEXT, "goal": _GOAL, "sampler": _TEXT, "pruner": _TEXT,
    "fsync": _TEXT, "max_step": _COUNT,
    "trials": _COUNT, "workers": _COUNT, "retries": _COUNT, "seed": _COUNT, "max_failures": _COUNT,
    "cpus": _COUNT, "gpus": _COUNT, "max_running": _COUNT, "memory": _SIZE, "time_limit": _SPAN,
    "time": _SPAN, "stale": _SPAN, "rescue_after": _SPAN, "grace": _SPAN,
    "no_rescue": _YES, "unchecked": _YES,
}  # fmt: skip
_TYPES: dict[str, tuple[type, ...]] = {
    _TEXT: (str,),
    _GOAL: (str, list),
    _COUNT: (int,),
    _SPAN: (int, float, str),
    _SIZE: (int, str),
    _YES: (bool,),
}


def find(start: Path) -> Path | None:
    """The nearest ``dibs.toml`` from a folder upward."""
    return next((folder / NAME for folder in (start, *start.parents) if (folder / NAME).is_file()), None)


def settings(start: Path | None = None) -> dict[str, Any]:
    """What the nearest ``dibs.toml`` says, by the options' names; empty without one. Raises UsageError."""
    try:
        path = find(start or Path.cwd())
    except OSError:  # the current folder was removed
        return {}
    return read(path) if path is not None else {}


def read(path: Path) -> dict[str, Any]:
    """The settings of one file, checked; folders made absolute. Raises UsageError naming the file and the key."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as wrong:
        raise UsageError(f"{path} does not read: {wrong}") from None
    unknown = sorted(found.keys() - _KINDS.keys())
    if unknown:
        near = get_close_matches(unknown[0], _KINDS, n=1) if len(unknown) == 1 else []
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(sorted(_KINDS))}"
        raise UsageError(f"{path}: unknown {', '.join(map(repr, unknown))}: {hint}")
    for key, value in found.items():
        kind = _KINDS[key]
        good = isinstance(value, _TYPES[kind]) and (not isinstance(value, bool) or kind is _YES)
        if not good or (isinstance(value, list) and (len(value) < 2 or not all(type(each) is str for each in value))):
            raise UsageError(f"{path}: {key} must be {kind}, not {value!r}")
        if isinstance(value, list):
            found[key] = ",".join(value)
    for key in ("store", "work"):
        if key in found and "://" not in found[key] and not found[key].startswith("~"):
            found[key] = str(path.parent / found[key])
    return found
