"""``dibs doctor``: can a store lie in this folder? One machine looks, several race each other."""

from __future__ import annotations

import os

import click

from dibs.doctor import Checkup, Joined, checkup, join, join_bucket, step_text
from dibs.errors import UsageError
from dibs.store import Here, is_bucket, local_path
from dibs.store._machine import default_me
from dibs.store._opening_bucket import probe_bucket, raw_bucket
from dibs.view import duration

from ._options import SPAN, Whole, as_json, command, me_option, verbose
from ._text import json_text, out, safe, table

__all__ = ["verb"]


@command("doctor")
@click.argument("store", metavar="STORE", required=False, envvar="DIBS_STORE")
@click.option("--join", "name", metavar="NAME", help="Meet other machines under this name, and race them.")
@click.option("--machines", type=Whole(2, 64), metavar="M", help="How many will meet.  [default: 2]")
@click.option("--names", type=Whole(min=60), default=300, show_default=True, metavar="K",
              help="Names to race for with each method.")  # fmt: skip
@click.option("--patience", type=SPAN, default=300.0, help="How long to wait for another machine.  [default: 5m]")
@me_option
@as_json
@verbose
def verb(
    store: str | None, name: str | None, machines: int | None, names: int, patience: float, me: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Find out whether a store can lie in a folder.

    Alone it tries, in seconds, what one machine can see: the mount's type, hard links, exclusive create, mkdir, rename,
    listing, stamps, room. Two machines that both win one name it cannot see: a FUSE mount may pass all of this and
    still do that. With --join, typed on several machines within --patience, they meet in the folder and race each
    other for hundreds of names with each claim method, and each prints which methods are exclusive and how late it
    sees what the others do.

    \b
    Example:
      dibs doctor /mnt/shared/studies
      dibs doctor /mnt/shared/studies --join check --machines 2

    An unused folder becomes a store that claims by a method found exclusive (link, else mkdir); in a store the finding
    is kept beside its marker. Every later run obeys: a type of mount found exclusive is taken, one found lying is
    refused.

    A bucket's URL does as well: what is raced there are conditional writes, and nothing is kept.

    Exit codes: 0 a store can lie here; 2 usage; 3 refused, somebody is missing, or the folder is unusable.
    """
    if name is None and machines is not None:
        raise UsageError("--machines is for a meeting: say --join NAME too, the same on all machines")
    if name is not None and not name.strip():
        raise UsageError("--join needs a name, the same on all machines")
    if not store:
        raise UsageError("no folder: say dibs doctor FOLDER, or set DIBS_STORE or store in a dibs.toml")
    me, machines = me or default_me(os.environ), machines or 2
    if is_bucket(store):
        return _bucket(store, name, machines, names, patience, me, as_json)
    machine = Here()
    seen = checkup(local_path(store), machine)
    if name is None:
        return _alone(seen, as_json)
    if not as_json:
        _say_checkup(seen)
        out()
    joined = join(seen, name, machines, machine, me=me, names=names, patience_s=patience, say=_aside)
    if as_json:
        out(json_text({"checkup": seen.to_json(), **joined.to_json()}))
    else:
        _say_joined(joined)
    return 0 if joined.fine else 3


def _alone(seen: Checkup, as_json: bool) -> int:
    if as_json:
        out(json_text(seen.to_json()))
    else:
        _say_checkup(seen)
        out(f"verdict  {safe(seen.verdict)}")
    return 0 if seen.fine else 3


def _aside(text: str) -> None:
    """What a meeting says while it goes on."""
    out(safe(text), err=True)


def _bucket(url: str, name: str | None, machines: int, names: int, patience_s: float, me: str, as_json: bool) -> int:
    machine = Here()
    probe_bucket(url, machine)
    if name is None:
        verdict = "the server keeps its conditions, as far as one machine can see: race it with --join NAME"
        out(json_text({"store": url, "fine": True, "verdict": verdict}) if as_json else f"verdict  {verdict}")
        return 0
    joined = join_bucket(
        raw_bucket(url, machine), name, machines, machine, me=me, names=names, patience_s=patience_s, say=_aside,
    )  # fmt: skip
    if as_json:
        out(json_text({"store": url, **joined.to_json()}))
        return 0 if joined.fine else 3
    out(safe(f"meeting {name!r} of {machines}; this is {joined.guests[joined.seat]}"))
    rows = [(race.name, race.names, race.one, race.several, race.nobody, race.word) for race in joined.races]
    table(("way", "names", "one winner", "several", "nobody", "finding"), rows, right=(1, 2, 3, 4), indent=2)
    out(f"verdict  {joined.verdict}")
    return 0 if joined.fine else 3


def _say_checkup(seen: Checkup) -> None:
    what = f"a store that claims by {seen.claim}" if seen.used else "not a store yet"
    out(f"folder   {safe(seen.store)}, {what}")
    table(
        ("", "what", "found"),
        [(finding.how.ljust(4), finding.what, finding.said) for finding in seen.findings],
        indent=2,
    )


def _say_joined(joined: Joined) -> None:
    here = f"meeting {joined.name!r} of {len(joined.guests)}; this is {joined.guests[joined.seat].me}"
    out(safe(here))
    rows = [(guest.me, guest.host, guest.mount, wins) for guest, wins in zip(joined.guests, _wins(joined), strict=True)]
    table(("who", "host", "mount", "won (" + ", ".join(each.name for each in joined.methods) + ")"), rows, indent=2)
    out()
    table(
        ("method", "names", "one winner", "several", "nobody", "met at", "finding"),
        [
            (each.name, each.names, each.one, each.several, each.nobody, each.contested,
             each.word + (f": {each.why}" if each.why else ""))
            for each in joined.methods
        ],
        right=(1, 2, 3, 4, 5), indent=2,
    )  # fmt: skip
    out()
    if joined.delays:
        _say_delays(joined)
    out(f"  {_clock_text(joined)}")
    for note in joined.notes:
        out(f"  note: {safe(note)}")
    out()
    out(f"verdict  {safe(joined.verdict)}")
    if joined.written:
        out(f"written  {', '.join(joined.written)}: every later open obeys")


def _wins(joined: Joined) -> list[str]:
    return [
        ", ".join(str(each.won[seat]) if each.won else "-" for each in joined.methods)
        for seat in range(len(joined.guests))
    ]


def _say_delays(joined: Joined) -> None:
    rows = []
    for what in dict.fromkeys(delay.what for delay in joined.delays):
        ours = [delay for delay in joined.delays if delay.what == what]
        known = [delay.late_s for delay in ours if delay.late_s is not None]
        limit = f"not in {duration(ours[0].limit_s)}"
        latest = duration(max(known)) if len(known) == len(ours) else limit
        rows.append((what, duration(min(known)) if known else limit, latest, duration(max(d.error_s for d in ours))))
    table(("one sees the other's", "soonest", "latest", "give or take"), rows, right=(1, 2, 3), indent=2)


def _clock_text(joined: Joined) -> str:
    clocks = joined.clocks
    apart = f"the machines' clocks are {duration(clocks.apart_s)} apart (give or take {duration(clocks.error_s)})"
    step = step_text(clocks.step_s)
    if clocks.stamped_by == "server":
        return f"files are stamped {step} by one clock for all; {apart}"
    if clocks.stamped_by == "clients":
        return f"files are stamped {step} by each machine's own clock; {apart}"
    return f"files are stamped {step}; whose clock it is cannot be told: {apart}"
