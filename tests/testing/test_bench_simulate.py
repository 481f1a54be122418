"""The event simulation behind docs/explanation/scale.md: what its workers share for speed changes nothing they do."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from bench import simulate
from bench._simulated import GET, LIST, PUT, Model, Shared


@pytest.mark.parametrize("history", [False, True])
def test_what_is_decoded_once_for_all_workers_changes_nothing(history: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, model = simulate.Scenario(20, 4, history=history), Model()
    shared = simulate.run(scenario, model)
    monkeypatch.setattr(simulate, "Shared", nullcontext)
    alone = simulate.run(scenario, model)
    assert shared.cells(model) == alone.cells(model)
    assert shared.meter.purposes == alone.meter.purposes
    assert shared.asks_s == alone.asks_s
    assert len(shared.closes_s) == scenario.trials
    assert all(shared.meter.requests[kind] > scenario.trials for kind in (PUT, GET, LIST))


def test_sharing_ends_with_the_simulation() -> None:
    from dibs.store import StudyKeys
    from dibs.study import _rolls, _view

    before = StudyKeys.parse, _view.decode_trial, _rolls.decode_roll
    with Shared():
        assert (StudyKeys.parse, _view.decode_trial, _rolls.decode_roll) != before
    assert (StudyKeys.parse, _view.decode_trial, _rolls.decode_roll) == before
