"""Where the program of a command is, whether it can be executed, and which of the words is the script that it runs.

Looked at before anything is claimed: what the kernel or an interpreter would refuse at every trial is said here, once.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from dibs.errors import UsageError

from ._template import Template, Words

__all__ = ["check_script", "program_of", "script_of"]

# what takes a script as its first argument, so that one that is missing can be told from a word
_INTERPRETERS = ("python", "bash", "sh", "dash", "zsh", "ksh", "perl", "ruby", "node", "Rscript", "julia", "php", "lua")
# and its switches that take no value and no program text
_SHELL = re.compile(r"[-+][aefuvxC]+")
_PERL = re.compile(r"-[wWtT]+")
_SWITCHES = {
    "python": re.compile(r"-[bBdEiIOPqsSuvx]+"), "perl": _PERL, "ruby": _PERL,
    **dict.fromkeys(_INTERPRETERS[8:], re.compile("(?!)")),
}  # fmt: skip
_ASSIGNED = re.compile(r"\w+=")


def program_of(template: Template, here: Path, path: str | None) -> str | None:
    """Where the program is; None if only a point can tell. Raises UsageError for one that is not there or will not run."""
    if template.names:
        return None
    name = template.parts[0]
    if "/" not in name:
        found = shutil.which(name, path=path) if name else None
        if found is None:
            cure = f": a program in this folder is ./{name}" if name and (here / name).is_file() else ""
            raise UsageError(f"there is no program {name!r} on the PATH{cure}")
        _check_head(here / found, name, path)
        return os.path.abspath(here / found)  # noqa: PTH100 - a link stays what it is called
    there = here / name
    if not there.is_file():
        what = "a folder" if there.is_dir() else "not there"
        raise UsageError(f"the program {name} is {what} (looked for in {here})")
    if not os.access(there, os.X_OK):
        raise UsageError(f"the program {name} may not be executed: chmod +x {name}, or name what runs it first")
    _check_head(there, name, path)
    return os.path.abspath(there)  # noqa: PTH100 - as above


def _check_head(there: Path, name: str, path: str | None) -> None:
    """UsageError for a text that no kernel executes."""
    try:
        with there.open("rb") as file:
            head = file.read(256)
    except OSError:
        return  # executable but not readable: the kernel knows
    if head.startswith(b"#!"):
        line = os.fsdecode(head[2:].partition(b"\n")[0])
        interpreter, _, rest = line.strip(" \t").replace("\t", " ").partition(" ")
        by_env = interpreter.rpartition("/")[2].rstrip("\r") == "env"
        if line.endswith("\r") and (by_env or not rest):
            raise UsageError(
                f"the lines of {name} end as on Windows, and so does the name of what runs it: sed -i 's/\\r$//' {name}"
            )
        missing = interpreter if not _runs(interpreter) else _missing_of_env(rest.strip(), path) if by_env else None
        if missing is not None:
            raise UsageError(f"the first line of {name} says that {missing!r} runs it, which is not there")
    elif b"\0" not in head:
        raise UsageError(f"the program {name} is a text without a first line that says what runs it, such as #!/bin/sh")


def _runs(interpreter: str) -> bool:
    return Path(interpreter).is_file() and os.access(interpreter, os.X_OK)


def _missing_of_env(rest: str, path: str | None) -> str | None:
    """The program that ``#!/usr/bin/env`` does not find; without -S all that follows is one name."""
    if rest.startswith("-S"):
        words = [word for word in rest[2:].split() if not _ASSIGNED.match(word)]
        rest = words[0] if words else ""
    found = not rest or rest.startswith("-") or _ASSIGNED.match(rest) or shutil.which(rest, path=path)
    return None if found else rest


def check_script(words: Words, here: Path, program: str | None) -> None:
    """UsageError for ``python missing.py``."""
    if program is None or len(words.templates) < 2:
        return
    name = Path(program).name.rstrip("0123456789.")
    if name not in _INTERPRETERS:
        return
    switches = _SWITCHES.get(name, _SHELL)
    first = next((each for each in words.templates[1:] if each.names or not switches.fullmatch(each.text)), None)
    if first is None or first.names:
        return
    script = first.parts[0]
    if script and not script.startswith("-") and not (here / script).exists():
        raise UsageError(f"there is no file {script} in {here} for {Path(program).name} to run")


def script_of(words: Words, here: Path, first: str) -> int | None:
    """The place of the word that is the script this command runs: the program itself if it is one's own, else the
    first file named after it."""
    relative = "/" in first and not first.startswith("/")
    if not words.templates[0].names and (relative or _own(Path(first))):
        return 0
    for at, template in enumerate(words.templates[1:], 1):
        text = template.parts[0]
        if not template.names and text and not text.startswith("-") and _is_file(here / text):
            return at
    return None


def _own(program: Path) -> bool:
    """A script by its whole path, and not one of an installation."""
    if not program.is_absolute() or program.parent.name in ("bin", "sbin"):
        return False
    try:
        with program.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name, or behind a folder one may not enter
        return False
