"""The pure decisions of the protocol: the fold, patience and poison, and which index to try next."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.record import TrialRecord
from dibs.study._fold import Seen, fold
from dibs.study._gallop import LOSSES, Gallop
from dibs.study._quiet import (
    INTERRUPTED_LIMIT,
    QUIET_LIMIT,
    Watch,
    beat_s_of,
    counts,
    is_quiet,
    patience_s,
    poisoned,
)

STATES = ("running", "done", "pruned", "failed", "interrupted", "again", "torn")


def seen(attempt: int, state: str, *, modified: float = 0.0, beat_s: float = 1.0, newer: bool = False) -> Seen:
    """An attempt; "again" is a failure with a retry left, "torn" a record that does not read."""
    if state == "torn":
        return Seen(5, attempt, None, modified, newer=newer)
    record = TrialRecord(
        v=1, kind="trial", study="s", n=5, attempt=attempt, state="failed" if state == "again" else state,  # type: ignore[arg-type]
        nonce="n", point={}, again=state == "again", beat_s=beat_s,
    )  # fmt: skip
    return Seen(5, attempt, record, modified)


def seens(states: str) -> list[Seen]:
    return [seen(attempt, state) for attempt, state in enumerate(states.split())]


# ---- the fold


@pytest.mark.parametrize(
    ("states", "released", "state", "counting", "settled", "waiting"),
    [
        ("running", [], "running", 0, False, False),
        ("torn", [], "running", 0, False, False),
        ("done", [], "done", 0, True, False),
        ("pruned", [], "pruned", 0, True, False),
        ("failed", [], "failed", 0, True, False),
        ("interrupted", [], "interrupted", 0, False, True),
        ("again", [], "failed", 0, False, True),
        # rank, then the highest
        ("done running", [], "done", 0, True, False),
        ("running done", [], "done", 1, True, False),
        ("done done", [], "done", 1, True, False),
        ("done pruned", [], "done", 0, True, False),
        ("done failed", [], "done", 0, True, False),
        ("pruned failed", [], "pruned", 0, True, False),
        ("failed interrupted", [], "failed", 0, True, False),
        ("failed running", [], "failed", 0, True, False),
        ("failed failed", [], "failed", 1, True, False),
        ("interrupted running", [], "running", 1, False, False),
        ("running interrupted", [], "interrupted", 1, False, True),
        ("interrupted again", [], "failed", 1, False, True),
        ("again failed", [], "failed", 1, True, False),
        ("again torn", [], "running", 1, False, False),
        # a release note frees what it names, but never what is done or pruned
        ("running", [0], "running", 0, False, True),
        ("torn", [0], "running", 0, False, True),
        ("failed", [0], "failed", 0, False, True),
        ("done", [0], "done", 0, True, False),
        ("pruned", [0], "pruned", 0, True, False),
        ("failed running", [0], "running", 1, False, False),
        ("failed failed", [0], "failed", 1, True, False),
        ("failed failed", [0, 1], "failed", 1, False, True),
        ("running running", [0], "running", 1, False, False),
        ("failed done", [0, 1], "done", 1, True, False),
    ],
)
def test_the_fold(states: str, released: list[int], state: str, counting: int, settled: bool, waiting: bool) -> None:
    attempts = seens(states)
    for order in (attempts, attempts[::-1]):
        folded = fold(order, released)
        assert (folded.state, folded.counts.attempt, folded.settled, folded.waiting) == (
            state, counting, settled, waiting,
        )  # fmt: skip
        assert folded.top.attempt == len(attempts) - 1


@given(
    st.lists(st.sampled_from(STATES), min_size=1, max_size=6),
    st.lists(st.sampled_from(STATES), max_size=4),
    st.sets(st.integers(0, 9)),
)
def test_nothing_that_comes_later_unsettles_a_settled_trial(old: list[str], new: list[str], released: set[int]) -> None:
    attempts = [seen(attempt, state) for attempt, state in enumerate([*old, *new])]
    before, after = fold(attempts[: len(old)], released), fold(attempts, released)
    ranks = {"done": 3, "pruned": 2, "failed": 1}
    if before.settled:
        assert after.settled
        assert ranks[after.state] >= ranks[before.state]


# ---- patience and poison


def test_beats_are_a_sixth_of_the_patience_within_bounds() -> None:
    assert [beat_s_of(stale_s) for stale_s in (1.0, 60.0, 3600.0)] == [1.0, 10.0, 60.0]
    assert [beat_s_of(stale_s, folder=False) for stale_s in (1.0, 600.0, 7200.0)] == [30.0, 100.0, 600.0]


@pytest.mark.parametrize(
    ("states", "released", "found"),
    [
        ("running", [], (0, 0)),
        ("running running", [], (1, 0)),
        ("running torn running", [], (2, 0)),
        ("running done running", [], (1, 0)),
        ("interrupted interrupted running", [], (0, 2)),
        ("running running running", [0], (1, 0)),
        ("running running running", [1], (0, 0)),
        ("interrupted running running interrupted", [0], (2, 1)),
    ],
)
def test_quiet_and_interrupted_attempts_since_the_last_release(
    states: str, released: list[int], found: tuple[int, int]
) -> None:
    assert counts(seens(states), released) == found


def test_patience_doubles_and_is_three_beats_at_least() -> None:
    one = seen(0, "running", beat_s=10.0)
    assert [patience_s(one, quiet, 5.0) for quiet in range(4)] == [30.0, 60.0, 120.0, 240.0]
    assert patience_s(one, 0, 100.0) == 100.0
    assert patience_s(seen(0, "torn"), 0, 5.0) == 180.0  # who knows how it beats


def test_quiet_is_longer_than_the_patience_and_never_a_later_versions_or_a_closed_one() -> None:
    assert not is_quiet(seen(0, "running", modified=10.0), 20.0, 0, 10.0)
    assert is_quiet(seen(0, "running", modified=10.0), 20.1, 0, 10.0)
    assert not is_quiet(seen(0, "running", modified=10.0), 20.1, 1, 10.0)
    assert not is_quiet(seen(0, "done", modified=0.0), 1e9, 0, 10.0)
    assert is_quiet(seen(0, "torn", modified=0.0), 1e9, 0, 10.0)
    assert not is_quiet(seen(0, "torn", modified=0.0, newer=True), 1e9, 0, 10.0)


@pytest.mark.parametrize(
    ("states", "released", "poison"),
    [
        ("running " * (QUIET_LIMIT - 1), [], False),
        ("running " * QUIET_LIMIT, [], True),
        ("running " * QUIET_LIMIT, [0], False),
        ("running " * QUIET_LIMIT, [QUIET_LIMIT - 1], False),
        ("torn " * QUIET_LIMIT, [], True),
        ("running done " * QUIET_LIMIT, [], True),
        ("running " * (QUIET_LIMIT - 1) + "interrupted", [], False),
        ("interrupted " * (INTERRUPTED_LIMIT - 1), [], False),
        ("interrupted " * INTERRUPTED_LIMIT, [], True),
        ("interrupted " * INTERRUPTED_LIMIT, [0], False),
    ],
)
def test_poison(states: str, released: list[int], poison: bool) -> None:
    assert poisoned(seens(states), released) is poison


def test_a_watch_counts_from_the_last_change() -> None:
    watch = Watch()
    still = seen(0, "running", modified=1.0)
    assert [watch.still_s(still, now) for now in (10.0, 15.0)] == [0.0, 5.0]
    moved = seen(0, "running", modified=2.0)
    assert [watch.still_s(moved, now) for now in (16.0, 20.0)] == [0.0, 4.0]
    watch.forget([(5, 1)])
    assert watch.still_s(moved, 30.0) == 0.0


# ---- the gallop


def words(values: list[int]) -> Callable[[], int]:
    numbers = iter(values)
    return lambda: next(numbers)


def test_the_lowest_free_index_comes_first() -> None:
    assert Gallop({0, 1, 3}, 0, 10, lambda: 0, words([])).next() == 2
    assert Gallop({0, 1, 3}, 3, 10, lambda: 0, words([])).next() == 4
    assert Gallop(set(range(10)), 0, 10, lambda: 0, words([])).next() is None


@pytest.mark.parametrize(("running", "widths"), [(0, [1, 4, 8, 8]), (30, [1, 4, 16, 60])])
def test_the_width_grows_with_the_losses_up_to_the_crowd(running: int, widths: list[int]) -> None:
    for losses, width in enumerate(widths):
        reached = set()
        for word in range(200):
            gallop = Gallop(set(), 0, 1000, lambda: running, words([word]))
            for n in range(losses):
                gallop.lost(n)
            reached.add(gallop.next())
        assert reached == set(range(losses, losses + width))


@pytest.mark.parametrize(("before", "width"), [(1, 4), (2, 16), (9, 60)])
def test_a_row_of_losses_goes_on_after_a_refresh(before: int, width: int) -> None:
    """Whoever looked again and began at the lowest free one would meet all others there."""
    reached = {Gallop(set(), 0, 1000, lambda: 30, words([word]), before).next() for word in range(200)}
    assert reached == set(range(width))


@given(st.sets(st.integers(0, 29)), st.integers(0, 30), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_whoever_goes_on_losing_tries_every_free_index_below_n_once(
    taken: set[int], below: int, running: int, seed: int
) -> None:
    numbers = count(seed, 7919)
    gallop = Gallop(taken, 0, below, lambda: running, lambda: next(numbers))
    tried = []
    while (n := gallop.next()) is not None:
        tried.append(n)
        gallop.lost(n)
    assert sorted(tried) == sorted(set(range(below)) - taken)
    assert gallop.losses == len(tried)
    assert LOSSES > 0
