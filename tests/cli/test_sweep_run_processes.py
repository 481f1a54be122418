"""``dibs sweep run`` as real processes: several on one sweep, killed at any moment; edits, signals, halts, places of a host."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cell.programs import alive, number_in, until
from tests.sweep.sweeping import NAME, SCRIPT, final, new_cell, sha, states, stood, sweep

from dibs import Store
from dibs.sweep import add_plan, newest_plan, standing
from dibs.sweep._final import manifest_of

Spawn = Callable[..., Any]
RUN = ("sweep", "run", "--store", "s", "--name", NAME)
# waits for the test at its beginning, if it is c0
GATED = """#!/bin/sh
if [ "$DIBS_NAME" = c0 ] && [ "$DIBS_ATTEMPT" = 0 ]; then
  echo $$ > "$DIBS_HERE/pid"
  while [ ! -e "$DIBS_HERE/go" ]; do sleep 0.02; done
fi
cat "$1" > best.pth
echo '{"loss": 1}' > metrics.json
[ "$DIBS_NAME" != bad ] || exit 3
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="without /proc nobody tells who lives")


def begun(tmp_path: Path) -> int:
    return int(until(lambda: number_in(tmp_path / "pid")))


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def test_every_cell_is_done_exactly_once_whoever_is_killed(spawn: Spawn, tmp_path: Path) -> None:
    script = '#!/bin/sh\necho "$DIBS_N $DIBS_ATTEMPT $(cat "$1")" > best.pth\nsleep 0.05\necho \'{"score": 1}\'\n'
    store, plan = sweep(tmp_path, 20, script, artifacts=("best.pth",))
    chance = random.Random(7)
    runs: list[Any] = []

    def start() -> None:
        runs.append(spawn(*RUN, "--workers", "2", "--quiet", "--rescue-after", "1h"))

    start(), start()
    kills = 0
    while kills < 6:
        until(lambda: any(children_of(run.pid) for run in runs) or all(run.poll() is not None for run in runs))
        living = [run for run in runs if run.poll() is None]
        if not living:
            break
        victim = chance.choice(living)
        workers = children_of(victim.pid)
        count = sum(state == "done" for state in states(store).values())
        if count < 3 * kills:  # some cells are done between two kills
            continue
        if kills % 3 == 2 or not workers:
            victim.kill()
            victim.communicate()
            start()
        else:
            try:
                os.kill(chance.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                continue
        kills += 1
    for run in runs:
        run.communicate(timeout=60)
    last = spawn(*RUN, "--wait", "--quiet")
    out, err = last.communicate(timeout=60)
    assert last.returncode == 0, (out, err)
    assert kills >= 3
    found = stood(store)
    assert {each.state for each in found.values()} == {"done"}
    for cell in plan.cells:
        each = found[cell.name]
        assert [run.state for run in each.runs].count("done") == 1, each
        run = each.counts
        assert run is not None
        assert run.artifacts is not None
        kept = (final(store, cell.name) / "best.pth").read_bytes()
        assert kept == f"{cell.n} {run.attempt} name = {cell.name!r}\n".encode()
        assert run.artifacts["best.pth"].digest == sha(kept)
        assert (manifest_of(final(store, cell.name))["n"], manifest_of(final(store, cell.name))["attempt"]) == run_at(
            run
        )
    assert sorted(path.name for path in final(store).iterdir() if not path.name.startswith(".")) == sorted(found)


def run_at(run: Any) -> tuple[int, int]:
    return run.n, run.attempt


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_script_or_config_that_is_edited_meanwhile_changes_nothing_or_is_refused(
    spawn: Spawn, tmp_path: Path, workers: str
) -> None:
    store, _ = sweep(tmp_path, 3, GATED, costs={"c0": 9.0, "c2": 1.0, "c1": 2.0})
    others = ("--queue", str(tmp_path / "q.txt"))
    child = spawn(*RUN, *others, "--workers", workers)
    begun(tmp_path)
    (tmp_path / "cell.sh").write_text("#!/bin/sh\nexit 9\n")
    if workers == "1":
        (tmp_path / "c2.toml").write_text("edited = 1\n")
    (tmp_path / "go").touch()
    out, err = child.communicate(timeout=60)
    assert states(store) == {"c0": "done", "c1": "done", "c2": "failed" if workers == "1" else "done"}, err
    assert child.returncode == (1 if workers == "1" else 0), out
    assert ("config changed" in err) == (workers == "1")


def test_lines_appended_and_dropped_while_it_runs_are_heard_in_every_worker(spawn: Spawn, tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2, GATED, costs={"c0": 9.0})
    only_c0 = plan.next(cells=(plan.cells[0], replace(plan.cells[1], dropped=True)))
    assert add_plan(store, only_c0)
    child = spawn(*RUN)
    begun(tmp_path)
    cells = (
        *only_c0.cells,
        new_cell(store, tmp_path, 2, "late"),
        replace(new_cell(store, tmp_path, 3, "never"), dropped=True),
    )
    assert add_plan(store, only_c0.next(cells=cells))
    (tmp_path / "go").touch()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert states(store) == {"c0": "done", "c1": "dropped", "late": "done", "never": "dropped"}
    assert "cells    2 done, 2 dropped; 2 run here" in out
    assert err.count("plan 2 of the sweep A counts now; new: late") == 1
    assert newest_plan(Store(tmp_path / "s"), NAME).version == 2


def test_the_queue_file_itself_is_followed_on_the_host_that_planned(
    spawn: Spawn, dibs: Callable[..., Any], tmp_path: Path
) -> None:
    store, _ = sweep(tmp_path, 2, GATED)  # for its files; the sweep of this test is planned as one types it
    for name in ("late", "c0", "c1"):
        new_cell(store, tmp_path, 0, name)
    queue = tmp_path / "cells.queue"
    queue.write_text("c0.toml t 9\nc1.toml t 3\n")
    place = ("--store", "s", "--name", "B")
    dibs("sweep", "plan", "cells.queue", *place, "--artifact", "best.pth", "--", "./cell.sh", "{cfg}")
    child = spawn("sweep", "run", *place)
    begun(tmp_path)
    queue.write_text("c0.toml t 9\n# c1.toml t 3\nlate.toml t 1\n")
    (tmp_path / "go").touch()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    found = {
        each.cell.name: each.state for each in standing(Store(tmp_path / "s"), newest_plan(Store(tmp_path / "s"), "B"))
    }
    assert found == {"c0": "done", "c1": "dropped", "late": "done"}
    assert "cells    2 done, 1 dropped; 2 run here" in out


def test_one_cell_at_a_time_on_a_host_whatever_runs_there(spawn: Spawn, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, GATED, costs={"c0": 9.0})
    first = spawn(*RUN)
    pid = begun(tmp_path)
    second = spawn(*RUN, "--me", "second")
    said = until(lambda: second.stderr.readline())
    assert "the limit of 1 cell at a time on this host (--workers) is reached, held by" in said
    assert states(store) == {"c0": "running", "c1": "waiting"}
    first.kill()  # and nobody waits for a dead holder
    first.communicate()
    until(lambda: not alive(pid))
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert states(store) == {"c0": "done", "c1": "done"}
    assert "2 run here" in out


def test_more_at_once_where_that_is_said(spawn: Spawn, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, GATED, costs={"c0": 9.0})
    child = spawn(*RUN, "--workers", "2")
    begun(tmp_path)
    until(lambda: states(store)["c1"] == "done")
    (tmp_path / "go").touch()
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err


@pytest.mark.parametrize(("rule", "other"), [("soon,fail=1", "done"), ("now,fail=1", "interrupted")])
def test_a_halt_lets_the_others_end_or_interrupts_them(spawn: Spawn, tmp_path: Path, rule: str, other: str) -> None:
    # not before c0 has begun: what is claimed by then and has not begun is given back
    waits = '#!/bin/sh\nwhile [ "$DIBS_NAME" = bad ] && [ ! -s "$DIBS_HERE/pid" ]; do sleep 0.02; done\n'
    script = GATED.replace("#!/bin/sh\n", waits)
    store, _ = sweep(tmp_path, ["c0", "bad", "c2"], script, costs={"c0": 9.0, "bad": 8.0, "c2": 1.0})
    child = spawn(*RUN, "--workers", "2", "--halt", rule, "--keep-going")
    pid = begun(tmp_path)
    until(lambda: "1 failed: nothing new is begun" in child.stderr.readline())
    if other == "done":
        assert alive(pid)
        (tmp_path / "go").touch()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 1, err
    assert states(store) == {"c0": other, "bad": "failed", "c2": "waiting"}
    assert "halted by failures" in out
    assert not alive(pid)


def test_signals_are_as_in_any_run(spawn: Spawn, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, GATED, costs={"c0": 9.0})
    child = spawn(*RUN)
    pid = begun(tmp_path)
    child.terminate()
    _, err = child.communicate(timeout=60)
    assert child.returncode == 143, err
    assert states(store) == {"c0": "interrupted", "c1": "waiting"}
    assert not alive(pid)
    assert "the same command goes on" in err
    again = spawn(*RUN)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert [run.state for run in stood(store)["c0"].runs] == ["interrupted", "done"]


def test_nothing_private_is_left_behind(spawn: Spawn, tmp_path: Path) -> None:
    sweep(tmp_path, 1, SCRIPT)
    (tmp_path / "tmp").mkdir()
    child = spawn(*RUN, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    child.communicate(timeout=60)
    assert child.returncode == 0
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_cell_whose_process_is_gone_is_told_as_such_and_not_as_running(
    spawn: Spawn, dibs: Callable[..., Any], tmp_path: Path
) -> None:
    sweep(tmp_path, 1, GATED)
    child = spawn(*RUN)
    pid = begun(tmp_path)
    child.kill()
    child.communicate()
    until(lambda: not alive(pid))
    place = ("--store", "s", "--name", NAME)
    told = dibs("sweep", "status", *place).stdout
    assert "process gone" in told
    assert "the process of 1 cell is gone: dibs sweep run takes up what is lost" in told
    told = dibs("sweep", "reconcile", *place, code=1).stdout  # and not 6, which is: somebody is at it
    assert "its process is gone" in told
    assert "dibs sweep run takes it up again" in told
    assert "running" not in told
    assert "is gone: dibs sweep run takes it up" in dibs("sweep", "pull", "dest", *place, code=1).stdout
    assert "is gone, and it waits" in dibs("sweep", "retry", "c0", *place, code=1).stdout
    (tmp_path / "go").touch()
    assert spawn(*RUN).wait(timeout=60) == 0


def test_a_config_that_is_edited_while_its_cell_runs_is_told_and_its_cell_not_proven(
    spawn: Spawn, dibs: Callable[..., Any], tmp_path: Path
) -> None:
    sweep(tmp_path, 1, GATED)
    planned = (tmp_path / "c0.toml").read_bytes()
    child = spawn(*RUN)
    begun(tmp_path)
    (tmp_path / "c0.toml").write_text("edited = 1\n")
    (tmp_path / "go").touch()
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "c0.toml was edited while it ran" in err
    place = ("--store", "s", "--name", NAME)
    assert "its config was edited while it ran" in dibs("sweep", "reconcile", *place, code=1).stdout
    assert "put it back" in dibs("sweep", "retry", *place, code=4).stdout
    (tmp_path / "c0.toml").write_bytes(planned)
    assert "free, as a new trial" in dibs("sweep", "retry", "c0", *place).stdout
    assert spawn(*RUN).wait(timeout=60) == 0
    dibs("sweep", "reconcile", *place)
    assert (final(Store("s"), "c0") / "best.pth").read_bytes() == planned


def test_a_log_is_found_where_work_folders_are_elsewhere(
    spawn: Spawn, dibs: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "disk"))
    sweep(tmp_path, ["c1", "bad"], f"#!/bin/sh\necho hello\n{GATED.removeprefix('#!/bin/sh')}")
    _, err = spawn(*RUN).communicate(timeout=60)
    assert f"its log: {tmp_path}/disk/" in err
    dibs("sweep", "pull", "dest", "--store", "s", "--name", NAME, code=1)
    assert (tmp_path / "dest" / "c1" / "dibs-log.txt").read_text() == "hello\n"
