"""Real clients in processes of their own, on a folder; `tests/buckets` has the same in a bucket."""

from __future__ import annotations

from pathlib import Path

from tests.federation.clients import check_five_clients

from dibs import Store


def test_five_clients_make_what_one_process_makes(tmp_path: Path) -> None:
    Store(tmp_path / "store", create=True)
    check_five_clients(tmp_path, str(tmp_path / "store"))
