"""When failures end a run: ``soon,fail=3``, ``now,fail=1``, ``fail=30%``. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dibs.errors import UsageError

__all__ = ["HaltRule"]

_FAIL = re.compile(r"fail=(\d{1,9})(%?)")


@dataclass(frozen=True)
class HaltRule:
    """``fails``: so many cells, with ``percent`` of the sweep's; ``now``: what runs is interrupted, else it ends in peace."""

    fails: int
    percent: bool = False
    now: bool = False

    @classmethod
    def of(cls, text: str) -> HaltRule:
        """Raises UsageError for what is no such rule."""
        words = [word.strip() for word in text.split(",")]
        when = words.pop(0) if words[0] in ("soon", "now") else "soon"
        match = _FAIL.fullmatch(words[0]) if len(words) == 1 else None
        fails = int(match[1]) if match is not None else 0
        if match is None or not fails >= 1 or (match[2] and fails > 100):
            raise UsageError(f"--halt {text!r:.80}: write soon,fail=3 or now,fail=1 or fail=30%")
        return cls(fails, bool(match[2]), when == "now")

    def after(self, cells: int) -> int:
        """After how many failures, of so many cells; at least one."""
        return max(1, math.ceil(self.fails * cells / 100)) if self.percent else self.fails
