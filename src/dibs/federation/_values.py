"""A tensor's values as they lie in a file, and as float64 to compute with. Pure.

Types that numpy has no word for (BF16) are kept as the unsigned words they lie in, and widened for computing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dibs.errors import UpdateError
from dibs.record._safetensors import MOST_DIMENSIONS

__all__ = ["STORED", "Array", "Tensor", "as_tensor", "finite", "is_float", "narrow", "plain_value", "widen"]

Array = npt.NDArray[Any]
#: name in safetensors -> how its words lie in numpy (little-endian)
STORED = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2", "C64": "<c8", "F8_E4M3": "|u1",
    "F8_E5M2": "|u1", "F8_E8M0": "|u1",
}  # fmt: skip
_FLOATS = ("F16", "F32", "F64", "BF16")
_NO_AVERAGE = ("C64", "F8_E4M3", "F8_E5M2", "F8_E8M0")
_NAMES = {np.dtype(stored): name for name, stored in STORED.items() if name not in ("BF16", *_NO_AVERAGE)}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor as it lies in a file: the name of its type, and its words in their shape.

    Needed only for what numpy has no type for: ``Tensor("BF16", words)`` with ``words`` of ``uint16``.
    """

    dtype: str
    words: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.words.shape)

    @property
    def layout(self) -> tuple[str, tuple[int, ...]]:
        """What must be the same for all clients: type and shape."""
        return self.dtype, self.shape


def as_tensor(value: Any, client: str, name: str) -> Tensor:
    """The value as a tensor that can be averaged. Raises UpdateError, which names client and tensor."""
    if isinstance(value, Tensor):
        stored = STORED.get(value.dtype)
        if stored is None or value.words.dtype != np.dtype(stored):
            raise UpdateError(
                f"tensor {name!r} of {client!r}: {value.dtype!r} does not lie in words of {value.words.dtype}",
                client=client, tensor=name,
            )  # fmt: skip
        found = value
    else:
        array = _array(value, client, name)
        dtype = _NAMES.get(array.dtype.newbyteorder("<"))
        if dtype is None:
            raise UpdateError(
                f"tensor {name!r} of {client!r} is of type {array.dtype}, which cannot be averaged: give bool, integers "
                "or floats of 16 to 64 bits",
                client=client, tensor=name,
            )  # fmt: skip
        found = Tensor(dtype, array.astype(STORED[dtype], copy=False))
    if len(found.shape) > MOST_DIMENSIONS:
        raise UpdateError(
            f"tensor {name!r} of {client!r} has {len(found.shape)} dimensions, and {MOST_DIMENSIONS} is the most: reshape it",
            client=client, tensor=name,
        )  # fmt: skip
    if found.dtype in _NO_AVERAGE:
        raise UpdateError(
            f"tensor {name!r} of {client!r} is of type {found.dtype}, which cannot be averaged: widen it before",
            client=client, tensor=name,
        )  # fmt: skip
    return found


def _array(value: Any, client: str, name: str) -> Array:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as wrong:  # a ragged list; what another library will not hand over
        raise UpdateError(
            f"tensor {name!r} of {client!r} cannot be read as an array: {str(wrong)[:200]}", client=client, tensor=name
        ) from None
    if np.ma.is_masked(value):
        raise UpdateError(
            f"tensor {name!r} of {client!r} has masked values, and an average knows no masks: fill them before",
            client=client, tensor=name,
        )  # fmt: skip
    return array


def plain_value(tensor: Tensor) -> Array | Tensor:
    """The array, where numpy has the type; else the tensor itself."""
    return tensor if tensor.dtype in ("BF16", *_NO_AVERAGE) else tensor.words


def is_float(dtype: str) -> bool:
    """Whether values of the type are averaged; the others follow a policy."""
    return dtype in _FLOATS


def widen(words: Array, dtype: str) -> npt.NDArray[np.float64]:
    """The exact values as float64."""
    if dtype == "BF16":
        words = (words.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return words.astype(np.float64)


def narrow(values: npt.NDArray[np.float64], dtype: str) -> Array:
    """The values in the type's words, rounded to the nearest, ties to even (BF16 by way of F32)."""
    if dtype != "BF16":
        return values.astype(STORED[dtype])
    bits = values.astype(np.float32).view(np.uint32)
    carry = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    return ((bits + carry) >> np.uint32(16)).astype("<u2")


def finite(words: Array, dtype: str) -> bool:
    """Whether there is no NaN and no infinity among the values."""
    if not is_float(dtype):
        return True
    if dtype == "BF16":
        return not bool(((words & np.uint16(0x7FFF)) >= np.uint16(0x7F80)).any())
    return bool(np.isfinite(words).all())
