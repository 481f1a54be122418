"""Five real clients, one of them slow, one with NaN, one that dies before and one while it averages, and a restart.

Nothing is timed: who is slow waits until the round is being averaged, and who dies kills itself at the place in question.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from tests.federation.rounds import NAMES, model
from tests.study.processes import end, program, start

from dibs import Store
from dibs.federation import fedavg, latest
from dibs.federation._look import Round
from dibs.store import RoundKeys

ROUNDS = 3

HEAD = f"""
import hashlib, json, os, signal, sys, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import numpy as np
import dibs
from dibs.federation import gather, _averaging
from dibs.store import RoundKeys
from tests.federation.clients import trained
from tests.federation.rounds import NAMES
"""
BODY = """
url, client, dies = sys.argv[1], sys.argv[2], sys.argv[3] == "dies"
store, keys = dibs.Store(url), RoundKeys("run")
compute = _averaging.compute

def dying(store, run, number, *others):
    end = compute(store, run, number, *others)
    if number == 1 and others[3] == 0:  # the first attempt
        os.kill(os.getpid(), signal.SIGKILL)  # all is computed and stored, and nobody has been told
    return end

if dies:
    _averaging.compute = dying

def until(key):
    deadline = time.monotonic() + 60
    while store.backend.read(key) is None:
        assert time.monotonic() < deadline, key
        time.sleep(0.01)

before = None
for round in range(3):
    export = trained(client, round, before)
    if client == "e":
        os.kill(os.getpid(), signal.SIGKILL)
    if client == "c" and round == 0:
        until(keys.averaging(0, 0))
    if client == "d" and round == 1:
        export["b"] = export["b"] * np.nan
    if client != "d" and round == 1:
        until(keys.update(1, "d"))
    got = gather(store, export, run="run", round=round, clients=NAMES, client=client, size=ord(client), quorum=3, within=60,
                 grace=0, bad="drop", others="max", me=client)
    before = got.tensors
    print(json.dumps([round, got.digest, got.update]), flush=True)
"""


def trained(client: str, round: int, before: dict[str, Any] | None) -> dict[str, Any]:
    """What a client makes of the model before: learning, for the purpose of this test."""
    mine = model(client, round)
    if before is None:
        return mine
    return {
        **{name: (before[name] * np.asarray(0.5, before[name].dtype) + mine[name]) for name in "wb"},
        "n": mine["n"],
    }


def check_five_clients(folder: Path, url: str, **environ: str) -> None:
    """Run them and hold everything against the same in one process."""
    scripts = {name: program(folder, BODY, f"{name}.py", head=HEAD) for name in NAMES}
    processes = {name: start(scripts[name], url, name, "dies", **environ) for name in NAMES}
    ends = {name: end(process) for name, process in processes.items()}
    killed = [name for name, (code, _, _) in ends.items() if code == -9]
    assert "e" in killed
    assert len(killed) == 2, ends  # and whoever averaged round 1
    assert {code for name, (code, _, _) in ends.items() if name not in killed} == {0}, ends
    (averager,) = set(killed) - {"e"}
    again = end(start(scripts[averager], url, averager, "lives", **environ))
    assert again[0] == 0, again
    said = {
        name: [json.loads(line) for line in out.splitlines()] for name, (_, out, _) in {**ends, averager: again}.items()
    }

    store, before = Store(url), None
    for round in range(ROUNDS):
        seen = Round(store, "run", round).refresh()
        assert seen.end is not None
        inside = seen.end.weights
        exports = {name: trained(name, round, before) for name in inside}
        before = fedavg(exports, {name: ord(name) for name in inside}, others="max")
        digests = {line[1] for lines in said.values() for line in lines if line[0] == round}
        assert digests == {seen.end.blob}, (round, said)
        assert _same(store, seen.end.blob, before)
        assert "e" not in inside
    rounds = [Round(store, "run", round).refresh() for round in range(ROUNDS)]
    assert (sorted(rounds[0].end.weights), rounds[0].late) == (["a", "b", "d"], {"c"})
    assert (sorted(rounds[1].end.weights), sorted(rounds[1].end.rejected)) == (["a", "b", "c"], ["d"])
    assert (rounds[1].end.attempt, rounds[1].tries[0].state, rounds[1].tries[1].state) == (1, "running", "done")
    assert rounds[1].tries[0].who.me == averager
    updates = dict(zip((0, 1), (line[2] for line in said[averager]), strict=False))
    assert updates == {0: "late" if averager == "c" else "same", 1: "same"}
    assert latest(store, "run").round == ROUNDS - 1


def _same(store: Store, digest: str, expected: dict[str, Any]) -> bool:
    from dibs.federation._exports import flatten
    from dibs.federation._files import chunks_of

    data = store.get(digest)
    round = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["round"]
    ours = b"".join(chunks_of(flatten(expected, "")[0], {"run": "run", "round": round}))
    return hashlib.sha256(ours).hexdigest() == digest


__all__ = ["RoundKeys", "check_five_clients", "trained"]
