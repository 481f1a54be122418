"""An attempt in the hands of its owner: the one writer of its record.

One writer per attempt and process (a lock; the pid is checked). The first close is the last write, in
every path. A store's error while writing is retried and then raised; it never turns a result into a failure.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dibs._canon import all_to_json, chance_by_name
from dibs._clock import iso
from dibs.errors import AlreadyClosed, NotOwner, RecordError, StoreError, UnsureError, UsageError
from dibs.record import CLOSED, FORMAT, TrialRecord, Who, decode, encode
from dibs.search import Goals
from dibs.store import Held, Store, StudyKeys

__all__ = ["Attempt", "Terms", "claim_attempt", "seed_of"]

log = logging.getLogger("dibs")
LIVE_EVERY_S, LIVE_EVERY_BUCKET_S = 1.0, 30.0  # where a beat is a touch, and where it is a request that costs
_SEED_VERSION = "seed-1"
MOST = 2**63 - 1  # the largest count a record may hold


def seed_of(seed: int, n: int) -> int:
    """The seed of a trial: a function of the study's seed and the index, the same on every machine."""
    return int(chance_by_name(_SEED_VERSION, seed, n)("trial") * 2**31)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a claimer writes into every record it makes. ``seed``: the study's, from which each trial's derives."""

    seed: int
    of: int
    goal: Goals | None
    me: str | None
    beat_s: float

    def __post_init__(self) -> None:
        """UsageError for what no reader could read again, before anything is claimed with it."""
        if self.of > MOST:
            raise UsageError(f"the number of trials must be below 2**63, not {self.of}")
        if self.me is not None and not isinstance(self.me, str):
            raise UsageError(f"me must be a text, not {self.me!r:.80}")


def claim_attempt(
    store: Store,
    keys: StudyKeys,
    n: int,
    attempt: int,
    point: Mapping[str, Any],
    terms: Terms,
    *,
    seed: int | None = None,
    wish: str | None = None,
    contract: str | None = None,
    saw: Mapping[str, Any] | None = None,
    closed: Mapping[str, Any] | None = None,
) -> Attempt | None:
    """Claim one attempt; of all callers on all machines at most one gets it.

    ``seed``: the trial's, where an earlier attempt has one already. ``saw``: what the sampler was shown. ``closed``:
    fields of an attempt that is closed from birth (a poison verdict). Raises UnsureError, StoreError.
    """
    clock = store.machine.clock
    body: dict[str, Any] = {
        "v": FORMAT, "kind": "trial", "study": keys.name, "n": n, "attempt": attempt, "of": terms.of,
        "state": "running", "goal": list(terms.goal) if isinstance(terms.goal, tuple) else terms.goal,
        "seed": seed_of(terms.seed, n) if seed is None else seed,
        "point": all_to_json(point), "wish": wish, "saw": saw,
        "contract": contract, "files": {}, "started_at": iso(clock.wall()), "beat_s": terms.beat_s,
        "who": store.machine.who(terms.me or store.me()), **(closed or {}),
    }  # fmt: skip
    held = store.settler.claim(keys.attempt(n, attempt), body, durable=closed is not None)
    return Attempt(store, keys, held, point) if held is not None else None


def called(n: int, saw: object) -> str:
    """How people know a trial, for what is said of it: a cell of a sweep by its name. ``saw``: the attempt's."""
    cell = saw.get("cell") if isinstance(saw, Mapping) else None
    return f"cell {cell}" if isinstance(cell, str) else f"trial {n}"


class Watcher(Protocol):
    """Who wants to know when an owner closes its attempt: a view that need not read it back."""

    def after_close(self, attempt: Attempt) -> None: ...


class Attempt:
    """A claimed attempt. Every method may raise NotOwner, Superseded, AlreadyClosed or StoreError."""

    def __init__(self, store: Store, keys: StudyKeys, held: Held, point: Mapping[str, Any]) -> None:
        self.store, self.keys, self._held = store, keys, held
        body = held.body
        self.n: int = body["n"]
        self.attempt: int = body["attempt"]
        self.seed: int = body["seed"]
        self.of: int = body["of"]
        self.goal: Goals | None = tuple(body["goal"]) if isinstance(body["goal"], list) else body["goal"]
        self.wish: str | None = body["wish"]
        self.point = dict(point)
        self.nonce = held.nonce
        self.beat_s: float = body["beat_s"]
        self.state: str = body["state"]
        self.files: dict[str, str] = dict(body["files"])
        self.curve: dict[int, float] = {}
        self.ended: Mapping[str, Any] | None = None  # what was seen of a program's end, kept in the blob
        self.lock = held.lock
        self._started = self._last_live = store.machine.clock.monotonic()
        self._has_live = False
        self._in_vain = False
        self.lost = False  # what is under the name is not (or not surely) what this object holds
        self.watcher: Watcher | None = None

    def __repr__(self) -> str:
        return f"<Attempt {self.keys.name} {self.n}-{self.attempt} {self.state}>"

    @property
    def called(self) -> str:
        """How people know it."""
        return called(self.n, self._held.body.get("saw"))

    @property
    def closed(self) -> bool:
        """Whether this process has closed it."""
        return self.state in CLOSED

    @property
    def ours(self) -> bool:
        """False in a process that was forked off the owner's."""
        return self._held.pid == self.store.machine.pid()

    @property
    def written(self) -> bytes:
        """The record as this process last wrote it."""
        return self._held.data

    def record(self) -> TrialRecord:
        """The same as a record."""
        body = self._held.body
        scores = body.get("scores")
        return TrialRecord(
            v=FORMAT, kind="trial", study=self.keys.name, n=self.n, attempt=self.attempt, state=body["state"],
            nonce=self.nonce, point=self.point, goal=self.goal, of=self.of, seed=self.seed, score=body.get("score"),
            step=body.get("step"), reason=body.get("reason"), again=body.get("again", False), wish=self.wish,
            contract=body["contract"], blob=body.get("blob"), files=self.files, beat_s=self.beat_s,
            took_s=body.get("took_s"), started_at=body["started_at"], who=Who(**body["who"]),
            scores=tuple(scores) if scores is not None else None, constraints=body.get("constraints"),
        )  # fmt: skip

    @property
    def took_s(self) -> float:
        """Seconds since it was claimed."""
        return self.store.machine.clock.monotonic() - self._started

    # while it runs

    def add(self, score: float, step: int | None = None) -> int:
        """Put one point on the curve (the same step twice: the last counts); writes nothing. Returns the step."""
        with self.lock:
            if step is None:
                step = max(self.curve, default=-1) + 1
            if step > MOST:
                raise UsageError(f"a step must be below 2**63, not {step}")
            self.curve[step] = score
            return step

    def show(self, *, force: bool = False) -> bool:
        """Let others see the curve and that this attempt moves, at most once a second (a bucket: in 30 s); True if it was due."""
        with self.lock:
            self._check()
            now = self.store.machine.clock.monotonic()
            every_s = LIVE_EVERY_S if self.store.backend.traits.touch else LIVE_EVERY_BUCKET_S
            if not force and now - self._last_live < every_s:
                return False
            self._last_live = now
            self.beat()
            if self.curve:
                self._write_live()
            return True

    def beat(self) -> None:
        """Move the record's stamp: this process lives. Proves nothing about progress."""
        with self.lock:
            if self.closed or not self.ours:
                return
            if self.store.backend.traits.touch:
                self.store.backend.touch(self._held.key)
            else:
                self.store.settler.rewrite(self._held, self._held.body)

    def rescued(self) -> bool:
        """Whether somebody has claimed the next attempt meanwhile."""
        return self.store.backend.read(self.keys.attempt(self.n, self.attempt + 1)) is not None

    def keep(self, name: str, path: Path) -> str:
        """Keep a file by digest under a name; it is in the record when this returns. Returns the digest."""
        self._check()
        digest: str = self._insist(lambda: self.store.put(path))  # hours, perhaps: no lock, or no beats meanwhile
        with self.lock:
            self._check()
            files = {**self.files, name: digest}
            self._insist(lambda: self._rewrite({"files": files}))
            self.files = files
            return digest

    def bring(self, digest: str, folder: Callable[[], Path]) -> Path:
        """The file kept under the digest, in that folder; returns its path. Raises NotFound, RecordError, StoreError."""

        def fetch() -> Path:
            try:
                there = folder()
                there.mkdir(exist_ok=True)
                return self.store.fetch(digest, there / digest[:16])
            except StoreError:
                raise
            except OSError as wrong:
                raise StoreError(f"{wrong.filename or digest} cannot be written: {wrong.strerror or wrong}") from wrong

        found: Path = self._insist(fetch)
        return found

    # the end

    def close(
        self,
        state: str,
        *,
        score: float | None = None,
        step: int | None = None,
        reason: str | None = None,
        again: bool = False,
        traceback: str | None = None,
        verdict: Mapping[str, Any] | None = None,
        scores: Sequence[float] | None = None,
        constraints: Mapping[str, float] | None = None,
    ) -> None:
        """Write the attempt's end, durable when this returns. The first close is the last write.

        ``scores``: with several goals one for each, and then no ``score``. ``constraints``: finite numbers by name.
        ``verdict``: a pruner's, with what it was based on; it goes into the blob with the curve and the traceback.
        Raises AlreadyClosed if it was closed otherwise before, Superseded if the name is somebody else's now,
        StoreError if the store does not take it (call again: the attempt is still open).
        """
        if state not in CLOSED:
            raise ValueError(f"{state!r} does not close an attempt")
        with self.lock:
            self._check()
            end: dict[str, Any] = {
                "state": state, "score": score, "step": step, "took_s": round(self.took_s, 6), "reason": reason,
                "again": again, "files": self.files, "blob": self._blob(traceback, verdict),
            }  # fmt: skip
            if scores is not None:
                end["scores"] = list(scores)
            if constraints:
                end["constraints"] = dict(constraints)
            watcher = self.watcher
            try:
                self._insist(lambda: self._rewrite(end))
            except AlreadyClosed:
                if not self._is_written(end):
                    raise
                self.lost, watcher = True, None  # what is there is ours, but not what we hold: read it
            self.state = state
            if watcher is not None:
                watcher.after_close(self)
            self._drop_live()

    def _rewrite(self, changes: Mapping[str, Any]) -> None:
        try:
            self.store.settler.rewrite(self._held, {**self._held.body, **changes}, durable=True)
        except (NotOwner, UnsureError):  # closed by an earlier try, somebody else's, or who knows: read it
            self.lost = True
            raise

    def _blob(self, traceback: str | None, verdict: Mapping[str, Any] | None) -> str | None:
        one = not isinstance(self.goal, tuple)  # with several goals no score stands for a curve of one value
        if len(self.curve) <= one and not (traceback or verdict or self.ended):
            return None
        body: dict[str, Any] = {"v": FORMAT, "kind": "trial-blob", "curve": _curve(self.curve), "traceback": traceback}
        if verdict:
            body["verdict"] = dict(verdict)
        if self.ended:
            body["ended"] = dict(self.ended)
        digest: str = self._insist(lambda: self.store.put(encode(body)))
        return digest

    def _is_written(self, end: dict[str, Any]) -> bool:
        """An unsure close that did land: the name says closed, by us, just so."""
        there = self.store.backend.read(self._held.key)
        if there is None:
            return False
        try:
            body = decode(there.data, self._held.key)
        except RecordError:
            return False
        return body.get("nonce") == self.nonce and all(
            body.get(name) == value for name, value in end.items() if name != "took_s"
        )

    def _check(self) -> None:
        if not self.ours:
            raise NotOwner(f"trial {self.n} was claimed before this process was forked: only its owner may write it")
        if self.closed:
            raise AlreadyClosed(f"{self.called} attempt {self.attempt} is closed already ({self.state})")

    def _insist(self, write: Callable[[], Any]) -> Any:
        """A full disk or an outage is not the objective's fault: try for a while, then say so."""
        clock = self.store.machine.clock
        deadline: float | None = None  # set at the first failure: the sure path reads no clock
        pause_s = 0.05
        while True:
            try:
                answer = write()
                self._in_vain = False
                return answer
            except (UnsureError, RecordError):
                raise  # pursued already, or damage, which stays
            except StoreError as wrong:
                now = clock.monotonic()
                first, deadline = deadline is None, deadline or now + self.store.settler.patience_s
                if self._in_vain or now >= deadline:
                    self._in_vain = True  # whoever tries to leave in order tries once, and does not wait again
                    raise
                if first:
                    log.warning("%s: %s; trying again", self.called, wrong)
                self._pause(pause_s)
                pause_s = min(5.0, 2 * pause_s)

    def _pause(self, seconds: float) -> None:
        """Wait, and show that this process lives: who closes holds the lock, and its beats wait for that."""
        clock = self.store.machine.clock
        until = clock.monotonic() + seconds
        while (left_s := until - clock.monotonic()) > 0:
            if self.store.backend.traits.touch and self.ours:
                with suppress(StoreError):
                    self.store.backend.touch(self._held.key)
            clock.sleep(min(left_s, self.beat_s))

    def _write_live(self) -> None:
        """Best effort: a live curve that cannot be written is late, not wrong."""
        backend, key = self.store.backend, self.keys.live(self.n, self.attempt)
        body = {"v": FORMAT, "kind": "live", "curve": _curve(self.curve), "nonce": self.nonce}
        try:
            there = backend.read(key) if backend.traits.conditional_replace else None  # a bucket wants its version
            draft = backend.stage(encode(body))
            try:
                if there is None and backend.traits.conditional_replace:
                    backend.create(key, draft)
                else:
                    backend.replace(key, draft, there.version if there is not None else None)
                self._has_live = True
            finally:
                backend.discard(draft)
        except StoreError as wrong:
            log.debug("live curve of %s: %s", self.called, wrong)

    def _drop_live(self) -> None:
        if self._has_live:
            try:
                self.store.backend.delete(self.keys.live(self.n, self.attempt))
            except StoreError as wrong:
                log.debug("live curve of %s: %s", self.called, wrong)


def _curve(curve: Mapping[int, float]) -> list[list[Any]]:
    """[[step, value], ...] by step; what is not finite becomes the words "nan", "inf", "-inf"."""
    return [[step, value if math.isfinite(value) else str(value)] for step, value in sorted(curve.items())]
