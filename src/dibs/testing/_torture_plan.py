"""What a torture is, and the command line that says so."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from ._torture_torments import NOT_ON_A_BUCKET, TORMENTS

__all__ = ["Plan", "plan_from"]


@dataclass(frozen=True)
class Plan:
    """What a torture is. ``seconds``: from when there is a study. ``clocks``: "right"; "wrong" (a third each two hours
    ahead and behind); "stamps" (those stamp)."""

    seconds: float
    seed: int
    workers: int = 6
    trials: int = 0  # 0: as many as keep them busy
    torments: tuple[str, ...] = tuple(TORMENTS)
    clocks: str = "wrong"
    claim: str = "link"  # the store's method; or "mkdir"
    tmpfs: bool = False
    bucket: str | None = None  # a store's URL
    shortest_s: float = 0.05
    longest_s: float = 0.5
    rescue_after_s: float = 4.0
    settle_s: float = 120.0  # so long the rest may take when the torment is over


def plan_from(arguments: Sequence[str] | None, description: str | None) -> tuple[Plan, str | None]:
    """(plan, the folder given for its evidence) of a command line; ends the process for one that makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m dibs.testing.torture",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--seconds", type=float, default=120.0, help="how long to torment (120)")
    add("--seed", type=int, default=1, help="what is done to whom (1); when, is the machine's affair")
    add("--workers", type=int, default=6, help="at a time (6)")
    add("--trials", type=int, default=0, help="in the study (as many as keep the workers busy)")
    add(
        "--store",
        metavar="DIR",
        help="a new folder for the store and all evidence, kept (a temporary one, if all holds)",
    )
    add("--tmpfs", action="store_true", help="on a small file system that is filled and emptied again; needs root")
    add("--bucket", metavar="URL", help="a store in a bucket, under a new prefix; it is emptied again, if all holds")
    add("--only", metavar="A,B", help=f"these torments and no others, or 'nothing': {', '.join(TORMENTS)}")
    add(
        "--clocks",
        choices=["right", "wrong", "stamps"],
        default="wrong",
        help="a third of them 2 h ahead, a third behind",
    )
    add("--claim", choices=["link", "mkdir"], default="link", help="how the store claims (link)")
    add("--trial-s", type=float, nargs=2, metavar=("MIN", "MAX"), default=(0.05, 0.5), help="how long a trial takes")
    add("--rescue-after-s", type=float, help="seconds after which a trial is taken over (4; 8 in a bucket)")
    told = parser.parse_args(arguments)
    known = [name for name in TORMENTS if not (told.bucket and name in NOT_ON_A_BUCKET)]
    only = tuple(known) if told.only is None else tuple(name for name in told.only.split(",") if name != "nothing")
    unknown = [name for name in only if name not in known]
    if unknown:
        parser.error(f"--only {unknown[0]}: there are {', '.join(known)}")
    if told.bucket and (told.tmpfs or told.claim != "link" or told.clocks == "stamps"):
        parser.error("--tmpfs, --claim and --clocks stamps are about folders: not with --bucket")
    if told.workers < 1 or told.seconds <= 0 or told.trials < 0:
        parser.error("--seconds and --workers must be positive")
    plan = Plan(
        seconds=told.seconds, seed=told.seed, workers=told.workers, trials=told.trials, torments=only,
        clocks=told.clocks, claim=told.claim, tmpfs=told.tmpfs, bucket=told.bucket, shortest_s=told.trial_s[0],
        longest_s=told.trial_s[1], rescue_after_s=told.rescue_after_s or (8.0 if told.bucket else 4.0), settle_s=120.0 + told.seconds / 10,
    )  # fmt: skip
    return plan, told.store
