"""Two goals and a constraint, three worker processes of which one is killed: the front is what the raw files say."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.study.goals import Echo
from tests.study.processes import children_of, end, eventually, program, start

from dibs import Store, Study
from dibs.search import _sampler
from dibs.study._definition import read_definition
from dibs.study._replay import replay
from dibs.study._view import view_of

TRIALS = 24
ROOT = Path(__file__).parents[2]
BODY = """
sys.path.insert(0, sys.argv[-1])
from tests.study.goals import Echo

def objective(trial):
    x, y = trial.point["x"], trial.point["y"]
    if trial.n == 5 and trial.attempt == 0:
        (HERE / "hung").write_text(str(os.getpid()))
        time.sleep(1000)
    if trial.n == 7:
        return [x]
    trial.report(x)
    trial.done([x, x * y], constraints={"sum": x + y - 1.1})

if __name__ == "__main__":
    study = dibs.Study(HERE / "store", "s", SPACE, goal=["min", "max"], seed=7, sampler=Echo())
    summary = study.run(objective, 24, workers=3, progress=False, max_failures=None)
    print(len(summary.front), summary.states)
"""


def raw(folder: Path) -> dict[int, dict[str, Any]]:
    """The record that speaks for each trial, by json and the names of files alone: a done one, else the highest."""
    found: dict[int, dict[str, Any]] = {}
    paths = (folder / "store" / "study" / "s").glob("*/000000/*.json")
    for path in sorted(paths, key=lambda path: path.name):
        if path.parts[-3] in ("trial", "again"):
            body = json.loads(path.read_text())
            if found.get(body["n"], {}).get("state") != "done":
                found[body["n"]] = body
    return found


def brute(bodies: dict[int, dict[str, Any]]) -> list[int]:
    """Trials that keep the constraint and that none of these beats, compared one by one; first goal min, second max."""
    good = {
        n: (body["scores"][0], -body["scores"][1])
        for n, body in bodies.items()
        if body["state"] == "done" and body["constraints"]["sum"] <= 0
    }
    return [
        n
        for n, (a, b) in sorted(good.items())
        if not any(c <= a and d <= b and (c, d) != (a, b) for c, d in good.values())
    ]


def test_three_workers_one_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_sampler._KNOWN, Echo.name, Echo)
    process = start(program(tmp_path, BODY), str(ROOT))
    hung = tmp_path / "hung"
    pid = int(eventually(lambda: hung.exists() and hung.read_text(), process))
    assert pid in children_of(process.pid)
    os.kill(pid, signal.SIGKILL)
    code, out, err = end(process)
    assert code == 0, err
    bodies = raw(tmp_path)
    assert sorted(bodies) == list(range(TRIALS))
    assert (bodies[5]["attempt"], bodies[5]["state"]) == (1, "done")
    assert {n for n, body in bodies.items() if body["state"] != "done"} == {7}
    assert all(body["score"] is None and len(body["scores"]) == 2 for n, body in bodies.items() if n != 7)
    wanted = brute(bodies)
    study = Study(tmp_path / "store", "s")
    assert [result.n for result in study.front()] == wanted
    assert 0 < len(wanted) < TRIALS
    assert out.split()[0] == str(len(wanted))
    store = Store(tmp_path / "store")
    view = view_of(store, "s")
    view.refresh()
    for n in range(TRIALS):
        assert replay(view, read_definition(store, "s"), n).matches is True, n
