"""Tables of a job or profile file, looked at key by key. Pure.

A key that nobody knows is an error that names the nearest known one: a typo kept quiet would be a constraint that is
not there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

from dibs.errors import UsageError

__all__ = ["a_count", "a_flag", "a_name", "a_table", "a_text", "env_of", "lines_of", "texts_of"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def a_table(value: Any, where: str, known: Collection[str] | None = None) -> Mapping[str, Any]:
    """A table whose keys are among ``known`` (None: any text). Raises UsageError naming the place and the key."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"{where} must be a table of keys and values, not {value!r:.80}")
    for key in value:
        if known is not None and key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(sorted(known))}"
            raise UsageError(f"{where}: unknown key {key!r}: {hint}")
    return value


def a_text(value: Any, where: str) -> str:
    """A text on one line that is not blank."""
    if not isinstance(value, str) or not value.strip() or any(ord(letter) < 32 for letter in value):
        raise UsageError(f"{where} must be a text on one line, not {value!r:.80}")
    return value


def a_name(value: Any, where: str) -> str:
    """What may be part of a file's name, on every platform."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise UsageError(f"{where} must be a name of letters, digits, '.', '_' and '-', at most 50, not {value!r:.80}")
    return value


def a_count(value: Any, where: str, least: int = 1) -> int:
    """A whole number, ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{where} must be a whole number of at least {least}, not {value!r:.80}")
    return value


def a_flag(value: Any, where: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false, not {value!r:.80}")
    return value


def texts_of(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts, which may be empty."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"{where} must be a list of texts, not {value!r:.80}")
    return tuple(a_text(each, f"{where}[{at}]") for at, each in enumerate(value))


def lines_of(value: Any, where: str) -> str | tuple[str, ...]:
    """A command: a list is words, a text is a line for the shell. No word may hold a zero byte."""
    words = value if isinstance(value, list | tuple) else [value]
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0].strip():
        raise UsageError(f'{where} must be words, ["dibs", "run", ...], or a text for the shell, not {value!r:.80}')
    return value if isinstance(value, str) else tuple(words)


def env_of(value: Any, where: str) -> dict[str, str | None]:
    """Variables: a text is the value, ``true`` means by name, as it is set where the worker is started (here None)."""
    found: dict[str, str | None] = {}
    for name, said in a_table(value, where).items():
        if not _VARIABLE.fullmatch(name):
            raise UsageError(f"{where}: {name!r} cannot be the name of a variable")
        if said is not True and not (isinstance(said, str) and "\0" not in said):
            raise UsageError(f'{where}: {name} must be a text, or true for "by its name", not {said!r:.80}')
        found[name] = None if said is True else said
    return found
