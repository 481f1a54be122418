"""What tests of one process see of a sink: its best, its files, and a process that has no mark yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dibs import Sink, SinkRecord
from dibs.sink import _marks
from dibs.sink._owner import OWNER


def found(sink: Sink, prefer_params: Any = None) -> SinkRecord:
    record = sink.best(prefer_params)
    assert record is not None
    return record


def elsewhere(sink: Sink, *args: Any, **kwargs: Any) -> bool:
    """A record by a process that has no mark yet."""
    _marks.forget(sink.folder)
    return sink.record(*args, **kwargs)


def listed(folder: str | Path) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def files(sink: Sink) -> list[str]:
    return sorted(name.partition("-")[0] for name in listed(sink.folder) if name != OWNER)
