"""The one place that knows which module speaks to which platform; each is loaded when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from ._kinds import KINDS
from ._plan import Platform

__all__ = ["platform_of"]


def platform_of(kind: str) -> Platform:
    """The module of a kind."""
    return cast(Platform, import_module(f".{KINDS[kind].module}", __package__))
