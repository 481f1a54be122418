"""The manifest of a pull: exactly which files are there, of which cells, at which version of the plan. Pure.

Whoever reads one trusts nothing in it: paths stay inside, nothing is there twice, and sizes and digests are what they say.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dibs._canon import digest
from dibs.errors import UsageError

from ._models import Plan
from ._paths import is_name, is_path, same_when_folded
from ._strict import strict_json

__all__ = ["Manifest", "PulledCell", "PulledFile", "digest_of", "plan_digest", "results_digest"]

_V, _KIND = 1, "sweep-pull"
_SHA = re.compile(r"[0-9a-f]{64}\Z")
_KINDS = ("artifact", "log", "record")
_PASSING = ("created_at", "who")


@dataclass(frozen=True)
class PulledFile:
    """A file: its path beneath the folder, and what it has to be. ``kind``: artifact, log or record."""

    path: str
    cell: str
    kind: str
    size: int
    digest: str


@dataclass(frozen=True)
class PulledCell:
    """A cell that is done: the trial and attempt that counts, and what the cell was then."""

    name: str
    n: int
    attempt: int
    digest: str


@dataclass(frozen=True)
class Manifest:
    """``store``: the nonce of the store it came from; ``missing``: cell -> why nothing of it is here. ``head``: who and when."""

    sweep: str
    store: str
    plan: int
    plan_digest: str
    cells: tuple[PulledCell, ...]
    files: tuple[PulledFile, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=dict)

    @property
    def results(self) -> str:
        """The digest of what the cells left, whoever pulled it when."""
        kept: dict[str, dict[str, str]] = {cell.name: {} for cell in self.cells}
        for each in self.files:
            if each.kind == "artifact":
                kept[each.cell][each.path.partition("/")[2]] = each.digest
        return results_digest(kept)

    def same(self, other: Manifest) -> bool:
        """Whether both say the same but for who wrote it and when."""
        return replace(self, head={}) == replace(other, head={})

    def encode(self) -> bytes:
        """Its bytes, which its digest is of."""
        body = {
            "v": _V, "kind": _KIND, **{name: self.head[name] for name in _PASSING if name in self.head},
            "sweep": self.sweep, "store": self.store, "plan": self.plan, "plan_digest": self.plan_digest,
            "cells": [{"name": one.name, "n": one.n, "attempt": one.attempt, "digest": one.digest} for one in self.cells],
            "files": [
                {"path": one.path, "cell": one.cell, "kind": one.kind, "bytes": one.size, "sha256": one.digest}
                for one in self.files
            ],
            "missing": dict(self.missing),
        }  # fmt: skip
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def decode(cls, data: bytes, where: str) -> Manifest:
        """Raises UsageError for anything but a manifest that can be trusted to name only files beneath its own folder."""
        try:
            body = strict_json(data)
            if not isinstance(body, dict) or body.get("kind") != _KIND:
                raise ValueError("it is not the manifest of a pull")
            if body.get("v") != _V:
                raise ValueError(f"it has version {body.get('v')!r:.20}, and this dibs reads {_V}: upgrade dibs")
            found = cls(
                _text(body, "sweep"), _text(body, "store"), _count(body, "plan"), _sha(body, "plan_digest"),
                tuple(_cell(one) for one in body["cells"]), tuple(_file(one) for one in body["files"]),
                {str(name): str(why) for name, why in body["missing"].items()},
                {name: body[name] for name in _PASSING if name in body},
            )  # fmt: skip
            _check(found)
        except (ValueError, TypeError, KeyError, AttributeError) as wrong:
            said = f"it has no {wrong}" if isinstance(wrong, KeyError) else str(wrong)
            raise UsageError(f"{where} cannot be used: {said}; pull again into an empty folder") from None
        return found


def plan_digest(plan: Plan) -> str:
    """SHA-256 of the whole plan, so that no other one passes for it."""
    return digest(plan.to_json())


def results_digest(kept: Mapping[str, Mapping[str, str]]) -> str:
    """SHA-256 of cell -> artefact -> SHA-256."""
    return digest({cell: dict(files) for cell, files in kept.items()})


def digest_of(data: bytes) -> str:
    """SHA-256 of the bytes."""
    return hashlib.sha256(data).hexdigest()


def _check(found: Manifest) -> None:
    names = [cell.name for cell in found.cells]
    for one, other in [*same_when_folded(names), *same_when_folded([each.path for each in found.files])]:
        raise ValueError(f"{other!r:.200} is there twice" + (f" (as {one!r:.200})" if one != other else ""))
    for each in found.files:
        if each.cell not in names or not each.path.startswith(f"{each.cell}/"):
            raise ValueError(f"{each.path!r:.200} is in no folder of a cell of it")


def _cell(body: Any) -> PulledCell:
    name = _text(body, "name")
    if not is_name(name):
        raise ValueError(f"{name!r:.200} is no name of a cell")
    return PulledCell(name, _count(body, "n"), _count(body, "attempt"), _sha(body, "digest"))


def _file(body: Any) -> PulledFile:
    path, kind = _text(body, "path"), _text(body, "kind")
    if not is_path(path):
        raise ValueError(f"the path {path!r:.200} does not stay beneath its folder")
    if kind not in _KINDS:
        raise ValueError(f"{path!r:.200} is of a kind nobody knows: {kind!r:.40}")
    return PulledFile(path, _text(body, "cell"), kind, _count(body, "bytes"), _sha(body, "sha256"))


def _text(body: Any, name: str) -> str:
    value = body[name]
    if not isinstance(value, str):
        raise ValueError(f"its {name} is no text")
    return value


def _count(body: Any, name: str) -> int:
    value = body[name]
    if type(value) is not int or value < 0:
        raise ValueError(f"its {name} is no number of at least 0")
    return value


def _sha(body: Any, name: str) -> str:
    value = _text(body, name)
    if not _SHA.match(value):
        raise ValueError(f"its {name} is no SHA-256")
    return value
