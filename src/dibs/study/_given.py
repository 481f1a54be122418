"""Attached results: scores obtained elsewhere, history without an index. Each is read once.

None ever goes away, so what is put together of them stands until there are more: a fork brings ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dibs._canon import all_to_json, digest, from_json
from dibs.backend import Object
from dibs.errors import NotFound, RecordError
from dibs.record import decode
from dibs.search import History
from dibs.store import Store, StudyKeys

from ._names import Hint
from ._saw import attached_row
from ._scoring import Attached

__all__ = ["Given", "given_record"]

AT_ONCE = 1024  # read at once, where that is faster
FEW = 64  # so many are named one by one in what an asker had seen; of more, how many and a digest of their names


class Given(dict[str, Attached]):
    """key -> one study's attached results, as last refreshed."""

    def __init__(self, store: Store, keys: StudyKeys, problems: dict[str, str]) -> None:
        super().__init__()
        self.store, self.prefix, self._problems = store, keys.given, problems
        self._hint = Hint(keys.given)
        self.ours = False  # this process has attached one: there are some, whatever the last listing told
        self._rows: tuple[int, int, History] = (0, 0, History())
        self._said: tuple[int, list[str] | dict[str, Any]] = (0, [])

    def history(self, goals: int) -> History:
        """All of them as a history of so many goals, by key."""
        count, of, rows = self._rows
        if (count, of) != (len(self), goals):
            count = len(self)
            rows = History.of(attached_row(found, goals) for _, found in sorted(self.items()))
            self._rows = count, goals, rows
        return rows

    def said(self) -> list[str] | dict[str, Any]:
        """Which they are, in a few words: their names, or ``{"count", "digest"}`` of these."""
        count, said = self._said
        if count != len(self):
            names = self._names()
            said = names if len(names) <= FEW else {"count": len(names), "digest": digest(names)}
            self._said = len(names), said
        return said

    def recall(self, said: Mapping[str, Any]) -> list[str]:
        """The names behind a digest. Raises NotFound if more were attached since, or some are not there any more."""
        if said != self.said():
            raise NotFound(
                f"its asker had seen {said['count']} attached results, and now there are others: {len(self)} of them"
            )
        return self._names()

    def _names(self) -> list[str]:
        return sorted(key[len(self.prefix) :] for key in self)

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
            self[key] = _attached(body)
            self._problems.pop(key, None)
        except RecordError as wrong:
            self._problems[key] = str(wrong)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as wrong:
            self._problems[key] = f"{key} is not an attached result ({wrong!r:.120})"


def given_record(keys: StudyKeys, found: Attached) -> tuple[str, dict[str, Any]]:
    """The key of an attached result, which is the digest of what it says, and the fields that say it."""
    told: dict[str, Any] = {"point": all_to_json(found.point), "score": found.score}
    if found.score is None:
        told["scores"] = list(found.scores)
    if found.constraints is not None:
        told["constraints"] = found.constraints
    return keys.given_score(digest(told)), {"study": keys.name, **told}


def _attached(body: Mapping[str, Any]) -> Attached:
    """Raises KeyError, TypeError, ... for what is none."""
    point = {str(name): from_json(value) for name, value in body["point"].items()}
    score, scores, constraints = body["score"], body.get("scores"), body.get("constraints")
    if score is None and type(scores) is not list:
        raise TypeError("it has no score")
    return Attached(
        point,
        None if score is None else _number(score),
        () if score is not None else tuple(_number(each) for each in scores or ()),
        None if constraints is None else {str(name): _number(value) for name, value in constraints.items()},
    )


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError("a score is no number")
    return float(value)
