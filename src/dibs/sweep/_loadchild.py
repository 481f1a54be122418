"""The process that loads: one request a line, "begun" and one answer, a line each, until its input ends. Started by ``_loading``.

What it loads may be hostile: time is limited from outside, address space here, and its own streams are out of reach of
whatever a loader prints or reads.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ._kinds import BEGUN
from ._loaders import CannotLoad, load, prepare

__all__ = ["main"]

_MOST_NAMED, _MOST_TEXT = 20, 300


def main() -> None:
    """Answer until the input ends."""
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)

    def tell(answer: dict[str, Any]) -> None:
        told.write(json.dumps(answer).encode() + b"\n")
        told.flush()

    for line in asked:
        tell(_answer(json.loads(line), lambda: tell({"state": BEGUN, "what": ""})))


def _answer(request: dict[str, Any], begun: Callable[[], None]) -> dict[str, Any]:
    if request["within"] not in sys.path and ":" in request["how"]:
        sys.path.append(request["within"])  # behind everything else: a file that lies there shadows no module
    try:
        prepare(request["how"])
        begun()  # from here on its time counts, and not that of a large library
        before = _limit(request["memory"])
        try:
            holds, bad = load(Path(request["path"]), request["how"])
        finally:
            _unlimit(before)
    except CannotLoad as wrong:
        return {"state": "not loaded", "what": str(wrong)}
    except MemoryError:
        return {"state": "does not load", "what": "it takes more memory than it may: --memory gives it more"}
    except RecursionError:
        return {"state": "does not load", "what": "it is nested too deeply"}
    except BaseException as wrong:
        text = " ".join(str(wrong).split())[:_MOST_TEXT]
        plain = type(wrong) is ValueError and text
        return {"state": "does not load", "what": text if plain else f"{type(wrong).__name__}: {text}"}
    if bad:
        named = ", ".join(name[:100] for name in bad[:_MOST_NAMED])
        more = f" and {len(bad) - _MOST_NAMED} more" if len(bad) > _MOST_NAMED else ""
        return {"state": "not finite", "what": f"NaN or an infinity in {named}{more}"}
    return {"state": "loaded", "what": holds}


def _limit(more: int | None) -> tuple[int, int] | None:
    """At most so much more address space from here on; None where the system has no such limit."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        if more is None:
            return None
        most = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (most if before[1] < 0 else min(most, before[1]), before[1]))
        return before
    except (ImportError, OSError, ValueError, AttributeError):
        return None


def _unlimit(before: tuple[int, int] | None) -> None:
    if before is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, before)
