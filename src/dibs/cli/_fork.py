"""``dibs fork``: a study begun again with another space, with the results that still fit.

Its parameters are not named as those of ``run``: the seed in a ``dibs.toml`` is the old study's, and would be the new
one's.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click
from click.core import ParameterSource

from dibs.cell import frozen_in
from dibs.errors import UsageError
from dibs.space import Space
from dibs.study import Study
from dibs.study._fork import Forked, fork

from ._opening import open_study
from ._options import Whole, as_json, command, me_option, store_option, verbose
from ._spacefile import read_space
from ._text import out, safe

__all__ = ["verb"]

_SPACES = (".toml", ".json", ".yaml", ".yml")  # what `dibs exec` takes; a search file has another ending


@command("fork")
@click.argument("old", metavar="STUDY")
@click.argument("new")
@click.option(
    "--space",
    "file",
    metavar="FILE",
    help="The new space: a search file, or TOML, JSON or YAML.  [default: the study's]",
)
@click.option(
    "--fill", multiple=True, metavar="NAME=VALUE", help="What the old trials had for a parameter that is new."
)
@click.option("--drop", multiple=True, metavar="NAME", help="Leave out an old parameter that made no difference.")
@click.option(
    "--seed",
    "its_seed",
    type=Whole(min=0),
    metavar="S",
    help="Of the new study.  [default: follows from the old]",
)
@store_option
@me_option
@as_json
@verbose
def verb(
    old: str, new: str, file: str | None, fill: tuple[str, ...], drop: tuple[str, ...], its_seed: int | None,
    store: str | None, me: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Begin a study again with another space.

    NEW gets STUDY's goal, sampler, pruner and limits, the space in FILE (as `dibs run` or `dibs exec` takes it), and every
    result of STUDY that lies in it, as attached results: its sampler knows them, and they cost no trial. What is not
    taken over is counted by reason. STUDY stays as it is. Said again, it adds what is missing.

    A parameter that the old trials have not: --fill dropout=0 says what it was for them. One that the new space has not:
    --drop says that it made no difference; or let the space have it as the constant that it is now.

    \b
    Example:
      dibs fork spam spam-2 --space search.py --store /mnt/shared/studies
      dibs fork spam spam-2 --space search.py --fill dropout=0.0 --drop momentum

    Exit codes: 0; 2 usage, no such study, or a wrong space; 3 store unusable; 4 NEW is there and is another study.
    """
    opened = open_study(store, old, me)
    space = _space(file) if file is not None else None
    filled = _read(space or opened.space, fill)
    made = fork(opened, new, space, fill=filled, drop=drop, seed=its_seed, on_progress=_progress)
    told = made.forked
    assert told is not None
    if as_json:
        out(json.dumps({"study": new, **told._asdict()}))
    else:
        given = click.get_current_context().get_parameter_source("store") is ParameterSource.COMMANDLINE
        _say(new, told, file, _runs_programs(opened, file), store if given else None)
    return 0


def _say(new: str, told: Forked, file: str | None, programs: bool, store: str | None) -> None:
    out(f"{told.attached} results of {safe(told.of)} attached to {safe(new)}; {told.there} were there")
    for reason, count in told.left.items():
        out(f"  left out: {count} {safe(reason)}")
    place = f"--store {safe(shlex.quote(store))} " if store else ""
    named = f"{place}--study {safe(shlex.quote(new))} --trials N"
    if programs:
        out(f"to go on: dibs exec {named} -- COMMAND", err=True)
    else:
        out(f"to go on: dibs run {safe(shlex.quote(file or 'FILE'))} {named}", err=True)


def _runs_programs(old: Study, file: str | None) -> bool:
    """Whether `dibs exec` goes on, and not `dibs run`: a space without an objective, or a study that has run scripts."""
    return _is_space(file) if file is not None else bool(frozen_in(old.store, old.name))


def _is_space(file: str) -> bool:
    return Path(file).suffix.lower() in _SPACES


def _space(file: str) -> Space:
    if _is_space(file):
        return read_space(Path(file))
    from ._file import load

    return load(file).space


def _read(space: Space, words: tuple[str, ...]) -> dict[str, object]:
    """``name=value`` for parameters of the space, each as if it were alone."""
    names = [word.partition("=")[0] for word in words]
    for word, name in zip(words, names, strict=True):
        if "=" not in word:
            raise UsageError(f"--fill {word!r}: write NAME=VALUE, with a parameter of the new space")
        if name not in space:
            there = ", ".join(map(repr, space))
            raise UsageError(f"--fill {word!r}: {name!r} is no parameter of the new space; it has {there}")
    if not names:
        return {}
    return dict(Space({name: space[name].free() for name in names}).read(shlex.join(words)))


def _progress(looked: int, whole: int) -> None:
    if sys.stderr.isatty() and looked < whole:
        out(f"{looked} of {whole} results", err=True)
