"""Linear algebra in small pieces.

A BLAS starts threads for all but small products. For matrices of a few hundred rows they cost more than they save,
and on a machine whose cores are taken (here they are: the objective has them) they spin at ten times the price.
"""

from __future__ import annotations

import numpy as np

from ._stream import Array

__all__ = ["half_inverse", "product"]

_SMALL = 64
_MOST = 2**18  # multiplications in a piece: below OpenBLAS's threshold


def product(a: Array, b: Array) -> Array:
    """``a @ b``."""
    rows = len(a)
    most = max(1, _MOST // (b.shape[0] * b.shape[1] or 1))
    if rows <= most:
        whole: Array = a @ b
        return whole
    pieces = -(-rows // most)
    height = -(-rows // pieces)
    padded = np.zeros((pieces * height, a.shape[1]))
    padded[:rows] = a
    stacked: Array = padded.reshape(pieces, height, -1) @ b
    return stacked.reshape(pieces * height, -1)[:rows]


def half_inverse(matrix: Array) -> Array:
    """The inverse of the Cholesky factor: lower triangular H with H @ matrix @ H.T = 1.

    Raises LinAlgError for a matrix that is not positive definite.
    """
    size = len(matrix)
    if size <= _SMALL:
        return np.linalg.inv(np.linalg.cholesky(matrix))
    m = size // 2
    upper = half_inverse(matrix[:m, :m])
    below = product(matrix[m:, :m], upper.T)
    lower = half_inverse(matrix[m:, m:] - product(below, below.T))
    result = np.zeros((size, size))
    result[:m, :m], result[m:, m:] = upper, lower
    result[m:, :m] = -product(lower, product(below, upper))
    return result
