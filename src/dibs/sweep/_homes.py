"""Where the durable copies of a cell lie: in the place its record names, which need not be that of the plan any more.

A plan may get another ``--final`` while cells are done. What they left stays where it was copied to, and is read from there, unless
somebody has carried it over, to any place that was ever this sweep's: bytes are compared with the record's digests wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dibs.store import Store, SweepKeys

from ._marks import places
from ._models import Plan
from ._runs import CellStanding, Run

__all__ = ["ASIDE", "BLOBS", "MARK", "done_in", "final_place", "home_of", "place_named", "places_of", "unmarked"]

ASIDE = ".quarantine"
MARK = ".dibs-final"  #: whose the place is
BLOBS = "blobs"  #: where copies are that are no files of a folder


def final_place(store: Store, plan: Plan) -> Path | None:
    """The folder that copies go to by this plan; None where they are blobs of the store."""
    if plan.task.final is not None:
        return Path(plan.task.final)
    return _own(store, plan)


def place_named(store: Store, plan: Plan, run: Run) -> Path | None:
    """The folder of all copies that the record of a finished attempt names; the plan's if it names none. None for blobs."""
    if run.final == BLOBS:  # they are in the store, whatever folder the plan has got since
        return None
    if run.final is None:
        return final_place(store, plan)
    if not Path(run.final).is_absolute():
        return _own(store, plan)
    place = Path(run.final).parent
    return place.parent if place.name == ASIDE else place


def places_of(store: Store, plan: Plan) -> tuple[Path, ...]:
    """Every folder that is known to have been this sweep's place, besides the store's own."""
    return tuple(map(Path, places(store, plan.sweep)))


def home_of(store: Store, plan: Plan, name: str, run: Run, known: Sequence[Path] = ()) -> Path | None:
    """The folder of one cell's copies: where its record says, or else where the plan does, or else in one of the ``known``
    places that has one. None for blobs."""
    named, now = place_named(store, plan, run), final_place(store, plan)
    if named is None or now is None:
        return None
    tried = [place / name for place in dict.fromkeys((named, now, *known))]
    return next((there for there in tried if there.is_dir() and not there.is_symlink()), now / name)


def unmarked(store: Store, plan: Plan, standings: Iterable[CellStanding]) -> list[str]:
    """The cells that are done, and in whose place, which is there, the mark is missing that it got: it may be not mounted here."""
    marked = places_of(store, plan)
    found = []
    for each in standings:
        named = place_named(store, plan, each.counts) if each.state == "done" and each.counts is not None else None
        if named in marked and named.is_dir() and not (named / MARK).is_dir():
            found.append(each.cell.name)
    return found


def done_in(store: Store, plan: Plan, standings: Iterable[CellStanding]) -> list[str]:
    """The cells that are done, and whose copies should lie where the plan says now."""
    place = final_place(store, plan)
    return [
        each.cell.name
        for each in standings
        if each.active
        and each.state == "done"
        and each.counts is not None
        and each.counts.final != BLOBS
        and place_named(store, plan, each.counts) == place
    ]


def _own(store: Store, plan: Plan) -> Path | None:
    root = store.backend.root
    return root / SweepKeys(plan.sweep).final("x").rpartition("/")[0] if root is not None else None
