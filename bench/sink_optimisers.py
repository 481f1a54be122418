"""``python -m bench.sink_optimisers``: hyperopt, SMAC3, Mango and GPyOpt with a sink, each in a virtual environment of its own.

Installs them into bench/.venv/sink-<name> (once; each within a bounded time), runs bench/sink_players.py there, and writes
docs/reference/sink-optimisers.md: which installed, which passed, in which version. None of this is part of the tests.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.cycle import HERE

PAGE = HERE.parent / "docs" / "reference" / "sink-optimisers.md"
INSTALL_S, RUN_S = 900, 240
# what is installed (GPyOpt's own list names none of what it imports), and how its workers are started
OPTIMISERS: dict[str, tuple[list[str], str]] = {
    "hyperopt": (["hyperopt", "joblib"], "four `fmin` in loky's workers; its own need Spark or MongoDB"),
    "smac": (["smac"], "`Scenario(n_workers=2)`: dask"),
    "arm-mango": (["arm-mango"], "`scheduler.parallel(n_jobs=2)`: joblib"),
    "GPyOpt": (
        ["GPyOpt", "GPy", "scipy", "matplotlib"],
        '`num_cores=2, evaluator_type="random"`: a fork per batch and core',
    ),
}


def last(text: str | bytes | None) -> str:
    """The last line that says something."""
    lines = (text.decode(errors="replace") if isinstance(text, bytes) else text or "").strip().splitlines()
    return lines[-1][:200] if lines else "nothing was said"


def installed(name: str) -> tuple[Path, str]:
    """Its interpreter, and why it is none, or nothing."""
    folder = HERE / ".venv" / f"sink-{name}"
    python = folder / "bin" / "python"
    done = folder / "ready"
    if not done.exists():
        print(f"installing {name} into {folder.relative_to(HERE.parent)}, once", file=sys.stderr)
        packages = [*OPTIMISERS[name][0], "cloudpickle"]
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
            subprocess.run(
                [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages],
                check=True, capture_output=True, text=True, timeout=INSTALL_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return python, f"not within {INSTALL_S} s"
        except (OSError, subprocess.CalledProcessError) as wrong:
            return python, last(getattr(wrong, "stderr", "") or str(wrong))
        done.touch()
    return python, ""


def played(python: Path, name: str) -> dict[str, Any]:
    """What the player says, or in ``wrong`` why it does not."""
    environ = {**os.environ, "PYTHONPATH": f"{HERE.parent / 'src'}{os.pathsep}{HERE}"}
    with subprocess.Popen(
        [python, "-W", "ignore", HERE / "sink_players.py", name],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)  # its workers, too
            return {"wrong": [f"not done within {RUN_S} s"]}
    if process.returncode:
        return {"wrong": [last(err)]}
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


def row(name: str) -> str:
    """One line of the table."""
    python, why = installed(name)
    how = OPTIMISERS[name][1]
    if why:
        return f"| {name} | no: {why} | | {how} | | |"
    found = played(python, name)
    verdict = "yes" if not found["wrong"] else f"no: {'; '.join(found['wrong'])}"
    if "version" not in found:
        return f"| {name} | yes | | {how} | | {verdict} |"
    matched = {True: "they were", False: "another trial's", None: "not known"}[found["matched"]]
    ran = f"{found['evaluations']} in {found['processes']}"
    return f"| {name} | {found['version']} | {ran} | {how} | {matched} | {verdict} |"


def page(rows: list[str]) -> str:
    """The page, written by what it describes."""
    machine = (
        f"{platform.system()}, {os.cpu_count()} shared cores, Python {platform.python_version()}, "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    )
    table = "\n".join(rows)
    return f"""# The sink with other people's optimisers

Each minimised a small function of a float and an integer with workers of its own; the objective called `sink.record` with what it
had fitted. *Passed*: the sink had the best of all evaluations, which a file of its own had written down too, with the object that was
fitted in that worker and its numbers, and nothing was skipped. *Preferred*: whether the parameters that the optimiser returned were those of
that trial by `best(prefer_params=...)`.

| optimiser | installed | evaluations in processes | workers | preferred | passed |
|---|---|---|---|---|---|
{table}

Run on {machine}, each in an environment of its own, which the tests have no part in. Rerun: `python -m bench.sink_optimisers`.
joblib, `multiprocessing` (fork and spawn), dask and Optuna through joblib are in the tests ([how to](../how-to/keep-the-best.md)).
"""


def main() -> None:
    """Install, run, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.sink_optimisers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=OPTIMISERS, default=list(OPTIMISERS), help="of these")
    parser.add_argument("--dry", action="store_true", help="print the page instead of writing it")
    given = parser.parse_args()
    text = page([row(name) for name in given.only])
    print(text)
    if not given.dry:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
