"""Which of several equals: the preferred one, else the earliest, and how many are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sink.looks import elsewhere, files, found

from dibs import Sink
from dibs.sink import _marks, _sink


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    monkeypatch.setenv("DIBS_SINK_DIR", str(tmp_path))
    with Sink.create() as sink:
        yield sink


def test_of_equals_the_preferred_one_else_the_earliest(sink: Sink) -> None:
    assert elsewhere(sink, 0.9, artifact=0.7, params={"lr": 0.7})
    for lr in (0.3, 0.1, 0.2):
        assert elsewhere(sink, 1.0, artifact=lr, params={"lr": lr})
    assert (found(sink).artifact, found(sink).tied_count, found(sink).matched_best_params) == (0.3, 3, None)
    best = found(sink, {"lr": "0.10000000000000001"})
    assert (best.artifact, best.params, best.matched_best_params) == (0.1, {"lr": 0.1}, True)
    worse = found(sink, {"lr": 0.7})
    assert (worse.artifact, worse.score, worse.matched_best_params) == (0.3, 1.0, False)


@pytest.mark.parametrize("artifact", [True, False])
def test_of_equals_in_one_process_the_preferred_one_too(sink: Sink, artifact: bool) -> None:
    answers = [sink.record(1.0, artifact=f"{k}" if artifact else None, params={"k": k}, n=k) for k in range(20)]
    assert answers == [True] * 8 + [False] * 12
    assert found(sink).tied_count == 8
    for k in range(20):
        best = found(sink, {"k": k})
        kept = k if k < 8 else 0  # the earliest
        assert (best.params, best.scalars, best.matched_best_params) == ({"k": kept}, {"n": kept}, k < 8)
        assert (best.artifact, best.artifact_is_winner) == ((f"{kept}", True) if artifact else (None, False))
    assert sink.record(2.0, artifact="better", params={"k": 20})
    assert files(sink) == ["blob", "kept", "seen"]
    assert sink.record(2.0, artifact="as good", params={"k": 21})
    assert found(sink, {"k": 21}).artifact == "as good"
    sink.cleanup()
    assert not Path(sink.folder).exists()


def test_equals_do_not_fill_the_disk_with_large_artefacts(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_marks, "TIES_BYTES", 1000)
    assert [sink.record(1.0, artifact=bytes(300), params=k) for k in range(6)] == [True] * 4 + [False] * 2
    large = []

    class Large:
        def __reduce__(self) -> Any:
            large.append(1)
            return bytes, (bytes(2000),)

    assert sink.record(2.0, artifact="small", params=0)
    assert [sink.record(2.0, artifact=Large(), params=k) for k in range(1, 4)] == [False] * 3
    assert len(large) == 1  # and none is pickled to find that out again
    assert sink.record(3.0, artifact=Large(), params=0)  # the best is kept, whatever it takes
    assert not sink.record(3.0, artifact=Large(), params=1)
    assert len(large) == 2
    assert sink.record(3.0, params=2)  # numbers take nothing
    best = found(sink, 2)
    assert (best.matched_best_params, best.artifact_is_winner, best.artifact_params) == (True, False, 0)


def test_parameters_that_nobody_recorded_match_nothing(sink: Sink) -> None:
    assert sink.record(1.0)
    assert found(sink, {"lr": 0.1}).matched_best_params is None
    assert found(sink, {}).matched_best_params is None


def test_a_process_does_not_begin_with_what_others_have_beaten(sink: Sink) -> None:
    assert elsewhere(sink, 2.0)
    assert elsewhere(sink, 1.0, artifact="the best that carried one")
    assert not elsewhere(sink, 1.5)
    assert not elsewhere(sink, 0.5, artifact="less")
    assert elsewhere(sink, 1.0, artifact="as good")
    assert elsewhere(sink, 3.0)
    assert (found(sink).score, found(sink).artifact) == (3.0, "the best that carried one")


@pytest.mark.parametrize("artifact", [None, "model"])
def test_equals_of_very_many_processes_do_not_fill_the_disk(sink: Sink, artifact: str | None) -> None:
    answers = [elsewhere(sink, 1.0, artifact=artifact, params=k) for k in range(100)]
    assert answers == [True] * 32 + [False] * 68
    assert len(files(sink)) == 32 * (3 if artifact else 1)
    assert (found(sink, 31).matched_best_params, found(sink, 32).matched_best_params) == (True, False)
    assert elsewhere(sink, 2.0, artifact=artifact)
    assert elsewhere(sink, 2.0, artifact=artifact)
    assert (found(sink).score, found(sink).tied_count) == (2.0, 2)
    assert sink.record(3.0, artifact=artifact)


def test_the_fallback_too_is_the_preferred_one(sink: Sink) -> None:
    for lr in (0.3, 0.1):
        assert elsewhere(sink, 1.0, artifact=lr, params={"lr": lr})
    assert sink.record(2.0, params={"lr": 0.1})
    assert (found(sink, {"lr": 0.1}).artifact, found(sink).artifact) == (0.1, 0.3)


class Clock:
    def __init__(self) -> None:
        self.times = {"wall": 1000.0, "monotonic": 1000.0}

    def wall(self) -> float:
        return self.times["wall"]

    def monotonic(self) -> float:
        return self.times["monotonic"]


@pytest.mark.parametrize(("boots", "first"), [("aa", 0.1), ("ab", 0.2), ("", 0.2)], ids=["one", "two", "unknown"])
def test_a_clock_set_back_does_not_make_a_later_trial_the_earliest_on_one_machine(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, boots: str, first: float
) -> None:
    clock, boot = Clock(), iter(boots)
    monkeypatch.setattr(_sink, "CLOCK", clock)
    monkeypatch.setattr(_sink, "boot", lambda: next(boot, ""))
    assert elsewhere(sink, 1.0, params=0.1)
    clock.times = {"wall": 10.0, "monotonic": 1001.0}
    assert elsewhere(sink, 1.0, params=0.2)
    assert found(sink).params == first
