"""Who carries a mark: nobody is overlooked while it starts its next program or is on its way out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dibs.cell._usage import marked

from .programs import alive

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="without /proc nobody tells who lives")
TEXT = "import sys; held = bytearray(100 << 20); print(1, flush=True); sys.stdin.read()"


@contextmanager
def started(*words: str | Path, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def mark() -> str:
    return f"this-test-{os.getpid()}-{os.urandom(4).hex()}"


def test_one_that_starts_program_after_program_is_always_seen(tmp_path: Path, mark: str) -> None:
    (tmp_path / "again").write_text('#!/bin/sh\nexec "$0"\n')
    (tmp_path / "again").chmod(0o755)
    with started(tmp_path / "again", MARK=mark) as process:
        for _ in range(80):
            assert any(process.pid in pids for pids in marked(f"MARK={mark}".encode()))


def test_one_that_was_killed_is_seen_until_it_has_gone(mark: str) -> None:
    with started(sys.executable, "-c", TEXT, MARK=mark) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert marked(f"MARK={mark}".encode())[0] == [process.pid]
        process.kill()
        while any(process.pid in pids for pids in marked(f"MARK={mark}".encode())):
            continue
        assert not alive(process.pid)


def test_one_that_was_started_with_no_environment_is_nobodys(mark: str) -> None:
    with started(sys.executable, "-I", "-c", TEXT) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert not any(process.pid in pids for pids in marked(f"MARK={mark}".encode()))
