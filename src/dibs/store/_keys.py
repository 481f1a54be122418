"""Every key there is, in one place. Format: blocks 6 digits, trials 8, attempts and notes plain.

No key is a prefix of another one, and nothing outside this file puts a key together.
"""

from __future__ import annotations

import hashlib
import re

from ._names import escape, unescape

__all__ = [
    "ADOPTED",
    "BLOCK",
    "COPY_OF",
    "MARKER",
    "VERDICTS",
    "HostKeys",
    "JournalKeys",
    "RoundKeys",
    "StudyKeys",
    "SweepKeys",
    "blob_key",
    "name_key",
    "verdict_key",
]

MARKER = "dibs.json"
COPY_OF, ADOPTED = "copy_of.json", "adopted.json"  # beside the marker: a copy, and one that is a store of its own
VERDICTS = "verdict/"
BLOCK = 256  # trials in a folder
_TRIAL = re.compile(r"(\d{8,})-(\d+)\.json\Z")


def blob_key(digest: str) -> str:
    """The key of a blob."""
    return f"blobs/{digest[:2]}/{digest}"


def name_key(name: str) -> str:
    """The key of a free name (``Store.claim``)."""
    return f"name/{escape(name)}.json"


def verdict_key(k: int) -> str:
    """The key of a later verdict of `dibs doctor`, beside the marker."""
    return f"{VERDICTS}{k}.json"


class HostKeys:
    """The generations of things that one host has only so many of: free names, so that ``Store.scan`` shows them."""

    def __init__(self, kind: str, place: str) -> None:
        self.kind, self.place = kind, place

    def name(self, thing: str, generation: int | str) -> str:
        """The free name of one generation."""
        return f"{self._base(thing)}{generation}"

    def key(self, thing: str, generation: int) -> str:
        return name_key(self.name(thing, generation))

    def generation(self, thing: str, file: str) -> int | None:
        """Which generation of the thing a file under ``name/`` is, None if it is something else's."""
        name = unescape(file.removesuffix(".json")) or ""
        rest = name.removeprefix(self._base(thing))
        return int(rest) if rest != name and rest.isdecimal() and rest.isascii() else None

    def _base(self, thing: str) -> str:
        base = f"{self.kind}/{self.place}/{thing}/"
        if unescape(escape(f"{base}{10**12}")) is None:  # too long, and the generation has to stay readable
            base = f"{self.kind}/{hashlib.sha256(base.encode()).hexdigest()[:16]}/"
        return base


class StudyKeys:
    """The keys of one study."""

    __slots__ = ("base", "given", "name", "segment", "study")
    ROOT = "study/"

    def __init__(self, study: str) -> None:
        self.name = study
        self.segment = escape(study)
        self.base = f"{self.ROOT}{self.segment}/"
        self.study = self.base + "study.json"
        self.given = self.base + "given/"

    def attempt(self, n: int, attempt: int) -> str:
        """The record of an attempt: attempt 0 under ``trial/``, the others under ``again/``."""
        return f"{self.base}{'again' if attempt else 'trial'}/{n // BLOCK:06d}/{n:08d}-{attempt}.json"

    @staticmethod
    def file(n: int, attempt: int) -> str:
        """The last segment of an attempt's key."""
        return f"{n:08d}-{attempt}.json"

    def live(self, n: int, attempt: int) -> str:
        """The running curve of an attempt."""
        return f"{self.base}live/{n // BLOCK:06d}/{n:08d}-{attempt}.json"

    def lives(self) -> str:
        return self.base + "live/"

    def work(self, n: int, attempt: int) -> str:
        """The private folder of an attempt (no key: a folder of the attempt's own)."""
        return f"{self.base}work/{n:08d}-{attempt}"

    def block(self, kind: str, block: int) -> str:
        """The folder of one block of 256 trials, under ``trial/`` or ``again/``."""
        return f"{self.base}{kind}/{block:06d}/"

    def roll(self, level: int, seq: int) -> str:
        """A cache of closed records."""
        return f"{self.base}roll/{level}/{seq:08d}.json"

    def rolls(self, level: int) -> str:
        return f"{self.base}roll/{level}/"

    def trials(self) -> str:
        return self.base + "trial/"

    def notes(self) -> str:
        return self.base + "note/"

    def wish(self, digest: str) -> str:
        return f"{self.base}note/wish/{digest}.json"

    def release(self, n: int, attempt: int) -> str:
        return f"{self.base}note/release/{n:08d}-{attempt}.json"

    def stop(self, k: int) -> str:
        return f"{self.base}note/stop/{k}.json"

    def go(self, k: int) -> str:
        return f"{self.base}note/go/{k}.json"

    def slot(self, k: int, generation: int) -> str:
        """One generation of one slot of the study's cap."""
        return f"{self.slots(k)}{generation}.json"

    def slots(self, k: int) -> str:
        return f"{self.base}slot/{k}/"

    def given_score(self, digest: str) -> str:
        return f"{self.given}{digest}.json"

    @staticmethod
    def parse(key: str) -> tuple[int, int] | None:
        """(n, attempt) of a trial's key (or of a release note's), None for anything else."""
        match = _TRIAL.match(key, key.rfind("/") + 1)
        return (int(match[1]), int(match[2])) if match else None


class SweepKeys(StudyKeys):
    """The keys of one sweep: its cells' attempts lie as those of a study's trials do, and its plans beside them."""

    __slots__ = ()
    ROOT = "sweep/"

    def plan(self, version: int) -> str:
        """One version of the plan: claimed, and never rewritten."""
        return f"{self.base}plan/{version:08d}.json"

    def plans(self) -> str:
        return self.base + "plan/"

    def mark(self, kind: str, k: int | str) -> str:
        """A step of the sweep that is taken once, such as ``release/0``."""
        return f"{self.base}mark/{kind}/{k}.json"

    def marks(self, kind: str) -> str:
        return f"{self.base}mark/{kind}/"

    def place(self, host: str, k: int, generation: int) -> str:
        """One generation of one of a host's places for running cells."""
        return f"{self.places(host, k)}{generation}.json"

    def places(self, host: str, k: int) -> str:
        return f"{self.base}host/{escape(host)}/{k}/"

    def final(self, name: str) -> str:
        """The folder of a cell's durable copies (no key)."""
        return f"{self.base}final/{name}"


class RoundKeys:
    """The keys of one run of federated rounds: each round's are claims, and none is rewritten but who averages."""

    __slots__ = ("base", "run")
    ROOT = "round/"

    def __init__(self, run: str) -> None:
        self.run = run
        self.base = f"{self.ROOT}{escape(run)}/"

    def round(self, round: int) -> str:
        """The folder of one round."""
        return f"{self.base}{round:08d}/"

    def terms(self, round: int, again: int = 0) -> str:
        """What all clients of the round have to agree on. ``again``: for who follows a claim that was never written."""
        return self._name(round, "terms", again)

    def update(self, round: int, client: str, again: int = 0) -> str:
        return self._name(round, f"client/{escape(client)}", again)

    def averaging(self, round: int, attempt: int) -> str:
        """One attempt at averaging, with beats."""
        return f"{self.round(round)}averaging/{attempt}.json"

    def average(self, round: int, again: int = 0) -> str:
        """The round's end."""
        return self._name(round, "average", again)

    def late(self, round: int, client: str) -> str:
        return f"{self.round(round)}late/{escape(client)}.json"

    def forgotten(self, round: int) -> str:
        """The round's blobs were put away."""
        return self.round(round) + "forgotten.json"

    def _name(self, round: int, what: str, again: int) -> str:
        return f"{self.round(round)}{f'again/{what}/{again}' if again else what}.json"


class JournalKeys:
    """The keys of one journal: entries under consecutive numbers from 0 on, and rolls of 1,024 entries each."""

    __slots__ = ("base", "name")
    PER_ROLL = 1024  # also the entries in a folder

    def __init__(self, name: str) -> None:
        self.name = name
        self.base = f"optuna/{escape(name)}/"

    def entry(self, number: int) -> str:
        """One entry: claimed, and never rewritten."""
        return f"{self.base}entry/{number // self.PER_ROLL:06d}/{number:08d}.json"

    def roll(self, block: int) -> str:
        """The entries of one folder in one piece."""
        return f"{self.base}roll/{block:06d}.json"
