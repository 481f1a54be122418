"""``dibs`` on a study of several goals and constraints: what is asked for, and what is printed and refused."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dibs import Study

Call = Callable[..., Result]
TWO = """
import dibs
goal = {goal}
sampler = "sobol"
space = dibs.Space(x=dibs.Float(0, 1), y=dibs.Float(0, 1))
def objective(trial):
    x, y = trial.point["x"], trial.point["y"]
    if trial.n == 3:
        return [x]
    trial.done({score}, constraints={{"gb\\x1b[31m": x + y - {bound}}})
"""
RUN = ("--store", "s", "--study", "two", "--trials", "12", "--seed", "1", "--quiet")


def searching(tmp_path: Path, goal: str = '["min", "max"]', score: str = "[x, x * y]", bound: float = 1.0) -> str:
    path = tmp_path / "two.py"
    path.write_text(TWO.format(goal=goal, score=score, bound=bound))
    return str(path)


@pytest.fixture
def two(dibs: Call, tmp_path: Path) -> Call:
    """A store ``s`` with a study ``two`` of twelve trials, one failed; call ``dibs`` in it."""
    done = dibs("run", searching(tmp_path), *RUN, code=1)
    assert "that no other one beats, goals min, max" in done.stdout
    return dibs


def front() -> list[int]:
    return [result.n for result in Study("s", "two").front()]


def test_best_is_the_front_as_a_table_json_and_points(two: Call) -> None:
    assert 1 < len(front()) < 11
    lines = two("best", "--store", "s").stdout.splitlines()
    assert lines[0] == f"{len(front())} trials that no other one beats, goals min, max"
    assert lines[1].split() == ["trial", "scores", "constraints", "took", "me", "point"]
    assert [int(line.split()[0]) for line in lines[2:]] == front()
    rows = json.loads(two("best", "--store", "s", "--json").stdout)
    assert [row["n"] for row in rows] == front()
    assert [(row["goal"], row["score"], len(row["scores"])) for row in rows] == [(["min", "max"], None, 2)] * len(rows)
    points = two("best", "--store", "s", "--point-only").stdout.splitlines()
    assert [json.loads(line) for line in points] == [row["point"] for row in rows]


def test_no_order_is_made_up(two: Call) -> None:
    assert "no order by several goals" in two("best", "--store", "s", "--top", "2", code=2).stderr
    assert "sort by n" in two("trials", "--store", "s", "--sort", "score", code=2).stderr


def test_trials_show_every_score_and_constraint(two: Call) -> None:
    lines = two("trials", "--store", "s").stdout.splitlines()
    assert lines[0].split() == ["trial", "attempt", "state", "scores", "took", "me", "point"]
    results = Study("s", "two").results()
    assert ", ".join(f"{score:.6g}" for score in results[0].scores) in lines[1]
    assert "(broken)" in "".join(lines)
    rows = json.loads(two("trials", "--store", "s", "--json").stdout)
    assert [tuple(row["scores"]) for row in rows] == [result.scores for result in results]
    assert [row["constraints"] for row in rows] == [result.constraints for result in results]
    table = list(csv.DictReader(io.StringIO(two("trials", "--store", "s", "--csv").stdout.replace("\\x1b", "\x1b"))))
    for line, result in zip(table, results, strict=True):
        assert line["score"] == ""
        assert [line["score.0"], line["score.1"]] == [str(score) for score in result.scores or ("", "")]
        assert line["constraint.gb\x1b[31m"] == (str(*result.constraints.values()) if result.constraints else "")


def test_show_and_status_name_goals_scores_and_the_front(two: Call) -> None:
    n = front()[0]
    text = two("show", str(n), "--store", "s", "--replay").stdout
    assert "(goals min, max)" in text.splitlines()[0]
    assert "constraint gb" in text
    assert ": met" in text
    assert "a trial ends with 2 scores" in two("show", "3", "--store", "s").stdout
    text = two("status", "--store", "s", "--study", "two").stdout
    assert "  goal      min, max, sampler sobol" in text
    assert sum(f", trial {each}: x=" in text for each in front()) == min(5, len(front()))
    told = json.loads(two("status", "--store", "s", "--study", "two", "--json").stdout)
    assert (told["best"], [row["n"] for row in told["front"]]) == (None, front())
    assert f"front {len(front())}" in two("status", "--store", "s").stdout


def test_nothing_of_a_constraint_is_obeyed_by_a_terminal(two: Call) -> None:
    for words in (["best"], ["trials"], ["trials", "--csv"], ["show", str(front()[0])], ["status", "--study", "two"]):
        done = two(*words, "--store", "s")
        assert "\x1b" not in done.stdout
        assert "\x1b" not in done.stderr


@pytest.mark.parametrize("goal", ["min,mi", "min,", "", ",", "min,max,", "MIN", "min;max", ",".join(["min"] * 9)])
def test_goals_that_cannot_be_meant(dibs: Call, tmp_path: Path, goal: str) -> None:
    assert "is no goal" in dibs("run", searching(tmp_path), *RUN, "--goal", goal, code=2).stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("goal", ['["min"]', "[]", '"both"', "{'min'}", "3"])
def test_a_file_with_goals_that_cannot_be_meant(dibs: Call, tmp_path: Path, goal: str) -> None:
    told = dibs("run", searching(tmp_path, goal), *RUN, code=2).stderr
    assert "two.py" in told
    assert 'goal = "min"' in told


@pytest.mark.parametrize("goal", ['"min, max"', '["min", "max"]'])
def test_the_flag_and_dibs_toml_say_several_goals(dibs: Call, tmp_path: Path, goal: str) -> None:
    file = searching(tmp_path, "None")
    (tmp_path / "dibs.toml").write_text(f"goal = {goal}\n")
    dibs("run", file, *RUN, code=1)
    assert Study("s", "two").goal == ("min", "max")
    assert "goal" in dibs("run", file, *RUN, "--goal", "max,min", code=4).stderr
    assert (
        "several goals has none"
        in dibs("run", file, *RUN[:2], "--study", "b", *RUN[4:], "--pruner", "median", code=2).stderr
    )


def test_best_leaves_out_what_breaks_a_constraint(dibs: Call, tmp_path: Path) -> None:
    dibs("run", searching(tmp_path, '"max"', "x * y"), *RUN, code=1)
    best = Study("s", "two").best()
    assert max(result.score or 0 for result in Study("s", "two").results()) > (best.score or 0)
    text = dibs("best", "--store", "s").stdout
    assert text.startswith(f"{best.score:.6g}  trial {best.n}, goal max\n  x  ")
    assert text.splitlines()[-1].startswith("  constraints met: gb\\x1b[31m=-")
    first = dibs("trials", "--store", "s", "--sort", "score").stdout.splitlines()[1]
    assert int(first.split()[0]) == best.n


def test_where_nothing_meets_its_constraints_the_code_is_5(dibs: Call, tmp_path: Path) -> None:
    done = dibs("run", searching(tmp_path, bound=-1.0), *RUN, code=1)
    assert "no result yet: no done trial meets its constraints" in done.stdout
    done = dibs("best", "--store", "s", code=5)
    assert (done.stdout, "comes nearest" in done.stderr, "\x1b" in done.stderr) == ("", True, False)
