"""The server that the other tests of this folder rely on gives a name once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.buckets.servers import moto

from dibs.backend import BucketBackend
from dibs.testing._backend_races import check_race, claim_all

# moto looks whether the name is there, and writes; here it dawdles in between
SLOW = """
import sys, time
if any(name.endswith("moto_in_turn.py") for name in sys.orig_argv):
    from moto.s3.models import S3Backend
    put = S3Backend.put_object

    def slow(self, *args, **kwargs):
        time.sleep(0.05)
        return put(self, *args, **kwargs)

    S3Backend.put_object = slow
"""


def test_of_many_who_create_a_name_at_once_one_is_first(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    with moto(tmp_path, PYTHONPATH=str(tmp_path)) as server:
        backend = BucketBackend(server.url("race"), server.options())
        keys = [f"race/{n:04d}.json" for n in range(5)]
        gate = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            asked = {mark: pool.submit(claim_all, backend, keys, mark, gate.wait) for mark in (b"0", b"1", b"2", b"3")}
            check_race(backend, keys, {mark: told.result() for mark, told in asked.items()})
