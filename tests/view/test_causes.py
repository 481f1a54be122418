"""What looks alike in ``state`` is told apart: an exception, a limit, poison, and a running trial that is quiet."""

from __future__ import annotations

import pytest
from tests.view.studies import Lab

from dibs.view import results_table, study_status
from dibs.view._causes import cause_of

REASONS = {
    "ValueError: over the time limit of 30m": "objective",
    "the objective returned None and had reported nothing": "objective",
    "over the time limit of 30m": "limit",
    "over the memory limit of 4 GiB (5.1 GiB used)": "limit",
    "poison": "poison",
}


@pytest.mark.parametrize(("reason", "cause"), [*REASONS.items(), (None, "objective")])
def test_a_failure_has_a_cause(reason: str | None, cause: str) -> None:
    assert cause_of("failed", reason) == cause
    assert cause_of("interrupted", reason) is None


def test_status_and_table_tell_them_apart() -> None:
    lab = Lab(stale_s=600)
    for n, reason in enumerate(REASONS):
        lab.trial(n, "failed", reason=reason)
    lab.begin(5)  # never heard of again
    lab.trial(6, "interrupted", reason="SIGTERM")
    lab.pass_s(1000)
    lab.begin(7)
    lab.trial(8, "failed", reason="poison")
    lab.study.retry(8)
    status = study_status(lab.source())
    assert status.counts["failed"] == sum(status.failed_by.values()) == 5
    assert status.failed_by == {"objective": 2, "limit": 2, "poison": 1}
    assert [(run.n, run.quiet) for run in status.running] == [(5, True), (7, False)]
    rows = results_table(lab.source())
    assert [row.cause for row in rows] == [*REASONS.values(), "quiet", None, None, "poison"]
    assert rows[0].to_json()["cause"] == "objective"
