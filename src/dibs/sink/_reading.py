"""Metadata files as entries, one per trial, and the one artefact that is wanted. What cannot be read is named, not raised."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

from dibs._passing import interrupts
from dibs.errors import StoreError

from ._score import Standing, standing
from ._spool import BLOB, KEPT, SEEN
from ._values import unpack

__all__ = ["Entry", "load", "read", "said", "standings"]

_BLOB_NAME = re.compile(rf"{BLOB}\d+-[0-9a-f]{{16}}-\d{{6,}}\.pkl", re.ASCII)  # a file of this folder, and of a sink


class Entry(NamedTuple):
    """One trial as its file has it. ``packed``: the parameters as they are compared; ``blob``: empty without an artefact."""

    trial: str
    score: float
    packed: Any
    params: Any
    scalars: dict[str, Any]
    boot: str
    tick: float
    wall: float
    error: str | None
    blob: str
    size: int


def read(folder: str) -> tuple[list[Entry], list[str]]:
    """One entry per trial, that with the blob if there are two; and the names of what could not be read.

    StoreError if the folder is not there. The files are small, and each is whole: they are only ever replaced.
    """
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError as error:
        if interrupts(error):
            raise
        raise StoreError(
            f"the sink's folder {folder} cannot be read ({error.strerror}): call best() before cleanup(), and within the "
            f"`with` block"
        ) from error
    entries: dict[str, Entry] = {}
    skipped = []
    for name in names:
        if name.startswith((SEEN, KEPT)) and name.endswith(".json"):
            try:
                entry = _entry(json.loads(Path(folder, name).read_bytes()))
            except Exception as error:  # whatever a damaged file causes
                if interrupts(error):
                    raise
                skipped.append(name)
                continue
            if entry.blob or entry.trial not in entries:
                entries[entry.trial] = entry
    return list(entries.values()), skipped


def standings(folder: str, maximize: bool) -> tuple[Standing, Standing]:
    """How all trials in the folder stand, and those with an artefact; as without any where that cannot be found out."""
    try:
        entries, _ = read(folder)
    except StoreError:
        entries = []
    return (
        standing([each.score for each in entries], maximize),
        standing([each.score for each in entries if each.blob], maximize),
    )


def _entry(meta: Any) -> Entry:
    """An Exception for anything that no process has written."""
    blob, size, error = meta.get("blob", ""), meta.get("bytes", 0), meta.get("artifact_error")
    texts, numbers = (meta["trial"], meta["boot"], blob, error or ""), (meta["score"], meta["tick"], meta["wall"])
    scalars = unpack(meta["scalars"])
    if not (
        all(type(text) is str for text in texts)
        and all(type(number) is float and math.isfinite(number) for number in numbers)
        and (not blob or _BLOB_NAME.fullmatch(blob))
        and type(size) is int
        and isinstance(scalars, dict)
    ):
        raise ValueError("not a trial of a sink")
    return Entry(
        meta["trial"], meta["score"], meta["params"], unpack(meta["params"]), scalars, meta["boot"], meta["tick"],
        meta["wall"], error, blob, size,
    )  # fmt: skip


def load(folder: str, entry: Entry) -> tuple[Any, str | None]:
    """The entry's artefact and None, or None and why not. FileNotFoundError, before anything is unpickled: no such file.

    Whatever the artefact's own code raises is a reason; only what is no Exception passes, and what a signal handler raises.
    """
    with Path(folder, entry.blob).open("rb") as file:
        try:
            if (size := os.fstat(file.fileno()).st_size) != entry.size:
                return None, f"has {size} bytes of {entry.size}"
            return pickle.load(file), None
        except Exception as error:
            if interrupts(error):
                raise
            return None, f"could not be unpickled: {said(error)}"


def said(error: BaseException) -> str:
    """An error as text, even one that cannot say what it is."""
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except Exception as unsaid:
        if interrupts(unsaid):
            raise
        return type(error).__name__
