"""What dibs is tested with, for whoever builds on it: suites, state machines, simulators. Needs ``dibs[testing]``.

Names are loaded when they are first used, so that a conformance suite costs no simulator.
"""

from typing import TYPE_CHECKING

from dibs._lazy import lazily

if TYPE_CHECKING:
    from ._backend_machine import BackendMachine
    from ._backend_suite import BackendSuite
    from ._simulator import replay
    from ._simulator_run import Run

__all__ = ["BackendMachine", "BackendSuite", "Run", "replay"]

__getattr__, __dir__ = lazily(__name__, {
    "_backend_machine": ["BackendMachine"],
    "_backend_suite": ["BackendSuite"],
    "_simulator": ["replay"],
    "_simulator_run": ["Run"],
})  # fmt: skip
