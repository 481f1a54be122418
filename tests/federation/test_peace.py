"""Who averages and is told to end by a signal says so first; in processes of their own."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from tests.federation.rounds import model, same
from tests.parts import body_at
from tests.study.processes import end, program, start

from dibs import Store
from dibs.federation import fedavg, gather
from dibs.federation._peace import ending_in_peace
from dibs.store import RoundKeys

HEAD = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import dibs
from dibs.federation import gather, _averaging
from tests.federation.rounds import model
"""
BODY = """
url, number, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
compute = _averaging.compute

def told(*args):
    os.kill(os.getpid(), number)
    return compute(*args)

_averaging.compute = told
if how == "nohup":
    signal.signal(number, signal.SIG_IGN)
if how == "handler":
    signal.signal(number, lambda number, frame: print("handled"))
gather(dibs.Store(url), model("a"), run="r", round=0, clients=["a"], client="a")
print(signal.getsignal(number) is signal.SIG_DFL)
"""
KEYS = RoundKeys("r")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_is_interrupted_and_the_next_one_averages(tmp_path: Path, number: int) -> None:
    store = Store(tmp_path / "s", create=True)
    code, out, err = end(start(program(tmp_path, BODY, head=HEAD), str(tmp_path / "s"), str(int(number)), ""))
    assert (code, out, err) == (128 + number, "", "")
    attempt = body_at(store, KEYS.averaging(0, 0))
    assert (attempt["state"], attempt["reason"]) == ("interrupted", f"SystemExit: {128 + number}")
    assert same(gather(store, model("a"), run="r", round=0, clients=["a"], client="a"), fedavg({"a": model("a")}))
    assert list((tmp_path / "s" / "tmp").glob("*.tmp*")) == []


@pytest.mark.parametrize(("how", "said"), [("nohup", "False\n"), ("handler", "handled\nFalse\n")])
def test_handlers_of_others_stay(tmp_path: Path, how: str, said: str) -> None:
    store = Store(tmp_path / "s", create=True)
    code, out, err = end(start(program(tmp_path, BODY, head=HEAD), str(tmp_path / "s"), str(int(signal.SIGHUP)), how))
    assert (code, out, err) == (0, said, "")
    assert body_at(store, KEYS.averaging(0, 0))["state"] == "done"


def test_a_process_forked_meanwhile_ends_as_any_other() -> None:
    """As a worker of a pool that another thread starts: it averages nothing."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with ending_in_peace():
            pid = os.fork()
            if pid == 0:
                try:
                    signal.raise_signal(signal.SIGTERM)
                finally:
                    os._exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_process_forked_meanwhile_may_average_itself() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with ending_in_peace():
            pid = os.fork()
            if pid == 0:
                code = 5
                try:
                    with ending_in_peace():
                        signal.raise_signal(signal.SIGTERM)
                except SystemExit as told:
                    code = 0 if told.code == 128 + signal.SIGTERM else 6
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_was_set_is_put_back() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with ending_in_peace():
            assert callable(signal.getsignal(signal.SIGTERM))
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        with ending_in_peace():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        seen = []

        def elsewhere() -> None:
            with ending_in_peace():
                seen.append(signal.getsignal(signal.SIGTERM))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert seen == [signal.SIG_DFL]
    finally:
        signal.signal(signal.SIGTERM, before)
