"""The checker of raw files finds each thing it is there for, and nothing in a study where all is well."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dibs import Store, Study
from dibs._canon import digest, to_json
from dibs.search import Sobol
from dibs.study import take
from dibs.study._attempt import Attempt
from dibs.study._functions import _place, _taken
from dibs.testing import _raw_check
from dibs.testing._raw_check import check
from dibs.testing._torture_objective import FAILURE, SPACE, STUDY
from dibs.upkeep import check as check_store
from dibs.view import Source, results_table, study_status

WISH = {"x": 0.5, "rate": 1e-3, "depth": 3, "kind": 1.0}
BASE = f"store/study/{STUDY}"


def text_of(point: Any) -> dict[str, Any]:
    return {name: to_json(value) for name, value in point.items()}


class Evidence:
    """A folder as a torture leaves it, with hands to spoil it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def say(self, file: str, **facts: Any) -> None:
        path = self.folder / file
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as lines:
            lines.write(json.dumps(facts) + "\n")

    def told(self, what: str, n: int, a: int, me: str = "w1", **facts: Any) -> None:
        self.say(f"journal/{me}-1.jsonl", me=me, pid=1, what=what, n=n, a=a, **facts)

    def torment(self, what: str, **facts: Any) -> None:
        self.say("torment.jsonl", what=what, **facts)

    def record(self, n: int, a: int = 0) -> Path:
        return self.folder / BASE / ("again" if a else "trial") / "000000" / f"{n:08d}-{a}.json"

    def change(self, n: int, a: int = 0, **changes: Any) -> None:
        """Rewrite a record, and its copy in the roll if there is one."""
        for path in [self.record(n, a), *(self.folder / BASE / "roll").rglob("*.json")]:
            body = json.loads(path.read_text())
            inner = body if path == self.record(n, a) else body["records"].get(f"{n}-{a}")
            if inner is not None:
                inner.update(changes)
            path.write_text(json.dumps(body))

    def facts(self, change: Callable[[dict[str, Any]], Any]) -> None:
        path = self.folder / "facts.json"
        body = json.loads(path.read_text())
        change(body)
        path.write_text(json.dumps(body))


def build(folder: Path) -> Evidence:
    """Four trials: one with a file and in a roll, one whose first owner was killed, one failed, one wished for."""
    evidence = Evidence(folder)
    study = Study(folder / "store", STUDY, SPACE, goal="min", sampler=Sobol(), seed=5)
    study.view.rolls.threshold = 1
    sampler = Sobol(seed=5)

    def claim(n: int, point: Any, me: str = "w1") -> Attempt:
        store = Store(folder / "store")  # a process of its own
        taken = take(store, point, study=STUDY, trial=n, goal="min", of=4, me=me)
        assert taken is not None
        mine = _taken[_place(store), STUDY, n]
        assert isinstance(mine, Attempt)
        point = text_of(taken.point)
        evidence.told("claimed", n, mine.attempt, me, nonce=mine.nonce, point=point, seed=mine.seed)
        return mine

    def close(mine: Attempt, state: str, score: float | None) -> None:
        mine.close(state, score=score, reason=FAILURE if state == "failed" else None)
        evidence.told("told", mine.n, mine.attempt, "w1", state=state, score=score)

    first = claim(0, sampler.ask(SPACE, 0))
    (folder / "file").write_text("state")
    evidence.told("saved", 0, 0, name="state", digest=first.keep("state", folder / "file"))
    close(first, "done", 0.5)
    study.view.refresh()
    study.view.publish("w1")
    study.view.rolls.threshold = 1000
    claim(1, sampler.ask(SPACE, 1), "w0")
    evidence.torment("killed", me="w0", pid=1)
    evidence.torment("looked", code=0, why="")
    study.view.notes.release(1, 0, None)
    close(claim(1, sampler.ask(SPACE, 1)), "done", 1.5)
    close(claim(2, sampler.ask(SPACE, 2)), "failed", None)
    study.enqueue(WISH)
    evidence.say("journal/w2-1.jsonl", what="wished", me="w2", pid=1, digest=digest(text_of(WISH)), point=text_of(WISH))
    for trial in study.trials(4):
        evidence.told(
            "claimed", 3, 0, nonce=trial._attempt.nonce, point=text_of(trial.point), seed=trial.seed
        )  # fmt: skip
        trial.done(3.5, constraints={"gb": -0.5, "a": 1})
        evidence.told("told", 3, 0, state="done", score=3.5, constraints={"gb": -0.5, "a": 1.0})
    source = Source.of(Store(folder / "store"), STUDY)
    facts = {
        "store": str(folder / "store"), "study": STUDY, "of": 4, "reasons": [FAILURE],
        "points": [text_of(sampler.ask(SPACE, n)) for n in range(4)], "status": study_status(source).to_json(),
        "trials": [row.to_json() for row in results_table(source)],
        "check": check_store(source.store, deep=True).to_json(),
    }  # fmt: skip
    (folder / "facts.json").write_text(json.dumps(facts))
    return evidence


@pytest.fixture(scope="module")
def _built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evidence")
    build(folder)
    return folder


@pytest.fixture
def evidence(_built: Path, tmp_path: Path) -> Evidence:
    """A copy to spoil."""
    shutil.copytree(_built, tmp_path / "copy")
    spoilt = Evidence(tmp_path / "copy")
    spoilt.facts(lambda facts: facts.update(store=str(tmp_path / "copy/store")))
    return spoilt


def blob(evidence: Evidence) -> Path:
    return next((evidence.folder / "store/blobs").rglob("?" * 64))


def set_row(evidence: Evidence, n: int, **changes: Any) -> None:
    evidence.facts(lambda facts: facts["trials"][n].update(changes))


SPOILT: dict[str, tuple[str, str, Callable[[Evidence], Any]]] = {
    "two owners": ("once", "0-0 was given to", lambda e: e.told("claimed", 0, 0, "w9", nonce="1" * 32, point={}, seed=0)),
    "another nonce": ("once", "carries the nonce of", lambda e: e.change(3, nonce="0" * 32)),
    "one nonce twice": ("once", "carry one nonce", lambda e: e.change(3, nonce=json.loads(e.record(2).read_text())["nonce"])),
    "a wish twice": ("once", "is carried by", lambda e: e.change(2, wish=digest(text_of(WISH)))),
    "torn": ("whole", "does not parse", lambda e: e.record(3).write_text("{")),
    "a bare NaN": ("whole", "bare NaN", lambda e: e.change(3, score=float("nan"))),
    "a torn roll": ("whole", "does not parse", lambda e: next((e.folder / BASE / "roll").rglob("*.json")).write_text("")),
    "a blob gone": ("whole", "is not there", lambda e: blob(e).unlink()),
    "a blob changed": ("whole", "other bytes", lambda e: blob(e).write_text("stat")),
    "un-done": ("kept", "was told done", lambda e: e.change(3, state="running", score=None)),
    "another score": ("kept", "was done with 3.5", lambda e: e.change(3, score=3.25)),
    "a score of another type": ("kept", "was done with 3.5", lambda e: e.change(3, score=3)),
    "another constraint": ("kept", "was done with constraints", lambda e: e.change(3, constraints={"a": 1.0, "gb": 0.5})),
    "a constraint forgotten": ("kept", "has None", lambda e: e.change(3, constraints=None)),
    "gone": ("kept", "was told done", lambda e: e.record(3).unlink()),
    "a file forgotten": ("kept", "does not name it", lambda e: e.change(0, files={})),
    "a wrong copy": ("kept", "is not the record", lambda e: e.record(0).write_text(e.record(0).read_text().replace("0.5", "0.25"))),
    "one above N": ("exact", "above the largest N", lambda e: shutil.copy(e.record(3), e.record(4))),
    "a hole": ("exact", "never claimed", lambda e: e.record(2).unlink()),
    "not settled": ("exact", "is interrupted in the end", lambda e: e.change(2, state="interrupted")),
    "a gap of attempts": ("exact", "has the attempts", lambda e: e.record(1, 1).rename(e.record(1, 2))),
    "crashed": ("alone", "crashed", lambda e: e.torment("crashed", me="w5", why="exit code 1")),
    "hung": ("alone", "hung", lambda e: e.torment("hung", me="w5", why="")),
    "rescued alive": ("alone", "alive and well", lambda e: shutil.copy(e.record(3), e.record(3, 1))),
    "lost untouched": ("alone", "which nobody touched", lambda e: e.told("lost", 2, 0, why="superseded")),
    "a reader failed": ("readers", "ended with 97", lambda e: e.torment("looked", code=97, why="wrote")),
    "another answer": ("readers", "dibs says of trial 1", lambda e: set_row(e, 1, attempt=0)),
    "another end": ("readers", "says that trial 3 ended with", lambda e: set_row(e, 3, constraints={"gb": -0.5})),
    "other scores": ("readers", "says that trial 0 ended with", lambda e: set_row(e, 0, scores=[0.5, 1.0])),
    "a trial unknown": ("readers", "dibs knows 3", lambda e: e.facts(lambda facts: facts["trials"].pop())),
    "another point": ("same", "belongs there", lambda e: e.facts(lambda f: f["points"][2].update(x=0.125))),
    "a rescue's point": ("same", "another point or seed", lambda e: e.change(1, 1, seed=1)),
    "True for 1.0": ("typed", "came out as", lambda e: e.change(3, point={**text_of(WISH), "kind": True})),
    "silent damage": ("told", "does not say so", lambda e: (e.record(2).write_text(""), e.torment("damage", how="truncate", key=f"study/{STUDY}/trial/000000/00000002-0.json"))),
    "a false alarm": ("told", "which parses", lambda e: e.facts(lambda f: f["status"].update(problems=[{"key": "study/x"}]))),
    "damage unnamed": ("told", "dibs check does not say so", lambda e: e.record(2).write_text("")),
    "called a fault": ("told", "nobody touched it", lambda e: e.facts(lambda f: f["check"]["findings"].append({"kind": "gap", "key": f"study/{STUDY}/2-0", "what": "?", "fault": True}))),
    "a lost wish": ("told", "neither carried nor shown", lambda e: e.change(3, wish=None)),
    "the store's failure": ("told", "not by the objective's own doing", lambda e: e.change(2, reason="OSError: no space")),
    "another's file": ("told", "another trial's file", lambda e: e.told("wrong", 1, 1, why="load() gave another trial's file")),
}  # fmt: skip


def test_where_all_is_well_it_finds_nothing(evidence: Evidence) -> None:
    assert check(str(evidence.folder)) == []


@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_is_spoilt_is_found(spoilt: str, evidence: Evidence) -> None:
    name, says, spoil = SPOILT[spoilt]
    spoil(evidence)
    found = check(str(evidence.folder))
    assert any(sentence.startswith(f"{name}: ") and says in sentence for sentence in found), found


@pytest.mark.parametrize(
    ("how", "damage"), [("remove", lambda path: path.unlink()), ("truncate", lambda path: path.write_text("{"))]
)
def test_what_was_done_by_hand_is_outside_once_and_kept(how: str, damage: Any, evidence: Evidence) -> None:
    key = f"study/{STUDY}/trial/000000/00000002-0.json"
    damage(evidence.record(2))
    evidence.torment("damage", how=how, key=key)
    if how == "truncate":
        evidence.facts(lambda facts: facts["status"].update(problems=[{"key": key}]))
        evidence.facts(
            lambda facts: facts["check"]["findings"].append({"kind": "torn", "key": key, "what": "?", "fault": True})
        )
    assert {sentence.partition(":")[0] for sentence in check(str(evidence.folder))} <= {"exact", "readers"}


@pytest.mark.parametrize("touched", [True, False])
def test_a_wish_that_is_carried_again_because_its_record_was_damaged_is_no_fault(
    touched: bool, evidence: Evidence
) -> None:
    # the record was cut, others took its wish for one that nobody carries, and its owner wrote it whole again
    evidence.change(2, wish=digest(text_of(WISH)), point=text_of(WISH))
    if touched:
        evidence.torment("damage", how="truncate", key=f"study/{STUDY}/trial/000000/00000002-0.json")
    findings = check_store(Store(evidence.folder / "store")).to_json()
    assert [finding["key"] for finding in findings["findings"] if finding["fault"]] == [f"study/{STUDY}/3-0"]
    evidence.facts(lambda facts: facts.update(check=findings))
    told = [sentence for sentence in check(str(evidence.folder)) if "dibs check calls" in sentence]
    assert bool(told) is not touched


def test_it_runs_where_dibs_is_not_installed(evidence: Evidence, tmp_path: Path) -> None:
    alone = tmp_path / "raw_check.py"
    alone.write_text(Path(_raw_check.__file__).read_text())
    command = [sys.executable, "-I", "-S", str(alone), str(evidence.folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "nothing broken\n"
    evidence.change(3, score=3.25)
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "kept: 3-0 was done with 3.5 and has 3.25" in told.stdout
