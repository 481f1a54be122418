"""Resources, as one worker wants them and as a platform offers them. Pure.

``"24GB"`` and ``"24GB+"`` mean the same, at least so much: a plus is how it is said aloud. What is not said is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dibs.cell._limits import size_of, span_of
from dibs.errors import UsageError

from ._keys import a_count, a_table, a_text

__all__ = ["Gpu", "Resources"]

_KEYS = ("cpus", "memory", "disk", "time", "gpu")
_GPU_KEYS = ("name", "count", "memory")


@dataclass(frozen=True)
class Gpu:
    """Devices of one kind. ``name``: a part of what the maker calls it, in any case; ``memory_bytes``: of each."""

    name: str | None = None
    count: int = 1
    memory_bytes: int | None = None

    def within(self, offered: Gpu, times: int = 1) -> bool:
        """Whether ``offered`` has this ``times`` over. What is offered without a name or memory has neither."""
        named = self.name is None or self.name.lower() in (offered.name or "").lower()
        return named and self.count * times <= offered.count and (self.memory_bytes or 0) <= (offered.memory_bytes or 0)


@dataclass(frozen=True)
class Resources:
    """``cpus`` cores, ``memory_bytes``, ``disk_bytes`` of room to write, ``time_s`` from start to end, ``gpus``.

    A job wants at most one kind of device; a platform may offer several.
    """

    cpus: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    time_s: float | None = None
    gpus: tuple[Gpu, ...] = ()

    @classmethod
    def of(cls, value: Any, where: str) -> Resources:
        """From a table of a file. Raises UsageError naming the place and the remedy."""
        table = a_table(value, where, _KEYS)
        said = table.get("gpu", [])
        several = said if isinstance(said, list | tuple) else [said]
        return cls(
            _cpus(table["cpus"], f"{where}: cpus") if "cpus" in table else None,
            _size(table["memory"], f"{where}: memory") if "memory" in table else None,
            _size(table["disk"], f"{where}: disk") if "disk" in table else None,
            _span(table["time"], f"{where}: time") if "time" in table else None,
            tuple(_gpu(each, f"{where}: gpu") for each in several if each != 0),
        )


def _gpu(value: Any, where: str) -> Gpu:
    if isinstance(value, int) and not isinstance(value, bool):
        return Gpu(count=a_count(value, where))
    table = a_table(value, where, _GPU_KEYS)
    return Gpu(
        a_text(table["name"], f"{where}.name") if "name" in table else None,
        a_count(table["count"], f"{where}.count") if "count" in table else 1,
        _size(table["memory"], f"{where}.memory") if "memory" in table else None,
    )


def _cpus(value: Any, where: str) -> int:
    text = value.strip().removesuffix("+") if isinstance(value, str) else ""
    return a_count(int(text) if text.isascii() and text.isdigit() else value, where)


def _size(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    size = size_of(value.strip().removesuffix("+")) if isinstance(value, str) else None
    if size is None:
        raise UsageError(f'{where} must be a size such as "24GB+", "512M", "1.5GiB", or bytes, not {value!r:.80}')
    return size


def _span(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds: float | None = float(value)
    else:
        seconds = span_of(value) if isinstance(value, str) else None
    if seconds is None or not 0 < seconds < float("inf"):
        raise UsageError(f'{where} must be a duration such as "90s", "2h", "1h30m", or seconds, not {value!r:.80}')
    return seconds
