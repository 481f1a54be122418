"""A Hypothesis state machine: any backend against a perfect dict, with drafts that are tried late and again.

The model knows what a folder and a bucket differ in by the traits alone: whether a temporary is needed,
and whether a replace must name the current version.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

from dibs.backend import Backend, Draft, Object, Outcome

__all__ = ["BackendMachine"]

KEYS = ["%41/z.json", "a-b/x.json", "a.b/x.json", "a/x.json", "a/y.json", "b/c/d.json", "b/c/e.json", "root.json"]
PREFIXES = ["", "a/", "a-b/", "b/", "b/c/", "none/"]

keys = st.sampled_from(KEYS)
datas = st.binary(max_size=20)


class BackendMachine(RuleBasedStateMachine):
    """Override ``make_backend`` (a new, empty backend each time), and take ``TestCase``."""

    drafts: Bundle[Draft] = Bundle("drafts")

    def __init__(self) -> None:
        super().__init__()
        self.backend = self.make_backend()
        self.held: dict[str, bytes] = {}
        self.gone: set[str] = set()  # temporaries that were discarded or renamed into place
        self.bytes_of: dict[str, bytes] = {}  # by temporary
        self.author: dict[str, str] = {}  # key -> the temporary whose create was the key's last write
        self.old_versions: list[str] = ["none"]

    def make_backend(self) -> Backend:
        raise NotImplementedError

    # ---- what the model expects

    @property
    def _bucket(self) -> bool:
        return self.backend.traits.conditional_replace

    def _can_write(self, draft: Draft) -> bool:
        return draft.temp not in self.gone or (self._bucket and draft.data is not None)

    def _happened(self, key: str, before: Object | None, outcome: Outcome, expected: Outcome, data: bytes) -> bool:
        """Whether the write happened, as the answer or, after an unsure one, the name says."""
        if outcome is not Outcome.UNSURE:
            assert outcome is expected
            return outcome is Outcome.WON
        there = self.backend.read(key)
        if there == before:
            return False
        assert expected is Outcome.WON
        assert there is not None
        assert there.data == data
        return True

    # ---- what may happen

    @initialize(target=drafts, data=datas, streamed=st.booleans(), durable=st.booleans())
    def begin(self, data: bytes, streamed: bool, durable: bool) -> Draft:
        return self._stage(data, streamed, durable)

    @rule(target=drafts, data=datas, streamed=st.booleans(), durable=st.booleans())
    def stage(self, data: bytes, streamed: bool, durable: bool) -> Draft:
        return self._stage(data, streamed, durable)

    def _stage(self, data: bytes, streamed: bool, durable: bool) -> Draft:
        draft = self.backend.stage([data[:7], data[7:]] if streamed else data, durable=durable)
        assert draft.temp not in self.bytes_of
        assert draft.size == len(data)
        self.bytes_of[draft.temp] = data
        return draft

    @rule(key=keys, draft=drafts)
    def create(self, key: str, draft: Draft) -> None:
        before = self.backend.read(key)
        outcome = self.backend.create(key, draft)
        if outcome is Outcome.WON and key in self.held and self.author.get(key) == draft.temp:
            return  # it had won before, and says so again
        free = key not in self.held and self._can_write(draft)
        data = self.bytes_of[draft.temp]
        if self._happened(key, before, outcome, Outcome.WON if free else Outcome.LOST, data):
            self.held[key] = data
            self.author[key] = draft.temp
            if self.backend.traits.claim == "mkdir":
                self.gone.add(draft.temp)

    @rule(key=keys, draft=drafts, stale=st.booleans())
    def replace(self, key: str, draft: Draft, stale: bool) -> None:
        there = self.backend.read(key)
        version = self.old_versions[-1] if stale or there is None else there.version
        current = there is not None and version == there.version
        fine = self._can_write(draft) and (current or not self._bucket)
        outcome = self.backend.replace(key, draft, version)
        data = self.bytes_of[draft.temp]
        if outcome is Outcome.UNSURE and self.author.get(key) == draft.temp:
            self.discard(draft)  # the name's own file again: whether it happened cannot be seen, so end it
            return
        if self._happened(key, there, outcome, Outcome.WON if fine else Outcome.LOST, data):
            self.held[key] = data
            self.author.pop(key, None)
            self.old_versions.append(version)
            if not self._bucket:
                self.gone.add(draft.temp)

    @rule(draft=drafts)
    def discard(self, draft: Draft) -> None:
        assert self.backend.discard(draft) is True
        self.gone.add(draft.temp)
        assert draft.spent

    @rule(key=keys)
    def delete(self, key: str) -> None:
        assert self.backend.delete(key) is (key in self.held)
        self.held.pop(key, None)
        self.author.pop(key, None)

    @rule(key=keys)
    def touch(self, key: str) -> None:
        if self.backend.traits.touch:
            assert self.backend.touch(key) is (key in self.held)

    @rule(key=keys)
    def read(self, key: str) -> None:
        there, chunks = self.backend.read(key), self.backend.stream(key)
        assert (there is None) == (chunks is None) == (key not in self.held)
        if there is not None and chunks is not None:
            assert there.data == b"".join(chunks) == self.held[key]

    @rule(
        prefix=st.sampled_from(PREFIXES),
        after=st.sampled_from(["", "a", "b/c/d.json", "b/", *KEYS]),
        details=st.booleans(),
    )
    def look(self, prefix: str, after: str, details: bool) -> None:
        entries = list(self.backend.list(prefix, after, details=details))
        expected = sorted(key for key in self.held if key.startswith(prefix) and key > after)
        listed = [entry.key for entry in entries]
        assert (listed if self.backend.traits.listing_sorted else sorted(listed)) == expected
        if details:
            assert [entry.size for entry in entries] == [len(self.held[entry.key]) for entry in entries]
        rests = [key[len(prefix) :] for key in self.held if key.startswith(prefix)]
        assert self.backend.folders(prefix) == sorted({rest.partition("/")[0] for rest in rests if "/" in rest})

    def teardown(self) -> None:
        assert {entry.key: self.backend.read(entry.key).data for entry in self.backend.list("")} == self.held  # type: ignore[union-attr]
