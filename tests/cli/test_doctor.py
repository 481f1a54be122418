"""``dibs doctor``: what it prints, how it ends, and two real processes that meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dibs.store import _opening

Call = Callable[..., Result]


@pytest.fixture
def on_fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_opening, "mount_type", lambda path: "fuse.unheard-of")


def test_alone_on_a_local_folder(dibs: Call, tmp_path: Path) -> None:
    done = dibs("doctor", "s")
    assert done.stdout.startswith(f"folder   {tmp_path}/s, not a store yet\n")
    assert "ok    hard links" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("verdict  ")
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_alone_in_json_and_in_a_store_from_the_settings(dibs: Call, studied: Call, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "s"\n')
    told = json.loads(dibs("doctor", "--json").stdout)
    assert (told["store"], told["used"], told["fine"], told["claim"]) == (str(tmp_path / "s"), True, True, "link")
    assert {finding["how"] for finding in told["findings"]} <= {"ok", "note"}
    assert json.loads(dibs("doctor", "--json", DIBS_STORE="other").stdout)["used"] is False


@pytest.mark.usefixtures("on_fuse")
def test_a_mount_nobody_vouches_for_is_code_3_with_the_remedy(dibs: Call) -> None:
    done = dibs("doctor", "s", code=3)
    assert "fuse.unheard-of, not taken unseen" in done.stdout
    assert "--join NAME --machines 2" in done.stdout.splitlines()[-1]
    assert json.loads(dibs("doctor", "s", "--json", code=3).stdout)["fine"] is False


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("doctor",), 2, "no folder: say dibs doctor FOLDER"),
        (("doctor", "s", "--machines", "2"), 2, "say --join NAME too"),
        (("doctor", "s", "--join", " "), 2, "--join needs a name"),
        (("doctor", "s", "--join", "x", "--machines", "1"), 2, "not in the range"),
        (("doctor", "s", "--join", "x", "--names", "3"), 2, "not in the range"),
        (("doctor", "missing/s"), 3, "there is no folder"),
        (("doctor", "s", "--join", "x", "--patience", "0.01s"), 3, "1 of 2 machines came to 'x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_said(dibs: Call, tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = dibs(*words, code=code)
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_processes_meet(spawn: Callable[..., Any], tmp_path: Path) -> None:
    words = ("doctor", "s", "--join", "a name/with ä", "--names", "60", "--patience", "60s")
    first, second = spawn(*words, "--me", "north"), spawn(*words, "--me", "south", "--json")
    text, told = first.communicate(), second.communicate()
    assert (first.returncode, second.returncode) == (0, 0), text + told
    report = json.loads(told[0])
    assert [guest["me"] for guest in report["guests"]] in (["north", "south"], ["south", "north"])
    assert [(each["names"], each["several"]) for each in report["methods"]] == [(60, 0)] * 3
    assert "met: " in told[1]
    assert "racing for 60 names with mkdir" in told[1]
    for words_ in ("this is north", "link ", "a rewrite, read", "verdict  "):
        assert words_ in text[0]
    assert list(tmp_path.iterdir()) == []
