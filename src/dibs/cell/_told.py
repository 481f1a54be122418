"""What a program says of its result: JSON lines on stdout, or a file. Pure.

``{"score": 0.1}`` is a result, ``{"step": 3, "score": 0.2}`` is also a step of the curve; the last line with a score
is the result. ``scores`` and ``constraints`` are for studies that have them. Every other line is only log.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Lines", "Thin", "Told", "told_by", "told_by_file"]

_LONGEST = 64 << 10  # bytes of a line that may be a result
_DENSE = 1000  # so many steps of a curve are all kept
_WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "infinity": math.inf, "-infinity": -math.inf}


@dataclass(frozen=True)
class Told:
    """One statement. ``wrong``: why it is none, in words, where it was meant to be one."""

    score: float | None = None
    scores: tuple[float, ...] | None = None
    constraints: Mapping[str, float] | None = None
    step: int | None = None
    wrong: str = ""


class Lines:
    """Bytes to whole lines, without their ends; a longer one than could matter is passed over, not held."""

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that these bytes complete."""
        first, newline, more = data.partition(b"\n")
        if not newline:
            self._hold(first)
            return
        self._hold(first)
        if not self._skipping:
            yield self._rest
        lines = more.split(b"\n")
        self._rest, self._skipping = b"", False
        self._hold(lines.pop())
        yield from lines

    def close(self) -> Iterator[bytes]:
        """The last line, if it has no newline at its end."""
        if self._rest and not self._skipping:
            yield self._rest
        self._rest = b""

    def _hold(self, data: bytes) -> None:
        if self._skipping or len(self._rest) + len(data) > _LONGEST:
            self._rest, self._skipping = b"", True
        else:
            self._rest += data


class Thin:
    """Which steps of an endless curve are kept: the first thousand, then fewer and fewer, the same ones in every run."""

    def __init__(self) -> None:
        self._count = 0

    def keeps(self) -> bool:
        """Whether the next one is; of a million about 6,000 are."""
        at = self._count
        self._count += 1
        return at % (1 << (at // _DENSE).bit_length()) == 0


def told_by(line: bytes) -> Told | None:
    """The statement in a line of stdout; None if it is only log."""
    line = line.rpartition(b"\r")[2] if not line.endswith(b"\r") else line[:-1].rpartition(b"\r")[2]
    line = line.strip()
    if not line.startswith(b"{") or not line.endswith(b"}") or b'"score' not in line or len(line) > _LONGEST:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not ("score" in found or "scores" in found):
        return None
    return _told(found)


def told_by_file(data: bytes) -> Told:
    """The statement of a result file: a JSON object as on stdout, or a bare number."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        text = data.decode(errors="replace").strip()
        if text.lower() in _WORDS:
            return Told(score=_WORDS[text.lower()])
        return Told(wrong=f'the result file is neither JSON nor a number ({text!r:.60}): write {{"score": 0.1}}')
    if isinstance(found, dict):
        if "score" not in found and "scores" not in found:
            return Told(wrong='the result file has no "score": write {"score": 0.1}')
        return _told(found)
    return _told({"score": found})


def _told(found: dict[str, Any]) -> Told:
    try:
        scores = found.get("scores")
        if scores is not None and not isinstance(scores, list):
            raise ValueError(f'"scores" must be a list of numbers, not {scores!r:.60}')
        constraints = found.get("constraints")
        if constraints is not None and not isinstance(constraints, dict):
            raise ValueError(f'"constraints" must be numbers by name, not {constraints!r:.60}')
        return Told(
            score=_number("score", found["score"]) if "score" in found else None,
            scores=tuple(_number("scores", each) for each in scores) if scores is not None else None,
            constraints={name: _number(name, each) for name, each in constraints.items()} if constraints else None,
            step=_step(found.get("step")),
        )
    except ValueError as wrong:
        return Told(wrong=str(wrong))


def _number(name: str, value: Any) -> float:
    if value is None:  # what JavaScript and others make of NaN
        return math.nan
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f'"{name}" must be a number, not {value!r:.60}')
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f'"{name}" is too large a number') from None


def _step(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or not 0 <= value < 2**63:
        raise ValueError(f'"step" must be a whole number of at least 0, not {value!r:.60}')
    if int(value) != value:
        raise ValueError(f'"step" must be a whole number of at least 0, not {value!r}')
    return int(value)
