"""Start one of the programs in ``pools`` and hear what the main process was left with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LIMIT_S = 110


def ran(name: str, folder: Path) -> dict[str, Any]:
    """What the program of that name says on its last line; its sink's folder is made in ``folder``, and no warning was said.

    Output goes to files: a pool may leave a process behind that would hold a pipe open. Whatever it left is ended.
    """
    environ = {**os.environ, "DIBS_SINK_DIR": str(folder), "PYTHONWARNINGS": "ignore::DeprecationWarning"}
    out, err = folder.with_suffix(".out"), folder.with_suffix(".err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.sink.pools", name],
            cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(LIMIT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = err.read_text()
    assert code == 0, said
    assert "WARNING:dibs:" not in said, said
    assert "not recorded in full" not in said, said  # by a worker, which has no logging of its own
    found: dict[str, Any] = json.loads(out.read_text().splitlines()[-1])
    return found
