"""What the verbs share: options with their precedence, durations, and a command that reads ``dibs.toml``."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from dibs.cell import size_of, span_of
from dibs.errors import UsageError

from ._guard import set_level
from ._settings import NAME, settings

__all__ = [
    "DURATION", "GOAL", "SIZE", "SPAN", "Whole", "as_json", "command", "me_option", "needed",
    "needed_sweep", "store_option", "study_option", "sweep_option", "verbose", "which_option",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """``90``, ``90s``, ``5m``, ``2h``, ``1d`` or several of them, ``1h30m``: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        seconds = span_of(text)
        if seconds is None:
            self.fail(f"{text!r} is not a duration: write 90, 90s, 5m, 2h, 1d or 1h30m", param, ctx)
        return seconds

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "DURATION"


class Span(Duration):
    """A duration that is not nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = super().convert(value, param, ctx)
        if not seconds > 0:
            self.fail("must be longer than nothing", param, ctx)
        return seconds


class Size(click.ParamType[int]):
    """``4G``, ``512M``, ``1.5GiB``: bytes. K, M, G, T and KiB... count by 1024, KB... by 1000."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        size = size_of(text)
        if size is None:
            self.fail(f"{text!r} is not a size: write 512M, 4G, 1.5GiB, 4GB or a number of bytes", param, ctx)
        return size

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "SIZE"


class Whole(click.IntRange):
    """A whole number within bounds, and called that where a word is none."""

    name = "whole number"


class Which(Whole):
    """The number of a goal: ``min`` is an answer to another ``--goal``, that of ``run``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip().isdecimal():
            self.fail(
                f"{value!r} is no number of a goal: they count from 0, in the order of the study's goals", param, ctx
            )
        return super().convert(value, param, ctx)


class GoalType(click.ParamType[Any]):
    """``min``, ``max``, or several of these with commas between."""

    name = "goal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dibs.search import a_goal

        words = [word.strip() for word in str(value).split(",")]
        try:
            return a_goal(words[0] if len(words) == 1 else words)
        except UsageError:
            self.fail(f"{value!r} is no goal: write min or max, or 2 to 8 of these, such as min,max", param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "GOAL[,GOAL]"


DURATION = Duration()
GOAL = GoalType()
SPAN = Span()
SIZE = Size()


class Verb(click.Command):
    """A command whose options fall back on ``dibs.toml``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--help" not in args:  # help is there even where dibs.toml is broken
            found = settings()
            if "work" in found:
                os.environ.setdefault("DIBS_WORK", found["work"])
            ctx.default_map = found
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as wrong:
            name = wrong.param.name if wrong.param is not None else None
            if name and ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                raise UsageError(f"{NAME}: {name}: {wrong.message}") from None
            raise


def command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A verb; its docstring is its help."""
    return click.command(name, cls=Verb)


def store_option(function: F) -> F:
    return click.option(
        "--store", metavar="FOLDER", envvar="DIBS_STORE", help="The folder all machines mount, or a bucket."
    )(function)


def study_option(function: F) -> F:
    return click.option("--study", metavar="NAME", envvar="DIBS_STUDY", help="The study's name.")(function)


def sweep_option(function: F) -> F:
    return click.option("--name", "sweep", metavar="NAME", envvar="DIBS_SWEEP", help="The sweep's name.")(function)


def which_option(function: F) -> F:
    return click.option(
        "--goal", "which", type=Which(min=0), default=0, metavar="K", help="Which of several goals, from 0."
    )(function)


def me_option(function: F) -> F:
    return click.option(
        "--me", metavar="NAME", envvar="DIBS_ME", help="Who this is, for people to read.  [default: the host's name]"
    )(function)


def as_json(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def verbose(function: F) -> F:
    def louder(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            set_level(logging.DEBUG)

    return click.option(
        "-v", "--verbose", is_flag=True, expose_value=False, callback=louder, help="Show the log in full on stderr."
    )(function)


def needed(value: str | None, name: str, example: str, more: str = "") -> str:
    """The setting, or UsageError that says the three ways to give it."""
    if not value:
        raise UsageError(
            f'no {name}: say --{name} {example}, set DIBS_{name.upper()}, or put {name} = "{example}" in a dibs.toml '
            f"in this folder or one above it{more and f', {more}'}"
        )
    return value


def needed_sweep(value: str | None) -> str:
    """The sweep's name, or UsageError that says the three ways to give it."""
    if not value:
        raise UsageError(
            'no name of the sweep: say --name NAME, set DIBS_SWEEP, or put sweep = "NAME" in a dibs.toml in this folder '
            "or one above it"
        )
    return value
