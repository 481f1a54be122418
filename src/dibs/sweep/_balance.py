"""Which host runs which cell: the longest first, each where it would end first. Pure, and the same on every machine.

Longest processing time first on hosts of equal speed ends at most 4/3 - 1/(3m) later than the best there is
(Graham 1969, SIAM J. Appl. Math. 17); with speeds of their own, below 2 (Gonzalez, Ibarra and Sahni 1977).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._models import Cell

__all__ = ["Assignment", "Share", "assign"]


@dataclass(frozen=True)
class Share:
    """What one host would run, in this order, and when it would be done: cost over speed."""

    host: str
    speed: float
    cells: tuple[Cell, ...]
    finish: float


@dataclass(frozen=True)
class Assignment:
    """``bound``: no assignment of these cells to these hosts ends before that."""

    shares: tuple[Share, ...]
    bound: float

    @property
    def finish(self) -> float:
        """When the last host is done."""
        return max((share.finish for share in self.shares), default=0.0)


def assign(cells: Sequence[Cell], costs: Mapping[int, float], speeds: Mapping[str, float]) -> Assignment:
    """Every cell to exactly one host. ``costs``: by number, at speed 1; ``speeds``: above 0, at least one host."""
    hosts = sorted(speeds, key=lambda host: (-speeds[host], host))
    done = dict.fromkeys(hosts, 0.0)
    given: dict[str, list[Cell]] = {host: [] for host in hosts}
    for cell in sorted(cells, key=lambda cell: (-costs[cell.n], cell.n)):
        host = min(hosts, key=lambda host: done[host] + costs[cell.n] / speeds[host])
        done[host] += costs[cell.n] / speeds[host]
        given[host].append(cell)
    shares = (Share(host, speeds[host], tuple(given[host]), done[host]) for host in hosts)
    return Assignment(tuple(shares), _bound([costs[cell.n] for cell in cells], [speeds[host] for host in hosts]))


def _bound(costs: Sequence[float], speeds: Sequence[float]) -> float:
    """The largest of some times that nothing can beat. ``speeds``: fastest first."""
    costs = sorted(costs, reverse=True)
    # all the work at all speeds; the k longest cells at the k fastest
    times = [sum(costs) / sum(speeds)]
    times += [sum(costs[:k]) / sum(speeds[:k]) for k in range(1, min(len(speeds), len(costs)) + 1)]
    # of k hosts times j cells and one more, some host runs j + 1: at least the shortest of them, at best on the fastest
    many = len(speeds)
    times += [sum(costs[j * many - j : j * many + 1]) / speeds[0] for j in range(1, (len(costs) - 1) // many + 1)]
    return max(times, default=0.0) if costs else 0.0
