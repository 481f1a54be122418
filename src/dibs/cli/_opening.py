"""Stores and studies as the verbs open them. Readers never create anything and trust any mount."""

from __future__ import annotations

from dibs.errors import NotFound, UsageError
from dibs.store import Store
from dibs.study import Study
from dibs.view import Source

from ._options import needed

__all__ = ["open_source", "open_store", "open_study"]


def open_store(store: str | None) -> Store:
    """The store for reading: one on a mount nobody vouches for is still readable."""
    return Store(needed(store, "store", "FOLDER"), create=False, unchecked=True)


def open_source(store: str | None, study: str | None) -> Source:
    """The study for reading; where the store has only one, that is the one. Raises NotFound, UsageError, StoreError."""
    opened = open_store(store)
    return Source.of(opened, study or _only_one(opened))


def open_study(store: str | None, study: str | None, me: str | None) -> Study:
    """The study for steering, which must be named. Raises NotFound, UsageError, StoreError."""
    opened = Store(needed(store, "store", "FOLDER"), create=False)
    try:
        return Study(opened, needed(study, "study", "NAME"), me=me)
    except NotFound as wrong:  # what would create it is no remedy here
        raise NotFound(str(wrong).rsplit("; to create it", 1)[0]) from None


def _only_one(store: Store) -> str:
    studies = store.studies()
    if not studies:
        raise NotFound(f"there is no study in {store.url} yet")
    if len(studies) > 1:
        names = ", ".join(repr(name) for name in studies[:20]) + (", ..." if len(studies) > 20 else "")
        raise UsageError(f"{store.url} has {len(studies)} studies ({names}): say --study NAME or set DIBS_STUDY")
    return studies[0]
