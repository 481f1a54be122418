"""An artefact as bytes, and whether cloudpickle was told to ship dibs by value, which a sink does not survive."""

from __future__ import annotations

import sys
from typing import Any

from dibs.errors import UsageError

__all__ = ["pickled", "refuse_by_value"]

_COPIES = ("cloudpickle", "cloudpickle.cloudpickle", "joblib.externals.cloudpickle")  # joblib brings one of its own


def pickled(artifact: Any) -> bytes:
    """The artefact by cloudpickle where that is installed (lambdas, classes of ``__main__``), else by pickle.

    Raises whatever pickling it raises.
    """
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    data: bytes = dumps(artifact, protocol=5)
    return data


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
