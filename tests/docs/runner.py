"""Execute the code blocks of a Markdown page, in order, in one folder, as a reader would.

Every ``python``, ``console`` and ``bash`` block runs. A comment on the line above a block says otherwise:
``<!-- not run: REASON -->``, ``<!-- file: NAME -->`` (saved, of any language), or ``<!-- output -->`` (a ``text``
block: what the Python block before it printed). In expected output ``...`` stands for anything, and a line that
is only ``...`` for any lines.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

RUN = {"python", "console", "bash"}
_BLOCK = re.compile(
    r"^(?:<!-- (?P<word>[a-z ]+?)(?:: (?P<value>[^\n]*?))? -->\n)?```(?P<language>[a-z]+)\n(?P<body>.*?)^```$",
    re.M | re.S,
)


class Block(NamedTuple):
    """One fenced block: where it starts, what it is, and what the comment above it says."""

    line: int
    language: str
    body: str
    word: str  # "", "not run", "file" or "output"
    value: str  # the reason, or the file's name


def blocks(text: str) -> list[Block]:
    """Every fenced block that names its language, in order."""
    return [
        Block(text[: m.start("body")].count("\n") + 1, m["language"], m["body"], m["word"] or "", m["value"] or "")
        for m in _BLOCK.finditer(text)
    ]


def matches(expected: str, printed: str) -> bool:
    """Whether the output is the expected one, ``...`` being anything."""
    pattern = ""
    for line in expected.rstrip("\n").split("\n"):
        words = [re.escape(part) for part in line.rstrip().split("...")]
        pattern += r"(?:[^\n]*\n)*?" if line.strip() == "..." else r"[^\n]*?".join(words) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def commands(body: str) -> list[tuple[str, str]]:
    """The ``$`` lines of a console block (continued by a closing backslash), each with the output under it."""
    found: list[tuple[str, str]] = []
    more = False
    for line in body.splitlines():
        command, output = found[-1] if found else ("", "")
        if more:
            found[-1] = (f"{command}\n{line}", output)
        elif line.startswith("$ "):
            found.append((line[2:], ""))
        elif found:
            found[-1] = (command, f"{output}{line}\n")
        else:
            raise ValueError(f"a console block opens with '$ ', not with {line!r}")
        more = line.endswith("\\") and (more or line.startswith("$ "))
    return found


def environment() -> dict[str, str]:
    """This environment with our ``dibs`` first on the path, and nothing that would steer it.

    Unbuffered, so that answers and messages come in the order of a terminal.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DIBS_", "SLURM_", "PYTEST_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "error"}
    return kept | plain | {"PATH": path}


class Page:
    """A page being read: its folder, its Python names, and what the last Python block printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "page"}
        self.printed = ""

    def run(self, block: Block) -> None:
        """Execute one block; AssertionError or the block's own exception if it does not do what the page says."""
        if block.word == "not run":
            return
        if block.word == "file":
            file = self.folder / block.value
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.body, encoding="utf-8")
        elif block.word == "output":
            assert matches(block.body, self.printed), f"expected\n{block.body}\nprinted\n{self.printed}"
        elif block.language == "python":
            self.python(block)
        elif block.language == "console":
            for command, expected in commands(block.body):
                self.shell(command, expected)
        elif block.language == "bash":
            self.shell("set -e\n" + block.body, "")

    def python(self, block: Block) -> None:
        """Run a block in the page's names, with the line numbers of the page."""
        code = compile("\n" * (block.line - 1) + block.body, "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.chdir(self.folder):
            exec(code, self.names)
        self.printed = out.getvalue()

    def shell(self, command: str, expected: str) -> None:
        """Run one command; it must end well and, where the page shows output, print that."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, f"$ {command}\nended with {done.returncode}:\n{done.stdout}"
        if expected.strip():
            assert matches(expected, done.stdout), f"$ {command}\nexpected\n{expected}\nprinted\n{done.stdout}"
