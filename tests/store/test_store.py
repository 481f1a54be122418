"""The store: claim, bind, resolve and scan names; processes, threads, pickles and forks."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.parts import FakeMachine, at_once, body_at, plant, store_over

from dibs.backend import MemoryBackend
from dibs.errors import NotOwner, RecordError, StoreError, Superseded, UsageError
from dibs.store import Store, escape

DIGEST = "ab" * 32
ODD = [
    "spam",
    "Spam",
    "SPAM",
    "a/b",
    "a%2fb",
    "..",
    ".",
    "nul",
    "é" * 90,
    "x" * 300,
    "\U0001f600",
    " ",
    "a\nb",
    "x.json",
]


def test_claim_bind_and_resolve(store: Store) -> None:
    assert store.resolve("spam") is None
    assert store.claim("spam", DIGEST, {"size": 3}) is True
    found = store.resolve("spam")
    assert found is not None
    assert (found.name, found.digest, found.meta) == ("spam", DIGEST, {"size": 3})
    assert found.who["pid"] == store.machine.pid()
    store.bind("spam", None, {"size": 4})
    bound = store.resolve("spam")
    assert bound is not None
    assert (bound.digest, bound.meta) == (None, {"size": 4})


def test_a_claimed_name_is_never_given_again_not_even_to_its_owner(store: Store) -> None:
    assert store.claim("spam")
    assert not store.claim("spam", meta={"mine": True})
    assert not store.claim("spam")
    found = store.resolve("spam")
    assert found is not None
    assert found.meta == {}


def test_only_the_owner_binds(store: Store) -> None:
    store.claim("spam")
    other = Store.over(store.backend, FakeMachine(2))
    with pytest.raises(NotOwner, match="not claimed by this process"):
        other.bind("spam")
    with pytest.raises(NotOwner, match="'nobodys'"):
        store.bind("nobodys")


def test_a_name_removed_and_claimed_by_another_is_lost(store: Store) -> None:
    store.claim("spam")
    store.backend.delete("name/spam.json")
    other = Store.over(store.backend, FakeMachine(2))
    assert other.claim("spam", meta={"theirs": 1})
    with pytest.raises(Superseded):
        store.bind("spam", meta={"ours": 1})
    found = store.resolve("spam")
    assert found is not None
    assert found.meta == {"theirs": 1}


def test_every_name_is_itself(store: Store) -> None:
    for name in ODD:
        assert store.claim(name, meta={"name": name}), name
    for name in ODD:
        found = store.resolve(name)
        assert found is not None
        assert (found.name, found.meta) == (name, {"name": name})
    assert sorted(found.name for found in store.scan()) == sorted(ODD)


def test_scan_by_prefix_of_the_real_name(store: Store) -> None:
    long = "run/" + "x" * 200
    for name in ("run/1", "run/2", "Run/1", "other", long):
        store.claim(name)
    assert sorted(found.name for found in store.scan("run/")) == ["run/1", "run/2", long]
    assert [found.name for found in store.scan("Run/")] == ["Run/1"]
    assert list(store.scan("nothing")) == []


def test_scan_tells_what_it_cannot_read_and_goes_on(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.claim("good")
    for name, junk in {
        "torn": b'{"v":1',
        "empty": b"",
        "foreign": b'{"v":1,"kind":"trial"}',
        "newer": b'{"v":2}',
    }.items():
        plant(store, f"name/{name}.json", junk)
    plant(store, "name/readme", b"put by hand")
    with caplog.at_level(logging.WARNING, "dibs"):
        assert [found.name for found in store.scan()] == ["good"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 5
    assert any("name/torn.json" in line for line in told)


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"v":1}', b'{"v":1,"kind":"name","name":"other","meta":{}}'])
def test_resolving_what_does_not_parse_is_an_error_never_none(store: Store, junk: bytes) -> None:
    plant(store, "name/spam.json", junk)
    with pytest.raises(RecordError, match=r"name/spam\.json"):
        store.resolve("spam")
    assert store.claim("spam") is False


def test_two_long_names_under_one_key_would_be_noticed(store: Store) -> None:
    name = "x" * 200
    store.claim(name)
    body = body_at(store, f"name/{escape(name)}.json")
    plant(store, f"name/{escape(name)}.json", {**body, "name": "y" * 200})
    with pytest.raises(RecordError, match="instead of"):
        store.resolve(name)


@pytest.mark.parametrize("name", ["", None, 5, "\ud800"])
def test_what_is_no_name_claims_nothing(store: Store, name: Any) -> None:
    for use in (store.claim, store.resolve):
        with pytest.raises(UsageError):
            use(name)
    assert list(store.scan()) == []


@pytest.mark.parametrize("meta", [{"a": float("nan")}, {"a": object()}, {"a": b"x"}, [1], "text", {(1, 2): 3}])
def test_a_meta_that_is_not_json_claims_nothing(store: Store, meta: Any) -> None:
    with pytest.raises(UsageError, match="meta of 'spam'"):
        store.claim("spam", meta=meta)
    assert store.resolve("spam") is None


@pytest.mark.parametrize("digest", ["", "abc", DIGEST.upper(), DIGEST + "0", 7])
def test_a_digest_that_is_none_claims_nothing(store: Store, digest: Any) -> None:
    with pytest.raises(UsageError, match="64 characters"):
        store.claim("spam", digest)
    assert store.resolve("spam") is None


def test_threads_racing_for_one_name(store: Store) -> None:
    for k in range(10):
        answers = at_once([lambda me=me, k=k: store.claim(f"race {k}", meta={"me": me}) for me in range(8)])
        assert answers.count(True) == 1
        found = store.resolve(f"race {k}")
        assert found is not None
        assert found.meta == {"me": answers.index(True)}


def test_studies_are_listed_by_their_real_names(store: Store) -> None:
    assert store.studies() == []
    for name in ODD:
        plant(store, store.keys(name).study, {"v": 1, "kind": "study", "study": name})
    assert store.studies() == sorted(ODD)


def test_a_long_study_without_a_readable_record_is_listed_by_its_segment(store: Store) -> None:
    name = "x" * 200
    plant(store, store.keys(name).study, b"{")
    assert store.studies() == [escape(name)]


def test_now_is_the_stores_clock(tmp_path: Path) -> None:
    assert store_over(MemoryBackend(clock=lambda: 123.0)).now() == 123.0
    store = Store(tmp_path / "store")
    stamp = tmp_path / "store" / "stamp"
    stamp.touch()
    assert abs(store.now() - stamp.stat().st_mtime) < 60
    os.utime(stamp, (1, 1))
    assert store.now() > 1_000_000_000


# processes


def test_a_pickled_store_is_another_owner(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.claim("spam", meta={"a": 1})
    store.kept["view", "x"] = object()
    twin = pickle.loads(pickle.dumps(store))
    assert (twin.url, twin.marker, twin.kept) == (store.url, store.marker, {})
    assert twin.settler.patience_s == store.settler.patience_s
    found = twin.resolve("spam")
    assert found is not None
    assert found.meta == {"a": 1}
    with pytest.raises(NotOwner):
        twin.bind("spam")
    assert twin.claim("other")
    assert not store.claim("other")


def test_a_store_in_memory_says_why_it_cannot_be_sent() -> None:
    with pytest.raises(StoreError, match="one process"):
        pickle.dumps(store_over())


FORKED = """
import os, sys
from dibs.errors import NotOwner
from dibs.store import Store
store = Store(sys.argv[1])
assert store.claim("parents")
pid = os.fork()
if pid == 0:
    try:
        store.bind("parents", meta={"by": "child"})
    except NotOwner as told:
        print("child:", type(told).__name__, "forked" in str(told), flush=True)
    nonces = [store.settler.claim(f"name/child{k}.json", {"v": 1}).nonce for k in range(3)]
    print(*nonces, flush=True)
    assert store.claim("childs")
    store.bind("childs", meta={"by": "child"})
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(*[store.settler.claim(f"name/parent{k}.json", {"v": 1}).nonce for k in range(3)])
store.bind("parents", meta={"by": "parent"})
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_is_not_the_owner_and_draws_its_own_nonces(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "store")], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "child: NotOwner True"
    assert len({*lines[1].split(), *lines[2].split()}) == 6
    store = Store(tmp_path / "store")
    assert [store.resolve(name).meta for name in ("parents", "childs")] == [{"by": "parent"}, {"by": "child"}]  # type: ignore[union-attr]


def test_seeding_everything_does_not_seed_the_nonces(tmp_path: Path) -> None:
    code = (
        "import random, sys, numpy; random.seed(0); numpy.random.seed(0); from dibs.store import Store;"
        "print(Store(sys.argv[1]).settler.claim(sys.argv[2], {'v': 1}).nonce)"
    )
    nonces = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "store"), f"name/{k}.json"],
            capture_output=True, text=True, check=True,
        ).stdout
        for k in range(2)
    }  # fmt: skip
    assert len(nonces) == 2


RACER = """
import sys
from dibs.store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(*[k for k in range(200) if store.claim(f"race {k}", meta={"me": sys.argv[2]})], flush=True)
"""


def test_processes_share_out_the_names_and_nobody_gets_one_twice(tmp_path: Path) -> None:
    Store(tmp_path / "store")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "store"), str(me)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for me in range(3)
    ]  # fmt: skip
    assert [racer.stdout.readline() for racer in racers if racer.stdout] == ["ready\n"] * 3
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("\n")
        racer.stdin.flush()
    won = [racer.communicate()[0].split() for racer in racers]
    assert sorted(int(k) for mine in won for k in mine) == list(range(200))
    store = Store(tmp_path / "store")
    for me, mine in enumerate(won):
        assert all(store.resolve(f"race {k}").meta == {"me": str(me)} for k in mine)  # type: ignore[union-attr]
