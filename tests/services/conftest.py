"""Each file system is mounted once for all tests, when the first one wants it, and unmounted at the end; so with Slurm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.services import mounts
from tests.services import slurm as clusters
from tests.services.mounts import Mounts, Server


@pytest.fixture(scope="session")
def juicefs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    with mounts.juicefs(tmp_path_factory.mktemp("juicefs")) as mounted:
        yield mounted


@pytest.fixture(scope="session")
def seaweed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with mounts.seaweed_server(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs(seaweed_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    with mounts.seaweedfs(seaweed_server, tmp_path_factory.mktemp("weed")) as mounted:
        yield mounted


@pytest.fixture(scope="session")
def s3fs(seaweed_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    with mounts.s3fs(seaweed_server, tmp_path_factory.mktemp("s3fs")) as mounted:
        yield mounted


@pytest.fixture(scope="session")
def rclone(seaweed_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounts]:
    with mounts.rclone(seaweed_server, tmp_path_factory.mktemp("rclone")) as mounted:
        yield mounted


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Slurm]:
    with clusters.slurm(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster
