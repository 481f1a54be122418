"""A round as it stands in a store. What is published once never changes, so it is read once; only who averages is read again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from dibs.backend import Object
from dibs.errors import RecordError
from dibs.record import decode
from dibs.store import RoundKeys, Store, escape, unescape

from ._decided import Name, decided
from ._records import End, Terms, Try, Update, end_of, terms_of, try_of, update_of

__all__ = ["Round", "rounds_in", "runs_in"]


@dataclass
class Round:
    """One round. ``refresh`` costs one listing, and one read for each thing that is new.

    ``unreadable``: key -> why; such a record is taken, and nobody's.
    """

    store: Store
    run: str
    number: int
    terms: Terms | None = None
    updates: dict[str, Update] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    tries: dict[int, Try] = field(default_factory=dict)
    end: End | None = None
    forgotten: bool = False
    unreadable: dict[str, str] = field(default_factory=dict)
    _listed: set[str] = field(default_factory=set, repr=False)

    @property
    def keys(self) -> RoundKeys:
        return RoundKeys(self.run)

    @property
    def top(self) -> Try | None:
        """The highest attempt at averaging."""
        return self.tries[max(self.tries)] if self.tries else None

    @property
    def of(self) -> dict[str, str] | None:
        """Whose updates go in: as the attempt says that ended the round, before that the lowest that reads; None while nobody has begun.

        They all say the same, but where the first was claimed and written only when another had followed it.
        """
        last = self.tries.get(self.end.attempt) if self.end is not None else None
        if last is not None and last.of is not None:
            return dict(last.of)
        return next((dict(self.tries[k].of or {}) for k in sorted(self.tries) if self.tries[k].of is not None), None)

    @property
    def missing(self) -> list[str]:
        """Who is in and has not answered."""
        return [client for client in (self.terms.clients if self.terms else ()) if client not in self.updates]

    def refresh(self) -> Round:
        """Look again; returns itself. Raises StoreError for an outage, RecordError if terms or end do not read."""
        base = self.keys.round(self.number)
        self._listed = {entry.key for entry in self.store.backend.list(base)}
        names = {key.removeprefix(base).removesuffix(".json") for key in self._listed}
        if self.terms is None and ("terms" in names or "again/terms/1" in names):
            there = self.read(partial(self.keys.terms, self.number))
            self.terms = terms_of(there.data, self.keys.terms(self.number)) if there is not None else None
        known = {escape(client): client for client in (self.terms.clients if self.terms else ())}
        for name in sorted(names):
            part, _, rest = name.removeprefix("again/").partition("/")
            rest = rest.partition("/")[0]
            if part == "client" and rest in known:
                self.look_at(known[rest])
            elif part == "late":
                self.late.add(known.get(rest) or unescape(rest) or rest)
            elif part == "averaging" and rest.isdecimal() and rest.isascii():
                self.look_at_try(int(rest))
        if self.end is None and ("average" in names or self.tries):  # an old listing may have left it out
            there = self.read(partial(self.keys.average, self.number))
            self.end = end_of(there.data, self.keys.average(self.number)) if there is not None else None
        if self.end is not None:
            self.late -= set(self.of or ())  # it came late to a list that was not the one that counted
        self.forgotten = "forgotten" in names
        return self

    def look_at(self, client: str) -> None:
        """Read one client's update, unless it is known."""
        if client in self.updates:
            return
        key = self.keys.update(self.number, client)
        there = self.read(partial(self.keys.update, self.number, client))
        if there is None:
            return
        try:
            self.updates[client] = update_of(there.data, key, client)
            self.unreadable.pop(key, None)
        except RecordError as wrong:
            self.unreadable[key] = str(wrong)

    def look_at_try(self, attempt: int) -> None:
        """Read an attempt at averaging, unless it is over. Raises RecordError for a name that no record can have."""
        if attempt in self.tries and self.tries[attempt].closed:
            return
        key = self.keys.averaging(self.number, attempt)
        there = self.store.backend.read(key)  # a bare claim, too: its owner may be dead by now
        if there is not None:
            self.tries[attempt] = try_of(there.data, key, attempt, there.modified, there.version)

    def read(self, name: Name) -> Object | None:
        """What counts under the name; None, too, while that is claimed and not written."""
        return decided(self.store, name, self._listed)


def rounds_in(store: Store, run: str) -> list[int]:
    """The numbers of the rounds that a run has begun, sorted."""
    found = store.backend.folders(RoundKeys(run).base)
    return sorted(int(name) for name in found if len(name) >= 8 and name.isdecimal() and name.isascii())


def runs_in(store: Store) -> list[str]:
    """The names of the runs in the store, sorted."""
    names = []
    for segment in store.backend.folders(RoundKeys.ROOT):
        name = unescape(segment)
        names.append(name if name is not None else _long_name(store, segment))
    return sorted(names)


def _long_name(store: Store, segment: str) -> str:
    """A name too long for a segment: its records know."""
    for entry in store.backend.list(f"{RoundKeys.ROOT}{segment}/"):
        there = store.backend.read(entry.key)
        if there is not None:
            with suppress(RecordError):
                return str(decode(there.data, entry.key).get("run", segment))
    return segment
