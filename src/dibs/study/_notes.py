"""Notes: small signals, each a claim, so that saying a thing twice is saying it once.

stop/<k> and go/<k>: stopped = the highest stop k has no go k. wish/<digest>: a point somebody wants tried.
release/<n>-<a>: frees attempt a for the next one, whatever its state but done and pruned.
"""

from __future__ import annotations

from typing import Any

from dibs._canon import digest as digest_of
from dibs._canon import from_json, to_json
from dibs.errors import RecordError
from dibs.record import decode
from dibs.store import Store, StudyKeys

from ._names import Hint

__all__ = ["Notes"]


class Notes:
    """The notes of one study, as last refreshed, and the claims that add one."""

    def __init__(self, store: Store, keys: StudyKeys, problems: dict[str, str] | None = None) -> None:
        self.store, self.keys = store, keys
        self.wishes: dict[str, dict[str, Any]] = {}
        self.released: dict[int, set[int]] = {}
        self.problems: dict[str, str] = {} if problems is None else problems  # key -> why it does not read
        self.ours = False  # this process has written one: they are there, whatever the last listing told
        self._changed: set[int] = set()
        self._stops: set[int] = set()
        self._goes: set[int] = set()
        self._above = Hint(keys.base)
        self._top = Hint(keys.notes())
        self._kinds: dict[str, Hint] = {}

    @property
    def stopped(self) -> bool:
        """No new claims; running ones finish."""
        return bool(self._stops) and max(self._stops) not in self._goes

    def refresh(self, now: float | None = None, above: bool | None = None) -> None:
        """Look again (given ``now``, monotonic seconds: only where something moved).

        ``above``: whether folders may have come into being directly below the study; None: that is looked at here.
        ``take_changed`` then has the trials whose release notes are others than before.
        """
        if now is not None and not self._moved(now, above):
            return
        seen: set[str] = set()
        stops: set[int] = set()
        goes: set[int] = set()
        wishes: set[str] = set()
        released: dict[int, set[int]] = {}
        for entry in self.store.backend.list(self.keys.notes()):
            seen.add(entry.key)
            kind, _, rest = entry.key[len(self.keys.notes()) :].partition("/")
            stem = rest.removesuffix(".json")
            if kind in ("stop", "go") and stem.isdigit():
                (goes if kind == "go" else stops).add(int(stem))
            elif kind == "release" and (at := self.keys.parse(entry.key)):
                released.setdefault(at[0], set()).add(at[1])
            elif kind == "wish":
                wishes.add(stem)
                if stem not in self.wishes:  # one that did not read may be a claim whose record was on its way
                    self._read_wish(stem, entry.key)
        self._stops, self._goes = stops, goes
        old = self.released
        self._changed |= {n for n in released.keys() | old.keys() if released.get(n) != old.get(n)}
        self.released = released
        self.wishes = {wish: point for wish, point in self.wishes.items() if wish in wishes}
        for key in [key for key in self.problems if key.startswith(self.keys.notes()) and key not in seen]:
            del self.problems[key]

    def take_changed(self) -> set[int]:
        """The trials whose release notes changed since this was asked last, whoever refreshed meanwhile."""
        if not self._changed:
            return self._changed
        changed, self._changed = self._changed, set()
        return changed

    def _moved(self, now: float, above: bool | None) -> bool:
        if not self.store.backend.traits.stamps:
            return True
        if above is None:  # a folder that is there is cheaper to ask than one that is not
            above = self._above.due(self.store, now) or self.ours
        if self._top.due(self.store, now, above):
            for name in self.store.backend.names(self._top.prefix):
                if name not in self._kinds:
                    self._kinds[name] = Hint(f"{self._top.prefix}{name}/")
        due = [hint.due(self.store, now) for hint in self._kinds.values()]
        return any(due)

    def probe_stop(self) -> None:
        """Ask for the one name that would stop the study: a request, where listing all notes would be dearer."""
        k = max(self._stops, default=-1) + 1
        while self.store.backend.version(self.keys.stop(k)) is not None:
            self._stops.add(k)
            k += 1

    def look_again(self) -> None:
        """A refresh failed on its way: nothing that was listed counts as looked at."""
        for hint in (self._above, self._top, *self._kinds.values()):
            hint.again()

    def stop(self, me: str | None) -> bool:
        """No new claims from now on; False if it was stopped already."""
        self.refresh()
        if self.stopped:
            return False
        k = max(self._stops, default=-1) + 1
        return self._claim(self.keys.stop(k), "stop", me)

    def resume(self, me: str | None) -> bool:
        """Claims again; False if it was not stopped."""
        self.refresh()
        return self.stopped and self._claim(self.keys.go(max(self._stops)), "go", me)

    def wish(self, point: dict[str, Any], me: str | None) -> bool:
        """Ask for a point, once for the whole study; False if somebody did before."""
        text = {name: to_json(value) for name, value in point.items()}
        return self._claim(self.keys.wish(digest_of(text)), "wish", me, point=text)

    def release(self, n: int, attempt: int, me: str | None) -> bool:
        """Free an attempt for the next one; False if it was free already."""
        return self._claim(self.keys.release(n, attempt), "release", me)

    def _claim(self, key: str, note: str, me: str | None, **fields: Any) -> bool:
        self.ours = True
        body = {**self.store.head("note", me), "note": note, "study": self.keys.name, **fields}
        return self.store.settler.claim(key, body, durable=True) is not None

    def _read_wish(self, stem: str, key: str) -> None:
        try:
            there = self.store.backend.read(key)
            if there is None:
                return
            point = decode(there.data, key)["point"]
            if digest_of(point) != stem:
                raise RecordError(f"{key} holds another point than its name says", key=key)
            self.wishes[stem] = {str(name): from_json(value) for name, value in point.items()}
            self.problems.pop(key, None)
        except RecordError as wrong:
            self.problems[key] = str(wrong)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as wrong:
            self.problems[key] = f"{key} is not a wish ({wrong!r:.120})"
