"""Durable copies: whole under a cell's name or not there at all, whoever is killed, whatever disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.sweep.sweeping import NAME, final, sha, states, stood, sweep

from dibs import Store
from dibs.errors import UsageError
from dibs.store import SweepKeys
from dibs.study._attempt import Attempt, Terms, claim_attempt
from dibs.sweep import Plan, run_sweep
from dibs.sweep import _final as final_module
from dibs.sweep._final import Left, NotKept, collect, manifest_of, publish

COUNTS = """#!/bin/sh
echo run >> "$DIBS_HERE/runs"
echo "weights of $DIBS_NAME" > best.pth
echo '{"score": 0.5}'
"""


@pytest.fixture
def sweeping(tmp_path: Path) -> tuple[Store, Plan]:
    return sweep(tmp_path, 2, COUNTS, artifacts=("best.pth",))


def attempt(store: Store, plan: Plan, number: int = 0) -> Attempt:
    keys = SweepKeys(NAME)
    made = claim_attempt(store, keys, 0, number, plan.cells[0].fields, Terms(0, 2, None, None, 5.0))
    assert made is not None
    return made


def left(folder: Path, text: str = "x") -> list[Left]:
    folder.mkdir(exist_ok=True)
    (folder / "best.pth").write_text(text)
    return collect(folder, ["best.pth"], folder / "log")


def names(store: Store) -> list[str]:
    return sorted(path.name for path in final(store).iterdir())


def test_the_later_attempt_stays_whoever_comes_first(sweeping: tuple[Store, Plan], tmp_path: Path) -> None:
    store, plan = sweeping
    cell = plan.cells[0]
    first, second = attempt(store, plan), attempt(store, plan, 1)
    kept, where = publish(plan, cell, second, left(tmp_path / "b", "second"))
    assert (kept["best.pth"].digest, where) == (sha(b"second"), "sweep/%41/final/c0")
    _, aside = publish(plan, cell, first, left(tmp_path / "a", "first"))
    assert aside == "sweep/%41/final/.quarantine/c0-0-0"
    assert (final(store, "c0") / "best.pth").read_text() == "second"
    assert (Path(store.url) / aside / "best.pth").read_text() == "first"
    third = attempt(store, plan, 2)
    publish(plan, cell, third, left(tmp_path / "c", "third"))
    assert manifest_of(final(store, "c0"))["attempt"] == 2
    assert sorted(path.name for path in final(store, ".quarantine").iterdir()) == ["c0-0-0", "c0-0-1"]


def test_what_nobody_wrote_down_is_put_aside_too(sweeping: tuple[Store, Plan], tmp_path: Path) -> None:
    store, plan = sweeping
    for turn in range(2):
        final(store, "c0").mkdir(parents=True, exist_ok=True)
        (final(store, "c0") / "manifest.json").write_text("{")
        publish(plan, plan.cells[0], attempt(store, plan, turn), left(tmp_path / "a"))
        if not turn:
            (final(store, "c0") / "manifest.json").unlink()
            (final(store, "c0") / "best.pth").unlink()
    assert sorted(path.name for path in final(store, ".quarantine").iterdir()) == ["c0-0-0", "c0-0-0.1"]
    assert manifest_of(final(store, "c0"))["attempt"] == 1


def test_what_a_killed_copier_left_goes_and_that_of_other_cells_stays(
    sweeping: tuple[Store, Plan], tmp_path: Path
) -> None:
    store, plan = sweeping
    mine = attempt(store, plan)
    dead = "0" * len(mine.nonce)
    for name in (f".part-c0-{dead}", f".part-c0-b-{dead}", f".part-c1-{dead}"):
        final(store, name).mkdir(parents=True)
        (final(store, name) / "best.pth").write_text("half")
    publish(plan, plan.cells[0], mine, left(tmp_path / "a"))
    assert names(store) == [f".part-c0-b-{dead}", f".part-c1-{dead}", "c0"]


def test_a_disk_that_is_full_halfway_leaves_nothing(
    sweeping: tuple[Store, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, plan = sweeping

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(final_module.os, "fsync", full)
    with pytest.raises(NotKept, match="No space left on device"):
        publish(plan, plan.cells[0], attempt(store, plan), left(tmp_path / "a"))
    assert names(store) == []


@pytest.mark.parametrize(
    ("damage", "said"), [("read back", "read back with other bytes"), ("grows", "was written to while it was copied")]
)
def test_bytes_that_are_not_what_they_were(
    sweeping: tuple[Store, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, said: str
) -> None:
    store, plan = sweeping
    files = left(tmp_path / "a", "good")
    sync = os.fsync

    def spoil(fd: int) -> None:
        sync(fd)
        if damage == "grows":
            files[0].path.write_text("good, and more")
        else:
            next(final(store).glob(".part-*/best.pth")).write_text("evil")

    monkeypatch.setattr(final_module.os, "fsync", spoil)
    with pytest.raises(NotKept, match=said):
        publish(plan, plan.cells[0], attempt(store, plan), files)
    assert names(store) == []


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("../secret", "outside the output folder"), ("/etc/passwd", "outside"), ("link/x", "behind one"), ("a:b", "call it otherwise"),
     ("manifest.json", "call it otherwise"), ("*.none", "left no"), ("fifo", "no plain file")],
)  # fmt: skip
def test_artifacts_that_are_refused(tmp_path: Path, pattern: str, said: str) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "x").write_text("x")
    out = tmp_path / "out"
    out.mkdir()
    (out / "link").symlink_to(tmp_path / "there")
    for name in ("a:b", "manifest.json"):
        (out / name).write_text("x")
    os.mkfifo(out / "fifo")
    with pytest.raises(UsageError, match=said):
        collect(out, [pattern], tmp_path / "log")


# ---- a copy that fails, and is mended


def blocked(folder: Path) -> str:
    """A place where nobody can make a folder, whatever his rights: there is a file in its way."""
    (folder / "block").write_text("a file\n")
    return str(folder / "block" / "final")


def test_an_unwritable_place_is_unsynced_and_mended_without_another_run(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 2, COUNTS, artifacts=("best.pth",), final=blocked(tmp_path))
    end = run_sweep(store, NAME, max_failures=None)
    assert (end.exit_code, end.states) == (7, {"unsynced": 2})
    run = stood(store)["c0"].counts
    assert run is not None
    assert run.cause == "sync failed"
    assert f"{tmp_path}/block/final: Not a directory" in str(run.reason)
    assert b'"synced":false' in store.get(blob(store))
    (tmp_path / "block").unlink()
    for n in range(2):
        release(store, n)
    end = run_sweep(store, NAME)
    assert (end.exit_code, end.states) == (0, {"done": 2})
    assert (tmp_path / "block" / "final" / "c1" / "best.pth").read_text() == "weights of c1\n"
    assert (tmp_path / "runs").read_text() == "run\nrun\n"
    mended = stood(store)["c0"].counts
    assert mended is not None
    assert (mended.attempt, mended.score, mended.final) == (1, 0.5, f"{tmp_path}/block/final/c0")


def test_it_is_run_again_where_what_it_left_is_gone(tmp_path: Path) -> None:
    store, _ = sweep(tmp_path, 1, COUNTS, artifacts=("best.pth",), final=blocked(tmp_path))
    run_sweep(store, NAME, max_failures=None)
    (Path(store.url) / "sweep/%41/work/00000000-0/out/best.pth").unlink()
    (tmp_path / "block").unlink()
    release(store, 0)
    assert run_sweep(store, NAME).exit_code == 0
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_a_copier_that_was_killed_is_continued_by_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = sweep(tmp_path, 1, COUNTS, artifacts=("best.pth",))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(final_module.Publisher, "_named", killed)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(store, NAME)
    assert states(store) == {"c0": "interrupted"}
    assert run_sweep(store, NAME).exit_code == 0
    assert (tmp_path / "runs").read_text() == "run\n"
    assert "nothing is run" in (Path(store.url) / "sweep/%41/work/00000000-1/log.txt").read_text()


def blob(store: Store) -> str:
    from dibs.record import decode

    there = store.backend.read(SweepKeys(NAME).attempt(0, 0))
    assert there is not None
    return str(decode(there.data, "")["blob"])


def release(store: Store, n: int) -> None:
    from dibs.study._view import view_of

    view = view_of(store, NAME, SweepKeys(NAME))
    view.refresh()
    view.notes.release(n, 0, None)


def test_nothing_is_put_aside_through_a_link(sweeping: tuple[Store, Plan], tmp_path: Path) -> None:
    store, plan = sweeping
    publish(plan, plan.cells[0], attempt(store, plan), left(tmp_path / "a", "first"))
    (tmp_path / "elsewhere").mkdir()
    (final(store) / ".quarantine").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotKept, match=r"quarantine is a link"):
        publish(plan, plan.cells[0], attempt(store, plan, 1), left(tmp_path / "b", "second"))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (final(store, "c0") / "best.pth").read_text() == "first"
