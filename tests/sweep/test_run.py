"""Cells that are run: what each is told, which is next, what of it is kept, and what ends it otherwise."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cell.programs import landlocked
from tests.sweep.sweeping import NAME, SCRIPT, final, new_cell, sha, states, stood, sweep

from dibs import Store
from dibs.errors import DibsError, NotFound, StoreError, UsageError
from dibs.store import SweepKeys
from dibs.study._attempt import Terms, claim_attempt
from dibs.study._events import Claimed, Event
from dibs.sweep import Plan, SweepEnd, add_plan, newest_plan, run_sweep, selected
from dibs.sweep._final import manifest_of


@pytest.fixture(autouse=True)
def unsteered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DIBS_WORK", "DIBS_ME", "WANDB_TAGS", "WANDB_RUN_GROUP"):
        monkeypatch.delenv(name, raising=False)


def ran(store: Store, **more: Any) -> SweepEnd:
    return run_sweep(store, NAME, **{"max_failures": None, **more})


def order(store: Store, **more: Any) -> list[int]:
    """The trials of the cells in the order in which they were begun."""
    begun: list[Event] = []
    ran(store, on_event=begun.append, **more)
    return [event.n for event in begun if isinstance(event, Claimed)]


def log_of(store: Store, n: int = 0, attempt: int = 0) -> str:
    return (Path(store.url) / f"sweep/%41/work/{n:08d}-{attempt}/log.txt").read_text()


def changed(store: Store, plan: Plan, **task: Any) -> Plan:
    after = plan.next(task=replace(plan.task, **task))
    assert add_plan(store, after)
    return after


# ---- what a cell is told, and what it leaves


def test_every_cell_is_done_once_and_its_copies_are_what_it_wrote(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path)
    end = ran(store)
    assert (end.exit_code, end.why, end.states, end.ran, end.failed) == (0, "settled", {"done": 3}, 3, 0)
    for cell in plan.cells:
        config = (tmp_path / f"{cell.name}.toml").read_bytes()
        assert log_of(store, cell.n).startswith(f"{tmp_path}/{cell.name}.toml for 3 epochs of t\n")
        assert (final(store, cell.name) / "best.pth").read_bytes() == config
        run = stood(store)[cell.name].counts
        assert run is not None
        assert run.artifacts is not None
        assert (run.score, run.final, run.artifacts["best.pth"].digest) == (
            0.25, f"sweep/%41/final/{cell.name}", sha(config),
        )  # fmt: skip
        said = manifest_of(final(store, cell.name))
        assert (said["n"], said["attempt"], said["digest"]) == (cell.n, 0, cell.digest)
        assert said["artifacts"]["best.pth"] == {"sha256": sha(config), "bytes": len(config)}
    assert order(store) == []


def test_a_cell_is_told_its_columns_by_hole_and_by_variable(tmp_path: Path) -> None:
    script = '#!/bin/sh\nenv | sort | grep -E "^(DIBS_(NAME|CFG|TASK|EPOCHS|SWEEP|N|OUT|PARAM_SEED|SEED|RUN_NAME)|WANDB_.*)="\necho "$@"\n'
    words = ("./cell.sh", "{name}", "{n}", "{sweep}", "{seed}", "--amp", "{amp}", "{{}}")
    store, plan = sweep(tmp_path, 1, script, words=words, artifacts=(), group="ablations")
    fields = {**plan.cells[0].fields, "seed": 7, "amp": None}
    assert add_plan(store, plan.next(cells=(replace(plan.cells[0], fields=fields),)))
    assert ran(store).exit_code == 0
    out = Path(store.url) / "sweep/%41/work/00000000-0/out"
    assert log_of(store).splitlines() == [
        f"DIBS_CFG={tmp_path}/c0.toml", "DIBS_EPOCHS=3", "DIBS_N=0", "DIBS_NAME=c0", f"DIBS_OUT={out}", "DIBS_PARAM_SEED=7",
        "DIBS_RUN_NAME=c0", "DIBS_SEED=7", "DIBS_SWEEP=A", "DIBS_TASK=t", "WANDB_RUN_GROUP=ablations", "WANDB_TAGS=dibs,t",
        "c0 0 A 7 {}",
    ]  # fmt: skip


def test_the_longest_cell_is_first_and_what_others_left_before_it(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 4, costs={"c1": 5.0, "c3": 9.0, "c0": 1.0})
    left = claim_attempt(store, SweepKeys(NAME), 0, 0, plan.cells[0].fields, Terms(0, 4, None, None, 5.0))
    assert left is not None
    left.close("interrupted")
    assert order(store) == [0, 3, 1, 2]
    assert stood(store)["c0"].runs[1].digest == plan.cells[0].digest


def test_a_cell_may_end_without_a_score_or_artifacts(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 1, "#!/bin/sh\n", artifacts=())
    assert ran(store).exit_code == 0
    run = stood(store)["c0"].counts
    assert run is not None
    assert (run.state, run.score, run.artifacts) == ("done", None, {})


def test_the_log_can_be_an_artifact_and_patterns_name_many(tmp_path: Path) -> None:
    script = "#!/bin/sh\necho hello\nmkdir -p deep\necho 1 > deep/a.npz; echo 2 > deep/b.npz; echo no > deep/c.txt\n"
    store, _ = sweep(tmp_path, 1, script, artifacts=("log.txt", "deep/*.npz"))
    assert ran(store).exit_code == 0
    kept = {path.relative_to(final(store, "c0")).as_posix() for path in final(store, "c0").rglob("*") if path.is_file()}
    assert kept == {"log.txt", "deep/a.npz", "deep/b.npz", "manifest.json"}
    assert (final(store, "c0") / "log.txt").read_text() == "hello\n"


# ---- which cells


def test_dropped_cells_are_not_run_and_new_ones_are(tmp_path: Path) -> None:
    script = (
        SCRIPT
        + '[ "$DIBS_NAME" != c0 ] || { touch "$DIBS_HERE/first"; while [ ! -e "$DIBS_HERE/go" ]; do sleep 0.02; done; }\n'
    )
    store, plan = sweep(tmp_path, 3, script, costs={"c0": 9.0})

    def during(event: Event) -> None:
        if isinstance(event, Claimed) and event.n == 0:  # while it runs: one is dropped, and one is new
            cells = (
                plan.cells[0],
                replace(plan.cells[1], dropped=True),
                plan.cells[2],
                new_cell(store, tmp_path, 3, "late"),
            )
            assert add_plan(Store(store.url), plan.next(cells=cells))
            (tmp_path / "go").touch()

    end = ran(store, on_event=during)
    assert end.exit_code == 0
    assert {each.cell.name: each.state for each in end.cells} == {
        "c0": "done", "c1": "dropped", "c2": "done", "late": "done"
    }  # fmt: skip
    assert stood(store)["c1"].runs == ()
    assert end.version == 1


def test_a_cell_to_be_run_again_has_a_new_number_and_the_old_result_is_put_aside(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 1, artifacts=("n",), script='#!/bin/sh\necho "$DIBS_N" > n\n')
    ran(store)
    again = replace(plan.cells[0], n=plan.size, former=(0,))
    assert add_plan(store, plan.next(cells=(again,)))
    assert order(store) == [1]
    assert (final(store, "c0") / "n").read_text() == "1\n"
    assert (final(store, ".quarantine/c0-0-0") / "n").read_text() == "0\n"
    assert not list(final(store).glob(".part-*"))


def test_only_the_cells_of_a_file_after_so_many_lines(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 4)
    (tmp_path / "mine.queue").write_text("# a comment\n\nc3.toml t 3\nc1.toml t 3\n")
    assert [only and only.first for only in (selected(plan, str(tmp_path / "mine.queue"), 3), selected(plan, None, 2))] == [
        "c1", "c2",
    ]  # fmt: skip
    assert order(store, only=selected(plan, str(tmp_path / "mine.queue"), 2)) == [3, 1]  # as the file has them
    assert states(store) == {"c0": "waiting", "c1": "done", "c2": "waiting", "c3": "done"}
    assert ran(store, only=selected(plan, str(tmp_path / "mine.queue"), 2)).exit_code == 0
    assert order(store, only=selected(plan, "q.txt", 2)) == [2]
    with pytest.raises(UsageError, match="names no cell after its first 4 lines"):
        selected(plan, "q.txt", 4)
    (tmp_path / "other.queue").write_text("new.toml t\n")
    with pytest.raises(UsageError, match=r"other\.queue:1: the sweep A has no cell 'new'"):
        selected(plan, str(tmp_path / "other.queue"))


def test_nothing_to_run_is_no_success(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 1)
    assert add_plan(store, plan.next(cells=(replace(plan.cells[0], dropped=True),)))
    end = ran(store)
    assert (end.exit_code, end.why, end.ran) == (5, "empty", 0)
    with pytest.raises(NotFound, match="no sweep 'B'"):
        run_sweep(store, "B")


# ---- the planned bytes


def test_the_planned_script_runs_whatever_lies_there_now(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2)
    (tmp_path / "cell.sh").write_text("#!/bin/sh\nexit 9\n")
    assert order(store, only=selected(plan, "q.txt", 1)) == [1]
    (tmp_path / "cell.sh").unlink()
    assert ran(store).exit_code == 0
    assert newest_plan(store, NAME).task.scripts == {"./cell.sh": sha(SCRIPT.encode())}


def test_a_new_version_of_the_script_is_that_of_cells_not_begun(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2)
    ran(store, only=selected(plan, "q.txt", 1))
    newer = store.put(SCRIPT.replace("0.25", "0.75").encode())
    changed(store, plan, scripts={"./cell.sh": newer})
    ran(store)
    found = {name: (each.counts.score, each.counts.scripts) for name, each in stood(store).items() if each.counts}
    assert found == {"c0": (0.75, {"cell.sh": newer}), "c1": (0.25, {"cell.sh": sha(SCRIPT.encode())})}


def test_new_rules_hold_for_cells_not_begun(tmp_path: Path) -> None:
    script = '#!/bin/sh\n[ "$DIBS_NAME" = c0 ] || sleep 60\n'
    store, plan = sweep(tmp_path, 2, script, artifacts=())

    def during(event: Event) -> None:
        if isinstance(event, Claimed) and event.n == 0:
            changed(store, plan, time_s=0.3, out=str(tmp_path / "elsewhere" / "{name}"))

    ran(store, on_event=during)
    run = stood(store)["c1"].counts
    assert run is not None
    assert run.cause == "time limit"
    assert (tmp_path / "elsewhere" / "c1").is_dir()


def test_a_script_finds_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "lib.sh").write_text("echo from the library\n")
    store, _ = sweep(tmp_path, 1, '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\n', artifacts=())
    ran(store)
    assert log_of(store) == "from the library\n"


def test_a_config_that_is_not_here_comes_from_the_store_and_another_one_is_refused(tmp_path: Path) -> None:
    store, plan = sweep(tmp_path, 2)
    planned = (tmp_path / "c0.toml").read_bytes()
    (tmp_path / "c0.toml").unlink()
    (tmp_path / "c1.toml").write_text("another = 1\n")
    end = ran(store, retries=3)
    assert (end.exit_code, end.ran, states(store)) == (1, 2, {"c0": "done", "c1": "failed"})
    assert (final(store, "c0") / "best.pth").read_bytes() == planned
    assert "work/00000000-0/config/c0.toml for 3 epochs" in log_of(store)
    run = stood(store)["c1"].counts
    assert run is not None
    assert run.cause == "config changed"
    assert run.reason is not None
    assert sha(b"another = 1\n") in run.reason
    assert str(plan.cells[1].config) in run.reason
    assert "put it back" in run.reason


def test_a_missing_program_is_said_before_anything_is_claimed(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 1, words=("./nowhere.sh",))
    with pytest.raises(UsageError, match=r"the program ./nowhere.sh is not there"):
        ran(store)
    assert states(store) == {"c0": "waiting"}


# ---- ends that are none


@pytest.mark.parametrize(
    ("last", "cause", "reason"),
    [
        ("exit 3", "code error", "exit status 3"),
        ("rm best.pth", "code error", "left no best.pth"),
        (": > best.pth", "code error", "left best.pth empty"),
        ("ln -sf /etc/passwd best.pth", "code error", "is a link"),
        ("rm best.pth; mkdir best.pth", "code error", "no plain file"),
        ("echo '{\"loss\": NaN}' > metrics.json", "anomaly", "loss is not finite"),
        ('echo \'{"a": [1, {"b": -Infinity}]}\' > metrics.json', "anomaly", "a[1].b is not finite"),
        ("echo 'x' > metrics.json", "code error", "is not JSON"),
        ("echo '{\"score\": NaN}'", "anomaly", "the score is nan"),
        ('echo \'{"score": "x"}\'', "code error", "must be a number"),
    ],
)
def test_what_is_no_result(tmp_path: Path, last: str, cause: str, reason: str) -> None:
    store, _ = sweep(tmp_path, 1, SCRIPT + last + "\n")
    end = ran(store)
    run = stood(store)["c0"].counts
    assert run is not None
    assert (end.exit_code, run.state, run.cause) == (1, "failed", cause)
    assert reason in str(run.reason)
    assert not final(store, "c0").exists()


def test_a_failed_cell_is_tried_again_as_often_as_asked_and_finds_what_it_left(tmp_path: Path) -> None:
    script = SCRIPT + '[ "$DIBS_ATTEMPT" = 2 ] || exit 3\ncat "$DIBS_PREVIOUS/best.pth" > best.pth\n'
    store, plan = sweep(tmp_path, 1, script)
    end = ran(store, retries=2)
    assert (end.exit_code, end.ran, end.failed) == (0, 3, 2)
    assert [run.digest for run in stood(store)["c0"].runs] == [plan.cells[0].digest] * 3


def test_it_gives_up_if_the_first_ones_all_fail_unless_told_to_go_on(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 5, "#!/bin/sh\nexit 3\n")
    with pytest.raises((DibsError, UsageError), match="the first 3 trials all failed"):
        run_sweep(store, NAME)
    end = run_sweep(store, NAME, max_failures=None)
    assert (end.ran, end.failed, end.states, end.exit_code) == (2, 2, {"failed": 5}, 1)


# ---- folders


def test_two_cells_with_one_folder_are_refused_before_the_second_starts(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, out="out/{task}")
    assert ran(store).exit_code == 1
    failed = stood(store)["c1"].counts
    assert failed is not None
    assert "cell 'c1' (trial 1 attempt 0) of sweep 'A' would write to" in str(failed.reason)
    assert "belongs to cell 'c0' (trial 0 attempt 0) of sweep 'A'" in str(failed.reason)
    assert not (Path(store.url) / "sweep/%41/work/00000001-0/log.txt").exists()


def test_a_later_attempt_has_a_folder_beside_the_first_ones(tmp_path: Path) -> None:
    script = SCRIPT + '[ -n "$DIBS_PREVIOUS" ] || exit 3\necho "$DIBS_PREVIOUS" > before\n'
    store, _ = sweep(tmp_path, 1, script, out="out/{name}", artifacts=("before",))
    assert ran(store, retries=1).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["c0", "c0.0-1"]
    assert (final(store, "c0") / "before").read_text() == f"{tmp_path}/out/c0\n"


@landlocked
def test_what_is_denied_is_not_read_and_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "reserved").mkdir()
    (tmp_path / "reserved" / "test.csv").write_text("secret")
    script = (
        '#!/bin/sh\ncat "$DIBS_HERE/reserved/test.csv" && exit 5\ntouch "$DIBS_HERE/stray" && exit 6\necho ok > kept\n'
    )
    store, _ = sweep(tmp_path, 1, script, artifacts=("kept",), isolate=True, deny_read=(str(tmp_path / "reserved"),))
    assert ran(store).exit_code == 0, log_of(store)
    assert not (tmp_path / "stray").exists()


def test_what_is_said_of_a_cell_while_the_store_is_full_calls_it_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = sweep(tmp_path, ["wide"])
    mine = claim_attempt(store, SweepKeys(NAME), 0, 0, {}, Terms(0, 1, None, None, 5.0), saw={"cell": "wide"})
    assert mine is not None
    failures = [StoreError("the disk is full")] * 2
    replaced = type(store.backend).replace

    def full(*told: Any) -> Any:
        if failures:
            raise failures.pop()
        return replaced(*told)

    monkeypatch.setattr(type(store.backend), "replace", full)
    with caplog.at_level(logging.INFO):
        mine.close("interrupted", reason="x")
    assert "cell wide: the disk is full; trying again" in caplog.text
    assert "trial" not in caplog.text


def test_limits_of_the_task_end_a_cell(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 1, "#!/bin/sh\nsleep 60\n", time_s=0.3)
    assert ran(store).exit_code == 1
    run = stood(store)["c0"].counts
    assert run is not None
    assert run.cause == "time limit"


def test_a_run_is_read_back_by_a_program_of_yours(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 1)
    ran(store)
    blob = json.loads(store.get(str(record(store)["blob"])))
    assert (blob["ended"]["cause"], blob["ended"]["code"]) == ("ok", 0)
    assert record(store)["saw"]["cell"] == "c0"


def record(store: Store) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(store.url) / SweepKeys(NAME).attempt(0, 0)).read_bytes())
    return found
