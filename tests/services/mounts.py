"""Real file systems, each mounted twice: two mounts on one machine share nothing but what two machines would share.

Everything is started here on the loopback, ended by pid and unmounted again, whatever happened in between. What is
not installed is a skip with its reason; `make test-services` installs it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

START_S = 60.0
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Mounts:
    """One file system through two mounts."""

    fstype: str
    a: Path
    b: Path


def tool(name: str) -> str:
    """The path of a program; a skip where it is not installed."""
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    if found is None:
        pytest.skip(f"{name} is not installed: make test-services installs it")
    return found


def until(true: Callable[[], bool], what: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until it holds; an error with what the process said if it does not, or if the process has ended."""
    deadline = time.monotonic() + START_S
    while not true():
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"{what}: the process ended with {process.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {START_S:g} s")
        time.sleep(0.05)


@contextmanager
def process(words: list[str], log: Path, stop: signal.Signals = signal.SIGTERM, **environ: str) -> Iterator[Any]:
    """A process of our own; at the end it is asked to go, and killed if it does not."""
    out: IO[bytes]
    with log.open("wb") as out:
        started = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=log.parent, start_new_session=True,
            env={**os.environ, "HOME": str(log.parent), **environ},
        )  # fmt: skip
        try:
            yield started
        finally:
            if started.poll() is None:
                started.send_signal(stop)
            with suppress(subprocess.TimeoutExpired):
                started.wait(10)
            started.kill()
            started.wait()


@contextmanager
def mount(words: list[str], point: Path, log: Path, **environ: str) -> Iterator[Path]:
    """A FUSE file system in the foreground, unmounted at the end so that its process ends by itself."""
    point.mkdir(parents=True)
    with process(words, log, **environ) as started:
        try:
            until(lambda: os.path.ismount(point), f"{words[0]} at {point} (see {log})", started)
            yield point
        finally:
            if os.path.ismount(point):
                done = subprocess.run([tool("fusermount3"), "-u", point], check=False, capture_output=True)
                if done.returncode:  # somebody is in it still
                    subprocess.run(["umount", "-l", point], check=False)
            with suppress(subprocess.TimeoutExpired):
                started.wait(10)


@contextmanager
def twice(fstype: str, folder: Path, words: Callable[[str], list[str]], log: str = "log") -> Iterator[Mounts]:
    """One file system through two mounts, ``a`` and ``b`` in the folder; ``words``: the command that mounts one."""
    with ExitStack() as stack:
        points = [stack.enter_context(mount(words(name), folder / name, folder / f"{name}.{log}")) for name in "ab"]
        yield Mounts(fstype, *points)


def free_port() -> int:
    """A port that nobody listens on, nor on the one that SeaweedFS adds 10,000 to get.

    Tests that run side by side are given other ones, so that none is taken between this look and the server's own.
    """
    lane = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for port in range(20_000 + os.getpid() % 1_000 * 10 + lane % 10, 40_000, 10):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port
    raise RuntimeError("no port is free")


_given: set[int] = set()


# ---- JuiceFS: SQLite for the names, a folder for the bytes


@contextmanager
def juicefs(folder: Path) -> Iterator[Mounts]:
    program, meta = tool("juicefs"), f"sqlite3://{folder}/meta.db"
    made = [program, "format", "--storage", "file", "--bucket", f"{folder}/bytes/", meta, "tested"]
    subprocess.run(made, check=True, capture_output=True, env={**os.environ, "HOME": str(folder)})

    def words(name: str) -> list[str]:
        return [
            program, "mount", "--no-usage-report", "--no-syslog", "--metrics", f"127.0.0.1:{free_port()}",
            "--cache-dir", f"{folder}/cache-{name}", "--log", f"{folder}/{name}.log", meta, f"{folder}/{name}",
        ]  # fmt: skip

    with twice("fuse.juicefs", folder, words, log="out") as mounted:
        yield mounted


# ---- SeaweedFS: a server, which is also a bucket, and its own mount


@dataclass(frozen=True)
class Server:
    """A SeaweedFS server on the loopback."""

    folder: Path
    filer: int
    s3: int
    bucket: str = "tested"
    key: str = "AKIATEST"
    secret: str = "SECRETTEST"


@contextmanager
def seaweed_server(folder: Path) -> Iterator[Server]:
    program = tool("weed")
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    server = Server(folder, ports["filer"], ports["s3"])
    who = {"name": "t", "credentials": [{"accessKey": server.key, "secretKey": server.secret}]}
    (folder / "s3.json").write_text(
        json.dumps({"identities": [{**who, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]})
    )
    (folder / "data").mkdir()
    words = [
        program, "-logtostderr=true", "server", f"-dir={folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={ports['master']}", f"-volume.port={ports['volume']}", "-filer=true",
        f"-filer.port={server.filer}", "-s3", f"-s3.port={server.s3}", f"-s3.config={folder}/s3.json",
        "-volume.max=20", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s", "-master.raftHashicorp=false",
        "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
    ]  # fmt: skip
    try:
        # it holds its ports for long after SIGTERM, and there is nothing in it that anybody wants
        with process(words, folder / "server.log", stop=signal.SIGKILL) as started:
            until(lambda: answers(f"http://127.0.0.1:{server.filer}/"), f"weed (see {folder}/server.log)", started)
            until(lambda: answers(f"http://127.0.0.1:{server.s3}/"), f"weed's S3 (see {folder}/server.log)", started)
            yield server
    finally:
        for port in (each + more for each in ports.values() for more in (0, 10_000)):
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                path.unlink(missing_ok=True)


def answers(url: str) -> bool:
    """Whether something speaks HTTP there, whatever it says."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except OSError:
        return False


@contextmanager
def seaweedfs(server: Server, folder: Path) -> Iterator[Mounts]:

    def words(name: str) -> list[str]:
        return [
            tool("weed"), "-logtostderr=true", "mount", f"-filer=127.0.0.1:{server.filer}",
            f"-dir={folder}/{name}", f"-cacheDir={folder}/cache-{name}", "-dirAutoCreate=false",
            f"-localSocket={folder}/{name}.sock",
        ]  # fmt: skip

    with twice("fuse.seaweedfs", folder, words) as mounted:
        yield mounted


# ---- buckets that are mounted


@contextmanager
def s3fs(server: Server, folder: Path) -> Iterator[Mounts]:
    rclone_settings(server, folder)
    password = folder / "password"
    password.write_text(f"{server.key}:{server.secret}")
    password.chmod(0o600)

    def words(name: str) -> list[str]:
        return [
            tool("s3fs"), server.bucket, f"{folder}/{name}", "-f", "-o", f"passwd_file={password}",
            "-o", f"url=http://127.0.0.1:{server.s3}", "-o", "use_path_request_style",
        ]  # fmt: skip

    with twice("fuse.s3fs", folder, words) as mounted:
        yield mounted


@contextmanager
def rclone(server: Server, folder: Path) -> Iterator[Mounts]:
    settings = rclone_settings(server, folder)

    def words(name: str) -> list[str]:
        return [
            tool("rclone"), "--config", str(settings), "mount", "--vfs-cache-mode", "writes",
            "--cache-dir", f"{folder}/cache-{name}", f"w:{server.bucket}", f"{folder}/{name}",
        ]  # fmt: skip

    with twice("fuse.rclone", folder, words) as mounted:
        yield mounted


def rclone_settings(server: Server, folder: Path) -> Path:
    """rclone's own settings; the bucket is there afterwards."""
    path = folder / "rclone.conf"
    path.write_text(
        "[w]\ntype = s3\nprovider = Other\nforce_path_style = true\n"
        f"access_key_id = {server.key}\nsecret_access_key = {server.secret}\nendpoint = http://127.0.0.1:{server.s3}\n"
    )
    made = [tool("rclone"), "--config", str(path), "mkdir", f"w:{server.bucket}"]
    subprocess.run(made, check=True, capture_output=True, timeout=START_S)
    return path
