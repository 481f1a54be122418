"""Command lines with holes: ``{lr}`` is filled, ``{{`` and ``}}`` stand for braces, anything else is refused. Pure.

In words every argument stays one argument, whatever is in the value. In a shell line a hole becomes a reference to an
environment variable, never text of the line: no value can be run, split or globbed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from dibs.errors import UsageError

from ._shell import Shell

__all__ = ["Line", "Template", "Words", "check_names", "parse"]

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_OPTION = re.compile(r"--?[^\W\d][^=]*")
_HOLE = "DIBS_ARG_"  # with the hole's number: the variable a shell line reads its value from


@dataclass(frozen=True)
class Template:
    """One text with holes: ``parts`` are literal texts and names by turns, a literal first and last."""

    text: str
    parts: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its holes, in order."""
        return self.parts[1::2]

    def fill(self, fields: Mapping[str, str]) -> str | None:
        """The text with its holes filled; None if one of them has no value at this point."""
        if any(name not in fields for name in self.names):
            return None
        return "".join(fields[part] if at % 2 else part for at, part in enumerate(self.parts))


def parse(text: str) -> Template:
    """The template behind a text. Raises UsageError for a brace that is neither a hole's nor doubled."""
    parts = [""]
    end = 0
    for match in _PIECE.finditer(text):
        parts[-1] += text[end : match.start()]
        end = match.end()
        if match[0] in ("{{", "}}"):
            parts[-1] += match[0][0]
        elif match[1]:
            parts += [match[1], ""]
        else:
            raise UsageError(
                f"{text!r:.200} has a lone {match[0]}: write {{{{ or }}}} for a brace, {{name}} for a value"
            )
    parts[-1] += text[end:]
    return Template(text, tuple(parts))


def check_names(template: Template, known: Collection[str]) -> None:
    """UsageError if a hole has a name that nothing fills."""
    for name in template.names:
        if name not in known:
            raise UsageError(
                f"{{{name}}} in {template.text!r:.200} is nothing that could be filled in; there is "
                f"{', '.join(f'{{{each}}}' for each in sorted(known))}, and {{{{ stands for a brace"
            )


@dataclass(frozen=True)
class Words:
    """A command as words. ``filled`` gives exactly one argument for each, or none where a value is absent."""

    templates: tuple[Template, ...]

    @classmethod
    def of(cls, words: Sequence[str]) -> Words:
        return cls(tuple(map(parse, words)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all holes, in order."""
        return tuple(name for template in self.templates for name in template.names)

    def check(self, known: Collection[str]) -> None:
        """UsageError for a name that nothing fills."""
        for template in self.templates:
            check_names(template, known)

    def filled(self, fields: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """(arguments, variables besides).

        A word with an absent value is left out, and so is the option in front of a word that is only that hole:
        ``--momentum {momentum}`` and ``--momentum={momentum}`` both vanish where momentum is not active.
        """
        words: list[str] = []
        before: Template | None = None
        for template in self.templates:
            text = template.fill(fields)
            if text is not None:
                words.append(text)
            elif template.parts[::2] == ("", "") and before is not None and _is_option(before):
                words.pop()
            before = template if text is not None else None
        return words, {}

    def shown(self, fields: Mapping[str, str]) -> str:
        """The command as one could type it."""
        return shlex.join(self.filled(fields)[0])


def _is_option(template: Template) -> bool:
    return len(template.parts) == 1 and _OPTION.fullmatch(template.parts[0]) is not None


@dataclass(frozen=True)
class Line:
    """A command as one line for ``sh -c``. An absent value is an empty argument."""

    template: Template

    @classmethod
    def of(cls, line: str) -> Line:
        """Raises UsageError for a hole within quotes, where it would need quoting of another kind."""
        template = parse(line)
        shell = Shell()
        for name, literal in zip(("", *template.names), template.parts[::2], strict=True):
            if name:
                if shell.within:
                    raise UsageError(
                        f"{{{name}}} stands within {shell.within} in {line!r:.200}: write it without quotes around it "
                        f"(close them before), its value is quoted as it is; or name the variable: $DIBS_PARAM_..."
                    )
                shell.value()
            shell.read(literal)
        return cls(template)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all holes, in order."""
        return self.template.names

    def check(self, known: Collection[str]) -> None:
        """UsageError for a name that nothing fills."""
        check_names(self.template, known)

    def filled(self, fields: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """(arguments, variables besides)."""
        text, variables = "", {}
        for at, part in enumerate(self.template.parts):
            text += f'"${{{_HOLE}{at // 2}}}"' if at % 2 else part
            if at % 2:
                variables[f"{_HOLE}{at // 2}"] = fields.get(part, "")
        return ["/bin/sh", "-c", text], variables

    def shown(self, fields: Mapping[str, str]) -> str:
        """The line as one could type it."""
        parts = self.template.parts
        return "".join(shlex.quote(fields.get(part, "")) if at % 2 else part for at, part in enumerate(parts))
