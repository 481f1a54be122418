"""Racing and dying processes on a real server, with a proxy in between that loses, delays and makes up answers by seed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.buckets.servers import Server
from tests.services.buckets import racers

from dibs import Store, Study
from dibs.backend import BucketBackend
from dibs.record import decode
from dibs.testing._fault_proxy import FaultProxy
from dibs.upkeep import Copier, check, open_copy

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]
NAMES, PROCESSES = int(os.environ.get("DIBS_RACE_NAMES", "500")), 4
CHANCES = {"drop_answer": 0.03, "drop_request": 0.03, "late": 0.02, "status": 0.03, "stall": 0.002, "cut": 0.02}
ROOT = Path(__file__).parents[3]


def by_key(server: Server, place: str) -> dict[str, dict[str, Any]]:
    """What is there in the end, asked without anybody in between."""
    backend = BucketBackend(server.url(place), server.options())
    keys = [entry.key for entry in backend.list("race/")]
    return {
        key: decode(there.data, key)
        for key, there in zip(keys, backend.read_many(keys), strict=True)
        if there is not None and not isinstance(there, Exception)
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_thousands_of_claims_none_owned_twice_or_by_nobody(server: Server, place: str, seed: int) -> None:
    # a late write is told from a lost one only if it lands between a look and the next try: soon, that is
    with FaultProxy(server.endpoint, seed, {**CHANCES, "late": 0.06}, late_s=0.15, stall_s=6.0) as proxy:
        options = replace(server, endpoint=proxy.endpoint).options()
        work = [(server.url(place), options, NAMES, seed * 100 + turn) for turn in range(PROCESSES)]
        with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
            told = pool.starmap(racers.claim_and_close, work)
        proxy.land_all()
        print(f"seed {seed}: {PROCESSES} x {NAMES} claims; {dict(proxy.faults)}")
    there = by_key(server, place)
    answers = Counter(answer["told"] for answered in told for answer in answered.values())
    wrong = [answer["wrong"] for answered in told for answer in answered.values() if "wrong" in answer]
    print(f"seed {seed}: {dict(answers)}; {len(wrong)} closes not known {wrong[:2]}")
    assert min(proxy.faults[fault] for fault in CHANCES) > 0, "every fault happened"
    assert len(there) == NAMES, "every name is somebody's"
    for key, body in there.items():
        winners = [answered[key] for answered in told if answered[key]["told"] == "won"]
        unsure = [answered[key] for answered in told if answered[key]["told"] == "unsure"]
        assert len(winners) <= 1, f"{key} was handed out twice"
        assert winners or unsure, f"{key} is nobody's"
        if winners:
            assert body["nonce"] == winners[0]["nonce"], f"{key} carries another owner's nonce"
            if winners[0]["closed"] is not None:
                assert body == json.loads(winners[0]["closed"]), f"{key} changed after it was closed"
    assert answers["unsure"] + len(wrong) <= NAMES // 50, "doubt is settled, nearly always"


@pytest.mark.parametrize("faults", [False, True], ids=["plain", "faults"])
def test_workers_that_are_killed(server: Server, place: str, tmp_path: Path, faults: bool) -> None:
    """kill -9, again and again: every trial is done once, what was acknowledged is there, and no index too many."""
    trials, kills, chance = 50, 12, random.Random(3)
    with ExitStack() as stack:
        endpoint = server.endpoint
        if faults:
            mild = {fault: value / 3 for fault, value in CHANCES.items()}
            proxy = stack.enter_context(FaultProxy(server.endpoint, 5, mild, late_s=1.0, stall_s=6.0))
            endpoint = proxy.endpoint
        orders = {
            "url": server.url(place), "options": replace(server, endpoint=endpoint).options(), "trials": trials,
            "journal": str(tmp_path / "j"),
        }  # fmt: skip

        said = stack.enter_context((tmp_path / "err").open("ab"))

        def hire() -> subprocess.Popen[bytes]:
            words = [sys.executable, str(ROOT / "tests/services/buckets/racers.py"), json.dumps(orders)]
            return subprocess.Popen(words, stderr=said, stdout=subprocess.DEVNULL)

        workers = [hire() for _ in range(3)]
        stack.callback(lambda: [(worker.kill(), worker.wait()) for worker in workers])
        killed = 0
        deadline = time.monotonic() + 300
        while any(worker.poll() is None for worker in workers):
            assert time.monotonic() < deadline, (tmp_path / "err").read_text()[-3000:]
            time.sleep(chance.uniform(0.05, 0.4))
            at = chance.randrange(len(workers))
            if killed < kills and workers[at].poll() is None and any(tmp_path.glob(f"j-{workers[at].pid}.jsonl")):
                with suppress(ProcessLookupError):
                    workers[at].send_signal(signal.SIGKILL)
                workers[at].wait()
                workers[at] = hire()
                killed += 1
        assert [worker.returncode for worker in workers] == [0, 0, 0], (tmp_path / "err").read_text()[-3000:]
        if faults:
            proxy.land_all()
            print(dict(proxy.faults))
    store = racers.over(server.url(place), server.options())
    view = Study(store, "s").view
    view.refresh()
    results = {result.n: result for result in Study(store, "s").results()}
    lines = [json.loads(line) for path in tmp_path.glob("j-*.jsonl") for line in path.read_text().splitlines()]
    held = Counter((line["n"], line["attempt"]) for line in lines if line["what"] == "claimed")
    print(f"{killed} kills, {len(lines)} lines, {sum(1 for _, attempt in held if attempt)} rescues")
    assert killed >= kills // 2
    assert sorted(results) == list(range(trials))
    ends = Counter((result.state, result.reason) for result in results.values())
    print(dict(ends))
    # killed three times in a row, a trial is taken to be what kills
    assert set(ends) <= {("done", None), ("failed", "poison")}
    assert ends["failed", "poison"] <= killed // 3
    assert max(held.values()) == 1, "an attempt had two owners"
    for line in lines:
        if line["what"] == "done":
            assert results[line["n"]].score == line["score"]
    source = Store.over(store.backend, store.machine, url=store.url)
    source.marker = {"nonce": "0" * 32}  # it was never opened by its URL
    copy = open_copy(source, str(tmp_path / "copy"))
    assert Copier(source, copy).run().troubles == []
    report = check(copy, deep=True)
    assert report.clean, report.findings
