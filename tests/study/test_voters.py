"""The draw of closed trials that a pruner is shown: fair, the same for all, and nested."""

from __future__ import annotations

import numpy as np

from dibs.study._voters import Voters


def of(count: int, lasts: int = 27) -> Voters:
    voters = Voters()
    for start in range(0, count, 1000):
        ns = np.arange(start, min(start + 1000, count))
        voters.add(ns, ns % lasts)
    return voters


def test_few_are_all_drawn() -> None:
    assert of(8).drawn(0, 8) == list(range(8))
    assert of(0).drawn(0, 8) == []
    assert of(100).drawn(26, 8) == [26, 53, 80]
    assert of(100).drawn(27, 8) == []


def test_the_draw_depends_on_who_is_there_and_not_on_when_they_came() -> None:
    turned = Voters()
    turned.add(np.arange(5000)[::-1], np.arange(5000)[::-1] % 27)
    assert of(5000).drawn(3, 64) == turned.drawn(3, 64)


def test_it_is_fair_by_age() -> None:
    drawn = np.array(of(100_000).drawn(0, 1024))
    assert len(drawn) == 1024
    counts = np.histogram(drawn, bins=10, range=(0, 100_000))[0]
    assert ((counts - 102.4) ** 2 / 102.4).sum() < 21.7, "chi squared with 9 degrees of freedom, p = 0.01"


def test_who_got_further_stays_in_the_draw_of_higher_steps() -> None:
    voters = of(20_000)
    low, high = voters.drawn(2, 500), voters.drawn(20, 500)
    assert {n for n in low if n % 27 >= 20} < set(high)
    assert all(n % 27 >= 20 for n in high)
    assert len(high) == 500


def test_it_changes_little_as_trials_come() -> None:
    before, after = set(of(10_000).drawn(0, 1024)), set(of(10_100).drawn(0, 1024))
    assert 1 <= len(after - before) <= 30
