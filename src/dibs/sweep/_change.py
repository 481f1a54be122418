"""What was done to a queue file since it was planned: lines appended, commented out, uncommented. Pure.

Anything else would move cells under the feet of who runs them, so it is refused and shown as a diff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff

from dibs.errors import RefusedError

from ._queue import is_comment

__all__ = ["Change", "compare", "refuse_change"]

_SHOWN = 20  # lines of a diff


@dataclass(frozen=True)
class Change:
    """Physical lines, from 1: those that are new, those that became a comment, and those that stopped being one."""

    appended: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    restored: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.appended or self.dropped or self.restored)


def compare(source: str, old: Sequence[str], new: Sequence[str]) -> Change:
    """What happened from the lines that were planned to those there are now.

    A line may get ``#`` before it, and more words after it; a comment may become another one. Raises RefusedError, with
    the diff, for everything else.
    """
    dropped, restored = [], []
    if len(new) < len(old):
        raise refuse_change(source, old, new)
    for number, (was, now) in enumerate(zip(old, new, strict=False), 1):
        if was.rstrip() == now.rstrip() or (is_comment(was) and is_comment(now)):
            continue
        if is_comment(now) and was.strip() and _said(now).startswith(was.strip()):
            dropped.append(number)
        elif is_comment(was) and now.strip() and _said(was).startswith(now.strip()):
            restored.append(number)
        else:
            raise refuse_change(source, old, new)
    return Change(tuple(range(len(old) + 1, len(new) + 1)), tuple(dropped), tuple(restored))


def refuse_change(source: str, old: Sequence[str], new: Sequence[str], why: str = "") -> RefusedError:
    """The error for a file whose earlier lines were changed otherwise."""
    diff = list(unified_diff(old, new, f"{source} (planned)", f"{source} (now)", lineterm="", n=1))
    shown = diff[:_SHOWN] + ([f"... and {len(diff) - _SHOWN} more lines"] if len(diff) > _SHOWN else [])
    return RefusedError(
        f"{source} was changed in a way that moves cells{why and f' ({why})'}: lines may be appended, commented out with #, and "
        "uncommented; put the others back, or plan a sweep of another name\n" + "\n".join(shown),
        field=source, theirs=tuple(old), ours=tuple(new),
    )  # fmt: skip


def _said(comment: str) -> str:
    """What a comment holds."""
    return comment.lstrip().lstrip("#").strip()
