"""The torture's store in a bucket, and its raw files: a mirror, filled by the plain client with list and get alone.

Neither dibs.store nor dibs.backend has a part in it: the URL is split here, credentials come from the environment, and
what the bucket holds is what the files say, byte for byte, with ``last_modified`` as mtime.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from dibs.errors import UsageError

from ._raw_check import Raw
from ._torture_disk import Disk

__all__ = ["Bucket"]


class Bucket(Disk):
    """A prefix of its own in a bucket. Raises UsageError: no client, an unusable URL, or something is there already."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder, tmpfs=False)
        self.url = url
        self._seen: dict[str, str] = {}  # key -> etag of the bytes that the mirror holds
        self._client = _client(url)
        try:
            found = next(self._list(), None)
        except Exception as wrong:  # whatever the client makes of a server, or of there being none
            raise UsageError(f"{url} cannot be listed: {str(wrong).splitlines()[0][:300]}") from None
        if found is not None:
            raise UsageError(f"{url} is not empty ({found['path']!r}, ...): give a new prefix")
        self.store.mkdir()

    @property
    def address(self) -> str:
        return self.url

    def raw(self, study: str) -> Raw:
        self._mirror()
        return super().raw(study)

    def listing(self) -> dict[str, str] | None:
        return {meta["path"]: f"{_etag(meta)} {meta['last_modified']}" for meta in self._list()}

    def _mirror(self) -> None:
        """Fetch what has another etag than last time, forget what is gone."""
        import obstore

        there = {meta["path"]: meta for meta in self._list()}
        for key in self._seen.keys() - there.keys():
            self._drop(key)
        for key, meta in there.items():
            path = self.store / key
            if self._seen.get(key) != _etag(meta):
                try:
                    found = obstore.get(self._client, key)
                    data = bytes(found.bytes())
                except FileNotFoundError:  # since the listing
                    self._drop(key)
                    continue
                meta = found.meta
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                self._seen[key] = _etag(meta)
            stamp = meta["last_modified"].timestamp()
            os.utime(path, (stamp, stamp))

    def _drop(self, key: str) -> None:
        self._seen.pop(key, None)
        (self.store / key).unlink(missing_ok=True)

    def _list(self, prefix: str | None = None) -> Iterator[Any]:
        import obstore

        for chunk in obstore.list(self._client, prefix):
            yield from chunk

    # by hand

    def keys(self, prefix: str) -> list[str]:
        return sorted(meta["path"] for meta in self._list(prefix) if meta["path"].endswith(".json"))

    def truncate(self, key: str, share: float) -> None:
        """Put a cut object over the one that was read: nothing that has changed or gone meanwhile comes back."""
        import obstore
        from obstore.exceptions import PreconditionError

        with suppress(FileNotFoundError, PreconditionError):
            found = obstore.get(self._client, key)
            data = bytes(found.bytes())
            mode: Any = {name: found.meta[name] for name in ("e_tag", "version") if found.meta[name] is not None}
            obstore.put(self._client, key, data[: int(len(data) * share)], mode=mode, use_multipart=False)

    def remove(self, key: str) -> None:
        import obstore

        with suppress(FileNotFoundError):
            obstore.delete(self._client, key)

    def age(self, raw: Raw) -> None:
        """Nobody sets a bucket's stamps; the workers' patience with what is torn is of seconds instead (``hurry``)."""

    def forget(self) -> None:
        for meta in list(self._list()):
            self.remove(meta["path"])


def _etag(meta: Any) -> str:
    """Without its quotes: some listings leave them out."""
    return str(meta["e_tag"]).strip('"')


def _client(url: str) -> Any:
    place, _, query = url.partition("?")
    options: dict[str, Any] = dict(parse_qsl(query))
    endpoints = (options.get("endpoint"), os.environ.get("AWS_ENDPOINT_URL_S3"), os.environ.get("AWS_ENDPOINT_URL"))
    plain = any(str(where).startswith("http://") for where in endpoints)
    try:
        from obstore.store import from_url

        # a server that is not there is told of in half a minute
        patience: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
        return from_url(place, **options, client_options={"allow_http": plain}, retry_config=patience)
    except ImportError:
        raise UsageError(f"{place} is a bucket, which needs the extra `bucket` of dibs: pip install obstore") from None
    except Exception as wrong:  # an option that the client does not know, credentials it cannot read, and so on
        raise UsageError(f"{place} cannot be opened: {str(wrong).splitlines()[0][:300]}") from None
