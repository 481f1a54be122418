"""``dibs sweep run`` as one types it: refusals, what is said of failures, halts, and the end with its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from tests.sweep.sweeping import NAME, SCRIPT, final, states, sweep

from dibs.errors import UsageError
from dibs.store import SweepKeys
from dibs.study._attempt import Terms, claim_attempt
from dibs.sweep import HaltRule, add_plan

Call = Callable[..., Result]
PLACE = ("--store", "s", "--name", NAME)
FAILS = SCRIPT + '[ "$DIBS_NAME" != c1 ] || { echo "Traceback: boom" >&2; exit 3; }\n'


def test_the_end_says_how_it_stands_and_what_to_type_next(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path)
    done = dibs("sweep", "run", *PLACE)
    assert done.stdout.splitlines() == [
        "cells    3 done; 3 run here", f"store    {tmp_path}/s, sweep A, plan 0", "",
        f"prove    dibs sweep reconcile --store {tmp_path}/s --name A",
    ]  # fmt: skip
    assert "cell c0 done 0.25" in done.stderr
    assert dibs("status", "--store", "s").stdout.splitlines() == [
        f"store {tmp_path}/s: 0 studies, 1 sweep", f"  sweep A: dibs sweep status --store {tmp_path}/s --name A",
    ]  # fmt: skip
    again = dibs("sweep", "run", *PLACE, "--quiet")
    assert (again.stdout.splitlines()[0], again.stderr) == ("cells    3 done; 0 run here", "")


def test_the_best_of_progress_is_that_of_the_goal(dibs: Call, tmp_path: Path) -> None:
    script = SCRIPT.replace("""'{"score": 0.25}'""", """'{"score": '$(( 30 - ${DIBS_NAME#c} ))'}'""")
    sweep(tmp_path, 3, script, goal="max")
    assert "[3/3 done, best 30," in dibs("sweep", "run", *PLACE).stderr


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_failure_is_told_with_its_log_and_is_never_a_success(
    dibs: Call, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    store, _ = sweep(tmp_path, 3, FAILS)
    found = dibs("sweep", "run", *PLACE, *quiet, code=1)
    log = Path(store.url) / "sweep/%41/work/00000001-0/log.txt"
    lines = found.stderr.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("cell c1 failed"))
    assert "code error: exit status 3: Traceback: boom" in lines[at]
    assert lines[at + 1 : at + 5][-1] == f"  its log: {log}" or f"  its log: {log}" in lines[at + 1 : at + 12]
    assert "  | Traceback: boom" in lines
    assert f"failed   c1: code error: exit status 3: Traceback: boom; log {log}" in found.stdout
    assert f"retry    dibs sweep retry --store {store.url} --name A" in found.stdout
    assert dibs("sweep", "run", *PLACE, code=1).stdout.startswith("cells    2 done, 1 failed; 0 run here")


def test_a_host_is_shown_by_the_name_it_was_given(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path, 2, FAILS)
    for words in (("--host", "alpha"), ("--host", "alpha", "--me", "ann")):
        cells = json.loads(dibs("sweep", "run", *PLACE, *words, "--json", code=1).stdout)["cells"]
        assert cells[1]["me"] == words[-1]
        dibs("sweep", "retry", *PLACE, "--force", "c1")


def test_in_json_every_cell_stands(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path, 2, FAILS)
    found = json.loads(dibs("sweep", "run", *PLACE, "--json", "--quiet", code=1).stdout)
    assert (found["exit_code"], found["states"], found["why"], found["ran"], found["failed"]) == (
        1, {"done": 1, "failed": 1}, "settled", 2, 1,
    )  # fmt: skip
    assert [(cell["name"], cell["state"], cell["cause"], cell["score"]) for cell in found["cells"]] == [
        ("c0", "done", None, 0.25), ("c1", "failed", "code error", None),
    ]  # fmt: skip


def test_a_column_called_as_one_of_ours_is_absent_where_it_is_empty(dibs: Call, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("name,x,seed,n\na,1,7,\nb,2,,8\n")
    words = ("--shell", "--artifact", "told", "--", "printf '%s.' {seed} {n} ${{DIBS_SEED-none}} > told")
    shown = dibs("sweep", "plan", "r.csv", *PLACE, "--dry-run", "--", "echo", "{seed}", "{n}").stdout.splitlines()
    assert (shown[0].split()[1:], shown[1].split()[1:]) == (["7"], ["8"])
    dibs("sweep", "plan", "r.csv", *PLACE, *words)
    dibs("sweep", "run", *PLACE)
    told = [(tmp_path / "s/sweep/%41/final" / name / "told").read_text() for name in "ab"]
    assert told == ["7..7.", ".8.none."]


def test_what_others_hold_is_left_unfinished_and_said(dibs: Call, tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2)
    mine = claim_attempt(store, SweepKeys(NAME), 1, 0, plan.cells[1].fields, Terms(0, 2, None, "gpu7", 5.0))
    assert mine is not None
    found = dibs("sweep", "run", *PLACE, code=6).stdout
    assert "cells    1 done, 1 running; 1 run here" in found
    assert "held     c1 by gpu7 on " in found
    assert "left unfinished: 1 cell: others run them" in found
    assert json.loads(dibs("sweep", "run", *PLACE, "--json", code=6).stdout)["open"] == ["c1"]


def test_start_index_counts_physical_lines_and_says_which_cell_is_first(dibs: Call, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 4)
    (tmp_path / "h.queue").write_text("# c0.toml t 3\r\n\r\nc1.toml t 3\r\nc3.toml t 3")
    found = dibs("sweep", "run", *PLACE, "--queue", "h.queue", "--start-index", "3")
    assert "dibs: skipping 3 lines: the first cell is c3\n" in found.stderr
    assert states(store) == {"c0": "waiting", "c1": "waiting", "c2": "waiting", "c3": "done"}
    assert "3 cells of the sweep are not this run's" in found.stdout
    assert (
        "h.queue names no cell after its first 4 lines"
        in dibs("sweep", "run", *PLACE, "--queue", "h.queue", "--start-index", "4", code=2).stderr
    )
    assert "no.queue" in dibs("sweep", "run", *PLACE, "--queue", "no.queue", code=2).stderr


def test_halts_keep_what_is_left_for_the_next_run(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path, 4, "#!/bin/sh\nexit 3\n")
    found = dibs("sweep", "run", *PLACE, "--halt", "fail=2", code=1)
    assert "halted by failures with 2 cells left" in found.stdout
    assert "no trial" not in found.stderr
    rest = dibs("sweep", "run", *PLACE, "--keep-going", code=1)
    assert "cells    4 failed; 2 run here" in rest.stdout


def test_it_gives_up_where_nothing_works(dibs: Call, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 5, "#!/bin/sh\nexit 3\n")
    found = dibs("sweep", "run", *PLACE, code=1)
    assert "the first 3 cells all failed" in found.stderr
    assert "--keep-going" in found.stderr
    assert sorted(states(store).values()) == ["failed"] * 3 + ["waiting"] * 2


def test_unsynced_has_an_exit_code_of_its_own(dibs: Call, tmp_path: Path) -> None:
    (tmp_path / "block").write_text("a file\n")
    sweep(tmp_path, 1, final=str(tmp_path / "block" / "final"))
    found = dibs("sweep", "run", *PLACE, code=7)
    assert f"unsynced c0: sync failed: {tmp_path}/block/final: Not a directory" in found.stdout
    assert "unsynced results lie on one machine only" in found.stdout


def test_what_is_unsynced_is_mended_by_a_retry_that_runs_nothing_again(dibs: Call, tmp_path: Path) -> None:
    (tmp_path / "block").write_text("a file\n")
    script = SCRIPT + 'echo run >> "$DIBS_HERE/runs"\n'
    sweep(tmp_path, 1, script, final=str(tmp_path / "block" / "final"))
    dibs("sweep", "run", *PLACE, code=7)
    (tmp_path / "block").unlink()
    dibs("sweep", "retry", *PLACE)
    dibs("sweep", "run", *PLACE)
    dibs("sweep", "reconcile", *PLACE)
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_script_that_was_mended_is_to_be_planned(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path, 2, FAILS)
    dibs("sweep", "run", *PLACE, code=1)
    assert "another one" not in dibs("sweep", "retry", *PLACE, code=1).stdout
    (tmp_path / "cell.sh").write_text(SCRIPT)
    said = dibs("sweep", "retry", *PLACE, "--force", "c1").stdout
    assert "./cell.sh is another one than was planned, which cells still run: dibs sweep plan --store " in said
    dibs("sweep", "plan", *PLACE, "--new-version")
    dibs("sweep", "run", *PLACE)
    assert "another one" not in dibs("sweep", "retry", *PLACE, "--force", "c1").stdout


def test_a_damaged_result_is_run_again_and_put_aside(dibs: Call, tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2)
    dibs("sweep", "run", *PLACE)
    (final(store, "c1") / "best.pth").write_text("rot")
    assert "truncated" in dibs("sweep", "reconcile", *PLACE, code=1).stdout
    dibs("sweep", "retry", *PLACE)
    assert "2 done; 1 run here" in dibs("sweep", "run", *PLACE).stdout
    dibs("sweep", "reconcile", *PLACE)
    assert (final(store, ".quarantine/c1-1-0") / "best.pth").read_text() == "rot"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--store", "s"), 2, "no name of the sweep"),
        (("--store", "s", "--name", "B"), 2, "there is no sweep 'B' in"),
        (("--store", "nowhere", "--name", NAME), 3, "nowhere"),
        ((*PLACE, "--halt", "later"), 2, "write soon,fail=3"),
        ((*PLACE, "--workers", "0"), 2, "--workers"),
        ((*PLACE, "--start-index", "9"), 2, "names no cell after its first 9 lines"),
    ],
)
def test_refusals(dibs: Call, tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    store, _ = sweep(tmp_path, 1)
    assert said in dibs("sweep", "run", *words, code=code).stderr
    assert states(store) == {"c0": "waiting"}


def test_a_sweep_without_cells_is_no_success(dibs: Call, tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 1)
    assert add_plan(store, plan.next(cells=(replace(plan.cells[0], dropped=True),)))
    assert "there is no cell to run" in dibs("sweep", "run", *PLACE, code=5).stdout


def test_isolation_is_said(dibs: Call, tmp_path: Path) -> None:
    sweep(tmp_path, 1, isolate=True)
    assert "isolation is " in dibs("sweep", "run", *PLACE).stderr


@pytest.mark.parametrize(
    ("text", "fails", "now", "of_ten"),
    [("soon,fail=3", 3, False, 3), ("now,fail=1", 1, True, 1), ("fail=30%", 30, False, 3), ("now,fail=1%", 1, True, 1)],
)
def test_rules_of_halts(text: str, fails: int, now: bool, of_ten: int) -> None:
    rule = HaltRule.of(text)
    assert (rule.fails, rule.now, rule.after(10)) == (fails, now, of_ten)


@pytest.mark.parametrize(
    "text", ["", "soon", "fail=0", "fail=101%", "fail=x", "now,fail=1,fail=2", "later,fail=1", "fail=-1"]
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(UsageError, match="write soon,fail=3"):
        HaltRule.of(text)
