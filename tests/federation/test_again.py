"""An average that somebody removed or damaged is made again, the same bytes, or it is said what is missing for that."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.rounds import model, same, together
from tests.parts import body_at, plant

from dibs import NotFound, Store, StoreError
from dibs.backend import MemoryBackend
from dibs.federation import fedavg, gather, latest, verify
from dibs.store import RoundKeys, blob_key

KEYS = RoundKeys("r")
EXPORTS: dict[str, Any] = {"a": model("a"), "b": model("b"), "c": {**model("c"), "b": np.full(100, np.nan)}}
OPTIONS: dict[str, Any] = {"bad": "drop", "clip": 2.0, "base": model("z")}
EXPECTED = fedavg(EXPORTS, **OPTIONS)


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = Store(tmp_path / "s", create=True) if request.param == "folder" else Store.over(MemoryBackend())
    together(made, EXPORTS, **OPTIONS)
    return made


def blob(store: Store, *client: str) -> str:
    key = KEYS.update(0, *client) if client else KEYS.average(0)
    return str(body_at(store, key)["blob"])


def again(store: Store, client: str | None = "a", **options: Any) -> Any:
    export = options.pop("export", EXPORTS.get(client or ""))
    common = {"run": "r", "round": 0, "clients": list(EXPORTS), "client": client, "within": 5.0}
    return gather(store, export, **{**common, **OPTIONS, **options})


@pytest.mark.parametrize("damage", ["removed", "cut"])
@pytest.mark.parametrize("who", ["a client", "a client without its export", "nobody of them", "who goes on"])
def test_whoever_needs_it_makes_it_again(store: Store, damage: str, who: str, caplog: pytest.LogCaptureFixture) -> None:
    digest = blob(store)
    if damage == "removed":
        store.backend.delete(blob_key(digest))
    else:
        plant(store, blob_key(digest), store.get(digest)[:-1])
    caplog.clear()
    if who == "who goes on":
        got = latest(store, "r")
    elif who == "nobody of them":
        got = again(store, client=None, export=None, base=None, clip=None)
    else:
        got = again(store, export=EXPORTS["a"] if who == "a client" else None)
    assert got is not None
    assert (got.digest, same(got, EXPECTED)) == (digest, True)
    assert "its average was made again from its updates" in caplog.text
    assert [each.state for each in verify(store, "r")] == ["same"]  # and it is there for everybody
    got.tensors["w"] += 1


def test_it_is_said_what_is_missing_and_each_client_brings_its_own(store: Store) -> None:
    gone = {name: blob(store, name) for name in "ab"}
    for digest in (blob(store), *gone.values()):
        store.backend.delete(blob_key(digest))
    missing = [rf"the update of '{name}' \(blob {digest}\) is not there" for name, digest in gone.items()]
    with pytest.raises(NotFound, match="; ".join(missing)):
        again(store, export=None)
    with pytest.raises(NotFound, match=f"cannot be made again: {missing[1]}. A client that still has its update"):
        again(store, "a")
    assert same(again(store, "b"), EXPECTED)
    assert same(again(store, "a", export=None), EXPECTED)


@pytest.mark.parametrize("what", ["record", "layout", "base", "update cut", "list", "layout cut"])
def test_of_what_it_cannot_be_made_again_is_said(store: Store, what: str) -> None:
    terms = body_at(store, KEYS.terms(0))
    store.backend.delete(blob_key(blob(store)))
    if what == "record":
        store.backend.delete(KEYS.update(0, "b"))
        said = "the record of the update of 'b' is not there"
    elif what == "update cut":
        plant(store, blob_key(blob(store, "b")), b"x")
        said = "'b': the blob .* is damaged"
    elif what == "list":
        store.backend.delete(KEYS.averaging(0, 0))
        said = "whose updates went in, are not there"
    elif what == "layout cut":
        plant(store, blob_key(terms["layout"]), b"x")
        said = "the blob .* is damaged"
    else:
        store.backend.delete(blob_key(terms[what]))
        said = f"blob {terms[what]}"
    with pytest.raises(NotFound, match=said):
        again(store, client=None, export=None, base=None, clip=None)


def test_an_end_that_lies_is_not_believed(store: Store) -> None:
    end = body_at(store, KEYS.average(0))
    for lie in ("0" * 64, "../../etc/passwd", blob(store, "a")[::-1]):
        plant(store, KEYS.average(0), {**end, "blob": lie})
        with pytest.raises(NotFound, match=f"its updates make {end['blob']}, and"):
            latest(store, "r")


def test_who_cannot_write_has_it_all_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.backend.delete(blob_key(blob(store)))

    def full(*args: Any, **options: Any) -> Any:
        raise StoreError("made up: no space")

    monkeypatch.setattr(type(store), "put", full)
    got = latest(store, "r")
    assert got is not None
    assert same(got, EXPECTED)


def test_a_round_that_was_put_away_is_not_made_again(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    gather(store, model("a"), run="r", round=1, clients=["a"], client="a", keep=1)
    caplog.set_level(logging.WARNING)
    with pytest.raises(NotFound, match="was put away"):
        again(store)
    assert caplog.text == ""
    assert not store.has(blob(store, "a"))
