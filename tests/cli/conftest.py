"""A folder of one's own, no variables that steer, and two ways to call ``dibs``: in this process and in a new one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cli.exec_words import SPACE, WELL
from tests.parts import script
from tests.study.processes import heed

from dibs.cli import main

SEARCH = """
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1), kind=dibs.Choice("a", (1, 2), True))
def objective(trial):
    return trial.point["x"]
"""
_STEERING = ("DIBS_", "SLURM_", "PBS_", "SGE_", "LSB_", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing from outside steers the test, and what loading a file changes is put back."""
    for name in [name for name in os.environ if name.startswith(_STEERING)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    os.environ.pop("DIBS_WORK", None)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def search(tmp_path: Path) -> Path:
    """A search file."""
    path = tmp_path / "searching.py"
    path.write_text(SEARCH)
    return path


@pytest.fixture
def dibs() -> Callable[..., Result]:
    """Call ``dibs WORDS`` in this process; ``.exit_code``, ``.stdout``, ``.stderr``."""

    def call(*words: str, code: int = 0, **env: str) -> Result:
        done = CliRunner().invoke(main, words, env=env)
        assert done.exit_code == code, f"dibs {' '.join(words)} ended with {done.exit_code}:\n{done.output}"
        assert code == 70 or "this is a bug" not in done.stderr
        return done

    return call


@pytest.fixture
def studied(dibs: Callable[..., Result], search: Path) -> Callable[..., Result]:
    """A store ``s`` with a study ``spam`` of four done trials; call ``dibs`` in it."""
    dibs("run", str(search), "--store", "s", "--study", "spam", "--trials", "4", "--seed", "1", "--quiet")
    return dibs


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``dibs WORDS`` as a process of its own; whatever is left of them is killed at the end."""
    started: list[subprocess.Popen[str]] = []
    script = Path(sys.executable).parent / "dibs"  # as a user calls it, if it is installed
    command = [str(script)] if script.exists() else [sys.executable, "-m", "dibs"]

    def start(*words: str, **more: Any) -> subprocess.Popen[str]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": heed, **more}
        child = subprocess.Popen([*command, *words], cwd=tmp_path, text=True, **options)
        started.append(child)
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def mill(tmp_path: Path) -> Path:
    (tmp_path / "space.toml").write_text(SPACE)
    return script(tmp_path / "train.sh", WELL)
