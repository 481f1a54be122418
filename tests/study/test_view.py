"""A held view: what it may miss for a while, what it must see in the end, and what it never reads again."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parts import FakeMachine, store_over

from dibs import Float, Space, Store, Study
from dibs.backend import Backend, CountingBackend, FolderBackend, MemoryBackend
from dibs.record import Closed, TrialRecord
from dibs.search import History
from dibs.study import finished, report, take
from dibs.study._attempt import Attempt
from dibs.study._names import Hint
from dibs.study._results import counts_of
from dibs.study._table import Table
from dibs.study._view import View

SPACE = Space(x=Float(0, 1))


def study_on(backend: Backend, pid: int = 1) -> Study:
    return Study(store_over(backend, FakeMachine(pid)), "s", SPACE, goal="min", seed=0, sampler="sobol")


def test_a_coarse_stamp_is_looked_through_in_the_end() -> None:
    now = [10_000.0]
    backend = MemoryBackend(clock=lambda: now[0], tick_s=2.0)
    reader, writer = study_on(backend, 1), study_on(backend, 2)
    claimer = writer.claimer(100)
    claimer.step()
    assert len(reader.results()) == 1
    claimer.step()  # within the tick: the stamp is the same
    reader.store.machine.clock.now += 2.1  # type: ignore[attr-defined]
    assert len(reader.results()) == 2
    reader.store.machine.clock.now += 3.0  # type: ignore[attr-defined]
    reader.results()  # listed more than 2 s after the stamp was first seen: now it is trusted
    hint = Hint(reader.view.keys.block("trial", 0))
    assert hint.due(reader.store, 0.0)


def test_a_stamp_that_comes_back_is_not_trusted_for_ever() -> None:
    """A file system that stamps with the client's clock can show an old stamp again."""
    backend = MemoryBackend(clock=lambda: 5.0, tick_s=10.0)  # the stamp never changes
    reader, writer = study_on(backend, 1), study_on(backend, 2)
    claimer = writer.claimer(100)
    claimer.step()
    for seconds in (0.0, 3.0, 1.0):
        reader.store.machine.clock.now += seconds  # type: ignore[attr-defined]
        assert len(reader.results()) == 1
    claimer.step()
    assert len(reader.results()) == 1  # trusted, and late
    reader.store.machine.clock.now += 61.0  # type: ignore[attr-defined]
    assert len(reader.results()) == 2


def test_what_others_do_while_we_write_is_seen() -> None:
    """Our own claim moves the stamp and is not listed for; theirs, hidden behind it, is found soon."""
    backend = MemoryBackend(tick_s=0.0)
    ours, theirs = study_on(backend, 1), study_on(backend, 2)
    mine = ours.claimer(100)
    mine.step()
    other = theirs.claimer(100).step()
    assert isinstance(other, Attempt)
    mine.step()
    ours.store.machine.clock.now += 0.2  # type: ignore[attr-defined]
    ours.view.refresh()
    assert other.n in ours.view.names


def test_where_others_are_at_work_our_own_moves_hide_nothing() -> None:
    """No time passes here: what is seen is not found by looking again later."""
    backend = MemoryBackend()
    ours, theirs = study_on(backend, 1), study_on(backend, 2)
    mine, other = ours.claimer(100), theirs.claimer(100)
    first = other.step()
    mine.step()  # finds theirs, so it is not alone
    second = other.step()
    assert isinstance(first, Attempt)
    assert isinstance(second, Attempt)
    ours.view.refresh()
    assert second.n in ours.view.names


def test_the_end_of_a_trial_that_was_seen_open_is_seen_at_once() -> None:
    backend = MemoryBackend()
    ours, theirs = study_on(backend, 1), study_on(backend, 2)
    mine, other = ours.claimer(100), theirs.claimer(100).step()
    assert isinstance(other, Attempt)
    for _ in range(3):  # the second look finds nothing new
        attempt = mine.step()
        assert isinstance(attempt, Attempt)
        attempt.close("done", score=1.0)
    other.close("done", score=0.0)
    assert ours.best().n == other.n


def test_a_lost_claim_says_that_others_are_at_work() -> None:
    backend = MemoryBackend()
    ours, theirs = study_on(backend, 1), study_on(backend, 2)
    mine, other = ours.claimer(100), theirs.claimer(100)
    for _ in range(2):
        mine.step()  # alone: its own moves are no reason to look
    lost = [other.step() for _ in range(3)]
    assert isinstance(mine.step(), Attempt)  # after losing the first of them
    ours.view.refresh()
    assert [attempt.n for attempt in lost if isinstance(attempt, Attempt) and attempt.n not in ours.view.names] == []


@pytest.mark.parametrize("busy", [False, True], ids=["taken over at once", "while a refresh is on its way"])
def test_ones_own_trial_that_nobody_asked_about_is_known_by_its_end(busy: bool) -> None:
    study = study_on(MemoryBackend())
    claimer = study.claimer(10)
    attempts = [attempt for _ in range(3) if isinstance(attempt := claimer.step(), Attempt)]
    with ExitStack() as stack:
        if busy:
            free, held = Event(), Event()

            def refresh() -> None:
                with study.view.lock:
                    held.set()
                    free.wait()

            thread = Thread(target=refresh)
            thread.start()
            held.wait()
            stack.callback(thread.join)
            stack.callback(free.set)
        attempts[2].close("done", score=2.0)
    assert counts_of(study.view) == {"done": 1, "running": 2}
    assert set(study.view.rolls.unrolled) == {(2, 0)}
    assert [result.state for result in study.results()] == ["running", "running", "done"]


def test_what_one_has_done_costs_no_row_until_somebody_asks() -> None:
    study = study_on(MemoryBackend())
    claimer = study.claimer(10)
    for _ in range(3):
        attempt = claimer.step()
        assert isinstance(attempt, Attempt)
        attempt.close("done", score=float(-attempt.n))
    claimer.step()
    assert len(study.view) == 4
    assert study.view.low() == 4
    assert [trial.n for trial in study.view.unsettled()] == [3]
    assert len(study.view._table) == 1  # the one that the first listing of a new block came across
    assert study.best().n == 2
    assert counts_of(study.view) == {"done": 3, "running": 1}
    assert set(study.view.rolls.unrolled) == {(0, 0), (1, 0), (2, 0)}


def test_a_release_of_a_trial_that_nobody_has_asked_about_frees_it_only_if_it_may() -> None:
    study = study_on(MemoryBackend())
    claimer = study.claimer(2)
    for state in ("done", "failed"):
        attempt = claimer.step()
        assert isinstance(attempt, Attempt)
        attempt.close(state, score=1.0 if state == "done" else None)
    for n in (0, 1):
        study.view.notes.release(n, 0, None)
    again = claimer.step()
    assert isinstance(again, Attempt)
    assert (again.n, again.attempt) == (1, 1)
    assert study.results()[0].state == "done"


def test_a_record_removed_by_hand_frees_its_index() -> None:
    backend = MemoryBackend()
    study = study_on(backend)
    held = study.claimer(5).step()
    assert isinstance(held, Attempt)
    reader = study_on(backend, 2)
    assert len(reader.results()) == 1
    backend.delete(study.view.keys.attempt(held.n, 0))
    assert reader.results() == []
    again = reader.claimer(5).step()
    assert isinstance(again, Attempt)
    assert again.n == held.n


def test_a_block_that_is_full_is_not_listed_again(tmp_path: Path) -> None:
    backend = FolderBackend(tmp_path / "s")
    backend.prepare()
    study = study_on(backend)
    for trial in study.trials(300):
        with trial:
            trial.done(0.0)
    reader = View(store_over(backend, FakeMachine(3)), "s")
    reader.refresh()
    assert set(reader.names._blocks["trial"]) == {1}


def test_a_block_that_others_rolls_fill_is_looked_at_no_more() -> None:
    backend = CountingBackend(MemoryBackend())
    writer, reader = study_on(backend, 1), study_on(backend, 2)
    for size in range(80, 1281, 80):  # so many at once that most of them come by rolls
        for trial in writer.trials(size):
            with trial:
                trial.done(0.0)
        reader.view.refresh()
    assert len(reader.finished()) == 1280
    assert reader.view.names._blocks["trial"] == {}
    reader.store.machine.clock.sleep(10.0)
    reader.view.refresh()
    backend.reset()
    reader.view.refresh()
    assert backend.counts["stamp"] <= 4, "the study and its few parts, not its blocks"


def test_a_block_filled_by_a_trial_that_is_to_go_on_elsewhere_is_looked_at_no_more() -> None:
    backend = MemoryBackend()
    writer, reader = study_on(backend, 1), study_on(backend, 2)
    for trial in writer.trials(255):
        with trial:
            trial.done(0.0)
    reader.view.refresh()
    for trial in writer.trials(256):
        trial.interrupt("for now")
        break
    reader.view.refresh()
    assert reader.results("interrupted")
    assert reader.view.names._blocks["trial"] == {}
    for trial in writer.trials(256):
        with trial:
            trial.done(1.0)
    assert [(r.n, r.attempt, r.state) for r in reader.results()[-1:]] == [(255, 1, "done")]


def test_a_closed_copy_outlives_its_file_whoever_looks() -> None:
    backend = MemoryBackend()
    store = store_over(backend)
    for n in range(130):  # enough for a roll
        got = take(store, {"x": n / 200}, study="f", trial=n, goal="min", of=200)
        assert got is not None
        report(store, got.point, [1.0], study="f", trial=n, state="interrupted")
    assert backend.delete(store.keys("f").attempt(3, 0))
    other = store_over(backend, FakeMachine(2))
    assert len(finished(other, study="f")) == 0
    got = take(other, {"x": 0.9}, study="f", trial=3, goal="min", of=200)
    assert got is not None
    assert (got.attempt, got.point) == (1, {"x": 3 / 200}), "the index is taken: it goes on where it was left"


def test_an_index_far_out_is_taken_when_the_study_has_come_to_it() -> None:
    names = View(store_over(MemoryBackend()), "s").names
    far = (1 << 20) + 600
    names.add(far)
    end = (far // 256 + 1) * 256
    for n in range(end):
        if n != far:
            names.add(n)
    assert names.low == end
    assert names.all() == list(range(end))
    assert names.full(far // 256)


FORKS = """
import os, signal, sys, threading, time
from dibs import Float, Space, Study
from dibs.study import finished

study = Study(sys.argv[1], "s", Space(x=Float(0, 1)), goal="min", seed=0)
for trial in study.trials(20):
    with trial:
        trial.done(trial.point["x"])
study.finished()
busy = threading.Event()

def refresh_for_ever():
    with study.view.lock:
        study.view._table = None  # half way through
        busy.set()
        time.sleep(600)

threading.Thread(target=refresh_for_ever, daemon=True).start()
busy.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)
    held = study.view
    for trial in study.trials(21):
        trial.done(0.5)
    found = study.finished().n.tolist(), finished(study.store, study.space, study=study.name).n.tolist()
    os._exit(0 if found == (list(range(21)), list(range(21))) and held is study.view else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_of_a_process_whose_threads_are_at_work_looks_anew(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, str(tmp_path / "store")],
        timeout=120, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_child_keeps_what_its_parent_knew(tmp_path: Path) -> None:
    backend = CountingBackend(MemoryBackend())
    study = study_on(backend)
    for trial in study.trials(20):
        with trial:
            trial.done(0.0)
    study.finished()
    backend.reset()
    study.view.forked()
    assert len(study.finished()) == 20
    assert backend.counts["read"] == 0


def test_functions_in_a_loop_read_nothing_twice(tmp_path: Path) -> None:
    from dibs.study import in_flight

    backend = CountingBackend(MemoryBackend())
    store = store_over(backend)
    for n in range(30):
        take(store, {"x": n / 30}, study="f", trial=n, goal="min")
        report(store, {"x": n / 30}, [float(n)], study="f", trial=n, goal="min", state="done")
    finished(store, study="f")
    backend.reset()
    for _ in range(5):
        assert len(finished(store, SPACE, study="f") + in_flight(store, SPACE, study="f")) == 30
    assert backend.counts["list"] == 0
    assert backend.counts["read"] <= 5  # study.json, which is not there


def test_far_indexes_make_no_columns(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    for n in (0, 10**12):
        take(store, {"x": 0.5}, study="far", trial=n, goal="min")
        report(store, {"x": 0.5}, [1.0], study="far", trial=n, goal="min", state="done")
    view = View(store, "far")
    view.refresh()
    assert sorted(view.attempts) == [0, 10**12]
    assert len(view.table) == 1


rows = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(["done", "pruned", "failed"]),
        st.one_of(st.none(), st.floats(-10, 10)),
        st.one_of(st.none(), st.integers(0, 9)),
    ),
    unique_by=lambda row: row[0],
    max_size=30,
)


def closed(n: int, state: str, score: float | None, step: int | None) -> Closed:
    return Closed(
        v=1, kind="trial", study="s", n=n, attempt=0, state=state, point={"x": n}, score=score, step=step, of=50
    )  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(rows, st.integers(0, 30), st.booleans())
def test_columns_tell_what_rows_tell(
    found: list[tuple[int, str, float | None, int | None]], cut: int, done: bool
) -> None:
    table = Table()
    table.add_many([closed(*row) for row in found[:cut]])
    for row in found[cut:]:
        n, state, score, step = row
        table.add(TrialRecord(1, "trial", "s", n, 0, state, "", {"x": n}, score=score, step=step, of=50))  # type: ignore[arg-type]
    wanted = [(n, {"x": n}, score, state, step) for n, state, score, step in found if state == "done" or not done]
    assert table.history(done_only=done) == History.of(wanted)
    assert len(table) == len(found)
    assert sum(table.counts().values()) == len(found)
    for n, state, score, step in found:
        record = table.record(n, "s")
        assert (record.state, record.score, record.step, record.point) == (state, score, step, {"x": n})


def test_history_of_columns_shares_points_and_does_not_change() -> None:
    table = Table()
    table.add_many([closed(n, "done", float(n), None) for n in range(10)])
    before = table.history(done_only=True)
    table.add_many([closed(n, "done", 0.0, None) for n in range(10, 2_000)])
    table.drop(3)
    assert len(before) == 10
    assert [point["x"] for point in before.points] == list(range(10))
    assert np.array_equal(before.score, np.arange(10.0))
    with pytest.raises(AttributeError):
        before.n = before.n  # type: ignore[misc]


def test_a_full_block_is_looked_at_until_its_last_open_record_closes() -> None:
    """The end of one must not make the reader stop looking at the others."""
    backend = MemoryBackend()
    writer, reader = study_on(backend, 1), study_on(backend, 2)
    claimer = writer.claimer(256)
    held = [attempt for _ in range(256) if isinstance(attempt := claimer.step(), Attempt)]
    for attempt in held[:254]:
        attempt.close("done", score=0.5)
    assert len(reader.in_flight()) == 2
    for left, attempt in zip((1, 0), held[254:], strict=True):
        attempt.close("done", score=0.5)
        assert (len(reader.finished()), len(reader.in_flight())) == (256 - left, left)
