"""Attached results: scores obtained elsewhere, history without an index. Each is read once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dibs._canon import all_to_json, digest, from_json
from dibs.backend import Object
from dibs.errors import RecordError
from dibs.record import decode
from dibs.store import Store, StudyKeys

from ._names import Hint

__all__ = ["Given", "given_record"]

AT_ONCE = 1024  # read at once, where that is faster; a fork may bring ten thousand


class Given(dict[str, tuple[dict[str, Any], float]]):
    """key -> (point, score) of one study's attached results, as last refreshed."""

    def __init__(self, store: Store, keys: StudyKeys, problems: dict[str, str]) -> None:
        super().__init__()
        self.store, self.prefix, self._problems = store, keys.given, problems
        self._hint = Hint(keys.given)

    def refresh(self, now: float, above: bool = True) -> None:
        """Look again, if something moved (``now``: monotonic seconds). What does not read is told as a problem."""
        if not self._hint.due(self.store, now, above):
            return
        names = set(self.store.backend.names(self.prefix))
        new = sorted(key for key in (self.prefix + name for name in names) if key not in self)
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            for key, there in zip(some, self.store.backend.read_many(some), strict=True):
                self._take(key, there)
        for key in [key for key in self._problems if key.startswith(self.prefix)]:
            if key[len(self.prefix) :] not in names:
                del self._problems[key]

    def look_again(self) -> None:
        """A refresh failed on its way: nothing that was listed counts as looked at."""
        self._hint.again()

    def _take(self, key: str, there: Object | RecordError | None) -> None:
        if there is None:
            return
        try:
            if isinstance(there, RecordError):
                raise there
            body = decode(there.data, key)
            point = {str(name): from_json(value) for name, value in body["point"].items()}
            if type(body["score"]) not in (int, float):
                raise TypeError("the score is no number")
            self[key] = (point, float(body["score"]))
            self._problems.pop(key, None)
        except RecordError as wrong:
            self._problems[key] = str(wrong)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as wrong:
            self._problems[key] = f"{key} is not an attached result ({wrong!r:.120})"


def given_record(keys: StudyKeys, point: Mapping[str, Any], score: float) -> tuple[str, dict[str, Any]]:
    """The key of an attached result, which is the digest of its point and score, and the fields that say what it is."""
    result = {"point": all_to_json(point), "score": score}
    return keys.given_score(digest(result)), {"study": keys.name, **result}
