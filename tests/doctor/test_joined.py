"""A whole meeting on one machine: what comes of it, and that every later open obeys.

Threads with two made-up mounts stand for two machines; what a real mount does to two real ones is in tests/services.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.doctor.test_local import Skewed
from tests.parts import at_once

from dibs.doctor import Joined, _delays, _joined, checkup, join
from dibs.doctor._ways import Way, way
from dibs.errors import StoreError, UsageError
from dibs.store import Here, Store, _opening

FUSE = "fuse.unheard-of"


@pytest.fixture(autouse=True)
def on_fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_opening, "mount_type", lambda path: FUSE)
    monkeypatch.setattr(_opening, "_warned", set())
    monkeypatch.setattr(_joined, "DELAY_LIMIT_S", 2.0)
    monkeypatch.setattr(_delays, "_HEAD_START_S", 0.02)


def meet(root: Path, *sites: str, **ahead_s: float) -> list[Joined]:
    """All join; the outcome on each."""

    def take_part(site: str) -> Joined:
        machine = Skewed(ahead_s.get(site, 0.0))
        return join(checkup(root, machine), "x", len(sites), machine, me=site, names=60, patience_s=60, site=site)

    answers: list[Joined] = at_once([lambda site=site: take_part(site) for site in sites])
    return answers


def test_two_machines_agree_and_the_store_is_made(tmp_path: Path) -> None:
    root = tmp_path / "store"
    north, south = meet(root, "north", "south", south=100.0)
    assert {north.seat, south.seat} == {0, 1}
    assert north.methods == south.methods
    assert north.delays == south.delays
    assert {each.name: (each.word, each.names) for each in north.methods} == dict.fromkeys(
        ("link", "open", "mkdir"), ("exclusive", 60)
    )
    assert north.written == south.written == ("verdict/0.json", "dibs.json")
    assert (north.fine, north.claim) == (True, "link")
    assert len(north.delays) == 14
    assert all(delay.late_s is not None for delay in north.delays)
    assert north.clocks.stamped_by == "server"
    assert north.clocks.apart_s == pytest.approx(100.0, abs=2.0)

    assert sorted(path.name for path in root.iterdir()) == ["dibs.json", "tmp", "verdict"]
    body = json.loads((root / "verdict/0.json").read_bytes())
    assert (body["mounts"], body["machines"]) == ([FUSE], 2)
    assert body["methods"] == {"link": "exclusive", "mkdir": "exclusive"}
    store = Store(root)
    assert (store.marker["claim"], store.marker["verdict"]) == ("link", FUSE)
    assert json.loads(json.dumps(north.to_json()))["methods"][0]["word"] == "exclusive"


class Lying:
    """A way by which everybody wins."""

    robbed = 0

    def claim(self, name: str) -> bool:
        return True

    def owner(self, name: str) -> None:
        return None


def lie(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    def chosen(name: str, *args: Any, **more: Any) -> Way:
        return Lying() if name in kinds else way(name, *args, **more)

    monkeypatch.setattr(_joined, "way", chosen)


def test_where_link_lies_a_new_store_claims_by_mkdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lie(monkeypatch, "link", "open")
    north, _ = meet(tmp_path / "store", "north", "south")
    assert [each.word for each in north.methods] == ["lies", "lies", "exclusive"]
    assert (north.fine, north.claim, north.written) == (True, "mkdir", ("verdict/0.json", "dibs.json"))
    store = Store(tmp_path / "store")
    assert store.backend.traits.claim == "mkdir"
    assert store.claim("spam")
    assert not Store(tmp_path / "store").claim("spam")


def test_where_everything_lies_no_store_is_made_and_none_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie(monkeypatch, "link", "open", "mkdir")
    north, south = meet(tmp_path / "store", "north", "south")
    assert not north.fine
    assert not south.fine
    assert "keeps no claim exclusive: no store can lie here" in north.verdict
    assert "give the bucket itself" in north.verdict
    assert north.written == ("verdict/0.json",)
    assert north.delays == ()
    with pytest.raises(StoreError, match="is refused: `dibs doctor` found"):
        Store(tmp_path / "store")


def test_a_store_that_claims_by_what_lies_is_refused_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    marker = Store(root, unchecked=True).marker
    assert Store(root).claim("before")
    lie(monkeypatch, "link")
    north, _ = meet(root, "north", "south")
    assert (north.fine, north.claim, north.written) == (False, "link", ("verdict/0.json",))
    assert "start a new store" in north.verdict
    with pytest.raises(StoreError, match="start a new store"):
        Store(root)
    assert Store(root, unchecked=True).marker == marker


def test_one_mount_proves_nothing_and_writes_nothing(tmp_path: Path) -> None:
    north, south = meet(tmp_path / "store", "same", "same")
    assert (north.sites, north.fine, north.written) == (1, False, ())
    assert "raced through one mount only" in north.verdict
    assert [each.me for each in south.guests] == ["same#0", "same#1"]
    assert list(tmp_path.iterdir()) == []


def test_what_fails_on_one_machine_alone_is_known_to_all(tmp_path: Path) -> None:
    root = tmp_path / "store"

    def take_part(site: str) -> Joined:
        seen = checkup(root, Here())
        if site == "south":
            seen.ways["link"] = "a gap"  # type: ignore[index]
        return join(seen, "x", 2, Here(), me=site, names=60, patience_s=60, site=site)

    for found in at_once([lambda: take_part("north"), lambda: take_part("south")]):
        assert (found.methods[0].word, found.methods[0].why) == ("lies", "a gap")
        assert (found.claim, found.fine) == ("mkdir", True)


def test_nobody_comes_and_nothing_stays(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="1 of 2 machines came"):
        join(checkup(tmp_path / "store", Here()), "x", 2, Here(), me="north", patience_s=0.01)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(StoreError, match="1 of 2 machines came"):
        join(checkup(tmp_path / "mine", Here()), "x", 2, Here(), me="north", patience_s=0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"], "an empty folder of somebody's own stays"


def test_three_can_meet_and_a_fourth_is_sent_away(tmp_path: Path) -> None:
    root = tmp_path / "store"
    answers = meet(root, "a", "b", "c")
    assert sorted(found.seat for found in answers) == [0, 1, 2]
    assert len(answers[0].delays) == 7 * 6
    with pytest.raises((StoreError, UsageError)):
        join(checkup(root, Here()), "x", 2, Here(), me="late", patience_s=0.01)
