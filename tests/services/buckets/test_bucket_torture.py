"""Torture in a bucket: workers killed, stopped and steered, objects cut and removed; and broken products, found out."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.torture.test_torture import FORGETFUL

pytestmark = [pytest.mark.services, pytest.mark.timeout(420)]

# a claim that forgets its condition: whoever comes second wins, too
CARELESS = """
import sys
if "dibs.testing._torture_worker" in " ".join(sys.orig_argv):
    from dibs.backend import BucketBackend
    put = BucketBackend._put

    def careless(self, key, draft, mode):
        return put(self, key, draft, "overwrite" if mode == "create" and "/trial/" in key else mode)

    BucketBackend._put = careless
"""
# a look that leaves something behind
MESSY = """
import os, sys
if "dibs.testing._torture_reader" in " ".join(sys.orig_argv):
    from dibs.backend import BucketBackend
    names = BucketBackend.names

    def messy(self, prefix):
        self.put(f"seen/{os.getpid()}.json", self.stage(b"{}"))
        return names(self, prefix)

    BucketBackend.names = messy
"""
SHORT = ("--seconds", "2", "--only", "nothing", "--workers", "4", "--trials", "12", "--trial-s", "0.02", "0.05")


def tortured(server: Server, place: str, folder: Path, *arguments: str, fault: str = "") -> tuple[int, str]:
    """(exit code, what it said); the summary is shown with the test's output."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(fault)
    url = f"{server.url(place)}?endpoint={server.endpoint}"
    done = subprocess.run(
        [sys.executable, "-m", "dibs.testing.torture", "--bucket", url, "--store", str(folder / "new"), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    print(done.stdout[-4000:])
    return done.returncode, done.stdout


def count(what: str, text: str) -> int:
    """The number before some words of the summary."""
    found = re.search(rf"(\d+) {re.escape(what)}", text.rpartition("torture: seed")[2])
    assert found is not None, text
    return int(found[1])


def test_a_minute_of_everything(server: Server, place: str, tmp_path: Path) -> None:
    code, text = tortured(server, place, tmp_path / "t", "--seconds", "25", "--seed", "5", "--workers", "4")
    assert code == 0
    assert count("in a running trial", text) >= 3
    assert count("stops", text) >= 1
    assert re.search(r"[1-9]\d* files (truncated|removed)", text)
    facts = json.loads((tmp_path / "t" / "new" / "facts.json").read_text())
    assert facts["store"] == str(tmp_path / "t" / "new" / "store"), "what is checked is the mirror"


@pytest.mark.parametrize(
    ("fault", "says"),
    [(FORGETFUL, "kept: 1-0 was told done to"), (CARELESS, "once: "), (MESSY, "the readers wrote ['seen/")],
    ids=["forgets a result", "claims without a condition", "writes while it looks"],
)
def test_a_broken_product_is_found_out(fault: str, says: str, server: Server, place: str, tmp_path: Path) -> None:
    code, text = tortured(server, place, tmp_path / "t", *SHORT, fault=fault)
    assert code == 1
    assert says in text
