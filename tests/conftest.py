"""What each process of the tests starts with, and the hundreds of processes that they start; where their files lie."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# Containers like to forbid byte code: every process would then compile dibs, and pytest all tests, again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Ctrl-C counts even where the tests were started in the background, which a shell does with Ctrl-C ignored, for them and
# for all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The matrices here are small: OpenBLAS makes threads for them that mostly wait for one another, at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shared machine is slow when it likes: no example is a failure for the time it took.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

_MEMORY, _ROOM_BYTES = Path("/dev/shm"), 1 << 30


def _roomy() -> bool:
    """Whether there is memory that files can lie in, much of it, and programs may be started from there."""
    try:
        there = os.statvfs(_MEMORY)
    except OSError:
        return False
    free = there.f_bavail * there.f_frsize >= _ROOM_BYTES
    return free and os.access(_MEMORY, os.W_OK) and not there.f_flag & getattr(os, "ST_NOEXEC", 0)


# The tests and what they start make some hundred thousand files, and want nothing of a disk, where a name may cost fifty
# times as much: temporary files lie in memory if there is room, and TMPDIR does not say otherwise. Workers inherit both.
# Not all of them: what a file system does is tested on a disk, and so is what changes a folder behind a view's back. The
# view may find a second change within a tick of the folder's stamp a tenth of a second late, and memory is that fast.
_DISK = os.environ.setdefault("DISK_OF_TESTS", tempfile.gettempdir())
if "TMPDIR" not in os.environ and _roomy():
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder where temporary files lie without this: on a disk, as a rule."""
    with TemporaryDirectory(prefix="dibs-tests-", dir=_DISK) as made:
        yield Path(made)


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder where temporary files lie with this, also among tests on the disk."""
    with TemporaryDirectory(prefix="dibs-tests-") as made:
        yield Path(made)
