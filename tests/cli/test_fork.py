"""``dibs fork``: spaces from a search file or from TOML, what is left out said by reason, and said again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dibs import Study

Call = Callable[..., Result]
WIDER = """
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 2), kind=dibs.Choice("a", "b", (1, 2), True), warm=dibs.Choice(True, 1, "1"))
def objective(trial):
    return trial.point["x"]
"""


@pytest.fixture
def wider(tmp_path: Path) -> str:
    path = tmp_path / "it's wider.py"
    path.write_text(WIDER)
    return str(path)


def test_a_space_from_a_search_file(studied: Call, wider: str) -> None:
    done = studied("fork", "spam", "spam 2", "--store", "s", "--space", wider)
    assert done.stdout == (
        "0 results of spam attached to spam 2; 0 were there\n"
        "  left out: 4 without warm, which is new: fill says what it was\n"
    )
    assert done.stderr == f"to go on: dibs run {shlex.quote(wider)} --store s --study 'spam 2' --trials N\n"
    done = studied("fork", "spam", "spam 2", "--store", "s", "--space", wider, "--fill", 'warm="1"')
    assert done.stdout == "4 results of spam attached to spam 2; 0 were there\n"
    done = studied("fork", "spam", "spam 2", "--store", "s", "--space", wider, "--fill", 'warm="1"', "--json")
    told = {"study": "spam 2", "of": "spam", "attached": 0, "there": 4, "left": {}}
    assert json.loads(done.stdout) == told
    fork = Study("s", "spam 2")
    assert [point["warm"] for point, _ in fork.finished()] == ["1"] * 4
    assert studied("run", wider, "--store", "s", "--study", "spam 2", "--trials", "1", "--quiet").exit_code == 0


def test_a_space_from_toml_and_a_parameter_that_is_gone(studied: Call, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text("x = {float = [0.0, 2.0]}\n")
    words = ("fork", "spam", "two", "--store", "s", "--space", "space.toml")
    done = studied(*words)
    assert "left out: 4 with kind, which is gone" in done.stdout
    assert (
        done.stderr == "to go on: dibs exec --store s --study two --trials N -- COMMAND\n"
    )  # TOML has no objective to run
    assert studied(*words, "--drop", "kind").stdout == "4 results of spam attached to two; 0 were there\n"


def test_a_space_may_be_written_as_exec_takes_it(studied: Call, tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text('{"x": {"float": [0.0, 2.0]}}')
    (tmp_path / "space.yaml").write_text("x: {float: [0.0, 2.0]}\n")
    for at, file in enumerate(("space.json", "space.yaml")):
        done = studied("fork", "spam", f"as {at}", "--store", "s", "--space", file, "--drop", "kind")
        assert done.stdout.startswith("4 results")


def test_a_study_of_programs_goes_on_with_one(studied: Call, tmp_path: Path) -> None:
    script = tmp_path / "score.sh"
    script.write_text("#!/bin/sh\necho '{\"score\": 0.5}'\n")
    script.chmod(0o755)
    (tmp_path / "space.toml").write_text("x = {float = [0.0, 2.0]}\n")
    words = ("--store", "s", "--study", "programs", "--goal", "min", "--trials", "1")
    studied("exec", "--space", "space.toml", *words, "--", "./score.sh", "{x}")
    done = studied("fork", "programs", "two", "--store", "s")
    assert done.stderr == "to go on: dibs exec --store s --study two --trials N -- COMMAND\n"
    assert studied("fork", "spam", "three", "--store", "s").stderr.startswith("to go on: dibs run FILE --store s ")


def test_without_a_space_it_is_the_same_search_begun_again(studied: Call) -> None:
    assert studied("fork", "spam", "two", "--store", "s", "--seed", "5").stdout.startswith("4 results")
    definition = Study("s", "two").definition
    assert definition is not None
    assert definition.seed == 5


def test_the_seed_and_the_study_of_a_dibs_toml_are_the_old_ones(studied: Call, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "./s"\nstudy = "spam"\nseed = 1\n')
    assert studied("fork", "spam", "two").stderr.endswith("to go on: dibs run FILE --study two --trials N\n")
    one, two = Study("s", "spam").definition, Study("s", "two").definition
    assert one is not None
    assert two is not None
    assert one.seed == 1 != two.seed
    assert "'NEW'" in studied("fork", "three", code=2).stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("fork", "nope", "two"), 2, "no study 'nope' in "),
        (("fork", "nope", "two"), 2, "(there: 'spam')\n"),
        (("fork", "spam", "spam"), 2, "another name"),
        (("fork", "spam", ""), 2, "name"),
        (("fork", "spam", "two", "--space", "gone.py"), 2, "no file"),
        (("fork", "spam", "two", "--space", "gone.toml"), 2, "cannot be read"),
        (("fork", "spam", "two", "--space", "bad.toml"), 2, "TOML"),
        (("fork", "spam", "two", "--space", "raw.toml"), 2, "not UTF-8"),
        (("fork", "spam", "two", "--fill", "x"), 2, "NAME=VALUE"),
        (("fork", "spam", "two", "--fill", "y=1"), 2, "'y' is no parameter of the new space; it has 'kind', 'x'"),
        (("fork", "spam", "two", "--fill", "x=0.5"), 2, "every old trial"),
        (("fork", "spam", "two", "--fill", "x=much"), 2, "not a number"),
        (("fork", "spam", "two", "--drop", "y"), 2, "no such parameter"),
        (("fork", "spam", "other"), 4, "created with seed"),
        (("fork", "spam"), 2, "NEW"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    studied: Call, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "bad.toml").write_text("x = [")
    (tmp_path / "raw.toml").write_bytes(b"\xff\xfe")
    if "other" in words:
        studied("fork", "spam", "other", "--store", "s", "--seed", "9")
        words += ("--seed", "8")
    done = studied(*words, "--store", "s", code=code)
    assert said in done.stderr
    assert done.stdout == ""
    assert "two" not in Study("s", "spam").store.studies()


def test_names_that_would_steer_a_terminal(studied: Call, tmp_path: Path) -> None:
    name = "\x1b[31mred\x07"
    (tmp_path / "space.toml").write_text('"a\\u202Eb" = {float = [0.0, 2.0]}\nx = {float = [0.0, 1e-9]}\n')
    output = studied("fork", "spam", name, "--store", "s", "--space", "space.toml").output
    output += studied("fork", "spam", name + "2", "--store", "s", "--space", "space.toml", "--drop", "kind").output
    assert {"\x1b", "\x07", "\u202e"} & set(output) == set()
    assert name in Study("s", "spam").store.studies()


def test_who_joins_with_another_space_is_told(studied: Call, wider: str) -> None:
    said = studied("run", wider, "--store", "s", "--study", "spam", "--trials", "5", code=4).stderr
    assert "`dibs fork spam NEW --space FILE`" in said
