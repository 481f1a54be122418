"""The sink itself: two words (folder, direction) and the calls. What it remembers of this process is in ``_marks``."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, final

from dibs._clock import SystemClock
from dibs._passing import interrupts, is_foreign
from dibs.errors import UsageError

from ._best import SinkRecord, best_of
from ._folder import is_of_this_program, is_ours, make_folder, remove_folder
from ._marks import Mark, forget, is_held, mark_of, renew
from ._owner import boot
from ._pickling import pickled, refuse_by_value
from ._reading import said, standings
from ._score import better, finite, wanted
from ._spool import commit, hold
from ._values import pack, pack_each

__all__ = ["Sink"]

log = logging.getLogger("dibs")
CLOCK = SystemClock()


@final
class Sink:
    """The best trial out of a pool of workers: they ``record``, and who started them asks for the ``best``.

    Made by ``Sink.create()``. It holds a path and a flag and nothing else, so it goes to workers however they are
    started (fork, spawn, loky, dask); ``Sink(folder, maximize)`` is the same sink again. Whatever is killed, what was
    recorded before is there, and an artefact never comes with another trial's numbers.

    Artefacts are pickles: who can write to the folder, which is its maker's alone, can run code in who calls ``best``.
    """

    __slots__ = ("_folder", "_maximize")

    def __init__(self, folder: str | os.PathLike[str], maximize: bool = True) -> None:
        """The sink in a folder that is there; ``maximize`` as it was created. UsageError for what is no path, or no flag."""
        path = os.fspath(folder) if isinstance(folder, str | os.PathLike) else None
        if not isinstance(path, str) or not path or "\0" in path:
            raise UsageError(f"{folder!r} is no folder: pass the path that sink.folder gave, or use Sink.create()")
        self._folder = str(Path(path).absolute())
        self._maximize = _flag(maximize)

    @classmethod
    def create(cls, maximize: bool = True) -> Sink:
        """A sink in a fresh folder of its own, which ``cleanup`` removes, or else the end of this process.

        Folders beside it that killed processes of this user left are removed, where these are certainly dead. The folder is below ``DIBS_SINK_DIR``, or in the temporary folder where that is not set or (with a warning) cannot
        be used; workers on other machines need one that they share. StoreError if there is no place at all;
        UsageError if cloudpickle was told to ship dibs by value.
        """
        refuse_by_value()
        _flag(maximize)
        return cls(make_folder(), maximize)

    @property
    def folder(self) -> str:
        """Where it lies, absolute."""
        return self._folder

    @property
    def maximize(self) -> bool:
        """Whether a higher score is better."""
        return self._maximize

    def is_better(self, a: Any, b: Any) -> bool:
        """Whether score ``a`` beats ``b``: strictly, and None or what is not finite beats nothing and is beaten by all that is."""
        one, other = finite(a), finite(b)
        return one is not None and better(one, other, self._maximize)

    def record(self, /, score: Any, artifact: Any = None, params: Any = None, **scalars: Any) -> bool:
        """Spool this trial if it is the best of this process so far, and not worse than what others had when it began.

        True if any of it was spooled, so of all trials the best always is. Of equals in one process the first 8 are, if they have ``params``
        and the later ones' artefacts take no more than 64 MiB together; of ever new processes the first 32.
        ``score``: a number, a numpy scalar or a 0-d tensor; anything else, and what is not finite, is refused. ``artifact``:
        what pickles (by cloudpickle where that is installed; a class of the main script comes back as that class); the best trial that carried one is kept besides the best of
        all. ``params``: a mapping, or whatever the optimiser calls a point; ``scalars``: more about the trial. Plain
        values come back from ``best`` as they went in, others as text.

        A trial that is no best costs a few microseconds and no call to the disk. Raises no Exception of its own: what could
        not be written changes nothing, is warned of once, and a later trial may try again. What a signal handler raises in
        here, such as an alarm that limits the trial's time, passes, and this trial is not recorded or not in full.
        """
        try:
            number = finite(score)
            if number is None:
                return False
            mark = self._mark()
            carries = artifact is not None
            keeps = carries and wanted(number, mark.kept, mark.others_kept, self._maximize)
            ties = number == mark.seen and params is not None and is_held(mark, carries)
            if not keeps and not ties and not wanted(number, mark.seen, mark.others_seen, self._maximize):
                return False
            trial, data = _trial(number, params, scalars), None
            if keeps or (ties and carries):
                try:
                    data = pickled(artifact, by_name=is_of_this_program(self._folder))
                except Exception as error:
                    if interrupts(error):
                        raise
                    trial["artifact_error"] = f"could not be pickled: {said(error)}"
            if mark.pid != os.getpid():
                return False  # the artefact's own code forked, and this is the child
            return self._spooled(number, trial, data)
        except Exception as error:
            if is_foreign(error):
                raise
            return _warn(self._folder, said(error))

    def _mark(self) -> Mark:
        """This process's mark; before its first trial it has looked at what others have."""
        mark = mark_of(self._folder)
        if not mark.looked:
            mark.others_seen, mark.others_kept = standings(self._folder, self._maximize)
            mark.looked = True
        return mark

    def _spooled(self, score: float, trial: dict[str, Any], data: bytes | None) -> bool:
        """Look at the marks again, as nobody else of this process now can change them, and write what still is a best."""
        mark = self._mark()
        with mark.lock:
            if not mark.busy:
                keeps = data is not None and wanted(score, mark.kept, mark.others_kept, self._maximize)
                sees = wanted(score, mark.seen, mark.others_seen, self._maximize)
                ties = not keeps and not sees and score == mark.seen and trial["params"] is not None
                wrong: list[OSError] = []
                if keeps or sees:
                    wrong = commit(self._folder, mark, trial, data if keeps else None, sees)
                elif ties and (ties := is_held(mark, data is not None, len(data or b""))):
                    wrong = hold(self._folder, mark, trial, data)
                for error in wrong:
                    _warn(self._folder, said(error))
                if "artifact_error" in trial:
                    _warn(self._folder, f"the artefact {trial['artifact_error']}")
                return keeps + sees + ties > len(wrong)
        renew(self._folder, mark)
        return self._spooled(score, trial, data)

    def best(self, prefer_params: Any = None) -> SinkRecord | None:
        """The best trial that any process recorded, or None if there is none; unpickles at most one artefact.

        Among trials of the same score the one whose parameters are ``prefer_params`` (numbers are compared after rounding
        to 10 decimals, a numeral in a string like the number; True is not 1.0), else the earliest, and
        ``matched_best_params`` says which it was. Files that cannot be read are passed over, counted in ``skipped`` and
        warned of. StoreError if the folder is gone.
        """
        return best_of(self._folder, self._maximize, prefer_params)

    def cleanup(self) -> None:
        """Remove the folder with all that was recorded; for whoever is last. A second time nothing happens. Never raises."""
        forget(self._folder)
        remove_folder(self._folder)

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None:
        """``cleanup``, in the process that created the sink; a worker's copy leaves it alone."""
        if is_ours(self._folder):
            self.cleanup()

    def __reduce__(self) -> tuple[type[Sink], tuple[str, bool]]:
        refuse_by_value()
        return Sink, (self._folder, self._maximize)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sink) and (self._folder, self._maximize) == (other._folder, other._maximize)

    def __hash__(self) -> int:
        return hash((self._folder, self._maximize))

    def __repr__(self) -> str:
        return f"Sink({self._folder!r}, maximize={self._maximize})"


def _flag(maximize: bool) -> bool:
    if not isinstance(maximize, bool):
        raise UsageError(f"maximize={maximize!r}: True if a higher score is better, False if a lower one is")
    return maximize


def _trial(score: float, params: Any, scalars: dict[str, Any]) -> dict[str, Any]:
    """What is written of a trial, without a name yet."""
    now = {"boot": boot(), "tick": CLOCK.monotonic(), "wall": CLOCK.wall()}
    return {"score": score, "params": pack(params), "scalars": pack_each(scalars), **now}


def _warn(folder: str, what: str) -> bool:
    """Say once per process and sink what was not recorded. False, as ``record`` answers then."""
    try:
        mark = mark_of(folder)
        if not mark.warned:
            mark.warned = True
            log.warning("a trial was not recorded in full in the sink %s: %s", folder, what)
    except Exception as error:  # a system that is out of everything
        if interrupts(error):
            raise
    return False
