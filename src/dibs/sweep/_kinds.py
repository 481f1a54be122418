"""Which files are loaded how, by their names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from dibs.errors import UsageError

__all__ = ["BEGUN", "KINDS", "kind_of", "loader_of", "matches"]

BEGUN = "begun"  #: what a process that loads says once it has what it needs for it
#: kind -> the suffixes it is known by
KINDS = {
    "torch": (".pt", ".pth", ".ckpt"),
    "safetensors": (".safetensors",),
    "npz": (".npz",),
    "npy": (".npy",),
    "json": (".json",),
    "jsonl": (".jsonl", ".ndjson"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet",),
    "toml": (".toml",),
    "text": (".txt", ".log", ".out", ".err", ".md"),
    "pickle": (".pkl", ".pickle", ".joblib"),
}
_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")


def kind_of(path: str, loaders: Sequence[tuple[str, str]] = ()) -> str | None:
    """A kind, ``module:function``, or None for a file nobody knows how to load. The first pattern that fits decides."""
    for pattern, how in loaders:
        if matches(path, pattern):
            return how
    name = path.lower()
    return next((kind for kind, suffixes in KINDS.items() if name.endswith(suffixes)), None)


def loader_of(text: str) -> tuple[str, str]:
    """``'*.bin=module:function'``, or a kind in place of the function. Raises UsageError."""
    pattern, equals, how = text.partition("=")
    if not equals or not pattern or not (how in KINDS or _OWN.match(how)):
        raise UsageError(
            f"{text!r:.200} is no loader: write 'PATTERN=module:function', such as '*.bin=mine:load', or a kind in place of the "
            f"function: {', '.join(KINDS)}"
        )
    return pattern, how


def matches(path: str, pattern: str) -> bool:
    """Whether the pattern fits ``cell/file``, or the file's name alone."""
    return fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)
