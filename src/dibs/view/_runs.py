"""Federated runs and their rounds, as models: what ``_rounds`` reads off a store."""

from __future__ import annotations

from dataclasses import dataclass

from ._plain import Plain

__all__ = ["RoundStatus", "RunLine", "RunStatus"]


@dataclass(frozen=True, slots=True)
class RunLine(Plain):
    """One run: how many rounds it has begun, and how the newest stands."""

    run: str
    rounds: int
    newest: int
    state: str
    answered: int
    clients: int
    late: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class RoundStatus(Plain):
    """One round. ``state``: waiting, averaging, done, stopped or damaged; ``by``: who averages it or has averaged it.

    ``weights``: client -> its part (None: nobody was weighed) of those that are in; ``rejected``: client -> why;
    ``attempt``: which attempt at averaging it is (2: two have died over it); ``problems``: what does not read;
    ``kept``: False if its blobs were put away.
    """

    round: int
    state: str
    clients: tuple[str, ...]
    quorum: int | None
    answered: tuple[str, ...]
    missing: tuple[str, ...]
    late: tuple[str, ...]
    rejected: dict[str, str]
    weights: dict[str, float | None]
    by: str
    attempt: int | None
    reason: str | None
    blob: str | None
    kept: bool
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunStatus(Plain):
    """A run with all its rounds, in order."""

    store: str
    run: str
    rounds: tuple[RoundStatus, ...]
