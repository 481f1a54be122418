"""The gate opens for exactly what was verified, and shuts again with whatever changes afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.parts import at_once
from tests.sweep.cells import NAME, append, begin, fail, final_of, finish, planned, result

from dibs import Store
from dibs.errors import UsageError
from dibs.store import SweepKeys, blob_key
from dibs.sweep import Plan, Released, add_plan, newest_plan, pull, release, retry, verify
from dibs.sweep._marks import releases, revoke, verified


@pytest.fixture
def plan(store: Store, dest: Path) -> Plan:
    """A sweep of two cells, done, pulled and verified."""
    plan = planned(store, "a", "b")
    for name in "ab":
        finish(store, plan, name)
    proven(store, plan, dest)
    return plan


def proven(store: Store, plan: Plan, dest: Path) -> None:
    assert pull(store, plan, dest).exit_code == 0
    assert verify(store, plan, dest).passed


def asked(store: Store, approve: str | None = "Jo", **more: str) -> Released:
    return release(store, newest_plan(store, NAME), approve=approve, **more)  # type: ignore[arg-type]


def test_released_once_and_told_again(store: Store, plan: Plan, dest: Path) -> None:
    first = asked(store, verified_as=str(dest))
    assert (first.exit_code, first.already, first.missing) == (0, False, ())
    assert first.record is not None
    assert (first.record["approve"], first.record["plan"], first.record["cells"]) == ("Jo", 0, 2)
    again = asked(store, "Ann")
    assert (again.exit_code, again.already, again.record) == (0, True, first.record)
    assert len(releases(store, NAME)) == 1


@pytest.mark.parametrize("approve", [None, "", "  "])
def test_nobody_gave_a_name(store: Store, plan: Plan, approve: str | None) -> None:
    told = asked(store, approve)
    assert (told.exit_code, len(told.missing), told.record) == (2, 1, None)
    assert releases(store, NAME) == []


def test_verified_again_where_what_was_written_of_it_does_not_read(store: Store, plan: Plan, dest: Path) -> None:
    """Else verify would say that it holds, and the gate that nobody has verified it, for ever."""
    (mark,) = (Path(store.url) / SweepKeys(NAME).marks("verified")).iterdir()
    whole = mark.read_bytes()
    mark.write_bytes(b"")
    assert asked(store).record is None
    proven(store, plan, dest)
    proven(store, plan, dest)
    assert len(list(mark.parent.iterdir())) == 2
    assert asked(store).record is not None
    mark.write_bytes(whole)  # it was out of reach, no more: what is taken back is taken back with it
    (dest / "a" / "metrics.json").write_bytes(b"")
    assert not verify(store, plan, dest).passed
    assert verified(store, NAME) == []


def unverified(store: Store, plan: Plan, dest: Path) -> None:
    verdict = verify(store, plan, dest).manifest
    assert revoke(store, NAME, verdict, "x")


def damaged(store: Store, plan: Plan, dest: Path) -> None:
    there = final_of(store, plan, "a")
    assert there is not None
    (there / "best.npz").write_bytes(result(5)["best.npz"])


def appended(store: Store, plan: Plan, dest: Path) -> None:
    append(store, plan, "c")


def appended_and_done(store: Store, plan: Plan, dest: Path) -> None:
    finish(store, append(store, plan, "c"), "c")


def running(store: Store, plan: Plan, dest: Path) -> None:
    begin(store, append(store, plan, "c"), "c")


def unsynced(store: Store, plan: Plan, dest: Path) -> None:
    fail(store, append(store, plan, "c"), "c", "sync failed")


def dropped(store: Store, plan: Plan, dest: Path) -> None:
    assert add_plan(store, plan.next(cells=(plan.cells[0], replace(plan.cells[1], dropped=True))))


def all_dropped(store: Store, plan: Plan, dest: Path) -> None:
    assert add_plan(store, plan.next(cells=tuple(replace(cell, dropped=True) for cell in plan.cells)))


def changed_locally(store: Store, plan: Plan, dest: Path) -> None:
    (dest / "a" / "best.npz").write_bytes(b"x")
    assert not verify(store, plan, dest).passed


def renewed(store: Store, plan: Plan, dest: Path) -> None:
    told = retry(store, plan, force=["a"])
    finish(store, told.plan, "a", result(7))


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (unverified, 4, "no pull was verified"),
        (damaged, 1, "hash differs: a best.npz"),
        (appended, 1, "never ran: c"),
        (appended_and_done, 4, "version 0 of the plan, which is at 1"),
        (running, 6, "running: c"),
        (unsynced, 7, "unsynced: c"),
        (dropped, 4, "version 0 of the plan, which is at 1"),
        (all_dropped, 5, "0 of 0"),
        (changed_locally, 4, "no pull was verified"),
        (renewed, 4, "version 0 of the plan, which is at 1"),
    ],
)
def test_it_shuts_again(
    store: Store, plan: Plan, dest: Path, change: Callable[[Store, Plan, Path], None], code: int, said: str
) -> None:
    assert asked(store).exit_code == 0
    change(store, plan, dest)
    told = asked(store)
    assert (told.exit_code, told.record) == (code, None)
    assert any(said in text for text in told.missing), told.missing
    assert len(releases(store, NAME)) == 1


def test_and_opens_for_what_was_proven_anew(store: Store, plan: Plan, dest: Path) -> None:
    assert asked(store).exit_code == 0
    more = append(store, plan, "c")
    finish(store, more, "c")
    proven(store, more, dest)
    told = asked(store)
    assert (told.exit_code, told.already, [mark.name for mark in releases(store, NAME)]) == (0, False, ["0", "1"])


def test_by_the_digest_of_one_manifest(store: Store, plan: Plan, dest: Path) -> None:
    digest = verify(store, plan, dest).manifest
    assert asked(store, verified_as="0" * 64).exit_code == 4
    assert asked(store, verified_as=digest).exit_code == 0
    with pytest.raises(UsageError, match="neither a folder"):
        asked(store, verified_as="nowhere")
    (dest / "MANIFEST.json").write_bytes((dest / "MANIFEST.json").read_bytes().replace(b" ", b"  ", 1))
    assert asked(store, verified_as=str(dest)).exit_code == 4


def test_a_second_attempt_that_ends_later_is_another_result(store: Store, dest: Path) -> None:
    plan = planned(store, "a")
    first, second = begin(store, plan, "a"), begin(store, plan, "a")
    finish(store, plan, "a", attempt=first)
    proven(store, plan, dest)
    assert asked(store).exit_code == 6  # it may end at any moment
    finish(store, plan, "a", result(5), attempt=second)  # the plan is the same, and what counts is not
    told = asked(store)
    assert (told.exit_code, told.missing) == (
        4, ("verified were other results than those that are there now: pull and verify again",)
    )  # fmt: skip
    proven(store, plan, dest)
    assert (asked(store).exit_code, len(releases(store, NAME))) == (0, 1)


def test_two_at_once_release_once(store: Store, plan: Plan) -> None:
    told = at_once([lambda: release(Store(store.url), plan, approve="Jo")] * 4)
    assert [each.exit_code for each in told] == [0] * 4
    assert sum(not each.already for each in told) == 1
    assert len(releases(store, NAME)) == 1


def test_a_planner_at_the_same_moment_is_heard(store: Store, plan: Plan) -> None:
    append(store, plan, "c")
    told = release(store, plan, approve="Jo")  # of the plan as it was read before
    assert (told.exit_code, told.missing) == (4, ("the plan was changed just now: pull and verify again",))
    assert releases(store, NAME) == []


@pytest.mark.parametrize("data", [b"", b"{}", b'{"v":1,"kind":"sweep-verified","sweep":"other"}', b"\x00"])
def test_a_mark_that_does_not_parse_proves_nothing(store: Store, plan: Plan, data: bytes) -> None:
    folder = Path(store.url) / SweepKeys(NAME).marks("verified")
    (mark,) = folder.iterdir()
    mark.write_bytes(data)
    assert asked(store).exit_code == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\nb\nc\n", "line 3 was appended, and no plan has it yet"),
        ("a\nb\n\n# c\nc\nd\n", "line 5 and 1 more were appended"),
        ("a\nx\n", "its earlier lines are others than were planned"),
        ("a\n", "its earlier lines are others"),
        ("a\nb\n\n# c\n", None),
        ("a\n# b\n", None),  # a cell less than was proven
        (None, None),
    ],
)
def test_what_a_queue_file_says_and_no_plan_shuts_it(
    store: Store, dest: Path, tmp_path: Path, text: str | None, said: str | None
) -> None:
    plan = planned(store, "a", "b")
    here = replace(plan.task, here=str(tmp_path))
    plan = replace(plan, version=1, task=here, where=str(store.machine.who("")["host"]))
    assert add_plan(store, plan)
    for name in "ab":
        finish(store, plan, name)
    (tmp_path / "q.txt").write_text("a\nb\n")
    proven(store, plan, dest)
    assert asked(store).exit_code == 0
    (tmp_path / "q.txt").unlink() if text is None else (tmp_path / "q.txt").write_text(text)
    told = asked(store)
    assert (told.exit_code, told.already) == ((0, True) if said is None else (1, False)), told.missing
    assert said is None or said in told.missing[0]


def test_an_attempt_that_would_replace_what_was_proven_shuts_it(store: Store, dest: Path) -> None:
    plan = planned(store, "a")
    first, later = begin(store, plan, "a"), begin(store, plan, "a", me="later")  # taken up while the first was stopped
    finish(store, plan, "a", attempt=first)
    proven(store, plan, dest)
    told = asked(store)
    assert told.exit_code == 6
    assert told.missing == (
        f"running: a: attempt 0 is done, and attempt 1 by later on {store.machine.who('')['host']} would replace its copy",
    )
    later.close("interrupted", reason="pre-empted")
    assert asked(store).exit_code == 0


def test_what_was_copied_from_a_bucket_is_found_as_it_was_kept_there(store: Store, dest: Path) -> None:
    """A folder store with durable copies as blobs: what ``dibs copy s3://... folder`` leaves."""
    plan = planned(store, "a", "b")
    mine, files = begin(store, plan, "a"), result()
    mine.files.update({f"final/{key}": store.put(data) for key, data in files.items()})
    said = {key: {"sha256": mine.files[f"final/{key}"], "bytes": len(data)} for key, data in files.items()}
    mine.ended = {"cause": "ok", "artifacts": said, "final": "blobs"}
    mine.close("done")
    finish(store, plan, "b")
    proven(store, plan, dest)
    assert asked(store).exit_code == 0
    digest = mine.files["final/metrics.json"]
    (Path(store.url) / blob_key(digest)).unlink()
    assert asked(store).missing[0].startswith("missing: a metrics.json")
