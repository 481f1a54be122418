"""Check, gc and copy over a store with sweeps in it: judged like studies, and nothing that a plan needs is taken."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sweep.sweeping import NAME, final, states, sweep

from dibs import Store
from dibs.store import SweepKeys, blob_key
from dibs.sweep import add_plan, newest_plan, reconcile, run_sweep
from dibs.upkeep import Copier, check, collect, find_garbage, open_copy
from dibs.upkeep._layout import place_of

OLD_S = 2 * 86400


@pytest.fixture
def swept(tmp_path: Path) -> Store:
    """Three cells, one of them failed and one run again with a new number; beats and places of hosts."""
    script = '#!/bin/sh\necho "$DIBS_N" > best.pth\n[ "$DIBS_NAME" != c2 ] || exit 3\n'
    store, plan = sweep(tmp_path, 3, script, artifacts=("best.pth",), goal="min")
    run_sweep(store, NAME)
    assert add_plan(store, plan.next(cells=(replace(plan.cells[0], n=3, former=(0,)), *plan.cells[1:])))
    run_sweep(store, NAME)
    return store


def aged(path: Path) -> None:
    for each in (*path.rglob("*"), path):
        os.utime(each, (each.stat().st_mtime - OLD_S,) * 2)


def kinds(store: Store) -> dict[str, str]:
    return {finding.kind: finding.key for finding in check(store, deep=True).findings}


def test_a_sweep_is_in_order_and_gc_takes_nothing_it_needs(swept: Store) -> None:
    assert kinds(swept) == {}
    aged(Path(swept.url))
    assert find_garbage(Store(swept.url)).removals == ()
    plan = newest_plan(swept, NAME)
    assert all(swept.has(str(cell.config)) for cell in plan.cells)


@pytest.mark.parametrize("what", ["config", "script"])
def test_a_missing_blob_of_a_plan_is_said(swept: Store, what: str) -> None:
    plan = newest_plan(swept, NAME)
    digest = str(plan.cells[1].config) if what == "config" else plan.task.scripts["./cell.sh"]
    (Path(swept.url) / blob_key(digest)).unlink()
    found = kinds(swept)
    assert "missing" in found
    assert not check(swept).clean


def test_damage_is_named(swept: Store) -> None:
    keys = SweepKeys(NAME)
    root = Path(swept.url)
    (root / keys.plan(1)).write_bytes(b"{")
    (root / keys.attempt(1, 0)).write_bytes(b"")
    (root / "sweep" / "%41" / "plan" / "x.txt").write_text("x")
    found = check(swept).findings
    assert {(one.kind, one.key) for one in found} >= {
        ("torn", keys.plan(1)), ("torn", keys.attempt(1, 0)), ("torn", "sweep/%41/plan/x.txt"),
    }  # fmt: skip


def test_half_copies_go_once_they_are_old_and_only_those(swept: Store) -> None:
    half = final(swept, f".part-c1-{'0' * 32}")
    half.mkdir()
    (half / "best.pth").write_text("half")
    key = half.relative_to(swept.url).as_posix()
    assert kinds(swept) == {"temporary": key}
    assert find_garbage(swept).removals == ()
    aged(half)
    garbage = find_garbage(swept)
    assert [(one.key, one.size) for one in garbage.removals] == [(key, 4)]
    (half / "best.pth").write_text("more")  # it is being written after all
    assert collect(swept, garbage.removals) == []
    aged(half)
    again = find_garbage(swept).removals
    assert collect(swept, again) == list(again)
    assert not half.exists()
    assert (final(swept, "c1") / "best.pth").read_text() == "1\n"


def test_a_copy_has_the_results_too(swept: Store, tmp_path: Path) -> None:
    copier = Copier(swept, open_copy(swept, str(tmp_path / "copy")))
    assert copier.run().troubles == []
    copy = Store(tmp_path / "copy")
    assert states(copy) == {"c0": "done", "c1": "done", "c2": "failed"}
    found = reconcile(copy, newest_plan(copy, NAME))
    assert set(found.proven) == {"c0", "c1"}
    told = copier.run()
    assert (told.records, told.troubles) == (0, [])
    (final(swept, "c1") / "manifest.json").write_text("{}")
    (final(copy, "c1") / "manifest.json").write_text(json.dumps({"n": 9, "attempt": 0}))
    assert [(one.key, one.what) for one in copier.run().troubles] == [
        ("sweep/%41/final/c1", "it does not say whose it is")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "kind", "study", "n"),
    [
        ("sweep/%41/trial/000000/00000001-0.json", "trial", "sweep/%41", 1),
        ("sweep/%41/again/000000/00000001-2.json", "again", "sweep/%41", 1),
        ("sweep/%41/trial/000001/00000001-0.json", "foreign", "", -1),
        ("sweep/%41/plan/00000000.json", "plan", "sweep/%41", -1),
        ("sweep/%41/mark/release/0.json", "mark", "sweep/%41", -1),
        ("sweep/%41/host/vm-1-2/0/7.json", "place", "sweep/%41", -1),
        ("sweep/%41/note/release/00000001-0.json", "release", "sweep/%41", 1),
        ("sweep/%41/work/00000001-0/log.txt", "work", "sweep/%41", 1),
        ("sweep/%41/later/thing", "other", "", -1),
        ("study/a/trial/000000/00000001-0.json", "trial", "a", 1),
    ],
)
def test_places(key: str, kind: str, study: str, n: int) -> None:
    found = place_of(key)
    assert (found.kind, found.study, found.n) == (kind, study, n)
