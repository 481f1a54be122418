"""``dibs``: the verbs by name, each loaded when it is used, and the one way in and out.

``dibs --help`` shows a table that stands here, so that it loads no verb; a test compares it with theirs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from dibs import __version__

from ._group import Verbs, overview
from ._guard import guarded

__all__ = ["VERBS", "Root", "main"]

#: verb -> what it does, in the order of the overview
VERBS = {
    "run": "Search a Python objective.",
    "exec": "Search any program, in any language.",
    "sweep": "Run a list of cells, and prove that nothing is missing.",
    "federation": "Look at federated rounds, and verify their averages.",
    "launch": "Start workers where they fit: here, or on a cluster.",
    "status": "Show what is happening in a study, or in a store.",
    "best": "Show the best point found.",
    "trials": "List the trials, one line each.",
    "show": "Show one trial in full.",
    "history": "Show how the best score came about.",
    "importances": "Show how much each parameter mattered.",
    "slice": "Show the scores along each parameter.",
    "contour": "Show the scores over two parameters.",
    "enqueue": "Ask for a point to be tried.",
    "stop": "Stop new trials on all machines.",
    "resume": "Let a stopped study go on.",
    "retry": "Let failed trials be tried again.",
    "rescue": "Free the trials of machines that went away.",
    "fork": "Begin a study again with another space.",
    "doctor": "Find out whether a store can lie in a folder.",
    "check": "Look for damage in a store, and say what to do.",
    "gc": "Remove what nothing in a store can need.",
    "copy": "Copy a store onto another place, folder or bucket.",
    "import": "Attach the results of another library's study to one of ours.",
}
EPILOG = """\b
Example:
  dibs run search.py --store /mnt/shared/studies --study spam --trials 100
  dibs best --store /mnt/shared/studies --study spam

\b
A flag beats a variable (DIBS_STORE, DIBS_STUDY, DIBS_SWEEP, DIBS_ME,
DIBS_WORK), a variable beats the nearest dibs.toml, in this folder or one
above it.

\b
Exit codes: 0 ok; 1 some trials or cells failed; 2 usage; 3 store unusable; 4
refused by the study's definition or the sweep's plan; 5 no result; 6 left
unfinished; 7 a sweep's durable copy failed; 70 a bug in dibs; 74 the answer
cannot be written; 129/130/143 stopped by SIGHUP/Ctrl-C/SIGTERM; 141 nobody
reads the answer. DIBS_DEBUG=1 shows tracebacks.
"""


class Root(Verbs):
    """The group of all verbs. ``main`` never lets an exception out: it exits with a code."""

    table = VERBS

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command and exit with its code (with ``standalone_mode=False`` return it)."""
        words = list(sys.argv[1:] if args is None else args)
        self._main_shell_completion(extra, "dibs", complete_var)
        code = guarded(lambda: self._do(words, extra))
        if standalone_mode:
            sys.exit(code)
        return code

    def _do(self, words: list[str], extra: dict[str, Any]) -> Any:
        with self.make_context("dibs", list(words), **extra) as ctx:
            ctx.meta["dibs.words"] = words
            return self.invoke(ctx)


@click.command(cls=Root, epilog=EPILOG, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, message="dibs %(version)s")
@click.pass_context
def main(ctx: click.Context) -> int:
    """N machines search one space together, through nothing but a folder or bucket they share."""
    return overview(ctx)
