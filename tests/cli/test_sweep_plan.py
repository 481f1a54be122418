"""``dibs sweep plan``: what is refused before anything is written, what is a new version, and what is answered."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dibs import Store
from dibs.store import SweepKeys
from dibs.study._attempt import Terms, claim_attempt
from dibs.sweep import Plan, cells_named, newest_plan

Call = Callable[..., Result]
PLACE = ("--store", "s", "--name", "A")
COMMAND = ("--", "./run_one.sh", "{cfg}", "{task}", "{epochs}", "--out", "{out}")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Two configs, a script, and a queue of two lines."""
    (tmp_path / "c").mkdir()
    (tmp_path / "c/a.toml").write_text("lr = 1\n")
    (tmp_path / "c/b.toml").write_text("lr = 2\n")
    script(tmp_path / "run_one.sh", "#!/bin/sh\n")
    (tmp_path / "q").write_text("# cells\nc/a.toml seg 20\n\nc/b.toml seg\n")
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def planned() -> Plan:
    return newest_plan(Store("s", create=False), "A")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def first(dibs: Call, bench: Path) -> Path:
    dibs("sweep", "plan", "q", *PLACE, "--epochs", "5", "--artifact", "best.pth", *COMMAND)
    return bench


def test_the_next_command_finds_the_store_from_any_folder(dibs: Call, bench: Path) -> None:
    said = dibs("sweep", "plan", "q", *PLACE, "--epochs", "5", *COMMAND).stdout
    assert f"\nnext       dibs sweep run --store {bench / 's'} --name A, on each machine; " in said


def test_a_new_sweep(first: Path) -> None:
    plan = planned()
    assert [(cell.n, cell.name, cell.line, dict(cell.fields)) for cell in plan.cells] == [
        (0, "a", 2, {"cfg": "c/a.toml", "task": "seg", "epochs": 20}),
        (1, "b", 4, {"cfg": "c/b.toml", "task": "seg", "epochs": 5}),
    ]
    assert (plan.version, plan.epochs, plan.naming, plan.where) == (0, 5, "{stem}", os.uname().nodename)
    assert plan.sources == {"q": ("# cells", "c/a.toml seg 20", "", "c/b.toml seg")}
    assert plan.task.words == COMMAND[1:]
    assert (plan.task.here, plan.task.artifacts) == (str(first), ("best.pth",))
    store = Store("s")
    assert plan.cells[0].config == sha("lr = 1\n")
    assert store.get(sha("lr = 1\n")) == b"lr = 1\n"
    assert plan.task.scripts == {"./run_one.sh": sha("#!/bin/sh\n")}
    assert store.get(plan.task.scripts["./run_one.sh"]) == b"#!/bin/sh\n"


def test_the_same_again_writes_nothing(dibs: Call, first: Path) -> None:
    said = dibs("sweep", "plan", "q", *PLACE, "--epochs", "5", "--artifact", "best.pth", *COMMAND).stdout
    assert "version 0: nothing has changed" in said
    assert planned().version == 0
    assert "nothing has changed" in dibs("sweep", "plan", *PLACE).stdout


def test_appended_dropped_restored(dibs: Call, first: Path) -> None:
    (first / "q").write_text("# cells\n# c/a.toml seg 20\n\nc/b.toml seg\nword seg 3\n")
    said = dibs("sweep", "plan", "q", *PLACE).stdout
    assert "version 1: changed" in said
    assert "appended   1: word" in said
    assert "dropped    1: a" in said
    assert [(cell.name, cell.n, cell.dropped, cell.config is None) for cell in planned().cells] == [
        ("a", 0, True, False), ("b", 1, False, False), ("word", 2, False, True),
    ]  # fmt: skip
    (first / "q").write_text("# cells\nc/a.toml seg 20\n\nc/b.toml seg\nword seg 3\n")
    assert "restored   1: a" in dibs("sweep", "plan", "q", *PLACE).stdout
    assert [cell.dropped for cell in planned().cells] == [False, False, False]
    assert planned().version == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# cells\nc/a.toml seg 21\n\nc/b.toml seg\n", "-c/a.toml seg 20\n+c/a.toml seg 21"),
        ("# cells\nc/a.toml seg 20\n", "-c/b.toml seg"),
        ("c/b.toml seg\n# cells\nc/a.toml seg 20\n\n", "q was changed in a way that moves cells"),
    ],
)
def test_any_other_change_is_refused_with_the_diff(dibs: Call, first: Path, text: str, said: str) -> None:
    (first / "q").write_text(text)
    assert said in dibs("sweep", "plan", "q", *PLACE, code=4).stderr
    assert planned().version == 0


def test_a_comment_that_never_was_a_cell_is_none(dibs: Call, bench: Path) -> None:
    (bench / "q").write_text("#c/a.toml seg 20\nc/b.toml seg 1\n")
    dibs("sweep", "plan", "q", *PLACE, *COMMAND)
    (bench / "q").write_text("c/a.toml seg 20\nc/b.toml seg 1\n")
    assert "line 1 was no cell before: append it" in dibs("sweep", "plan", "q", *PLACE, code=4).stderr


def test_a_config_that_was_edited_is_refused(dibs: Call, first: Path) -> None:
    (first / "c/b.toml").write_text("lr = 3\n")
    append(first / "q", "more t 1\n")
    said = dibs("sweep", "plan", "q", *PLACE, code=4).stderr
    assert "the config c/b.toml of the cell b (q:4) is another one than was planned" in said
    assert sha("lr = 2\n") in said
    assert sha("lr = 3\n") in said
    (first / "c/b.toml").unlink()  # gone is not edited: its bytes are in the store
    dibs("sweep", "plan", "q", *PLACE)
    assert planned().cells[1].config == sha("lr = 2\n")


def test_a_script_that_was_edited_is_refused_or_a_new_version(dibs: Call, first: Path) -> None:
    script(first / "run_one.sh", "#!/bin/sh\necho new\n")
    for words in ((), COMMAND):
        said = dibs("sweep", "plan", "q", *PLACE, *words, code=4).stderr
        assert "the script ./run_one.sh is another one than was planned" in said
        assert sha("#!/bin/sh\n") in said
        assert sha("#!/bin/sh\necho new\n") in said
    dibs("sweep", "plan", "q", *PLACE, "--new-version")
    assert planned().version == 1
    assert planned().task.scripts == {"./run_one.sh": sha("#!/bin/sh\necho new\n")}
    assert planned().task.artifacts == ("best.pth",)
    assert Store("s").has(sha("#!/bin/sh\necho new\n"))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--epochs", "6"), "planned with --epochs 5, not 6"),
        (("--name", "{task}-{stem}"), "planned with --name {stem}, not {task}-{stem}"),
        (("--artifact", "last.pth"), "planned with --artifact best.pth, and not with last.pth"),
        (("--time-limit", "2h"), "planned with --time-limit none, and not with 7200.0 s"),
        (
            ("--", "./run_one.sh", "{cfg}"),
            "planned with the command ./run_one.sh '{cfg}' '{task}' '{epochs}' --out '{out}', and not with ./run_one.sh '{cfg}': ",
        ),
    ],
)
def test_what_was_planned_otherwise(dibs: Call, first: Path, more: tuple[str, ...], said: str) -> None:
    assert said in dibs("sweep", "plan", "q", *PLACE, *more, code=4).stderr
    assert planned().version == 0
    if "--epochs" not in more and "--name" not in more:
        dibs("sweep", "plan", "q", *PLACE, "--new-version", *more)
        assert planned().version == 1


def test_another_queue_file_is_added_and_the_first_one_stays(dibs: Call, first: Path) -> None:
    (first / "r.csv").write_text("cfg,task,lr,name\nc/a.toml,seg,0.1,a-slow\n")
    dibs("sweep", "plan", "r.csv", *PLACE)
    assert [(cell.name, cell.source) for cell in planned().cells] == [("a", "q"), ("b", "q"), ("a-slow", "r.csv")]
    assert planned().cells[2].fields == {"cfg": "c/a.toml", "task": "seg", "lr": "0.1", "epochs": 5}


def test_from_another_folder_the_same_file_is_the_same(
    dibs: Call, first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first / "below").mkdir()
    (first / "below/r").write_text("x t 1\n")
    append(first / "q", "y t 1\n")
    monkeypatch.chdir(first / "below")
    dibs("sweep", "plan", "../q", "r", "--store", "../s", "--name", "A")
    plan = newest_plan(Store("../s"), "A")
    assert set(plan.sources) == {"q", str(first / "below/r")}
    assert [cell.name for cell in plan.cells] == ["a", "b", "y", "x"]
    assert "cd " + str(first) in dibs("sweep", "plan", "--store", "../s", "--name", "A", "--new-version", code=2).stderr


@pytest.mark.parametrize(
    ("queue", "words", "said"),
    [
        ("c/a.toml seg 1\n", (), "there is no command: write it after --"),
        ("c/a.toml seg 1\n", ("./none.sh", "{cfg}"), "the program ./none.sh is not there"),
        ("c/a.toml seg 1\n", ("./run_one.sh", "{lr}"), "{lr} in '{lr}' is nothing that could be filled in; there is {attempt}, {cfg}"),
        ("c/a.toml seg 1\n", ("./run_one.sh", "{cfg"), "a lone {"),
        ("# none\n\n", ("./run_one.sh", "{cfg}"), "there is no cell in q: every line is blank or a comment"),
        ("c/none.toml seg 1\n", ("./run_one.sh",), "q:1: the config c/none.toml is not there (looked for as "),
        ("none.yaml seg 1\n", ("./run_one.sh",), "q:1: the config none.yaml is not there"),
        ("./c seg 1\n", ("./run_one.sh",), "q:1: the config ./c is a folder"),
        ("c/a.toml seg 1\nc/b.toml\n", ("./run_one.sh",), "q:2: 'c/b.toml' is one word"),
        ("c/a.toml s 1\nc/a.toml t 1\n", ("./run_one.sh",), "q:1 and q:2: both are 'a'; tell them apart with --name '{task}-{stem}'"),
        ("../x s 1\n", ("./run_one.sh",), "the config ../x is not there"),
        ("CON s 1\n", ("./run_one.sh",), "q:1: 'CON' cannot be the name of a cell"),
        ("😀 s 1\n", ("./run_one.sh",), "q:1: '😀' cannot be the name of a cell"),
        (f"{'x' * 300} s 1\n", ("./run_one.sh",), "it has 300 bytes, over 100"),
        ("a\0b s 1\n", ("./run_one.sh",), "q:1: there is a zero byte"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_made(
    dibs: Call, bench: Path, queue: str, words: tuple[str, ...], said: str
) -> None:
    (bench / "q").write_text(queue)
    done = dibs("sweep", "plan", "q", *PLACE, "--", *words, code=2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (bench / "s").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("q",), "the queue file q is named twice"),
        (("./q",), "the queue file ./q is named twice"),
        (("none",), "the queue file none cannot be read"),
        (("c",), "c is a folder"),
        (("--name", "B"), "--name is said twice, 'A' and 'B'"),
        (("--name", "{{"), "calls every cell the same"),
        (("--artifact", "../x"), "--artifact '../x': name a file within {out}"),
        (("--artifact", "/x"), "name a file within {out}"),
        (("--artifact", "manifest.json"), "and not manifest.json"),
        (("--out", "o"), "the cells a and b would write to one folder, o: make it differ, such as {name}"),
        (("--out", "o/{previous}"), "{previous} in 'o/{previous}' is nothing that could be filled in"),
        (("--out", "{none}"), "{none} in '{none}' is nothing"),
        (("--writable", "x"), "say that, too"),
        (("--goal", "min,max"), "a sweep has one goal"),
        (("--host", "a=0"), "--host 'a=0' is no host"),
        (("--write-queues", "d"), "--write-queues needs hosts"),
        (("--freeze", "none.py"), "there is no file none.py"),
        (("--time-limit", "0"), "must be longer than nothing"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_meant(dibs: Call, bench: Path, more: tuple[str, ...], said: str) -> None:
    done = dibs("sweep", "plan", "q", *PLACE, *more, *COMMAND, code=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_to_plan_from(dibs: Call, bench: Path) -> None:
    said = dibs("sweep", "plan", *PLACE, *COMMAND, code=2).stderr
    assert said.startswith("dibs: there is no sweep 'A' yet: name a queue file")
    assert "{cfg} is no queue file: the command stands after --" in dibs(
        "sweep", "plan", "q", *PLACE, *COMMAND[1:3], code=2
    ).stderr  # fmt: skip
    assert not (bench / "s").exists()


def test_folders_within_one_another_are_one(dibs: Call, bench: Path) -> None:
    (bench / "q").write_text("x a 1\nx/y b 1\n")
    (bench / "x").write_text("")
    (bench / "q").write_text("x a 1\ny x/sub 1\n")
    done = dibs("sweep", "plan", "q", *PLACE, "--out", "o/{task}", *COMMAND)
    assert done.exit_code == 0
    (bench / "r").write_text("z a/sub 1\n")
    assert "the cells x and z would write to one folder, o/a" in dibs("sweep", "plan", "r", *PLACE, code=2).stderr


def test_a_dry_run_writes_nothing(dibs: Call, bench: Path) -> None:
    said = dibs("sweep", "plan", "q", *PLACE, "--dry-run", "--host", "a", "--write-queues", "d", *COMMAND).stdout
    assert f"{bench}/run_one.sh c/a.toml seg 20 --out '<out>'\n" in said
    assert f"{bench}/run_one.sh c/b.toml seg --out '<out>'\n" in said
    assert "nothing was written" in said
    assert sorted(path.name for path in bench.iterdir()) == ["c", "q", "run_one.sh"]
    dibs("sweep", "plan", "q", *PLACE, *COMMAND)
    before = sorted((bench / "s").rglob("*"))
    (bench / "c/new.toml").write_text("lr = 3\n")
    append(bench / "q", "c/new.toml t 1\n")
    assert "version 1: would be changed" in dibs("sweep", "plan", "q", *PLACE, "--dry-run").stdout
    assert sorted((bench / "s").rglob("*")) == before


def test_a_toml_roster_says_all_of_it(dibs: Call, bench: Path) -> None:
    (bench / "r.toml").write_text(
        'command = "./run_one.sh {cfg} --lr {lr}"\nartifacts = ["best.pth", "m*.json"]\ntime_limit = "2h"\nmemory = "4G"\n'
        'naming = "{task}_{lr}"\nepochs = 3\nisolate = true\n'
        "[[cell]]\ncfg = 'c/a.toml'\ntask = 't'\nlr = 0.1\n[[cell]]\ncfg = 'c/a.toml'\ntask = 't'\nlr = 0.2\ncost = 7\n"
    )
    answer = json.loads(dibs("sweep", "plan", "r.toml", *PLACE, "--json").stdout)
    assert [cell["name"] for cell in answer["cells"]] == ["t_0.1", "t_0.2"]
    assert answer["cells"][0]["fields"] == {"cfg": "c/a.toml", "task": "t", "lr": 0.1, "epochs": 3}
    task = planned().task
    assert (task.words, task.artifacts) == (("./run_one.sh", "{cfg}", "--lr", "{lr}"), ("best.pth", "m*.json"))
    assert (task.time_s, task.memory_bytes, task.isolate) == (7200.0, 4 << 30, True)
    assert "nothing has changed" in dibs("sweep", "plan", "r.toml", *PLACE).stdout
    (bench / "r.toml").write_text((bench / "r.toml").read_text().replace('"2h"', '"two"'))
    assert "r.toml: time_limit: 'two' is not a duration" in dibs("sweep", "plan", "r.toml", *PLACE, code=2).stderr


def test_a_shell_line(dibs: Call, bench: Path) -> None:
    dibs("sweep", "plan", "q", *PLACE, "--shell", "--", "echo {cfg} > {out}/x")
    assert (planned().task.words, planned().task.shell, planned().task.scripts) == (("echo {cfg} > {out}/x",), True, {})
    done = dibs("sweep", "plan", "q", "--store", "s", "--name", "B", "--shell", "--", "echo '{cfg}'", code=2)
    assert "write it without quotes around it" in done.stderr


def test_budget(dibs: Call, bench: Path) -> None:
    sizes = ("--checkpoint-size", "900000T", "--scratch", "1G")
    said = dibs("sweep", "plan", "q", *PLACE, *sizes, *COMMAND, code=4).stderr
    assert "the disks are too small: " in said
    assert f"{bench}/s (final) and {bench}/s (work) would take " in said
    assert "or say --over-budget" in said
    assert not (bench / "s/sweep").exists()
    said = dibs("sweep", "plan", "q", *PLACE, *sizes, "--over-budget", *COMMAND).stdout
    assert "too small  " in said
    answer = json.loads(dibs("sweep", "plan", *PLACE, "--over-budget", "--json").stdout)
    assert answer["budget"]["final"]["needed_bytes"] == 2 * 900000 << 40
    assert answer["budget"]["work"]["needed_bytes"] == (2 * 900000 << 40) + (1 << 30)
    assert answer["budget"]["work"]["place"] == str(bench / "s")


def test_an_assignment_is_written_as_queues_that_name_the_same_cells(dibs: Call, bench: Path) -> None:
    (bench / "q").write_text("".join(f"'w {n}x' t {n}\n" for n in range(1, 8)))
    hosts = ("--host", "slow", "--host", "fast=3", "--write-queues", "d", "--name", "x{epochs}")
    answer = json.loads(dibs("sweep", "plan", "q", *PLACE, *hosts, "--json", "--", "./run_one.sh").stdout)
    assert planned().hosts == {"slow": 1.0, "fast": 3.0}
    assert (bench / "d/fast.queue").read_text().splitlines()[0] == "'w 7x' t 7"
    shares = {each["host"]: each["cells"] for each in answer["assignment"]["hosts"]}
    for host, cells in shares.items():
        assert [cell.name for _, cell in cells_named(planned(), f"d/{host}.queue", bench)] == cells
    assert sorted(name for cells in shares.values() for name in cells) == [f"x{n}" for n in range(1, 8)]
    assert answer["assignment"]["bound"] <= answer["assignment"]["finish"]
    append(bench / "d/fast.queue", "v t 9\n")
    with pytest.raises(ValueError, match=r"d/fast.queue:\d+: the sweep A has no cell 'x9': plan it first"):
        cells_named(planned(), "d/fast.queue", bench)
    done = dibs("sweep", "plan", *PLACE, "--host", "q", "--write-queues", ".")
    assert "queue      " + str(bench / "q.queue") in done.stdout
    assert "finish     28 epochs of a host of speed 1; no assignment is done before 28\n" in done.stdout


def test_other_columns_are_written_as_csv(dibs: Call, bench: Path) -> None:
    (bench / "r.csv").write_text("name,cfg,lr\none,c/a.toml,0.1\ntwo,c/a.toml,\n")
    dibs("sweep", "plan", "r.csv", *PLACE, "--hosts", "h", "--write-queues", "d", "--", "./run_one.sh", code=2)
    (bench / "h").write_text("# hosts\na 1\n")
    dibs("sweep", "plan", "r.csv", *PLACE, "--hosts", "h", "--write-queues", "d", "--", "./run_one.sh")
    assert (bench / "d/a.csv").read_text() == "name,cfg,lr\none,c/a.toml,0.1\ntwo,c/a.toml,\n"
    assert [cell.name for _, cell in cells_named(planned(), "d/a.csv", bench)] == ["one", "two"]
    assert [line for line, _ in cells_named(planned(), str(bench / "r.csv"), bench)] == [2, 3]


def test_a_column_of_a_csv_that_is_empty_everywhere_is_absent(dibs: Call, bench: Path) -> None:
    for name, between in (("r.csv", ","), ("r.tsv", "\t")):
        (bench / name).write_text(f"# rates\ncfg{between}note{between}cost\nc/a.toml{between}{between}3\n")
        place = ("--store", "s", "--name", name.replace(".", "-"))
        said = dibs(
            "sweep", "plan", name, *place, "--dry-run", "--", "./run_one.sh", "{cfg}", "--note", "{note}"
        ).stdout
        assert said.splitlines()[0] == f"{bench}/run_one.sh c/a.toml"
        dibs("sweep", "plan", name, *place, "--", "./run_one.sh", "{cfg}", "--note", "{note}")
        assert "nothing has changed" in dibs("sweep", "plan", *place).stdout
        refused = dibs(
            "sweep", "plan", name, "--store", "s", "--name", "B", "--", "./run_one.sh", "{cost}", code=2
        ).stderr
        assert "{cost} in '{cost}' is nothing that could be filled in" in refused


def test_ten_thousand_lines(dibs: Call, bench: Path) -> None:
    (bench / "q").write_text("".join(f"w{n} t {n % 7 + 1}\n" for n in range(10_000)))
    answer = json.loads(dibs("sweep", "plan", "q", *PLACE, "--host", "a", "--host", "b=2", "--json", *COMMAND).stdout)
    assert len(answer["to_run"]) == 10_000
    append(bench / "q", "w5 t 1\n")
    assert "q:6 (planned before) and q:10001: both are 'w5'" in dibs("sweep", "plan", "q", *PLACE, code=2).stderr


def test_settings_and_variables_name_the_sweep(dibs: Call, bench: Path) -> None:
    (bench / "dibs.toml").write_text('store = "s"\nsweep = "A"\n')
    dibs("sweep", "plan", "q", "--name", "{task}-{stem}", *COMMAND)
    assert [cell.name for cell in planned().cells] == ["seg-a", "seg-b"]
    dibs("sweep", "plan", "q", *COMMAND, DIBS_SWEEP="my sweep")
    assert newest_plan(Store("s"), "my sweep").sweep == "my sweep"
    (bench / "dibs.toml").unlink()
    assert (
        "no name of the sweep: say --name NAME" in dibs("sweep", "plan", "q", "--store", "s", *COMMAND, code=2).stderr
    )


def test_isolation_is_said(dibs: Call, bench: Path) -> None:
    said: Any = dibs("sweep", "plan", "q", *PLACE, "--deny-read", "held-out", *COMMAND).stdout
    assert "isolation  enforced (Landlock" in said or "isolation  advisory (" in said
    assert (planned().task.isolate, planned().task.deny_read) == (True, (str(bench / "held-out"),))


def test_on_a_host_without_the_program_lines_are_appended_all_the_same(dibs: Call, first: Path) -> None:
    (first / "run_one.sh").unlink()
    append(first / "q", "word t 1\n")
    dibs("sweep", "plan", "q", *PLACE)
    assert planned().cells[2].name == "word"
    assert planned().task.scripts == {"./run_one.sh": sha("#!/bin/sh\n")}
    (first / "r.csv").write_text("cfg,task,lr,LR\nx,t,1,2\n")
    assert "'LR' and 'lr' would both be DIBS_PARAM_LR" in dibs("sweep", "plan", "r.csv", *PLACE, code=2).stderr


def finish(n: int, took_s: float, host: str, state: str = "done") -> None:
    """A trial as its owner leaves it."""
    store, cell = Store("s"), planned().cells[n]
    closed = {"state": state, "took_s": took_s, "who": {**store.machine.who("x"), "host": host}}
    assert claim_attempt(
        store, SweepKeys("A"), n, 0, cell.fields, Terms(0, 2, None, None, 60.0), closed=closed if state != "running" else None
    )  # fmt: skip


def test_costs_are_learned_from_what_is_finished(dibs: Call, bench: Path) -> None:
    (bench / "q").write_text("w1 seg 10\nw2 seg 10\nw3 seg 40\nw4 seg 20\nw5 seg 1\nw6 seg 1\n")
    dibs("sweep", "plan", "q", *PLACE, *COMMAND)
    finish(0, 100.0, "slow")
    finish(1, 50.0, "fast")
    finish(4, 0.0, "slow", "failed")
    finish(5, 0.0, "", "running")
    answer = json.loads(dibs("sweep", "plan", *PLACE, "--json").stdout)
    assert answer["cost"] == {"unit": "s", "learned": 2, "guessed": 0}
    assert (answer["to_run"], answer["running"]) == (["w3", "w4"], ["w6"])
    hosts = {each["host"]: each for each in answer["assignment"]["hosts"]}
    assert (hosts["fast"]["cells"], hosts["slow"]["cells"]) == (["w3"], ["w4"])
    assert hosts["fast"]["finish"] == pytest.approx(200)
    assert hosts["slow"]["finish"] == pytest.approx(200)
    said = dibs("sweep", "plan", *PLACE).stdout
    assert "cells      6: 2 to run, 1 running, 3 settled" in said
    assert "finish     3m 20s; no assignment is done before 3m 20s" in said
    assert "learned from 2 finished cells" in said
