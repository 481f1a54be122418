"""The journal behind the Optuna storage: one order for all, whole entries, rolls that nothing depends on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

from dibs.backend import Backend, CountingBackend, FaultyBackend, FolderBackend, MemoryBackend
from dibs.errors import NewerFormat, RefusedError
from dibs.integrations import _journal
from dibs.integrations._journal import Journal
from dibs.store import JournalKeys, Store
from dibs.upkeep import check

_PIDS = itertools.count(1)
KEYS = JournalKeys("j")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolls of eight."""
    monkeypatch.setattr(JournalKeys, "PER_ROLL", 8)
    monkeypatch.setattr(_journal, "_AT_ONCE", 4)
    monkeypatch.setattr(_journal, "_LATE", 3)


@pytest.fixture(params=["memory", "bucket", "link"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param != "link":
        return MemoryBackend(conditional_replace=request.param == "bucket")
    folder = FolderBackend(tmp_path / "store")
    folder.prepare()
    return folder


def opened(backend: Backend) -> Store:
    return store_over(backend, FakeMachine(next(_PIDS)), patience_s=600.0)


class Reader:
    """A journal with all that it was told."""

    def __init__(self, backend: Backend, name: str = "j") -> None:
        self.journal, self.told = Journal(opened(backend), name), []

    def seen(self, entries: list[list[str]]) -> None:
        self.told += entries

    def add(self, *texts: str) -> None:
        self.journal.append(texts, self.seen)

    def all(self) -> list[list[str]]:
        while (found := self.journal.read()) is not None:
            self.seen(found)
        return self.told


def filled(backend: Backend, count: int) -> list[list[str]]:
    writer = Reader(backend)
    for k in range(count):
        writer.add(f"{k}", "é\n")
    return writer.told


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 30])
def test_a_fresh_reader_is_told_what_was_written(backend: Backend, count: int) -> None:
    written = filled(backend, count)
    assert [texts[0] for texts in written] == [str(k) for k in range(count)]
    reader = Reader(backend)
    assert reader.all() == written
    assert reader.all() == written, "and nothing twice"


def test_writers_that_race_are_told_one_order(backend: Backend) -> None:
    writers = [Reader(backend) for _ in range(4)]

    def write(at: int) -> Callable[[], None]:
        return lambda: [writers[at].add(f"{at}-{k}") for k in range(25)] and None

    at_once([write(at) for at in range(4)])
    told = Reader(backend).all()
    assert sorted(text for [text] in told) == sorted(f"{at}-{k}" for at in range(4) for k in range(25))
    assert all(writer.all() == told for writer in writers)
    assert [text for [text] in told if text.startswith("2-")] == [f"2-{k}" for k in range(25)]


@pytest.mark.parametrize("seed", range(30))
def test_lost_answers_and_late_writes_neither_double_nor_drop_an_entry(seed: int) -> None:
    inner = MemoryBackend(conditional_replace=seed % 2 == 1)
    faulty = FaultyBackend(inner, random.Random(seed), lost_answer=0.2, lost_request=0.2, late=0.2, conflict=0.1)
    writers = [Reader(faulty) for _ in range(3)]
    for k in range(20):
        writers[k % 3].add(str(k))
    faulty.land_all()
    assert [text for [text] in Reader(inner).all()] == [str(k) for k in range(20)]


def test_several_texts_are_one_entry(backend: Backend) -> None:
    Reader(backend).add("a", "b", "c")
    assert Reader(backend).all() == [["a", "b", "c"]]
    assert backend.version(KEYS.entry(1)) is None


def test_who_joins_late_reads_rolls(backend: Backend) -> None:
    written = filled(backend, 8 * 5 + 1)
    assert all(backend.version(KEYS.roll(block)) for block in range(5))
    counting = CountingBackend(backend)
    assert Reader(counting).all() == written
    assert counting.counts["read"] < 20


@pytest.mark.parametrize("junk", [b"", b"{", b'{"v":1}', b'{"v":1,"log":"j","entries":[null]}', b'{"v":1,"log":"k"}'])
def test_nothing_depends_on_a_roll(backend: Backend, junk: bytes) -> None:
    written = filled(backend, 20)
    plant(opened(backend), KEYS.roll(0), junk)
    assert Reader(backend).all() == written


def test_a_roll_that_its_writer_did_not_live_to_write_is_written_by_another(backend: Backend) -> None:
    written = filled(backend, 9)
    backend.delete(KEYS.roll(0))
    reader = Reader(backend)
    assert reader.all() == written
    reader.add("9")
    assert backend.version(KEYS.roll(0)) is None, "not at once: whose task it was may be about to"
    reader.add("10")
    assert body_at(opened(backend), KEYS.roll(0))["entries"] == written[:8]


@pytest.mark.parametrize("junk", [b"", b'{"v":1,"ki', b"\xff", b'{"v":1,"log":"j"}', b'{"v":1,"log":"k","logs":[]}'])
@pytest.mark.parametrize("at", [3, 7])
def test_a_damaged_entry_is_left_out_and_told(
    backend: Backend, junk: bytes, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    filled(backend, 7)
    if at == 7:
        Reader(backend).add("7")
        backend.delete(KEYS.roll(0))
    plant(opened(backend), KEYS.entry(at), junk)
    reader = Reader(backend)
    reader.all()
    reader.add("more")
    fresh = Reader(backend)
    assert fresh.all() == reader.told
    assert [] in reader.told
    assert [["more"], [str(at)] not in [texts[:1] for texts in reader.told]] == [reader.told[-1], True]
    assert list(reader.journal.skipped) == [KEYS.entry(at)]
    assert KEYS.entry(at) in caplog.text


def test_an_entry_that_comes_late_is_waited_for(backend: Backend) -> None:
    filled(backend, 3)
    whole = backend.read(KEYS.entry(1))
    assert whole is not None
    plant(opened(backend), KEYS.entry(1), b"")
    reader = Reader(backend)
    clock = reader.journal.store.machine.clock
    slept = clock.sleep

    def sleep(seconds: float) -> None:
        slept(seconds)
        plant(opened(backend), KEYS.entry(1), whole.data)

    clock.sleep = sleep  # type: ignore[method-assign]
    assert [texts[0] for texts in reader.all()] == ["0", "1", "2"]


def test_a_later_version_stops_reading(backend: Backend) -> None:
    filled(backend, 3)
    plant(opened(backend), KEYS.entry(1), b'{"v":2}')
    with pytest.raises(NewerFormat):
        Reader(backend).all()


def test_a_hole_is_filled_by_the_next_writer(backend: Backend) -> None:
    filled(backend, 5)
    backend.delete(KEYS.entry(2))
    late = Reader(backend)
    assert len(late.all()) == 2
    late.add("new")
    assert [texts[0] for texts in late.all()] == ["0", "1", "new", "3", "4"]


def test_a_copy_in_a_roll_is_the_entry(backend: Backend) -> None:
    written = filled(backend, 20)
    backend.delete(KEYS.entry(2))
    plant(opened(backend), KEYS.entry(3), b"")
    assert Reader(backend).all() == written


def test_journals_are_apart(backend: Backend) -> None:
    Reader(backend, "a").add("a")
    long = "x" * 200
    Reader(backend, long).add("long")
    assert Reader(backend, "A").all() == []
    assert Reader(backend, "a").all() == [["a"]]
    assert Reader(backend, long).all() == [["long"]]


def test_a_store_that_claims_by_mkdir_is_refused(tmp_path: Path) -> None:
    folder = FolderBackend(tmp_path / "store", claim="mkdir")
    folder.prepare()
    with pytest.raises(RefusedError, match="mkdir"):
        Journal(opened(folder), "j")


class TestUpkeep:
    """What check says; with rolls of their real size."""

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As they are."""

    @pytest.fixture
    def many(self) -> MemoryBackend:
        backend = MemoryBackend()
        filled(backend, 1030)
        return backend

    @staticmethod
    def kinds(backend: Backend) -> list[str]:
        return [finding.kind for finding in check(opened(backend)).findings]

    def test_a_journal_that_is_well_is_clean(self, many: MemoryBackend) -> None:
        assert self.kinds(many) == []

    def test_each_damage_is_named(self) -> None:
        backend = MemoryBackend()
        filled(backend, 6)
        plant(opened(backend), KEYS.entry(1), b"{")
        assert self.kinds(backend) == ["left out"]
        backend.delete(KEYS.entry(1))
        assert self.kinds(backend) == ["hole"]
        plant(opened(backend), "optuna/j/entry/000001/00000003.json", b"{}")
        assert "foreign" in self.kinds(backend)

    def test_what_a_roll_has_is_missed_by_nobody(self, many: MemoryBackend) -> None:
        there = many.read(KEYS.entry(5))
        assert there is not None
        many.delete(KEYS.entry(5))
        assert self.kinds(many) == []
        plant(opened(many), KEYS.entry(5), there.data)
        roll = many.read(KEYS.roll(0))
        assert roll is not None
        plant(opened(many), KEYS.roll(0), b"{")
        assert self.kinds(many) == ["torn"]
        plant(opened(many), KEYS.roll(0), roll.data)
