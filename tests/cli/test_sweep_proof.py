"""``dibs sweep status reconcile pull verify retry release``: what a person reads, what a script reads, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from tests.sweep.cells import NAME, begin, edited, fail, final_of, finish, planned

from dibs import Store
from dibs.store import SweepKeys
from dibs.sweep import Plan, add_plan

Call = Callable[..., Result]


@pytest.fixture
def store() -> Store:
    return Store("s")


@pytest.fixture
def sweep(store: Store, dibs: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call ``dibs sweep`` about the sweep of that store."""
    monkeypatch.setenv("DIBS_STORE", "s")
    monkeypatch.setenv("DIBS_SWEEP", NAME)
    return lambda *words, code=0: dibs("sweep", *words, code=code)


def mixed(store: Store) -> Plan:
    plan = planned(
        store, "good", "busy", "later", "broken", "nocopy", "gone", scripts={"./t.sh": "cd" * 32}, isolate=True
    )
    plan = plan.next(cells=tuple(replace(each, dropped=each.name == "gone") for each in plan.cells))
    assert add_plan(store, plan)
    finish(store, plan, "good")
    begin(store, plan, "busy", me="worker-7")
    fail(store, plan, "broken", "code error", reason="code error: exit status 3: ValueError: \x1b[31mred")
    fail(store, plan, "nocopy", "sync failed")
    return plan


def test_status_for_people(store: Store, sweep: Call) -> None:
    mixed(store)
    text = sweep("status").stdout
    for line in (
        "cells     5: 1 done, 1 running, 1 not begun, 1 failed, 1 unsynced, 20 %",
        "dropped   1 more", "plan      version 1", "isolated  ",
        "script    t.sh cdcdcdcdcdcd..., 0 cells",
        "not the plan's, 3 cells: good, broken, nocopy",
        "worker-7", "not copied", "sync failed", "broken", "ValueError: \\x1b[31mred", "Last moved",
    ):  # fmt: skip
        assert line in text, text
    assert "\x1b" not in text


def test_status_for_scripts(store: Store, sweep: Call) -> None:
    mixed(store)
    body = json.loads(sweep("status", "--json").stdout)
    assert (body["active"], body["complete"], body["verified"], body["released"]) == (5, False, False, None)
    assert [run["cell"] for run in body["running"]] == ["busy"]
    assert [(line["cell"], line["cause"]) for line in body["failed"] + body["unsynced"]] == [
        ("broken", "code error"), ("nocopy", "sync failed"),
    ]  # fmt: skip
    assert [(use["digest"][:4], use["planned"], use["count"]) for use in body["scripts"]] == [
        ("cdcd", True, 0), ("abab", False, 3),
    ]  # fmt: skip
    assert body["cells"][0] == ["good", "done"]
    assert body["isolation"].partition(" ")[0] in ("enforced", "advisory")


def test_status_shows_what_still_writes_although_nobody_waits_for_it(store: Store, sweep: Call) -> None:
    plan = planned(store, "a", "b")
    first = begin(store, plan, "a")
    begin(store, plan, "a", me="later")
    finish(store, plan, "a", attempt=first)
    begin(store, plan, "b", me="other")
    assert add_plan(store, plan.next(cells=(plan.cells[0], replace(plan.cells[1], dropped=True))))
    lines = [line.split() for line in sweep("status").stdout.splitlines()]
    rows = {line[0]: " ".join(line) for line in lines if line and line[0] in ("a", "b")}
    assert rows["a"].startswith("a 1 later")
    assert rows["a"].endswith("its cell is done")
    assert rows["b"].startswith("b 0 other")
    assert rows["b"].endswith("its cell is dropped")
    running = json.loads(sweep("status", "--json").stdout)["running"]
    assert [(run["cell"], run["although"]) for run in running] == [("a", "done"), ("b", "dropped")]


def test_status_says_what_does_not_read(store: Store, sweep: Call) -> None:
    finish(store, planned(store, "a"), "a")
    (Path("s") / SweepKeys(NAME).attempt(0, 0)).write_bytes(b"{")
    assert "1 do not read:" in sweep("status").stdout


def test_from_the_results_to_the_release(store: Store, sweep: Call) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    said = sweep("release", "--approve", "Jo", code=1).stdout
    assert "never ran: b" in said
    assert "no pull was verified" in said
    assert "never ran" in sweep("reconcile", code=1).stdout
    assert "not here" in sweep("pull", "d", code=1).stdout
    assert "it is waiting" in sweep("verify", "d", code=1).stdout
    finish(store, plan, "b")
    assert "every result is there" in sweep("reconcile").stdout
    assert "sizes only" in sweep("reconcile", "--quick").stdout
    assert "2 of 2 cells in d: 3 files copied" in sweep("pull", "d").stdout
    assert "loaded: 4 json, 2 npz" in sweep("verify", "d", "--expect", "2").stdout
    assert "next      dibs sweep release --approve NAME --store " in sweep("status").stdout
    assert "nobody has given a name" in sweep("release", code=2).stdout
    assert "is released: 2 cells, plan 0" in sweep("release", "--approve", "Jo", "--verified", "d").stdout
    assert "was released before" in sweep("release", "--approve", "Ann").stdout
    assert "approved by Jo" in sweep("status").stdout


def test_everything_for_scripts(store: Store, sweep: Call) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    fail(store, plan, "b", "out of memory (host)")
    body = json.loads(sweep("reconcile", "--json", code=1).stdout)
    assert (body["clean"], body["proven"], body["findings"][0]["kind"]) == (False, ["a"], "failed")
    assert json.loads(sweep("retry", "--json", "--dry-run").stdout)["freed"] == ["b"]
    assert json.loads(sweep("retry", "--json").stdout)["cells"][0]["how"] == "release"
    body = json.loads(sweep("pull", "d", "--json", code=1).stdout)
    assert (body["cells"], body["troubles"][0]["cell"]) == (["a"], "b")
    body = json.loads(sweep("verify", "d", "--json", code=1).stdout)
    assert (body["passed"], body["faults"][0]["kind"]) == (False, "roster")
    body = json.loads(sweep("release", "--json", code=1).stdout)
    assert (body["released"], len(body["missing"])) == (False, 3)


def test_a_corrupted_result_is_found_and_run_again(store: Store, sweep: Call) -> None:
    plan = planned(store, "a", "b")
    for name in "ab":
        finish(store, plan, name)
    there = final_of(store, plan, "b")
    assert there is not None
    (there / "best.npz").write_bytes(b"")
    assert "dibs sweep retry b" in sweep("reconcile", code=1).stdout
    assert "next      dibs sweep reconcile --store " in sweep("status").stdout
    freed = sweep("retry").stdout
    assert "free, as a new trial" in freed
    assert f"1 may be taken up (b): dibs sweep run --store {store.url} --name " in freed
    assert "next      dibs sweep run --store " in sweep("status").stdout
    assert "it waits already" in sweep("retry", "b", code=1).stdout
    assert "nothing has failed" in sweep("retry").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("retry", "zz"), "has no cell 'zz': there is a\n"),
        (("retry", "--force", "aa"), "has no cell 'aa': did you mean a?"),
        (("pull", "."), "is not empty"),
        (("verify", "nowhere"), "MANIFEST.json cannot be read"),
        (("verify", "d", "--loader", "x"), "is no loader"),
        (("release", "--approve", "Jo", "--verified", "nowhere"), "neither a folder"),
        (("status", "--name", "other"), "there is no sweep 'other'"),
    ],
)
def test_a_mistake_is_one_line(store: Store, sweep: Call, words: tuple[str, ...], said: str) -> None:
    planned(store, "a")
    told = sweep(*words, code=2)
    assert (told.stdout, told.stderr.count("\n"), said in told.stderr) == ("", 1, True)


@pytest.mark.parametrize("verb", ["status", "reconcile", "pull d", "verify d", "retry", "release"])
def test_every_verb_wants_a_sweep(store: Store, dibs: Call, verb: str) -> None:
    assert "no name of the sweep" in dibs("sweep", *verb.split(), "--store", "s", code=2).stderr


def test_an_answer_is_told_and_stands_in_the_list(store: Store, sweep: Call) -> None:
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    finish(store, plan, "b", attempt=edited(begin(store, plan, "b")))
    assert "dibs sweep accept b --approve NAME" in sweep("reconcile", code=1).stdout
    assert "nobody has given a name" in sweep("accept", "b", code=2).stderr
    assert "nothing to accept about a" in sweep("accept", "a", "--approve", "Jo", code=2).stderr
    said = sweep("accept", "b", "--approve", "Jo", "--why", "a \x1b[31mcomment").stdout
    assert said.startswith("b: accepted, Jo answers for it (a \\x1b[31mcomment): its config was edited while it ran")
    assert "b: was accepted before, Jo answers" in sweep("accept", "b", "--approve", "Ann").stdout
    told = json.loads(sweep("accept", "b", "--approve", "Ann", "--json").stdout)["accepted"][0]
    assert (told["cell"], told["kind"], told["approve"], told["already"]) == ("b", "config changed", "Jo", True)
    text = sweep("reconcile").stdout
    assert "2 of 2 cells proven" in text
    assert "accepted by Jo" in text
