"""A limit on a trial's time is a signal handler that raises, wherever the trial is: a sink lets it pass, and nothing is torn."""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.sink.disk import Disk

from dibs import Sink
from dibs.sink import _spool


class TimeUp(Exception):
    """What an optimiser's limit raises, as a rule."""


def by_function(signum: int, frame: Any) -> None:
    raise TimeUp


def as_timeout(signum: int, frame: Any) -> None:
    raise TimeoutError("an OSError, and none of the disk's")


def by_words(*args: Any) -> None:
    raise ValueError("no time left")


def forgetful(signum: int, frame: Any) -> None:
    del signum, frame  # what is not used, as some style guides want it
    raise TimeUp


def named(limit: str, signum: int, frame: Any) -> None:
    frame = limit
    raise TimeoutError(frame)


class Limit:
    def __call__(self, signum: int, frame: Any) -> None:
        raise MemoryError


class Forgetful:
    def __call__(self, signum: int, frame: Any) -> None:
        del frame
        raise TimeUp

    def told(self, *args: Any) -> None:
        args = ()
        raise TimeUp(args)


HANDLERS: dict[str, tuple[Any, type[Exception]]] = {
    "a class of its own": (by_function, TimeUp),
    "TimeoutError": (as_timeout, TimeoutError),
    "ValueError": (by_words, ValueError),
    "an object": (Limit(), MemoryError),
    "a lambda": (lambda signum, frame: {}["time"], KeyError),
    "no frame": (forgetful, TimeUp),
    "a partial without": (partial(partial(named), "1 s"), TimeoutError),
    "an object without": (Forgetful(), TimeUp),
    "a method without": (Forgetful().told, TimeUp),
}


@pytest.fixture(params=HANDLERS)
def alarm(request: pytest.FixtureRequest) -> Iterator[type[Exception]]:
    handler, raised = HANDLERS[request.param]
    before = signal.signal(signal.SIGUSR1, handler)
    yield raised
    signal.signal(signal.SIGUSR1, before)


def goes_off() -> None:
    signal.raise_signal(signal.SIGUSR1)


class Slow:
    """Whatever is asked of it, the time is over meanwhile."""

    def __reduce__(self) -> Any:
        goes_off()
        raise AssertionError

    def __repr__(self) -> str:
        goes_off()
        raise AssertionError

    def __float__(self) -> float:
        goes_off()
        raise AssertionError


class SlowToLoad:
    def __reduce__(self) -> Any:
        return goes_off, ()


class Quiet:
    """It fails by itself, which is no alarm."""

    def __reduce__(self) -> Any:
        raise TimeUp

    __repr__ = __float__ = __reduce__  # type: ignore[assignment]


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    made = Sink(tmp_path)
    assert made.record(1.0, artifact="good", params=1)
    return made


def whole(sink: Sink, score: float, artifact: str) -> None:
    best = sink.best()
    assert best is not None
    assert (best.score, best.artifact, best.artifact_is_winner, best.skipped) == (score, artifact, True, 0)


TRIALS: list[dict[str, Any]] = [
    {"score": Slow()},
    {"score": 2.0, "artifact": Slow()},
    {"score": 2.0, "params": {"a": Slow()}},
    {"score": 2.0, "params": [Slow(), *range(20_000)]},
    {"score": 2.0, "more": Slow()},
]


@pytest.mark.parametrize("trial", TRIALS, ids=" ".join)
def test_an_alarm_in_the_trials_own_code_passes(sink: Sink, alarm: type[Exception], trial: dict[str, Any]) -> None:
    with pytest.raises(alarm):
        sink.record(**trial)
    whole(sink, 1.0, "good")
    assert sink.record(2.0, artifact="better")
    whole(sink, 2.0, "better")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("score", "at"), [(2.0, at) for at in range(1, 12)] + [(1.0, at) for at in range(1, 8)])
def test_an_alarm_at_each_call_of_a_commit_passes(
    sink: Sink, alarm: type[Exception], score: float, at: int, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the next trial is recorded, and no artefact lies there that nobody names."""
    disk = Disk()
    monkeypatch.setattr(_spool, "os", disk)
    called: list[str] = []

    def due(name: str, count: int) -> None:
        called.append(name)
        if count == at:
            goes_off()

    setattr(disk, when, due)
    with pytest.raises(alarm):
        sink.record(score, artifact="better", params=2)  # or an equal, which is held besides
    disk.begin()
    best = sink.best()
    assert best is not None
    assert (best.score, best.skipped, best.artifact) in ((1.0, 0, "good"), (2.0, 0, "better"))
    assert sink.record(3.0, artifact="best", params=3)
    whole(sink, 3.0, "best")
    named = "".join(path.read_text() for path in Path(sink.folder).glob("kept-*"))
    unnamed = [path for path in Path(sink.folder).glob("blob-*") if path.name not in named]
    # a file whose very creation or removal was cut short may stay, until the folder goes
    cut_short = (when, called[at - 1]) in {("after", "open"), ("after", "replace"), ("before", "unlink")}
    assert len([*unnamed, *Path(sink.folder).glob(".dibs-sink-*")]) <= cut_short


def test_an_alarm_while_a_process_looks_at_what_others_have_passes(
    tmp_path: Path, alarm: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.listdir

    def listing(folder: str) -> list[str]:
        goes_off()
        return real(folder)

    monkeypatch.setattr(os, "listdir", listing)
    sink = Sink(tmp_path)
    with pytest.raises(alarm):
        sink.record(1.0, artifact="good")
    with pytest.raises(alarm):
        sink.best()
    monkeypatch.undo()
    assert sink.record(1.0, artifact="good")
    whole(sink, 1.0, "good")


def test_an_alarm_while_the_best_is_loaded_passes(sink: Sink, alarm: type[Exception]) -> None:
    assert sink.record(2.0, artifact=SlowToLoad())
    with pytest.raises(alarm):
        sink.best()


def test_an_alarm_while_somebody_is_warned_passes(
    sink: Sink, alarm: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("dibs"), "warning", lambda *args: goes_off())
    with pytest.raises(alarm):
        sink.record(2.0, artifact=Quiet())


def test_the_same_exceptions_of_the_trials_own_code_do_not_pass(sink: Sink) -> None:
    assert not sink.record(Quiet(), artifact="x")
    assert sink.record(2.0, artifact=Quiet(), params={"a": Quiet()}, more=[Quiet(), *range(20_000)])
    best = sink.best()
    assert best is not None
    assert (best.score, best.artifact, best.artifact_error) == (2.0, "good", "could not be pickled: TimeUp: ")


def test_what_another_thread_puts_into_this_one_passes(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """As libraries do that limit time without signals; where no code but the sink's runs."""
    real = pickle.dumps

    def interrupted(*args: Any, **options: Any) -> bytes:
        data = real(*args, **options)
        put = ctypes.pythonapi.PyThreadState_SetAsyncExc
        assert put(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(TimeUp)) == 1
        return data

    disk: Any = Disk()
    first: Callable[[], Any] = lambda: interrupted("x")  # noqa: E731
    disk.before = lambda name, count: first() and None if count == 1 else None
    monkeypatch.setattr(_spool, "os", disk)
    with pytest.raises(TimeUp):
        sink.record(2.0, artifact="better")
