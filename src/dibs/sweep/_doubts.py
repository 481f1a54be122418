"""What only a person can decide about a cell: whether a config was edited before or after it was read, and whether a machine
that has been silent for long is gone. Pure.

An answer is of one attempt, and of what was seen of it: another attempt, or a machine that moves again, is asked about anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ._runs import CellStanding, Run

__all__ = ["CONFIG", "QUIET", "Accepted", "Doubt", "doubts", "still", "writers"]

CONFIG, QUIET = "config changed", "quiet"
_WORDS = {CONFIG: "config", QUIET: "quiet"}


@dataclass(frozen=True)
class Accepted:
    """Somebody's answer. ``name``: the doubt's; ``approve``: who answers for it; ``why``: what he said besides."""

    name: str
    approve: str
    why: str = ""


@dataclass(frozen=True)
class Doubt:
    """One question: its ``kind``, the attempt it is about, and what was seen."""

    kind: str
    cell: str
    run: Run
    what: str

    @property
    def name(self) -> str:
        """The same for the same question, and for no other one."""
        # an attempt that moved meanwhile is not the same
        seen = self.run.edited if self.kind == CONFIG else int(self.run.moved)
        return f"{self.run.n:08d}-{self.run.attempt}-{_WORDS[self.kind]}-{seen}"

    def answer(self, accepted: Collection[Accepted]) -> Accepted | None:
        return next((each for each in accepted if each.name == self.name), None)


def doubts(each: CellStanding) -> Iterator[Doubt]:
    """What is to be asked about the cell."""
    run, cell = each.counts, each.cell
    if each.active and each.state == "done" and run is not None and run.edited is not None:
        said = f"its config was edited while it ran, to {run.edited[:12]}...: nobody can say which one it read"
        yield Doubt(CONFIG, cell.name, run, said)
    for one in writers(each):
        if one.quiet:
            yield Doubt(QUIET, cell.name, one, still(each, one))


def writers(each: CellStanding) -> Iterator[Run]:
    """The attempts that may still leave something for a cell that nobody waits for: it is done, or dropped."""
    run = each.counts
    if each.active and (each.state != "done" or run is None):
        return
    for one in each.runs:
        later = not each.active or run is None or one.attempt > run.attempt  # a later one replaces the copy
        if one.state == "running" and not one.gone and later:
            yield one


def still(each: CellStanding, one: Run) -> str:
    """What that attempt may still do, in words."""
    by = f"attempt {one.attempt} by {one.me} on {one.host}"
    if each.active and each.counts is not None:
        return f"attempt {each.counts.attempt} is done, and {by} would replace its copy"
    return f"its line is a comment, and {by} still runs" + (f", since {one.since}" if one.since else "")
