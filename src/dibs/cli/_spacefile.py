"""``--space FILE``: a search space in TOML, JSON or YAML, the same three ways of writing one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dibs.errors import SpaceError, UsageError

if TYPE_CHECKING:
    from dibs.space import Space

__all__ = ["read_space"]


def read_space(path: Path) -> Space:
    """The space in a file, by the ending of its name. Raises UsageError naming the file, SpaceError among them."""
    from dibs.space import Space

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"the space {path} cannot be read: {wrong.strerror or wrong}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the space {path} is not UTF-8 text") from None
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
    """YAML 1.2: ``no`` is a text, ``1e-5`` a number."""
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise UsageError(f"{path} needs a YAML parser: pip install 'dibs[yaml]', or write it in TOML") from None
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as wrong:
        said = " ".join(str(wrong).split())
        raise SpaceError(f"the space is not valid YAML: {said[:300]}") from None
