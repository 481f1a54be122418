"""What is read for a pruner, how often, and what comes of curves that are damaged, rolled, or of several attempts."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

import pytest
from tests.parts import body_at, plant, store_over
from tests.study.pruning import LAST, SPACE, Rungs, Spy, Watching, blob_of, claimed, fill, pass_s, study_on

from dibs import Study
from dibs.backend import MemoryBackend
from dibs.search import Curve
from dibs.study import report, take
from dibs.study._curves import Curves, curves_of


@pytest.mark.parametrize("pruner", [None, "diverged", ["patience", "diverged"]])
@pytest.mark.parametrize("bucket", [False, True])
def test_nobody_reads_a_curve_unless_it_compares(pruner: Any, bucket: bool) -> None:
    backend = MemoryBackend(conditional_replace=bucket)
    theirs = study_on(backend, 99, pruner)
    for trial in theirs.trials(4):
        with trial:
            trial.report(1.0)
    watching = Watching(backend)
    ours = study_on(watching, 1, pruner)
    for trial in ours.trials(8):
        with trial:
            trial.report(1.0)
            pass_s(ours, 100.0)
            trial.done()
    read = {key for key in watching.curves() if "/live/" not in key or not bucket}
    assert not read, "a bucket's live curve is read for its version before it is rewritten, and that is all"
    assert all(count == 1 for count in watching.curves().values())


def test_each_closed_curve_is_fetched_once_and_each_running_one_once_per_change() -> None:
    inner = MemoryBackend()
    _, left = fill(inner)
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    for _ in range(3):
        with claimed(ours) as trial:
            for step in range(LAST):
                trial.report(1.0, step)
                pass_s(ours, 0.5)
            trial.done()
    blobs = {key: count for key, count in backend.asked.items() if key[0] == "stream"}
    assert len(blobs) == 6
    assert set(blobs.values()) == {1}
    lives = {key: count for (verb, key), count in backend.asked.items() if verb == "read" and "/live/" in key}
    assert lives == {ours.view.keys.live(trial.n, 0): 1 for trial in left}
    assert set(spy.asked[0][2]) == {*range(6), 6, 7}
    assert spy.asked[0][2][0].pairs == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]
    assert (spy.asked[0][2][6].pairs, spy.asked[0][2][6].state) == ([(0, 50.0)], "running")
    left[0].report(49.0)
    left[0]._attempt.show(force=True)
    left[1].done()
    with claimed(ours) as trial:
        pass_s(ours, 2.0)
        trial.report(1.0)
        pass_s(ours, 2.0)
        trial.report(1.0)
    last = spy.asked[-1][2]
    assert last[6].pairs == [(0, 50.0), (1, 49.0)]
    assert (last[7].pairs, last[7].state) == ([(0, 50.0)], "done"), "one value, which the record has"
    lives = {key: count for (verb, key), count in backend.asked.items() if verb == "read" and "/live/" in key}
    assert lives == {ours.view.keys.live(6, 0): 2, ours.view.keys.live(7, 0): 1}
    assert {peer.state for n, peer in last.items() if n not in (6,)} == {"done"}


def test_a_folder_is_looked_at_once_a_second_and_a_bucket_in_half_a_minute_or_at_a_rung() -> None:
    def looks(bucket: bool, pruner: Spy, pause_s: float) -> int:
        inner = MemoryBackend(conditional_replace=bucket)
        fill(inner, done=1)
        backend = Watching(inner)
        ours = study_on(backend, 1, pruner)
        trial = claimed(ours)
        backend.asked.clear()
        for step in range(LAST):
            trial.report(1.0, step)
            pass_s(ours, pause_s)
        verb, key = ("list", ours.view.keys.lives()) if bucket else ("version", ours.view.keys.live(1, 0))
        return backend.asked[verb, key]

    assert looks(False, Spy(), 0.3) == 3  # at 0, 1.2 and 2.4 s
    assert looks(False, Rungs(), 0.3) == 1  # rungs at 0.3 and 0.9 s
    assert looks(True, Spy(), 10.0) == 3
    assert looks(True, Rungs(), 0.3) == 2


def test_a_curve_is_shown_at_every_rung_that_is_passed() -> None:
    study = study_on(MemoryBackend(conditional_replace=True), pruner=Rungs(at=3))
    key = study.view.keys.live(0, 0)
    shown = []
    with claimed(study) as trial:
        for _ in range(4):
            trial.report(1.0)
            there = study.store.backend.read(key)
            shown.append(len(json.loads(there.data)["curve"]) if there else 0)
    assert shown == [0, 2, 2, 2], "at rung 1; not where it is stopped, since the blob has it"


def test_curves_come_from_rolls_too() -> None:
    """What a roll says of a closed record is enough to find its curve."""
    inner = MemoryBackend()
    theirs, _ = fill(inner, done=20, running=0)
    theirs.view.refresh()
    theirs.view.rolls.threshold = 5
    theirs.view.publish("me")
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    with claimed(ours) as trial:
        trial.report(1.0)
    assert {n: len(peer) for n, peer in spy.asked[0][2].items()} == dict.fromkeys(range(20), 4)
    records = [key for (verb, key), _ in backend.asked.items() if verb == "read" and "/trial/" in key]
    assert len(records) < 20


# more closed curves than a pruner asks for


class Few(Spy):
    """One that asks for eight, and at steps 1 and 3 for such as got there."""

    name = "tests-few"
    most = 8

    def needs(self, own: Curve) -> int:
        return own.last if own.last in (1, 3) else 0


def long_and_short(backend: MemoryBackend, each: int) -> None:
    """Trials that are pruned at step 1, 2 and 4, in turns."""
    study = study_on(backend, 99, Few())
    for trial in study.trials(3 * each):
        with trial:
            for step in range((2, 3, 5)[trial.n % 3]):
                trial.report(float(trial.n), step)
            trial.done()


def test_no_more_curves_are_read_than_a_pruner_asks_for() -> None:
    inner = MemoryBackend()
    long_and_short(inner, 20)
    seen = []
    for pid in (1, 2):
        backend, spy = Watching(inner), Few()
        with claimed(study_on(backend, pid, spy)) as trial:
            trial.report(1.0)
        assert len([key for key in backend.asked if key[0] == "stream"]) == 8
        seen.append(set(spy.asked[0][2]))
    assert len(seen[0]) == 8
    assert len(seen[0] - seen[1]) <= 1, "everybody draws the same, and the second has trial 60 to draw from too"


def test_of_those_that_got_to_a_step_as_many_are_read_without_waiting_for_the_next_look() -> None:
    inner = MemoryBackend()
    long_and_short(inner, 20)
    backend, spy = Watching(inner), Few()
    with claimed(study_on(backend, 1, spy)) as trial:
        for step in range(4):
            trial.report(1.0, step)
    anybody, first, again, second = (set(asked[2]) for asked in spy.asked)
    assert anybody == again
    assert len(anybody) == len(first) == len(second) == 8
    assert first >= anybody, "all of them got to step 1"
    assert {n % 3 for n in second} == {2}
    assert {n for n in first if n % 3 == 2} <= second
    assert len([key for key in backend.asked if key[0] == "stream"]) == len(anybody | first | second)


def test_what_closes_here_counts_at_once_and_then_as_others_do() -> None:
    inner = MemoryBackend()
    long_and_short(inner, 20)
    spy = Few()
    ours = study_on(inner, 1, spy)
    for _ in range(3):
        with claimed(ours) as trial:
            trial.report(1.0, 0)
            trial.report(1.0, 2)
    assert [len(asked[2]) for asked in spy.asked] == [8, 8, 9, 9, 10, 10]
    pass_s(ours, 2.0)
    with claimed(ours) as trial:
        trial.report(1.0, 0)
    assert len(spy.asked[-1][2]) == 8


def test_a_child_forked_while_another_thread_looks_goes_on() -> None:
    inner = MemoryBackend()
    fill(inner)
    ours = study_on(inner, 1, Spy())
    curves = curves_of(ours.view)
    held, let_go = threading.Event(), threading.Event()

    def look() -> None:
        with curves.lock:
            held.set()
            let_go.wait()

    thread = threading.Thread(target=look)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # the end of one that waits for its parent's thread
        curves.look((9, 0))
        os._exit(len(curves.others(9)))
    let_go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8


# several attempts at one trial


def test_attempts_are_one_curve() -> None:
    inner = MemoryBackend()
    first = study_on(inner, 1, Spy())
    trial = claimed(first, 1)
    for step in range(6):
        trial.report(10.0 - step)
    trial.interrupt("a signal")
    spy = Rungs()
    second = study_on(inner, 2, spy)
    with claimed(second, 1) as trial:
        assert trial.attempt == 1
        for step in (4, 5, 9, 10):
            trial.report(3.0, step)
    assert spy.asked == [], "it had crossed rung 3 before, and 9 is the last step"
    watching = Spy()
    third = study_on(inner, 3, watching)
    with claimed(third, 2) as trial:
        trial.report(1.0)
    (peer,) = watching.asked[0][2].values()
    assert peer.pairs == [(0, 10.0), (1, 9.0), (2, 8.0), (3, 7.0), (4, 3.0), (5, 3.0), (9, 3.0), (10, 3.0)]
    assert peer.state == "done"


def test_an_attempt_that_begins_anew_is_compared_again() -> None:
    inner = MemoryBackend()
    trial = claimed(study_on(inner, 1, Rungs()), 1)
    for step in range(6):
        trial.report(10.0 - step)
    trial.interrupt("a signal")
    spy = Rungs()
    with claimed(study_on(inner, 2, spy), 1) as trial:
        for step in range(4):
            trial.report(3.0, step)
    assert [pairs[-1] for _, pairs, _ in spy.asked] == [(1, 3.0), (3, 3.0)]
    assert all(value == 3.0 for _, pairs, _ in spy.asked for _, value in pairs)


def test_who_was_killed_votes_with_what_it_had_shown() -> None:
    inner = MemoryBackend()
    fill(inner, done=0, running=1)
    spy = Spy()
    ours = study_on(inner, 1, spy)
    with claimed(ours) as trial:
        trial.report(1.0)
    assert spy.asked[-1][2][0].pairs == [(0, 50.0)]
    ours.view.notes.release(0, 0, None)
    rescuer = claimed(study_on(inner, 2, Spy()))
    assert (rescuer.n, rescuer.attempt) == (0, 1)
    with claimed(ours) as trial:
        pass_s(ours, 2.0)
        trial.report(1.0)
    assert spy.asked[-1][2][0].pairs == [(0, 50.0)], "somebody has taken it up and reported nothing yet"


# damage


def test_what_does_not_read_is_counted_and_left_out() -> None:
    inner = MemoryBackend()
    theirs, left = fill(inner, done=8)
    blobs = sorted(entry.key for entry in inner.list("blobs/"))
    inner.delete(blobs[0])
    plant(theirs.store, blobs[1], b"{")
    plant(theirs.store, theirs.view.keys.live(left[0].n, 0), b"torn")
    ours = study_on(inner, 1, Spy(at=0))
    with claimed(ours) as trial:
        assert trial.report(1.0)
    assert blob_of(ours, trial.n)["verdict"]["seen"] == {"step": 0, "unreadable": 3}
    seen = ours.definition.pruner.asked[0][2]  # type: ignore[union-attr]
    assert sorted(len(peer) for peer in seen.values()) == [0, 0, 1, *[4] * 6]


def test_a_live_curve_that_reads_again_counts_again_and_another_owners_does_not() -> None:
    inner = MemoryBackend()
    theirs, left = fill(inner, done=0, running=2)
    key, other = (theirs.view.keys.live(trial.n, 0) for trial in left)
    plant(theirs.store, key, b"torn")
    plant(theirs.store, other, {**body_at(theirs.store, other), "nonce": "somebody else's"})
    ours = study_on(inner, 1, Spy())
    curves = curves_of(ours.view)
    curves.look((9, 0))
    assert (list(curves.unreadable), curves.others(9)) == ([key], [])
    left[0]._attempt.show(force=True)
    pass_s(ours, 2.0)
    curves.look((9, 0))
    assert (curves.unreadable, [peer.n for peer in curves.others(9)]) == ({}, [0])


@pytest.mark.parametrize("part", ["blobs/", "/live/", "/trial/"])
def test_an_outage_stops_no_trial_and_is_caught_up_with(part: str, caplog: pytest.LogCaptureFixture) -> None:
    inner = MemoryBackend()
    fill(inner)
    backend, spy = Watching(inner), Spy()
    ours = study_on(backend, 1, spy)
    trial = claimed(ours)
    ours.view.names.look_again()
    backend.out = lambda key: part in key
    assert trial.report(1.0) is False
    assert len(spy.asked[-1][2]) < 8
    backend.out = lambda key: False
    pass_s(ours, 2.0)
    trial.report(1.0)
    assert set(spy.asked[-1][2]) == set(range(8))
    assert {len(peer) for peer in spy.asked[-1][2].values()} == {4, 1}
    if part != "/trial/":
        assert "the pruner judges by those it knows" in caplog.text


def test_a_study_of_functions_has_curves_too() -> None:
    store = store_over()
    study = Study(store, "s", SPACE, goal="min", seed=0, pruner=Spy(), max_step=LAST)
    for n, state in enumerate(("done", "pruned", "failed")):
        assert take(store, {"x": 0.5}, study="s", trial=n, goal="min")
        report(store, {"x": 0.5}, [2.0, 1.0], study="s", trial=n, state=state)
    with claimed(study) as trial:
        trial.report(1.0)
    seen = study.definition.pruner.asked[0][2]  # type: ignore[union-attr]
    assert {n: (peer.state, len(peer)) for n, peer in seen.items()} == {
        0: ("done", 2), 1: ("pruned", 2), 2: ("failed", 2),
    }  # fmt: skip


def test_the_cache_is_one_for_all_who_use_a_store() -> None:
    study = study_on(MemoryBackend(), pruner="median")
    assert curves_of(study.view) is curves_of(Study(study.store, "s").view)
    assert isinstance(curves_of(study.view), Curves)
