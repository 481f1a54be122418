"""The error tree. Every error carries its facts as fields and names the remedy in its text.

    DibsError
    ├── UsageError (ValueError)            exit 2   a call or an option that cannot be meant
    │   ├── SpaceError                     exit 2   a space, or a point outside it
    │   └── UpdateError                    exit 2   a client's tensors that cannot be averaged
    ├── StoreError (OSError)               exit 3   the folder or bucket failed, lied or is not there
    │   ├── UnsureError                    exit 3   a write whose outcome could not be learnt in time
    │   └── RecordError                    exit 3   an object that does not parse
    │       └── NewerFormat                exit 3   written by a later version
    ├── RefusedError (ValueError)          exit 4   differs from what the study was created with
    ├── NoResult (LookupError)             exit 5   nothing done yet
    ├── NotFound (LookupError)             exit 2   no such study or trial
    ├── RoundStopped (RuntimeError)        exit 1   a federated round that ended without an average
    ├── RoundTimeout (TimeoutError)        exit 6   a federated round in which too few answered in time
    └── NotOwner (RuntimeError)            exit 1   the attempt is not this process's to write
        ├── Superseded                     exit 1   the name carries another nonce
        └── AlreadyClosed                  exit 1   the first close is the last write

Nothing here imports anything else of the package.
"""

from __future__ import annotations

__all__ = [
    "AlreadyClosed",
    "DibsError",
    "NewerFormat",
    "NoResult",
    "NotFound",
    "NotOwner",
    "RecordError",
    "RefusedError",
    "RoundStopped",
    "RoundTimeout",
    "SpaceError",
    "StoreError",
    "Superseded",
    "UnsureError",
    "UpdateError",
    "UsageError",
]


class DibsError(Exception):
    """The root: everything dibs raises on purpose. ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(DibsError, ValueError):
    """A call or an option that cannot be meant; the text says what to write instead."""

    exit_code = 2


class SpaceError(UsageError):
    """A wrong space, or a point that is not in it. ``parameter`` names the culprit, or is None."""

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class UpdateError(UsageError):
    """Tensors that cannot be averaged with the others. ``client`` and ``tensor`` name the culprit, or are empty."""

    def __init__(self, message: str, *, client: str = "", tensor: str = "") -> None:
        super().__init__(message)
        self.client, self.tensor = client, tensor


class StoreError(DibsError, OSError):
    """The store failed, refused or is not there. ``key`` is the name involved, or None."""

    exit_code = 3

    def __init__(self, message: str, *, key: str | None = None, passing: bool = False) -> None:
        super().__init__(message)
        self.key = key
        self.passing = passing  # it may well work in a moment: an outage, a time-out, "slow down"


class UnsureError(StoreError):
    """A write whose outcome could not be learnt in time; others will find the name quiet, if it is there."""


class RecordError(StoreError):
    """An object that does not parse as what its name says."""


class NewerFormat(RecordError):
    """An object written by a later version of dibs: upgrade to read it."""


class RefusedError(DibsError, ValueError):
    """A definition that differs from the study's. ``field``, ``theirs`` (as created) and ``ours`` say how."""

    exit_code = 4

    def __init__(self, message: str, *, field: str = "", theirs: object = None, ours: object = None) -> None:
        super().__init__(message)
        self.field, self.theirs, self.ours = field, theirs, ours


class NoResult(DibsError, LookupError):
    """Nothing is done yet; the text carries the counts by state."""

    exit_code = 5


class NotFound(DibsError, LookupError):
    """No such study, trial or blob; the text says which exist."""

    exit_code = 2


class RoundStopped(DibsError, RuntimeError):
    """A federated round that ended without an average, for good. ``rejected``: client -> why it could not go in."""

    def __init__(self, message: str, *, run: str = "", round: int = -1, rejected: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.run, self.round, self.rejected = run, round, dict(rejected or {})


class RoundTimeout(DibsError, TimeoutError):
    """A federated round was not over in time; the same call goes on with it. ``missing``: who has not answered."""

    exit_code = 6

    def __init__(self, message: str, *, run: str = "", round: int = -1, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.run, self.round, self.missing = run, round, missing


class NotOwner(DibsError, RuntimeError):
    """The attempt is not this process's to write (never claimed here, or claimed before a fork)."""


class Superseded(NotOwner):
    """The name carries another nonce: the attempt was removed and claimed by somebody else."""


class AlreadyClosed(NotOwner):
    """The attempt is closed already; the first close is the last write."""
