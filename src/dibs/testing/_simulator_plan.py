"""What one seed means: the store's kind, the hosts, who takes part, and what goes wrong how often. Pure.

Everything is drawn from the seed before anything runs, so a plan can be printed, and a test can fix parts of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from ._simulator_wire import Faults

__all__ = ["HostPlan", "Plan", "WorkerPlan", "draw"]


@dataclass(frozen=True)
class HostPlan:
    """A machine's clock: off by ``skew_s`` and fast by ``drift``."""

    skew_s: float
    drift: float


@dataclass(frozen=True)
class WorkerPlan:
    """One worker: ``api`` "study" or "functions"; ``survivor``: is never killed and stays until all is settled."""

    api: str
    trials: int
    host: int
    rescue_after_s: float | None = None
    retries: int = 0
    survivor: bool = False
    wait: bool = True
    start_s: float = 0.0
    reborn: float = 0.5  # chance that somebody starts it again after a kill


@dataclass(frozen=True)
class Plan:
    """One simulated study. Times in simulated seconds; chances are per verb, ``doom`` and ``stall`` per pause."""

    kind: str = "link"
    hosts: tuple[HostPlan, ...] = ()
    workers: tuple[WorkerPlan, ...] = ()
    faults: Faults = field(default_factory=Faults)
    sampler: str = "random"
    seed: int | None = None  # None: whoever creates the study draws one
    stale_s: float = 6.0
    patience_s: float = 4.0
    chaos_s: float = 120.0  # afterwards nobody is killed and nothing goes wrong any more
    doom: float = 0.0
    stall: float = 0.0
    stall_s: float = 0.0
    client_stamps: bool = False  # the file system stamps with the client's clock
    tick_s: float = 0.0  # how coarse the stamps of its folders are
    roll: int = 64  # closed records that make a roll
    fail: float = 0.1  # how objectives end, per trial
    prune: float = 0.1
    leave: float = 0.1  # interrupted
    save: float = 0.2  # per epoch
    epochs: int = 4
    epoch_s: float = 2.0
    steerers: int = 1
    readers: int = 1
    stay_stopped: bool = False
    by_hand: int = 0  # records that somebody removes or damages
    verdict: float = 0.0  # chance that a killed worker's parent closes what it held
    reboot: float = 0.0  # chance that a host goes down once
    grace: float = 0.0  # per trial: a signal, and the beat thread records the end while the objective goes on

    @property
    def trials(self) -> int:
        """The largest N anybody asks for."""
        return max(worker.trials for worker in self.workers)


def draw(seed: int, **fixed: Any) -> Plan:
    """The plan of a seed; ``fixed`` fields replace what was drawn (``kind`` before anything depends on it)."""
    rng = Random(f"plan {seed}")
    kind = rng.choice(("link", "put", "link", "put", "mkdir"))
    kind = fixed.get("kind", kind)
    stamps = kind != "put" and rng.random() < 0.2
    hosts = tuple(_host(rng, 30 if stamps else 7200) for _ in range(rng.choice((1, 2, 3))))
    stale_s = rng.choice((3.0, 6.0, 20.0))
    top = rng.choice((1, 2, 3, 4, 6, 9)) if rng.random() < 0.97 else 25
    workers = [WorkerPlan("study", top, rng.randrange(len(hosts)), stale_s, survivor=True)]
    workers += [_worker(rng, top, len(hosts), stale_s) for _ in range(rng.choice((1, 2, 2, 3, 4, 6)))]
    rough = rng.choice((0.0, 0.3, 1.0, 2.0, 4.0))
    plan = Plan(
        kind=kind,
        hosts=hosts,
        workers=tuple(workers),
        faults=_faults(rng, kind, rough),
        sampler=rng.choice(("random", "sobol")),
        seed=rng.choice((None, 7)),
        stale_s=stale_s,
        patience_s=rng.choice((0.05, 0.3, 2.0, 8.0)),
        chaos_s=rng.choice((20.0, 60.0, 150.0)),
        doom=rng.choice((0.0, 0.004, 0.015)) * min(1.0, rough + 0.3),
        stall=rng.choice((0.0, 0.003, 0.02)),
        stall_s=stale_s * rng.choice((1.0, 4.0, 12.0)),
        client_stamps=stamps,
        tick_s=rng.choice((0.0, 0.004, 1.0, 2.0)),
        roll=rng.choice((1, 2, 64)),
        fail=rng.choice((0.0, 0.15, 0.5)),
        prune=rng.choice((0.0, 0.15)),
        leave=rng.choice((0.0, 0.1, 0.3)),
        save=rng.choice((0.0, 0.2, 0.5)),
        epochs=rng.choice((1, 3, 5)),
        epoch_s=rng.choice((0.2, 2.0, 8.0)),
        steerers=rng.choice((0, 1, 1, 2)),
        readers=rng.choice((0, 1, 1, 2)),
        stay_stopped=rng.random() < 0.08,
        by_hand=rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 0, 3)),
        verdict=rng.choice((0.0, 0.5)),
        reboot=rng.choice((0.0, 0.0, 1.0)),
        grace=rng.choice((0.0, 0.0, 0.15)),
    )
    return replace(plan, **fixed)


def _host(rng: Random, most_s: float) -> HostPlan:
    """With clients' stamps nothing is quiet before the clocks' difference has passed; so there it is small."""
    skew_s = rng.choice((0.0, rng.uniform(-5, 5), rng.uniform(-most_s, most_s)))
    return HostPlan(skew_s, rng.choice((0.0, 0.001, -0.001)))


def _worker(rng: Random, top: int, hosts: int, stale_s: float) -> WorkerPlan:
    eager = rng.choice((None, 0.5, stale_s, stale_s, 3 * stale_s))
    return WorkerPlan(
        api=rng.choice(("study", "study", "study", "functions")),
        trials=rng.choice((top, top, rng.randint(1, top))),
        host=rng.randrange(hosts),
        rescue_after_s=eager,
        retries=rng.choice((0, 0, 1)),
        wait=rng.random() < 0.7,
        start_s=rng.choice((0.0, 0.0, rng.uniform(0, 20))),
    )


def _faults(rng: Random, kind: str, rough: float) -> Faults:
    def some(*chances: float) -> float:
        return min(0.5, rough * rng.choice(chances))

    return Faults(
        lost_answer=some(0.0, 0.05, 0.15),
        lost_request=some(0.0, 0.05, 0.15),
        late=some(0.0, 0.05, 0.15),
        late_s=rng.choice((0.2, 3.0, 30.0)),
        conflict=some(0.0, 0.05) if kind == "put" else 0.0,
        told_lost=some(0.0, 0.05, 0.1) if kind != "mkdir" else some(0.0, 0.01),
        error=some(0.0, 0.003, 0.01),
        lag=some(0.0, 0.2, 0.5),
        lag_s=rng.choice((1.0, 10.0, 60.0)),
        slow_s=rng.choice((0.005, 0.05, 0.5)),
        keep_temp=some(0.0, 0.05) if kind != "put" else 0.0,
    )
