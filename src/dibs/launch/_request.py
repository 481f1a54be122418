"""What a job file asks for: a command, how many of it, constraints, and where to try, in order. Pure; reads no file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dibs.errors import UsageError

from ._keys import a_count, a_name, a_table, a_text, env_of, lines_of, texts_of
from ._resources import Resources

__all__ = ["Request"]

_KEYS = ("name", "run", "workers", "store", "candidates", "resources", "env", "workdir")


@dataclass(frozen=True)
class Request:
    """A job. ``folder``: the job file's, absolute; what it says of places is relative to that.

    ``run``: words, or a line for the shell. ``resources``: of each worker. ``env``: variables, None for "by its name":
    such a value is in no file and no log of ours. ``workdir``: None = as the platform has it, ``folder`` where that is there.
    """

    name: str
    run: str | tuple[str, ...]
    folder: Path
    workers: int = 1
    store: str | None = None
    candidates: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)
    env: Mapping[str, str | None] = field(default_factory=dict)
    workdir: str | None = None

    @classmethod
    def of(cls, value: Any, stem: str, folder: Path, where: str) -> Request:
        """From a file's table. ``stem``: of its name, the job's unless it has another.

        Raises UsageError naming the place, the key, and what to write instead.
        """
        table = a_table(value, where, _KEYS)
        if "run" not in table:
            raise UsageError(f'{where}: there is nothing to run: put run = ["dibs", "run", "search.py", ...] into it')
        resources = Resources.of(table.get("resources", {}), f"{where}: resources")
        if len(resources.gpus) > 1:
            raise UsageError(f"{where}: resources: gpu must be one table: a worker wants one kind of device")
        candidates = texts_of(table.get("candidates", []), f"{where}: candidates")
        store = a_text(table["store"], f"{where}: store") if "store" in table else None
        if store is not None and "://" not in store and not store.startswith("~"):
            store = str(folder / store)
        return cls(
            a_name(table.get("name", _named(stem)), f"{where}: name"),
            lines_of(table["run"], f"{where}: run"),
            folder,
            a_count(table.get("workers", 1), f"{where}: workers"),
            store,
            tuple(dict.fromkeys(candidates)),
            resources,
            env_of(table.get("env", {}), f"{where}: env"),
            a_text(table["workdir"], f"{where}: workdir") if "workdir" in table else None,
        )

    @property
    def place(self) -> str:
        """Where a worker starts, on a platform that has this machine's folders."""
        return str(self.folder / Path(self.workdir or ".").expanduser())

    @property
    def kept(self) -> Path:
        """The folder of what is generated, and of logs."""
        return self.folder / ".dibs" / "launch" / self.name


def _named(stem: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", stem).lstrip("._-")[:50] or "job"
