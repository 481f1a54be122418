"""What each process of the tests starts with, and the hundreds of processes that they start."""

from __future__ import annotations

import os
import sys

# Containers like to forbid byte code: every process would then compile dibs, and pytest all tests, again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The matrices here are small: OpenBLAS makes threads for them that mostly wait for one another, at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
