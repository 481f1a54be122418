"""``python -m dibs.testing.torture --seconds 120 --seed 1``: real workers on one store, and somebody who is after them.

A seeded tormentor kills, stops and starves worker processes, fills the disk, deletes temporaries and damages records
for a bounded time; then fresh workers finish the study, and the nine invariants are read off the raw files. Exit 0
if all hold; 1 if not, and the folder stays, for ``_raw_check.py`` and for people. With ``--bucket URL`` the store is in
a bucket, and the raw files are a mirror of it; there no disk is filled and no temporaries are deleted, for there are none.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from dibs._canon import to_json
from dibs.errors import UsageError
from dibs.search import Sobol
from dibs.store import Store
from dibs.store._keys import MARKER

from ._raw_check import Raw, check, folded
from ._torture_bucket import Bucket
from ._torture_crew import CLOCK, Crew, Worker, faketime
from ._torture_disk import Disk
from ._torture_objective import FAILURE, SPACE, STUDY
from ._torture_orders import Orders
from ._torture_plan import Plan, plan_from
from ._torture_torments import TORMENTS, Tormentor

__all__ = ["Plan", "Torture", "main"]

_MODES = ("trials", "run", "trials", "run", "functions", "pool")
_REASONS = (FAILURE, "a score must be finite", "poison")
_SKEW_S = 7200.0
_LOOK_EVERY_S, _TELL_EVERY_S, _COUNT_EVERY_S = 4.0, 10.0, 1.0
_SETTLERS = 2


class Torture:
    """One run: ``go`` torments, lets the study settle, and returns what is broken."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.chance = Random(plan.seed)
        self.disk = Bucket(folder, plan.bucket) if plan.bucket else Disk(folder, tmpfs=plan.tmpfs)
        self.crew = Crew(folder)
        if plan.claim == "mkdir":
            marker = self.disk.store / MARKER
            Store(self.disk.store)
            marker.write_text(marker.read_text().replace('"claim":"link"', '"claim":"mkdir"'))
        self.of = plan.trials or 5 * plan.workers
        # not for a bucket: its server takes no request that was signed in another hour
        self.library = faketime() if plan.clocks != "right" and not plan.bucket else None
        self.tormentor = Tormentor(
            self.chance, self.crew, self.disk, STUDY, (plan.rescue_after_s + 2, plan.rescue_after_s + 5), self._people
        )
        self.looks = 0
        self._looking: list[subprocess.Popen[bytes]] = []
        self._due = dict.fromkeys(("look", "tell", "count"), 0.0)
        self._raw: Raw | None = None
        self._began = CLOCK.monotonic()

    def go(self) -> list[str]:
        """Everything that does not hold, as ``name: sentence``."""
        until, late = None, self._began + self.plan.settle_s
        weights = [TORMENTS[name] for name in self.plan.torments]
        while CLOCK.monotonic() < (until or late):
            self._tend(self.plan.workers)
            if (self.disk.store / "study" / STUDY / "study.json").exists():
                until = until or CLOCK.monotonic() + self.plan.seconds  # before that there is nobody to torment
                if weights:
                    self.tormentor.act(self.chance.choices(self.plan.torments, weights)[0])
            CLOCK.sleep(self.chance.uniform(0.05, 0.6))
        self._calm()
        self._write_facts()
        return check(str(self.folder))

    def close(self) -> None:
        """Nobody and nothing is left running or mounted."""
        self.crew.close()
        for process in self._looking:
            process.kill()
            process.wait()
        self.disk.close()

    def summary(self, broken: Sequence[str]) -> str:
        """One line that says what happened."""
        raw, counts = self.raw(), self.tormentor.counts
        states = Counter(folded(seen, raw.released.get(n, set()))[0] for n, seen in raw.trials().items())
        rescued = [(n, a) for n, a in self.tormentor.stopped if (n, a + 1) in raw.attempts]
        late = sum(1 for at in rescued if (raw.attempts.get(at) or {}).get("state") == "done")
        what = {
            f"kills ({counts['kills of a running trial']} in a running trial)": counts["kill"],
            f"stops ({len(rescued)} rescued meanwhile, {late} of them done all the same)": counts["stop"],
            "SIGTERMs": counts["term"],
            f"full disks ({counts['inodes']} without inodes)": counts["fill"],
            "times temporaries deleted": counts["temps"],
            "files truncated": counts["truncate"],
            "files removed": counts["remove"],
            "times steered": counts["steer"],
            "looks": self.looks,
        }
        took_s = CLOCK.monotonic() - self._began
        return (
            f"torture: seed {self.plan.seed}: {self.crew.hired} workers in {took_s:.0f} s: {len(raw.trials())} trials ("
            + ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            + f"), {len(raw.attempts)} attempts; "
            + ", ".join(f"{count} {name}" for name, count in what.items() if count)
            + ": "
            + (f"{len(broken)} broken" if broken else "nothing broken")
        )

    def raw(self) -> Raw:
        """The files as they are now."""
        return self.disk.raw(STUDY)

    # while it goes on

    def _tend(self, wanted: int) -> None:
        """Look after everybody: wake, reap, replace, look, count."""
        self.crew.wake()
        if self.disk.relax(now=wanted == 0):
            self.crew.full[-1] = (self.crew.full[-1][0], CLOCK.monotonic())
        for _ in self.crew.reap():
            pass
        working = sum(worker.orders.mode != "steer" for worker in self.crew.workers)
        for _ in range(wanted - working):
            self._hire(_MODES[self.crew.hired % len(_MODES)])
        if self._is_due("count", _COUNT_EVERY_S):
            self._raw = self.raw()
            if wanted and not self.plan.trials and len(self._raw.attempts) > self.of - 5 * self.plan.workers:
                self.of += 15 * self.plan.workers  # those who are at work keep their own, smaller N
            if wanted and self._raw.stopped and not self._steering():
                self._hire("steer", steps=("resume",))  # whoever meant to was killed before
        if self._is_due("look", _LOOK_EVERY_S):
            self._look()
        if self._is_due("tell", _TELL_EVERY_S) and self._raw is not None:
            self._tell(self._raw)

    def _is_due(self, what: str, every_s: float) -> bool:
        now = CLOCK.monotonic()
        if now < self._due[what]:
            return False
        self._due[what] = now + every_s
        return True

    def _hire(self, mode: str, *, wait: bool = False, steps: tuple[str, ...] = (), right: bool = False) -> Worker:
        wrong = 0.0 if right or self.plan.clocks == "right" else (0.0, _SKEW_S, -_SKEW_S)[self.crew.hired % 3]
        orders = Orders(
            store=self.disk.address, folder=str(self.folder), me="", mode=mode, of=self.of, seed=self.plan.seed,
            stale_s=self.plan.rescue_after_s, rescue_after_s=self.plan.rescue_after_s,
            shortest_s=self.plan.shortest_s, longest_s=self.plan.longest_s, skew_s=wrong,
            stamps=self.plan.clocks == "stamps", wait=wait, hurry=self.plan.bucket is not None, steps=steps,
        )  # fmt: skip
        return self.crew.hire(orders, library=self.library)

    def _people(self, steps: tuple[str, ...]) -> None:
        if self.plan.clocks == "stamps" and "rescue" in steps:
            return  # by such stamps a living worker may look quiet to a person, who then decides wrongly
        self._hire("steer", steps=steps)

    def _look(self) -> None:
        """``dibs status`` in a process of its own; the one before has answered by now."""
        self._looked()
        if (self.disk.store / "study" / STUDY / "study.json").exists():
            self._looking.append(self._reader("status"))

    def _looked(self) -> None:
        for process in self._looking:
            try:
                out, err = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
            code = process.returncode
            with suppress(ValueError):
                json.loads(out or b"no answer")
                self.looks += 1
                self.crew.note("looked", code=code, why=err.decode(errors="replace")[-1000:])
                continue
            self.crew.note("looked", code=code or -1, why=f"{out[-200:]!r} {err.decode(errors='replace')[-1000:]}")
        self._looking = []

    def _reader(self, verb: str) -> subprocess.Popen[bytes]:
        store = self.disk.address
        words = [verb, "--store", store, *(["--deep"] if verb == "check" else ["--study", STUDY]), "--json"]
        return subprocess.Popen(
            [sys.executable, "-m", "dibs.testing._torture_reader", store, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _tell(self, raw: Raw) -> None:
        trials = raw.trials()
        settled = sum(folded(seen, raw.released.get(n, set()))[1] for n, seen in trials.items())
        done = ", ".join(f"{count} {name}" for name, count in self.tormentor.counts.items() if count)
        print(
            f"{CLOCK.monotonic() - self._began:4.0f} s  {len(self.crew.workers)} workers; {settled} of {self.of} settled, "
            f"{len(trials)} claimed; {done or 'nothing done to them'}",
            file=sys.stderr,
        )

    # the end

    def _calm(self) -> None:
        """Stop tormenting; whoever is there goes on, and fresh workers finish what is left, within a bounded time."""
        deadline = CLOCK.monotonic() + self.plan.settle_s
        self.crew.wake(all_of_them=True)
        while self._steering() and CLOCK.monotonic() < deadline:
            self._tend(0)
            CLOCK.sleep(0.1)
        self._hire("steer", steps=("resume",), right=True)
        while CLOCK.monotonic() < deadline:
            self._tend(0)
            raw = self.raw()
            self.disk.age(raw)
            if not self._steering():
                settled = self._settled(raw)
                if settled and not self.crew.workers:
                    return
                fresh = sum(worker.orders.wait for worker in self.crew.workers)
                for _ in range(0 if settled else _SETTLERS - fresh):
                    self._hire("trials", wait=True)
            CLOCK.sleep(0.25)
        for worker in list(self.crew.workers):
            self.crew.end(worker, f"still here {self.plan.settle_s:.0f} s after the last torment")

    def _steering(self) -> bool:
        return any(worker.orders.mode == "steer" for worker in self.crew.workers)

    def _settled(self, raw: Raw) -> bool:
        trials = raw.trials()
        return all(n in trials and folded(trials[n], raw.released.get(n, set()))[1] for n in range(self.of))

    def _write_facts(self) -> None:
        self._looked()
        answers: dict[str, Any] = {}
        before = self.disk.listing()
        for verb, codes in {"status": (0,), "trials": (0,), "check": (0, 1)}.items():
            process = self._reader(verb)
            out, err = process.communicate()
            code = 0 if process.returncode in codes else process.returncode
            self.crew.note("looked", code=code, why=err.decode(errors="replace")[-1000:])
            nothing: Any = [] if verb == "trials" else {"problems": [], "queued": [], "findings": []}
            answers[verb] = json.loads(out) if code == 0 else nothing
        wrote = dict((self.disk.listing() or {}).items() ^ (before or {}).items())
        self.crew.note("looked", code=int(bool(wrote)), why=f"the readers wrote {sorted(wrote)}")
        self.raw()
        sampler = Sobol(seed=self.plan.seed)
        points = [sampler.ask(SPACE, n) for n in range(self.of)]
        facts = {
            "store": str(self.disk.store), "study": STUDY, "of": self.of, "reasons": _REASONS,
            "points": [{name: to_json(value) for name, value in (point or {}).items()} for point in points], **answers,
        }  # fmt: skip
        (self.folder / "facts.json").write_text(json.dumps(facts))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    plan, store = plan_from(arguments, __doc__)
    folder = Path(store) if store else Path(tempfile.mkdtemp(prefix="dibs-torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"{folder} is not empty: give a new folder", file=sys.stderr)
        return 2
    try:
        torture = Torture(plan, folder)
    except UsageError as wrong:
        print(wrong, file=sys.stderr)
        if not store:
            shutil.rmtree(folder)
        return 2
    try:
        broken = torture.go()
        print(torture.summary(broken))
        if plan.tmpfs and (broken or store):
            shutil.copytree(torture.disk.store, folder / "store")
        if not broken and not store:
            torture.disk.forget()
    finally:
        torture.close()
    for sentence in broken:
        print(f"  {sentence}")
    if broken or store:
        print(f"  the evidence is in {folder}")
    else:
        shutil.rmtree(folder)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
