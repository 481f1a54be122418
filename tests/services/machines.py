"""What two machines do on one file system: call dibs, meet at the doctor, work on a study while somebody is after them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.services.mounts import Mounts

from dibs.testing import torture

LIMIT_S = 240


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        """Its answer, if it was asked for JSON."""
        return json.loads(self.out)


def start(*words: str | Path) -> subprocess.Popen[str]:
    """``dibs WORDS`` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dibs", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def end(processes: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """How each ended; whatever does not end is killed."""
    try:
        texts = [process.communicate(timeout=LIMIT_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [Ended(process.returncode, *text) for process, text in zip(processes, texts, strict=True)]


def dibs(*words: str | Path) -> Ended:
    """``dibs WORDS``, waited for."""
    return end([start(*words)])[0]


def meet(mounts: Mounts, store: str, *words: str) -> list[Ended]:
    """``dibs doctor STORE --join`` on both mounts at once, in JSON."""
    return end(
        [
            start("doctor", mount / store, "--join", "here", "--machines", "2", "--me", name, "--json", *words)
            for name, mount in (("north", mounts.a), ("south", mounts.b))
        ]
    )


def words_of(report: Any) -> dict[str, str]:
    """The finding about each method."""
    return {each["name"]: each["word"] for each in report["methods"]}


def figures(report: Any) -> str:
    """A report in a few lines, for whoever reads the tests' output."""
    lines = [
        f"{each['name']}: {each['word']}: {each['names']} names, {each['one']} with one winner, {each['several']} with "
        f"several, met at {each['contested']}, won {each['won']}"
        for each in report["methods"]
    ]
    late: dict[str, list[float | None]] = {}
    for delay in report["delays"]:
        late.setdefault(delay["what"], []).append(delay["late_s"])
    shown = {what: ["never" if s is None else round(s, 3) for s in seconds] for what, seconds in late.items()}
    return "\n".join([*lines, f"late: {shown}", report["verdict"]])


def tormented(mounts: Mounts, store: str, folder: Path, seconds: float) -> tuple[list[str], str]:
    """A torture whose workers take turns between the mounts: (what is broken, a line that says what happened).

    The evidence lies on a local disk; nobody damages records here, because that is the torture's own affair.
    """
    (folder / "store").symlink_to(mounts.a / store)
    plan = torture.Plan(seconds, seed=1, workers=4, torments=("kill", "stop", "term", "steer"), clocks="right")
    tortured = torture.Torture(plan, folder)
    hire = tortured.crew.hire

    def on_another_mount(orders: Any, **more: Any) -> Any:
        mount = (mounts.a, mounts.b)[tortured.crew.hired % 2]
        return hire(replace(orders, store=str(mount / store)), **more)

    tortured.crew.hire = on_another_mount  # type: ignore[method-assign]
    try:
        broken = tortured.go()
        return broken, tortured.summary(broken)
    finally:
        tortured.close()
