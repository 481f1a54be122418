"""Limits on the command line and in ``dibs.toml``, and how readers tell what came of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from dibs.cli._options import Size

Call = Callable[..., Result]
Spawn = Callable[..., Any]
PLACE = ("--store", "s", "--study", "spam")

SLEEPY = """
import time
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))
def objective(trial):
    if trial.n == 1:
        time.sleep(10**6)
    if trial.n == 2:
        raise ValueError("diverged")
    return trial.point["x"]
"""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1), ("4G", 4 << 30), ("4GiB", 4 << 30), ("1.5M", 3 << 19), ("512 MiB", 512 << 20), ("2T", 2 << 40),
        ("10KB", 10_000), ("4GB", 4 * 10**9), ("100B", 100), ("4g", 4 << 30), ("512mib", 512 << 20),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "0", "G", "4 giga", "-1", "1e9", "4Gi", "nan", "0.2"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size: write 512M, 4G"):
        Size().convert(text, None, None)


def test_a_trial_over_its_time_is_told_apart_everywhere(spawn: Spawn, search: Path, dibs: Call) -> None:
    search.write_text(SLEEPY)
    child = spawn("run", str(search), *PLACE, "--trials", "4", "--workers", "2", "--time-limit", "0.5s", "--json")
    out, err = child.communicate()
    assert child.returncode == 1, err
    told = json.loads(out)
    assert (told["counts"]["done"], told["counts"]["failed"], told["ran"], told["why"]) == (2, 2, 4, "settled")
    assert told["failed_by"] == {"objective": 1, "limit": 1, "poison": 0}
    assert "trial 1 failed (" in err
    assert "over the time limit of 0.5s" in err
    assert "trials    4: 2 done, 2 failed (1 over a limit)\n" in dibs("status", *PLACE).stdout
    lines = dibs("trials", *PLACE).stdout.splitlines()
    assert " over limit " in lines[2]
    assert " failed " in lines[3]
    rows = json.loads(dibs("trials", *PLACE, "--json").stdout)
    assert [row["cause"] for row in rows] == [None, "limit", "objective", None]
    shown = dibs("show", "1", *PLACE).stdout
    assert "reason   over the time limit of 0.5s" in shown
    assert "time.sleep(10**6)" in shown


def test_a_file_may_say_them_and_one_worker_is_a_process_too(spawn: Spawn, search: Path, tmp_path: Path) -> None:
    search.write_text(SLEEPY.replace("trial.n == 2", "False"))
    (tmp_path / "dibs.toml").write_text(
        'store = "s"\nstudy = "spam"\ntime_limit = "0.5s"\nmemory = "4G"\ncpus = 1\nmax_running = 1\n'
    )
    child = spawn("run", str(search), "--trials", "3", "--quiet", "--json")
    out, err = child.communicate()
    assert child.returncode == 1, err
    assert json.loads(out)["failed_by"]["limit"] == 1
    assert len(list((tmp_path / "s/study/spam/slot/0").iterdir())) >= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "4x"), "'4x' is not a size"),
        (("--time-limit", "0"), "must be longer than nothing"),
        (("--cpus", "0"), "not in the range"),
        (("--max-running", "0"), "not in the range"),
        (("--gpus", "3"), "a worker should have 3 devices and there are 2 (CUDA_VISIBLE_DEVICES=0,1)"),
    ],
)
def test_what_cannot_be_is_one_line_and_code_2(dibs: Call, search: Path, words: tuple[str, ...], said: str) -> None:
    done = dibs("run", str(search), *PLACE, "--trials", "1", *words, code=2, CUDA_VISIBLE_DEVICES="0,1")
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_no_device_at_all_says_how_to_name_a_pool(dibs: Call, search: Path) -> None:
    said = dibs("run", str(search), *PLACE, "--trials", "1", "--gpus", "1", code=2, CUDA_VISIBLE_DEVICES="").stderr
    assert "no device for gpus=1 (CUDA_VISIBLE_DEVICES=): name a pool: CUDA_VISIBLE_DEVICES=0,1 dibs run ..." in said
