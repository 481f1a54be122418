"""Real object stores for tests: started on free loopback ports, ended by pid."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Server", "free_port", "moto"]

LIMIT_S = 60.0


@dataclass(frozen=True)
class Server:
    """An S3 endpoint and the bucket in it that is the test's own."""

    endpoint: str
    bucket: str
    key: str = "AK"
    secret: str = "SK"

    def options(self) -> dict[str, str]:
        """What the client needs to be told."""
        return {
            "endpoint": self.endpoint, "access_key_id": self.key, "secret_access_key": self.secret, "region": "us-east-1",
            "virtual_hosted_style_request": "false",
        }  # fmt: skip

    def url(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], log: Path, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, killed at the end whatever happens."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environ})
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def port_said(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port it listens on, which it chose itself; an AssertionError with the log if it ends or never says so.

    A port chosen for it could be somebody else's by the time it is there.
    """
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"Running on http://127\.0\.0\.1:(\d+)\s", log.read_text(errors="replace")):
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(f"the server did not come up:\n{log.read_text(errors='replace')[-2000:]}")


@contextlib.contextmanager
def moto(folder: Path, **environ: str) -> Iterator[Server]:
    """moto's S3: fast, honest about conditions, and by answering in turn it gives a name once."""

    log = folder / "moto.log"
    command = [sys.executable, str(Path(__file__).with_name("moto_in_turn.py"))]
    with running(command, log, **environ) as process:
        port = port_said(process, log)
        server = Server(f"http://127.0.0.1:{port}", "studies")

        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("PUT", "/studies")
        assert connection.getresponse().status == 200
        connection.close()
        yield server
