"""All help texts in one Markdown page, for the documentation."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ._root import main

__all__ = ["render"]

WIDTH = 100


def render() -> str:
    """``dibs --help`` and every ``dibs VERB --help`` as Markdown, one section for each verb, also for those of a group."""
    root = click.Context(main, info_name="dibs", terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join([f"```text\n{_text(main, root)}\n```\n", *_sections(main, root)])


def _sections(group: click.Group, of: click.Context) -> Iterator[str]:
    for name in group.list_commands(of):
        verb = group.get_command(of, name)
        assert verb is not None
        ctx = click.Context(verb, info_name=name, parent=of)
        yield f"## {ctx.command_path}\n\n```text\n{_text(verb, ctx)}\n```\n"
        if isinstance(verb, click.Group):
            yield from _sections(verb, ctx)


def _text(verb: click.Command, ctx: click.Context) -> str:
    return "\n".join(line.rstrip() for line in verb.get_help(ctx).strip().splitlines())
