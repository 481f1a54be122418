"""An artefact as bytes, and whether cloudpickle was told to ship dibs by value, which a sink does not survive."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

from dibs._passing import interrupts
from dibs.errors import UsageError

__all__ = ["pickled", "refuse_by_value"]

_COPIES = (
    "cloudpickle",
    "joblib.externals.cloudpickle",
    "ray.cloudpickle",
    "pyspark.cloudpickle",
)  # each with its registry


def pickled(artifact: Any, by_name: bool) -> bytes:
    """The artefact by cloudpickle where there is one (lambdas, classes of ``__main__``), else by pickle.

    ``by_name``: who reads it runs the same main script, so pickle is tried first: what is of class ``Model`` of that script
    comes back as a ``Model``, where cloudpickle would make a second class of that name. Raises whatever pickling raises.
    """
    if by_name:
        try:
            return pickle.dumps(artifact, protocol=5)
        except Exception as error:  # a lambda, as a rule; what cannot be pickled at all fails again below
            if interrupts(error):
                raise
    return _dumps()(artifact, protocol=5)


def _dumps() -> Callable[..., bytes]:
    """The cloudpickle that is loaded: only that which made a class here knows it as the main process's own."""
    for copy in _COPIES:
        if (loaded := getattr(sys.modules.get(copy), "dumps", None)) is not None:
            found: Callable[..., bytes] = loaded
            return found
    try:
        from cloudpickle import dumps
    except ImportError:
        return pickle.dumps
    return dumps  # type: ignore[no-any-return]


def refuse_by_value() -> None:
    """UsageError if a cloudpickle of this process has been told to copy dibs into what it pickles.

    Its workers would have a copy of this module, and of its high-water marks, for every task: each task would begin
    without a mark and write its trial, however bad.
    """
    for copy in _COPIES:
        listed = getattr(sys.modules.get(copy), "list_registry_pickle_by_value", None)
        for name in sorted(listed()) if listed else ():
            if name in ("dibs", "dibs.sink") or name.startswith("dibs.sink."):
                raise UsageError(
                    f"a sink cannot be shipped by value: every task would get its own copy of the high-water marks and write "
                    f"every trial; call cloudpickle.unregister_pickle_by_value({name}) and install dibs where workers run"
                )
