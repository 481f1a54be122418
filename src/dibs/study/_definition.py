"""What a study is: written once in study.json at creation, compared by everybody who joins.

A joiner that says something else is refused, with the field, both values and the cure. A field left out
(None) means "as created".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from dibs._canon import plain
from dibs.errors import NotFound, RecordError, RefusedError, StoreError, UsageError
from dibs.record import decode, decode_trial
from dibs.search import (
    Curve,
    Goal,
    Goals,
    Pair,
    Pruner,
    PrunerSpec,
    Sampler,
    Verdict,
    a_goal,
    make_pruner,
    make_sampler,
)
from dibs.space import Space
from dibs.store import Store, StudyKeys

from ._scoring import goal_said

__all__ = [
    "DEFAULT_SAMPLER", "Definition", "ForeignPruner", "ForeignSampler", "check_terms", "create_or_join",
    "read_definition",
]  # fmt: skip

DEFAULT_SAMPLER = "auto"
DEFAULT_STALE_S = 3600.0
_CURE = "join without it to take the study's, or give the new search another name"
_FORK = "; a fork, study.fork(name, space) or `dibs fork {0} NEW --space FILE`, takes over the results that still fit"
_ONE_GOAL = "a pruner compares curves of one score: a study of several goals has none"


@dataclass(frozen=True)
class Definition:
    """A study's frozen definition. ``goal``: one, or a tuple of several."""

    study: str
    space: Space
    goal: Goals
    sampler: Sampler
    seed: int
    stale_s: float = DEFAULT_STALE_S
    max_step: int | None = None
    pruner: Pruner | None = None

    def body(self) -> dict[str, Any]:
        """The fields of study.json."""
        return {
            "study": self.study, "space": self.space.to_json(), "seed": self.seed,
            "goal": list(self.goal) if isinstance(self.goal, tuple) else self.goal,
            "sampler": _said(self.sampler), "pruner": _said(self.pruner) if self.pruner is not None else None,
            "stale_s": self.stale_s, "max_step": self.max_step,
        }  # fmt: skip


class ForeignSampler(Sampler):
    """The sampler of a study that cannot be made from its name here: reading goes on, asking says why not."""

    name = ""
    several = True

    def __init__(self, described: Mapping[str, Any], why: str) -> None:
        super().__init__()
        self.described, self.why = dict(described), why

    def describe(self) -> dict[str, Any]:
        return self.described

    def ask(self, space: Space, n: int, history: Iterable[Pair] = ()) -> dict[str, Any] | None:
        raise UsageError(self.why)


class ForeignPruner(Pruner):
    """The pruner of a study that cannot be made from its name here: reading goes on, running says why not."""

    name = ""

    def __init__(self, described: Mapping[str, Any], why: str) -> None:
        self.described, self.why = dict(described), why

    def describe(self) -> dict[str, Any]:
        return self.described

    @property
    def label(self) -> str:
        return str(self.described["name"])

    def decide(self, own: Curve, others: Sequence[Curve]) -> Verdict | None:
        raise UsageError(self.why)


def _said(thing: Sampler | Pruner) -> dict[str, Any]:
    """What a sampler or pruner says of itself, as it comes back from study.json. Raises UsageError."""
    try:
        text = json.dumps(thing.describe(), allow_nan=False, ensure_ascii=False, default=_listed).encode()
    except (TypeError, ValueError, RecursionError) as wrong:
        raise UsageError(f"what args() of {type(thing).__name__} returns must be JSON: {wrong}") from None
    said: dict[str, Any] = json.loads(text)
    return said


def _listed(value: Any) -> Any:
    """Arrays as lists, numpy's numbers as Python's."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r:.80} is not")


def read_definition(store: Store, study: str) -> Definition | None:
    """The definition of a study, None if it has none (yet). Raises RecordError if it does not parse."""
    key = store.keys(study).study
    there = store.backend.read(key)
    if there is None:
        return None
    pause_s = 0.02
    clock = store.machine.clock
    deadline = clock.monotonic() + store.settler.patience_s
    while not there.data and store.backend.traits.claim == "mkdir" and clock.monotonic() < deadline:
        clock.sleep(pause_s)  # claimed, its creator is still writing
        there = store.backend.read(key) or there
    if not there.data and store.backend.traits.claim == "mkdir":
        raise RecordError(
            f"{key} is claimed, and its creator has not written it: if that process is dead, remove the folder "
            f"{key}.claim, and whoever comes next creates the study",
            key=key,
        )
    body = decode(there.data, key)
    try:
        if body["kind"] != "study" or not isinstance(body["study"], str):
            raise TypeError(f"its kind is {body['kind']!r:.80}")
        if body["study"] != study:
            raise RecordError(f"{key} holds the study {body['study']!r} instead of {study!r}", key=key)
        goal, seed, stale_s, max_step = (body[name] for name in ("goal", "seed", "stale_s", "max_step"))
        if None in (goal, seed, stale_s):
            raise TypeError("goal, seed and stale_s are never null")
        check_terms(study, goal, seed, stale_s, max_step)
        goal = a_goal(goal)
        space = Space.from_json(body["space"])
        sampler = _sampler_of(body["sampler"], seed, goal)
        pruner = _pruner_of(body.get("pruner"), goal, max_step, seed)
        return Definition(study, space, goal, sampler, seed, float(stale_s), max_step, pruner)
    except (KeyError, TypeError, UsageError) as wrong:
        raise RecordError(f"{key} is not the definition of a study ({wrong})", key=key) from None


def _sampler_of(described: Any, seed: int, goal: Goals) -> Sampler:
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise TypeError("its sampler has no name")
    try:
        return make_sampler(described, seed=seed, goal=goal)
    except (UsageError, RefusedError) as wrong:  # somebody's own, or of another version: the results read all the same
        return ForeignSampler(described, str(wrong)).seeded(seed, goal)


def _pruner_of(described: Any, goal: Goals, max_step: int | None, seed: int) -> Pruner | None:
    if described is None:
        return None
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise TypeError("its pruner has no name")
    if isinstance(goal, tuple):
        return ForeignPruner(described, _ONE_GOAL)
    try:
        return make_pruner(described, goal=goal, max_step=max_step, seed=seed)
    except UsageError as wrong:  # somebody's own, or of another version: the results read all the same
        return ForeignPruner(described, str(wrong))


def create_or_join(
    store: Store,
    study: str,
    *,
    space: Space | None,
    goal: Goals | None,
    sampler: str | Sampler | None,
    pruner: PrunerSpec | None = None,
    seed: int | None,
    stale_s: float | None,
    max_step: int | None,
    me: str | None,
) -> Definition | None:
    """The study's definition, created by this call or by whoever was first; None for reading a study without one.

    Raises RefusedError (differs), UsageError (cannot be meant), NotFound (says which studies exist).
    """
    check_terms(study, goal, seed, stale_s, max_step, sampler, pruner)
    goal, seed, max_step = goal_said(goal), plain(seed), plain(max_step)
    found = read_definition(store, study)
    if found is None:
        if space is None or goal is None:
            _only_read(store, study, space, goal)
            return None
        _agree_with_records(store, study, goal)
        drawn = seed if seed is not None else getattr(sampler, "seed", None)
        if drawn is None:  # not into ``seed``: whoever loses the race below did not ask for this one
            drawn = int.from_bytes(store.machine.entropy(4), "big")
        chosen = make_sampler(sampler or DEFAULT_SAMPLER, seed=drawn, goal=goal)
        chosen.size(space)  # a sampler that cannot search this space says so before there is a study
        stopping = None
        if pruner is not None:
            stopping = make_pruner(pruner, goal=_one(goal), max_step=max_step, seed=drawn)
        ours = Definition(study, space, goal, chosen, drawn, float(stale_s or DEFAULT_STALE_S), max_step, stopping)
        body = {**store.head("study", me), **ours.body()}
        if store.settler.claim(store.keys(study).study, body, durable=True) is not None:
            return ours
        found = read_definition(store, study)
        if found is None:
            raise StoreError(f"study {study!r} was created and removed again meanwhile: try again")
    _compare(found, space, goal, sampler, seed, stale_s, max_step)
    if pruner is not None:
        found = replace(found, pruner=_same_pruner(found, pruner))
    if isinstance(sampler, Sampler):
        return replace(found, sampler=sampler.seeded(found.seed, found.goal))
    return found


def check_terms(
    study: str,
    goal: Any,
    seed: int | None,
    stale_s: float | None,
    max_step: int | None,
    sampler: str | Sampler | None = None,
    pruner: PrunerSpec | None = None,
) -> None:
    """UsageError for what no study can be, before a store is touched."""
    StudyKeys(study)
    seed, stale_s, max_step = plain(seed), plain(stale_s), plain(max_step)
    goal_said(goal)
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**63):
        raise UsageError(f"seed must be an integer from 0 to 2**63 - 1, not {seed!r}")
    if stale_s is not None and not (type(stale_s) in (int, float) and 0 < stale_s < float("inf")):
        raise UsageError(f"stale_s must be a positive number of seconds, not {stale_s!r}")
    if max_step is not None and (type(max_step) is not int or max_step < 0):
        raise UsageError(f"max_step must be a non-negative integer, not {max_step!r}")
    if sampler is not None:
        make_sampler(sampler)
    if pruner is not None:
        make_pruner(pruner)
        if goal is not None:
            _one(goal)


def _one(goal: Goals) -> Goal:
    """The goal, for a pruner. Raises UsageError for several."""
    if not isinstance(goal, str):
        raise UsageError(_ONE_GOAL)
    return goal


def _compare(
    found: Definition,
    space: Space | None,
    goal: Goals | None,
    sampler: str | Sampler | None,
    seed: int | None,
    stale_s: float | None,
    max_step: int | None,
) -> None:
    if space is not None and space != found.space:
        import shlex  # to refuse, and for nothing else

        name, ours, theirs = next(iter(space.differences(found.space)), ("space", space, found.space))
        _refuse(found.study, f"space ({name})", theirs, ours, _FORK.format(shlex.quote(found.study)))
    for field, ours, theirs in (
        ("goal", goal, found.goal),
        ("seed", seed, found.seed),
        ("stale_s", stale_s and float(stale_s), found.stale_s),
        ("max_step", max_step, found.max_step),
    ):
        if ours is not None and ours != theirs:
            _refuse(found.study, field, theirs, ours)
    if isinstance(sampler, str):
        if sampler != found.sampler.name:
            _refuse(found.study, "sampler", found.sampler.name, sampler)
    elif sampler is not None:
        ours = _said(make_sampler(sampler, seed=found.seed, goal=found.goal))
        if ours != _said(found.sampler):
            _refuse(found.study, "sampler", found.sampler.describe(), ours)


def _same_pruner(found: Definition, pruner: PrunerSpec) -> Pruner:
    """The study's pruner as the joiner made it; by name alone it is taken as created. RefusedError if it is another."""
    if found.pruner is None:
        _refuse(found.study, "pruner", None, make_pruner(pruner).label)
    ours = make_pruner(pruner, goal=_one(found.goal), max_step=found.max_step, seed=found.seed)
    if _said(ours) == _said(found.pruner):
        return ours
    by_name = isinstance(pruner, str) or (
        isinstance(pruner, Sequence) and all(isinstance(each, str) for each in pruner)
    )
    if not by_name:
        _refuse(found.study, "pruner", found.pruner.describe(), ours.describe())
    if ours.label != found.pruner.label:
        _refuse(found.study, "pruner", found.pruner.label, ours.label)
    return found.pruner


def _refuse(study: str, field: str, theirs: object, ours: object, cure: str = "") -> NoReturn:
    says = f"created with {field} = {theirs!r}" if theirs is not None else f"created without {field}"
    raise RefusedError(
        f"study {study!r} was {says}, and {f'you say {ours!r}' if ours is not None else 'yours has none'}: {_CURE}{cure}",
        field=field, theirs=theirs, ours=ours,
    )  # fmt: skip


def _only_read(store: Store, study: str, space: Space | None, goal: Goals | None) -> None:
    """Without a space and a goal nothing is created: the study exists through its records, or it does not exist."""
    studies = store.studies()
    if study in studies and space is None:
        return
    missing = " and ".join(word for word, given in (("a space", space), ("a goal", goal)) if given is None)
    if study in studies:
        raise NotFound(f"study {study!r} has records but no definition: to give it one, give {missing} too")
    known = ", ".join([*map(repr, studies[:10]), *(["..."] if len(studies) > 10 else [])]) or "none"
    raise NotFound(f"there is no study {study!r} in {store.url} (there: {known}); to create it give {missing}")


def _agree_with_records(store: Store, study: str, goal: Goals) -> None:
    """A study begun by the function API has records but no definition: their goals must agree with ours."""
    keys = store.keys(study)
    for entry in store.backend.list(keys.trials()):
        there = store.backend.read(entry.key)
        if there is None:
            continue
        try:
            theirs = decode_trial(there.data, entry.key).goal
        except RecordError:
            continue
        if theirs is not None and theirs != goal:
            _refuse(study, "goal", theirs, goal)
