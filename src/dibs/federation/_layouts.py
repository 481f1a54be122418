"""The layout of a round's tensors as a blob: the terms carry its digest, and who differs can be told in what."""

from __future__ import annotations

import json
from typing import Any

from dibs._canon import dumps
from dibs.errors import RecordError
from dibs.store import Store

from ._exports import Layout

__all__ = ["keep_layout", "layout_in"]


def keep_layout(store: Store, layout: Layout, nested: bool) -> str:
    """Store it; equal layouts have equal digests."""
    tensors = {name: [dtype, list(shape)] for name, (dtype, shape) in layout.items()}
    return store.put(dumps({"tensors": tensors, "nested": nested}))


def layout_in(store: Store, digest: str) -> tuple[Layout, bool]:
    """The layout, and whether it is node by node. Raises NotFound, RecordError."""
    try:
        body: Any = json.loads(store.get(digest))
        return {name: (dtype, tuple(shape)) for name, (dtype, shape) in body["tensors"].items()}, body["nested"] is True
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
        raise RecordError(f"the blob {digest} is no layout of tensors ({wrong})") from None
