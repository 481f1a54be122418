"""``dibs import``: results of another library's study, attached to one of ours."""

from __future__ import annotations

import json

import click

from dibs.errors import UsageError
from dibs.store import Store

from ._options import as_json, command, needed, store_option, study_option, verbose
from ._text import out, safe

__all__ = ["verb"]


@command("import")
@click.argument("source", metavar="URL")
@click.argument("theirs", metavar="STUDY")
@click.option("--from", "library", type=click.Choice(["optuna"]), required=True, help="Whose study it is.")
@store_option
@study_option
@as_json
@verbose
def verb(source: str, theirs: str, library: str, store: str | None, study: str | None, as_json: bool) -> int:
    """Attach the results of another library's study to one of ours.

    URL is the storage: a database's URL such as sqlite:///study.db, or the path of an Optuna journal file; STUDY is the
    study's name in it, and ours too unless --study says otherwise. Ours is created with the space its trials were drawn
    from if it is not there. Complete trials become attached results, which samplers learn from; the others are counted
    and left out. Said twice, nothing is attached twice.

    \b
    Example:
      dibs import --from optuna sqlite:///optuna.db spam --store /mnt/studies
      dibs import --from optuna journal.log spam --store ./studies --study spam-2

    Exit codes: 0; 2 usage, no such study, or no space can be told; 3 store unusable; 4 the study has another goal.
    """
    place = needed(store, "store", "FOLDER")
    try:
        from dibs.integrations._optuna_import import import_study
    except ImportError as error:
        raise UsageError(f"{library} is not installed here: pip install 'dibs[{library}]'") from error
    told = import_study(source, theirs, Store(place), study)
    left = dict(sorted(told.left.items()))
    if as_json:
        out(json.dumps({"study": told.study.name, "attached": told.attached, "there": told.there, "left": left}))
        return 0
    out(f"{told.attached} results attached to {safe(told.study.name)}; {told.there} were there")
    if left:
        out("left out: " + ", ".join(f"{count} {reason}" for reason, count in left.items()))
    return 0
