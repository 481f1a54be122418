"""What came of a seed, and how a run that broke something explains itself. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from ._simulator_plan import Plan
from .invariants import Event, Reading

__all__ = ["Run"]

_DULL = ("  read", "  touch")


@dataclass
class Run:
    """What came of a seed. ``broken``: what does not hold (empty: all is well)."""

    seed: int
    plan: Plan
    fixed: dict[str, Any]
    events: list[Event]
    final: Reading
    broken: list[str]
    steps: int
    now: float
    trace: list[tuple[float, str, str, str, object]] = field(repr=False)

    @property
    def digest(self) -> str:
        """A digest of everything that happened: equal for equal seeds in one checkout, whose paths stand in tracebacks."""
        return hashlib.sha256(repr((self.trace, self.events, self.broken)).encode()).hexdigest()

    @property
    def replay(self) -> str:
        """The call that gives this run again."""
        fixed = "".join(f", {name}={value!r}" for name, value in self.fixed.items())
        return f"dibs.testing.replay({self.seed}{fixed})"

    def explain(self, last: int = 60) -> str:
        """The plan, what is broken, what was written to the names involved, the last that happened, and the replay."""
        told = [(event.at, event.who, *_event_text(event)) for event in self.events if event.what != "looked"]
        done = [(at, who, f"  {verb} {key}", str(answer)) for at, who, verb, key, answer in self.trace]
        story = sorted([*told, *done], key=lambda line: line[0])
        sentences = " ".join(self.broken)
        marks = set(re.findall(r"study/\S+\.json|(?<=the wish )\w+", sentences))
        marks |= {f"/{int(n):08d}-" for n in re.findall(r"trial (\d+)", sentences)}
        named = [
            line for line in story if not line[2].startswith(_DULL) and any(mark in line[2] + line[3] for mark in marks)
        ]
        lines = [f"seed {self.seed}: {self.plan}", *self.broken]
        for title, part in (("the names involved", named), ("in the end", story)):
            lines += [f"... {title}:", *(f"{at:10.3f} {who:12} {what} {more}" for at, who, what, more in part[-last:])]
        return "\n".join(line.rstrip() for line in [*lines, f"replay: {self.replay}"])


def _event_text(event: Event) -> tuple[str, str]:
    more = [event.state, event.note, event.nonce[:8], str(event.number or "")]
    return f"{event.what.upper()} {event.key}", " ".join(word for word in more if word)
