"""Tensors in files: written piece by piece, and mapped instead of read, so that a model is never in memory as a whole."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import final

import numpy as np

from dibs.errors import UpdateError
from dibs.record._safetensors import read_header

from ._exports import Flat, Layout, layout_of
from ._header import header_bytes, places_of
from ._values import STORED, Array, Tensor

__all__ = ["Mapped", "chunks_of", "open_tensors", "stream"]

_CHUNK = 1 << 20


@final
class Mapped(Mapping[str, Tensor]):
    """The tensors of a file by name, each a view of it. They stay good after the file was removed."""

    def __init__(self, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        self._tensors, self.metadata = tensors, metadata

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def open_tensors(path: str | os.PathLike[str], *, write: bool = False) -> Mapped:
    """Map a safetensors file. The header is checked before a byte of a tensor is looked at.

    ``write``: the arrays may be written to, which changes memory and never the file; else they are read-only. Raises UpdateError (it is none, or is damaged), OSError (it is not there). A file that somebody cuts while it is
    mapped ends the process, so give one that is yours.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            header, start = read_header(file, size)
        except ValueError as wrong:
            raise UpdateError(f"{Path(path).name} is no file of tensors: {wrong}") from None
        access = mmap.ACCESS_COPY if write else mmap.ACCESS_READ
        whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=access), np.uint8)
    data = whole[start:]
    tensors = {
        name: Tensor(place.dtype, data[place.begin : place.end].view(STORED[place.dtype]).reshape(place.shape))
        for name, place in sorted(header.places.items())
    }
    return Mapped(tensors, header.metadata)


def stream(layout: Layout, metadata: Mapping[str, str], pieces: Callable[[str], Iterable[Array]]) -> Iterator[bytes]:
    """The bytes of a file, in order: ``pieces`` gives the flat words of a tensor, piece by piece."""
    places = places_of(layout)
    yield header_bytes(places, metadata)
    for name in places:
        for piece in pieces(name):
            yield piece.tobytes()


def chunks_of(tensors: Flat, metadata: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of a file with these tensors."""

    def pieces(name: str) -> Iterator[Array]:
        words = np.ascontiguousarray(tensors[name].words).reshape(-1)
        step = max(1, _CHUNK // words.itemsize)
        for at in range(0, len(words), step):
            yield words[at : at + step]

    return stream(layout_of(tensors), metadata, pieces)
