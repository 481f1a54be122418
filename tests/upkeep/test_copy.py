"""A copy: the same names and bytes, safe while workers run, nothing handed out before it is adopted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.parts import dibs

from dibs import Float, RefusedError, Space, Store, StoreError, Study, UsageError
from dibs.backend import CrashingBackend, Killed, Object
from dibs.record import decode, encode
from dibs.study import finished, take
from dibs.study._attempt import Attempt
from dibs.upkeep import Copied, Copier, adopt_copy, check, open_copy
from dibs.upkeep._copy import locked
from dibs.upkeep._copy_rules import final, rule_of

SPACE = Space(x=Float(0, 1))


def filled(where: Any, trials: int = 6) -> Store:
    """A store with done trials, blobs, a note, a name, and one trial still running."""
    store = Store(where)
    study = Study(store, "s", SPACE, goal="min", seed=0)
    for trial in study.trials(trials):
        with trial:
            trial.report(1.0)
            trial.report(trial.point["x"])
    study.enqueue({"x": 0.5})
    store.claim("champion", store.put(b"weights" * 100), {"k": 1})
    store.put(b"loose")
    return store


def running(store: Store, of: int = 7) -> Attempt:
    claimed = Study(store, "s").claimer(of).step()
    assert isinstance(claimed, Attempt)
    return claimed


def objects(store: Store) -> dict[str, bytes]:
    """Everything but what each store says of itself."""
    found = {}
    for entry in store.backend.list(""):
        if entry.key not in ("dibs.json", "copy_of.json", "adopted.json"):
            there = store.backend.read(entry.key)
            assert there is not None
            found[entry.key] = there.data
    return found


def copied(source: Store, where: Any) -> tuple[Store, Copied]:
    copy = open_copy(source, str(where))
    return copy, Copier(source, copy).run()


def test_the_same_names_and_bytes_but_for_the_marker(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    copy, told = copied(source, tmp_path / "b")
    assert objects(copy) == objects(source)
    assert copy.marker["nonce"] != source.marker["nonce"]
    assert (told.blobs, told.troubles) == (8, [])
    assert finished(copy, SPACE, study="s") == finished(source, SPACE, study="s")
    assert check(copy, deep=True).clean
    again = Copier(source, copy).run()
    assert (again.records, again.blobs, again.bytes) == (0, 0, 0)


def test_the_command_that_adopts_a_copy_is_one_for_a_shell(tmp_path: Path) -> None:
    where = tmp_path / "b & c"
    copied(filled(tmp_path / "a"), where)
    with pytest.raises(RefusedError, match=re.escape(f"say `dibs copy --adopt '{where}'`")):
        Store(where).claim("other")


def test_a_copy_hands_out_nothing_until_it_is_adopted(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    open_copy(source, str(tmp_path / "b"))
    Copier(source, open_copy(source, str(tmp_path / "b"))).run()
    copy = Store(tmp_path / "b")
    study = Study(copy, "s")
    for refused in (
        lambda: next(study.trials(9)),
        lambda: take(copy, {"x": 0.1}, study="s", trial=7, goal="min"),
        lambda: Study(copy, "t", SPACE, goal="min"),
        lambda: study.stop(),
        lambda: copy.claim("other"),
    ):
        with pytest.raises(RefusedError, match="is a copy of"):
            refused()
    assert study.best().score is not None
    assert objects(copy) == objects(source)
    assert adopt_copy(Store(tmp_path / "b"))
    assert not adopt_copy(Store(tmp_path / "b"))
    for trial in study.trials(9):  # the very study that was refused
        trial.done(1.0)
    with pytest.raises(RefusedError, match="adopted"):
        open_copy(source, str(tmp_path / "b"))
    with pytest.raises(RefusedError, match="adopted"):
        Copier(source, copy).run()


def test_what_cannot_be_copied_onto_is_refused(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    filled(tmp_path / "own")
    with pytest.raises(RefusedError, match="a store of its own"):
        open_copy(source, str(tmp_path / "own"))
    with pytest.raises(UsageError, match="the store it would be copied from"):
        open_copy(source, str(tmp_path / "a"))
    open_copy(source, str(tmp_path / "b"))
    with pytest.raises(RefusedError, match="is a copy of"):
        open_copy(Store(tmp_path / "own"), str(tmp_path / "b"))
    with pytest.raises(RefusedError, match="no copy"):
        adopt_copy(source)


def test_a_running_trial_is_copied_and_brought_up_when_it_closes(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    attempt = running(source)
    copy, _ = copied(source, tmp_path / "b")
    copier = Copier(source, copy)
    assert copier.run().records == 0
    (tmp_path / "ck").write_bytes(b"1" * 1000)
    attempt.keep("ck.pt", tmp_path / "ck")
    assert copier.run().records == 1
    attempt.close("done", score=0.25)
    assert copier.run().records == 1
    assert objects(copy) == objects(source)


def test_a_closed_record_is_never_opened_nor_another_owners_replaced(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    attempt = running(source)
    key = attempt.keys.attempt(attempt.n, 0)
    before = source.backend.read(key)
    attempt.close("done", score=0.25)
    copy, _ = copied(source, tmp_path / "b")
    after = copy.backend.read(key)
    assert before is not None
    assert after is not None
    source.backend.replace(key, source.backend.stage(before.data), "")  # an old view of it comes back
    told = Copier(source, copy).run()
    assert (told.records, told.kept, told.troubles) == (0, 1, [])
    other = encode({**decode(after.data, key), "nonce": "ab" * 16, "score": 0.75})
    source.backend.replace(key, source.backend.stage(other), "")
    told = Copier(source, copy).run()
    assert [(trouble.key, "another owner" in trouble.what) for trouble in told.troubles] == [(key, True)]
    assert copy.backend.read(key).data == after.data  # type: ignore[union-attr]


def test_the_rules() -> None:
    def record(state: str, nonce: str = "a", score: float | None = None) -> tuple[bytes, dict[str, Any]]:
        body = {"v": 1, "kind": "trial", "state": state, "nonce": nonce, "score": score}
        return encode(body), body

    opened, later, closed, twice = record("running"), record("running", score=1.0), record("done"), record("failed")
    for here, there, exclusive, rule in [
        (opened, None, False, "create"),
        (opened, opened[0], False, "same"),
        (closed, opened[0], False, "replace"),
        (later, opened[0], True, "replace"),
        (later, opened[0], False, "keep"),
        (opened, closed[0], True, "keep"),
        (twice, closed[0], True, "closed twice"),
        (closed, record("running", "b")[0], True, "other"),
        (closed, b"torn", False, "replace"),
        (opened, b"torn", False, "keep"),
    ]:
        assert rule_of(*here, there, exclusive=exclusive) == rule


@pytest.mark.parametrize("state", [{}, ["done"], 1, None])
def test_a_state_of_another_type_is_no_end(state: Any) -> None:
    """Somebody edited it by hand, or another program wrote it: it is copied for what it is, and never as closed."""
    body = {"v": 1, "kind": "trial", "state": state, "nonce": "a"}
    done = encode({**body, "state": "done"})
    assert not final("trial", body)
    assert rule_of(encode(body), body, done, exclusive=True) == "keep"
    assert rule_of(done, decode(done, ""), encode(body), exclusive=False) == "replace"


def test_damage_is_told_and_not_copied(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    blobs = sorted(entry.key for entry in source.backend.list("blobs/"))
    (tmp_path / "a" / blobs[0]).write_bytes(b"rot")
    (tmp_path / "a" / "study/s/trial/000000/00000000-0.json").write_bytes(b'{"v":')
    (tmp_path / "a" / "photo.json").write_bytes(b"cheese")
    copy, told = copied(source, tmp_path / "b")
    keys = {trouble.key for trouble in told.troubles}
    assert keys >= {blobs[0], "study/s/trial/000000/00000000-0.json", "photo.json"}
    assert not copy.has(blobs[0][-64:])


@pytest.mark.parametrize("plant", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/hosts")])
def test_what_is_no_file_under_a_blobs_name_is_told_and_the_rest_is_copied(tmp_path: Path, plant: Any) -> None:
    source = filled(tmp_path / "a")
    blob = next(entry.key for entry in source.backend.list("blobs/"))
    (tmp_path / "a" / blob).unlink()
    plant(tmp_path / "a" / blob)
    copy, told = copied(source, tmp_path / "b")
    assert any(blob[-64:] in trouble.key + trouble.what for trouble in told.troubles)
    assert not copy.has(blob[-64:])
    assert len(finished(copy, SPACE, study="s")) == len(finished(source, SPACE, study="s")) == 6


def test_what_is_no_key_is_told_and_the_rest_is_copied(tmp_path: Path) -> None:
    """What NFS leaves of an open file that was removed, and what other programs put there."""
    source = filled(tmp_path / "a")
    for name in (".nfs0001", "study/README", "study/s/.nfs0002"):
        (tmp_path / "a" / name).write_text('{"v":1,"nonce":"x"}')
    copy, told = copied(source, tmp_path / "b")
    assert [trouble.key for trouble in told.troubles] == [".nfs0001", "study/README", "study/s/.nfs0002"]
    assert all("no object of a store" in trouble.what for trouble in told.troubles)
    assert objects(copy) == objects(source)


def test_a_blob_that_is_torn_in_the_copy_is_sent_again(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    copy, _ = copied(source, tmp_path / "b")
    torn, rotten = sorted(entry.key for entry in source.backend.list("blobs/"))[:2]
    (tmp_path / "b" / torn).write_bytes(b"half")
    (tmp_path / "a" / rotten).write_bytes(b"the source's own damage")
    told = Copier(source, copy).run()
    assert (told.blobs, told.troubles) == (1, [])
    assert check(copy, deep=True).clean
    (tmp_path / "b" / rotten).write_bytes(b"both")
    assert rotten in {trouble.key for trouble in Copier(source, copy).run().troubles}


def test_a_copy_lies_apart_from_what_it_copies(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    source = filled(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for place in ("a/b/inner", "a/b/study/s", "a", "link/b/inner"):
        with pytest.raises(UsageError, match="inside one another"):
            open_copy(source, str(tmp_path / place))
    assert not (tmp_path / "a" / "dibs.json").exists()
    open_copy(source, str(tmp_path / "a" / "bb"))


def test_killed_at_every_step_and_begun_again(tmp_path: Path) -> None:
    """Killed at each call to the copy in turn: what is there is whole, named after what it names, and resumed."""
    source = filled(tmp_path / "a", trials=2)
    running(source, 3)
    steps = 1
    while True:
        where = tmp_path / f"b{steps}"
        copy = open_copy(source, str(where))
        inner = copy.backend
        copy.backend = CrashingBackend(inner, steps)
        try:
            Copier(source, copy).run()
            break
        except Killed:
            pass
        there = Store(where)
        for key, data in objects(there).items():
            body = decode(data, key) if key.startswith("study/s/trial") else {}
            assert all(there.has(digest) for digest in [body.get("blob")] if digest)
        assert Copier(source, open_copy(source, str(where))).run().troubles == []
        assert objects(there) == objects(source)
        steps += 7
    assert steps > 40


def test_while_workers_run(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    over = threading.Event()

    def work() -> None:
        try:
            for trial in Study(Store(tmp_path / "a"), "s").trials(60):
                with trial:
                    trial.report(1.0)
                    trial.report(trial.point["x"])
        finally:
            over.set()

    worker = threading.Thread(target=work)
    copy = open_copy(source, str(tmp_path / "b"))
    copier = Copier(source, copy)
    worker.start()
    while not over.is_set():
        assert copier.run().troubles == []
        assert not [finding for finding in check(copy, deep=True).findings if finding.kind == "missing"]
    worker.join()
    copier.run()
    assert objects(copy) == objects(source)


def test_one_copier_at_a_time_in_a_folder(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    copy = open_copy(source, str(tmp_path / "b"))
    with locked(str(tmp_path / "b")) as held:
        assert held
        with pytest.raises(StoreError, match="one at a time"):
            Copier(source, copy).run()
    Copier(source, copy).run()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    copy = open_copy(source, str(tmp_path / "b"))
    inner = type(copy.backend).read

    class Forgets(type(copy.backend)):  # type: ignore[misc]
        def read(self, key: str) -> Object | None:
            return None if "/trial/" in key else inner(self, key)

    copy.backend.__class__ = Forgets
    with pytest.raises(StoreError, match="no clear answer"):
        Copier(source, copy).run()


def test_the_command(tmp_path: Path) -> None:
    filled(tmp_path / "a")
    told = dibs("copy", "a", "b", "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["troubles"] == []
    (tmp_path / "search.py").write_text(
        'import dibs\ngoal = "min"\nspace = dibs.Space(x=dibs.Float(0, 1))\ndef objective(trial):\n    return 1.0\n'
    )
    run = ("run", "search.py", "--study", "s", "--trials", "8", "--store", "b")
    ran = dibs(*run, cwd=tmp_path)
    assert ran.returncode == 4
    assert "is a copy of" in ran.stderr
    assert dibs("status", "--store", "b", "--study", "s", cwd=tmp_path).returncode == 0
    assert dibs("copy", "a", "b", "--adopt", cwd=tmp_path).returncode == 0
    assert dibs(*run, cwd=tmp_path).returncode == 0
    assert dibs("copy", "a", "b", cwd=tmp_path).returncode == 4
    assert dibs("copy", "a", cwd=tmp_path).returncode == 2
    assert dibs("copy", "missing", "c", cwd=tmp_path).returncode == 3


def test_following_copies_what_is_new(tmp_path: Path) -> None:
    source = filled(tmp_path / "a")
    words = [sys.executable, "-m", "dibs", "copy", "a", "b", "--follow", "--every", "0.05", "--json"]
    follower = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert follower.stdout is not None
        told = (json.loads(line)["records"] for line in follower.stdout)
        assert next(told) > 0
        attempt = running(source)
        assert next(filter(None, told)) == 1  # as it runs; its end would else come into a pass of its own or not
        attempt.close("done", score=0.5)
        assert next(filter(None, told)) == 1
        follower.send_signal(signal.SIGINT)
        follower.communicate(timeout=60)
        assert follower.returncode == 130
    finally:
        follower.kill()
    assert objects(Store(tmp_path / "b")) == objects(source)
