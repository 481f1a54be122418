"""The loop behind ``trials()``: what is left open, who has the signal handlers, threads, nesting, forks."""

# A loop is what raises here, and it runs at once.
# ruff: noqa: PT012

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.study.processes import eventually, open_study, record, state

from dibs import Study, Trial
from dibs.errors import UsageError
from dibs.study._claimer import Claimer
from dibs.study._keeper import keeper

HANDLED = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return open_study(tmp_path)


@pytest.fixture(autouse=True)
def everything_is_put_back() -> Iterator[None]:
    before = [signal.getsignal(number) for number in HANDLED]
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    yield
    gc.collect()
    assert [signal.getsignal(number) for number in HANDLED] == before
    now = signal.set_wakeup_fd(fd)
    assert now == fd
    assert keeper._sessions == []
    assert not any(thread.name == "dibs-beats" for thread in threading.enumerate())


def reason(study: Study, n: int) -> str | None:
    found = record(study, n)
    assert found is not None
    assert found.state == "interrupted"
    return found.reason


# ---- what is left open


def test_advancing_closes_an_open_trial(study: Study) -> None:
    seen = []
    for trial in study.trials(3):
        seen.append((trial.n, trial.attempt))
        if len(seen) == 3:
            break
        if trial.attempt:
            trial.done(1.0)
    assert seen == [(0, 0), (0, 1), (1, 0)]  # interrupted ones come first, its own too
    assert reason(study, 0) == "left open"
    assert reason(study, 1) == "left open"


def test_break_and_return_close_it(study: Study) -> None:
    for _ in study.trials(3):
        break
    assert reason(study, 0) == "left open"

    def give_up() -> str:
        for trial in study.trials(3):
            if trial.attempt == 1:
                return "gave up"
        return ""

    assert give_up() == "gave up"
    assert state(study, 0, 1) == "interrupted"


def test_an_exception_between_trials_closes_it_and_is_raised(study: Study) -> None:
    with pytest.raises(ZeroDivisionError):
        for trial in study.trials(3):
            1 / (trial.n * 0)
    assert reason(study, 0) == "left open"


def test_an_exception_after_with_leaves_the_result(study: Study) -> None:
    with pytest.raises(ZeroDivisionError):
        for trial in study.trials(3):
            with trial:
                trial.done(1.0)
            1 / (trial.n * 0)
    assert state(study, 0) == "done"


@pytest.mark.parametrize("how", ["close", "collect"])
def test_a_loop_that_is_dropped_closes_it(study: Study, how: str) -> None:
    loop = study.trials(3)
    trial = next(loop)
    if how == "close":
        loop.close()  # type: ignore[attr-defined]
    else:
        del loop
        gc.collect()
    assert trial.state == "interrupted"
    assert reason(study, 0) == "left open"


def test_collected_by_another_thread(study: Study) -> None:
    """Only the main thread can put handlers back: the next signal finds the old ones."""
    loops = [study.trials(3)]
    next(loops[0])
    thread = threading.Thread(target=loops.clear)
    thread.start()
    thread.join()
    assert reason(study, 0) == "left open"
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for trial in study.trials(1):  # and the next loop works as any other
        with trial:
            trial.done(1.0)


def test_what_the_thread_was_to_read_is_gone(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that begins drains the pipe, perhaps just when the thread has been told that there is something in it."""
    armed, told, drained, again = (threading.Event() for _ in range(4))
    real = select.poll

    class Poll:
        def __init__(self) -> None:
            self.real = real()
            self.register = self.real.register

        def poll(self, ms: float) -> list[tuple[int, int]]:
            if drained.is_set():
                again.set()
            ready = self.real.poll(ms)
            if ready and armed.is_set() and not told.is_set():
                told.set()
                assert drained.wait(60)
            return ready

    monkeypatch.setattr("dibs.study._keeper.select.poll", Poll)
    loops = [study.trials(3)]
    next(loops[0])
    thread = threading.Thread(target=loops.clear)  # leaves the keeper's thread and the handlers behind
    thread.start()
    thread.join()
    armed.set()
    keeper.poke()
    assert told.wait(60)
    beats = keeper._thread
    assert beats is not None

    def drain() -> None:
        type(keeper)._drain(keeper)
        drained.set()
        eventually(lambda: again.is_set() or not beats.is_alive())

    monkeypatch.setattr(keeper, "_drain", drain)
    for trial in study.trials(1):
        with trial:
            assert beats.is_alive()
            trial.done(1.0)


def test_a_loop_that_is_over_before_the_thread_has_begun(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(threading.Thread):
        def start(self) -> None: ...  # only once somebody waits for it

        def join(self, timeout: float | None = None) -> None:
            super().start()
            super().join(timeout)

    monkeypatch.setattr("dibs.study._keeper.threading.Thread", Late)
    assert [trial.done(1.0) for trial in study.trials(1)]  # pytest hears of an exception in the thread


# ---- signals


def test_first_ctrl_c_no_new_trials(study: Study, capfd: pytest.CaptureFixture[str]) -> None:
    ran = []
    with pytest.raises(KeyboardInterrupt):
        for trial in study.trials(5):
            with trial:
                signal.raise_signal(signal.SIGINT)
                assert trial.report(0.5) is False
                ran.append(trial.n)
    assert ran == [0]
    assert state(study, 0) == "done"
    assert state(study, 1) is None
    assert capfd.readouterr().err == "dibs: finishing the running trial, no new ones; Ctrl-C again interrupts it\n"


def test_second_ctrl_c_interrupts(study: Study) -> None:
    after = []
    with pytest.raises(KeyboardInterrupt):
        for trial in study.trials(5):
            with trial:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                after.append("not reached")
    assert after == []
    assert reason(study, 0) == "SIGINT"


def test_ctrl_c_never_cuts_our_own_code_in_two(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two Ctrl-C in the middle of a close: the close is written, then the interruption is raised."""
    loop = study.trials(5)
    trial = next(loop)
    close = type(trial._attempt).close
    whole = []

    def closing(*args: object, **kwargs: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        close(*args, **kwargs)  # type: ignore[arg-type]
        whole.append(True)

    monkeypatch.setattr(type(trial._attempt), "close", closing)
    with pytest.raises(KeyboardInterrupt):
        trial.done(0.5)
    assert whole == [True]
    assert state(study, 0) == "done"
    with pytest.raises(KeyboardInterrupt):
        next(loop)


def test_ctrl_c_between_trials_ends_the_loop(study: Study) -> None:
    with pytest.raises(KeyboardInterrupt):
        for trial in study.trials(5):
            with trial:
                trial.done(1.0)
            signal.raise_signal(signal.SIGINT)
    assert len(study.results()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_trial_claimed_while_the_signal_came_does_not_begin(
    study: Study, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    step = Claimer.step

    def stepping(self: Claimer) -> object:
        got = step(self)
        signal.raise_signal(number)
        return got

    monkeypatch.setattr(Claimer, "step", stepping)
    ran: list[int] = []
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        ran += [trial.n for trial in study.trials(5)]
    assert ran == []
    assert reason(study, 0) == signal.Signals(number).name


def test_sigterm_says_stop_and_ends_with_143(study: Study) -> None:
    with pytest.raises(SystemExit) as ended:
        for trial in study.trials(5):
            with trial:
                for step in range(10):
                    if trial.report(1.0):
                        break
                    if step == 3:
                        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert reason(study, 0) == "SIGTERM"
    found = record(study, 0)
    assert found is not None
    assert found.step == 4
    assert state(study, 1) is None


def test_a_signal_reaches_every_nested_loop(tmp_path: Path, study: Study) -> None:
    inner_study = Study(study.store, "inner", study.space, goal="min")
    with pytest.raises(SystemExit):
        for outer in study.trials(5):
            with outer:
                for inner in inner_study.trials(5):
                    with inner:
                        if inner.n == 1:
                            signal.raise_signal(signal.SIGTERM)
                        inner.report(1.0)
    assert reason(study, 0) == "SIGTERM"
    assert (state(inner_study, 0), reason(inner_study, 1)) == ("done", "SIGTERM")


def test_two_loops_at_once_left_in_any_order(study: Study) -> None:
    first, second = study.trials(5), study.trials(5)
    next(first), next(second)
    first.close()  # type: ignore[attr-defined]
    assert signal.getsignal(signal.SIGTERM) == keeper._on_signal
    second.close()  # type: ignore[attr-defined]


def test_a_handler_put_up_inside_the_loop_stays(study: Study) -> None:
    def theirs(*_: object) -> None:
        pass

    before = signal.getsignal(signal.SIGTERM)
    try:
        for trial in study.trials(1):
            with trial:
                signal.signal(signal.SIGTERM, theirs)
                trial.done(1.0)
        assert signal.getsignal(signal.SIGTERM) is theirs
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_ignored_ctrl_c_stays_ignored(study: Study) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for trial in study.trials(2):
            with trial:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
                trial.done(1.0)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(study.results("done")) == 2


def test_who_listened_before_still_hears(study: Study) -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    before = signal.set_wakeup_fd(near.fileno(), warn_on_full_buffer=False)
    old = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        for trial in study.trials(1):
            with trial:
                signal.raise_signal(signal.SIGUSR1)
                far.setblocking(True)
                assert far.recv(1) == bytes([signal.SIGUSR1])
                trial.done(1.0)
        assert signal.set_wakeup_fd(near.fileno(), warn_on_full_buffer=False) == near.fileno()
    finally:
        signal.signal(signal.SIGUSR1, old)
        signal.set_wakeup_fd(before)
        near.close()
        far.close()


# ---- threads and beats


def test_a_loop_in_a_thread_touches_no_handlers(study: Study) -> None:
    before = [signal.getsignal(number) for number in HANDLED]
    seen: list[object] = []

    def search() -> None:
        for trial in study.trials(3):
            with trial:
                seen.append([signal.getsignal(number) for number in HANDLED])
                trial.done(float(trial.n))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert seen == [before] * 3
    assert len(study.results("done")) == 3


def test_four_threads_share_a_study(study: Study) -> None:
    def search(me: str) -> None:
        for trial in Study(study.store.url, "s", me=me).trials(20):
            with trial:
                trial.done(trial.point["x"])

    threads = [threading.Thread(target=search, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results = study.results()
    assert [(r.n, r.attempt, r.state) for r in results] == [(n, 0, "done") for n in range(20)]


def test_an_open_trial_beats(tmp_path: Path) -> None:
    study = open_study(tmp_path, stale_s=1.0)  # so that a beat is due every second
    path = tmp_path / "store" / study.store.keys("s").attempt(0, 0)
    for trial in study.trials(1):
        with trial:
            os.utime(path, (1.0, 1.0))
            eventually(lambda: path.stat().st_mtime > 1.0)
            trial.done(1.0)


def test_a_beat_that_goes_wrong_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    study = open_study(tmp_path, stale_s=1.0)
    path = tmp_path / "store" / study.store.keys("s").attempt(1, 0)
    first, second = study.trials(2), study.trials(2)
    bad, good = next(first), next(second)
    assert (bad.n, good.n) == (0, 1)
    monkeypatch.setattr(bad, "beat", lambda: 1 / 0, raising=False)
    with caplog.at_level(logging.CRITICAL):
        os.utime(path, (1.0, 1.0))
        eventually(lambda: path.stat().st_mtime > 1.0)
    good.done(1.0)
    bad.done(1.0)
    del first, second


# ---- forks


def in_child(action: object) -> int:
    """The exit code of a forked child that does it; 99 for an exception."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = int(action())  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_has_neither_handlers_nor_thread_nor_pipe(study: Study) -> None:
    before = [signal.getsignal(number) for number in HANDLED]
    for trial in study.trials(1):
        with trial:

            def clean() -> bool:
                mine = [signal.getsignal(number) for number in HANDLED]
                return mine == before and signal.set_wakeup_fd(-1) == -1 and keeper._thread is None

            assert in_child(clean) == 1
            assert in_child(lambda: os.kill(os.getpid(), signal.SIGTERM)) == -signal.SIGTERM
            assert in_child(lambda: os.kill(os.getpid(), signal.SIGINT)) == 99  # KeyboardInterrupt, the default
            keeper.poke()
            assert trial.report(1.0) is False
            assert not trial.stopping  # the children's signals were not ours
    assert state(study, 0) == "done"


def test_a_forked_child_that_goes_on_with_the_loop_is_told(study: Study) -> None:
    def go_on() -> int:
        try:
            next(loop)
        except UsageError as wrong:
            return 7 * ("was forked" in str(wrong))
        return 0

    loop = study.trials(5)
    trial = next(loop)
    assert in_child(go_on) == 7
    assert trial.state == "running"
    assert [r.n for r in study.results()] == [0]
    trial.done(1.0)


def test_a_forked_child_may_search_by_itself(study: Study) -> None:
    def search() -> int:
        for theirs in Study(study.store.url, "s").trials(2):
            with theirs:
                theirs.done(0.25)
        return 5

    for trial in study.trials(2):
        with trial:
            assert in_child(search) == 5
            trial.done(0.75)
    assert [(r.n, r.score) for r in study.results("done")] == [(0, 0.75), (1, 0.25)]


def test_a_fork_in_a_thread(study: Study) -> None:
    codes: list[int] = []
    for trial in study.trials(1):
        with trial:
            thread = threading.Thread(target=lambda: codes.append(in_child(lambda: 3)))
            thread.start()
            thread.join()
            trial.done(1.0)
    assert codes == [3]


def test_reading_a_trial_that_is_over(study: Study) -> None:
    kept: list[Trial] = []
    for trial in study.trials(2):
        with trial:
            trial.done(0.5)
            kept.append(trial)
    assert [(t.n, t.state, t.closed, t.reason, t.stopping) for t in kept] == [
        (0, "done", True, None, False),
        (1, "done", True, None, False),
    ]
    assert "done" in repr(kept[0])
