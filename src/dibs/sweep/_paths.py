"""Names of files that others wrote down: which of them may be joined to a folder of ours. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

__all__ = ["is_name", "is_path", "same_when_folded"]

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\Z")
_MOST = 1000  # characters of a path


def is_name(name: object) -> bool:
    """Whether it is the name of a cell, and so of a folder."""
    return isinstance(name, str) and _NAME.match(name) is not None


def is_path(path: object) -> bool:
    """Whether it stays within the folder it is joined to, and is the one way to write it: relative, no ``..``, no control
    characters, no backslash (a separator elsewhere), no colon (a drive, or a stream, elsewhere)."""
    if not isinstance(path, str) or not 0 < len(path) <= _MOST or not path.isprintable():
        return False
    if any(c in path for c in '\\:*?"<>|'):
        return False
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and ".." not in parts and "." not in parts and "/".join(parts) == path


def same_when_folded(names: list[str]) -> list[tuple[str, str]]:
    """Pairs that a file system without case takes for one."""
    seen: dict[str, str] = {}
    found = []
    for name in names:
        if name.casefold() in seen:
            found.append((seen[name.casefold()], name))
        else:
            seen[name.casefold()] = name
    return found
