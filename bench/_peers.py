"""The peers of bench/scale.py: each in a virtual environment of its own, filled as far as a bounded time allows.

One that cannot be installed is left out, and the page says why.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from bench.cycle import HERE

__all__ = ["Peer", "peers"]

OPTUNA, NEPS = HERE / ".venv", HERE / ".venv" / "neps"


@dataclass
class Peer:
    """How one is called, and up to which size it was filled."""

    name: str
    python: Path
    script: str
    suffix: str
    reached: dict[int, int] = field(default_factory=dict)

    def command(self, *arguments: object) -> list[str]:
        return [str(self.python), "-P", str(HERE / self.script), *map(str, arguments)]  # -P: bench/ is no library

    def run(self, *arguments: object) -> str:
        return subprocess.run(self.command(*arguments), check=True, capture_output=True, text=True).stdout.strip()

    def filled(self, folder: Path, size: int, limit_s: float) -> Path | None:
        """A study of that size, or None if it took too long to make."""
        path = folder / f"peer-{self.name.replace(' ', '-')}-{size}{self.suffix}"
        if any(reached < wanted <= size for wanted, reached in self.reached.items()):
            return None
        if size not in self.reached:
            try:
                self.reached[size] = int(self.run("fill", path, size, limit_s).splitlines()[-1])
            except (subprocess.CalledProcessError, ValueError, IndexError) as wrong:
                said = str(getattr(wrong, "stderr", "") or wrong).strip().splitlines()[-1:]
                print(f"{self.name} could not be filled: {' '.join(said)}", file=sys.stderr)
                self.reached[size] = 0
        return path if self.reached[size] >= size else None


def peers(notes: list[str], *, neps: bool) -> list[Peer]:
    """Those that are there or can be installed; ``notes`` has the others."""
    found = []
    if _installed(OPTUNA, "optuna>=5,<6", notes):
        for kind, suffix in (("Optuna journal", ".log"), ("Optuna SQLite", ".db")):
            found.append(Peer(kind, OPTUNA / "bin" / "python", "peer_optuna.py", suffix))
    if not neps and not NEPS.exists():
        notes.append("NePS is left out: it brings several gigabytes (torch and its libraries); `--neps` installs it.")
    elif _installed(NEPS, "neural-pipeline-search==0.17.0", notes):
        found.append(Peer("NePS", NEPS / "bin" / "python", "peer_neps.py", ""))
    return found


def _installed(folder: Path, package: str, notes: list[str]) -> bool:
    python = folder / "bin" / "python"
    if python.exists():
        return True
    print(f"installing {package} into {folder.relative_to(HERE.parent)}, once", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
        subprocess.run([python, "-m", "pip", "install", "-q", package], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as wrong:
        said = (getattr(wrong, "stderr", "") or str(wrong)).strip().splitlines()[-1:]
        notes.append(f"{package} could not be installed: {' '.join(said)}")
        return False
    return True
