"""What is pulled is what was left, whole or not at all, and the manifest says exactly that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import at_once
from tests.sweep.cells import append, begin, fail, final_of, finish, planned, publish, result

from dibs import Store
from dibs.errors import UsageError
from dibs.sweep import Plan, add_plan, pull
from dibs.sweep._files import hash_file
from dibs.sweep._manifest import Manifest, plan_digest


@pytest.fixture
def plan(store: Store) -> Plan:
    """A sweep of two cells that are done."""
    plan = planned(store, "a", "b")
    finish(store, plan, "a")
    finish(store, plan, "b")
    return plan


def listed(dest: Path) -> list[str]:
    return sorted(path.relative_to(dest).as_posix() for path in dest.rglob("*") if path.is_file())


def test_everything_is_here_and_in_the_manifest(store: Store, plan: Plan, tmp_path: Path) -> None:
    dest = tmp_path / "d"
    steps: list[tuple[int, int, int]] = []
    told = pull(store, plan, dest, step=lambda *step: steps.append(step))
    assert (told.exit_code, told.copied, told.same, told.troubles) == (0, 6, 0, ())
    assert steps[-1][:2] == (6, 6)
    files = ["best.npz", "dibs-record.json", "metrics.json"]
    assert listed(dest) == [".dibs-pull", "MANIFEST.json", *(f"{cell}/{file}" for cell in "ab" for file in files)]
    assert (dest / "b" / "best.npz").read_bytes() == result(1)["best.npz"]
    body = json.loads((dest / "MANIFEST.json").read_bytes())
    assert (body["sweep"], body["plan"], body["plan_digest"], body["missing"]) == ("A", 0, plan_digest(plan), {})
    for each in body["files"]:
        data = (dest / each["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (each["bytes"], each["sha256"])
    assert told.digest == hashlib.sha256((dest / "MANIFEST.json").read_bytes()).hexdigest()


def test_again_copies_nothing_and_keeps_the_manifest(store: Store, plan: Plan, tmp_path: Path) -> None:
    first = pull(store, plan, tmp_path / "d")
    again = pull(store, plan, tmp_path / "d")
    assert (again.copied, again.same, again.digest) == (0, 6, first.digest)
    (tmp_path / "d" / "a" / "best.npz").write_bytes(b"damaged")
    mended = pull(store, plan, tmp_path / "d")
    assert (mended.copied, mended.same, mended.exit_code) == (1, 5, 0)
    assert (tmp_path / "d" / "a" / "best.npz").read_bytes() == result(0)["best.npz"]
    assert mended.digest != first.digest  # what was verified before is to be verified again


def test_half_a_file_is_gone_on_with(store: Store, plan: Plan, tmp_path: Path) -> None:
    whole = result(0)["best.npz"]
    pull(store, plan, tmp_path / "d")
    (tmp_path / "d" / "a" / "best.npz").unlink()
    digest = hashlib.sha256(whole).hexdigest()
    part = tmp_path / "d" / "a" / f".best.npz.{digest[:16]}.part"
    for half in (whole[:20], b"something else", whole):
        part.write_bytes(half)
        assert pull(store, plan, tmp_path / "d").copied == 1
        assert (tmp_path / "d" / "a" / "best.npz").read_bytes() == whole
        assert not part.exists()
        (tmp_path / "d" / "a" / "best.npz").unlink()


def test_two_pulls_at_once_bring_the_same(store: Store, plan: Plan, tmp_path: Path) -> None:
    dest = tmp_path / "d"
    told = at_once([lambda: pull(Store(store.url), plan, dest)] * 4)
    assert [each.exit_code for each in told] == [0] * 4
    assert [name for name in listed(dest) if name.endswith(".part")] == []
    assert pull(store, plan, dest).copied == 0


def test_a_damaged_source_is_not_brought(store: Store, plan: Plan, tmp_path: Path) -> None:
    there = final_of(store, plan, "a")
    assert there is not None
    (there / "best.npz").write_bytes(result(9)["best.npz"])
    told = pull(store, plan, tmp_path / "d")
    assert (told.exit_code, [cell.name for cell in told.manifest.cells]) == (1, ["b"])
    assert [(one.cell, one.file, one.what[:15]) for one in told.troubles] == [("a", "best.npz", "its SHA-256 is ")]
    assert "best.npz" not in str(listed(tmp_path / "d" / "a"))
    (there / "best.npz").unlink()
    assert pull(store, plan, tmp_path / "d").troubles[0].what == "it is not there"
    (there / "best.npz").symlink_to("/etc/passwd")
    assert "cannot be read" in pull(store, plan, tmp_path / "d").troubles[0].what


def test_a_disk_that_gives_back_other_bytes_is_said(
    store: Store, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worn(path: Path) -> tuple[int, str]:
        size, digest = hash_file(path)
        return size, "0" * 64 if path.name.startswith(".best.npz") and "/a/" in str(path) else digest

    monkeypatch.setattr("dibs.sweep._bring.hash_file", worn)
    told = pull(store, plan, tmp_path / "d")
    assert [(one.cell, one.file, "reads back" in one.what) for one in told.troubles] == [("a", "best.npz", True)]
    assert [path for path in listed(tmp_path / "d" / "a") if "best" in path] == []
    monkeypatch.undo()
    assert pull(store, plan, tmp_path / "d").exit_code == 0


def test_a_record_that_lies_about_a_size_is_said(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a", artifacts=("w",))
    mine = begin(store, plan, "a")
    publish(store, plan, "a", {"w": b"four"}, mine)
    mine.ended = {"artifacts": {"w": {"sha256": hashlib.sha256(b"four").hexdigest(), "bytes": 5}}}
    mine.close("done")
    assert pull(store, plan, tmp_path / "d").troubles[0].what == "it has 4 bytes, and its record says 5"


@pytest.mark.parametrize("link", ["a", "a/best.npz", "MANIFEST.json", ".dibs-pull"])
def test_nothing_is_written_through_a_link(store: Store, plan: Plan, tmp_path: Path, link: str) -> None:
    dest, secret = tmp_path / "d", tmp_path / "secret"
    pull(store, plan, dest)
    secret.mkdir()
    target = secret / "kept" if link != "a" else secret
    if link != "a":
        target.write_text("kept")
    (dest / link).rename(dest / "moved") if link != "a" else (dest / link).rename(tmp_path / "moved")
    (dest / link).symlink_to(target)
    with pytest.raises(UsageError, match="link"):
        pull(store, plan, dest)
    assert [path.read_text() for path in secret.iterdir()] == (["kept"] if link != "a" else [])


def test_another_folder_is_left_alone(store: Store, plan: Plan, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="is not empty, and no pull began there"):
        pull(store, plan, home)
    assert listed(home) == ["thesis.tex"]
    with pytest.raises(UsageError, match="is a file"):
        pull(store, plan, home / "thesis.tex")
    with pytest.raises(UsageError, match="is not there"):
        pull(store, plan, tmp_path / "no" / "where")
    pull(store, plan, tmp_path / "d")
    with pytest.raises(UsageError, match="another sweep"):
        pull(store, replace(plan, sweep="B"), tmp_path / "d")


def test_what_the_plan_no_longer_has_is_put_aside(store: Store, plan: Plan, tmp_path: Path) -> None:
    dest = tmp_path / "d"
    pull(store, plan, dest)
    dropped = plan.next(cells=(plan.cells[0], replace(plan.cells[1], dropped=True)))
    assert add_plan(store, dropped)
    told = pull(store, dropped, dest)
    assert (told.exit_code, told.aside) == (0, ("b/best.npz", "b/dibs-record.json", "b/metrics.json"))
    assert not (dest / "b").exists()
    kept = list((dest / ".quarantine").rglob("best.npz"))
    assert [path.read_bytes() for path in kept] == [result(1)["best.npz"]]


def test_what_is_not_done_is_missing(store: Store, plan: Plan, tmp_path: Path) -> None:
    more = append(store, plan, "c", "d")
    begin(store, more, "c")
    begin(store, more, "d")
    assert pull(store, more, tmp_path / "d").exit_code == 6
    fail(store, more, "c", "code error", reason="code error: boom")
    told = pull(store, more, tmp_path / "d")
    assert (told.exit_code, dict(told.manifest.missing)["d"]) == (1, "it is running")
    none = more.next(cells=tuple(replace(cell, dropped=True) for cell in more.cells))
    assert pull(store, none, tmp_path / "d").exit_code == 5


def test_a_log_is_brought_if_it_can_be_had(store: Store, tmp_path: Path) -> None:
    plan = planned(store, "a")
    mine = begin(store, plan, "a")
    work = Path(store.url) / mine.keys.work(0, 0)
    work.mkdir(parents=True)
    (work / "log.txt").write_text("epoch 1\n")
    finish(store, plan, "a", attempt=mine)
    assert pull(store, plan, tmp_path / "d").exit_code == 0
    assert (tmp_path / "d" / "a" / "dibs-log.txt").read_text() == "epoch 1\n"


def damaged(body: dict[str, object], **changes: object) -> bytes:
    return json.dumps({**body, **changes}).encode()


def test_a_manifest_that_lies_is_refused(store: Store, plan: Plan, tmp_path: Path) -> None:
    pull(store, plan, tmp_path / "d")
    data = (tmp_path / "d" / "MANIFEST.json").read_bytes()
    body = json.loads(data)
    assert Manifest.decode(data, "m").encode() == data
    files = body["files"]
    for wrong, said in [
        (damaged(body, files=[{**files[0], "path": "../x"}]), "does not stay beneath"),
        (damaged(body, files=[{**files[0], "path": "/etc/passwd"}]), "does not stay beneath"),
        (damaged(body, files=[{**files[0], "path": "a/../../x"}]), "does not stay beneath"),
        (damaged(body, files=[files[0], files[0]]), "is there twice"),
        (damaged(body, files=[files[0], {**files[1], "path": files[0]["path"].upper(), "cell": "a"}]), "is there twice"),
        (damaged(body, files=[{**files[0], "cell": "zz"}]), "in no folder of a cell"),
        (damaged(body, files=[{**files[0], "bytes": -1}]), "no number"),
        (damaged(body, files=[{**files[0], "bytes": True}]), "no number"),
        (damaged(body, files=[{**files[0], "sha256": "x"}]), "no SHA-256"),
        (damaged(body, cells=[{**body["cells"][0], "name": ".."}]), "no name of a cell"),
        (damaged(body, v=2), "upgrade dibs"),
        (damaged(body, kind="x"), "not the manifest"),
        (data.replace(b'"plan": 0', b'"plan": 0, "plan": 0'), "there twice"),
        (b"", "not JSON"),
        (b"[" * 100_000, "nested"),
        (b"\xff", "not UTF-8"),
        (b"{}", "not the manifest"),
        (damaged({name: value for name, value in body.items() if name != "files"}), "it has no 'files'"),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match="m cannot be used") as told:
            Manifest.decode(wrong, "m")
        assert said in str(told.value)


@pytest.mark.parametrize("where", ["s", "s/pulled", "s/sweep/%41/final/pulled", "link/pulled", "kept/pulled"])
def test_a_copy_within_what_it_is_a_copy_of_is_none(store: Store, tmp_path: Path, where: str) -> None:
    final = {"final": str(tmp_path / "kept")} if where.startswith("kept") else {}
    plan = planned(store, "a", **final)  # type: ignore[arg-type]
    finish(store, plan, "a")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(UsageError, match="would go where that goes"):
        pull(store, plan, tmp_path / where)
    assert pull(store, plan, tmp_path / "d").exit_code == 0
