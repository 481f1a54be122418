"""The sink in dask's workers: processes of two threads each, started by nannies."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sink.programs import ran

pytestmark = pytest.mark.integrations


def test_the_best_trial_of_a_cluster(tmp_path: Path) -> None:
    found = ran("dask", tmp_path)
    assert (found["score"], found["params"], found["tied_count"], found["skipped"]) == (0.0, {"x": 31}, 1, 0)
    assert (found["artifact_is_winner"], found["artifact_x"], found["matched_best_params"]) == (True, 31, True)
    assert found["artifact_pid"] == found["scalars"]["pid"] != found["main"]
    assert found["kept"] == found["blobs"] <= 3  # threads of one process share its marks
    assert list(tmp_path.iterdir()) == []
