"""Wrong protocols planted into the real code: each must be found, by its invariant, and the right code passes the same seeds."""

from __future__ import annotations

import pytest

from dibs.testing import invariants
from dibs.testing._planted import PLANTED, Planted
from dibs.testing._simulator import simulate


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_found(planted: Planted) -> None:
    for seed in range(planted.seeds):
        wrong = simulate(seed, planted=planted(), **planted.fixed)
        if any(sentence.startswith(f"{planted.caught_by}: ") for sentence in wrong.broken):
            break
    else:
        pytest.fail(f"{planted.seeds} seeds did not find it")
    right = simulate(seed, **planted.fixed)
    assert right.broken == [], right.explain()


def test_every_invariant_has_a_fault_that_it_finds() -> None:
    assert {planted.caught_by for planted in PLANTED} == set(invariants.ALL)


def test_a_run_that_fails_explains_itself() -> None:
    planted = PLANTED[0]
    runs = ((seed, simulate(seed, planted=planted(), **planted.fixed)) for seed in range(planted.seeds))
    seed, run = next((seed, run) for seed, run in runs if run.broken)
    story = run.explain()
    assert run.broken[0] in story
    assert f"replay({seed}, kind='link')" in story
    assert "CLAIMED" in story
    assert simulate(seed, planted=planted(), **planted.fixed).digest == run.digest
