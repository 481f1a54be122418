"""A name whose first claim is not written, or written late: what anybody has once seen decided stays, whoever dies where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine

from dibs import RoundTimeout, Store
from dibs.backend import Draft, FolderBackend, Killed, Object, Outcome
from dibs.backend._folder import CLAIM
from dibs.federation._decided import decide, decided
from dibs.record import decode, encode


class Stepping(FolderBackend):
    """Something may happen before each call, and between a claim's mkdir and its record."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, claim="mkdir", fsync="none")
        self.calls, self.dead = 0, False
        self.before: Callable[[int], None] = lambda count: None

    def step(self) -> None:
        self.calls += 1
        self.before(self.calls)
        if self.dead:
            raise Killed

    def stage(self, data: Any, *, durable: bool = False) -> Draft:
        self.step()
        return super().stage(data, durable=durable)

    def create(self, key: str, draft: Draft) -> Outcome:
        self.step()
        return super().create(key, draft)

    def _write_claimed(self, key: str, draft: Any) -> Outcome:
        self.step()
        return super()._write_claimed(key, draft)

    def replace(self, key: str, draft: Draft, version: str | None) -> Outcome:
        self.step()
        return super().replace(key, draft, version)

    def read(self, key: str) -> Object | None:
        self.step()
        return super().read(key)

    def discard(self, draft: Draft) -> bool:
        self.step()
        return super().discard(draft)


def name(again: int) -> str:
    return f"round/r/00000000/{f'again/terms/{again}' if again else 'terms'}.json"


def body(store: Store, says: str) -> dict[str, Any]:
    return {**store.head("round-terms"), "run": "r", "round": 0, "says": says}


class Others:
    """The first owner, that sleeps between its mkdir and its record, and somebody who looks all the time."""

    def __init__(self, root: Path) -> None:
        self.backend = FolderBackend(root, claim="mkdir", fsync="none")
        self.backend.prepare()
        self.store = Store.over(self.backend, FakeMachine(7))
        self.path = root / name(0)
        Path(f"{self.path}{CLAIM}").mkdir(parents=True)
        self.seen: set[str] = set()

    def wake(self) -> None:
        self.path.write_bytes(encode({**body(self.store, "first"), "nonce": "0" * 32}))

    def look(self) -> None:
        there = decided(self.store, name)
        if there is not None:
            self.seen.add(decode(there.data, "")["says"])


def follower(root: Path, pid: int) -> tuple[Store, Stepping]:
    backend = Stepping(root)
    return Store.over(backend, FakeMachine(pid)), backend


def says(store: Store, word: str) -> str:
    there, ours = decide(store, name, body(store, word), stale_s=0.05, within_s=1e9)
    said = str(decode(there.data, "")["says"])
    assert not (ours and said != word)
    return said


def test_the_first_may_wake_at_any_moment(tmp_path: Path) -> None:
    outcomes, at, late = set(), 0, False
    while not late:
        at += 1
        others = Others(tmp_path / f"{at}")
        store, backend = follower(tmp_path / f"{at}", 1)

        def before(count: int, at: int = at, others: Others = others) -> None:
            others.look()
            if count == at:
                others.wake()
                others.look()

        backend.before = before
        said = says(store, "second")
        late = at > backend.calls
        if late:
            others.wake()
        others.look()
        assert others.seen == {said}, at
        assert says(follower(tmp_path / f"{at}", 2)[0], "third") == said
        outcomes.add(said)
    assert outcomes == {"first", "second"}


@pytest.mark.parametrize("wakes", [False, True])
def test_the_one_that_follows_may_die_at_any_moment(tmp_path: Path, wakes: bool) -> None:
    """And the first wakes while the next one follows that, at any moment, too."""
    died, ended = 0, False
    while not ended:
        died += 1
        for at in range(1, 40, 3) if wakes else [10**9]:
            root = tmp_path / f"{died}-{at}"
            others = Others(root)
            store, backend = follower(root, 1)

            def dies(count: int, died: int = died, others: Others = others, backend: Stepping = backend) -> None:
                others.look()
                backend.dead = count >= died

            backend.before = dies
            try:
                ended = says(store, "second") == "second"
            except Killed:
                pass
            third, stepping = follower(root, 3)

            def before(count: int, at: int = at, others: Others = others) -> None:
                others.look()
                if count == at:
                    others.wake()

            stepping.before = before
            said = says(third, "third")
            others.look()
            assert others.seen == {said}, (died, at)


def test_two_that_follow_at_once_agree(tmp_path: Path) -> None:
    """The second one does all of it between any two calls of the first."""
    at, late = 0, False
    while not late:
        at += 1
        others = Others(tmp_path / f"{at}")
        store, backend = follower(tmp_path / f"{at}", 1)
        said: list[str] = []

        def before(count: int, at: int = at, others: Others = others, said: list[str] = said) -> None:
            others.look()
            if count == at:
                said.append(says(follower(tmp_path / f"{at}", 2)[0], "third"))

        backend.before = before
        said.append(says(store, "second"))
        others.wake()
        others.look()
        assert {*said} == others.seen, at
        late = len(said) == 1


def test_it_is_not_waited_for_longer_than_one_was_told(tmp_path: Path) -> None:
    others = Others(tmp_path)
    before = others.store.machine.clock.monotonic()
    with pytest.raises(RoundTimeout, match=r"terms\.json was claimed and not written within 5 s"):
        decide(others.store, name, body(others.store, "x"), stale_s=60, within_s=5)
    assert others.store.machine.clock.monotonic() - before < 10


def test_what_does_not_parse_is_somebodys(tmp_path: Path) -> None:
    """It is not followed: what it says is damaged, and its readers are told."""
    others = Others(tmp_path)
    others.path.write_bytes(b"{")
    there, ours = decide(others.store, name, body(others.store, "x"), stale_s=60, within_s=5)
    assert (there.data, ours) == (b"{", False)
