"""One server of each kind for all tests of this folder; each test has a prefix of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.services.buckets import stores

_serial = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with stores.weed(tmp_path_factory.mktemp("weed")) as started:
        yield started


@pytest.fixture(scope="session")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with stores.rclone_s3(tmp_path_factory.mktemp("rclone")) as started:
        yield started


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[str]:
    cache = Path(pytestconfig.rootpath) / ".venv" / "azurite"
    with stores.azurite(tmp_path_factory.mktemp("azurite"), cache) as endpoint:
        yield endpoint


@pytest.fixture
def place() -> str:
    return f"p{next(_serial)}"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "AK", "SECRET_ACCESS_KEY": "SK", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
