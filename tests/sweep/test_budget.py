"""The arithmetic of disks: what cells take, added up where two places are one disk, and said with numbers."""

from __future__ import annotations

from dibs.sweep._budget import Free, needs, short_of

GIB = 1 << 30


def test_what_cells_take() -> None:
    final, work = needs(cells=10, running=2, checkpoint_bytes=3 * GIB, scratch_bytes=5 * GIB, artifacts=2)
    assert (final.bytes, work.bytes) == (30 * GIB, 40 * GIB)
    assert final.inodes == 10 * 4
    assert work.inodes > 10 * 2


def test_each_disk_is_held_against_all_that_lies_on_it() -> None:
    final, work = needs(10, 2, 3 * GIB, 5 * GIB, 2)
    wanted = {"final": final, "work": work}
    apart = {"final": Free("/a", "1", 30 * GIB, None), "work": Free("/b", "2", 40 * GIB, 10**6)}
    assert short_of(wanted, apart) == []
    one = {"final": Free("/a", "1", 69 * GIB, 10**6), "work": Free("/b", "1", 69 * GIB, 10**6)}
    assert short_of(wanted, one) == ["/a (final) and /b (work) would take 70 GiB, and 69 GiB are free"]
    few = apart | {"final": Free("/a", "1", 30 * GIB - 1, 39)}
    assert short_of(wanted, few) == [
        "/a (final) would take 30 GiB, and 30 GiB are free",
        "/a (final) would take 40 files, and 39 are free",
    ]
    assert short_of(wanted, {"work": Free("/b", "2", None, None)}) == []
