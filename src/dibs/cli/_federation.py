"""``dibs federation``: the verbs of federated rounds by name, each loaded when it is used (``_federation_<verb>``)."""

from __future__ import annotations

import click

from ._group import Verbs, overview

__all__ = ["FEDERATION_VERBS", "verb"]

FEDERATION_VERBS = {
    "status": "Show the rounds of a run: who is in, missing, late, rejected.",
    "verify": "Compute averages once more, and compare bit for bit.",
}
EPILOG = """\b
Example:
  dibs federation status --store S --run spam
  dibs federation verify --store S --run spam

\b
Exit codes: 0 ok; 1 an average is not what its updates make; 2 usage; 3 store
unusable.
"""


class _Federation(Verbs):
    table = FEDERATION_VERBS
    modules = "dibs.cli._federation_"


@click.command("federation", cls=_Federation, epilog=EPILOG, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def verb(ctx: click.Context) -> int:
    """Look at federated rounds, and verify their averages.

    Rounds are run from Python: dibs.federation.gather, or dibs.torch.gather.
    """
    return overview(ctx)
