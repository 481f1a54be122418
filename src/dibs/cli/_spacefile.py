"""``--space FILE``: a search space in TOML, JSON or YAML, the same three ways of writing one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dibs.errors import SpaceError, UsageError

from ._tablefile import text_of_file, yaml_of

if TYPE_CHECKING:
    from dibs.space import Space

__all__ = ["read_space"]


def read_space(path: Path) -> Space:
    """The space in a file, by the ending of its name. Raises UsageError naming the file, SpaceError among them."""
    from dibs.space import Space

    text = text_of_file(path, "the space")
    try:
        match path.suffix.lower():
            case ".json":
                return Space.from_json(_json(text))
            case ".yaml" | ".yml":
                return Space.from_plain(_yaml(text, path))
            case _:
                return Space.from_toml(text)
    except SpaceError as wrong:
        raise SpaceError(f"{path}: {wrong}", parameter=wrong.parameter) from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise SpaceError(f"the space is not valid JSON: {wrong}") from None


def _yaml(text: str, path: Path) -> Any:
    try:
        return yaml_of(text, path)
    except UsageError:
        raise
    except ValueError as wrong:
        raise SpaceError(f"the space is not valid YAML: {wrong}") from None
