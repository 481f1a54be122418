"""A command line as it was given, checked before anything is claimed: the program is there, and every hole has a value.

Relative paths of the program, and of files that are frozen, mean the folder the command was given in; the program itself
starts in a folder of its own.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dibs.errors import UsageError

from ._environ import variable_of
from ._template import Line, Template, Words

__all__ = ["Command"]

_SCRIPT_BYTES = 16 << 20
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


@dataclass(frozen=True)
class Command:
    """``template``: the command; ``written``: as it was given; ``here``: where it was given; ``running``: the template that
    names the script by its whole path, or runs private copies instead, which are ``frozen``: files as written -> where they are.

    ``scripts``: files as written that are to be frozen, with the place of each word that names one (None: only where a
    hole names it).
    """

    template: Words | Line
    here: Path
    written: str = ""
    scripts: Mapping[str, int | None] = field(default_factory=dict)
    frozen: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    running: Words | Line | None = None

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        *,
        here: Path,
        path: str | None = None,
        shell: bool = False,
        freeze: Sequence[str] = (),
        scripts: bool = True,
    ) -> Command:
        """Raises UsageError for a program that is not there or cannot be executed, and for a brace that means nothing.

        ``path``: where programs are looked for (PATH). ``shell``: one line for ``sh -c``. ``freeze``: more files to
        freeze; ``scripts``: also the script that the command runs.
        """
        if not words:
            raise UsageError("there is no command: write it after --, such as -- ./train.sh {lr}")
        more: dict[str, int | None] = dict.fromkeys(freeze)
        for name in more:
            if not (here / name).is_file():
                raise UsageError(f"there is no file {name} in {here} to freeze")
        if shell:
            if len(words) != 1:
                raise UsageError(f"--shell takes one line, not {len(words)} words: put quotes around the whole of it")
            return cls(Line.of(words[0]), here, words[0], more)
        template = Words.of(words)
        program = _program(template.templates[0], here, path)
        script = _script(template, here, words[0])
        _check_script(template, here, program)
        if program is not None:
            template = _with(template, 0, program)
        running = None
        if script is not None:  # it starts elsewhere
            running = _with(template, script, os.path.abspath(here / words[script]))  # noqa: PTH100 - links stay
            script = script if _small(here / words[script]) else None
        if scripts and script is not None and words[script] not in more:
            more = {words[script]: script, **more}
        for name in more:  # wherever a word is just that file
            more[name] = next((at for at, word in enumerate(words) if word == name), None)
        return cls(template, here, shlex.join(words), more, running=running)

    def check(self, known: Collection[str]) -> None:
        """UsageError for a hole that nothing fills."""
        self.template.check({*known, *(name for name, at in self.scripts.items() if at is None)})

    def passes_over(self, parameters: Sequence[str]) -> list[str]:
        """Parameters that the command does not mention, neither in a hole nor as a variable, where it names others.

        One that names none is a program that reads all of them from its environment.
        """
        holes = set(self.template.names)
        if holes.isdisjoint(parameters) or "DIBS_POINT" in self.written:
            return []
        return [name for name in parameters if name not in holes and variable_of(name) not in self.written]

    def with_copies(self, copies: Mapping[str, str], digests: Mapping[str, str]) -> Command:
        """The same command, with files as written run from where they are now."""
        template = self.running or self.template
        for name, at in self.scripts.items():
            if at is not None and isinstance(template, Words):
                template = _with(template, at, copies[name])
        return replace(self, running=template, frozen=dict(copies), digests=dict(digests))

    def filled(self, fields: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """(arguments, variables besides) at a point."""
        return (self.running or self.template).filled({**self._files(), **self.frozen, **fields})

    def shown(self, fields: Mapping[str, str]) -> str:
        """The command at a point, as one could type it."""
        return self.template.shown({**self._files(), **fields})

    def _files(self) -> dict[str, str]:
        return {name: str(self.here / name) for name in self.scripts}


def _with(words: Words, at: int, text: str) -> Words:
    templates = list(words.templates)
    templates[at] = Template(text, (text,))
    return Words(tuple(templates))


def _program(template: Template, here: Path, path: str | None) -> str | None:
    """Where the program is; None if only a point can tell."""
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
    return os.path.abspath(there)  # noqa: PTH100


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


def _check_script(words: Words, here: Path, program: str | None) -> None:
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


def _script(words: Words, here: Path, first: str) -> int | None:
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


def _small(path: Path) -> bool:
    return path.stat().st_size <= _SCRIPT_BYTES


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name, or behind a folder one may not enter
        return False
