"""A plan's scripts, run from private copies of the bytes that were planned: who edits the shared file changes nothing.

The bytes come from the store by digest, so that the local file may be another version, or not there at all. Every version
of the scripts has a folder, made by the first worker that needs it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dibs._canon import digest
from dibs.cell import Command, Line, Words, copied
from dibs.errors import DibsError, StoreError, UsageError
from dibs.store import Store

from ._models import Task

__all__ = ["Scripts"]


@dataclass(frozen=True)
class Scripts:
    """``base``: a folder of this run's own, removed by whoever made it."""

    base: Path

    def command(self, store: Store, task: Task) -> Command:
        """The task's command with the planned scripts in it. Raises UsageError for a program that is not there, StoreError."""
        here = Path(task.here)
        copies = self._copies(store, task) if task.scripts else {}
        words = (
            list(task.words)
            if task.shell
            else [_escaped(copies[word]) if word in copies else word for word in task.words]
        )
        found = Command.of(words, here=here, path=os.environ.get("PATH"), shell=task.shell, scripts=False)
        written = task.words[0] if task.shell else shlex.join(task.words)
        return replace(
            found, template=Line.of(task.words[0]) if task.shell else Words.of(task.words), written=written,
            scripts=dict.fromkeys(task.scripts), frozen={name: str(path) for name, path in copies.items()},
            digests=dict(task.scripts), running=found.running or found.template,
        )  # fmt: skip

    def _copies(self, store: Store, task: Task) -> Mapping[str, Path]:
        version = self.base / digest(dict(task.scripts))[:16]
        if not version.is_dir():
            self._make(store, task, version)
        here = Path(task.here)
        paths = {name: Path(os.path.abspath(here / name)) for name in task.scripts}  # noqa: PTH100 - links to scripts stay
        return {name: version / "0" / path.relative_to(path.anchor) for name, path in paths.items()}

    def _make(self, store: Store, task: Task, version: Path) -> None:
        here = Path(task.here)
        digests = {os.path.abspath(here / name): each for name, each in task.scripts.items()}  # noqa: PTH100
        draft = version.with_name(f"{version.name}.{store.machine.entropy(6).hex()}")

        def fetch(original: Path, copy: Path) -> None:
            store.fetch(digests[str(original)], copy)
            copy.chmod(0o755)

        try:
            draft.mkdir()
            copied(here, list(task.scripts), draft, fetch)
            try:
                draft.rename(version)
            except OSError:
                if not version.is_dir():  # else another worker was faster
                    raise
        except (OSError, DibsError) as wrong:
            if isinstance(wrong, UsageError):
                raise
            raise StoreError(f"a private copy of {', '.join(task.scripts)} cannot be made: {wrong}") from wrong
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _escaped(path: Path) -> str:
    return str(path).replace("{", "{{").replace("}", "}}")
