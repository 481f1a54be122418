"""What tests of ``dibs exec`` share: a space, a program, and the words up to its command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Call = Callable[..., Result]
PLACE = ("--store", "s", "--study", "mill")
SPACE = """
lr = {float = [1e-5, 0.1], log = true}
opt = ["adam", "sgd"]
momentum = {float = [0.0, 0.99], when = {opt = "sgd"}}
"""
WELL = '#!/bin/sh\necho "{\\"score\\": $1}"\n'


def words(*more: str, trials: int = 4, space: str = "space.toml") -> tuple[str, ...]:
    """``dibs exec`` up to its command."""
    return (
        "exec",
        "--space",
        space,
        *PLACE,
        "--goal",
        "min",
        "--trials",
        str(trials),
        "--seed",
        "1",
        *more,
        "--quiet",
        "--",
    )


def logs(tmp_path: Path) -> list[str]:
    """The attempts' logs, by trial."""
    return [path.read_text() for path in sorted((tmp_path / "s").rglob("log.txt"))]
