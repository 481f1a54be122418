"""What a waiter does next: every case, without a clock."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.federation._steps import Sight, next_step

ALL = ("a", "b", "c")


def sight(answered: str = "", good: str | None = None, **more: Any) -> Sight:
    return Sight(ALL, answered, answered if good is None else good, **{"quorum": None, **more})


@pytest.mark.parametrize(
    ("seen", "waited_s", "enough_s", "step"),
    [
        (sight(""), 0, None, "wait"),
        (sight("ab"), 9.9, None, "wait"),
        (sight("ab"), 10, None, "over"),
        (sight("abc"), 0, None, "average"),
        (sight("abc", good="a"), 0, None, "average"),  # all have answered: what cannot be averaged is told
        (sight("ab", quorum=2), 0, 0, "wait"),  # the grace
        (sight("ab", quorum=2), 0, 2.9, "wait"),
        (sight("ab", quorum=2), 0, 3, "average"),
        (sight("ab", quorum=2), 10, 0, "average"),  # the time is over, and they are enough
        (sight("ab", good="a", quorum=2), 9, None, "wait"),  # who says NaN of itself does not make a quorum
        (sight("ab", good="a", quorum=2), 10, None, "over"),
        (sight("abc", quorum=2), 0, 0, "average"),
        (sight("abc", top="alive"), 0, None, "wait"),
        (sight("abc", top="alive"), 10, None, "over"),
        (sight("abc", top="alive", watch_s=4), 13.9, None, "wait"),  # it seems quiet, and that takes 4 s to be sure of
        (sight("abc", top="alive", watch_s=4), 14, None, "over"),
        (sight("abc", top="free"), 0, None, "average"),
        (sight("ab", top="free"), 99, None, "average"),  # whose updates go in is fixed
        (sight("abc", top="free", ended=True), 99, None, "end"),
        (sight("", ended=True), 99, None, "end"),
    ],
)
def test_next_step(seen: Sight, waited_s: float, enough_s: float | None, step: str) -> None:
    assert next_step(seen, waited_s, enough_s, within_s=10, grace_s=3) == step
