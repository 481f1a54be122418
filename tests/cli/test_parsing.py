"""Options, variables and dibs.toml; help texts; errors as one line with a code; what is printed where."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from dibs import Study
from dibs.cli import _guard, _text, main
from dibs.cli._options import Duration
from dibs.cli._reference import render
from dibs.cli._root import VERBS
from dibs.cli._sweep import SWEEP_VERBS

Call = Callable[..., Result]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1h30m", 5400), ("0.5s", 0.5), ("0", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "x", "5x", "-1", "1h 30m", "1e3", "nan", "inf", "m", "1h30"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration: write 90"):
        Duration().convert(text, None, None)


def test_no_store_says_all_three_ways(dibs: Call) -> None:
    said = dibs("status", code=2).stderr
    assert said.startswith("dibs: no store: say --store FOLDER, set DIBS_STORE, or put store = ")
    assert said.count("\n") == 1


def test_a_flag_beats_a_variable_beats_the_file(dibs: Call, search: Path, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "three"\nstudy = "by-file"\ntrials = 1\nme = "file"\n')
    below = tmp_path / "below" / "deep"
    below.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(below)
        dibs("run", str(search), "--quiet")
        dibs("run", str(search), "--quiet", DIBS_STUDY="by-variable", DIBS_ME="variable")
        dibs("run", str(search), "--quiet", "--study", "by-flag", "--me", "flag", DIBS_STUDY="x", DIBS_ME="x")
    found = {name: Study(tmp_path / "three", name).results() for name in ("by-file", "by-variable", "by-flag")}
    assert {name: [row.who.me for row in rows] for name, rows in found.items()} == {
        "by-file": ["file"], "by-variable": ["variable"], "by-flag": ["flag"],
    }  # fmt: skip
    assert not (below / "three").exists()


def test_the_nearest_file_alone_is_read(dibs: Call, studied: Call, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "s"\n')
    dibs("best")
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "dibs.toml").write_text('me = "x"\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "near")
        assert "no store" in dibs("best", code=2).stderr


def test_work_is_where_attempts_have_their_folders(dibs: Call, search: Path, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "s"\nstudy = "spam"\nwork = "w"\n')
    dibs("run", str(search), "--trials", "1", "--quiet")
    assert list(tmp_path.glob("w/spam/work/00000000-0-*/log.txt"))
    assert str(tmp_path / "w") in dibs("show", "0").stdout


def test_a_search_file_may_name_study_and_trials_and_flags_win(dibs: Call, search: Path) -> None:
    search.write_text(search.read_text() + '\nname, trials, sampler = "own", 2, "random"\n')
    dibs("run", str(search), "--store", "s", "--quiet")
    dibs("run", str(search), "--store", "s", "--quiet", "--study", "other", "--trials", "1", "--sampler", "sobol")
    own, other = Study("s", "own"), Study("s", "other")
    assert (len(own.results()), len(other.results())) == (2, 1)
    assert own.definition is not None
    assert own.definition.sampler.name == "random"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stroe = 's'", "unknown 'stroe': did you mean store?"),
        ("zzz = 's'", "unknown 'zzz': the keys are .*store"),
        ("stroe = 's'\nstuy = 's'", "unknown 'stroe', 'stuy': the keys are .*store"),
        ("store = 3", "store must be a text, not 3"),
        ("trials = true", "trials must be a whole number, not True"),
        ("store = ", "does not read"),
        ("store = 's'\ntime = []", "time must be seconds or a text"),
        ("goal = 1", "goal must be a text, or a list of two or more, not 1"),
        ("goal = ['min']", "goal must be a text, or a list of two or more"),
        ("goal = ['min', 1]", "goal must be a text, or a list of two or more"),
        ("store = ['min', 'max']", "store must be a text, not"),
    ],
)
def test_a_wrong_dibs_toml_is_named(dibs: Call, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "dibs.toml").write_text(text)
    import re

    message = dibs("status", code=2).stderr
    assert re.search(said, message)
    assert str(tmp_path / "dibs.toml") in message
    assert "Show what is happening" in dibs("status", "--help").stdout


def test_a_value_that_cannot_be_meant_is_blamed_on_the_file(dibs: Call, search: Path, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text("time = '5x'\n")
    said = dibs("run", str(search), "--store", "s", "--study", "x", "--trials", "1", code=2).stderr
    assert said.startswith("dibs: dibs.toml: time: '5x' is not a duration")
    said = dibs("run", str(search), "--time", "6x", code=2).stderr
    assert said.startswith("dibs: Invalid value for '--time'")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("frobnicate",), "No such command 'frobnicate'"),
        (("bset",), "No such command 'bset': did you mean best?"),
        (("status", "--stor", "s"), "No such option"),
        (("show",), "Missing argument"),
        (("show", "x"), "not a valid whole number"),
        (("slice", "--goal", "min"), "'min' is no number of a goal: they count from 0"),
        (("run", "--trials", "-1", "f.py"), "not in the range"),
        (("run", "--time", "0", "f.py"), "must be longer than nothing"),
        (("run", "nowhere.py", "--store", "s", "--study", "x", "--trials", "1"), "there is no file nowhere.py"),
        (("enqueue", "--store", "s", "--study", "x"), "Missing argument"),
        (("best", "--top", "0", "--store", "s"), "not in the range"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_usage_errors_are_one_line_and_code_2(dibs: Call, words: tuple[str, ...], said: str) -> None:
    done = dibs(*words, code=2)
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.startswith("dibs: ")
    assert done.stderr.count("\n") == 1


def test_no_words_at_all_show_the_help_on_stderr(dibs: Call) -> None:
    done = dibs(code=2)
    assert (done.stdout, "Verbs:" in done.stderr) == ("", True)


def test_version(dibs: Call) -> None:
    import dibs as library

    assert dibs("--version").stdout == f"dibs {library.__version__}\n"


def test_the_overview_fits_a_terminal(dibs: Call) -> None:
    assert max(map(len, dibs("--help").stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_complete_help(dibs: Call, name: str) -> None:
    text = dibs(name, "--help").stdout
    assert VERBS[name] in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Example:" in text
    assert "Exit codes: 0" in text
    assert main.get_command(click.Context(main), name).get_short_help_str(200) == VERBS[name]


def sweep_verbs() -> list[str]:
    return main.get_command(click.Context(main), "sweep").list_commands(click.Context(main))  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sweep_verbs())
def test_every_verb_of_sweeps_has_a_complete_help(dibs: Call, name: str) -> None:
    text = dibs("sweep", name, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "Example:" in text
    assert "Exit codes: 0" in text
    group = main.get_command(click.Context(main), "sweep")
    assert isinstance(group, click.Group)
    verb = group.get_command(click.Context(group), name)
    assert verb is not None
    assert verb.get_short_help_str(200) == SWEEP_VERBS[name]
    assert f"\n## dibs sweep {name}\n" in render()


def test_a_group_without_a_verb_is_its_help(dibs: Call) -> None:
    assert "Verbs:" in dibs("sweep", code=2).stderr
    assert dibs("sweep", "plam", code=2).stderr == (
        "dibs: No such command 'plam': did you mean plan? (see dibs sweep --help)\n"
    )


def test_help_loads_no_verb() -> None:
    script = (
        "import sys; from dibs.cli import main; main(['--help'], standalone_mode=False); "
        "print([m for m in sys.modules if m in ('numpy', 'msgspec', 'rich', 'scipy', 'dibs.study', 'dibs.store')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_reference_has_every_verb_and_every_option() -> None:
    page = render()
    for name in VERBS:
        assert f"\n## dibs {name}\n" in page
        command = main.get_command(click.Context(main), name)
        assert command is not None
        for param in command.params:
            assert all(word in page for word in param.opts if word.startswith("-"))
    assert "\x1b" not in page


def test_a_bug_shows_its_traceback_and_says_so(dibs: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import dibs.cli._best as best

    def wrong(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(best, "open_source", wrong)
    done = dibs("best", code=_guard.BUG)
    assert "KeyError: 'oops'" in done.stderr
    assert "this is a bug in dibs" in done.stderr


def test_debug_shows_the_traceback_of_a_mistake(dibs: Call) -> None:
    assert "Traceback" not in dibs("best", code=2).stderr
    assert "Traceback" in dibs("best", code=2, DIBS_DEBUG="1").stderr


def test_interrupted_is_code_130(dibs: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    import dibs.cli._best as best

    def wrong(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(best, "open_source", wrong)
    dibs("best", code=130)


class Terminal:
    """A stdout that says it is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def test_a_table_on_a_terminal_obeys_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    _text.table(("name", "n"), [("[bold]x[/bold]", 1), ("\x1b[31mred\n", 22)], right=[1])
    assert "[bold]x[/bold]" in terminal.text
    assert "\\x1b[31mred\\n" in terminal.text
    assert "\x1b" not in terminal.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é \N{PARROT}", "plain é \N{PARROT}"), ("\x1b[31m", "\\x1b[31m"), ("a\nb\tc", "a\\nb\\tc"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"), ("\u202eevil", "\\u202eevil"), ("a\u2028b", "a\\u2028b"),
    ],
)  # fmt: skip
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert _text.safe(text) == shown
    assert json.loads(_text.json_text(text)) == text
    assert _text.json_text(text).isascii()
