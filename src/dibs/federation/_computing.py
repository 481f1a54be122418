"""What a round's updates make: fetched, looked at, and averaged tensor by tensor from files. The same for whoever computes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from dibs.errors import NotFound, RecordError, UpdateError, UsageError
from dibs.store import Store

from ._exports import Flat, difference, layout_of
from ._fedavg import averaged_pieces, demand_base, scales_of, unfit
from ._files import open_tensors, stream
from ._layouts import layout_in
from ._records import End, Terms, Update
from ._room import room
from ._rules import Rule, weights_of
from ._values import Array

__all__ = ["compute"]


def compute(
    store: Store,
    run: str,
    number: int,
    terms: Terms,
    of: Mapping[str, str],
    updates: Mapping[str, Update],
    attempt: int,
    keep: Callable[[Path], str] | None = None,
) -> End:
    """The end that these updates make: always the same. ``keep``: what becomes of the file, and its digest; None: the store has it.

    Updates that cannot be read or averaged are rejected. Raises StoreError for an outage.
    """
    rule = Rule(**terms.rule)
    missing = tuple(client for client in terms.clients if client not in of)
    rejected: dict[str, str] = {}
    with room() as folder:
        files: dict[str, Flat] = {}
        for at, client in enumerate(sorted(of)):
            why = _bring(store, terms, updates.get(client), of[client], folder / f"{at}", files)
            if why is not None:
                rejected[client] = why
        why = _cannot(terms, rule, files, rejected)
        if why is None:
            try:
                weights = weights_of({client: _size(updates, client) for client in files}, rule)
            except UsageError as wrong:
                why = str(wrong)
        if why is not None:
            return End(None, {}, rejected, missing, why, attempt)
        base_file = store.fetch(terms.base, folder / "base") if terms.base is not None else None
        flats, result = list(files.values()), folder / "average"
        try:
            base = open_tensors(base_file) if base_file is not None else None
            if base is not None:
                demand_base(base, layout_of(flats[0]))
            scales = scales_of(flats, rule, base)

            def pieces(name: str) -> Iterator[Array]:
                return averaged_pieces(name, flats, rule, weights, scales, base)

            with result.open("xb") as file:
                file.writelines(stream(layout_of(flats[0]), {"run": run, "round": str(number)}, pieces))
        except UpdateError as wrong:
            return End(None, {}, rejected, missing, str(wrong), attempt)
        blob = (keep or store.put)(result)
        told = dict(zip(files, weights, strict=True)) if weights is not None else dict.fromkeys(files)
        return End(blob, told, rejected, missing, None, attempt)


def _bring(
    store: Store, terms: Terms, update: Update | None, digest: str, path: Path, files: dict[str, Flat]
) -> str | None:
    """Fetch and look at one update; why it cannot be averaged, or None and it is among the files."""
    if update is None or update.digest != digest:
        return "its record is not there any more, or another one is"
    if update.fault is not None or update.blob is None:
        return update.fault or "it has no blob"
    if (update.size is not None) != terms.sized:
        return (
            "it has a size, and others have none" if update.size is not None else "it has no size, and others have one"
        )
    if update.size is not None and not 0 <= update.size <= sys.float_info.max:  # an int may be longer than any float
        return f"its size is {update.size!r:.60}"
    try:
        store.fetch(update.blob, path)
    except (NotFound, RecordError) as wrong:
        return str(wrong)
    try:
        tensors = open_tensors(path)
    except UsageError as wrong:
        return f"its blob {str(wrong).removeprefix(f'{path.name} ')}"
    layout, _ = layout_in(store, terms.layout)
    found = difference(layout_of(tensors), layout)
    why = f"tensor {found[0]!r} {found[1]}" if found is not None else unfit(tensors)
    if why is None:
        files[update.client] = tensors
    return why


def _cannot(terms: Terms, rule: Rule, files: Mapping[str, Flat], rejected: Mapping[str, str]) -> str | None:
    if rejected and rule.bad == "stop":
        client, why = next(iter(rejected.items()))
        return f"the update of {client!r} was rejected: {why}"
    least = terms.quorum or 1
    if len(files) < least:
        return f"{len(files)} of {len(terms.clients)} updates can be averaged, and {least} are wanted"
    return None


def _size(updates: Mapping[str, Update], client: str) -> float | None:
    return updates[client].size
