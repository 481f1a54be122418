"""The part of the conformance suite with many threads and processes, and the helpers of the whole.

All racers start at one barrier or are real processes; what is asserted never depends on who was faster.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from typing import Literal

import pytest

from dibs.backend import Backend, Draft, Object, Outcome
from dibs.errors import StoreError

__all__ = ["BackendRaces", "check_race", "claim_all", "data_of", "held_at", "put", "race_processes", "rewrite"]

WON, LOST = Outcome.WON, Outcome.LOST


def held_at(backend: Backend, key: str) -> Object:
    """What lies under the key, which must be there."""
    held = backend.read(key)
    assert held is not None, f"{key} is missing"
    return held


def data_of(backend: Backend, key: str) -> bytes:
    """The bytes under the key, which must be there."""
    return held_at(backend, key).data


def put(backend: Backend, key: str, data: bytes = b"{}") -> None:
    """Create the key, which must be free."""
    draft = backend.stage(data)
    assert backend.create(key, draft) is WON
    assert backend.discard(draft)


def rewrite(backend: Backend, key: str, data: bytes) -> Outcome:
    """Replace the key's bytes, by the version just read."""
    held = backend.read(key)
    return backend.replace(key, backend.stage(data), held.version if held else "none")


def claim_all(backend: Backend, keys: list[str], mark: bytes, ready: Callable[[], object]) -> list[str]:
    """Try to create every key with ``mark`` in it, all racers at once; the keys that were won."""
    ready()
    won = []
    for key in keys:
        draft = backend.stage(mark)
        if backend.create(key, draft) is WON:
            won.append(key)
        backend.discard(draft)
    return won


def race_processes(backend: Backend, start: Literal["fork", "spawn", "forkserver"], racers: int, names: int) -> None:
    """That many processes try to create the same names at once; AssertionError unless each name has one winner."""
    keys = [f"race/{n:04d}.json" for n in range(names)]
    context = multiprocessing.get_context(start)
    gate = context.Barrier(racers)
    with ProcessPoolExecutor(racers, mp_context=context, initializer=_open_gate, initargs=(gate,)) as pool:
        futures = {mark: pool.submit(_claim_all_here, backend, keys, mark) for mark in _marks(racers)}
        check_race(backend, keys, {mark: future.result() for mark, future in futures.items()})


_GATES: list[Barrier] = []  # of a racing process: at most one


def _open_gate(gate: Barrier) -> None:
    _GATES[:] = [gate]


def _claim_all_here(backend: Backend, keys: list[str], mark: bytes) -> list[str]:
    return claim_all(backend, keys, mark, lambda: _GATES[0].wait(60))


def _marks(racers: int) -> list[bytes]:
    return [b"%d" % i for i in range(racers)]


def check_race(backend: Backend, keys: list[str], won_by: dict[bytes, list[str]]) -> None:
    """AssertionError unless each key was won once, and carries its winner's mark."""
    winners = Counter(key for keys in won_by.values() for key in keys)
    assert winners == dict.fromkeys(keys, 1), "each name has exactly one winner"
    for mark, won in won_by.items():
        for key in won:
            assert data_of(backend, key) == mark, "a name carries its winner's bytes"


class BackendRaces:
    """Tests of a ``backend`` fixture under threads, processes and forks."""

    pickles = True  # False: pickling raises StoreError
    race_processes = 0  # spawned; for backends that pickle

    def test_racing_threads_have_one_winner_per_name(self, backend: Backend) -> None:
        keys = [f"race/{n:04d}.json" for n in range(40)]
        racers = _marks(8)
        gate = threading.Barrier(len(racers))
        with ThreadPoolExecutor(len(racers)) as pool:
            futures = {mark: pool.submit(claim_all, backend, keys, mark, gate.wait) for mark in racers}
            check_race(backend, keys, {mark: future.result() for mark, future in futures.items()})
        assert sorted(entry.key for entry in backend.list("race/")) == keys

    def test_racing_processes_have_one_winner_per_name(self, backend: Backend) -> None:
        if not (self.race_processes and self.pickles):
            pytest.skip("this class races threads only (race_processes)")
        race_processes(backend, "spawn", self.race_processes, names=100)

    def test_a_reader_sees_whole_writes(self, backend: Backend) -> None:
        put(backend, "a/x", b"0" * 10)
        done = threading.Event()

        def write() -> None:
            try:
                for i in range(60):
                    assert rewrite(backend, "a/x", b"%d" % (i % 10) * (10 + 997 * (i % 7))) is WON
            finally:
                done.set()

        def look() -> int:
            looks = 0
            while not done.is_set() or not looks:
                try:
                    held = backend.read("a/x")
                except StoreError as wrong:
                    if wrong.passing:
                        continue  # it says that it may be asked again
                    raise
                assert held is not None, "a name never vanishes in a rewrite"
                assert len(held.data) in {10 + 997 * j for j in range(7)}
                assert len(set(held.data)) == 1, "the bytes are of one write"
                looks += 1
            return looks

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(look) for _ in range(2)]
            pool.submit(write).result()
            assert all(reader.result() for reader in readers)

    def test_it_can_be_sent_to_another_process(self, backend: Backend) -> None:
        put(backend, "a/x", b"1")
        if not self.pickles:
            with pytest.raises(StoreError):
                pickle.dumps(backend)
            return
        other: Backend = pickle.loads(pickle.dumps(backend))
        assert other.traits == backend.traits
        assert data_of(other, "a/x") == b"1"
        assert other.create("a/x", other.stage(b"2")) is LOST
        put(other, "a/y", b"2")
        assert data_of(backend, "a/y") == b"2"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_it_works_after_a_fork(self, backend: Backend) -> None:
        before = backend.stage(b"parent")
        backend.now()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads about is what is tested
            child = os.fork()
        if child == 0:
            os._exit(_in_the_child(backend, before))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert backend.create("a/parent", before) is WON
        if self.pickles:
            assert data_of(backend, "a/child") == b"child"


def _in_the_child(backend: Backend, before: Draft) -> int:
    """Use the backend in a forked child; 0 if all went well. Never returns into pytest."""
    try:
        draft = backend.stage(b"child")
        backend.now()
        fine = draft.temp != before.temp and backend.create("a/child", draft) is WON and backend.discard(draft)
        return 0 if fine else 1
    except BaseException:
        return 2
