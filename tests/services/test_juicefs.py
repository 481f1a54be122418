"""JuiceFS, two mounts of one volume with default caching: exclusive, and it must carry a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.services.machines import dibs, end, figures, meet, start, tormented, words_of
from tests.services.mounts import Mounts

from dibs import Store, StoreError, Study

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]

SEARCH = """
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))
def objective(trial):
    return trial.point["x"]
"""


def test_unseen_it_is_refused_with_the_remedy_unless_somebody_vouches_for_it(juicefs: Mounts, tmp_path: Path) -> None:
    store = juicefs.a / "unseen"
    with pytest.raises(StoreError, match=r"fuse\.juicefs is not taken unseen.*--join NAME --machines 2.*--unchecked"):
        Store(store)
    alone = dibs("doctor", store, "--json")
    assert alone.code == 3
    assert alone.told["mount"] == "fuse.juicefs"
    assert {finding["how"] for finding in alone.told["findings"]} <= {"ok", "note"}
    assert not store.exists()

    (tmp_path / "search.py").write_text(SEARCH)
    words = ("--study", "s", "--trials", "40", "--quiet")
    refused = dibs("run", tmp_path / "search.py", "--store", store, *words)
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.count("\n") == 1
    assert not store.exists()

    vouched = start("run", tmp_path / "search.py", "--store", store, "--unchecked", "--wait", *words)
    (first,) = end([vouched])
    assert first.code == 0, first.err
    assert "fuse.juicefs is not taken unseen" in first.err
    results = Study(juicefs.b / "unseen", "s").results()
    assert [(row.n, row.attempt, row.state) for row in results] == [(n, 0, "done") for n in range(40)]


def test_two_machines_find_it_exclusive_and_every_later_open_obeys(juicefs: Mounts) -> None:
    north, south = meet(juicefs, "store")
    assert (north.code, south.code) == (0, 0), north.err + south.err
    report = north.told
    print(figures(report))
    assert words_of(report) == {"link": "exclusive", "open": "exclusive", "mkdir": "exclusive"}
    assert south.told["methods"] == report["methods"]
    assert all(each["one"] == each["names"] >= 300 for each in report["methods"])
    assert report["written"] == ["verdict/0.json", "dibs.json"]
    assert None not in {delay["late_s"] for delay in report["delays"]}, "all is seen in the end"

    marker = json.loads((juicefs.b / "store" / "dibs.json").read_bytes())
    assert (marker["claim"], marker["verdict"]) == ("link", "fuse.juicefs")
    # who tidies up; the other mount may show what it has seen for another second
    first = juicefs.a if north.told["seat"] == 0 else juicefs.b
    assert not (first / "store" / "doctor").exists()
    assert Store(juicefs.a / "store").claim("spam")
    assert not Store(juicefs.b / "store").claim("spam")
    assert dibs("doctor", juicefs.b / "store").code == 0


def test_it_carries_a_torture(juicefs: Mounts, tmp_path: Path) -> None:
    if not (juicefs.a / "store" / "dibs.json").exists():
        assert [each.code for each in meet(juicefs, "store", "--names", "120")] == [0, 0]
    broken, happened = tormented(juicefs, "store", tmp_path, 25)
    print(happened)
    assert broken == []
