"""Rounds for tests: models, clients in threads, and what one process makes of the same exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.parts import at_once

from dibs import Store
from dibs.backend import Backend, FolderBackend, MemoryBackend
from dibs.federation import Gathered, gather
from dibs.federation._exports import Flat
from dibs.federation._files import chunks_of
from dibs.store import RoundKeys

NAMES = ["a", "b", "c", "d", "e"]


def backend_of(kind: str, folder: Path) -> Backend:
    """One in "memory", the same with the conditions of a "bucket", or a folder that claims by "link" or "mkdir"."""
    if kind in ("memory", "bucket"):
        made: Backend = MemoryBackend(conditional_replace=kind == "bucket")
    else:
        made = FolderBackend(folder, claim=kind, fsync="none")
        made.prepare()
    return made


def model(client: str, round: int = 0) -> dict[str, Any]:
    """The same for the same arguments, everywhere."""
    rng = np.random.default_rng([ord(client[0]), round])
    whole = rng.integers(-(10**6), 10**6, 600) / 997
    return {"w": whole[:500].reshape(20, 25).astype(np.float32), "b": whole[500:], "n": np.array(ord(client[0]))}


def together(store: Store, exports: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """What each client's ``gather`` returns or raises, all at once, in threads."""

    def one(client: str) -> Any:
        try:
            return gather(
                store,
                exports[client],
                client=client,
                **{"run": "r", "round": 0, "clients": list(exports), "within": 60.0, **options},
            )
        except Exception as wrong:
            return wrong

    return dict(zip(exports, at_once([lambda client=client: one(client) for client in exports]), strict=True))


def same(got: Gathered, expected: Mapping[str, Any]) -> bool:
    """Whether the tensors are those, bit for bit."""
    return got.tensors.keys() == expected.keys() and all(
        got.tensors[name].tobytes() == np.asarray(expected[name]).tobytes()
        and got.tensors[name].dtype == np.asarray(expected[name]).dtype
        for name in expected
    )


def keys_of(store: Store, run: str = "r", round: int = 0) -> list[str]:
    """The names under a round, without the folder."""
    base = RoundKeys(run).round(round)
    return sorted(entry.key.removeprefix(base) for entry in store.backend.list(base))


def write_tensors(path: Path, tensors: Flat, metadata: Mapping[str, str]) -> None:
    """A new file with these tensors."""
    with path.open("xb") as file:
        file.writelines(chunks_of(tensors, metadata))
