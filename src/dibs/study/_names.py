"""Which names there are, for the price of what is new: which folders to list again, and which not.

A block whose 256 names are all known is never listed again. On a folder a directory's mtime is the hint; it
is trusted once the directory was listed at least 2 s after that mtime was first seen, and for 60 s at most
(coarse or late stamps only make a view older). A backend without hints is listed from the lowest gap on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dibs.store import BLOCK, Store, StudyKeys

__all__ = ["Hint", "Names"]

SETTLED_S = 2.0  # a stamp may be as coarse as this (exFAT, HFS+, old NFS servers)
TRUST_S = 60.0
BASE_EVERY_S = 10.0  # without hints: how often to look for parts that were not there
UNSETTLED_S = 0.1  # how often to look again while a change within the stamp's tick could hide


class Hint:
    """Whether a folder has to be looked into again; all times are this machine's monotonic seconds."""

    __slots__ = ("_listed", "_ours", "_seen", "_stamp", "alone", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.alone = False  # the last look found nothing that others had put there
        self._ours = False
        self._stamp: str | None = None
        self._seen = self._listed = float("-inf")

    def due(self, store: Store, now: float, above: bool = True) -> bool:
        """True if the folder may have changed since it was last looked into; whoever is told so looks now.

        ``above``: whether the folder it lies in may have changed; if not, what was missing still is.
        """
        if not above and self._stamp == "":
            return False
        if self._ours and now - self._listed < UNSETTLED_S:
            return False  # whatever the stamp says now: it will be looked at before long
        stamp = store.backend.stamp(self.prefix)
        if self._ours:
            self._ours = False
            if stamp != self._stamp and stamp:
                self._stamp, self._seen = stamp, now  # seen just now, so it is not trusted before it has settled
        if stamp is None or stamp != self._stamp:
            self._stamp, self._seen = stamp, now
        elif not stamp or now - self._listed < (TRUST_S if self._listed - self._seen >= SETTLED_S else UNSETTLED_S):
            return False  # there is no such folder, and its coming into being changes the stamp
        self._listed = now
        return True

    def again(self) -> None:
        """Look again next time, whatever the stamp says: what was found could not be read."""
        self._stamp, self._listed, self._ours = None, float("-inf"), False

    def moved_by_us(self) -> None:
        """The next change of the stamp is our own doing and not worth a look, unless others are at work here too.

        What others did behind it is found by the next look, which comes soon: the stamp has not settled.
        """
        self._ours = self.alone and self._stamp is not None


class Names:
    """The attempts of a study by name alone: ``trial/`` and ``again/`` of one study."""

    def __init__(self, store: Store, keys: StudyKeys) -> None:
        self.store, self.keys = store, keys
        self._known: set[int] = set()  # trials beyond the bitmap
        self._bitmap = bytearray(BLOCK)
        self._low = 0
        self._base = Hint(keys.base)
        self._present: set[str] | None = None  # the study's parts, where only a listing tells
        self._looked = float("-inf")
        self._just_looked = False
        self.above = True  # whether folders may have come into being directly below the study
        self._tops = {kind: Hint(keys.base + kind + "/") for kind in ("trial", "again")}
        self._blocks: dict[str, dict[int, Hint]] = {"trial": {}, "again": {}}
        self._seen: dict[str, dict[int, set[str]]] = {"trial": {}, "again": {}}  # names told, by block
        self._told: dict[str, set[str]] = {"trial": set(), "again": set()}  # blocks told
        self.moved: set[int] = set()  # blocks under trial/ whose records may have been rewritten
        self.listed: dict[tuple[int, int], str] = {}  # without hints: the versions that this refresh listed

    # which trials are taken

    def __contains__(self, n: int) -> bool:
        return (n < len(self._bitmap) and self._bitmap[n] != 0) or n in self._known

    def add(self, n: int) -> None:
        """This trial's name is taken."""
        if n >= len(self._bitmap):
            if n >= 2 * len(self._bitmap) + (1 << 20):
                self._known.add(n)
                return
            self._bitmap.extend(bytes(max(n + 1 - len(self._bitmap), len(self._bitmap) // 2)))
            for far in [far for far in self._known if far < len(self._bitmap)]:
                self._known.discard(far)
                self._bitmap[far] = 1
        self._bitmap[n] = 1

    def add_many(self, ns: Sequence[int]) -> None:
        """These trials' names are taken."""
        top = max(ns, default=-1)
        if top >= len(self._bitmap):
            self.add(top)
        if top < len(self._bitmap):
            bitmap = self._bitmap
            for n in ns:
                bitmap[n] = 1
        else:
            for n in ns:
                self.add(n)

    def discard(self, n: int) -> None:
        """This trial's name was removed by hand, or lost in a power cut."""
        if n < len(self._bitmap):
            self._bitmap[n] = 0
            self._low = min(self._low, n)
        self._known.discard(n)
        block = n // BLOCK
        self._seen["trial"].pop(block, None)
        self._blocks["trial"][block] = Hint(self.keys.block("trial", block))

    def all(self) -> list[int]:
        """Every index that is known to be taken, sorted."""
        return [n for n, taken in enumerate(self._bitmap) if taken] + sorted(self._known)

    @property
    def low(self) -> int:
        """The lowest index that is not known to be taken."""
        found = self._bitmap.find(0, self._low)
        self._low = found if found >= 0 else len(self._bitmap)
        return self._low

    def full(self, block: int) -> bool:
        """Whether all 256 names of a block are known."""
        start = block * BLOCK
        return self._bitmap.count(1, start, start + BLOCK) == BLOCK

    # what is new

    def new(self, now: float) -> list[tuple[int, int]]:
        """(n, attempt) of names that were not ``told``; lists only what its hint says may have changed."""
        self.moved = set()
        if not self.store.backend.traits.stamps:
            self._look_at_base(now)
            return self._from_listing()
        found: list[tuple[int, int]] = []
        self.above = self._base.due(self.store, now)
        for kind in ("trial", "again"):
            if self._tops[kind].due(self.store, now, self.above):
                for name in sorted(set(self.store.backend.names(self._tops[kind].prefix)) - self._told[kind]):
                    self._told[kind].add(name)
                    if len(name) >= 6 and name.isascii() and name.isdigit():
                        block = int(name)
                        if kind == "again" or not self.full(block):
                            self._blocks[kind].setdefault(block, Hint(self.keys.block(kind, block)))
            for block, hint in list(self._blocks[kind].items()):
                if not hint.due(self.store, now):
                    continue
                if kind == "trial":
                    self.moved.add(block)
                if kind == "trial" and self.full(block):
                    self._seen[kind].pop(block, None)
                    continue
                found += self._fresh(kind, block, hint)
        return found

    def told(self, n: int, attempt: int) -> None:
        """The reader knows this attempt; until it says so, every listing tells it again."""
        if self.store.backend.traits.stamps:
            kind, block = ("again" if attempt else "trial"), n // BLOCK
            if kind == "again" or block in self._blocks[kind]:
                self._seen[kind].setdefault(block, set()).add(self.keys.file(n, attempt))

    def untold(self, n: int, attempt: int) -> None:
        """The reader does not know it any more: the record was removed by hand."""
        self._seen["again" if attempt else "trial"].get(n // BLOCK, set()).discard(self.keys.file(n, attempt))

    def look_again(self) -> None:
        """A refresh failed on its way: nothing that was listed counts as looked at."""
        self._present = None
        for hint in (
            self._base,
            *self._tops.values(),
            *self._blocks["trial"].values(),
            *self._blocks["again"].values(),
        ):
            hint.again()

    def watch(self, block: int) -> None:
        """Keep looking at this block's stamp: it has records that are still open."""
        if block not in self._blocks["trial"]:
            self._blocks["trial"][block] = Hint(self.keys.block("trial", block))

    def moved_by_us(self, n: int) -> None:
        """Our own claim or close moved the trial's block: that alone is no reason to list it."""
        hint = self._blocks["trial"].get(n // BLOCK)
        if hint is not None:
            hint.moved_by_us()

    def crowded(self, n: int) -> None:
        """Somebody else had that name: others are at work in its block, so that every move is worth a look."""
        hint = self._blocks["trial"].get(n // BLOCK)
        if hint is not None:
            hint.alone = False
            hint.again()

    def forget(self, block: int) -> None:
        """This block is full and nothing is open in it: it need never be looked at again."""
        self._blocks["trial"].pop(block, None)
        self._seen["trial"].pop(block, None)

    def _fresh(self, kind: str, block: int, hint: Hint) -> Iterator[tuple[int, int]]:
        seen = self._seen[kind].setdefault(block, set())
        hint.alone = True
        for name in sorted(set(self.store.backend.names(hint.prefix)) - seen):
            found = self.keys.parse(name)
            if found is not None and found[0] // BLOCK == block and (found[1] > 0) == (kind == "again"):
                if found[0] not in self:
                    hint.alone = False
                yield found
            else:
                seen.add(name)

    def has(self, part: str) -> bool:
        """Whether the study has anything under ``part`` (trial, again, note, given), as far as is known."""
        return self._present is None or part in self._present

    def look_for_parts(self) -> None:
        """The next look is for parts of the study that were not there, too."""
        self._present = None

    def _look_at_base(self, now: float) -> None:
        """No hints: one listing of the study's parts saves one of each part that is not there."""
        due = now - self._looked >= BASE_EVERY_S and not self._just_looked
        self._just_looked = self._present is None or due  # every other time is enough
        if self._just_looked:
            self._present, self._looked = {*self.store.backend.names(self.keys.base), "trial"}, now

    def _from_listing(self) -> list[tuple[int, int]]:
        """No hints: one listing from the lowest block with a missing name, and one of ``again/``."""
        listed: dict[tuple[int, int], str] = {}
        block = self.low // BLOCK
        # an offset is shaped like a key: some servers skip a whole folder for one that is not
        after = self.keys.attempt(block * BLOCK - 1, 0) if block else ""
        parse = self.keys.parse
        for kind, start in (("trial", after), ("again", "")):
            if not self.has(kind):
                continue
            again = kind == "again"
            for entry in self.store.backend.list(f"{self.keys.base}{kind}/", start, details=True):
                found = parse(entry.key)
                if found is not None and (found[1] > 0) == again:
                    listed[found] = entry.version
        self.moved = {n // BLOCK for n, attempt in listed if not attempt}
        self.listed = listed
        return list(listed)
