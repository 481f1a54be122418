"""``dibs run`` in one process: what it takes, what it refuses and with which code, and what it prints at the end."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dibs import Study
from dibs.study import take

Call = Callable[..., Result]
PLACE = ("--store", "s", "--study", "spam")


def test_the_end_tells_the_winner_the_counts_and_what_to_type_next(dibs: Call, search: Path, tmp_path: Path) -> None:
    done = dibs("run", str(search), *PLACE, "--trials", "3", "--quiet")
    best = Study("s", "spam").best()
    assert done.stdout.startswith(f"{best.score:.6g}  trial {best.n}, goal min\n")
    where = re.escape(str(tmp_path / "s"))
    for line in (
        "trials   3 done; 3 in this run",
        "seen     1 machine, 1 process",
        f"store    {where}, study spam",
        f"result   dibs best --store {where} --study spam",
        f"resume   dibs run {re.escape(str(search))} --store s --study spam --trials 3 --quiet",
        "join     the same command on any machine",
    ):
        assert re.search(f"(?m)^{line}", done.stdout), line
    assert done.stderr == ""


def test_progress_and_log_go_to_stderr(dibs: Call, search: Path) -> None:
    done = dibs("run", str(search), *PLACE, "--trials", "2", "--json")
    assert json.loads(done.stdout)["counts"]["done"] == 2
    assert "created the store" in done.stderr
    assert "2/2 done" in done.stderr


def test_the_same_command_again_runs_nothing_and_a_larger_n_the_rest(dibs: Call, search: Path) -> None:
    def ran(trials: int) -> int:
        done = dibs("run", str(search), *PLACE, "--trials", str(trials), "--json", "--quiet")
        return int(json.loads(done.stdout)["ran"])

    assert [ran(2), ran(2), ran(5), ran(3)] == [2, 0, 3, 0]


def test_json_is_one_object_with_the_status(dibs: Call, search: Path) -> None:
    told = json.loads(dibs("run", str(search), *PLACE, "--trials", "2", "--json", "--quiet").stdout)
    assert (told["exit_code"], told["unfinished"], told["why"], told["trials"]) == (0, False, "settled", 2)
    assert (told["study"], told["best"]["state"], told["machines"], told["of"]) == ("spam", "done", 1, 2)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--goal", "max"), "created with goal = 'min', and you say 'max'"),
        (("--seed", "9"), "created with seed = 1, and you say 9"),
        (("--sampler", "random"), "created with sampler = 'auto', and you say 'random'"),
        (("--pruner", "diverged,median"), "created without pruner, and you say 'diverged,median'"),
        (("--max-step", "9"), "created without max_step, and you say 9"),
        (("--stale", "5m"), "created with stale_s = 3600.0, and you say 300.0"),
    ],
)
def test_another_definition_is_refused_with_both_values(
    studied: Call, search: Path, more: tuple[str, ...], said: str
) -> None:
    done = studied("run", str(search), *PLACE, "--trials", "4", *more, code=4)
    assert said in done.stderr
    assert done.stdout == ""


STEPS = """
import dibs
goal, pruner, max_step = "min", dibs.Threshold(upper=5.0), 3
space = dibs.Space(x=dibs.Float(0, 1))
def objective(trial):
    for step in range(4):
        if trial.report(trial.point["x"] if trial.n else 9.0):
            return None
"""


def test_a_pruner_of_the_file_and_its_verdict_in_every_verb(dibs: Call, search: Path) -> None:
    search.write_text(STEPS)
    told = json.loads(dibs("run", str(search), *PLACE, "--trials", "2", "--json", "--quiet").stdout)
    assert told["counts"]["pruned"] == 1
    assert "sampler auto, pruner threshold, seed" in dibs("status", *PLACE).stdout
    status = json.loads(dibs("status", *PLACE, "--json").stdout)
    assert status["pruner"] == {"name": "threshold", "version": 1, "args": {"lower": None, "upper": 5.0, "warmup": 0}}
    assert status["max_step"] == 3
    shown = dibs("show", "0", *PLACE).stdout
    assert "reason   9 at step 0 is above 5" in shown
    assert "verdict  threshold: step 0, threshold 5.0, value 9.0" in shown
    (attempt,) = json.loads(dibs("show", "0", *PLACE, "--json").stdout)["attempts"]
    assert attempt["verdict"]["seen"] == {"step": 0, "threshold": 5.0, "value": 9.0}
    assert json.loads(dibs("show", "1", *PLACE, "--json").stdout)["attempts"][0]["verdict"] is None


def test_flags_beat_the_file_and_the_settings(dibs: Call, search: Path) -> None:
    search.write_text(STEPS)
    Path("dibs.toml").write_text('pruner = "median"\nmax_step = 7\n')
    dibs("run", str(search), *PLACE, "--trials", "1", "--quiet", "--pruner", "diverged,asha", "--max-step", "81")
    status = json.loads(dibs("status", *PLACE, "--json").stdout)
    assert [part["name"] for part in status["pruner"]["args"]["of"]] == ["diverged", "asha"]
    assert status["max_step"] == 81
    assert "pruner diverged, asha" in dibs("status", *PLACE).stdout
    said = dibs("run", str(search), *PLACE, "--trials", "1", "--pruner", "hedian", "--max-step", "81", code=2).stderr
    assert "unknown pruner 'hedian'" in said


def test_another_space_is_refused_naming_the_parameter(studied: Call, search: Path) -> None:
    search.write_text(search.read_text().replace("Float(0, 1)", "Float(0, 2)"))
    assert "space (x)" in studied("run", str(search), *PLACE, "--trials", "4", code=4).stderr


@pytest.mark.parametrize(
    ("store", "said"),
    [("searching.py", "is a file, not a folder"), ("no/where", "no folder .*no to create it in"), (".", "")],
)
def test_an_impossible_store_is_code_3(dibs: Call, search: Path, store: str, said: str) -> None:
    words = ("run", str(search), "--store", store, "--study", "x", "--trials", "1")
    if store == ".":
        dibs(*words)  # any folder may become a store
    else:
        assert re.search(said, dibs(*words, code=3).stderr)


def test_a_task_of_a_job_array_creates_a_store_only_on_request(dibs: Call, search: Path, tmp_path: Path) -> None:
    words = ("run", str(search), *PLACE, "--trials", "1")
    assert "--create" in dibs(*words, code=3, SLURM_ARRAY_TASK_ID="3").stderr
    assert not (tmp_path / "s").exists()
    dibs(*words, "--create", SLURM_ARRAY_TASK_ID="3")


def test_the_goal_is_asked_for_only_where_a_study_is_made(dibs: Call, search: Path, tmp_path: Path) -> None:
    search.write_text(search.read_text().replace('goal = "min"', ""))
    words = ("run", str(search), *PLACE, "--trials", "1", "--quiet")
    said = dibs(*words, code=2).stderr
    assert 'say --goal min or put goal = "min" in' in said
    assert not (tmp_path / "s").exists()
    dibs(*words, "--goal", "max")
    dibs(*words)


def test_study_and_trials_are_needed(dibs: Call, search: Path) -> None:
    said = dibs("run", str(search), "--store", "s", "--trials", "1", code=2).stderr
    assert "--study NAME, set DIBS_STUDY, or put study" in said
    assert 'name = "NAME" in' in said
    assert "say --trials N" in dibs("run", str(search), *PLACE, code=2).stderr
    dibs("run", str(search), *PLACE, "--trials", "1", "--rescue-after", "1h", "--no-rescue", code=2)


FAILING = """
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))
def objective(trial):
    if trial.n % 2:
        raise RuntimeError(f"boo \\x1b[31m {trial.attempt}")
    return trial.point["x"]
"""


def test_failed_trials_of_this_run_are_code_1_and_retried_on_request(dibs: Call, search: Path) -> None:
    search.write_text(FAILING)
    words = ("run", str(search), *PLACE)
    done = dibs(*words, "--trials", "4", code=1)
    assert "2 done, 2 failed" in done.stdout
    assert "to try them again: dibs retry" in done.stdout
    dibs(*words, "--trials", "5")  # this run's only trial was done
    search.write_text(FAILING.replace("trial.n % 2", "False"))
    assert dibs("retry", *PLACE).stdout == "to be tried again: 1, 3\n"
    assert "none" in dibs("retry", *PLACE).stdout
    assert "is to be tried again already" in dibs("retry", "1", *PLACE, code=2).stderr
    assert "is done, not failed" in dibs("retry", "0", *PLACE, code=2).stderr
    assert "no trial 77" in dibs("retry", "77", *PLACE, code=2).stderr
    assert "5 done" in dibs(*words, "--trials", "5").stdout


def test_retries_that_help_are_no_failure(dibs: Call, search: Path) -> None:
    search.write_text(FAILING.replace("trial.n % 2", "trial.attempt == 0"))
    done = dibs("run", str(search), *PLACE, "--trials", "2", "--retries", "1", "--max-failures", "0", "--json")
    told = json.loads(done.stdout)
    assert (told["exit_code"], told["counts"]["done"], told["ran"]) == (0, 2, 4)


def test_a_run_whose_trials_all_fail_gives_up_and_shows_why(dibs: Call, search: Path) -> None:
    search.write_text(FAILING.replace("trial.n % 2", "True"))
    done = dibs("run", str(search), *PLACE, "--trials", "9", "--max-failures", "2", code=1)
    assert "the first 2 trials all failed" in done.stderr
    assert f"once that is mended: dibs retry --store {Path('s').absolute()} --study spam, and the same" in done.stderr
    assert f'{search}", line 7, in objective' in done.stderr
    assert "this is a bug" not in done.stderr
    assert json.loads(dibs("status", *PLACE, "--json").stdout)["counts"]["failed"] == 2
    dibs("run", str(search), *PLACE, "--trials", "9", "--max-failures", "0", code=1)
    assert json.loads(dibs("status", *PLACE, "--json").stdout)["counts"]["failed"] == 9


FAULTS = {
    "imported from a neighbour": ("from model import train as objective\n", "KeyError: 'depth'"),
    "without a parameter": ("def objective(): ...\n", "TypeError: objective() takes 0 positional arguments"),
    "without a result": ("def objective(trial): ...\n", "returned None and had reported nothing"),
    "that gives a reason": (
        "def objective(trial):\n    try: {}['depth']\n    except KeyError as wrong: raise OSError('no data') from wrong\n",
        "OSError: no data",
    ),
    "that ends the process": ("def objective(trial): raise SystemExit(3)\n", "SystemExit: 3"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_is_wrong_with_an_objective_is_its_own_and_can_be_tried_again(
    dibs: Call, search: Path, fault: str, workers: int
) -> None:
    text, said = FAULTS[fault]
    search.with_name("model.py").write_text("def train(trial):\n    return trial.point['depth']\n")
    head = FAILING.split("def ")[0]
    search.write_text(f"{head}{text}")
    done = dibs("run", str(search), *PLACE, "--trials", "20", "--workers", str(workers), code=1)
    ending = done.stderr[done.stderr.index("dibs: ", done.stderr.index("failed (")) :]
    assert "all failed" in ending
    assert said in ending
    assert f"once that is mended: dibs retry --store {Path('s').absolute()} --study spam, and the same" in ending
    assert not any(word in done.stderr for word in ("this is a bug", "stopped"))


def test_no_command_is_recommended_that_would_find_nothing(dibs: Call, search: Path) -> None:
    search.write_text(FAILING.replace("trial.n % 2", "True"))
    done = dibs("run", str(search), *PLACE, "--trials", "1", "--max-failures", "0", code=1)
    assert done.stdout.startswith("no result yet")
    assert "dibs best" not in done.stdout


def test_an_objective_that_asks_for_another_space_is_told_where(dibs: Call, search: Path) -> None:
    search.write_text(FAILING.replace("if trial.n % 2:", "if trial.suggest_float('x', 0, 2) < 3:"))
    done = dibs("run", str(search), *PLACE, "--trials", "9", "--quiet", code=1)
    assert "the first 3 trials all failed" in done.stderr
    assert "SpaceError: x: asked for as Float(0.0, 2.0)" in done.stderr


def test_held_by_somebody_else_is_code_6_and_says_by_whom(dibs: Call, search: Path) -> None:
    dibs("run", str(search), *PLACE, "--trials", "0", "--quiet")
    study = Study("s", "spam")
    taken = take(study.store, {"x": 0.5, "kind": "a"}, study="spam", trial=1, goal="min", me="north\x1b", of=3)
    assert taken is not None
    done = dibs("run", str(search), *PLACE, "--trials", "3", "--quiet", code=6)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("left unfinished: trial 1 is held by north\\x1b since 20")
    assert "dibs rescue --store" in last
    assert "2 done, 1 running" in done.stdout
    told = json.loads(dibs("run", str(search), *PLACE, "--trials", "3", "--quiet", "--json", code=6).stdout)
    assert (told["why"], [run["n"] for run in told["running"]]) == ("held", [1])


def test_a_stopped_study_is_code_6_until_it_is_resumed(dibs: Call, search: Path) -> None:
    words = ("run", str(search), *PLACE, "--trials", "2", "--quiet")
    dibs(*words)
    assert (
        f"is stopped; to go on: dibs resume --store {Path('s').absolute()} --study spam\n"
        in dibs("stop", *PLACE).stdout
    )
    assert "was stopped already" in dibs("stop", *PLACE).stdout
    last = dibs(*words[:-2], "3", "--quiet", code=6).stdout.splitlines()[-1]
    assert "the study is stopped; to go on: dibs resume --store" in last
    assert "goes on" in dibs("resume", *PLACE).stdout
    assert "was not stopped" in dibs("resume", *PLACE).stdout
    dibs(*words[:-2], "3", "--quiet")


def test_when_the_time_is_over_it_is_code_6(dibs: Call, search: Path) -> None:
    last = dibs("run", str(search), *PLACE, "--trials", "9", "--time", "0.000001s", code=6).stdout.splitlines()[-1]
    assert last.startswith("left unfinished: the time is over with 9 of 9 not settled; to go on: dibs run ")


def test_a_wish_is_tried_once_and_one_without_room_is_told(dibs: Call, search: Path) -> None:
    dibs("run", str(search), *PLACE, "--trials", "1", "--quiet")
    done = dibs("enqueue", "x=0.25", "kind=(1, 2)", *PLACE)
    assert done.stdout == "queued: kind=(1, 2) x=0.25\n"
    assert "no trial below 1 is free" in done.stderr
    assert "was wished for before" in dibs("enqueue", '{"x": 0.25, "kind": [1, 2]}', *PLACE).stdout
    last = dibs("run", str(search), *PLACE, "--trials", "1", "--quiet").stdout.splitlines()[-1]
    assert last == "1 wish found no trial below 1 free: say a larger --trials"
    dibs("run", str(search), *PLACE, "--trials", "3", "--quiet")
    points = [row.point for row in Study("s", "spam").results()]
    assert points.count({"x": 0.25, "kind": (1, 2)}) == 1


@pytest.mark.parametrize("words", [("x=5", "kind=a"), ("x=0.5",), ("y=1",), ("x",), ('{"x":',), ("x=1", "x=2")])
def test_a_wish_outside_the_space_is_code_2(studied: Call, words: tuple[str, ...]) -> None:
    done = studied("enqueue", *words, *PLACE, code=2)
    assert done.stderr.count("\n") == 1


def test_a_grid_that_ends_says_so(dibs: Call, search: Path) -> None:
    search.write_text(search.read_text().replace("dibs.Float(0, 1)", "dibs.Int(1, 2)"))
    done = dibs("run", str(search), *PLACE, "--trials", "99", "--sampler", "grid", "--quiet")
    assert done.stdout.splitlines()[-1].startswith("the sampler has no more points than these 6")


def test_rescue_frees_what_is_quiet_and_nothing_else(dibs: Call, search: Path) -> None:
    dibs("run", str(search), *PLACE, "--trials", "0", "--stale", "1s", "--quiet")
    assert dibs("rescue", *PLACE).stdout == "nothing is quiet\n"
    study = Study("s", "spam")
    assert take(study.store, {"x": 0.5, "kind": "a"}, study="spam", trial=0, goal="min", of=1) is not None
    assert dibs("rescue", *PLACE).stdout == "nothing is quiet\n"
    record = Path("s/study/spam/trial/000000/00000000-0.json")
    os.utime(record, (0, 0))  # it has not moved since 1970
    assert dibs("rescue", *PLACE).stdout == "released trial 0, attempt 0\n"
    done = dibs("run", str(search), *PLACE, "--trials", "1", "--quiet")
    assert "1 done" in done.stdout


def test_steering_needs_the_study_by_name(studied: Call) -> None:
    for words in (("stop",), ("resume",), ("retry",), ("rescue",), ("enqueue", "x=1")):
        assert "no study: say --study" in studied(*words, "--store", "s", code=2).stderr
        assert "there is no study 'no'" in studied(*words, "--store", "s", "--study", "no", code=2).stderr
