"""Rounds through a store: what everybody gets, who is told what, and that nothing published is ever written again."""

from __future__ import annotations

import errno
import signal
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.rounds import NAMES, keys_of, model, same, together, write_tensors
from tests.parts import at_once, body_at, plant

from dibs import NotFound, RefusedError, RoundStopped, RoundTimeout, Store, StoreError, UpdateError, UsageError
from dibs.backend import MemoryBackend
from dibs.federation import Tensor, _computing, fedavg, gather, latest, open_tensors, participants, rounds_in, runs_in
from dibs.federation._exports import flatten
from dibs.federation._files import chunks_of
from dibs.federation._forgetting import forget
from dibs.record import encode
from dibs.store import RoundKeys, blob_key

KEYS = RoundKeys("r")
GONE = {"pid": 2**22 - 1}  # above what pids go to by default


@pytest.fixture(params=["memory", "folder", "mkdir-like"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Store(tmp_path / "store", create=True)
    return Store.over(MemoryBackend(conditional_replace=request.param == "memory"))


def test_everybody_gets_the_same_bits_as_one_process_computes(store: Store) -> None:
    exports = {name: model(name) for name in NAMES}
    got = together(store, exports)
    expected = fedavg(exports)
    assert [same(each, expected) for each in got.values()] == [True] * 5
    assert {each.digest for each in got.values()} == {got["a"].digest}
    assert (got["a"].weights, got["a"].rejected, got["a"].missing, got["a"].update) == (
        dict.fromkeys(NAMES, 0.2),
        {},
        (),
        "new",
    )
    assert "average.json" in keys_of(store)
    assert "averaging/1.json" not in keys_of(store)


def test_rules_rule(store: Store) -> None:
    exports = {name: model(name) for name in "abc"}
    for round, options in enumerate([{"robust": "median"}, {"others": "max"}, {"clip": 2.0, "base": model("z")}]):
        told = together(store, exports, round=round, **options)
        assert [same(each, fedavg(exports, **options)) for each in told.values()] == [True] * 3, (options, told)


def alone(store: Store, **options: Any) -> Any:
    export = options.pop("export", model("a"))
    return gather(store, export, **{"run": "r", "round": 0, "clients": ["a"], "client": "a", "within": 5.0, **options})


def test_sizes_weigh(store: Store) -> None:
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], size=3, within=0.001)
    got = alone(store, client="b", export=model("b"), clients=["a", "b"], size=np.int64(1))
    assert same(got, fedavg({"a": model("a"), "b": model("b")}, {"a": 3, "b": 1}))
    assert got.weights == {"a": 0.75, "b": 0.25}


def test_nodes_come_back_as_nodes_and_may_be_written_to(store: Store) -> None:
    got = alone(store, export={"n": {"w": np.ones(2)}, "m": {"w": np.zeros(1)}}, size=3)
    got.tensors["n"]["w"] += 1
    assert got.tensors["n"]["w"].tolist() == [2, 2]
    again = latest(store, "r")
    assert again is not None
    assert (again.tensors["n"]["w"].tolist(), again.tensors["m"]["w"].tolist()) == ([1, 1], [0])


def test_a_restart_finds_its_update_and_the_first_bytes_count(store: Store) -> None:
    clients = {"clients": ["a", "b"], "within": 0.001}
    with pytest.raises(RoundTimeout, match=r"missing: 'b'") as caught:
        alone(store, **clients)
    assert (caught.value.missing, caught.value.exit_code) == (("b",), 6)
    before = {key: store.backend.read(KEYS.round(0) + key).data for key in keys_of(store)}
    with pytest.raises(RoundTimeout):  # begun again, with other bytes: what is there stays
        alone(store, export=model("a", 1), **clients)
    got = alone(store, client="b", export=model("b"), clients=["a", "b"])
    assert same(got, fedavg({"a": model("a"), "b": model("b")}))
    assert [alone(store, export=export, clients=["a", "b"]).update for export in (model("a"), model("a", 1), None)] == [
        "same",
        "first",
        "same",
    ]
    assert {key: store.backend.read(KEYS.round(0) + key).data for key in before} == before


def test_who_comes_late_is_recorded_and_never_merged(store: Store) -> None:
    got = {name: alone(store, client=name, export=model(name), clients=NAMES, quorum=1, grace=0) for name in "abe"}
    assert same(got["a"], fedavg({"a": model("a")}))
    assert [each.update for each in got.values()] == ["new", "late", "late"]
    assert {each.digest for each in got.values()} == {got["a"].digest}
    assert got["e"].missing == ("b", "c", "d", "e")
    assert [key for key in keys_of(store) if "/" in key] == [
        "averaging/0.json",
        "client/a.json",
        "late/b.json",
        "late/e.json",
    ]
    assert alone(store, client="e", export=model("e"), clients=NAMES, quorum=1, grace=0).update == "late"


def test_one_that_published_as_the_list_was_made_is_late_too(store: Store) -> None:
    """Its record is there and the first averaging has not seen it: nobody may merge it later."""
    for name in "ab":
        with pytest.raises(RoundTimeout, match=r"missing: .*'c'"):
            alone(store, client=name, export=model(name), clients=["a", "b", "c"], within=0.001)
    digest = body_at(store, KEYS.update(0, "a"))["digest"]
    body = {**store.head("averaging"), "state": "interrupted", "of": {"a": digest}, "nonce": "0" * 32}
    plant(store, KEYS.averaging(0, 0), encode(body))
    got = alone(store, client="b", export=model("b"), clients=["a", "b", "c"])
    assert (got.update, got.missing) == ("late", ("b", "c"))
    assert same(got, fedavg({"a": model("a")}))
    assert "late/b.json" in keys_of(store)


@pytest.mark.parametrize("dead", ["gone", "interrupted", "failed"])
def test_an_averager_that_died_is_followed_with_the_same_list(store: Store, dead: str) -> None:
    """Elsewhere such a round hangs for ever. The list stays: who came meanwhile is late."""
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b", "c"], within=0.001)
    who = {**store.machine.who("x"), **GONE}
    body = {
        **store.head("averaging"),
        "who": who,
        "state": "running",
        "of": {"a": body_at(store, KEYS.update(0, "a"))["digest"]},
        "nonce": "0" * 32,
    }
    if dead != "gone":
        body["state"] = dead
    plant(store, KEYS.averaging(0, 0), encode(body))
    got = alone(store, client="b", export=model("b"), clients=["a", "b", "c"])
    assert same(got, fedavg({"a": model("a")}))
    assert body_at(store, KEYS.average(0))["attempt"] == 1
    assert body_at(store, KEYS.averaging(0, 1))["state"] == "done"


def test_three_that_died_over_it_are_enough(store: Store) -> None:
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001)
    who = {**store.machine.who("x"), **GONE}
    for attempt in range(3):
        body = {
            **store.head("averaging"),
            "who": who,
            "state": "running",
            "of": {"a": "0" * 64},
            "nonce": f"{attempt:032}",
        }
        plant(store, KEYS.averaging(0, attempt), encode(body))
    with pytest.raises(RoundStopped, match="poison") as caught:
        alone(store, clients=["a", "b"])
    assert caught.value.exit_code == 1
    with pytest.raises(RoundStopped, match="poison"):
        alone(store, client="b", export=model("b"), clients=["a", "b"])


def lost(store: Store, states: list[str]) -> None:
    """Attempts at averaging that ended so, for a round of two clients of which one has answered."""
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001)
    of = {"a": body_at(store, KEYS.update(0, "a"))["digest"]}
    for attempt, state in enumerate(states):
        who = {**store.machine.who("x"), **GONE}
        body = {**store.head("averaging"), "who": who, "state": state, "of": of, "nonce": f"{attempt:032}"}
        plant(store, KEYS.averaging(0, attempt), encode(body))


def test_interruptions_are_nobodys_fault_however_many(store: Store) -> None:
    """A scheduler that takes its machines back says nothing of the updates, and a round that is stopped is stopped for good."""
    lost(store, ["interrupted"] * 25 + ["running", "failed"])
    assert same(alone(store, clients=["a", "b"]), fedavg({"a": model("a")}))
    assert body_at(store, KEYS.average(0))["attempt"] == 27


@pytest.mark.parametrize("states", [["failed"] * 3, ["running", "interrupted", "failed", "running"]])
def test_three_that_raised_or_were_killed_are_enough(store: Store, states: list[str]) -> None:
    lost(store, states)
    with pytest.raises(RoundStopped, match="poison"):
        alone(store, clients=["a", "b"])


class TimeUp(Exception):
    pass


def alarm(signum: int, frame: Any) -> None:
    raise TimeUp


def late_alarm(signum: int, frame: Any) -> None:
    raise TimeoutError("no time left")


@pytest.mark.parametrize(
    ("what", "state"),
    [
        (StoreError("made up"), "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device"), "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
        (alarm, "interrupted"),
        (late_alarm, "interrupted"),
        (MemoryError(), "failed"),
        (ValueError("what nobody thought of"), "failed"),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_what_ends_an_averager_is_told_from_what_its_updates_do_to_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: Any, state: str
) -> None:
    def weights(*args: Any) -> Any:
        if callable(what):
            signal.raise_signal(signal.SIGUSR1)
        raise what

    before = signal.signal(signal.SIGUSR1, what if callable(what) else signal.SIG_DFL)
    monkeypatch.setattr(_computing, "weights_of", weights)
    try:
        wanted = {alarm: TimeUp, late_alarm: TimeoutError}.get(what, type(what)) if callable(what) else type(what)
        with pytest.raises(StoreError if isinstance(what, OSError) else wanted):
            alone(store)
    finally:
        signal.signal(signal.SIGUSR1, before)
    monkeypatch.undo()
    assert body_at(store, KEYS.averaging(0, 0))["state"] == state
    assert same(alone(store), fedavg({"a": model("a")}))


NAN = {**model("b"), "b": np.full(100, np.nan)}


def test_nan_of_one_client_stops_the_round_for_all(store: Store) -> None:
    got = together(store, {"a": model("a"), "b": NAN, "c": model("c")})
    assert {type(each) for each in got.values()} == {RoundStopped}
    assert "the update of 'b' was rejected: tensor 'b' holds NaN" in str(got["a"])
    assert list(got["c"].rejected) == ["b"]


def test_nan_of_one_client_is_dropped(store: Store) -> None:
    exports = {"a": model("a"), "b": NAN, "c": model("c")}
    got = together(store, exports, bad="drop")
    assert same(got["b"], fedavg({"a": model("a"), "c": model("c")}))
    assert list(got["a"].rejected) == ["b"]
    assert body_at(store, KEYS.update(0, "b"))["blob"] is None  # nobody needs these bytes
    told = together(store, exports, bad="drop", quorum=3, round=1)
    assert "2 of 3 updates can be averaged, and 3 are wanted" in str(told["a"])


@pytest.mark.parametrize("what", ["nan", "no file", "other layout", "blob gone", "blob torn", "size", "size below 0"])
def test_an_averager_believes_no_client(store: Store, what: str) -> None:
    """A client that did not look at its own update, or lies."""
    from dibs.federation._exports import flatten

    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001, bad="drop", size=2 if what == "size below 0" else None)
    export = {"nan": NAN, "other layout": {"w": np.ones(3)}}.get(what, model("b"))
    data = b"pickle" if what == "no file" else b"".join(chunks_of(flatten(export, "b")[0], {}))
    blob = store.put(data)
    if what == "blob gone":
        store.backend.delete(blob_key(blob))
    if what == "blob torn":
        plant(store, blob_key(blob), data[:-1])
    body = {
        **store.head("round-update"),
        "client": "b",
        "digest": blob,
        "blob": blob,
        "size": {"size": 3, "size below 0": -1}.get(what),
        "fault": None,
        "nonce": "1" * 32,
    }
    plant(store, KEYS.update(0, "b"), encode(body))
    got = alone(store, clients=["a", "b"], bad="drop", size=2 if what == "size below 0" else None)
    assert list(got.rejected) == ["b"]
    assert same(got, fedavg({"a": model("a")}))


OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    ("clients", "begun with clients", {"clients": ["a", "b", "c"]}),
    ("quorum", "quorum = None, and this client has 1", {"quorum": 1}),
    ("rule", "rule = ", {"robust": "median"}),
    ("layout", "tensor 'b' of this client is missing", {"export": {"w": model("b")["w"], "n": model("b")["n"]}}),
    ("layout", "it is not node by node", {"export": {"x": model("b")}}),
    ("sized", "this client gives a size", {"size": 3}),
]


@pytest.mark.parametrize(("field", "said", "options"), OTHERS, ids=[f"{field}: {said}" for field, said, _ in OTHERS])
def test_who_has_other_terms_is_refused(store: Store, field: str, said: str, options: dict[str, Any]) -> None:
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001)
    wanted = said if "node" not in said else "round 0 of 'r'"
    with pytest.raises(RefusedError, match=wanted) as caught:
        alone(store, **{"client": "b", "export": model("b"), "clients": ["a", "b"], **options})
    assert caught.value.field == field
    assert "client/b.json" not in keys_of(store)


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("none of the clients", {"client": "z"}),
        ("a whole number from 0", {"round": -1}),
        ("a whole number from 0", {"round": True}),
        ("quorum is a number from 1 to 1", {"quorum": 2}),
        ("within is a number of seconds above 0", {"within": 0}),
        ("within is a number of seconds above 0", {"within": "5"}),
        ("grace is a number of seconds not below 0", {"grace": None}),
        ("stale_s is a number of seconds above 0", {"stale_s": float("nan")}),
        ("stale_s is a number of seconds above 0", {"stale_s": "5"}),
        ("seed is a whole number", {"seed": "x"}),
        ("keep is a number", {"keep": 0}),
        ("go together", {"clip": 1.0}),
        ("weighs nobody", {"robust": "median", "size": 2}),
        ("number of 0 or more", {"size": float("nan")}),
        ("number of 0 or more", {"size": "3"}),
        ("number of 0 or more", {"size": 10**400}),
        ("number of 0 or more", {"size": b"3"}),
        ("number of 0 or more", {"size": bytearray(b"3")}),
        ("number of 0 or more", {"size": np.True_}),
        ("has published nothing", {"export": None}),
        ("exports no tensors", {"export": {}}),
    ],
)
def test_calls_that_cannot_be_meant_write_nothing(store: Store, said: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=said):
        alone(store, **options)
    assert keys_of(store) == []


def test_who_is_not_in_waits_for_the_others(store: Store) -> None:
    exports: dict[str, Any] = {name: model(name) for name in NAMES}
    asked = participants(NAMES, "r", 0, 0.4)
    got = together(store, {name: exports[name] if name in asked else None for name in NAMES}, share=0.4)
    assert len(asked) == 2
    assert [same(each, fedavg({name: exports[name] for name in asked})) for each in got.values()] == [True] * 5
    assert [name for name, each in got.items() if each.update == "none"] == [
        name for name in NAMES if name not in asked
    ]


def test_who_is_no_client_may_wait_for_the_average(store: Store) -> None:
    got = at_once(
        [
            lambda: alone(store, clients=["a"]),
            lambda: alone(store, export=None, client=None, clients=["a"], within=60.0),
        ]
    )
    assert got[0].digest == got[1].digest
    with pytest.raises(UsageError, match="nothing to export"):
        alone(store, client=None)
    with pytest.raises(RoundTimeout, match="no client has begun it"):
        alone(store, client=None, export=None, round=7, within=0.001)


def test_the_last_rounds_are_kept(store: Store) -> None:
    for round in range(5):
        alone(store, export=model("a", round), round=round, keep=2)
    there = [store.has(body_at(store, KEYS.average(round))["blob"]) for round in range(5)]
    assert there == [False, False, False, True, True]
    assert [store.has(body_at(store, KEYS.update(round, "a"))["blob"]) for round in range(5)] == there
    newest = latest(store, "r")
    assert newest is not None
    assert newest.round == 4
    with pytest.raises(NotFound, match="was put away"):
        alone(store, export=None, round=1)
    assert forget(store, "r", 2) == 0


def test_a_run_that_has_no_average_yet_has_no_latest(store: Store) -> None:
    assert latest(store, "r") is None
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001)
    assert latest(store, "r") is None


def test_names_are_anything(store: Store) -> None:
    exports = {"Süd/1": model("s"), "..": model("x"), "n" * 200: model("n")}
    for run in ("Lauf 1/é", "r" * 150):
        got = together(store, exports, run=run, round=12)
        assert [same(each, fedavg(exports)) for each in got.values()] == [True] * 3
    assert runs_in(store) == ["Lauf 1/é", "r" * 150]
    assert rounds_in(store, "r" * 150) == [12]


def test_an_export_that_cannot_be_averaged_is_refused_at_home(store: Store) -> None:
    with pytest.raises(UpdateError, match="complex64"):
        alone(store, export={"w": np.ones(2, np.complex64)})
    assert keys_of(store) == []


def test_memory_does_not_grow_with_the_model_nor_with_the_clients(tmp_path: Path) -> None:
    """Three updates of 24 MiB are averaged and fetched in less memory than one of them takes; updates may come from files."""
    store, names = Store(tmp_path / "store", create=True), ["a", "b", "c"]
    for at, name in enumerate(names):
        write_tensors(tmp_path / name, {"w": Tensor("F32", np.full(6 << 20, at, np.float32))}, {})
    for name in names[:2]:
        with pytest.raises(RoundTimeout):
            alone(store, client=name, export=open_tensors(tmp_path / name), clients=names, within=0.001)
    tracemalloc.start()
    got = alone(store, client="c", export=open_tensors(tmp_path / "c"), clients=names)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 << 20
    assert (got.tensors["w"] == 1).all()


def test_sizes_whose_sum_no_float_holds_do_not_stop_a_round(store: Store) -> None:
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], size=1e308, within=0.001)
    got = alone(store, client="b", export=model("b"), clients=["a", "b"], size=1.5e308)
    assert same(got, fedavg({"a": model("a"), "b": model("b")}, {"a": 1e308, "b": 1.5e308}))
    assert got.weights == {"a": 0.4, "b": 0.6}


def test_a_base_with_nan_is_refused_before_anything_is_published(store: Store) -> None:
    with pytest.raises(UpdateError, match="the base cannot be used: tensor 'w' holds NaN"):
        alone(store, clip=1.0, base={**model("a"), "w": model("a")["w"] * np.float32("nan")})
    assert keys_of(store) == []


def test_a_base_with_nan_that_another_program_published_ends_the_round(store: Store) -> None:
    """The average would be NaN for everybody, and a client with it no use in any later round."""
    options = {"clients": ["a", "b"], "clip": 1.0, "base": model("z")}
    with pytest.raises(RoundTimeout):
        alone(store, within=0.001, **options)
    base = {name: Tensor("F64", array * np.nan) if array.dtype == "f8" else array for name, array in model("z").items()}
    blob = store.put(chunks_of(flatten(base, "")[0], {}))
    plant(store, KEYS.terms(0), {**body_at(store, KEYS.terms(0)), "base": blob})
    plant(store, KEYS.update(0, "b"), {**body_at(store, KEYS.update(0, "a")), "client": "b", "nonce": "1" * 32})
    with pytest.raises(RoundStopped, match="the base cannot be used: tensor 'b' holds NaN"):
        alone(store, export=None, **options)


@pytest.mark.parametrize(
    ("field", "options"),
    [("clients", {"clients": ["a", "b", "c"]}), ("quorum", {"quorum": 1}), ("rule", {"robust": "median"})],
)
def test_who_brings_nothing_and_has_other_terms_is_refused_too(
    store: Store, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(RoundTimeout):
        alone(store, clients=["a", "b"], within=0.001)
    with pytest.raises(RefusedError) as caught:
        alone(store, export=None, **{"clients": ["a", "b"], **options})
    assert caught.value.field == field


def test_who_draws_other_clients_is_told_and_does_not_wait_for_itself(store: Store) -> None:
    asked = participants(NAMES, "r", 0, 0.4)
    other = next(seed for seed in range(1, 99) if participants(NAMES, "r", 0, 0.4, seed)[0] not in asked)
    (mine, _), options = asked, {"clients": NAMES, "share": 0.4}
    with pytest.raises(RoundTimeout):
        alone(store, client=mine, export=model(mine), within=0.001, **options)
    idle = next(name for name in NAMES if name not in participants(NAMES, "r", 0, 0.4, other))
    with pytest.raises(RefusedError, match="begun with clients"):
        alone(store, client=idle, export=None, seed=other, **options)


def test_a_blob_that_somebody_removed_is_brought_again_by_its_own_client(store: Store) -> None:
    clients = {"clients": ["a", "b"]}
    with pytest.raises(RoundTimeout):
        alone(store, within=0.001, **clients)
    store.backend.delete(blob_key(body_at(store, KEYS.update(0, "a"))["blob"]))
    with pytest.raises(RoundTimeout):
        alone(store, within=0.001, **clients)
    got = alone(store, client="b", export=model("b"), **clients)
    assert same(got, fedavg({"a": model("a"), "b": model("b")}))


def test_names_too_long_for_a_header_are_refused_before_anything_is_published(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dibs.federation._header.MOST_BYTES", 100)
    with pytest.raises(UpdateError, match="that is too many"):
        alone(store)
    assert keys_of(store) == []
