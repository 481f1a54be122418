"""Sweeps that are run: a plan made by the library, a shell script as the program, and what came of each cell."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dibs import Store
from dibs.sweep import Cell, CellStanding, Plan, Task, add_plan, newest_plan, standing

NAME = "A"
# writes what it was told and what it is; reads its config
SCRIPT = """#!/bin/sh
set -e
echo "$1 for $3 epochs of $2"
cat "$1" > "$DIBS_OUT/best.pth"
echo '{"loss": 0.5}' > metrics.json
echo '{"score": 0.25}'
"""


def sweep(
    folder: Path,
    cells: int | Sequence[str] = 3,
    script: str = SCRIPT,
    *,
    artifacts: Sequence[str] = ("best.pth", "metrics.json"),
    words: Sequence[str] = ("./cell.sh", "{cfg}", "{task}", "{epochs}"),
    costs: Mapping[str, float] | None = None,
    store: Store | None = None,
    **task: Any,
) -> tuple[Store, Plan]:
    """A sweep of cells whose configs and script lie in the folder; ``task``: fields of a Task."""
    store = store or Store(folder / "s")
    names = [f"c{k}" for k in range(cells)] if isinstance(cells, int) else list(cells)
    path = folder / "cell.sh"
    path.write_text(script)
    path.chmod(0o755)
    scripts = {"./cell.sh": store.put(path)} if "./cell.sh" in words else {}
    rows = [new_cell(store, folder, n, name, (costs or {}).get(name)) for n, name in enumerate(names)]
    lines = tuple(f"{name}.toml t 3" for name in names)
    (folder / "q.txt").write_text("".join(f"{line}\n" for line in lines))
    made = Task(tuple(words), str(folder), scripts=scripts, artifacts=tuple(artifacts), **task)
    plan = Plan(NAME, 0, tuple(rows), made, {"q.txt": lines})
    assert add_plan(store, plan)
    return store, plan


def new_cell(store: Store, folder: Path, n: int, name: str, cost: float | None = None) -> Cell:
    """A cell with a config of its own."""
    config = folder / f"{name}.toml"
    config.write_text(f"name = {name!r}\n")
    fields = {"cfg": config.name, "task": "t", "epochs": 3}
    return Cell(n, name, fields, "q.txt", n + 1, cost, store.put(config))


def states(store: Store) -> dict[str, str]:
    """Every cell's state, as a reader finds it that knows nothing yet."""
    return {name: each.state for name, each in stood(store).items()}


def stood(store: Store) -> dict[str, CellStanding]:
    fresh = Store(store.url) if store.backend.root is not None else store
    return {each.cell.name: each for each in standing(fresh, newest_plan(fresh, NAME))}


def final(store: Store, name: str = "") -> Path:
    """Where durable copies lie."""
    return Path(store.url) / "sweep" / "%41" / "final" / name


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
