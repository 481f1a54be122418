"""What somebody who calls ``gather`` may say. Pure; each raises UsageError, which says what to say instead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dibs.errors import UsageError

from ._rules import Rule

_NO_NUMBERS = (bool, np.bool_, str, bytes, bytearray)  # of which float would make one
__all__ = ["check_rules", "check_size", "check_times", "number_of"]


def check_size(size: Any, client: str) -> float | None:
    """A size as it is recorded. Raises UsageError."""
    if size is None:
        return None
    try:
        number = float(size) if not isinstance(size, _NO_NUMBERS) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"the size of {client!r} is a finite number of 0 or more, not {size!r:.60}")
    return number


def number_of(round: object) -> int:
    if isinstance(round, bool) or not isinstance(round, int) or not 0 <= round < 10**12:
        raise UsageError(f"a round is a whole number from 0 on, not {round!r}")
    return round


def check_times(**seconds: object) -> None:
    for name, value in seconds.items():
        number = float(value) if isinstance(value, int | float | np.number) and not isinstance(value, bool) else -1.0
        if not (number >= 0 if name == "grace" else number > 0):
            least = "not below 0" if name == "grace" else "above 0"
            raise UsageError(f"{name} is a number of seconds {least}, not {value!r}")


def check_rules(quorum: int | None, asked: int, keep: int | None, base: object, rule: Rule) -> None:
    if quorum is not None and (isinstance(quorum, bool) or not isinstance(quorum, int) or not 1 <= quorum <= asked):
        raise UsageError(f"a quorum is a number from 1 to {asked}, as so many are in the round, not {quorum!r}")
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
        raise UsageError(f"keep is a number of rounds from 1 on, not {keep!r}")
    if (base is None) != (rule.clip is None):
        raise UsageError("clip and base go together: base is the model that the clients began the round with")
