"""What to type to see how far workers are, read off their command. Pure; nothing is decided by it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ._profile import Profile
from ._request import Request

__all__ = ["look_at"]

_SWEEP, _NAME = ("sweep", "run"), "--name"


def look_at(request: Request, profile: Profile, store: str) -> str:
    """``dibs status`` of the store, or of the sweep where that is what the workers run.

    A name that only the worker's shell knows is left to be filled in.
    """
    place = f"--store {shlex.quote(store)}"
    words = _words(request.run)
    at = next((k for k in range(len(words)) if tuple(words[k : k + 2]) == _SWEEP and _is_dibs(words[:k])), None)
    if at is None:
        return f"dibs status {place}"
    name = _said(words[at + 2 :]) or {**profile.env, **request.env}.get("DIBS_SWEEP")
    known = name and not set(name) & set("$`")
    return f"dibs sweep status {place} {_NAME} {shlex.quote(name) if name and known else 'NAME'}"


def _words(run: str | Sequence[str]) -> list[str]:
    """The command's words; none of a line for the shell that does not read."""
    if not isinstance(run, str):
        return list(run)
    line = shlex.shlex(run, posix=True, punctuation_chars=True)
    line.whitespace_split, line.commenters = True, ""
    try:
        return list(line)
    except ValueError:
        return []


def _is_dibs(before: Sequence[str]) -> bool:
    return any(word.rpartition("/")[2] == "dibs" for word in before)


def _said(words: Sequence[str]) -> str | None:
    """The last ``--name``, in whichever way it is written."""
    found = None
    for at, word in enumerate(words):
        if word == _NAME and at + 1 < len(words):
            found = words[at + 1]
        elif word.startswith(f"{_NAME}="):
            found = word.removeprefix(f"{_NAME}=")
    return found
