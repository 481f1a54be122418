"""Write the reference pages that are made from the code: ``python docs/generate.py [--check]``.

``reference/cli.md`` is what ``dibs VERB --help`` prints. A test compares, so the page cannot lag behind.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.testing import CliRunner

from dibs.cli import main as dibs

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """# Command line

Made from `dibs VERB --help` by `make docs`; edit the help texts, not this page. What the codes mean is in
[exit codes](exit-codes.md), which variables steer it in [environment](environment.md).
"""


def help_of(*words: str) -> str:
    """What ``dibs WORDS --help`` prints, 100 columns wide."""
    done = CliRunner().invoke(dibs, [*words, "--help"], prog_name="dibs", terminal_width=100, max_content_width=100)
    if done.exception is not None:
        raise done.exception
    return "\n".join(line.rstrip() for line in done.output.strip().splitlines())


def verbs() -> list[str]:
    """The verbs that are shown, in the order of the overview."""
    context = click.Context(dibs, info_name="dibs")
    found = [(verb, dibs.get_command(context, verb)) for verb in dibs.list_commands(context)]
    return [verb for verb, command in found if command is not None and not command.hidden]


def page() -> str:
    """The whole page."""
    parts = [HEAD, f"```text\n{help_of()}\n```\n"]
    parts += [f"## dibs {verb}\n\n```text\n{help_of(verb)}\n```\n" for verb in verbs()]
    return "\n".join(parts)


def main(check: bool) -> int:
    """Write the page, or with ``check`` only say whether it is the one there."""
    text = page()
    if check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
