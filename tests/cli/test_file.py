"""Search files: loaded by path, the same in every process, and every mistake in them is one sentence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dibs import Random
from dibs.cli._file import load
from dibs.errors import UsageError

GOOD = """
import dibs
space = dibs.Space(x=dibs.Float(0, 1))
def objective(trial):
    return trial["x"]
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str | bytes, name: str = "searching.py") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_is_loaded_with_its_space_and_objective(write: Callable[..., Path]) -> None:
    found = load(str(write(GOOD)))
    assert found.space.names == ("x",)
    assert found.objective({"x": 0.5}) == 0.5
    assert (found.goal(), found.sampler(), found.name(), found.trials()) == (None, None, None, None)
    assert (found.pruner(), found.max_step()) == (None, None)


def test_what_else_a_file_may_say(write: Callable[..., Path]) -> None:
    more = 'goal, name, trials, sampler = "max", "spam", 20, dibs.Random()\npruner, max_step = ["diverged"], 30'
    found = load(str(write(f"{GOOD}\n{more}")))
    assert (found.pruner(), found.max_step()) == (["diverged"], 30)
    assert (found.goal(), found.name(), found.trials(), found.sampler()) == ("max", "spam", 20, Random())


def test_another_function_is_named_after_a_colon(write: Callable[..., Path]) -> None:
    path = write(GOOD + "\ndef half(trial): return trial['x'] / 2")
    assert load(f"{path}:half").objective({"x": 1.0}) == 0.5


def test_a_name_with_a_colon_is_a_file_if_it_is_there(write: Callable[..., Path]) -> None:
    assert load(str(write(GOOD, "odd:name"))).objective({"x": 1.0}) == 1.0


def test_the_folder_is_importable_and_neighbours_see_the_same_module(write: Callable[..., Path]) -> None:
    write("import searching_a\nSEEN = searching_a", "neighbour_a.py")
    found = load(str(write("import neighbour_a\n" + GOOD, "searching_a.py")))
    assert found.names["neighbour_a"].SEEN is sys.modules["searching_a"]
    assert vars(sys.modules["searching_a"]) is found.names


def test_a_file_named_like_a_loaded_module_does_not_replace_it(write: Callable[..., Path]) -> None:
    import json

    load(str(write(GOOD, "json.py")))
    assert sys.modules["json"] is json


def test_a_file_called_dibs_hides_no_dibs_from_worker_processes(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(GOOD.replace("trial[", "trial.point["), "dibs.py")
    words = f"-P -m dibs run {path} --store {tmp_path / 's'} --study a --goal min --trials 4 --workers 2".split()
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False), ran.stderr


def test_the_objective_is_pickled_by_path_and_loaded_once_in_another_process(write: Callable[..., Path]) -> None:
    path = write(GOOD + "\nprint('loading')\nclass Mine: pass\ndef made(trial): return Mine()")
    objective = load(f"{path}:made").objective
    made = pickle.dumps(objective)
    script = (
        "import pickle, sys; made = pickle.loads(bytes.fromhex(sys.argv[1])); "
        "mine = made({}); assert pickle.loads(pickle.dumps(mine)).__class__ is type(mine); print(type(mine).__module__)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, made.hex()], capture_output=True, text=True, check=True, cwd="/"
    )
    assert (ran.stdout, ran.stderr) == ("searching\n", "loading\n")


def test_what_a_file_prints_goes_to_stderr(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    load(str(write(GOOD + "\nprint('hello')")))
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import dibs\n\nspace = (", r"searching\.py:3 is not valid Python: '\(' was never closed"),
        (b"\x00\x01\x02", "not (valid )?Python"),
        (b"x = '\xff'", "not valid Python"),
        ("[" * 5000, "not (valid )?Python"),
        ("import nowhere_to_be_found", r'line 1, in <module>\n.*\nModuleNotFoundError: No module named'),
        ("import dibs\nspace = dibs.Space(x=dibs.Float(2, 1))", r"line 2, in <module>(?s:.*)SpaceError: Float"),
        ("import sys; sys.exit(0)", r"ends the process when it is loaded \(sys.exit\(0\)\).*__main__"),
        ("def objective(trial): pass", r"has no space: put space = dibs\.Space\("),
        ("space = {'x': 1}\ndef objective(trial): pass", r"space in .* is a dict: write space = dibs\.Space"),
        ("import dibs\nspace = dibs.Space(x=1)", r"has no objective: define objective\(trial\)"),
        ("import dibs\nspace = dibs.Space(x=1)\nobjective = 3", "objective in .* is a int, not a function"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_sentence(write: Callable[..., Path], text: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load(str(write(text)))


def test_a_file_that_raises_leaves_no_module(write: Callable[..., Path]) -> None:
    with pytest.raises(UsageError):
        load(str(write("1 / 0")))
    assert "searching" not in sys.modules


def test_only_the_files_own_frames_are_shown(write: Callable[..., Path]) -> None:
    with pytest.raises(UsageError) as wrong:
        load(str(write("import json\njson.loads('{')")))
    assert str(wrong.value).count("File ") == 1
    assert "json.loads('{')" in str(wrong.value)


def test_a_missing_file_a_folder_and_a_missing_function(write: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        load(str(tmp_path / "no.py"))
    with pytest.raises(UsageError, match=r"there is no file .*: did you mean .*\.py\?$"):
        load(str(write(GOOD).with_suffix("")))
    with pytest.raises(UsageError, match="is a folder"):
        load(str(tmp_path))
    with pytest.raises(UsageError, match="has no nothing: define nothing"):
        load(f"{write(GOOD)}:nothing")


@pytest.mark.parametrize(
    ("line", "said"),
    [("goal = 'up'", "goal in .* is 'up': write goal = \"min\""), ("sampler = 3", "sampler in .* is 3: give a name")],
)
def test_wrong_extras_are_told_when_they_are_asked_for(write: Callable[..., Path], line: str, said: str) -> None:
    found = load(str(write(f"{GOOD}\n{line}")))
    with pytest.raises(UsageError, match=said):
        (found.goal(), found.sampler())


def test_a_stray_name_that_is_no_text_is_not_the_studys() -> None:
    from dibs.cli._file import SearchFile

    assert SearchFile("f", None, None, {"name": 3, "trials": "x"}).name() is None  # type: ignore[arg-type]
