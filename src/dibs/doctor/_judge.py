"""What a meeting's figures mean. Pure: what every machine told in, sentences and words out, the same on all of them.

A race is believed only where the machines certainly met: at a name won by several, or where the next name has
another winner, since then two machines were less than one attempt apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._models import Clocks, Delay, Guest, Lap, Method, Stamps, Word

__all__ = ["ENOUGH", "ONE_SITE", "apart", "clocks", "delays", "method", "notes", "shifts"]

ENOUGH = 10  # contested names that make a race
ONE_SITE = "raced through one mount only, which says nothing about two machines"
_LATE_S, _CLOCKS_APART_S = 2.0, 1.0

Owners = Sequence[Sequence[int | None]]  # per lap, per name: the seat whose mark was read


def method(name: str, laps: Sequence[Sequence[Lap]], owners: Sequence[Owners], sites: int, alone: str = "") -> Method:
    """The finding about one way to claim, from each seat's laps and what each seat read afterwards.

    ``sites``: through how many mounts they raced; ``alone``: why it does not work even on one of the machines.
    """
    first = next((row[0].broken for row in laps if row and row[0].broken and not row[0].tried), "")
    if first:
        return Method(name, "missing", first)
    counts = dict.fromkeys(("names", "one", "several", "nobody", "contested", "differ"), 0)
    for at in range(min(len(row) for row in laps)):
        _count(counts, [row[at] for row in laps], [read[at] for read in owners if at < len(read)])
    won = tuple(sum(len(lap.won) for lap in row) for row in laps)
    attempt_s = tuple(max((lap.attempt_s for lap in row), default=0.0) for row in laps)
    broken = next((lap.broken for row in laps for lap in row if lap.broken), "")
    robbed = sum(lap.robbed for row in laps for lap in row)
    word, why = _word(counts, robbed, broken, alone, sites)
    return Method(name, word, why, won=won, attempt_s=attempt_s, **counts)


def _count(counts: dict[str, int], laps: Sequence[Lap], owners: Sequence[Sequence[int | None]]) -> None:
    unsure = {n for lap in laps for n in lap.unsure}
    reached = min(lap.tried for lap in laps)
    winners = [[seat for seat, lap in enumerate(laps) if n in set(lap.won)] for n in range(reached)]
    before: list[int] | None = None
    for n, seats in enumerate(winners):
        counts["names"] += 1
        counts["one"] += len(seats) == 1
        counts["several"] += len(seats) > 1
        counts["nobody"] += not seats and n not in unsure
        counts["contested"] += len(seats) > 1 or (
            before is not None and len(seats) == len(before) == 1 != (seats == before)
        )
        if len(seats) == 1 and any(n < len(read) and read[n] not in (None, seats[0]) for read in owners):
            counts["differ"] += 1
        before = seats


def _word(counts: Mapping[str, int], robbed: int, broken: str, alone: str, sites: int) -> tuple[Word, str]:
    if counts["several"]:
        return "lies", f"{counts['several']} of {counts['names']} names were won by several machines"
    if counts["differ"]:
        return "lies", f"{counts['differ']} of {counts['names']} names do not show on every machine who won them"
    if robbed:
        return "lies", f"{robbed} winners of {counts['names']} names were told later that the name was not theirs"
    if alone:
        return "lies", alone
    if broken:
        return "unproven", f"it broke off: {broken}"
    if counts["nobody"]:
        return "unproven", f"{counts['nobody']} of {counts['names']} names were won by nobody"
    if counts["contested"] < ENOUGH:
        return "unproven", f"the machines met at {counts['contested']} names only: let them race again, on more --names"
    if sites < 2:
        return "unproven", ONE_SITE
    return "exclusive", ""


# ---- clocks


def shifts(samples: Sequence[Mapping[int, float]], seat: int, other: int) -> tuple[float, float]:
    """(own clock minus the other's, to within so much): between the two least delays, as NTP does it (RFC 5905)."""
    if seat == other:
        return 0.0, 0.0
    most, least = samples[seat][other], -samples[other][seat]
    return (most + least) / 2, max(0.0, (most - least) / 2)


def apart(told: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[int, float]]) -> list[tuple[float, float]]:
    """By how much each machine's wall clock is ahead of the first seat's, to within so much."""
    found = []
    for seat, facts in enumerate(told):
        shift, error = shifts(samples, seat, 0)
        found.append((facts["wall_less_monotonic"] - told[0]["wall_less_monotonic"] + shift, error))
    return found


def clocks(told: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[int, float]]) -> Clocks:
    """Whose clock stamps files: compare what each machine's probe was stamped with its own clock, and with the others'."""
    ahead = apart(told, samples)
    stamps = [Stamps(**facts["stamps"]) for facts in told]
    step_s = max(stamp.step_s for stamp in stamps)
    error_s = max(error for _, error in ahead)
    spread = max(wall for wall, _ in ahead) - min(wall for wall, _ in ahead)
    unclear = 0.05 + 2 * error_s + max(stamp.error_s for stamp in stamps)
    if spread <= 2 * unclear:
        return Clocks("unknown", spread, error_s, step_s)
    if all(abs(stamp.ahead_s) <= unclear for stamp in stamps):
        return Clocks("clients", spread, error_s, step_s)
    # the clock that stamped, as a distance from the first seat's clock, by each machine's probe
    by = [wall + stamp.ahead_s for (wall, _), stamp in zip(ahead, stamps, strict=True)]
    return Clocks("server" if max(by) - min(by) <= unclear else "unknown", spread, error_s, step_s)


# ---- delays


def delays(
    seen: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[int, float]], limit_s: float
) -> tuple[Delay, ...]:
    """How late each machine saw what each other one did; ``seen``: by seat, {"did": {what: at}, "saw": {of: {what: at}}}."""
    return tuple(_delays(seen, samples, limit_s))


def _delays(
    seen: Sequence[Mapping[str, Any]], samples: Sequence[Mapping[int, float]], limit_s: float
) -> Iterator[Delay]:
    for of, theirs in enumerate(seen):
        for what, did in theirs["did"].items():
            for by, ours in enumerate(seen):
                if by == of:
                    continue
                shift, error = shifts(samples, by, of)
                saw = ours["saw"][str(of)].get(what)
                late = None if saw is None or did is None else max(0.0, saw - shift - did)
                yield Delay(what, of, by, late, error, limit_s)


def notes(guests: Sequence[Guest], late: Sequence[Delay], clock: Clocks) -> tuple[str, ...]:
    """What people should know of a mount that can be used."""
    return tuple(_notes(guests, late, clock))


def _notes(guests: Sequence[Guest], late: Sequence[Delay], clock: Clocks) -> Iterator[str]:
    for what in dict.fromkeys(delay.what for delay in late):
        ours = [delay for delay in late if delay.what == what]
        worst = max(ours, key=Delay.rank)
        if worst.late_s is not None and worst.late_s <= _LATE_S:
            continue
        by, of = guests[worst.by].me, guests[worst.of].me
        when = f"not within {worst.limit_s:g} s" if worst.late_s is None else f"{worst.late_s:.1f} s late"
        yield f"{by} sees {what} of {of} {when}: claims stay exact, but views lag by as much"
    if clock.stamped_by == "clients" and clock.apart_s > _CLOCKS_APART_S:
        yield (
            f"files are stamped by each machine's own clock, and the clocks are {clock.apart_s:.1f} s apart: keep them in "
            "step (NTP), or who is quiet is misjudged by as much"
        )
    elif clock.apart_s > _CLOCKS_APART_S:
        yield f"the machines' clocks are {clock.apart_s:.1f} s apart; ages are taken from the store, so nothing depends on it"
