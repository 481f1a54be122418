"""Optuna's own storage tests, as they lie in its wheel, on a folder and on a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.storages import BaseStorage
from optuna.testing.pytest_storages import StorageTestCase
from tests.buckets.servers import Server

from dibs import Store
from dibs.optuna import Storage


class TestFolder(StorageTestCase):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> BaseStorage:
        return Storage(tmp_path / "store")


class TestBucket(StorageTestCase):
    @pytest.fixture
    def storage(self, server: Server, place: str, credentials: None) -> BaseStorage:
        return Storage(Store.on_bucket(server.endpoint, server.bucket, place, create=True))
