"""A meeting from its first hello to its verdict: race, read back, watch, compare clocks, conclude, write down.

All machines tell each other everything, so all reach the same conclusion by the same pure functions; the first
seat alone writes it into the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dibs.backend import FolderBackend
from dibs.errors import StoreError
from dibs.store import MARKER, METHODS, Machine, Weighed, escape, look

from . import _judge
from ._conclusion import sentence, worst_of, write
from ._delays import watch
from ._meeting import Meeting
from ._models import Checkup, Delay, Guest, Joined, Lap, Method
from ._race import lap, name_of
from ._stamps import probe
from ._ways import WAYS, Way, way

__all__ = ["join", "site_of"]

LAPS, LAP_LIMIT_S, DELAY_LIMIT_S = 6, 15.0, 8.0
_SYNCS, _SYNC_PAUSE_S = 3, 0.01

Say = Callable[[str], None]


def site_of(root: Path, machine: Machine) -> str:
    """What tells one mount of one machine from any other: the boot and the device the folder lies on.

    Not the host's name: two containers on one machine have two names and one kernel.
    """
    who = machine.who("")
    return f"{who['boot'] or who['host']} {(root if root.exists() else root.parent).stat().st_dev}"


def join(
    seen: Checkup,
    name: str,
    machines: int,
    machine: Machine,
    *,
    me: str,
    names: int = 300,
    patience_s: float = 300.0,
    site: str | None = None,
    say: Say = lambda text: None,
) -> Joined:
    """Meet ``machines - 1`` others who do this under the same name, race them, and return what all found.

    ``seen``: what this machine alone saw of the folder. In an unused folder a meeting that found an exclusive method
    creates the store with it; in a store it leaves a verdict beside the marker. Every later open obeys. Raises
    StoreError (somebody is missing, the folder cannot be written to), UsageError (too many came, or with other
    numbers).
    """
    root = Path(seen.store)
    made = not root.exists()
    FolderBackend(root).prepare()
    meeting = Meeting(root / "doctor" / escape(name), machine, machines, patience_s, say)
    try:
        meeting.arrive(Guest(me, machine.who("")["host"], machine.pid(), seen.mount, site or site_of(root, machine)))
        session = _Session(seen, meeting, machine, names, say)
        joined = session.run(name, made)
    except BaseException:
        meeting.abandon()
        _tidy(root, made)
        raise
    meeting.leave()
    if joined.seat == 0:
        _tidy(root, session.made)
    return joined


def _tidy(root: Path, made: bool) -> None:
    """Where no store came of it, what was made for the meeting goes again if it is empty."""
    with suppress(OSError):
        if not (root / MARKER).exists():
            (root / "tmp").rmdir()
            if made:
                root.rmdir()


class _Session:
    """One machine's part in a meeting that has begun."""

    def __init__(self, seen: Checkup, meeting: Meeting, machine: Machine, names: int, say: Say) -> None:
        self.root, self.meeting, self.machine, self.say = Path(seen.store), meeting, machine, say
        self.alone = seen.ways
        self.made = False  # by one of us, for this meeting
        self.per_lap = -(-names // LAPS)
        self.sites = len({guest.site for guest in meeting.guests})

    def run(self, name: str, made: bool) -> Joined:
        meeting = self.meeting
        self.say("met: " + ", ".join(f"{guest.me} ({guest.host}, {guest.mount})" for guest in meeting.guests))
        for facts in meeting.exchange("alone", {"ways": dict(self.alone), "made": made}):
            self.made = self.made or facts["made"]
            self.alone = {kind: self.alone[kind] or facts["ways"][kind] for kind in WAYS}
        self._sync()
        methods = tuple(self._race(kind) for kind in WAYS)
        seen: list[dict[str, Any]] = []
        if not all(each.bad for each in methods if each.name in METHODS):
            self.say("watching how late each sees the others")
            seen = meeting.exchange("seen", watch(meeting, self.machine.clock, DELAY_LIMIT_S))
        told = meeting.exchange("facts", self._facts())
        samples = [{int(seat): lag for seat, lag in facts["samples"].items()} for facts in told]
        late = _judge.delays(seen, samples, DELAY_LIMIT_S)
        clocks = _judge.clocks(told, samples)
        marker = next((facts["marker"] for facts in told if facts["marker"]), None)
        worst = worst_of(marker, meeting.guests, methods)
        written = self._written(methods, worst, late, used=marker is not None)
        return Joined(
            str(self.root), name, meeting.seat, meeting.guests, self.sites, methods, late, clocks, worst.claim,
            worst.kind != "refused", sentence(worst, methods), written,
            _judge.notes(meeting.guests, late, clocks),
        )  # fmt: skip

    def _sync(self) -> None:
        """Samples of the clocks: in turn one comes last, so that all others see its words at once."""
        for k in range(_SYNCS * len(self.meeting.guests)):
            if k % len(self.meeting.guests) == self.meeting.seat:
                self.machine.clock.sleep(_SYNC_PAUSE_S)
            self.meeting.exchange(f"sync-{k}", {})

    def _race(self, kind: str) -> Method:
        self.say(f"racing for {LAPS * self.per_lap} names with {kind}")
        meeting, pace_s = self.meeting, Lap().pace_s()
        ours: list[Lap] = []
        laps: list[list[Lap]] = [[] for _ in meeting.guests]
        for k in range(LAPS):
            ours.append(self._lap(kind, k, pace_s))
            told = meeting.exchange(f"{kind}-{k}-ran", asdict(ours[-1]))
            for seat, facts in enumerate(told):
                laps[seat].append(Lap(**{field: facts[field] for field in asdict(Lap())}))
            if any(row[-1].broken for row in laps):
                break
            pace_s = max(row[-1].pace_s() for row in laps)
        read = [self._owners(kind, k) for k in range(len(ours))]
        owners = [facts["owners"] for facts in meeting.exchange(f"{kind}-read", {"owners": read})]
        return _judge.method(kind, laps, owners, self.sites, self.alone[kind])

    def _way(self, kind: str, k: int) -> Way:
        """The way to claim in one lap; bare in every other one."""
        # of this meeting alone: who was killed in an earlier one of the same name has left its names behind
        folder = self.meeting.folder / f"race-{self.meeting.token}-{kind}-{k}"
        return way(kind, folder, self.machine, self.meeting.seat, bare=k % 2 == 1)

    def _lap(self, kind: str, k: int, pace_s: float) -> Lap:
        try:
            runner = self._way(kind, k)
        except (OSError, StoreError) as wrong:
            self.meeting.exchange(f"{kind}-{k}", {})
            return Lap(broken=str(wrong))
        names = range(self.per_lap)
        self.meeting.exchange(f"{kind}-{k}", {})
        return lap(runner, names, pace_s, LAP_LIMIT_S, self.machine)

    def _owners(self, kind: str, k: int) -> list[int | None]:
        try:
            runner = self._way(kind, k)
        except (OSError, StoreError):
            return []
        return [runner.owner(name_of(n)) for n in range(self.per_lap)]

    def _facts(self) -> dict[str, Any]:
        clock, marker = self.machine.clock, look(self.root)[0]
        return {
            "samples": self.meeting.samples,
            "stamps": asdict(probe(self.meeting.folder / f"stamp-{self.meeting.seat}", self.machine)),
            "wall_less_monotonic": clock.wall() - clock.monotonic(),
            "marker": marker,
        }

    def _written(
        self, methods: tuple[Method, ...], worst: Weighed, late: Sequence[Delay], *, used: bool
    ) -> tuple[str, ...]:
        """The first seat writes down what was found; all hear about it."""
        told: dict[str, Any] = {"keys": [], "wrong": ""}
        if self.meeting.seat == 0:
            try:
                told["keys"] = write(self.root, self.machine, self.meeting.guests, methods, worst, late, used=used)
            except StoreError as wrong:
                told["wrong"] = str(wrong)
        heard = self.meeting.exchange("written", told)[0]
        if heard["wrong"]:
            raise StoreError(f"the verdict could not be written: {heard['wrong']}")
        return tuple(heard["keys"])
