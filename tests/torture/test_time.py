"""Clocks that disagree, stamps that follow them, owners that were only slow, and studies whose workers are all dead."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine
from tests.study.processes import end, eventually, open_study, program, start, state

from dibs import Float, Space, Store, Study
from dibs.backend import MemoryBackend
from dibs.study import report, take
from dibs.study._attempt import Attempt

SPACE = Space(x=Float(0, 1))
HOURS_S = 7200.0


class Clients:
    """A file system that stamps with the clock of whichever client writes, and clients whose clocks disagree."""

    def __init__(self, **skews_s: float) -> None:
        self.writer = self.watcher = "right"
        self.skews_s = {"right": 0.0, **skews_s}
        self.machines = {name: FakeMachine(pid) for pid, name in enumerate(self.skews_s, 1)}
        self.backend = MemoryBackend(clock=self.wall)
        self.stores = {name: Store.over(self.backend, machine) for name, machine in self.machines.items()}
        Study(self.stores["right"], "s", SPACE, goal="min", seed=0, stale_s=60)

    def wall(self) -> float:
        return self.machines["right"].clock.wall() + self.skews_s[self.writer]

    def by(self, name: str) -> Store:
        """What follows is done by this client."""
        self.writer = name
        return self.stores[name]

    def pass_time(self, seconds: float) -> None:
        for machine in self.machines.values():
            machine.clock.now += seconds


@pytest.mark.parametrize("skew_s", [-HOURS_S, 0.0, HOURS_S])
def test_nobody_alive_is_rescued_where_stamps_follow_the_clients_clock(skew_s: float) -> None:
    clients = Clients(slow=skew_s)
    owned = Study(clients.by("slow"), "s").claimer(1).step()
    assert isinstance(owned, Attempt)
    rescuer = Study(clients.by("right"), "s").claimer(1, rescue_after_s=60)
    for second in range(900):
        if second % int(owned.beat_s) == 0:
            clients.by("slow")
            owned.beat()
        clients.by("right")
        assert not isinstance(rescuer.step(), Attempt), f"rescued after {second} s, and it beats"
        clients.pass_time(1)
    taken_s = next((s for s in range(8000) if took_over(rescuer, clients)), None)
    assert taken_s is not None, "and whoever has stopped is"
    # who stamps two hours ahead looks alive for two hours more; who stamps behind is watched for two beats at least
    assert (2 * owned.beat_s <= taken_s <= 70) if skew_s <= 0 else (HOURS_S < taken_s < HOURS_S + 70)


def took_over(rescuer: Any, clients: Clients) -> bool:
    clients.pass_time(1)
    return isinstance(rescuer.step(), Attempt)


SLOW = """
def objective(trial):
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return 1.0

if __name__ == "__main__":
    summary = study(stale_s=1.0).run(objective, 1, progress=False)
    print(summary.ran, summary.failed)
"""


@pytest.mark.parametrize(("theirs", "counts"), [("done", (1, "done", 2.0)), ("failed", (0, "done", 1.0))])
def test_a_slow_owner_whose_trial_was_rescued_ends_its_own_attempt_and_no_other(
    tmp_path: Path, theirs: str, counts: tuple[int, str, float]
) -> None:
    process = start(program(tmp_path, SLOW))
    eventually(lambda: (tmp_path / "begun").exists(), process)
    process.send_signal(signal.SIGSTOP)
    study = open_study(tmp_path)
    keys, root = study.store.keys("s"), tmp_path / "store"
    eventually(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    os.utime(root / keys.attempt(0, 0), (1.0, 1.0))
    assert study.rescue() == [(0, 0)]
    taken = take(study.store, study.results()[0].point, study="s", trial=0, goal="min")
    assert taken is not None
    assert taken.attempt == 1
    report(study.store, taken.point, [2.0], study="s", trial=0, state=theirs)
    rescuers = (root / keys.attempt(0, 1)).read_bytes()
    (tmp_path / "go").touch()
    process.send_signal(signal.SIGCONT)
    code, out, err = end(process)
    assert (code, out) == (0, "1 0\n"), err
    assert "Traceback" not in err
    assert state(study, 0, 0) == "done"
    assert (root / keys.attempt(0, 1)).read_bytes() == rescuers
    found = open_study(tmp_path).results()
    assert [(r.attempt, r.state, r.score) for r in found] == [counts]


DIES = """
def objective(trial):
    if trial.n < 2:
        return 1.0
    (HERE / f"begun-{os.getpid()}").touch()
    time.sleep(1000)

if __name__ == "__main__":
    study().run(objective, 8, workers=1, progress=False)
"""


def test_where_every_worker_is_dead_status_says_since_when_nothing_moved(tmp_path: Path) -> None:
    processes = [start(program(tmp_path, DIES, f"p{k}.py")) for k in range(2)]
    eventually(lambda: len(list(tmp_path.glob("begun-*"))) == 2)
    for process in processes:
        process.kill()
        end(process)
    newest = max(path.stat().st_mtime for path in (tmp_path / "store/study").rglob("*.json"))
    hour_ago = newest - 3600
    for path in (tmp_path / "store/study").rglob("*.json"):
        os.utime(path, (hour_ago, hour_ago))
    words = [sys.executable, "-m", "dibs", "status", "--store", str(tmp_path / "store"), "--study", "s"]
    told = json.loads(subprocess.run([*words, "--json"], capture_output=True, check=True).stdout)
    assert [(row["attempt"], row["gone"]) for row in told["running"]] == [(0, True), (0, True)]
    assert 3600 <= told["still_s"] < 3700
    text = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    assert len(re.findall(r"process gone$", text, re.MULTILINE)) == 2
    assert f"Last moved {told['newest_at']} by the store's clock (1h" in text
    for trial in open_study(tmp_path).trials(8):
        trial.done(0.5)
    assert [r.state for r in open_study(tmp_path).results()] == ["done"] * 8, "and anybody takes them up"
