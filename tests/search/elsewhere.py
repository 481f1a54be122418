"""What another machine would say: the same questions in a fresh process, computed with something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# another kernel of the linear algebra, and numpy without its vectorised loops: what another machine would compute with
OTHER = [
    {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "4"},
    {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V3", "PYTHONHASHSEED": "7"},
]


def said_elsewhere(code: str, change: dict[str, str]) -> Any:
    """What a process with these variables prints as JSON; numpy's own chance is seeded there, and must mean nothing."""
    run = subprocess.run(
        [sys.executable, "-c", f"import json, sys, numpy; numpy.random.seed(1); {code}"],
        env={**os.environ, **change}, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(run.stdout)
