"""Write the reference page that is made from the code: ``python docs/generate.py``.

``reference/cli.md`` is what ``dibs VERB --help`` prints. A test compares, so the page cannot lag behind.
"""

from __future__ import annotations

from pathlib import Path

from dibs.cli._reference import render

PAGE = Path(__file__).parent / "reference" / "cli.md"
HEAD = """# Command line

Made from `dibs VERB --help` by `make docs`; edit the help texts, not this page. The codes are explained in
[exit codes](exit-codes.md), the variables and `dibs.toml` in [environment](environment.md).
"""


def page() -> str:
    """The whole page."""
    return f"{HEAD}\n{render()}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
