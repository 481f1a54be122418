"""``dibs exec`` as real processes: signals, kills, two workers, limits, and a script that is edited while it runs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cell.programs import alive, number_in, until
from tests.parts import memory_kills

from dibs import Study

Spawn = Callable[..., Any]
PLACE = ("--store", "s", "--study", "mill")

# the first attempt of trial 0 says its number and goes on until it is asked to end or the test lets it
GATED = """#!/bin/sh
if [ "$DIBS_TRIAL" = 0 ] && [ "$DIBS_ATTEMPT" = 0 ]; then
  trap 'echo saved > checkpoint; sync_up; exit 0' TERM
  sync_up() { :; }
  echo $$ > pid
  (trap '' TERM; echo $$ > none; setsid sleep 300) &
  while [ ! -e "$DIBS_HERE/go" ]; do sleep 0.02; done
fi
[ -z "$1" ] || echo "from $(cat "$1/checkpoint" 2>/dev/null)"
echo '{"score": 1}'
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="without /proc nobody tells who lives")


@pytest.fixture
def gated(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text("lr = {float = [0, 1]}\n")
    path = tmp_path / "gated.sh"
    path.write_text(GATED)
    path.chmod(0o755)
    return path


def words(*more: str, trials: int = 2) -> tuple[str, ...]:
    return (
        "exec", "--space", "space.toml", *PLACE, "--goal", "min", "--trials", str(trials), "--seed", "1", *more, "--quiet",
        "--", "./gated.sh", "{previous}",
    )  # fmt: skip


def own(tmp_path: Path, n: int = 0, attempt: int = 0) -> Path:
    return tmp_path / "s" / "study" / "mill" / "work" / f"{n:08d}-{attempt}"


def begun(tmp_path: Path) -> int:
    """The process of the gated program, once it runs."""
    return int(until(lambda: number_in(own(tmp_path) / "out" / "pid")))


def ended(tmp_path: Path) -> list[tuple[int, int, str]]:
    return [(result.n, result.attempt, result.state) for result in Study(tmp_path / "s", "mill").results()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_sigterm_is_passed_on_and_anybody_resumes(
    spawn: Spawn, gated: Path, tmp_path: Path, workers: str, number: signal.Signals
) -> None:
    child = spawn(*words("--workers", workers, trials=1))
    pid = begun(tmp_path)
    child.send_signal(number)
    _, err = child.communicate()
    assert child.returncode == 128 + number, err
    assert not alive(pid)
    assert ended(tmp_path) == [(0, 0, "interrupted")]
    assert (own(tmp_path) / "out" / "checkpoint").read_text() == "saved\n"
    again = spawn(*words(trials=1))
    _, err = again.communicate()
    assert again.returncode == 0, err
    assert ended(tmp_path) == [(0, 1, "done")]
    assert (own(tmp_path, 0, 1) / "log.txt").read_text() == 'from saved\n{"score": 1}\n'  # in a folder of its own


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_kept_files_reach_a_machine_that_has_not_the_folder(
    spawn: Spawn, gated: Path, tmp_path: Path, number: signal.Signals
) -> None:
    first, second = ({**os.environ, "DIBS_WORK": str(tmp_path / name)} for name in ("disk1", "disk2"))
    child = spawn(*[word for word in words("--keep", "checkpoint", trials=1) if word != "--quiet"], env=first)
    until(lambda: any(map(number_in, (tmp_path / "disk1").glob("mill/work/00000000-0-*/out/pid"))))
    child.send_signal(number)
    if number == signal.SIGINT:
        until(lambda: "no new trials" in child.stderr.readline())
        child.send_signal(number)
    child.communicate()
    assert child.returncode == (143 if number == signal.SIGTERM else 130)
    again = spawn(*words("--keep", "checkpoint", trials=1), env=second)
    _, err = again.communicate()
    assert again.returncode == 0, err
    (log,) = (tmp_path / "disk2" / "mill" / "work").glob("00000000-1-*/log.txt")
    assert log.read_text() == 'from saved\n{"score": 1}\n'


def test_the_grace_is_the_programs_and_then_it_is_killed(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    gated.write_text(GATED.replace("trap 'echo saved > checkpoint; sync_up; exit 0' TERM", "trap '' TERM"))
    child = spawn(*words("--grace", "0.5s", trials=1))
    pid = begun(tmp_path)
    child.terminate()
    _, err = child.communicate()
    assert (child.returncode, ended(tmp_path)) == (143, [(0, 0, "interrupted")]), err
    assert not alive(pid)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_first_ctrl_c_lets_it_end_and_the_second_asks_it_to(
    spawn: Spawn, gated: Path, tmp_path: Path, workers: str
) -> None:
    child = spawn(*[word for word in words("--workers", workers, trials=9) if word != "--quiet"])
    pid = begun(tmp_path)
    child.send_signal(signal.SIGINT)
    until(lambda: "no new trials" in child.stderr.readline())
    assert alive(pid)
    child.send_signal(signal.SIGINT)
    child.communicate()
    assert child.returncode == 130
    assert not alive(pid)
    assert (own(tmp_path) / "out" / "checkpoint").exists()
    assert ended(tmp_path)[0] == (0, 0, "interrupted")


def test_a_killed_worker_takes_its_program_along_and_the_trial_is_taken_up(
    spawn: Spawn, gated: Path, tmp_path: Path
) -> None:
    child = spawn(*words())
    pid = begun(tmp_path)
    (own(tmp_path) / "out" / "checkpoint").write_text("half\n")
    child.kill()
    child.wait()
    until(lambda: not alive(pid))
    again = spawn(*words())
    _, err = again.communicate()
    assert again.returncode == 0, err
    assert ended(tmp_path) == [(0, 1, "done"), (1, 0, "done")]
    assert "from half" in (own(tmp_path, 0, 1) / "log.txt").read_text()


@memory_kills(ours=False)
def test_a_program_killed_from_outside_is_taken_up_by_the_same_run(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    child = spawn(*words())
    os.kill(begun(tmp_path), signal.SIGKILL)
    _, err = child.communicate()
    assert child.returncode == 0, err
    assert ended(tmp_path) == [(0, 1, "done"), (1, 0, "done")]


def test_two_runs_of_two_workers_run_everything_once(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    runs = [spawn(*words("--workers", "2", trials=12), "--json") for _ in range(2)]
    for run in runs:
        _, err = run.communicate()
        assert run.returncode in (0, 6), err
    assert ended(tmp_path) == [(n, 0, "done") for n in range(12)]


def test_over_its_time_it_is_ended_and_its_worker_lives_on(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    child = spawn(*[word for word in words("--time-limit", "0.5s", "--workers", "2", trials=4) if word != "--quiet"])
    out, err = child.communicate()
    assert child.returncode == 1, err
    assert "1 failed (1 over a limit)" in out
    assert "1 machine, 3 processes" not in out  # no worker was replaced
    result = Study(tmp_path / "s", "mill").results()[0]
    assert (result.state, result.reason) == ("failed", "over the time limit of 0.5s")
    assert (own(tmp_path) / "out" / "checkpoint").exists()  # it was asked first


def test_an_edited_script_changes_nothing_under_a_live_run(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    child = spawn(*words(trials=3), "--json")
    begun(tmp_path)
    gated.write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "go").touch()
    _, err = child.communicate()
    assert child.returncode == 0, err
    assert ended(tmp_path) == [(n, 0, "done") for n in range(3)]
    again = spawn(*words("--max-failures", "0", trials=4))
    again.communicate()
    assert again.returncode == 1
    digests = {
        digest
        for result in Study(tmp_path / "s", "mill").results()
        for digest in files_of(tmp_path, result.n).values()
    }  # fmt: skip
    assert len(digests) == 2


def files_of(tmp_path: Path, n: int) -> dict[str, str]:
    record = json.loads((tmp_path / "s" / "study" / "mill" / "trial" / "000000" / f"{n:08d}-0.json").read_text())
    return dict(record["files"])


def test_curves_are_seen_by_others_while_it_runs(spawn: Spawn, gated: Path, tmp_path: Path) -> None:
    gated.write_text(
        GATED.replace("do sleep 0.02", "do sleep 0.02; i=$((i+1)); echo '{\"step\": '$i', \"score\": 0.5}'")
    )
    child = spawn(*words(trials=1))
    begun(tmp_path)
    live = tmp_path / "s" / "study" / "mill" / "live" / "000000" / "00000000-0.json"
    until(live.exists)
    assert json.loads(live.read_text())["curve"][:2] == [[1, 0.5], [2, 0.5]]
    (tmp_path / "go").touch()
    child.communicate()
    assert child.returncode == 0
    assert (own(tmp_path) / "log.txt").stat().st_size
