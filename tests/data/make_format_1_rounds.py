"""Wrote tests/data/format-1-rounds/: federated rounds, as the first version wrote them. Never run it over that.

``python -m tests.data.make_format_1_rounds FOLDER`` makes another one to compare with.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from tests.data.make_format_1 import store_at
from tests.parts import FakeMachine

from dibs import RoundStopped, RoundTimeout
from dibs.federation import Tensor, gather
from dibs.store import _opening

RUN = "Lauf 1/é"


def export(k: float) -> dict[str, Any]:
    """One client's."""
    return {
        "n": {"w": np.array([[k, 2 * k]], np.float32), "h": Tensor("BF16", np.array([0x3F80], "<u2"))},
        "m": {"c": np.array(int(k))},
    }


def make(root: Path) -> None:
    """Round 0 with sizes, one late, put away; round 1 with one rejected; round 2 clipped; round 3 stopped; round 4 waiting."""
    os.environ["DIBS_ME"] = "somebody"
    _opening.mount_type = lambda path: "ext4"
    _opening.open_folder(root, FakeMachine(1, host="node1"), create=True, unchecked=False)

    def go(k: int, round: int, **options: Any) -> None:
        names = ["a", "b", "c"]
        given = {"within": 0.001, "bad": "drop", "keep": None, **options}
        value = given.pop("value", export(k + round / 10))
        with suppress(RoundStopped, RoundTimeout):
            gather(
                store_at(root, 10 * k, f"node{k}"),
                value,
                run=RUN,
                round=round,
                clients=names,
                client=names[k - 1],
                **given,
            )

    for k in (1, 2, 3):
        go(k, 0, size=k, quorum=2, grace=0)
    broken = {**export(3), "m": {"c": np.array(3)}, "n": {**export(3)["n"], "w": np.array([[np.nan, 1]], np.float32)}}
    for k in (1, 2, 3):
        go(k, 1, value=broken if k == 3 else export(k))
    for k in (1, 2, 3):
        go(k, 2, clip=1.0, base=export(2), others="max")
    for k in (1, 2, 3):
        go(k, 3, value=broken if k == 3 else export(k), quorum=3, keep=3)
    go(1, 4)
    for left in (root / "tmp").iterdir():
        left.unlink()
    (root / "tmp").rmdir()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
