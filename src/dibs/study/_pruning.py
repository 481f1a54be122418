"""How a running trial asks its study's pruner: at steps beyond all before, in the thread that reports.

The thread that beats never comes here. The trial's own curve is kept and grows, so that a report costs what is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from dibs._canon import plain
from dibs.errors import UsageError
from dibs.search import Curve, Pruner, Verdict
from dibs.search._pruner import word

from ._attempt import Attempt
from ._curves import Curves

__all__ = ["Pruning"]

_DEEPEST = 8


class Pruning:
    """One attempt's. ``at_rung``: whether the step last asked about is one at which others want to see its curve.

    ``curves``: where the others' are; None for a pruner that needs none, which then knows this attempt alone.
    """

    def __init__(self, pruner: Pruner, curves: Curves | None, attempt: Attempt) -> None:
        self.pruner, self._curves, self._attempt = pruner, curves, attempt
        self.at_rung = False
        self._own: Curve | None = None
        self._lock = Lock()

    def ask(self, step: int, value: float) -> Verdict | None:
        """Why to stop at this step, which was just reported; None for one that is not beyond all before it."""
        with self._lock:
            self.at_rung = False
            own = self._own
            if own is None or len(own) == 0:
                own = self._own = self._whole()
                if own.last != step:
                    return None
            elif step <= own.last:
                self._own = None  # something in the middle has changed: put together anew when it matters
                return None
            else:
                own.add(step, value)
            self.at_rung = self.pruner.at_rung(own)
            verdict = _checked(self.pruner, self.pruner.verdict(own, self._others))
            if verdict is not None and self._curves is not None and self._curves.unreadable:
                verdict.seen["unreadable"] = len(self._curves.unreadable)
            return verdict

    def closed(self) -> None:
        """The attempt is closed: the next one in this process need not read its curve."""
        if self._curves is not None:
            self._curves.keep(self._attempt)

    def _whole(self) -> Curve:
        """What the attempt has reported, after what the ones before it had by then."""
        with self._attempt.lock:
            pairs = sorted(self._attempt.curve.items())
        if self._attempt.attempt and self._curves is not None:
            self._curves.look(self._at)
            earlier = self._curves.earlier(*self._at)
            pairs = [pair for pair in earlier if pair[0] < pairs[0][0]] + pairs
        return Curve(self._attempt.n, "running", pairs)

    def _others(self, least: int, most: int) -> Sequence[Curve]:
        if self._curves is None:
            return ()
        self._curves.look(self._at, rung=self.at_rung, least=least, most=most)
        return self._curves.others(self._attempt.n, least, most)

    @property
    def _at(self) -> tuple[int, int]:
        return self._attempt.n, self._attempt.attempt


def _checked(pruner: Pruner, said: Any) -> Verdict | None:
    """What a pruner of somebody's own may say, as JSON, so that its trial can be closed. Raises UsageError."""
    if said is None:
        return None
    if not isinstance(said, Verdict):
        raise UsageError(f"pruner {pruner.name!r} answered {said!r:.80}: decide() returns a Verdict or None")
    return Verdict(str(said.pruner), str(said.reason), {str(name): _words(value) for name, value in said.seen.items()})


def _words(value: Any, depth: int = 0) -> Any:
    value = plain(value)
    if isinstance(value, float):
        return word(value)
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {str(name): _words(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_words(each, depth + 1) for each in value]
    return f"{value!r:.200}"
