"""A group of verbs by name, each loaded when it is used, whose help is a table that loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

import click

from ._text import out

__all__ = ["Verbs", "overview"]


class Verbs(click.Group):
    """``table``: verb -> what it does, as the overview lists them; ``modules``: where a verb's module is, but for its name."""

    table: Mapping[str, str] = {}
    modules = "dibs.cli._"

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in self.table if self._is_there(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table or not self._is_there(cmd_name):
            return None
        verb = import_module(f"{self.modules}{cmd_name}").verb
        assert isinstance(verb, click.Command)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        near = get_close_matches(word, self.table, n=1)
        if word not in self.table and not word.startswith("-") and near and not ctx.resilient_parsing:
            ctx.fail(f"No such command {word!r}: did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, self.table[name]) for name in self.list_commands(ctx)])

    def _is_there(self, name: str) -> bool:
        return find_spec(f"{self.modules}{name}") is not None


def overview(ctx: click.Context) -> int:
    """What a group does that was called without a verb: its help on stderr, and code 2."""
    if ctx.invoked_subcommand is None:
        out(ctx.get_help(), err=True)
        return 2
    return 0
