"""Where updates lie while they are looked at: a folder of one's own under ``DIBS_WORK``, else in the machine's temporary folder."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dibs._passing import interrupts
from dibs.errors import DibsError, StoreError

__all__ = ["room"]


@contextmanager
def room() -> Iterator[Path]:
    """A folder that is gone afterwards. Raises StoreError if there is none to be had, or no room in it."""
    there = os.environ.get("DIBS_WORK") or None
    try:
        with tempfile.TemporaryDirectory(dir=there, prefix="dibs-round-") as folder:
            yield Path(folder)
    except DibsError:
        raise
    except OSError as wrong:
        if interrupts(wrong):
            raise
        if wrong.errno in (errno.EMFILE, errno.ENFILE):
            raise StoreError(
                f"too many files are open ({wrong.strerror}): an averager holds one for each client, and so does each average "
                "that is kept; raise `ulimit -n`, or keep fewer"
            ) from wrong
        where = there or tempfile.gettempdir()
        raise StoreError(
            f"{where}, where updates lie while they are averaged, cannot be used ({wrong.strerror or wrong}): make room there, "
            "or set DIBS_WORK to another folder"
        ) from wrong
