"""The faulty wrapper: each fault does what it says, and what must hold over all of them does."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from dibs.backend import Backend, FaultyBackend, FolderBackend, MemoryBackend, Outcome
from dibs.errors import StoreError
from dibs.testing import BackendMachine

WON, LOST, UNSURE = Outcome.WON, Outcome.LOST, Outcome.UNSURE


def faulty(inner: Backend, **chances: float) -> FaultyBackend:
    return FaultyBackend(inner, random.Random(1), **chances)


@pytest.fixture(params=["memory", "bucket", "link", "mkdir"])
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    match request.param:
        case "memory":
            return MemoryBackend()
        case "bucket":
            return MemoryBackend(conditional_replace=True)
        case claim:
            return FolderBackend(tmp_path, claim=claim)


def read(backend: Backend, key: str) -> bytes | None:
    held = backend.read(key)
    return None if held is None else held.data


def test_a_lost_request_never_happens(inner: Backend) -> None:
    backend = faulty(inner, lost_request=1.0)
    draft = backend.stage(b"1")
    assert backend.create("a/x", draft) is UNSURE
    assert read(inner, "a/x") is None
    assert inner.create("a/x", draft) is WON, "the same draft may be tried again"
    assert backend.faults == {"lost_request": 1}


def test_a_lost_answer_happened(inner: Backend) -> None:
    backend = faulty(inner, lost_answer=1.0)
    draft = backend.stage(b"1")
    assert backend.create("a/x", draft) is UNSURE
    assert read(inner, "a/x") == b"1"
    assert not draft.spent, "nobody heard what became of the temporary"
    second = backend.stage(b"2")
    assert backend.replace("a/x", second, inner.read("a/x").version) is UNSURE  # type: ignore[union-attr]
    assert read(inner, "a/x") == b"2"
    assert not second.spent
    assert inner.replace("a/x", second, "old") is LOST
    assert backend.discard(second)


def test_after_a_lost_answer_no_repeat_is_told_lost_for_its_own_name(tmp_path: Path) -> None:
    for claim in ("link", "mkdir"):  # where the temporary can tell; memory and buckets leave it to the name
        inner = FolderBackend(tmp_path / claim, claim=claim)
        inner.prepare()
        draft = inner.stage(b"1")
        assert faulty(inner, lost_answer=1.0).create("a/x", draft) is UNSURE
        assert inner.create("a/x", draft) is not LOST


def test_a_late_write_lands_when_told(inner: Backend) -> None:
    backend = faulty(inner, late=1.0, landing=0.0)
    first, second = backend.stage(b"1"), backend.stage(b"2")
    assert backend.create("a/x", first) is UNSURE
    assert backend.create("a/x", second) is UNSURE
    assert (backend.waiting, read(inner, "a/x")) == (2, None)
    backend.land(1)
    assert (backend.waiting, read(inner, "a/x")) == (1, b"2")
    backend.land_all()
    assert (backend.waiting, read(inner, "a/x")) == (0, b"2")


def test_a_late_write_lands_by_itself_at_a_later_verb(inner: Backend) -> None:
    backend = faulty(inner, late=1.0, landing=1.0)
    assert backend.create("a/x", backend.stage(b"1")) is UNSURE
    assert read(backend, "a/x") == b"1"
    assert backend.waiting == 0


def test_discard_stops_a_late_write_on_a_folder(inner: Backend) -> None:
    backend = faulty(inner, late=1.0, landing=0.0)
    draft = backend.stage(b"1")
    assert backend.create("a/x", draft) is UNSURE
    assert backend.discard(draft) is True
    backend.land_all()
    assert read(inner, "a/x") == (b"1" if inner.traits.claim == "put" else None)


def test_a_late_rewrite_never_undoes_a_newer_one(inner: Backend) -> None:
    assert inner.create("a/x", inner.stage(b"0")) is WON
    backend = faulty(inner, late=1.0, landing=0.0)
    version = inner.read("a/x").version  # type: ignore[union-attr]
    draft = backend.stage(b"1")
    assert backend.replace("a/x", draft, version) is UNSURE
    assert inner.replace("a/x", draft, version) is WON, "repeated from the same temporary"
    assert inner.replace("a/x", inner.stage(b"2"), inner.read("a/x").version) is WON  # type: ignore[union-attr]
    backend.land_all()
    assert read(inner, "a/x") == b"2"


def test_errors_and_conflicts() -> None:
    inner = MemoryBackend(conditional_replace=True)
    assert inner.create("a/x", inner.stage(b"1")) is WON
    with pytest.raises(StoreError, match="disk is full"):
        faulty(inner, stage_error=1.0).stage(b"")
    backend = faulty(inner, read_error=1.0)
    for verb in (
        lambda: backend.read("a/x"),
        lambda: backend.stream("a/x"),
        lambda: backend.list("a/"),
        lambda: backend.folders(""),
        lambda: backend.names(""),
        lambda: backend.version("a/x"),
    ):
        with pytest.raises(StoreError, match="made-up"):
            verb()
    assert faulty(inner, conflict=1.0).create("a/y", inner.stage(b"1")) is LOST
    assert read(inner, "a/y") is None
    folder = MemoryBackend()
    assert faulty(folder, conflict=1.0).create("a/y", folder.stage(b"1")) is WON, "a folder knows no conflict"


def test_a_stale_listing_is_an_earlier_one() -> None:
    backend = faulty(MemoryBackend(), stale_list=1.0)
    assert list(backend.list("a/")) == [], "the first has nothing earlier"
    assert backend.create("a/x", backend.stage(b"1")) is WON
    assert list(backend.list("a/")) == []
    assert [entry.key for entry in backend.list("")] == ["a/x"]
    assert backend.names("") == backend.names("") == ["a"]
    assert backend.create("b/x", backend.stage(b"1")) is WON
    assert backend.names("") == ["a"]
    assert backend.faults == {"stale_list": 3}


def test_the_same_seed_makes_the_same_faults() -> None:
    def run(seed: int) -> list[Outcome]:
        backend = FaultyBackend(MemoryBackend(), random.Random(seed), lost_answer=0.2, lost_request=0.2, late=0.2)
        return [backend.create(f"a/{n}", backend.stage(b"1")) for n in range(50)]

    assert run(7) == run(7) != run(8)
    assert set(run(7)) == {WON, UNSURE}


@pytest.mark.parametrize("seed", range(20))
def test_of_all_claimants_at_most_one_is_told_won(inner: Backend, seed: int) -> None:
    backend = FaultyBackend(
        inner, random.Random(seed), lost_answer=0.2, lost_request=0.1, late=0.3, conflict=0.1, landing=0.3
    )
    drafts = [backend.stage(b"%d" % i) for i in range(4)]
    told = [backend.create("a/x", draft) for draft in drafts for _ in range(2)]
    won = {i // 2 for i, outcome in enumerate(told) if outcome is WON}
    backend.land_all()
    assert len(won) <= 1
    for i in won:
        assert read(inner, "a/x") == b"%d" % i


class FaultyMachine(BackendMachine):
    """Lost requests and answers, settled by reading the name; late ones would make the dict guess."""

    bucket = False

    def make_backend(self) -> Backend:
        inner: Backend = MemoryBackend(conditional_replace=self.bucket)
        return FaultyBackend(inner, random.Random(3), lost_answer=0.3, lost_request=0.3)


class FaultyBucketMachine(FaultyMachine):
    bucket = True


class FaultyFolderMachine(FaultyMachine):
    def make_backend(self) -> Backend:
        self.folder = tempfile.mkdtemp()
        return FaultyBackend(FolderBackend(self.folder), random.Random(3), lost_answer=0.3, lost_request=0.3)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


TestFaultyMachine = FaultyMachine.TestCase
TestFaultyBucketMachine = FaultyBucketMachine.TestCase
TestFaultyFolderMachine = FaultyFolderMachine.TestCase
TestFaultyMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)
TestFaultyBucketMachine.settings = TestFaultyFolderMachine.settings = TestFaultyMachine.settings
