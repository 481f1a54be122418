"""Twelve cells on three "hosts" of this machine, and everything that goes wrong in an ablation, as one would type it.

    python examples/ablation/story.py [FOLDER]

One cell fails by itself, one is killed with its host, the result of one is damaged afterwards. ``reconcile`` finds exactly
these three, ``retry`` has them run again, and only then ``release`` opens. FOLDER (default: studies/ablation) is made anew.
Exits 1 at the first answer that is not the expected one.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACE = ("--store", "store", "--name", "ablation")
HOSTS = ("alpha", "beta", "gamma")
WAIT_S = 300.0


class Story:
    """A folder, and ``dibs sweep`` typed in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DIBS_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}", "OMP_NUM_THREADS": "1",
        }  # fmt: skip

    def sweep(self, *words: str, code: int = 0) -> str:
        """Type it, show what it prints, and go on if it exits as expected."""
        print(f"\n$ dibs sweep {shlex.join(words)}", flush=True)
        done = subprocess.run(
            self._argv(*words), cwd=self.folder, env=self.environ, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        print(done.stdout, end="", flush=True)
        expect(done.returncode == code, f"exit {code}, not {done.returncode}")
        if code:
            print(f"(exit {code})")
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Type it on another host, and do not wait."""
        print(f"\n$ dibs sweep {shlex.join(words)} &", flush=True)
        return subprocess.Popen(
            self._argv(*words), cwd=self.folder, env=self.environ, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def read(self, verb: str, *words: str) -> Any:
        """What a verb answers in JSON."""
        done = subprocess.run(
            self._argv(verb, *words, *PLACE, "--json"),
            cwd=self.folder,
            env=self.environ,
            text=True,
            capture_output=True,
        )
        expect(bool(done.stdout), done.stderr)
        return json.loads(done.stdout)

    def _argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "dibs", "sweep", *words]


def main(folder: Path) -> None:
    """The whole story."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("__pycache__", "story.py"))
    story = Story(folder)

    tell("Twelve cells; what each costs is known from its epochs, so they can be shared out")
    print(f"\n$ cd {shlex.quote(str(folder))}", flush=True)
    story.sweep(
        "plan", "cells.queue", *PLACE, "--name", "{task}-{stem}", "--goal", "max", "--artifact", "best.npz",
        "--artifact", "metrics.json", *(word for host in HOSTS for word in ("--host", host)), "--write-queues", "shares",
        "--", "python", "train.py", "{cfg}", "{task}", "{epochs}", "{out}",
    )  # fmt: skip

    tell("Three hosts, each with its share")
    runs = {
        host: story.start("run", *PLACE, "--host", host, "--queue", f"shares/{host}.queue", "--quiet") for host in HOSTS
    }
    try:
        dead = next(host for host in HOSTS if "round-h64-relu" not in share_of(story, host))
        last = share_of(story, dead)[-1]
        until(lambda: begun(story, last), f"the last cell of {dead} runs")
        runs[dead].kill()
        tell(f"{dead} was killed, and its cell {last} with it")
        for host in HOSTS:
            print(f"\n{host}:\n{runs[host].communicate()[0].strip() or '(nothing: it was killed)'}", flush=True)
    finally:
        for run in runs.values():
            run.kill()

    tell("And a disk returns other bytes than it was given")
    worn = folder / "store" / "sweep" / "ablation" / "final" / "digits-h32-relu" / "best.npz"
    worn.write_bytes(worn.read_bytes()[:-100] + bytes(100))

    story.sweep("reconcile", *PLACE, code=1)
    found = {(each["cell"], each["kind"]) for each in story.read("reconcile")["findings"]}
    wrong = {cell for cell, _ in found}
    expect(wrong == {"round-h64-relu", last, "digits-h32-relu"}, f"exactly three cells, not {sorted(found)}")
    story.sweep("release", *PLACE, "--approve", "you", code=1)

    tell("The task is written down, and the three may run again: any host takes them")
    with (folder / "tasks.toml").open("a") as tasks:
        tasks.write("\n[round]\nclasses = [1, 0, 0, 0, 0, 0, 1, 0, 1, 1]\n")
    story.sweep("retry", *PLACE, code=1)
    story.sweep("retry", "--force", "round-h64-relu", *PLACE)
    story.sweep("run", *PLACE, "--host", "alpha", "--quiet")
    story.sweep("reconcile", *PLACE)

    tell("Done is not enough: the results are brought here, and every file is loaded")
    story.sweep("release", *PLACE, "--approve", "you", code=4)
    story.sweep("pull", "results", *PLACE)
    story.sweep("verify", "results", *PLACE, "--expect", "12")
    story.sweep("release", *PLACE, "--approve", "you")
    tell(f"Now the hosts may go. Everything lies in {folder}")


def share_of(story: Story, host: str) -> list[str]:
    """The names of the cells that the host was given, in the order in which it runs them."""
    lines = (story.folder / "shares" / f"{host}.queue").read_text().splitlines()
    return [f"{task}-{Path(cfg).stem}" for cfg, task in (line.split()[:2] for line in lines if line.strip())]


def begun(story: Story, cell: str) -> bool:
    """Whether the cell's program is at work."""
    lines = [line.split()[:2] for line in (story.folder / "cells.queue").read_text().splitlines()]
    names = [f"{line[1]}-{Path(line[0]).stem}" for line in lines if line[0] != "#"]
    work = story.folder / "store" / "sweep" / "ablation" / "work"
    return (work / f"{names.index(cell):08d}-0" / "out" / "pid").exists()


def until(look: Callable[[], Any], what: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        if look():
            return
        time.sleep(0.005)
    raise SystemExit(f"story: waited {WAIT_S:.0f} s in vain: {what}")


def tell(text: str) -> None:
    print(f"\n== {text}", flush=True)


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"story: expected {what}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "studies/ablation").resolve())
