"""What one trial may use, and how a limit is told. Pure: whoever watches passes the measures in.

Memory is resident memory of the worker process and of all it has started. A limit that is exceeded makes the
attempt failed, with a reason that names the limit; ``is_limit`` knows such a reason again.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from dibs.errors import UsageError

__all__ = ["UNLIMITED", "Limits", "is_limit", "size_of", "size_text", "span_of", "span_text"]

_OVER = "over the "
_SIZES = ("bytes", "KiB", "MiB", "GiB", "TiB")
_SPANS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_POWERS = ("", "K", "M", "G", "T")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(I?B)?")
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Limits:
    """What one trial may use; None: as much as it likes. A trial over ``time_s`` or ``memory_bytes`` is failed.

    ``time_s``: seconds its objective may run. ``memory_bytes``: resident memory of its worker process and of all
    that this has started, looked at once a second. ``cpus``: cores each worker process is bound to, and the threads
    numeric libraries start there. ``gpus``: devices each worker process has to itself.
    Raises UsageError for what is no positive number.
    """

    time_s: float | None = None
    memory_bytes: int | None = None
    cpus: int | None = None
    gpus: int | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None and not (_is_number(self.time_s) and 0 < self.time_s < math.inf):
            raise UsageError(f"time_s must be a positive number of seconds, not {self.time_s!r}")
        for name in ("memory_bytes", "cpus", "gpus"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} must be a whole number of at least 1, not {value!r}")

    def __bool__(self) -> bool:
        """Whether anything is limited at all."""
        return self != UNLIMITED

    @property
    def watched(self) -> bool:
        """Whether a running trial has to be watched."""
        return self.time_s is not None or self.memory_bytes is not None

    def exceeded(self, took_s: float, used_bytes: int | None) -> str | None:
        """The reason why a trial is over a limit, None if it is within all of them."""
        if self.time_s is not None and took_s >= self.time_s:
            return f"{_OVER}time limit of {span_text(self.time_s)}"
        if self.memory_bytes is not None and used_bytes is not None and used_bytes > self.memory_bytes:
            return f"{_OVER}memory limit of {size_text(self.memory_bytes)} ({size_text(used_bytes)} used)"
        return None


UNLIMITED = Limits()


def is_limit(reason: str | None) -> bool:
    """Whether a failed attempt's reason says that it was over a limit (an exception's opens with its type)."""
    return reason is not None and reason.startswith((f"{_OVER}time limit of ", f"{_OVER}memory limit of "))


def size_text(count: int) -> str:
    """``512 bytes``, ``4 GiB``, ``5.1 GiB``."""
    at = min(len(_SIZES) - 1, max(0, count.bit_length() - 1) // 10)
    value = f"{count / 1024**at:.1f}".removesuffix(".0")
    return f"{value} {_SIZES[at]}"


def size_of(text: str) -> int | None:
    """Bytes of ``512M``, ``4G``, ``1.5GiB``, ``4GB``: K and KiB count by 1024, KB by 1000. None for what is no size."""
    match = _SIZE.fullmatch(text.strip().upper())
    size = round(float(match[1]) * (1000 if match[3] == "B" else 1024) ** _POWERS.index(match[2])) if match else 0
    return size or None


def span_of(text: str) -> float | None:
    """Seconds of ``90``, ``90s``, ``5m``, ``2h``, ``1d``, ``1h30m``; None for what is no duration."""
    if not _SPAN.fullmatch(text.strip()):
        return None
    units = {"": 1, **dict(_SPANS)}
    return float(sum(float(n) * units[unit] for n, unit in re.findall(r"([\d.]+)([smhd]?)", text)))


def span_text(seconds: float) -> str:
    """``30m``, ``1h30m``, ``0.5s``: as one writes it on the command line."""
    left, text = seconds, ""
    for unit, size in _SPANS[:-1]:
        if left >= size:
            text += f"{int(left // size)}{unit}"
            left %= size
    return f"{text}{left:g}s" if left or not text else text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
