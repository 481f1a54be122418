"""The command line: one file per verb; answers on stdout, progress and log on stderr, exit codes with a meaning.

Loaded lazily: a worker process that only needs ``FileObjective`` from here must not pay for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._root import main

__all__ = ["main"]


def __getattr__(name: str) -> Any:
    if name != "main":
        raise AttributeError(f"module 'dibs.cli' has no attribute {name!r}")
    from ._root import main

    return main
