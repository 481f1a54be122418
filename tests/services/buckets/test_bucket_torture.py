"""Torture in a bucket: workers killed, stopped and steered, objects cut and removed; and broken products, found out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.services.tortures import count, tortured
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


def told(server: Server, place: str, folder: Path, *arguments: str, fault: str = "") -> tuple[int, str]:
    """(exit code, what it said) of a torture in the bucket, of a product with the fault."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(fault)
    url = f"{server.url(place)}?endpoint={server.endpoint}"
    return tortured("--bucket", url, "--store", str(folder / "new"), *arguments, path=folder)


def test_a_minute_of_everything(server: Server, place: str, tmp_path: Path) -> None:
    code, text = told(server, place, tmp_path / "t", "--seconds", "25", "--seed", "5", "--workers", "4")
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
    # a race takes two who meet: of many names, on a machine however busy, some are met at
    many = ("--trials", "90", "--workers", "6") if fault is CARELESS else ()
    code, text = told(server, place, tmp_path / "t", *SHORT, *many, fault=fault)
    assert code == 1
    assert says in text
