"""Where a cell may write and what it may not read; enforced by the kernel where it can (``_landlock``).

A cell writes beneath its own folder and scratch: temporary folders, caches, devices. What it may write it may read, so
scratch that would hold other cells' folders or a denied path is not given; the cell then has a temporary folder of its
own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dibs.errors import UsageError

from ._landlock import abi

__all__ = ["Isolation", "isolation_status"]

_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "dri", "kfd", "infiniband", "dxg", "accel",
)  # fmt: skip
_ACCELERATORS = ("nvidia*",)
_CACHES = (
    "XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR",
)  # fmt: skip


@dataclass(frozen=True)
class Isolation:
    """``scratch``: real paths, besides its own folder; ``denied``: real paths of what it may not read."""

    scratch: tuple[str, ...]
    denied: tuple[str, ...] = ()
    own_temporary: bool = False

    @classmethod
    def of(
        cls, environ: Mapping[str, str], *, kept: Sequence[Path], more: Iterable[Path] = (), denied: Iterable[Path] = ()
    ) -> Isolation:
        """``kept``: folders where cells have theirs, never scratch as a whole; ``more``: scratch somebody named.

        Raises UsageError for a denied path that is not there, or that holds what the cells need, or is scratch by name.
        """
        shut = tuple(sorted({_real_denied(path, kept) for path in denied}))
        home = environ.get("HOME", "")
        caches = [environ[name] for name in _CACHES if environ.get(name)] + ([f"{home}/.cache"] if home else [])
        temporary = [environ[name] for name in ("TMPDIR", "TEMP", "TMP") if environ.get(name)] + list(_TEMPORARY)
        wanted = [Path(path).resolve() for path in (*temporary, *caches)]
        homes = [path.resolve() for path in kept]
        given = [
            path for path in wanted
            if path.is_dir() and not any(each.is_relative_to(path) for each in homes) and not _overlaps(path, shut)
        ]  # fmt: skip
        named = [path.resolve() for path in more]
        for path in named:
            if _overlaps(path, shut):
                raise UsageError(
                    f"{path} cannot be both written to and denied: {' and '.join(shut)} must lie apart from it"
                )
        own = Path(temporary[0]).resolve() not in given
        devices = [Path("/dev") / name for name in _DEVICES]
        devices += [path for pattern in _ACCELERATORS for path in Path("/dev").glob(pattern)]
        paths = [*given, *named, *(path for path in devices if path.exists())]
        return cls(tuple(dict.fromkeys(map(str, paths))), shut, own)

    def writable(self, own: Sequence[Path]) -> list[str]:
        """All that a cell with these folders of its own may write beneath."""
        return [*(os.path.realpath(path) for path in own), *self.scratch]


def isolation_status() -> str:
    """``enforced (Landlock 7)``, or ``advisory`` and why."""
    version = abi()
    if version:
        return f"enforced (Landlock {version})"
    return "advisory (this kernel has no Landlock: nothing keeps a program from writing elsewhere)"


def _overlaps(path: Path, denied: Sequence[str]) -> bool:
    return any(path.is_relative_to(each) or Path(each).is_relative_to(path) for each in denied)


def _real_denied(path: Path, kept: Sequence[Path]) -> str:
    try:
        real = path.resolve(strict=True)
    except OSError as wrong:
        raise UsageError(f"what is not to be read must be there: {path}: {wrong.strerror or wrong}") from None
    holds = next((each for each in kept if each.resolve().is_relative_to(real)), None)
    if holds is not None or real == Path("/"):
        raise UsageError(f"{path} cannot be denied: {holds or 'everything'} is in it, which a cell has to read")
    return str(real)
