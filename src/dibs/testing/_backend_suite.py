"""The conformance suite of the storage contract: every guarantee of ``dibs.backend.Backend`` as a test.

A new backend's test is a class of a few lines, in a file that pytest collects:

    class TestMine(BackendSuite):
        @pytest.fixture
        def backend(self, tmp_path): return Mine(tmp_path)
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dibs.backend import Backend, Entry, Outcome
from dibs.errors import UsageError
from dibs.testing._backend_races import BackendRaces, data_of, held_at, put, rewrite

__all__ = ["BackendSuite"]

WON, LOST = Outcome.WON, Outcome.LOST
MIB = 1 << 20

# In byte order, and no key is a prefix of another: a folder sorts as "name/", behind "name-" and "name.".
KEYS = [
    "a-b/x.json",
    "a.b/x.json",
    "a.json",
    "a/0.json",
    "a/b-c/x.json",
    "a/b/%c3%a9.json",
    "a/b/0.json",
    "a/b/00000001-0.json",
    "a/b/00000001-1.json",
    "a/b0/x.json",
    "a0/x.json",
    "b.json",
]


class BackendSuite(BackendRaces):
    """Inherit, and give a ``backend`` fixture that makes an empty one. Threads and processes are real."""

    clock_slack_s = 2.0  # stamps may be this coarse

    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        raise NotImplementedError("give your backend as the fixture `backend`")

    def _can_land_late(self, backend: Backend) -> bool:
        return backend.traits.claim == "put"  # a request on its way carries its bytes; a link needs the temporary

    # ---- one key

    def test_what_is_created_is_read(self, backend: Backend) -> None:
        put(backend, "study/spam/study.json", bytes(range(256)) + b"\r\n\0")
        held = held_at(backend, "study/spam/study.json")
        assert held.data == bytes(range(256)) + b"\r\n\0"
        assert held.version

    def test_empty_data_is_data(self, backend: Backend) -> None:
        put(backend, "a/empty", b"")
        held = held_at(backend, "a/empty")
        assert held.data == b""
        assert b"".join(backend.stream("a/empty") or [b"missing"]) == b""

    @pytest.mark.parametrize("key", ["nothing", "no/such/key"])
    def test_a_missing_key_is_no_error(self, backend: Backend, key: str) -> None:
        for turn in range(2):  # in an empty store, and in one that has keys
            assert backend.read(key) is None
            assert backend.stream(key) is None
            assert backend.delete(key) is False
            if backend.traits.touch:
                assert backend.touch(key) is False
            put(backend, f"no/other/{turn}")

    def test_below_a_key_there_is_no_key(self, backend: Backend) -> None:
        put(backend, "a/x.json")
        assert backend.read("a/x.json/y") is None
        assert backend.stream("a/x.json/y") is None
        assert list(backend.list("a/x.json/")) == []

    def test_a_name_is_given_once(self, backend: Backend) -> None:
        put(backend, "a/x", b"first")
        draft = backend.stage(b"second")
        assert backend.create("a/x", draft) is LOST
        assert data_of(backend, "a/x") == b"first"
        assert backend.create("a/y", draft) is WON, "a draft that lost may be tried at another name"
        assert data_of(backend, "a/y") == b"second"

    @pytest.mark.parametrize(
        "key",
        [
            "study/%53pam%20v2/%c3%a9.json",
            "name/%2e%2e/%6eul.json",
            "-/_/0.json",
            f"name/{'x' * 100}/{'y' * 80}%-0123456789abcdef.json",
            "study/s/trial/000000/00000000-0.json",
        ],
    )
    def test_all_legal_names_work(self, backend: Backend, key: str) -> None:
        put(backend, key, key.encode())
        assert data_of(backend, key) == key.encode()
        assert [entry.key for entry in backend.list("")] == [key]
        assert backend.delete(key)

    @pytest.mark.parametrize(
        "key",
        ["", "/a", "a/", "a//b", "..", "../a", "a/../b", ".a", "a/.b", "A", "a b", "a\\b", "a\0", "é", "a\n", "tmp/x"],
    )
    def test_illegal_names_are_refused(self, backend: Backend, key: str) -> None:
        draft = backend.stage(b"")
        for verb in (
            lambda: backend.create(key, draft),
            lambda: backend.replace(key, draft, "1"),
            lambda: backend.read(key),
            lambda: backend.stream(key),
        ):
            with pytest.raises(UsageError, match="not a key"):
                verb()
        assert list(backend.list("")) == []

    def test_delete_frees_the_name(self, backend: Backend) -> None:
        put(backend, "a/x", b"1")
        assert backend.delete("a/x") is True
        assert backend.read("a/x") is None
        assert list(backend.list("a/")) == []
        assert backend.delete("a/x") is False
        put(backend, "a/x", b"2")

    # ---- rewriting

    def test_a_rewrite_shows_the_new_bytes_and_a_new_version(self, backend: Backend) -> None:
        put(backend, "a/x", b"0000")
        seen = {held_at(backend, "a/x").version}
        for data in (b"1111", b"22", b""):
            assert rewrite(backend, "a/x", data) is WON
            held = held_at(backend, "a/x")
            assert held.data == data
            assert held.version not in seen
            seen = {held.version}

    def test_a_rewrite_of_nothing(self, backend: Backend) -> None:
        outcome = backend.replace("a/x", backend.stage(b"1"), "none")
        if backend.traits.conditional_replace:
            assert outcome is LOST
            assert backend.read("a/x") is None
        else:
            assert outcome is WON
            assert data_of(backend, "a/x") == b"1"
            assert backend.create("a/x", backend.stage(b"2")) is LOST, "the name exists, however it came to be"
            assert data_of(backend, "a/x") == b"1"

    def test_a_conditional_rewrite_needs_the_current_version(self, backend: Backend) -> None:
        if not backend.traits.conditional_replace:
            pytest.skip("this backend has no conditional replace (traits.conditional_replace)")
        put(backend, "a/x", b"1")
        old = held_at(backend, "a/x").version
        with pytest.raises(UsageError):
            backend.replace("a/x", backend.stage(b"2"), None)
        assert backend.replace("a/x", backend.stage(b"2"), old) is WON
        assert backend.replace("a/x", backend.stage(b"3"), old) is LOST
        assert data_of(backend, "a/x") == b"2"

    def test_a_spent_rewrite_never_comes_back(self, backend: Backend) -> None:
        put(backend, "a/x", b"0")
        first, version = backend.stage(b"1"), held_at(backend, "a/x").version
        assert backend.replace("a/x", first, version) is WON
        assert rewrite(backend, "a/x", b"2") is WON
        assert backend.replace("a/x", first, version) is LOST
        assert data_of(backend, "a/x") == b"2"
        assert backend.discard(first) is True
        assert first.spent

    # ---- drafts

    def test_staged_bytes_have_no_name(self, backend: Backend) -> None:
        drafts = [backend.stage(b"x") for _ in range(3)]
        assert list(backend.list("")) == []
        assert backend.folders("") == []
        assert len({draft.temp for draft in drafts}) == 3
        assert [(draft.data, draft.size, draft.spent) for draft in drafts] == [(b"x", 1, False)] * 3
        assert all(backend.discard(draft) for draft in drafts)

    def test_discard_is_final_and_idempotent(self, backend: Backend) -> None:
        put(backend, "a/x", b"1")
        draft = backend.stage(b"late")
        assert backend.discard(draft) is True
        assert backend.discard(draft) is True
        if self._can_land_late(backend):
            return
        assert backend.create("a/y", draft) is LOST
        assert backend.replace("a/x", draft, "any") is LOST
        assert [(entry.key, data_of(backend, entry.key)) for entry in backend.list("")] == [("a/x", b"1")]

    def test_discard_after_winning_leaves_the_name(self, backend: Backend) -> None:
        draft = backend.stage(b"1")
        assert backend.create("a/x", draft) is WON
        assert backend.discard(draft) is True
        assert data_of(backend, "a/x") == b"1"

    def test_the_same_draft_tried_again_changes_nothing(self, backend: Backend) -> None:
        draft = backend.stage(b"1")
        assert backend.create("a/x", draft) is WON
        backend.create("a/x", draft)  # what it answers is the backend's: the name is there, and it is ours
        assert data_of(backend, "a/x") == b"1"
        assert rewrite(backend, "a/x", b"2") is WON
        assert backend.create("a/x", draft) is LOST
        assert data_of(backend, "a/x") == b"2"

    def test_durable_writes_are_the_same_writes(self, backend: Backend) -> None:
        draft = backend.stage(b"1", durable=True)
        assert draft.durable
        assert backend.create("a/b/c/x", draft) is WON
        held = held_at(backend, "a/b/c/x")
        assert backend.replace("a/b/c/x", backend.stage([b"2", b"3"], durable=True), held.version) is WON
        assert data_of(backend, "a/b/c/x") == b"23"

    def test_large_data_is_streamed(self, backend: Backend) -> None:
        chunks = [bytes([i]) * (MIB // 2 + i) for i in range(10)]
        draft = backend.stage(iter(chunks))
        assert (draft.data, draft.size) == (None, sum(map(len, chunks)))
        assert backend.create("blobs/00/x", draft) is WON
        backend.discard(draft)
        read = list(backend.stream("blobs/00/x") or [])
        assert b"".join(read) == b"".join(chunks)
        assert max(map(len, read)) <= MIB
        assert data_of(backend, "blobs/00/x") == b"".join(chunks)
        for start in (MIB + 1, sum(map(len, chunks)) - 1, sum(map(len, chunks))):
            assert b"".join(backend.stream("blobs/00/x", start) or [b"missing"]) == b"".join(chunks)[start:]

    def test_a_source_that_fails_stages_nothing(self, backend: Backend) -> None:
        def source() -> Iterator[bytes]:
            yield b"half"
            raise FileNotFoundError("the source is gone")

        with pytest.raises(FileNotFoundError, match="the source is gone"):
            backend.stage(source())
        assert list(backend.list("")) == []
        assert list(backend.list("tmp/")) == []

    # ---- listing

    def test_a_listing_has_every_key_in_order(self, backend: Backend) -> None:
        for key in reversed(KEYS):
            put(backend, key)
        listed = [entry.key for entry in backend.list("")]
        assert sorted(listed) == KEYS
        if backend.traits.listing_sorted:
            assert listed == KEYS

    @pytest.mark.parametrize("prefix", ["", "a/", "a/b/", "a-b/", "b/", "zz/", "a/b/0.json/"])
    def test_prefix_and_after_cut_the_listing(self, backend: Backend, prefix: str) -> None:
        for key in KEYS:
            put(backend, key)
        betweens = ["", "a", "a/", "a/b", "a/b/", "a/b/0", "a/b/00000001-0", "a/b/zz", "a/z", "zz"]
        for after in [*betweens, *KEYS]:
            listed = sorted(entry.key for entry in backend.list(prefix, after))
            assert listed == [key for key in KEYS if key.startswith(prefix) and key > after], (prefix, after)

    def test_details_say_what_read_says(self, backend: Backend) -> None:
        for i, key in enumerate(KEYS):
            put(backend, key, b"x" * i)
        for entry in backend.list("", details=True):
            held = held_at(backend, entry.key)
            assert (entry.version, entry.size) == (held.version, len(held.data))
            assert abs(entry.modified - held.modified) <= self.clock_slack_s
            assert isinstance(entry, Entry)

    @pytest.mark.parametrize("prefix", ["a", "/", "../", "a//", "A/", "a/../"])
    def test_a_prefix_is_whole_segments(self, backend: Backend, prefix: str) -> None:
        with pytest.raises(UsageError, match="not a prefix"):
            backend.list(prefix)
        with pytest.raises(UsageError, match="not a prefix"):
            backend.folders(prefix)

    def test_folders_are_the_next_segments(self, backend: Backend) -> None:
        assert backend.folders("") == []
        for key in KEYS:
            put(backend, key)
        assert backend.folders("") == ["a", "a-b", "a.b", "a0"]
        assert backend.folders("a/") == ["b", "b-c", "b0"]
        assert backend.folders("a/b/") == []
        assert backend.folders("nothing/") == []
        backend.delete("a0/x.json")
        assert backend.folders("") == ["a", "a-b", "a.b"], "a folder without a key is none"

    def test_names_are_the_next_segments_of_keys_and_folders(self, backend: Backend) -> None:
        assert backend.names("a/") == []
        for key in KEYS:
            put(backend, key)
        assert sorted(backend.names("a/")) == ["0.json", "b", "b-c", "b0"]
        assert sorted(backend.names("a/b/")) == ["%c3%a9.json", "0.json", "00000001-0.json", "00000001-1.json"]
        assert backend.names("nothing/") == backend.names("a.json/") == []

    def test_a_version_is_that_of_a_read(self, backend: Backend) -> None:
        assert backend.version("a/x") is None
        put(backend, "a/x", b"1")
        assert backend.version("a/x") == held_at(backend, "a/x").version
        assert rewrite(backend, "a/x", b"2") is WON
        assert backend.version("a/x") == held_at(backend, "a/x").version
        assert backend.version("a/x/y") is None

    def test_a_stamp_is_a_hint_or_nothing(self, backend: Backend) -> None:
        missing = backend.stamp("a/")
        put(backend, "a/x")
        stamp = backend.stamp("a/")
        if missing is None:
            assert stamp is None
        else:
            assert missing == "" != stamp, "a folder that comes into being is seen at once"
            assert backend.stamp("a/") == stamp, "looking moves nothing"

    def test_a_listing_survives_what_happens_meanwhile(self, backend: Backend) -> None:
        for key in KEYS:
            put(backend, key)
        listed: list[str] = []
        for entry in backend.list("", details=True):
            if not listed:
                backend.delete("a0/x.json")
                put(backend, "a/zz.json")
            listed.append(entry.key)
        steady = [key for key in KEYS if key != "a0/x.json"]
        assert [key for key in listed if key in steady] == steady
        assert len(listed) == len(set(listed))

    # ---- time

    def test_touch_moves_the_stamp_and_nothing_else(self, backend: Backend) -> None:
        if not backend.traits.touch:
            pytest.skip("this backend cannot touch (traits.touch)")
        put(backend, "a/x", b"1")
        before = backend.now()
        assert backend.touch("a/x") is True
        held = held_at(backend, "a/x")
        assert held.data == b"1"
        assert before - self.clock_slack_s <= held.modified <= backend.now() + self.clock_slack_s

    def test_now_is_the_clock_that_stamps(self, backend: Backend) -> None:
        times = [backend.now()]
        put(backend, "a/x")
        stamp = held_at(backend, "a/x").modified
        times += [backend.now() for _ in range(5)]
        assert times == sorted(times)
        assert times[0] - self.clock_slack_s <= stamp <= times[1] + self.clock_slack_s
        assert [entry.key for entry in backend.list("")] == ["a/x"], "asking for the time leaves no name"
