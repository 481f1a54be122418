"""What to type to look at workers, by what they run."""

from __future__ import annotations

import pytest
from tests.launch.jobs import profile, request

from dibs.launch import look_at

SWEEP = "dibs sweep status --store /s --name "


@pytest.mark.parametrize(
    ("run", "env", "line"),
    [
        (["dibs", "run", "search.py", "--study", "A"], {}, "dibs status --store /s"),
        (["dibs", "sweep", "run", "--name", "A"], {}, SWEEP + "A"),
        (["/v/bin/dibs", "sweep", "run", "--wait", "--name=it's"], {}, SWEEP + "'it'\"'\"'s'"),
        (["python3", "-m", "dibs", "sweep", "run", "--name", "A", "--name", "B"], {}, SWEEP + "B"),
        ('exec dibs sweep run --name A --wait --host "$(hostname)-$DIBS_ME"', {}, SWEEP + "A"),
        ("dibs sweep run --name a#b # which", {}, SWEEP + "'a#b'"),
        ("cd x; dibs sweep run --name A; echo over", {}, SWEEP + "A"),
        ("dibs sweep run --name \"$WHICH\"", {}, SWEEP + "NAME"),
        ("dibs sweep run --name 'A", {}, "dibs status --store /s"),
        (["dibs", "sweep", "run"], {"DIBS_SWEEP": "B"}, SWEEP + "B"),
        (["dibs", "sweep", "run"], {"DIBS_SWEEP": True}, SWEEP + "NAME"),
        (["dibs", "sweep", "run", "--name"], {}, SWEEP + "NAME"),
        (["dibs", "sweep", "plan", "--name", "A"], {}, "dibs status --store /s"),
        (["./mine.sh", "sweep", "run"], {}, "dibs status --store /s"),
    ],
)  # fmt: skip
def test_the_line(run: object, env: dict[str, object], line: str) -> None:
    assert look_at(request(run=run, env=env), profile("local"), "/s") == line
