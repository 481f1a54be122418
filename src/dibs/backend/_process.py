"""Which process this is, without asking the system: names, records and locks ask a dozen times a trial."""

from __future__ import annotations

import os

__all__ = ["this_process"]

_pid = os.getpid()


def this_process() -> int:
    """``os.getpid()`` without the system call; another number in a forked child."""
    return _pid


def _forked() -> None:
    global _pid
    _pid = os.getpid()


if hasattr(os, "register_at_fork"):  # whoever forks and goes on in Python calls these (PyOS_AfterFork_Child)
    os.register_at_fork(after_in_child=_forked)
