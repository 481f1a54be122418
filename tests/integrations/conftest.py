"""The server that the tests of buckets use, for those here that need a bucket."""

from __future__ import annotations

from tests.buckets.conftest import credentials, place, server

__all__ = ["credentials", "place", "server"]
