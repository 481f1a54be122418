"""Files of keys and values, in TOML, JSON or YAML by the ending of their names."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dibs.errors import UsageError

__all__ = ["ENDINGS", "read_table", "text_of_file", "yaml_of"]

#: of files that are looked for by a name without one
ENDINGS = (".toml", ".yaml", ".yml", ".json")


def read_table(path: Path, what: str) -> Any:
    """What the file says. Raises UsageError naming it: ``what`` it is, and why it does not read."""
    text = text_of_file(path, what)
    try:
        match path.suffix.lower():
            case ".json":
                return json.loads(text)
            case ".yaml" | ".yml":
                return yaml_of(text, path)
            case _:
                return tomllib.loads(text)
    except (ValueError, RecursionError) as wrong:
        if isinstance(wrong, UsageError):
            raise
        raise UsageError(f"{what} {path} does not read: {' '.join(str(wrong).split())[:300]}") from None


def text_of_file(path: Path, what: str) -> str:
    """The text of a file. Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"{what} {path} cannot be read: {wrong.strerror or wrong}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{what} {path} is not UTF-8 text") from None


def yaml_of(text: str, path: Path) -> Any:
    """YAML 1.2: ``no`` is a text, ``1e-5`` a number. Raises ValueError, and UsageError without a parser."""
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise UsageError(f"{path} needs a YAML parser: pip install 'dibs[yaml]', or write it in TOML") from None
    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as wrong:
        raise ValueError(" ".join(str(wrong).split())[:300]) from None
