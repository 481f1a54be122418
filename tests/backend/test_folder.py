"""The folder backend, claiming by link(2) and by mkdir(2): the whole suite, then what only a folder can suffer."""

from __future__ import annotations

import os
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
TestLinkMachine.settings = TestMkdirMachine.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, derandomize=True
)


def test_folders_wholly_before_the_offset_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FolderBackend(tmp_path)
    for n in range(10):
        for key in (f"t/{n:06d}/0.json", f"t/{n:06d}/1.json"):
            backend.create(key, backend.stage(b""))
    looked_into = []
    scan = os.scandir

    def scandir(path: str) -> object:
        looked_into.append(os.path.relpath(path, tmp_path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [entry.key for entry in backend.list("t/", "t/000008/0.json")] == [
        "t/000008/1.json",
        "t/000009/0.json",
        "t/000009/1.json",
    ]
    assert looked_into == ["t", "t/000008", "t/000009"]
    del looked_into[:]
    assert list(backend.list("t/000001/", "t/000005/")) == []
    assert looked_into == []
