"""What figures mean: who won which name, whether it was a race at all, clocks, delays, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest

from dibs.doctor import Clocks, Delay, Guest, Method, _judge
from dibs.doctor._models import Lap
from dibs.doctor._stamps import ahead_of, step_of, step_text

NAMES = 40


def laps(*winners: str) -> list[list[Lap]]:
    """One lap of two machines: per name who was told that it won, "a", "b", "ab" or "-"."""
    told = winners or tuple("ab" * (NAMES // 2))
    return [
        [Lap(tried=len(told), won=[n for n, who in enumerate(told) if letter in who], attempt_s=0.001)]
        for letter in "ab"
    ]


def judged(laps: list[list[Lap]], owners: Any = ((), ()), sites: int = 2, alone: str = "") -> Method:
    return _judge.method("link", laps, owners, sites, alone)


def test_a_race_with_one_winner_each_is_exclusive() -> None:
    found = judged(laps())
    assert (found.word, found.why) == ("exclusive", "")
    assert (found.names, found.one, found.several, found.nobody) == (NAMES, NAMES, 0, 0)
    assert found.contested == NAMES - 1
    assert found.won == (NAMES // 2, NAMES // 2)
    assert not found.bad


def test_one_name_won_twice_is_enough() -> None:
    found = judged(laps(*"ab" * 20, "ab"))
    assert (found.word, found.several, found.bad) == ("lies", 1, True)
    assert found.why == "1 of 41 names were won by several machines"


def test_a_race_that_was_none_proves_nothing() -> None:
    found = judged(laps(*"a" * 300))
    assert (found.word, found.contested, found.bad) == ("unproven", 0, False)
    found = judged(laps(*"a" * 150, *"b" * 150))
    assert (found.word, found.contested) == ("unproven", 1)
    assert "let them race again" in found.why


def test_enough_means_enough() -> None:
    met = "ab" * (_judge.ENOUGH // 2)
    assert judged(laps(*met, "a", *"a" * 20)).word == "exclusive"
    assert judged(laps(*met, *"b" * 20)).word == "unproven"


def test_one_mount_of_one_machine_proves_nothing_but_may_disprove() -> None:
    assert (judged(laps(), sites=1).word, judged(laps(), sites=1).why) == ("unproven", _judge.ONE_SITE)
    assert judged(laps(*"ab" * 20, "ab"), sites=1).word == "lies"


def test_a_name_that_shows_another_owner_on_some_machine_is_a_lie() -> None:
    right = [[0, 1] * (NAMES // 2)]
    assert judged(laps(), owners=(right, right)).word == "exclusive"
    late = [[None] * NAMES]  # not seen yet
    assert judged(laps(), owners=(right, late)).word == "exclusive"
    wrong = [[0, 1] * (NAMES // 2 - 1) + [0, 0]]
    found = judged(laps(), owners=(right, wrong))
    assert (found.word, found.differ) == ("lies", 1)


def test_a_winner_told_later_that_it_did_not_win_is_a_lie() -> None:
    both = laps()
    both[1][0].robbed = 2
    assert judged(both).word == "lies"
    assert "2 winners" in judged(both).why


def test_what_fails_on_one_machine_alone_is_bad_whatever_the_race_says() -> None:
    assert (judged(laps(), alone="a gap").word, judged(laps(), alone="a gap").why) == ("lies", "a gap")


def test_a_way_that_does_not_work_is_missing_and_one_that_breaks_off_is_unproven() -> None:
    both = laps()
    both[1] = [Lap(broken="no hard links")]
    assert (judged(both).word, judged(both).why, judged(both).bad) == ("missing", "no hard links", True)
    both = laps()
    both[1][0].broken = "the disk is full"
    assert (judged(both).word, judged(both).bad) == ("unproven", False)
    assert "the disk is full" in judged(both).why


def test_names_nobody_won_prove_nothing_unless_somebody_was_unsure() -> None:
    both = laps(*"ab" * 20, "-")
    assert (judged(both).word, judged(both).nobody) == ("unproven", 1)
    both[0][0].unsure.append(40)
    assert (judged(both).word, judged(both).nobody) == ("exclusive", 0)


def test_only_names_that_all_came_to_count() -> None:
    both = laps(*"ab" * 20, *"ab" * 10)
    both[0][0].tried = 40
    assert judged(both).names == 40


def test_laps_are_counted_on_their_own() -> None:
    row_a, row_b = laps(*"a" * 20), laps(*"b" * 20)
    both = [[*row_a[0], *row_b[0]], [*row_a[1], *row_b[1]]]
    assert (judged(both).names, judged(both).contested) == (40, 0)


# ---- clocks. Machine 1's monotonic clock is 500 s behind machine 0's; each sees the other's words 2 and 6 ms late

SAMPLES = [{1: 500.002}, {0: -500 + 0.006}]


def facts(wall_less_monotonic: float, ahead_s: float, step_s: float = 1e-9) -> dict[str, Any]:
    return {
        "wall_less_monotonic": wall_less_monotonic,
        "stamps": {"step_s": step_s, "ahead_s": ahead_s, "error_s": 0.001},
    }


def test_clocks_are_compared_by_the_least_delays() -> None:
    shift, error = _judge.shifts(SAMPLES, 0, 1)
    assert (shift, error) == (pytest.approx(499.998), pytest.approx(0.004))
    assert _judge.shifts(SAMPLES, 1, 0)[0] == pytest.approx(-499.998)
    assert _judge.shifts(SAMPLES, 1, 1) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("walls", "ahead", "by"),
    [
        ((1000.0, 1500.0), (0.0, 0.0), "unknown"),  # the clocks agree
        ((1000.0, 1530.0), (0.0, 0.0), "clients"),  # 30 s apart, and each finds its own time in the stamps
        ((1000.0, 1530.0), (0.0, -30.0), "server"),  # one clock, the first machine's
        ((1000.0, 1530.0), (12.0, -18.0), "server"),  # one clock, nobody's
        ((1000.0, 1530.0), (12.0, 40.0), "unknown"),  # no sense in it
    ],
)
def test_whose_clock_stamps(walls: tuple[float, float], ahead: tuple[float, float], by: str) -> None:
    told = [facts(*each) for each in zip(walls, ahead, strict=True)]
    clocks = _judge.clocks(told, SAMPLES)
    assert clocks.stamped_by == by
    assert clocks.apart_s == pytest.approx(0.0 if walls[1] == 1500 else 30.0, abs=0.01)
    assert clocks.error_s == pytest.approx(0.004)


def test_coarse_stamps_need_clocks_further_apart() -> None:
    told = [facts(1000.0, 0.0), facts(1500.5, -0.5)]
    assert _judge.clocks(told, SAMPLES).stamped_by == "server"
    for each in told:
        each["stamps"] |= {"step_s": 1.0, "error_s": 0.5}
    clocks = _judge.clocks(told, SAMPLES)
    assert (clocks.stamped_by, clocks.step_s) == ("unknown", 1.0)


# ---- delays


def test_delays_are_counted_on_one_clock() -> None:
    seen = [
        {"did": {"a beat": 1000.0}, "saw": {"1": {"a beat": 1210.0}}},
        {"did": {"a beat": 710.0}, "saw": {"0": {"a beat": 500.5}}},
    ]
    late = {(delay.of, delay.by): delay for delay in _judge.delays(seen, SAMPLES, 8.0)}
    assert late[0, 1].late_s == pytest.approx(0.498)
    assert late[1, 0].late_s == pytest.approx(0.002)
    assert late[0, 1].error_s == pytest.approx(0.004)


def test_what_was_not_seen_or_not_done_has_no_delay() -> None:
    seen = [
        {"did": {"a beat": None}, "saw": {"1": {"a beat": None}}},
        {"did": {"a beat": 1.0}, "saw": {"0": {"a beat": 1.0}}},
    ]
    assert [delay.late_s for delay in _judge.delays(seen, SAMPLES, 8.0)] == [None, None]


GUESTS = (Guest("north", "n", 1, "nfs4", "n"), Guest("south", "s", 2, "nfs4", "s"))


def test_only_what_one_should_know_is_noted() -> None:
    late = (
        Delay("a beat", 0, 1, 0.4, 0.0, 8.0),
        Delay("a name", 0, 1, 21.0, 0.0, 8.0),
        Delay("a name", 1, 0, 0.1, 0.0, 8.0),
    )
    assert _judge.notes(GUESTS, late[:1], Clocks("unknown", 0.1, 0.0, 1e-9)) == ()
    (said,) = _judge.notes(GUESTS, late, Clocks("unknown", 0.1, 0.0, 1e-9))
    assert said.startswith("south sees a name of north 21.0 s late")
    never = (*late, Delay("a name", 1, 0, None, 0.0, 8.0))
    assert "north sees a name of south not within 8 s" in _judge.notes(GUESTS, never, Clocks("unknown", 0, 0, 1))[0]
    assert "keep them in step" in _judge.notes(GUESTS, (), Clocks("clients", 30.0, 0.0, 1e-9))[0]
    assert "nothing depends on it" in _judge.notes(GUESTS, (), Clocks("server", 30.0, 0.0, 1e-9))[0]


@pytest.mark.parametrize(
    ("stamps", "step", "text"),
    [
        ([4_000_000_000, 6_000_000_000], 2.0, "in steps of 2 s"),
        ([3_000_000_000, 6_000_000_000], 1.0, "in whole seconds"),
        ([1_010_000_000, 1_020_000_000], 0.01, "in steps of 10 ms"),
        ([1_234_567_891, 1_234_567_900], 1e-9, "finer than a millisecond"),
        ([1_234_567_000, 1_234_568_000], 1e-6, "finer than a millisecond"),
    ],
)
def test_the_step_of_stamps(stamps: list[int], step: float, text: str) -> None:
    assert step_of(stamps) == step
    assert step_text(step) == text


def test_each_stamp_narrows_down_how_far_the_clocks_are_apart() -> None:
    assert ahead_of([(4.0, 6.0), (4.5, 9.0), (1.0, 5.5)], 0.0) == (5.0, 0.5)
    assert ahead_of([(4.0, 5.0), (4.0, 5.0)], 2.0) == (5.5, 1.5), "a coarse stamp is cut down to its step"
