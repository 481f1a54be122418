"""All help texts in one Markdown page, for the documentation."""

from __future__ import annotations

import click

from ._root import VERBS, main

__all__ = ["render"]

WIDTH = 100


def render() -> str:
    """``dibs --help`` and every ``dibs VERB --help`` as Markdown, one section for each verb."""
    root = click.Context(main, info_name="dibs", terminal_width=WIDTH, max_content_width=WIDTH)
    parts = [f"```text\n{_text(main, root)}\n```\n"]
    for name in VERBS:
        verb = main.get_command(root, name)
        assert verb is not None
        ctx = click.Context(verb, info_name=name, parent=root)
        parts.append(f"## dibs {name}\n\n```text\n{_text(verb, ctx)}\n```\n")
    return "\n".join(parts)


def _text(verb: click.Command, ctx: click.Context) -> str:
    return "\n".join(line.rstrip() for line in verb.get_help(ctx).strip().splitlines())
