"""history, slice, contour: what they print, in characters that every terminal has, however odd the values."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dibs import Choice, Float, Int, Space, Store, Study
from dibs.cli._marks import bar, sparkline
from dibs.cli._text import _drawn
from dibs.view import Source, best_so_far

Call = Callable[..., Result]
ESC = "\x1b[31mred\x1b[0m\u202e"


def hostile(folder: Path) -> Study:
    """A study whose names and choices would like to steer a terminal."""
    space = Space(
        {
            f"a{chr(0x202E)}b": Float(1e-150, 1e150, log=True),
            "wide": Choice(*(f"{ESC}{k:03d}" + "w" * 300 for k in range(200))),
            "[red]markup[/red]": Choice("[blue]x", (1, (2, ESC)), None, True),
            "n": Int(-(2**62), 2**62),
        }
    )
    study = Study(Store(folder / "s", create=True), "h", space, goal="max", sampler="random", seed=3)
    for trial in study.trials(30):
        with trial:
            trial.done([1.7e308, -1.7e308, 5e-324][trial.n % 3])
    return study


@pytest.mark.parametrize(
    "words",
    [
        ("history",), ("history", "--all"), ("slice",), ("contour", "n", "wide"), ("contour", "wide", "n", "--mean"),
        ("contour", "[red]markup[/red]", "n"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_nothing_reaches_a_terminal_raw_and_all_of_it_is_json(dibs: Call, tmp_path: Path, words: Any) -> None:
    hostile(tmp_path)
    text = dibs(*words, "--store", "s").stdout
    assert "\x1b" not in text
    assert chr(0x202E) not in text
    json.loads(dibs(*words, "--store", "s", "--json").stdout)
    assert max(map(len, text.splitlines())) < 500, "wide choices are cut"
    assert len(text.splitlines()) < 80, "many choices are too"


def test_history_shows_both_lines_and_the_trials_that_were_better(dibs: Call, studied: Call) -> None:
    text = studied("history", "--store", "s").stdout
    study = Study("s", "spam")
    assert text.startswith(f"study spam, goal min: best {study.best().score:.6g}, trial {study.best().n}\n")
    assert "4 of 4 trials settled, 4 done" in text
    turns = [(trial.n, study.results()[trial.n].score or 0.0) for trial in best_so_far(Source.over(study)).by_time()]
    better = [
        n for at, (n, score) in enumerate(turns) if score < min((before for _, before in turns[:at]), default=2.0)
    ]
    assert [int(line.split()[0]) for line in text.split("closed\n")[1].splitlines()] == better
    every = studied("history", "--store", "s", "--all").stdout.split("closed\n")[1].splitlines()
    assert len(every) == 4
    told = json.loads(studied("history", "--store", "s", "--json").stdout)
    assert [trial["score"] for trial in told["trials"]] == [result.score for result in study.results()]


def test_nothing_done_is_an_answer_too(dibs: Call, search: Path) -> None:
    dibs("run", str(search), "--store", "s", "--study", "spam", "--trials", "0", "--quiet")
    assert "nothing done yet" in dibs("history", "--store", "s").stdout
    assert "0 results" in dibs("slice", "--store", "s").stdout
    assert "0 results" in dibs("contour", "x", "kind", "--store", "s").stdout


def test_slice_and_contour_name_what_there_is(studied: Call) -> None:
    text = studied("slice", "x", "--store", "s").stdout
    assert text.splitlines()[2] == "x (float)"
    assert len(text.splitlines()) == 3 + 1 + 8
    assert "it has 'kind', 'x'" in studied("slice", "y", "--store", "s", code=2).stderr
    assert "it has 'kind', 'x'" in studied("contour", "x", "y", "--store", "s", code=2).stderr
    assert "two parameters" in studied("contour", "x", "x", "--store", "s", code=2).stderr
    grid = studied("contour", "x", "kind", "--store", "s").stdout
    assert [line.split()[0] for line in grid.splitlines()[3:]] == ["'a'", "(1,", "True"]


def test_a_sparkline_is_as_wide_as_said_and_ends_with_the_last_value() -> None:
    assert sparkline([]) == ""
    assert sparkline([None, 1.0]).startswith(" ")
    assert len(sparkline([1.0] * 1000, 60)) == 60
    low, high = sparkline([0.0, 1.0])
    assert sparkline([float(k) for k in range(1000)], 10)[-1] == high
    assert sparkline([1.7e308, -1.7e308]) == high + low
    assert sparkline([5e-324, 0.0])[1] == sparkline([0.0, 5e-324])[0]
    assert len(set(sparkline([2.0, 2.0, 2.0]))) == 1


def test_a_bar_shows_whatever_is_more_than_nothing() -> None:
    assert (len(bar(0.0)), len(bar(1e-9)), len(bar(1.0)), len(bar(7.0))) == (0, 1, 20, 20)


def test_a_terminal_without_the_marks_gets_plain_ones(studied: Call, spawn: Callable[..., Any]) -> None:
    child = spawn("history", "--store", "s", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert out.isascii()
    assert "\\u" not in out


@pytest.mark.parametrize("columns", [10, 30, 60, 80, 200])
def test_half_a_number_is_not_drawn_on_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    numbers = [f"{k}.2345" for k in range(1, 9)]
    header = ["", *(f"'a long choice {k}'" for k in range(8))]
    _drawn(header, [["some value", *numbers], ["another value", *[""] * 8]], set(range(1, 9)), 2)
    shown = capsys.readouterr().out
    assert [word for word in shown.split() if word in numbers] == numbers
    assert max(map(len, shown.splitlines())) <= max(columns, 85)
    _drawn(["trial", "point"], [["7", "x=1 " * 30]], {0}, 0)
    shown = capsys.readouterr().out
    assert shown.count("x=1") == 30
    assert max(map(len, shown.splitlines())) <= max(columns, 14)
    _drawn(["trial", "point"], [], {0}, 0)
