"""What a cell's process is told: fields for its command line, and the same as ``DIBS_*`` variables. Pure.

A value is text as any language reads it: a str as it is, everything else as JSON (``0.001``, ``true``, ``null``,
``[1, 2]``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from dibs.errors import UsageError

__all__ = ["check_values", "text_of", "variable_of", "variables_of"]

_PARAM = "DIBS_PARAM_"
_TRACKERS = ("WANDB_RUN_GROUP", "WANDB_TAGS")


def text_of(value: Any) -> str:
    """A value of a point as an argument."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def variable_of(name: str) -> str:
    """``DIBS_PARAM_LR`` for ``lr``: capitals, and an underscore for what no variable may have."""
    return _PARAM + re.sub(r"[^A-Z0-9_]", "_", name.upper())


def check_values(names: Iterable[str], values: Iterable[Any]) -> None:
    """UsageError for parameters that share a variable, and for values that no process can be given."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(variable_of(name), name)
        if other != name:
            raise UsageError(f"the parameters {other!r} and {name!r} would both be {variable_of(name)}: rename one")
    for value in values:
        text = text_of(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{value!r:.80} is not valid Unicode: no program can be given it") from None
        if "\0" in text:
            raise UsageError(f"{value!r:.80} has a zero character, which no argument of a program can have")


def variables_of(
    base: Mapping[str, str],
    point: Mapping[str, Any],
    fields: Mapping[str, str],
    name: str,
    group: str,
    tags: str = "dibs",
) -> dict[str, str]:
    """The environment of a cell: ``base`` without what an outer cell was told, and what this one is.

    ``fields`` become ``DIBS_OUT`` and so on, ``name`` the name a tracker should show, ``group`` and ``tags`` likewise.
    What the user has set for a tracker stays.
    """
    ours = {f"DIBS_{field.upper()}": text for field, text in fields.items()}
    ours |= {variable_of(param): text_of(value) for param, value in point.items()}
    ours |= {"DIBS_POINT": json.dumps(point), "DIBS_RUN_NAME": name}
    kept = {key: value for key, value in base.items() if not key.startswith((_PARAM, "DIBS_ARG_", "DIBS_PREVIOUS"))}
    trackers = dict(zip(_TRACKERS, (group, tags), strict=True))
    # what a program prints should be seen while it runs, and Python holds it back where stdout is a pipe
    return {**trackers, "PYTHONUNBUFFERED": "1", **kept, **ours}
