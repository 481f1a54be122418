"""Optuna's own storage tests, as they lie in its wheel, by the rules of a folder and of a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.storages import BaseStorage
from optuna.testing.pytest_storages import StorageTestCase
from tests.buckets.servers import Server
from tests.parts import store_over

from dibs import Store
from dibs.backend import MemoryBackend
from dibs.optuna import Storage


class TestFolder(StorageTestCase):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> BaseStorage:
        return Storage(tmp_path / "store")


class TestBucket(StorageTestCase):
    """A bucket's rules without its requests: processes that race on a server are in test_optuna_storage.py."""

    @pytest.fixture
    def storage(self) -> BaseStorage:
        return Storage(store_over(MemoryBackend(conditional_replace=True)))

    def test_pickle_storage(self, server: Server, place: str, credentials: None) -> None:
        """What lies in this process's memory cannot be sent to another."""
        super().test_pickle_storage(Storage(Store.on_bucket(server.endpoint, server.bucket, place, create=True)))
