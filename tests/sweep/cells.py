"""Sweeps whose cells have ended in all the ways there are, written by the library's own claims and by the contract of
durable copies: no program is run."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dibs import Store
from dibs.store import SweepKeys
from dibs.study._attempt import Attempt, Terms, claim_attempt
from dibs.study._view import view_of
from dibs.sweep import Cell, Plan, Task, add_plan

NAME = "A"
ARTIFACTS = ("best.npz", "metrics.json")


def npz(**arrays: Any) -> bytes:
    """The bytes of an npz file."""
    file = io.BytesIO()
    np.savez(file, **(arrays or {"w": np.arange(6.0)}))  # type: ignore[arg-type]
    return file.getvalue()


def result(k: int = 0) -> dict[str, bytes]:
    """What a cell leaves."""
    return {"best.npz": npz(w=np.arange(4.0) + k), "metrics.json": json.dumps({"loss": 0.5 + k}).encode()}


def cell(n: int, name: str, **more: Any) -> Cell:
    return Cell(n, name, {"cfg": f"{name}.toml", "task": "t", "epochs": 2}, "q.txt", n + 1, **more)


def planned(store: Store, *names: str, artifacts: tuple[str, ...] = ARTIFACTS, **task: Any) -> Plan:
    """A sweep of these cells, at its first version."""
    cells = tuple(cell(n, name) for n, name in enumerate(names))
    plan = Plan(NAME, 0, cells, Task(("./t.sh", "{cfg}"), "/w", artifacts=artifacts, **task), {"q.txt": names})
    assert add_plan(store, plan)
    return plan


def append(store: Store, plan: Plan, *names: str) -> Plan:
    more = tuple(cell(plan.size + at, name) for at, name in enumerate(names))
    changed = plan.next(cells=(*plan.cells, *more))
    assert add_plan(store, changed)
    return changed


def begin(store: Store, plan: Plan, name: str, me: str = "one") -> Attempt:
    """The next attempt at the cell, running."""
    this = plan.named(name)
    assert this is not None
    keys = SweepKeys(plan.sweep)
    view = view_of(store, plan.sweep, keys)
    view.refresh()
    attempt = max(view.seens(this.n), default=-1) + 1
    saw = {"cell": name, "digest": this.digest, "plan": plan.version}
    claimed = claim_attempt(store, keys, this.n, attempt, this.fields, Terms(0, plan.size, None, me, 5.0), saw=saw)
    assert claimed is not None
    claimed.files["program/t.sh"] = "ab" * 32
    return claimed


def finish(
    store: Store, plan: Plan, name: str, files: Mapping[str, bytes] | None = None, attempt: Attempt | None = None
) -> Attempt:
    """The cell ends well: its files are copied, and only then is it done."""
    mine = attempt or begin(store, plan, name)
    files = result(mine.n) if files is None else files
    said = {key: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for key, data in files.items()}
    if final_of(store, plan, name) is not None:
        final = str(publish(store, plan, name, files, mine))
    else:
        final = "blobs"
        mine.files.update({f"final/{key}": store.put(data) for key, data in files.items()})
    mine.ended = {"cause": "ok", "code": 0, "artifacts": said, "final": final}
    mine.close("done")
    return mine


def edited(attempt: Attempt) -> Attempt:
    """An attempt whose cell's config will be another one when its program has ended."""
    closing = attempt.close

    def close(state: str, **more: Any) -> None:
        attempt.ended = {**(attempt.ended or {}), "config": "5" * 64}
        closing(state, **more)

    attempt.close = close  # type: ignore[method-assign, assignment]
    return attempt


def fail(store: Store, plan: Plan, name: str, cause: str, reason: str = "", **seen: Any) -> Attempt:
    mine = begin(store, plan, name)
    mine.ended = {"cause": cause, **seen}
    state = "interrupted" if cause in ("pre-empted", "vanished") else "failed"
    mine.close(state, reason=reason or f"{cause}: exit status 3: boom")
    return mine


def final_of(store: Store, plan: Plan, name: str) -> Path | None:
    """Where the cell's durable copies lie; None where they are blobs."""
    if plan.task.final is not None:
        return Path(plan.task.final) / name
    root = store.backend.root
    return root / SweepKeys(plan.sweep).final(name) if root is not None else None


def publish(store: Store, plan: Plan, name: str, files: Mapping[str, bytes], attempt: Attempt) -> Path:
    folder = final_of(store, plan, name)
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    said = {key: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for key, data in files.items()}
    for key, data in files.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(data)
    body = {"v": 1, "sweep": plan.sweep, "cell": name, "n": attempt.n, "attempt": attempt.attempt,
            "nonce": attempt.nonce, "artifacts": said}  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(body))
    return folder
