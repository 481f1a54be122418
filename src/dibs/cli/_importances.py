"""``dibs importances``: how much each parameter mattered."""

from __future__ import annotations

from dibs.errors import UsageError
from dibs.view import Importances

from ._heading import say_heading
from ._marks import bar
from ._opening import open_source
from ._options import as_json, command, store_option, study_option, verbose, which_option
from ._text import json_text, out, safe, table

__all__ = ["verb"]


@command("importances")
@store_option
@study_option
@which_option
@as_json
@verbose
def verb(store: str | None, study: str | None, which: int, as_json: bool) -> int:
    """Show how much each parameter mattered.

    By PED-ANOVA (Watanabe, Bansal and Hutter, IJCAI 2023), as Optuna computes it: how differently a parameter is
    distributed among the best tenth of the results and among all of them. One parameter at a time and over done results
    only; which values are good, `dibs slice` shows. Needs the extra `optuna` and 20 done results.

    \b
    Example:
      dibs importances --store /mnt/shared/studies --study spam

    Exit codes: 0; 2 usage, no such study, or Optuna is not installed; 3 store unusable; 5 too few results.
    """
    try:
        from dibs.integrations._optuna_importances import importances
    except ImportError as error:
        raise UsageError("importances need Optuna, which is not installed here: pip install 'dibs[optuna]'") from error
    told = importances(open_source(store, study), goal=which)
    if as_json:
        out(json_text(told.to_json()))
    else:
        _say(told)
    return 0


def _say(told: Importances) -> None:
    say_heading(told)
    if told.outside:
        out(f"  {told.outside} are not in its space and left out")
    out(f"  {told.method}: what sets the best {told.top} results apart")
    rows = [
        (one.name, f"{100 * one.importance:.1f} %", bar(one.importance), one.active, one.values)
        for one in told.parameters
    ]
    table(("parameter", "importance", "", "results", "values"), rows, right=(1, 3, 4), indent=2)
    for note in told.notes:
        out(f"  {safe(note)}")
    out(f"  {told.paper}")
