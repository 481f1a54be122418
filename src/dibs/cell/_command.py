"""A command line as it was given, checked before anything is claimed: the program is there, and every hole has a value.

Relative paths of the program, and of files that are frozen, mean the folder the command was given in; the program itself
starts in a folder of its own.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dibs.errors import UsageError

from ._environ import variable_of
from ._lookup import check_script, program_of, script_of
from ._template import Line, Template, Words

__all__ = ["Command"]

_SCRIPT_BYTES = 16 << 20


@dataclass(frozen=True)
class Command:
    """``template``: the command; ``written``: as it was given; ``here``: where it was given; ``running``: the template
    that names the script by its whole path, or runs private copies instead, which are ``frozen``: files as written ->
    where they are.

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
        program = program_of(template.templates[0], here, path)
        script = script_of(template, here, words[0])
        check_script(template, here, program)
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


def _small(path: Path) -> bool:
    return path.stat().st_size <= _SCRIPT_BYTES
