"""Wrong protocols, planted into the real code on purpose: what the simulator must be able to find.

Each is the mistake an author of such a protocol makes, written as a patch of one method, and names the invariant
that must see it. A simulator that finds none of them proves nothing by being green.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dibs._canon import to_json
from dibs.backend import Draft, MemoryBackend, Outcome
from dibs.errors import UnsureError
from dibs.record import decode, encode, nonce_of
from dibs.store import Held, Settler
from dibs.store._settle import Pauses
from dibs.study import _attempt, _fold
from dibs.study._attempt import Attempt, Terms, claim_attempt
from dibs.study._claimer import Claimer
from dibs.study._fold import Folded, Seen
from dibs.study._names import Names
from dibs.study._succession import next_attempt
from dibs.study._view import View

from ._simulator_wire import Faults

__all__ = ["PLANTED", "Planted"]


@dataclass(frozen=True)
class Planted:
    """A wrong protocol: ``patches`` (owner, attribute, replacement), and who must catch it within ``seeds`` seeds."""

    name: str
    caught_by: str
    patches: Sequence[tuple[Any, str, Any]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 200

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """While this is entered, the real code is wrong."""
        old = [(owner, name, getattr(owner, name)) for owner, name, _ in self.patches]
        for owner, name, new in self.patches:
            setattr(owner, name, new)
        try:
            yield
        finally:
            for owner, name, was in old:
                setattr(owner, name, was)


def everywhere(right: Callable[..., Any], wrong: Callable[..., Any]) -> list[tuple[Any, str, Any]]:
    """Patches of every module of studies that has the function by its name."""
    name = right.__name__
    modules = [module for key, module in sorted(sys.modules.items()) if key.startswith("dibs.study")]
    return [(module, name, wrong) for module in modules if vars(module).get(name) is right]


# ---- claims


def exists_then_put(self: Settler, held: Held, body: dict[str, Any], durable: bool) -> bool:
    """Look whether the name is free, and write it if so."""
    draft = self.backend.stage(encode(body), durable=durable)
    try:
        if self.backend.read(held.key) is not None:
            return False
        self.backend.replace(held.key, draft, None)
        held.body, held.data = body, encode(body)
        return True
    finally:
        self.backend.discard(draft)


def blind_retry(self: Settler, held: Held, body: dict[str, Any], durable: bool) -> bool:
    """Try again after no answer, and believe the second one."""
    draft = self.backend.stage(encode(body), durable=durable)
    try:
        pauses = Pauses(self, held.key)
        while True:
            outcome = self.backend.create(held.key, draft)
            if outcome is Outcome.UNSURE:
                next(pauses)
                continue
            held.body, held.data = body, encode(body)
            return outcome is Outcome.WON
    finally:
        self.backend.discard(draft)


_create = Settler._create


def optimist(self: Settler, held: Held, body: dict[str, Any], durable: bool) -> bool:
    """Nobody could say whether the claim was won: then it was."""
    try:
        return _create(self, held, body, durable)
    except UnsureError:
        held.body, held.data = body, encode(body)
        return True


# ---- rewrites


def fresh_temporary(self: Settler, held: Held, body: dict[str, Any], durable: bool) -> None:
    """A new temporary for every try, so that an old one may land over what was written since."""
    self._look(held.key, Pauses(self, held.key))
    pauses = Pauses(self, held.key)
    data = b""
    while True:
        there = self._look(held.key, pauses)
        assert there is not None
        if there.data == data:
            break
        body = self._ours(held, there, body)
        data = encode(body)
        outcome = self.backend.replace(held.key, self.backend.stage(data, durable=durable), there.version)
        if outcome is Outcome.WON:
            break
        next(pauses)
    held.body, held.data = body, data


def verdict_412(self: Settler, held: Held, body: dict[str, Any], durable: bool) -> None:
    """A refused replace means that somebody wrote it, and who but us?"""
    there = self._look(held.key, Pauses(self, held.key))
    assert there is not None
    body = self._ours(held, there, body)
    draft = self.backend.stage(encode(body), durable=durable)
    pauses = Pauses(self, held.key)
    while self.backend.replace(held.key, draft, there.version) is Outcome.UNSURE:
        next(pauses)
    held.body, held.data = body, encode(body)


_replace = MemoryBackend.replace


def no_if_match(self: MemoryBackend, key: str, draft: Draft, version: str | None) -> Outcome:
    """A bucket that is written without If-Match."""
    there = self._objects.get(key)
    return _replace(self, key, draft, there.version if there is not None else version)


def late_beat(self: Attempt) -> None:
    """A beat that rewrites the record as it was when the beat began, whatever happened since."""
    if self.closed or not self.ours:
        return
    backend, body = self.store.backend, dict(self._held.body)
    draft = backend.stage(encode(body))
    there = backend.read(self._held.key)
    if there is not None:
        backend.replace(self._held.key, draft, there.version)
    backend.discard(draft)


_close = Attempt.close


def report_to_the_highest(self: Attempt, state: str, **fields: Any) -> None:
    """The end goes to whichever attempt is the newest."""
    attempt = self.attempt
    there = None
    while (newer := self.store.backend.read(self.keys.attempt(self.n, attempt + 1))) is not None:
        attempt, there = attempt + 1, newer
    if there is not None and (nonce := nonce_of(there.data)) is not None:
        key = self.keys.attempt(self.n, attempt)
        self._held = Held(key, nonce, decode(there.data, key), there.data, self._held.pid, lock=self._held.lock)
        self.nonce = nonce
    _close(self, state, **fields)


def unwritten_blob(self: Attempt, traceback: str | None, verdict: Any) -> str | None:
    """Name the blob now, store it some time."""
    return hashlib.sha256(repr(sorted(self.curve.items())).encode()).hexdigest() if len(self.curve) > 1 else None


def loose_types(values: Mapping[str, Any]) -> dict[str, Any]:
    """1.0 is 1, is it not?"""
    return {
        name: int(value) if type(value) is float and value.is_integer() else to_json(value)
        for name, value in values.items()
    }


# ---- trials


def highest_wins(attempts: Sequence[Seen], released: Any = ()) -> Folded:
    """The newest attempt speaks for the trial, whatever the others came to."""
    top = max(attempts, key=lambda seen: seen.attempt)
    settled = _fold.rank(top, released) > 0
    return Folded(top.n, settled, top, top, not settled and (top.closed or top.attempt in released))


def ask_again(view: View, trial: Folded, terms: Terms, anew: Callable[[], Mapping[str, Any] | None]) -> Attempt | None:
    """The next attempt asks the sampler like any other."""
    n, attempt = trial.n, trial.top.attempt + 1
    claimed = claim_attempt(view.store, view.keys, n, attempt, anew() or {}, terms)
    view.look(n, attempt)
    return claimed


_claimer_begins = Claimer.__init__


def one_more(self: Claimer, *args: Any, **fields: Any) -> None:
    """N is roughly how many."""
    _claimer_begins(self, *args, **fields)
    self.trials += 1


def wish_anywhere(self: Claimer, wish: str, point: Mapping[str, Any]) -> Attempt | None:
    """A wish takes any free index."""
    for n in sorted(range(self.view.low(), self.trials), key=lambda n: -n):
        if self.view.trial(n) is None:
            return self._claim(n, 0, point, wish=wish)
    return None


def wait_for_ever(self: Claimer) -> None:
    """Whoever runs it will come back."""


# ---- readers


_refresh = View.refresh


def helpful_reader(self: View, *args: Any, **fields: Any) -> None:
    """A reader that leaves something behind."""
    _refresh(self, *args, **fields)
    backend = self.store.backend
    draft = backend.stage(encode({"v": 1, "kind": "note", "nonce": "0" * 32}))
    backend.create(f"{self.keys.base}note/seen/{self.store.machine.pid()}.json", draft)
    backend.discard(draft)


_fresh = Names._fresh


def hasty_reader(self: Names, *args: Any) -> Iterator[tuple[int, int]]:
    """A name that was listed is known, whether its record could be read or not."""
    for at in _fresh(self, *args):
        self.told(*at)
        yield at


def stubborn_owner(self: Attempt, changes: Mapping[str, Any]) -> None:
    """An attempt that could not be closed is still running, for its owner's own eyes."""
    self.store.settler.rewrite(self._held, {**self._held.body, **changes}, durable=True)


class _Deaf(dict[str, str]):
    """Problems nobody wants to hear of."""

    def __setitem__(self, key: str, why: str) -> None:
        return


_begin = View.__init__


def silent_reader(self: View, *args: Any) -> None:
    """What does not read is left out."""
    _begin(self, *args)
    self.problems = _Deaf()


MUTE = {"faults": Faults(lost_answer=0.1, lost_request=0.4, late=0.1), "patience_s": 0.3}  # hardly ever an answer
LATE = {"faults": Faults(late=0.2, late_s=30.0), "by_hand": 0}
DEAF = {"faults": Faults(lost_answer=0.5, lost_request=0.2), "patience_s": 0.05, "doom": 0.0, "by_hand": 0}
FLAKY = {"faults": Faults(error=0.03), "readers": 2, "by_hand": 0}
SLOW = {"stall": 0.02, "stall_s": 60.0, "stale_s": 3.0, "by_hand": 0}  # owners that were rescued and come back

PLANTED: tuple[Planted, ...] = (
    Planted("exists, then put", "once", [(Settler, "_create", exists_then_put)], {"kind": "link"}),
    Planted("blind retry", "once", [(Settler, "_create", blind_retry)], {"kind": "link"}),
    Planted("blind retry on a bucket", "once", [(Settler, "_create", blind_retry)], {"kind": "put"}),
    Planted("an unsure claim is used", "once", [(Settler, "_create", optimist)], {"kind": "put", **MUTE}),
    Planted("report to the highest attempt", "once", [(Attempt, "close", report_to_the_highest)], SLOW),
    Planted("a wish takes any index", "once", [(Claimer, "_walk", wish_anywhere)], {"steerers": 2}, 400),
    Planted("a fresh temporary per try", "kept", [(Settler, "_rewrite", fresh_temporary)], {"kind": "link", "save": 0.5, **LATE}),
    Planted("no If-Match", "kept", [(MemoryBackend, "replace", no_if_match)], {"kind": "put", "epoch_s": 20.0, **LATE}),
    Planted("a refused replace is taken for written", "kept", [(Settler, "_rewrite", verdict_412)], {"kind": "put"}),
    Planted("a beat that rewrites after close", "kept", [(Attempt, "beat", late_beat)], {"kind": "link"}),
    Planted("the highest attempt wins without the rank", "kept", everywhere(_fold.fold, highest_wins), {**SLOW, "fail": 0.4}),
    Planted("a failed read is not tried again", "kept", [(Names, "_fresh", hasty_reader)], {"kind": "link", **FLAKY}),
    Planted("an owner takes what it cannot close for running", "kept", [(Attempt, "_rewrite", stubborn_owner)], DEAF),
    Planted("the blob is not there yet", "whole", [(Attempt, "_blob", unwritten_blob)]),
    Planted("one index too many", "exact", [(Claimer, "__init__", one_more)]),
    Planted("nobody rescues", "alone", [(Claimer, "_rescue", wait_for_ever)], {"chaos_s": 20.0}),
    Planted("a reader leaves something behind", "readers", [(View, "refresh", helpful_reader)], {"readers": 2}),
    Planted("asking again at k + 1", "same", everywhere(next_attempt, ask_again), {"steerers": 2}),
    Planted("1.0 comes back as 1", "typed", [(_attempt, "all_to_json", loose_types)]),
    Planted("what does not read is left out", "told", [(View, "__init__", silent_reader)], {"kind": "mkdir"}, 300),
)  # fmt: skip
