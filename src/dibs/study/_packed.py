"""Study and objective as bytes for a fresh process, or one clear sentence why that cannot be."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from typing import TYPE_CHECKING

from dibs.errors import UsageError

from ._work import Objective

if TYPE_CHECKING:
    from ._runnable import Runnable

__all__ = ["packed"]


def packed(study: Runnable, objective: Objective, why: str = "workers > 1") -> bytes:
    """Study and objective for a fresh process. Raises UsageError if it could not import the objective.

    ``why``: what needs worker processes.
    """
    if study.store.backend.traits.name == "memory":
        raise UsageError(f"{why} needs a store that other processes reach: this one is in this process's memory")
    if multiprocessing.current_process().daemon:
        raise UsageError(f"{why} starts processes, which a daemon process of multiprocessing may not")
    try:
        data = pickle.dumps((study, objective))
    except Exception as wrong:  # whatever an object's own way of being pickled may raise
        raise UsageError(
            f"{why} needs an objective that a fresh process can import: define it at the top of a module, "
            f"not as a lambda or inside a function ({wrong})"
        ) from None
    main_module = sys.modules.get("__main__")
    spec, file = getattr(main_module, "__spec__", None), getattr(main_module, "__file__", None)
    if b"__main__" in data and spec is None and (file is None or not os.path.isfile(file)):  # noqa: PTH113
        raise UsageError(
            f"{why} needs an objective that a fresh process can import, and this session has no file: put the "
            "objective into a module and import it"
        )
    return data
