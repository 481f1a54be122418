"""A store with one thing wrong at a time: check names it, and gc takes only what nothing can need."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.parts import store_over

from dibs import Float, Space, Store, Study
from dibs.backend import Entry, MemoryBackend
from dibs.cli import main
from dibs.store import blob_key
from dibs.study import _rolls
from dibs.upkeep import check, collect, find_garbage
from dibs.upkeep._layout import place_of

SPACE = Space(x=Float(0, 1), y=Float(0, 1))
TRIAL = "study/s/trial/000000/{:08d}-0.json"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Twelve trials with curves (so with blobs), one of them failed, one running; rolls of four."""
    monkeypatch.setattr(_rolls, "T", 4)
    store = Store(tmp_path / "s")
    study = Study(store, "s", SPACE, goal="min", seed=0)
    for trial in study.trials(12):
        with trial:
            trial.report(1.0)
            trial.report(trial.point["x"])
            if trial.n == 3:
                raise ValueError("no")
    study.claimer(13).step()
    return store


def root(store: Store) -> Path:
    assert store.backend.root is not None
    return store.backend.root


def edit(store: Store, key: str, **fields: object) -> None:
    path = root(store) / key
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def kinds(store: Store, *, deep: bool = False) -> set[str]:
    """The kinds found, but for the temporaries that a living process has."""
    return {finding.kind for finding in check(store, deep=deep).findings} - {"temporary"}


def a_blob(store: Store) -> Path:
    return next(path for path in sorted((root(store) / "blobs").rglob("*")) if path.is_file())


def write(key: str, text: bytes) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        path = root(store) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)

    return damage


def copy(old: str, new: str, **fields: object) -> Callable[[Store], None]:
    def damage(store: Store) -> None:
        path = root(store) / new
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**json.loads((root(store) / old).read_text()), **fields}))

    return damage


def a_torn_curve(store: Store) -> None:
    edit(store, TRIAL.format(12), state="running")
    write("study/s/live/000000/00000012-0.json", b'{"v":1,"cur')(store)


AGAIN = "study/s/again/000000/{:08d}-{}.json"
DAMAGE: dict[str, tuple[Callable[[Store], None], set[str], bool]] = {
    "empty record": (write(TRIAL.format(2), b""), {"torn"}, False),
    "half a record": (write(TRIAL.format(2), b'{"v":1,"kind"'), {"torn"}, False),
    "binary record": (write(TRIAL.format(2), b"\xff\x00\x80"), {"torn"}, False),
    "newer record": (write(TRIAL.format(2), b'{"v":2,"kind":"trial"}'), {"newer"}, False),
    "a folder where a record belongs": (
        lambda store: (root(store) / TRIAL.format(2)).unlink() or (root(store) / TRIAL.format(2)).mkdir(), {"torn"}, False,
    ),
    "another trial's record": (copy(TRIAL.format(1), TRIAL.format(2)), {"misplaced"}, False),
    "a file beside": (write("notes.txt", b"hello"), {"foreign"}, True),
    "a file in a block": (write("study/s/trial/000000/readme", b"hello"), {"foreign"}, True),
    "a trial in another block": (copy(TRIAL.format(1), "study/s/trial/000001/00000001-0.json"), {"foreign"}, True),
    "a blob nobody names": (lambda store: store.put(b"alone") and None, {"orphan"}, True),
    "a blob gone": (lambda store: a_blob(store).unlink(), {"missing"}, False),
    "a blob changed": (lambda store: a_blob(store).write_bytes(b"other") and None, {"damaged"}, False),
    "a blob nobody names, changed": (
        lambda store: (root(store) / blob_key(store.put(b"alone"))).write_bytes(b"other") and None,
        {"orphan", "damaged"}, False,
    ),
    "a live curve left": (write("study/s/live/000000/00000001-0.json", b'{"v":1}'), {"orphan"}, True),
    "an attempt without the one before": (copy(TRIAL.format(1), AGAIN.format(1, 2), attempt=2), {"gap"}, False),
    "another point in the second attempt": (
        copy(TRIAL.format(1), AGAIN.format(1, 1), attempt=1, point={"x": 0.5, "y": 0.5}), {"contradictory"}, False,
    ),
    "an index nobody asked for": (copy(TRIAL.format(1), TRIAL.format(40), n=40), {"beyond"}, False),
    "another goal": (lambda store: edit(store, TRIAL.format(12), goal="max"), {"contradictory"}, False),
    "done without a score": (lambda store: edit(store, TRIAL.format(11), score=None), {"contradictory"}, False),
    "a score edited behind a roll": (lambda store: edit(store, TRIAL.format(0), score=-1.0), {"contradictory"}, False),
    "a copy with a number nobody writes": (
        lambda store: edit(store, "study/s/roll/0/00000000.json", records={"\u00b2-0": {}, "1" * 5000 + "-0": {}}),
        {"torn"}, False,
    ),
    "a name that is no key": (write(".nfs0001", b""), {"foreign"}, True),
    "a name that is no key in a study": (write("study/s/README", b""), {"foreign"}, True),
    "a name that is no key beside the studies": (write("study/README", b""), {"foreign"}, True),
    "the torn curve of a running attempt": (
        a_torn_curve, {"torn"}, False,
    ),
    "a torn roll": (write("study/s/roll/0/00000000.json", b"{"), {"torn"}, False),
}  # fmt: skip


@pytest.mark.parametrize(
    "key",
    ["study/s/study.json", "name/model.json", f"study/s/given/{'0' * 64}.json", f"study/s/note/wish/{'0' * 64}.json",
     "study/s/note/stop/0.json", "study/s/note/release/00000003-0.json", "study/s/roll/0/00000000.json"],
)  # fmt: skip
def test_a_folder_where_any_object_belongs_is_a_fault(store: Store, key: str) -> None:
    """No listing of keys has it, and yet nobody can claim or read what belongs there."""
    (root(store) / key).unlink(missing_ok=True)
    (root(store) / key).mkdir(parents=True)
    assert [(finding.kind, finding.key) for finding in check(store).findings if finding.fault] == [("torn", key)]


@pytest.mark.parametrize(
    "key",
    ["tmp", "name", "study", "sweep", "blobs", "study/s/trial", "study/s/again", "study/s/again/000000", "study/s/live",
     "study/s/roll/1", "study/s/given", "study/s/note", "study/s/note/stop", "study/s/slot", "study/s/work", "sweep/s/plan"],
)  # fmt: skip
def test_a_file_where_a_folder_belongs_is_a_fault(store: Store, key: str) -> None:
    """Who works there is refused and sent to `dibs check`, and gc takes nothing: what was below, nobody knows."""
    path = root(store) / key
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    assert [finding.key for finding in check(store).findings if finding.kind == "in the way"] == [key]
    assert not check(store).clean
    if key != "tmp":  # the store's time is asked there
        assert find_garbage(store, blob_age_s=-1.0).refused


def test_temporaries_behind_a_link_are_a_fault(store: Store, tmp_path: Path) -> None:
    (root(store) / "tmp").rename(tmp_path / "moved")
    (root(store) / "tmp").symlink_to(tmp_path / "moved")
    assert "in the way" in kinds(store)


@pytest.mark.parametrize("plant", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/etc/hosts")])
def test_what_is_no_file_under_a_blobs_name_is_damage(store: Store, plant: Callable[[Path], None]) -> None:
    blob = a_blob(store)
    blob.unlink()
    plant(blob)
    report = check(store, deep=True)
    assert [finding.key for finding in report.findings if finding.fault] == [blob.relative_to(root(store)).as_posix()]
    assert kinds(store, deep=True) == {"damaged"}
    assert find_garbage(store, blob_age_s=-1.0).removals == ()


def test_a_store_that_is_well_is_clean(store: Store) -> None:
    report = check(store, deep=True)
    assert (kinds(store), report.clean) == (set(), True)
    assert report.objects > 25


def test_what_workers_bring_meanwhile_is_not_missing(store: Store) -> None:
    """The blobs are listed first; a trial that is done before its record is read names one that is new."""
    study = Study(store, "s")

    class Worked(type(store.backend)):  # type: ignore[misc]
        def list(self, prefix: str, after: str = "", *, details: bool = False) -> Iterator[Entry]:
            if prefix == "study/s/trial/":
                for trial in study.trials(16):
                    with trial:
                        trial.report(2.0)
                        trial.report(trial.point["x"])
            return super().list(prefix, after, details=details)

    store.backend.__class__ = Worked
    report = check(store, deep=True)
    assert report.findings == ()
    assert len(study.results()) > 12


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_named(store: Store, name: str) -> None:
    damage, wanted, clean = DAMAGE[name]
    damage(store)
    report = check(store, deep=True)
    assert wanted <= kinds(store, deep=True)
    assert report.clean is clean
    assert all(finding.meaning and finding.cure for finding in report.findings)


def test_a_folder_with_nothing_in_it_any_more_is_nothing(store: Store) -> None:
    """What live/ is as soon as nobody runs a trial."""
    (root(store) / "study/s/live/000000").mkdir(parents=True)
    (root(store) / "study/s/note/wish").mkdir(parents=True)
    assert kinds(store) == set()
    (root(store) / "study/s/elsewhere").symlink_to(root(store))
    assert kinds(store) == {"link"}


def test_a_meeting_of_the_doctor_is_nothing_foreign(store: Store) -> None:
    write("doctor/tuesday/link/00000001.json", b"{}")(store)
    assert (kinds(store), check(store).clean) == (set(), True)


def test_check_changes_nothing(store: Store) -> None:
    def seen() -> list[tuple[str, int, int]]:
        return sorted((str(p), p.stat().st_mtime_ns, p.stat().st_ino) for p in root(store).rglob("*"))

    before = seen()
    check(store, deep=True)
    assert seen() == before


def age(path: Path, hours: float) -> None:
    stat = path.stat()
    os.utime(path, (stat.st_atime, stat.st_mtime - 3600 * hours))


def test_gc_takes_what_is_old_and_unreferenced_and_nothing_else(store: Store) -> None:
    old, young = store.put(b"old"), store.put(b"young")
    age(root(store) / f"blobs/{old[:2]}/{old}", 25)
    for path in (root(store) / "blobs").rglob("*"):
        if path.is_file() and path.name not in (old, young):
            age(path, 1000)  # old, and referred to
    (root(store) / "tmp" / "left").write_bytes(b"half")
    age(root(store) / "tmp" / "left", 2)
    before = {p for p in root(store).rglob("*") if p.is_file()}
    garbage = find_garbage(store)
    assert {r.key.rpartition("/")[2] for r in garbage.removals} == {old, "left"}
    assert garbage.young >= 1
    assert {p for p in root(store).rglob("*") if p.is_file() and "now" not in p.name} <= before, "nothing was removed"
    assert len(collect(store, garbage.removals)) == 2
    gone = before - set(root(store).rglob("*"))
    assert {p.name for p in gone} == {old, "left"}
    assert check(store, deep=True).clean


def test_what_is_put_again_meanwhile_stays(store: Store) -> None:
    digest = store.put(b"wanted again")
    age(root(store) / f"blobs/{digest[:2]}/{digest}", 48)
    garbage = find_garbage(store)
    assert [r.key.rpartition("/")[2] for r in garbage.removals] == [digest]
    assert store.put(b"wanted again") == digest  # renewed: it is about to be named
    assert collect(store, garbage.removals) == []
    assert store.get(digest) == b"wanted again"
    assert find_garbage(store).removals == ()


ROLL, CURVE = "study/s/roll/0/00000000.json", "study/s/live/000000/00000012-0.json"


@pytest.mark.parametrize(
    ("key", "bad", "refused"),
    [
        (TRIAL.format(5), b"", True),
        (TRIAL.format(5), b"{", True),
        (TRIAL.format(5), b'{"v":2}', True),
        (TRIAL.format(5), None, True),  # a folder
        (ROLL, b"{", False),  # a cache: its originals name what it names
        (CURVE, b"{", False),  # names nothing
        (ROLL, b'{"v":2}', True),  # what a later version keeps there, nobody knows
        (CURVE, b'{"v":2}', True),
    ],
)
def test_gc_removes_nothing_while_an_object_that_names_blobs_does_not_read(
    store: Store, key: str, bad: bytes | None, refused: bool
) -> None:
    digest = store.put(b"old")
    age(root(store) / f"blobs/{digest[:2]}/{digest}", 48)
    if bad is None:
        (root(store) / key).unlink()
        (root(store) / key).mkdir()
    else:
        write(key, bad)(store)
    garbage = find_garbage(store)
    assert bool(garbage.refused) is refused
    assert (digest in {r.key.rpartition("/")[2] for r in garbage.removals}) is not refused


def test_what_is_put_again_meanwhile_stays_in_a_bucket() -> None:
    """No stamp can be touched there, and equal bytes have an equal version."""
    now = 1e9
    backend = MemoryBackend(conditional_replace=True, clock=lambda: now)
    store = store_over(backend)
    digest = store.put(b"wanted again")
    now += 48 * 3600
    garbage = find_garbage(store)
    assert [r.key.rpartition("/")[2] for r in garbage.removals] == [digest]
    assert store.put(b"wanted again") == digest
    assert collect(store, garbage.removals) == []
    assert store.get(digest) == b"wanted again"
    assert find_garbage(store).removals == ()


@pytest.mark.parametrize("key", ["study", "study/s", "study/s/trial", "study/s/trial/000000"])
def test_gc_removes_nothing_while_records_lie_behind_a_link(store: Store, tmp_path: Path, key: str) -> None:
    """Somebody moved a study to a larger disk: nobody sees its records, and they still name their blobs."""
    (root(store) / key).rename(tmp_path / "moved")
    (root(store) / key).symlink_to(tmp_path / "moved")
    assert find_garbage(store, blob_age_s=-1.0).refused
    assert "link" in kinds(store)
    assert not check(store).clean


def test_what_only_a_copy_in_a_roll_names_stays(store: Store) -> None:
    """Where somebody removed the original, that copy is the record: the trial is done, and its curve can be read."""
    (root(store) / TRIAL.format(1)).unlink()
    digest = next(
        copy["blob"]
        for path in (root(store) / "study/s/roll/0").iterdir()
        for name, copy in json.loads(path.read_bytes())["records"].items()
        if name == "1-0"
    )
    age(root(store) / blob_key(digest), 48)
    assert next(r for r in Study(Store(root(store)), "s").results() if r.n == 1).state == "done"
    assert find_garbage(store).removals == ()
    assert kinds(store) == set()
    (root(store) / blob_key(digest)).unlink()
    assert kinds(store) == {"missing"}


@pytest.mark.parametrize(
    ("key", "means", "cure"),
    [
        (TRIAL.format(2), "counts as running", "rescued"),
        ("study/s/study.json", "nobody can join", "restore the file from a copy"),
        ("study/s/roll/0/00000000.json", "nothing is lost", "nothing to do"),
        ("name/model.json", "stays claimed", "frees the name"),
        (f"study/s/given/{'0' * 64}.json", "no sampler sees it", "attach it again"),
        (f"study/s/note/wish/{'0' * 64}.json", "nobody serves it", "enqueue the point again"),
        ("study/s/note/stop/0.json", "goes on without it", "remove it by hand"),
    ],
)
def test_what_a_torn_object_means_depends_on_what_it_is(store: Store, key: str, means: str, cure: str) -> None:
    write(key, b"{")(store)
    write(TRIAL.format(3), b"{")(store)
    torn = {finding.key: finding for finding in check(store).findings if finding.kind == "torn"}
    assert means in torn[key].meaning
    assert cure in torn[key].cure
    said = CliRunner().invoke(main, ["check", "--store", str(root(store))]).output
    assert all(finding.meaning in said for finding in torn.values()), "each of them, not the first one's alone"


def test_a_claimed_study_without_a_definition_is_no_trial(tmp_path: Path) -> None:
    """Where a claim is a folder, its creator may die between the two steps."""
    Store(tmp_path / "s")
    marker = tmp_path / "s/dibs.json"
    marker.write_text(marker.read_text().replace('"claim":"link"', '"claim":"mkdir"'))
    (tmp_path / "s/study/s/study.json.claim").mkdir(parents=True)
    (finding,) = (found for found in check(Store(tmp_path / "s")).findings if found.kind == "unwritten")
    assert "nobody can join" in finding.meaning
    assert "remove the folder" in finding.cure
    (tmp_path / "s/study/s/study.json.claim").rmdir()
    assert Study(tmp_path / "s", "s", SPACE, goal="min").results() == []


@pytest.mark.parametrize(
    ("key", "means"),
    [("sweep/s/plan/00000001.json", "none can be added"), ("sweep/s/mark/accepted/x.json", "not taken")],
)
def test_a_step_of_a_sweep_that_was_claimed_and_not_written_is_no_trial(tmp_path: Path, key: str, means: str) -> None:
    Store(tmp_path / "s")
    marker = tmp_path / "s/dibs.json"
    marker.write_text(marker.read_text().replace('"claim":"link"', '"claim":"mkdir"'))
    (tmp_path / "s" / f"{key}.claim").mkdir(parents=True)
    (finding,) = (found for found in check(Store(tmp_path / "s")).findings if found.kind == "unwritten")
    assert means in finding.meaning
    assert "remove the folder" in finding.cure


def test_a_torn_definition_is_written_anew_by_who_comes_next(store: Store) -> None:
    """As check says."""
    write("study/s/study.json", b"{")(store)
    before = Study(Store(root(store)), "other", SPACE, goal="min")  # whatever else is in the store goes on
    assert before.results() == []
    (root(store) / "study/s/study.json").unlink()
    study = Study(Store(root(store)), "s", SPACE, goal="min", seed=0)
    assert len(study.results("done")) == 11
    assert check(store).clean


def test_names_and_wishes_keep_their_blobs(store: Store) -> None:
    digest = store.put(b"a model")
    age(root(store) / f"blobs/{digest[:2]}/{digest}", 48)
    assert store.claim("champion", digest, {"other": "x"})
    assert find_garbage(store).removals == ()


def test_the_command_line(store: Store) -> None:
    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, [*words, "--store", str(root(store))])
        return result.exit_code, result.output

    code, said = run("check")
    assert code == 0, said
    digest = store.put(b"old")
    age(root(store) / f"blobs/{digest[:2]}/{digest}", 48)
    code, said = run("gc")
    assert code == 0
    assert digest in said
    assert "--yes" in said
    assert store.has(digest)
    code, said = run("gc", "--yes", "--json")
    assert (code, json.loads(said)["removed"]) == (0, 1)
    assert not store.has(digest)
    write(TRIAL.format(5), b"{")(store)
    code, said = run("check", "--json")
    assert code == 1
    assert json.loads(said)["counts"]["torn"] == 1
    assert run("gc", "--yes")[0] == 4


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("dibs.json", "marker"), ("study/a%2fb/study.json", "study"), ("study/s/trial/000001/00000256-0.json", "trial"),
        ("study/s/trial/000001/00000255-0.json", "foreign"), ("study/s/again/000000/00000001-1.json", "again"),
        ("study/s/again/000000/00000001-0.json", "foreign"), ("study/s/live/000000/00000001-3.json", "live"),
        ("blobs/ab/ab" + "0" * 62, "blob"), ("blobs/ab/ac" + "0" * 62, "foreign"), ("study/s/note/stop/3.json", "stop"),
        ("name/x.json", "name"), ("name/x/y.json", "foreign"), ("verdict/0.json", "verdict"), ("x", "foreign"),
    ],
)  # fmt: skip
def test_the_shape_of_a_key_tells_its_place(key: str, kind: str) -> None:
    assert place_of(key).kind == kind


def test_what_other_versions_may_refer_to_stays(store: Store) -> None:
    kept = [store.put(b"in a field of later"), store.put(b"in a sweep of later")]
    for digest in kept:
        age(root(store) / f"blobs/{digest[:2]}/{digest}", 48)
    edit(store, TRIAL.format(1), later={"model": [kept[0]]})
    write("sweep/a/cells/x.json", json.dumps({"v": 1, "artifact": kept[1]}).encode())(store)
    assert find_garbage(store).removals == ()
    assert "foreign" not in kinds(store)
