"""What the processes of bench/scale.py do: one thing each, on demand or once, and answer in JSON on stdout.

``_served.py KIND STORE [...]``. A served one prints "ready" and then does one window for each line of stdin; the
others measure once in a process that has done nothing else, which is what joining a study means.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STUDY = "loop"  # the one that cycle.fill makes
FOREVER = 10**6


def answer(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def windows() -> Iterator[str]:
    print("ready", flush=True)
    yield from sys.stdin


# ---- joining a study that is there


def join(root: str) -> None:
    """All that a fresh worker reads before it can ask: CPU seconds."""
    from dibs import Store
    from dibs.study._view import View

    began = time.process_time()
    view = View(Store(root, unchecked=True), STUDY)
    view.refresh()
    answer(cpu_s=time.process_time() - began, trials=len(view))


def decode(root: str, structs: str, plan: str) -> None:
    """The bytes that a join reads, read and decoded and kept, with nothing made of them: the floor under a join.

    ``full``: every record as the struct that its own file is decoded to; ``slim``: as the one with the fields that a
    reader keeps of a roll. ``plan``: where ``parts`` left the names, so that finding them costs nothing here.
    """
    import msgspec

    from dibs.record import Closed, TrialRecord

    kind: Any = TrialRecord if structs == "full" else Closed

    roll = msgspec.json.Decoder(msgspec.defstruct("Roll", [("records", dict[str, kind])]))
    one = msgspec.json.Decoder(kind)
    rolls, files = json.loads(Path(plan).read_text())
    began = time.process_time()
    kept: list[Any] = []
    size = 0
    for path in rolls:
        data = read(path)
        size += len(data)
        found: Any = roll.decode(data)
        kept.extend(found.records.values())
    for path in files:
        data = read(path)
        size += len(data)
        kept.append(one.decode(data))
    answer(cpu_s=time.process_time() - began, trials=len(kept), bytes=size)


def read(path: str) -> bytes:
    """One file with the fewest system calls."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, os.fstat(fd).st_size + 1)
    finally:
        os.close(fd)


def parts(root: str, plan: str) -> None:
    """Write down the rolls that a join reads, and the records that no roll holds."""
    study = Path(root) / "study" / STUDY
    joined = sorted(study.glob("roll/1/*.json"))
    done = {int(path.stem) for path in joined}
    rolls = joined + [path for path in sorted(study.glob("roll/0/*.json")) if int(path.stem) // 32 not in done]
    held: set[str] = set()
    for path in rolls:
        held |= json.loads(path.read_bytes())["records"].keys()
    files = [
        str(path)
        for path in sorted(study.glob("trial/*/*.json"))
        if f"{int(path.stem[:8])}-{path.stem.partition('-')[2]}" not in held
    ]
    Path(plan).write_text(json.dumps([[str(path) for path in rolls], files]))
    answer(rolls=len(rolls), files=len(files))


def nothing_new(root: str) -> None:
    """A worker that looks again: CPU seconds per refresh when nobody has done anything."""
    from dibs import Store
    from dibs.study._view import View

    view = View(Store(root, unchecked=True), STUDY)
    view.refresh()
    time.sleep(2.5)  # a folder's stamp is trusted once it has been the same for two seconds
    view.refresh()
    for line in windows():
        count = int(line)
        began = time.process_time()
        for _ in range(count):
            view.refresh()
        answer(cpu_s=(time.process_time() - began) / count)


def memory(root: str) -> None:
    """Resident bytes: with dibs imported and the store open, with the study read, with its history in hand."""
    from dibs import Store
    from dibs.study._results import history_of
    from dibs.study._view import View

    store = Store(root, unchecked=True)
    bare = resident()
    view = View(store, STUDY)
    view.refresh()
    gc.collect()
    held = resident()
    history = history_of(view, 3600.0)
    answer(bare=bare, held=held, history=resident(), trials=len(history))


def resident() -> int:
    """Bytes of this process that are in memory now (proc(5), statm)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# ---- several at once


def crowd(root: str, study: str) -> None:
    """Refresh, claim, close, and again: claims, and how many names it tried for them, in a window of seconds."""
    from dibs import Float, Space, Store, Study
    from dibs.backend import Draft, Outcome
    from dibs.study._attempt import Attempt

    store = Store(root, unchecked=True)
    space = Space(x=Float(0, 1))
    claimer = Study(store, study, space, goal="min", sampler="random", seed=0, me=f"{os.getpid()}").claimer(FOREVER)
    tries = [0]
    create: Callable[[str, Draft], Outcome] = store.backend.create

    def counted(key: str, draft: Draft) -> Outcome:
        tries[0] += "/trial/" in key
        return create(key, draft)

    store.backend.create = counted  # type: ignore[method-assign]
    for line in windows():
        until = time.monotonic() + float(line)
        tries[0] = claims = 0
        while time.monotonic() < until:
            got = claimer.step()
            assert isinstance(got, Attempt), got
            claims += 1
            got.close("done", score=0.5)
        answer(claims=claims, tries=tries[0])


def sleepers(root: str, study: str, sleep_s: str) -> None:
    """The worker's loop around an objective that only sleeps: trials in a window of seconds."""
    from dibs import Float, Space, Store, Study

    space = Space(x=Float(0, 1))
    store = Store(root, unchecked=True)
    trials = Study(store, study, space, goal="min", sampler="random", seed=0, me=f"{os.getpid()}").trials(FOREVER)
    for line in windows():
        until = time.monotonic() + float(line)
        done = 0
        while time.monotonic() < until:
            with next(trials) as trial:
                time.sleep(float(sleep_s))
                trial.done(trial.point["x"])
            done += 1
        answer(trials=done)


KINDS: dict[str, Callable[..., None]] = {
    "join": join, "parts": parts, "decode": decode, "nothing_new": nothing_new, "memory": memory, "crowd": crowd,
    "sleepers": sleepers,
}  # fmt: skip

if __name__ == "__main__":
    KINDS[sys.argv[1]](*sys.argv[2:])
