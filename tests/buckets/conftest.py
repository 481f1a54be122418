"""One server for all tests of this folder; each test has a prefix of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.buckets.servers import Server, moto

_serial = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with moto(tmp_path_factory.mktemp("moto")) as started:
        yield started


@pytest.fixture
def place() -> str:
    return f"p{next(_serial)}"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """The server's key, where its clients look for one."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
