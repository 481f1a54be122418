"""Won, lost or unsure: claims and rewrites end in certainty, or in an error that says they did not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

from dibs.backend import Backend, Draft, FaultyBackend, FolderBackend, MemoryBackend, Outcome, WrapperBackend
from dibs.errors import AlreadyClosed, NotOwner, StoreError, Superseded, UnsureError
from dibs.store import Held, Settler

KEY = "name/x.json"
BODY: dict[str, Any] = {"v": 1, "kind": "name"}


@pytest.fixture(params=["memory", "bucket", "link", "mkdir"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Backend]:
    """Makes an empty backend of each kind."""

    def backend() -> Backend:
        if request.param in ("memory", "bucket"):
            return MemoryBackend(conditional_replace=request.param == "bucket")
        folder = FolderBackend(tmp_path / "store", claim=request.param)
        folder.prepare()
        return folder

    return backend


@pytest.fixture
def backend(make: Callable[[], Backend]) -> Backend:
    return make()


def settler(backend: Backend, pid: int = 1, patience_s: float = 5.0) -> Settler:
    return Settler(backend, FakeMachine(pid), patience_s)


def claimed(settler: Settler, body: dict[str, Any] | None = None) -> Held:
    held = settler.claim(KEY, body or BODY)
    assert held is not None
    return held


def test_of_two_claims_one_wins_and_its_nonce_is_in_the_name(backend: Backend) -> None:
    one, other = settler(backend, 1), settler(backend, 2)
    held = claimed(one)
    assert other.claim(KEY, BODY) is None
    assert one.claim(KEY, BODY) is None
    assert body_at(store_over(backend), KEY) == {**BODY, "nonce": held.nonce}
    assert len(held.nonce) == 32


def test_an_unreadable_name_is_somebodys(backend: Backend) -> None:
    for junk in (b"", b"{", b"\xff" * 100, b"[]"):
        store = store_over(backend)
        plant(store, KEY, junk)
        assert settler(backend).claim(KEY, BODY) is None
        backend.delete(KEY)


def test_every_claim_has_a_nonce_of_its_own(backend: Backend) -> None:
    ours = settler(backend)
    nonces = set()
    for k in range(5):
        held = ours.claim(f"name/{k}.json", BODY)
        assert held is not None
        nonces.add(held.nonce)
    assert len(nonces) == 5


def test_threads_that_race_for_one_name(backend: Backend) -> None:
    settlers = [settler(backend, pid) for pid in range(8)]
    for k in range(10):
        answers = at_once([lambda s=s, k=k: s.claim(f"name/{k}.json", BODY) for s in settlers])
        won = [held for held in answers if held is not None]
        assert len(won) == 1
        assert body_at(store_over(backend), f"name/{k}.json")["nonce"] == won[0].nonce


# rewrites


def test_a_rewrite_replaces_the_whole_and_keeps_unknown_fields(backend: Backend) -> None:
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    plant(store_over(backend), KEY, {**held.body, "colour": "blue"})
    ours.rewrite(held, {**BODY, "state": "done", "score": 1.0})
    assert body_at(store_over(backend), KEY) == {
        **BODY, "state": "done", "score": 1.0, "colour": "blue", "nonce": held.nonce,
    }  # fmt: skip


@pytest.mark.parametrize("state", ["done", "pruned", "failed", "interrupted"])
def test_the_first_close_is_the_last_write(backend: Backend, state: str) -> None:
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    ours.rewrite(held, {**BODY, "state": "running"})
    ours.rewrite(held, {**BODY, "state": state})
    for later in ("running", "done"):
        with pytest.raises(AlreadyClosed, match=state):
            ours.rewrite(held, {**BODY, "state": later})
    assert body_at(store_over(backend), KEY)["state"] == state


def test_a_state_of_another_type_is_no_end(backend: Backend) -> None:
    """Somebody edited our open record by hand: it is ours to close all the same."""
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    plant(store_over(backend), KEY, {**held.body, "state": {"is": "done"}})
    ours.rewrite(held, {**BODY, "state": "done"})
    assert body_at(store_over(backend), KEY)["state"] == "done"


def test_a_name_removed_by_hand_is_claimed_again_never_renamed_over(backend: Backend) -> None:
    ours = settler(backend)
    held = claimed(ours)
    backend.delete(KEY)
    ours.rewrite(held, {**BODY, "meta": 1})
    assert body_at(store_over(backend), KEY) == {**BODY, "meta": 1, "nonce": held.nonce}


@pytest.mark.parametrize("version", [1, 2])
def test_a_name_removed_and_claimed_anew_is_not_ours(backend: Backend, version: int) -> None:
    """Also when a later version of dibs claimed it, whose record this one cannot read."""
    ours, theirs = settler(backend, 1), settler(backend, 2)
    held = claimed(ours)
    backend.delete(KEY)
    other = claimed(theirs, {"v": version, "kind": "name", "who": {"me": "node7"}})
    with pytest.raises(Superseded, match=r"x\.json was removed and claimed anew"):
        ours.rewrite(held, {**BODY, "meta": 1})
    assert body_at(store_over(backend), KEY)["nonce"] == other.nonce


def test_a_torn_record_is_its_owners_to_mend(backend: Backend) -> None:
    ours = settler(backend)
    held = claimed(ours)
    for junk in (b"", b'{"v":1,"ki', b"\0" * 50):
        plant(store_over(backend), KEY, junk)
        ours.rewrite(held, {**BODY, "meta": 1})
        assert body_at(store_over(backend), KEY)["meta"] == 1


def test_after_a_fork_the_child_is_not_the_owner(backend: Backend) -> None:
    ours = settler(backend)
    held = claimed(ours)
    assert isinstance(ours.machine, FakeMachine)
    ours.machine.become(2)
    with pytest.raises(NotOwner, match="forked"):
        ours.rewrite(held, BODY)


def test_threads_of_one_owner_write_one_after_the_other(backend: Backend) -> None:
    ours = settler(backend)
    held = claimed(ours)
    at_once([lambda k=k: ours.rewrite(held, {**BODY, f"field{k}": k}) for k in range(6)])
    assert body_at(store_over(backend), KEY) == {**BODY, "nonce": held.nonce, **{f"field{k}": k for k in range(6)}}


# doubt


class Script(FaultyBackend):
    """Answers the next creates and replaces as told: "unsure" (did not happen), "landed" (did, unsure), "late"."""

    def __init__(self, inner: Backend, *acts: str) -> None:
        super().__init__(inner, random.Random(0))
        self.acts = list(acts)
        self.later: list[Callable[[], Any]] = []

    def _write(self, draft: Any, call: Callable[[], Outcome]) -> Outcome:
        act = self.acts.pop(0) if self.acts else "sure"
        if act == "sure":
            return call()
        if act == "landed":
            spent = draft.spent
            call()
            draft.spent = spent
        elif act == "late":
            self.later.append(call)
        return Outcome.UNSURE


@pytest.mark.parametrize("acts", [["landed"], ["unsure"], ["unsure", "unsure", "landed"], ["late"], ["late", "late"]])
def test_an_unclear_claim_is_settled_by_the_name(make: Callable[[], Backend], acts: list[str]) -> None:
    backend = Script(make(), *acts)
    ours = settler(backend)
    held = claimed(ours)
    for late in backend.later:
        late()
    assert body_at(store_over(backend.inner), KEY)["nonce"] == held.nonce
    assert settler(backend, 2).claim(KEY, BODY) is None


def test_an_unclear_claim_that_somebody_else_won_is_lost(make: Callable[[], Backend]) -> None:
    backend = Script(make(), "unsure")
    theirs = claimed(settler(backend.inner, 2))
    assert settler(backend).claim(KEY, BODY) is None
    assert body_at(store_over(backend.inner), KEY)["nonce"] == theirs.nonce


@pytest.mark.parametrize("acts", [["landed"], ["unsure"], ["unsure", "landed"], ["unsure"] * 4, ["landed", "landed"]])
def test_an_unclear_rewrite_is_repeated_until_it_is_known(make: Callable[[], Backend], acts: list[str]) -> None:
    backend = Script(make())
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    backend.acts = acts
    ours.rewrite(held, {**BODY, "state": "done", "score": 1.0})
    assert body_at(store_over(backend.inner), KEY)["score"] == 1.0
    with pytest.raises(AlreadyClosed):
        ours.rewrite(held, {**BODY, "state": "failed"})


def test_doubt_that_does_not_end_is_an_error_that_names_the_key(make: Callable[[], Backend]) -> None:
    backend = Script(make(), *["unsure"] * 1000)
    ours = settler(backend, patience_s=5.0)
    with pytest.raises(UnsureError, match=r"name/x\.json.*5 s") as told:
        ours.claim(KEY, BODY)
    assert told.value.key == KEY
    assert isinstance(ours.machine, FakeMachine)
    assert 5.0 <= sum(ours.machine.clock.slept) < 12.0


@pytest.mark.parametrize("bucket", [False, True])
def test_what_was_given_up_never_lands_over_something_newer(bucket: bool) -> None:
    """The folder's temporary is removed first; the bucket's late request carries an etag that is gone by then."""
    backend = Script(MemoryBackend(conditional_replace=bucket))
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    backend.acts = ["late"] * 1000
    with pytest.raises(UnsureError):
        ours.rewrite(held, {**BODY, "state": "done", "score": 0.5})
    backend.acts = []
    ours.rewrite(held, {**BODY, "state": "interrupted"})
    for late in backend.later:
        late()
    assert body_at(store_over(backend.inner), KEY)["state"] == "interrupted"


def test_nothing_new_is_written_while_an_old_write_may_still_land() -> None:
    class Stuck(Script):
        discards = False

        def discard(self, draft: Any) -> bool:
            return super().discard(draft) if self.discards else False

    backend = Stuck(MemoryBackend())
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    backend.acts = ["unsure"] * 1000
    with pytest.raises(UnsureError):
        ours.rewrite(held, {**BODY, "state": "done"})
    backend.acts = []
    with pytest.raises(UnsureError, match="may still land"):
        ours.rewrite(held, {**BODY, "state": "failed"})
    assert body_at(store_over(backend.inner), KEY)["state"] == "running"
    backend.discards = True
    ours.rewrite(held, {**BODY, "state": "failed"})
    assert body_at(store_over(backend.inner), KEY)["state"] == "failed"


def test_a_read_that_fails_says_nothing_about_the_name() -> None:
    class Blind(Script):
        failures = 0

        def read(self, key: str) -> Any:
            if self.failures:
                self.failures -= 1
                raise StoreError("input/output error")
            return super().read(key)

    backend = Blind(MemoryBackend())
    ours = settler(backend)
    held = claimed(ours, {**BODY, "state": "running"})
    backend.failures = 3
    ours.rewrite(held, {**BODY, "state": "done"})
    backend.failures, backend.acts = 2, ["landed"]
    assert ours.claim("name/y.json", BODY) is not None
    backend.failures = 10**6
    with pytest.raises(UnsureError):
        ours.rewrite(held, {**BODY, "state": "failed"})


def test_a_full_disk_claims_nothing(make: Callable[[], Backend]) -> None:
    backend = FaultyBackend(make(), random.Random(0), stage_error=1.0)
    with pytest.raises(StoreError, match="full"):
        settler(backend).claim(KEY, BODY)
    assert backend.inner.read(KEY) is None


@pytest.mark.parametrize("seed", range(15))
def test_whatever_a_network_does_one_claims_and_the_name_says_who(make: Callable[[], Backend], seed: int) -> None:
    inner = make()
    rng = random.Random(seed)
    backend = FaultyBackend(
        inner, rng, lost_answer=0.3, lost_request=0.2, read_error=0.2, late=0.1, conflict=0.2, landing=0.3
    )
    settlers = [settler(backend, pid, patience_s=10_000.0) for pid in range(4)]
    for k in range(6):
        rng.shuffle(settlers)
        key = f"name/{k}.json"
        won = [held for one in settlers if (held := one.claim(key, BODY))]
        backend.land_all()
        assert len(won) == 1
        assert body_at(store_over(inner), key)["nonce"] == won[0].nonce
    assert backend.faults.total() > 0


# temporaries that somebody deletes


class Swept(WrapperBackend):
    """Somebody deletes the next few temporaries as soon as they are there."""

    sweeps = 0

    def stage(self, data: bytes | Iterable[bytes], *, durable: bool = False) -> Draft:
        draft = self.inner.stage(data, durable=durable)
        if self.sweeps > 0:
            self.sweeps -= 1
            if isinstance(self.inner, MemoryBackend):
                self.inner._temps.pop(draft.temp, None)
            else:
                assert self.root is not None
                (self.root / draft.temp).unlink()
        return draft


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_a_temporary_that_somebody_deletes_is_written_again(backend: Backend, sweeps: int, durable: bool) -> None:
    swept = Swept(backend)
    ours = settler(swept)
    swept.sweeps = sweeps
    held = ours.claim(KEY, {**BODY, "state": "running"}, durable=durable)
    assert held is not None
    assert body_at(store_over(backend), KEY)["nonce"] == held.nonce
    swept.sweeps = sweeps
    ours.rewrite(held, {**BODY, "state": "done"}, durable=durable)
    assert body_at(store_over(backend), KEY)["state"] == "done"
    assert isinstance(ours.machine, FakeMachine)
    assert sum(ours.machine.clock.slept) < 1.0, "there was no doubt to wait out"
    assert [entry.key for entry in backend.list("tmp/")] == []


def test_a_claim_whose_temporary_is_deleted_can_still_be_lost(backend: Backend) -> None:
    swept = Swept(backend)
    swept.sweeps = 1
    theirs = claimed(settler(backend, 2))
    assert settler(swept).claim(KEY, BODY) is None
    assert body_at(store_over(backend), KEY)["nonce"] == theirs.nonce
