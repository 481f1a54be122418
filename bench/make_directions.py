"""Makes src/dibs/search/_directions.py: the polynomials and first direction numbers of the Sobol sampler.

Polynomials: all primitive ones over GF(2) in order of degree, found by the order of x. Direction numbers: for each
dimension the best of a seeded sample, judged by the t-values of its 2-D projections on the earlier dimensions
(Niederreiter 1987: every elementary interval of volume 2**(t-m) holds 2**t of 2**m points). Run: python bench/make_directions.py
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

DIMENSIONS = 128
CANDIDATES = 1000
SIZES = range(2, 14)  # judged on the first 2**m points
BITS = 14


def primitive_polynomials(count: int) -> list[int]:
    """The first ``count`` primitive polynomials, bit k = coefficient of x**k."""
    found: list[int] = []
    degree = 1
    while len(found) < count:
        full = 2**degree - 1
        for low in range(1, 2**degree, 2):
            poly, x, order = 2**degree | low, 1, 0
            while True:
                x <<= 1
                if x >> degree:
                    x ^= poly
                order += 1
                if x == 1 or order > full:
                    break
            if order == full:
                found.append(poly)
        degree += 1
    return found[:count]


def direction_numbers(poly: int, start: tuple[int, ...], bits: int) -> list[int]:
    """m_1 .. m_bits of the recurrence (Bratley and Fox 1988, eq. 2.2) shifted so that the first digit is the top bit."""
    degree, m = len(start), list(start)
    while len(m) < bits:
        new = m[-degree] ^ m[-degree] << degree
        for k in range(1, degree):
            if poly >> (degree - k) & 1:
                new ^= m[-k] << k
        m.append(new)
    return [value << (bits - k) for k, value in enumerate(m[:bits], 1)]


def rows_of(columns: list[int], m: int) -> list[int]:
    """The first m rows of the generator matrix on the first m columns."""
    return [sum((columns[j] >> (BITS - 1 - i) & 1) << j for j in range(m)) for i in range(m)]


def insert(basis: dict[int, int], row: int) -> bool:
    """Add ``row`` to the basis; False if it depends on it."""
    while row:
        top = row.bit_length()
        if top not in basis:
            basis[top] = row
            return True
        row ^= basis[top]
    return False


def t_value(a: list[int], b: list[int], m: int) -> int:
    """The quality parameter of the 2-D net with generator rows ``a`` and ``b``; 0 is perfect."""
    first: dict[int, int] = {}
    strength = m
    for k in range(m + 1):
        basis, more = dict(first), 0
        while k + more < strength and insert(basis, b[more]):
            more += 1
        strength = min(strength, k + more)
        if k < m:
            insert(first, a[k])
    return m - strength


def make() -> list[tuple[int, tuple[int, ...]]]:
    rng = random.Random(0)
    table: list[tuple[int, tuple[int, ...]]] = []
    kept = [[rows_of([1 << (BITS - 1 - j) for j in range(BITS)], m) for m in SIZES]]
    for poly in primitive_polynomials(DIMENSIONS - 1):
        degree = poly.bit_length() - 1
        best: tuple[float, tuple[int, ...], list[list[int]]] | None = None
        seen: set[tuple[int, ...]] = set()
        for _ in range(4 * CANDIDATES):
            start = tuple(2 * rng.randrange(2**k) + 1 for k in range(degree))
            if start in seen or len(seen) >= CANDIDATES:
                continue
            seen.add(start)
            columns = direction_numbers(poly, start, BITS)
            rows = [rows_of(columns, m) for m in SIZES]
            cost = 0.0
            for other in reversed(kept):
                # 4 and not 2: the worst pairs weigh more than the average of all
                cost += sum(4.0 ** t_value(x, y, m) for x, y, m in zip(other, rows, SIZES, strict=True)) / len(kept)
                if best is not None and cost >= best[0]:
                    break
            if best is None or cost < best[0]:
                best = cost, start, rows
        assert best is not None
        table.append((poly, best[1]))
        kept.append(best[2])
        print(f"dimension {len(kept)}: degree {degree}, mean cost {best[0]:.1f}", file=sys.stderr)
    return table


def main() -> None:
    lines = [
        '"""Primitive polynomials over GF(2) and first direction numbers of the Sobol sampler, dimension by dimension.',
        "",
        "Made by bench/make_directions.py, never edited: another table is another sequence and another sampler version.",
        "(polynomial, bit k = coefficient of x**k; m_1 .. m_degree). Dimension 0 is van der Corput's and not listed.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        '__all__ = ["DIRECTIONS"]',
        "",
        "DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (",
    ]
    lines += [f"    ({poly}, {start!r})," for poly, start in make()]
    target = Path(__file__).parents[1] / "src/dibs/search/_directions.py"
    target.write_text("\n".join([*lines, ")", ""]))


if __name__ == "__main__":
    main()
