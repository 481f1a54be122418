"""The nine invariants after a torture, read off the raw files with json and os alone: no line of dibs is trusted.

``python _raw_check.py FOLDER`` also runs where dibs is not installed. FOLDER holds facts.json (what was asked for, and
what dibs says at the end), torment.jsonl (what was done to it) and journal/ (what each worker was told).
"""

# What it reads with is json and os, nothing else.
# ruff: noqa: PTH110, PTH112, PTH118, PTH123, PTH206, PTH208

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["Raw", "Scene", "check", "ends", "folded", "main", "read_lines"]

CLOSED = ("done", "pruned", "failed", "interrupted")
Body = dict[str, Any]
At = tuple[int, int]


class Raw:
    """What lies under one study: parsed if it parses, else None with the reason."""

    def __init__(self, store: str, study: str) -> None:
        self.store, self.base = store, f"study/{study}"
        self.attempts: dict[At, Body | None] = {}
        self.copies: dict[At, Body] = {}  # in rolls
        self.rolls: dict[str, Body | None] = {}
        self.notes: dict[str, Body | None] = {}
        self.wrong: dict[str, str] = {}  # key -> why it does not parse
        self.released: dict[int, set[int]] = {}
        for folder, folders, names in os.walk(os.path.join(store, self.base)):
            # where mkdir(2) claims, a claim may be there without its record
            names += [name.removesuffix(".claim") for name in folders if name.endswith(".json.claim")]
            if os.path.relpath(folder, os.path.join(store, self.base)).split(os.sep)[0] != "work":
                for name in sorted(set(names)):
                    self._take(os.path.relpath(os.path.join(folder, name), store).replace(os.sep, "/"))

    def _take(self, key: str) -> None:
        body = self._parse(key)
        kind = key[len(self.base) + 1 :].split("/")[0]
        stem = key.rsplit("/", 1)[-1].removesuffix(".json")
        if kind in ("trial", "again"):
            n, _, a = stem.partition("-")
            self.attempts[int(n), int(a)] = body
        elif kind == "roll":
            self.rolls[key] = body
            for at, copy in (body or {}).get("records", {}).items():
                n, _, a = at.partition("-")
                self.copies[int(n), int(a)] = copy
        elif kind == "note":
            self.notes[key] = body
            if "/release/" in key:
                n, _, a = stem.partition("-")
                self.released.setdefault(int(n), set()).add(int(a))

    def _parse(self, key: str) -> Body | None:
        try:
            with open(os.path.join(self.store, key), "rb") as file:
                body = json.loads(file.read().decode(), parse_constant=_no_constant)
            if type(body) is not dict or type(body.get("v")) is not int:
                raise ValueError("not a record")
        except (ValueError, OSError) as wrong:
            self.wrong[key] = str(wrong)
            return None
        return body

    @property
    def stopped(self) -> bool:
        """Whether the highest stop has no go."""
        told = [key.removesuffix(".json").rsplit("/", 2)[-2:] for key in self.notes]
        stops = [int(k) for kind, k in told if kind == "stop"]
        return bool(stops) and ["go", str(max(stops))] not in told

    def key(self, n: int, a: int) -> str:
        return f"{self.base}/{'again' if a else 'trial'}/{n // 256:06d}/{n:08d}-{a}.json"

    def trials(self) -> dict[int, dict[int, Body | None]]:
        """n -> attempt -> record. A copy in a roll is the record if the file is gone, torn, or was claimed anew."""
        found: dict[int, dict[int, Body | None]] = {}
        for (n, a), body in self.attempts.items():
            found.setdefault(n, {})[a] = body
        for (n, a), body in self.copies.items():
            mine = found.setdefault(n, {})
            there = mine.get(a)
            if there is None or there["state"] == "running":
                mine[a] = body
        return found


def folded(attempts: dict[int, Body | None], released: set[int]) -> tuple[str, bool, int, float | None]:
    """(state, settled, attempt that counts, score): done beats pruned beats failed for good, then the highest."""

    def rank(a: int) -> int:
        body = attempts[a]
        state = body["state"] if body is not None else "running"
        if state == "failed" and ((body or {}).get("again") or a in released):
            return 0
        return {"done": 3, "pruned": 2, "failed": 1}.get(state, 0)

    a = max(attempts, key=lambda a: (rank(a), a))
    body = attempts[a]
    if body is None:
        return "running", False, a, None
    return body["state"], rank(a) > 0, a, body.get("score")


def ends(body: Body | None) -> tuple[list[float], Body | None]:
    """(scores, one for each goal; constraints) of an attempt."""
    scores = [] if body is None else body.get("scores") if type(body["goal"]) is list else [body.get("score")]
    return [score for score in scores or [] if score is not None], (body or {}).get("constraints")


class Scene:
    """Everything the checks look at."""

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "facts.json"), encoding="utf-8") as file:
            self.facts: Body = json.load(file)
        store = self.facts["store"]  # gone if it lay on a file system of the torture's own: then there is a copy
        self.raw = Raw(store if os.path.isdir(store) else os.path.join(folder, "store"), self.facts["study"])
        self.trials = self.raw.trials()
        self.torment = read_lines(os.path.join(folder, "torment.jsonl"))
        journals = os.path.join(folder, "journal")
        self.lines = [
            line for name in sorted(os.listdir(journals)) for line in read_lines(os.path.join(journals, name))
        ]
        self.damaged = {line["key"]: line["how"] for line in self.torment if line["what"] == "damage"}
        self.hands = {n for key in self.damaged if (n := self._trial_of(key)) is not None}
        self.claims: dict[At, list[Body]] = {}
        for line in self.said("claimed"):
            self.claims.setdefault((line["n"], line["a"]), []).append(line)

    def said(self, *what: str) -> Iterator[Body]:
        return (line for line in self.lines if line["what"] in what)

    def done_to(self, *what: str) -> Iterator[Body]:
        return (line for line in self.torment if line["what"] in what)

    def _trial_of(self, key: str) -> int | None:
        """The trial an attempt's key is about; ``dibs check`` says ``<n>-<attempt>`` where several files disagree."""
        parts = key[len(self.raw.base) + 1 :].split("/")
        n = parts[-1].split("-")[0]
        return int(n) if n.isdigit() and (parts[0] in ("trial", "again") or len(parts) == 1) else None

    def untouched(self) -> Iterator[tuple[int, int, Body]]:
        """Attempts of trials that nobody removed or damaged by hand."""
        for n, attempts in sorted(self.trials.items()):
            for a, body in sorted(attempts.items()):
                if n not in self.hands and body is not None:
                    yield n, a, body


# the nine, in the design's order; each yields sentences about what is broken


def once(scene: Scene) -> Iterator[str]:
    """At most one process was told it owns an attempt, and the record carries its nonce; a wish is carried once."""
    nonces: dict[str, At] = {}
    for n, a, body in scene.untouched():
        other = nonces.setdefault(body["nonce"], (n, a))
        if other != (n, a):
            yield f"{n}-{a} and {other[0]}-{other[1]} carry one nonce"
    for (n, a), claims in sorted(scene.claims.items()):
        if n in scene.hands:
            continue
        owners = [f"{line['me']} (pid {line['pid']})" for line in claims]
        if len(owners) > 1:
            yield f"{n}-{a} was given to {' and '.join(owners)}"
        found = scene.trials.get(n, {}).get(a)
        if found is not None and found["nonce"] not in {line["nonce"] for line in claims}:
            yield f"{n}-{a} carries the nonce of {found['who'].get('me')}, and {owners[0]} was told it owns it"
    carriers: dict[str, list[int]] = {}
    for n, a, body in scene.untouched():
        if a == 0 and body.get("wish"):
            carriers.setdefault(body["wish"], []).append(n)
    for wish, trials in carriers.items():
        if len(trials) > 1:
            yield f"the wish {wish[:8]} is carried by trials {trials}"


def whole(scene: Scene) -> Iterator[str]:
    """Every record parses unless it was damaged by hand; every blob is what its name says, and none is missing."""
    for key, why in sorted(scene.raw.wrong.items()):
        if key not in scene.damaged and scene._trial_of(key) not in scene.hands:
            yield f"{key} does not parse ({why}), and nobody damaged it"
    for n, a, body in scene.untouched():
        for digest in [*body.get("files", {}).values(), *([body["blob"]] if body.get("blob") else [])]:
            if not os.path.exists(_blob(scene, digest)):
                yield f"{n}-{a} names the blob {digest[:8]}, which is not there"
    for folder, _, names in os.walk(os.path.join(scene.raw.store, "blobs")):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != name:
                    yield f"the blob {name[:8]} holds other bytes than its name says"


def kept(scene: Scene) -> Iterator[str]:
    """What was told done is done, with its score, for good; what was told saved is named; a roll's copy is the record."""
    for line in scene.said("told"):
        n, a = line["n"], line["a"]
        if n in scene.hands:
            continue
        body = scene.trials.get(n, {}).get(a)
        if body is None or body["state"] != line["state"]:
            yield f"{n}-{a} was told {line['state']} to {line['me']} and is {body and body['state']}"
        elif line["state"] == "done":
            for end, named in (("score", ""), ("scores", "scores "), ("constraints", "constraints ")):
                if end in line and _text(body.get(end)) != _text(line[end]):
                    yield f"{n}-{a} was done with {named}{line[end]} and has {body.get(end)}"
            state, settled, counts, _ = folded(scene.trials[n], scene.raw.released.get(n, set()))
            if state != "done" or not settled or counts < a:
                yield f"trial {n} was told done ({n}-{a}) and counts as {state} by attempt {counts}"
    for line in scene.said("saved"):
        body = scene.trials.get(line["n"], {}).get(line["a"])
        if line["n"] not in scene.hands and (body is None or line["name"] not in body.get("files", {})):
            yield f"{line['n']}-{line['a']}: {line['name']!r} was told saved, and the record does not name it"
    for (n, a), copy in scene.raw.copies.items():
        body = scene.raw.attempts.get((n, a))
        if n not in scene.hands and body != copy:
            yield f"the copy of {n}-{a} in a roll is not the record"


def exact(scene: Scene) -> Iterator[str]:
    """The indexes are 0..N-1, each settled, and none above, ever; attempts count from 0 without a gap."""
    of = scene.facts["of"]
    above = sorted(n for n in scene.trials if n >= of)
    if above:
        yield f"{above} are above the largest N asked for ({of})"
    missing = sorted(set(range(of)) - scene.trials.keys())
    if missing:
        yield f"{missing} were never claimed"
    for n, attempts in sorted(scene.trials.items()):
        state, settled, _, _ = folded(attempts, scene.raw.released.get(n, set()))
        if not settled:
            yield f"trial {n} is {state} in the end"
        if n not in scene.hands and sorted(attempts) != list(range(len(attempts))):
            yield f"trial {n} has the attempts {sorted(attempts)}"


def alone(scene: Scene) -> Iterator[str]:
    """Whoever was killed, stopped or starved: nobody else crashed or hung, and no living owner was rescued."""
    for line in scene.done_to("crashed", "hung"):
        yield f"{line['me']} {line['what']}: {line['why']}"
    unwell = {(line["me"], line["pid"]) for line in scene.lines if line["what"] in ("starved", "gave up")}
    unwell |= {(line["me"], line["pid"]) for line in scene.done_to("killed", "stopped", "termed")}
    for n, a, body in scene.untouched():
        mine = scene.claims.get((n, a), [])
        if a + 1 not in scene.trials[n] or not mine or a in scene.raw.released.get(n, set()):
            continue
        owner = mine[0]["me"], mine[0]["pid"]
        if body["state"] in ("running", "done", "pruned") and owner not in unwell:
            yield f"{n}-{a} was rescued from {owner[0]}, which was alive and well"
    for line in scene.said("lost"):
        if line["n"] not in scene.hands:
            yield f"{line['me']} lost {line['n']}-{line['a']}, which nobody touched: {line['why']}"


def readers(scene: Scene) -> Iterator[str]:
    """Every look of ``dibs status`` succeeded and wrote nothing; what dibs says at the end is what the files say."""
    for line in scene.done_to("looked"):
        if line["code"] != 0:
            yield f"dibs status ended with {line['code']}: {line['why']}"
    for row in scene.facts["trials"]:
        n = row["n"]
        if n in scene.hands:
            continue
        said = row["state"], row["settled"], row["attempt"], row["score"]
        found = folded(scene.trials[n], scene.raw.released.get(n, set())) if n in scene.trials else None
        if said != found:
            yield f"dibs says of trial {n} {said}, the files {found}"
        elif found is not None:
            shown, there = (row["scores"], row["constraints"]), ends(scene.trials[n][found[2]])
            if shown != there:
                yield f"dibs says that trial {n} ended with {shown}, the files {there}"
    if len(scene.facts["trials"]) != len(scene.trials):
        yield f"dibs knows {len(scene.facts['trials'])} trials, the files {len(scene.trials)}"


def same(scene: Scene) -> Iterator[str]:
    """Attempt 0 has the point of its index or the one wished for; every later one has its point and seed."""
    points = scene.facts["points"]
    wishes = {line["digest"]: line["point"] for line in scene.said("wished")}
    for n, a, body in scene.untouched():
        first = scene.trials[n].get(0)
        if a == 0:
            wanted = wishes.get(body["wish"]) if body.get("wish") else points[n]
            if body.get("wish") and wanted is None:
                continue  # whoever wished was killed before it could tell
            if _text(body["point"]) != _text(wanted):
                yield f"trial {n} has the point {body['point']}, and {wanted} belongs there"
        elif first is not None and (_text(body["point"]), body["seed"]) != (_text(first["point"]), first["seed"]):
            yield f"{n}-{a} has another point or seed than the first attempt"


def typed(scene: Scene) -> Iterator[str]:
    """What a worker trained is what lies in the record, value by value and type by type."""
    for (n, a), claims in sorted(scene.claims.items()):
        body = scene.trials.get(n, {}).get(a)
        for line in claims:
            if body is None or body["nonce"] != line["nonce"]:
                continue
            if (_text(body["point"]), body["seed"]) != (_text(line["point"]), line["seed"]):
                yield f"{n}-{a} went in as {line['point']} and came out as {body['point']}"


def told(scene: Scene) -> Iterator[str]:
    """Damage is listed and nothing else is; a wish is carried or shown; no failure has a reason of the store's."""
    shown = {problem["key"] for problem in scene.facts["status"]["problems"]}
    for key in sorted(shown - scene.raw.wrong.keys()):
        yield f"dibs lists {key}, which parses"
    joined = {int(key.rsplit("/", 1)[-1][:8]) for key in scene.raw.rolls if "/roll/1/" in key}
    copies = scene.raw.copies
    for key in sorted(scene.raw.wrong.keys() - shown):
        kind = key[len(scene.raw.base) + 1 :].split("/")[0]
        stem = key.rsplit("/", 1)[-1].removesuffix(".json")
        if kind in ("trial", "again"):
            index, _, attempt = stem.partition("-")
            silent = (int(index), int(attempt)) not in copies  # a copy in a roll is the record
        elif kind == "roll":
            silent = "/roll/1/" in key or int(stem) // 32 not in joined
        else:
            silent = "/note/wish/" in key or kind == "given"  # of other notes the name says everything
        if silent:
            yield f"{key} does not parse, and dibs does not say so"
    yield from _checked(scene)
    carried = {body.get("wish") for attempts in scene.trials.values() for body in attempts.values() if body}
    queued = {_text(point) for point in scene.facts["status"]["queued"]}
    for line in scene.said("wished"):
        listed = any(line["digest"] in key for key in shown)
        if line["digest"] not in carried and _text(line["point"]) not in queued and not listed and not scene.hands:
            yield f"the wish {line['digest'][:8]} is neither carried nor shown"
    for n, a, body in scene.untouched():
        reason = str(body.get("reason"))
        if body["state"] == "failed" and not any(why in reason for why in scene.facts["reasons"]):
            yield f"{n}-{a} failed, and not by the objective's own doing: {reason}"
    for line in scene.said("wrong"):
        yield f"{line['n']}-{line['a']}: {line['why']}"


def _checked(scene: Scene) -> Iterator[str]:
    """``dibs check`` names all that does not parse, and calls nothing a fault that is none."""
    findings = scene.facts["check"]["findings"]
    for key in sorted(scene.raw.wrong.keys() - {finding["key"] for finding in findings}):
        yield f"{key} does not parse, and dibs check does not say so"
    for finding in findings:
        key, other = finding["key"], finding["what"].rpartition(" by trial ")[2]  # a wish carried twice is about both
        touched = {scene._trial_of(key), int(other) if other.isdigit() else None} & scene.hands
        copied = "/roll/" in key and scene.hands  # the copy of a record that somebody removed and a worker claimed anew
        if finding["fault"] and key not in scene.raw.wrong and not touched and not copied:
            yield f"dibs check calls {key} {finding['kind']} ({finding['what']}), and nobody touched it"


ALL = (once, whole, kept, exact, alone, readers, same, typed, told)


def check(folder: str) -> list[str]:
    """Everything that does not hold, as ``name: sentence``."""
    scene = Scene(folder)
    return [f"{part.__name__}: {sentence}" for part in ALL for sentence in part(scene)]


def read_lines(path: str) -> list[Body]:
    """A file of JSON lines; half a last line is what a killed process leaves."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def _blob(scene: Scene, digest: str) -> str:
    return os.path.join(scene.raw.store, "blobs", digest[:2], digest)


def _text(point: Any) -> str:
    """Tells True, 1, 1.0 and "1" apart."""
    return repr(sorted(point.items())) if isinstance(point, dict) else repr(point)


def _no_constant(name: str) -> None:
    raise ValueError(f"a bare {name}")


def main(arguments: list[str]) -> int:
    """Print what is broken; 1 if anything is."""
    broken = check(arguments[0])
    for sentence in broken:
        print(sentence)
    print("nothing broken" if not broken else f"{len(broken)} broken")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
