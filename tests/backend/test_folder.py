"""The folder backend, claiming by link(2) and by mkdir(2): the whole suite, then what only a folder can suffer."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from dibs.backend import FolderBackend
from dibs.testing import BackendMachine, BackendSuite


class TestLink(BackendSuite):
    race_processes = 3

    @pytest.fixture
    def backend(self, tmp_path: Path) -> FolderBackend:
        return FolderBackend(tmp_path)


class TestMkdir(BackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> FolderBackend:
        return FolderBackend(tmp_path, claim="mkdir")


class FolderMachine(BackendMachine):
    claim = "link"

    def make_backend(self) -> FolderBackend:
        self.folder = tempfile.mkdtemp()
        return FolderBackend(self.folder, claim=self.claim)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


class MkdirMachine(FolderMachine):
    claim = "mkdir"


TestLinkMachine = FolderMachine.TestCase
TestMkdirMachine = MkdirMachine.TestCase
TestLinkMachine.settings = TestMkdirMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
