"""What dibs is tested with, for whoever builds on it: suites, state machines, simulators. Needs ``dibs[testing]``.

Names are loaded when they are first used, so that a conformance suite costs no simulator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dibs.testing._backend_machine import BackendMachine
    from dibs.testing._backend_suite import BackendSuite
    from dibs.testing._simulator import Run, replay

__all__ = ["BackendMachine", "BackendSuite", "Run", "replay"]

_LAZY = {
    "BackendMachine": "_backend_machine",
    "BackendSuite": "_backend_suite",
    "Run": "_simulator",
    "replay": "_simulator",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
