"""The keeper's ends: who leaves while its thread is at work, and who forks or leaves when others' descriptors are gone."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.study.processes import open_study

from dibs import Study
from dibs.study._keeper import keeper
from dibs.study._session import Session


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


def blocked_in_child() -> int:
    """How many signals a forked child finds blocked."""
    pid = os.fork()
    if pid == 0:
        os._exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_loop_ends_while_the_thread_would_wake_it(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    called, ending = threading.Event(), threading.Event()
    threads = []

    def work(session: Session) -> None:
        threads.append(threading.current_thread())
        called.set()
        assert ending.wait(60)
        session.grace_s = 0.0
        session.stop("the grace is over")
        session._grace_is_over()

    real = keeper._stop

    def stop() -> Any:
        ending.set()
        return real()

    monkeypatch.setattr(Session, "work", work)
    monkeypatch.setattr(keeper, "_stop", stop)
    monkeypatch.setattr(Session, "end_at_once", lambda session, code: threads.append(code))
    with Session(study.store.machine.clock):
        assert called.wait(60)
    assert not threads[0].is_alive(), "who leaves does not hold what the thread needs to end"
    assert len(set(threads)) == 1, "and the process goes on"


def test_who_listened_before_may_be_gone(study: Study) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno())
    for trial in study.trials(1):
        with trial:
            theirs.close()
            assert blocked_in_child() == 0
            trial.done(1.0)
    ours.close()
    assert signal.set_wakeup_fd(before) == -1
