"""What an attempt notes beside its output once its program has ended well: that only the copies are missing then.

If they fail, or their copier is killed, the next attempt on this machine copies what is there and runs nothing again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dibs.study._attempt import Attempt
from dibs.study._outputs import base_of, record_of

__all__ = ["Ended", "ended_before"]

_FILE = "ended.json"


@dataclass(frozen=True)
class Ended:
    """A program that ended well: where its output and log are, and what it was."""

    out: str
    log: str
    score: float | None
    cell: str  # its digest
    scripts: Mapping[str, str]
    attempt: int
    config: str | None = None  # its SHA-256 when the program had ended, if it was another one by then

    def note(self, base: Path) -> None:
        """Write it down, whole or not at all. Raises OSError."""
        draft = base / f".{_FILE}"
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(base / _FILE)


def ended_before(attempt: Attempt, cell: str, scripts: Mapping[str, str]) -> Ended | None:
    """The newest earlier attempt at the same cell, with the same config and scripts, that only lacks its copies here."""
    for number in range(attempt.attempt - 1, -1, -1):
        record = record_of(attempt, number)
        base = base_of(attempt, record) if record is not None else None
        if base is None:
            continue
        with suppress(OSError, ValueError, TypeError):
            found = Ended(**json.loads((base / _FILE).read_bytes()))
            if (found.cell, dict(found.scripts)) == (cell, dict(scripts)) and Path(found.out).is_dir():
                return found
    return None
