"""Real object stores, started on the loopback: SeaweedFS keeps its conditions, rclone's S3 server does not, Azurite is Azure's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.services.mounts import answers, free_port, process, tool, until

__all__ = ["AZURITE_KEY", "azurite", "rclone_s3", "weed"]

READER, DROPPER = ("READER", "READERSECRET"), ("DROPPER", "DROPPERSECRET")  # may not write; may not list
# the well-known key of every emulator
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextmanager
def weed(folder: Path) -> Iterator[Server]:
    """SeaweedFS in one process: a real server, exclusive under races, with a few identities of limited rights."""
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    people = [
        (("AK", "SK"), ["Admin", "Read", "Write", "List"]),
        (READER, ["Read", "List"]),
        (DROPPER, ["Read", "Write"]),
    ]
    identities = [
        {"name": key.lower(), "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
        for (key, secret), actions in people
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    (folder / "data").mkdir()
    words = [
        tool("weed"), "-logtostderr=true", "mini", f"-dir={folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        *(f"-{name}.port={port}" for name, port in ports.items()), f"-s3.config={folder}/s3.json", "-admin.ui=false",
        "-webdav=false", "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false",
    ]  # fmt: skip
    endpoint = f"http://127.0.0.1:{ports['s3']}"
    try:
        # it holds its ports for long after SIGTERM, and there is nothing in it that anybody wants
        with process(words, folder / "weed.log", stop=signal.SIGKILL) as started:
            server = Server(endpoint, "studies")
            until(lambda: answers(endpoint), f"weed (see {folder}/weed.log)", started)
            until(lambda: made(server), f"a bucket (see {folder}/weed.log)", started)
            yield server
    finally:
        for port in ports.values():
            for number in (port, port + 10_000):
                for path in Path("/tmp").glob(f"seaweedfs-*-{number}.sock"):
                    path.unlink(missing_ok=True)


def made(server: Server) -> bool:
    """Whether the bucket is there and takes a write; makes it."""
    import boto3  # comes with moto
    import botocore.exceptions

    client = boto3.client(
        "s3", endpoint_url=server.endpoint, aws_access_key_id=server.key, aws_secret_access_key=server.secret,
        region_name="us-east-1",
    )  # fmt: skip
    try:
        if server.bucket not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=server.bucket)
        client.put_object(Bucket=server.bucket, Key="ready", Body=b"")
        client.delete_object(Bucket=server.bucket, Key="ready")
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
        return False
    return True


@contextmanager
def rclone_s3(folder: Path) -> Iterator[Server]:
    """rclone's S3 server, which ignores conditions."""
    port, (key, secret) = free_port(), ("AKIATEST", "SECRETTEST")
    (folder / "data" / "studies").mkdir(parents=True)
    words = [tool("rclone"), "serve", "s3", f"--addr=127.0.0.1:{port}", f"--auth-key={key},{secret}", f"{folder}/data"]
    with process(words, folder / "rclone.log") as started:
        until(lambda: answers(f"http://127.0.0.1:{port}"), f"rclone (see {folder}/rclone.log)", started)
        yield Server(f"http://127.0.0.1:{port}", "studies", key, secret)


@contextmanager
def azurite(folder: Path, cache: Path) -> Iterator[str]:
    """Azurite's blob endpoint; installed with npm into ``cache`` the first time (a skip where that does not work)."""
    program = cache / "node_modules" / ".bin" / "azurite-blob"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed: apt-get install npm")
        cache.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(cache), "azurite@3"]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=300)
        except (subprocess.SubprocessError, OSError) as wrong:
            pytest.skip(f"Azurite could not be installed with npm: {wrong}")
    port = free_port()
    words = [
        str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", f"{folder}/data", "--silent",
        "--skipApiVersionCheck",
    ]  # fmt: skip
    with process(words, folder / "azurite.log", AZURITE_TELEMETRY="0", PATH=os.environ.get("PATH", "")) as started:
        until(lambda: answers(f"http://127.0.0.1:{port}"), f"azurite (see {folder}/azurite.log)", started)
        yield f"http://127.0.0.1:{port}/devstoreaccount1"
