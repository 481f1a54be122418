"""Queue files followed while a sweep runs: what was appended or commented out counts, a line half written does not yet."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from tests.parts import FakeMachine

from dibs import Store
from dibs.backend import FolderBackend
from dibs.sweep import Plan, newest_plan, plan_sweep, reread

WORDS = ("sh", "-c", "true", "{cfg}")


class Bench:
    """A planned sweep on a host whose time passes when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.machine, self.folder, self.queue = FakeMachine(), folder, folder / "q"
        Store(folder / "s")
        self.store = Store.over(FolderBackend(folder / "s"), self.machine)
        self.write("a t 1\nb t 1\n")
        self.plan = plan_sweep(self.store, "A", ["q"], WORDS, here=folder).plan

    def write(self, text: str) -> None:
        """At this moment of the machine's clock."""
        self.queue.write_text(text)
        wall = self.machine.clock.wall()
        os.utime(self.queue, (wall, wall))

    def look(self, after_s: float = 0.0) -> Plan | None:
        self.machine.clock.now += after_s
        found = reread(self.store, self.plan)
        self.plan = found or self.plan
        return found

    @property
    def names(self) -> list[str]:
        return [cell.name for cell in self.plan.active]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_nothing_new(bench: Bench) -> None:
    assert bench.look() is None
    assert bench.look(5.0) is None
    assert newest_plan(bench.store, "A").version == 0


def test_appended_and_dropped_lines_count_at_once(bench: Bench) -> None:
    bench.look(5.0)
    bench.write("a t 1\n# b t 1\nc t 1\n")
    assert bench.look() is not None
    assert bench.names == ["a", "c"]
    bench.write("a t 1\nb t 1\nc t 1\n")
    assert bench.look() is not None
    assert bench.names == ["a", "b", "c"]
    assert newest_plan(bench.store, "A") == bench.plan


@pytest.mark.parametrize("looked_before", [True, False])
def test_a_line_without_an_end_counts_when_the_file_rests(bench: Bench, looked_before: bool) -> None:
    if looked_before:
        bench.look(5.0)
    bench.write("a t 1\nb t 1\nc t 1\nd t 1")
    assert bench.look(1.0) is not None
    assert bench.names == ["a", "b", "c"]
    bench.write("a t 1\nb t 1\nc t 1\nd t 17")
    assert bench.look(1.5) is None
    assert bench.look(2.0) is not None
    assert bench.names == ["a", "b", "c", "d"]
    assert bench.plan.cells[3].fields["epochs"] == 17
    assert bench.look(9.0) is None


def test_a_file_that_is_being_written_is_not_a_change(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.look(5.0)
    bench.write("")
    assert bench.look() is None
    bench.write("a t 1\nb t 1\nc t 1\n")
    assert bench.look(1.0) is not None
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a t 2\nb t 1\n", "-a t 1\n+a t 2"),
        ("b t 1\n", "q was changed in a way that moves cells"),
        ("a t 1\nb t 1\nc\n", "q:3: 'c' is one word"),
        ("a t 1\nb t 1\na u 1\n", "q:1 (planned before) and q:3: both are 'a'"),
        ("a t 1\nb t 1\nnone.toml u 1\n", "q:3: the config none.toml is not there"),
    ],
)
def test_another_change_is_one_warning(bench: Bench, caplog: pytest.LogCaptureFixture, text: str, said: str) -> None:
    bench.look(5.0)
    bench.write(text)
    with caplog.at_level(logging.WARNING, "dibs"):
        for _ in range(4):
            assert bench.look(1.5) is None
    assert len(caplog.records) == 1
    assert said in caplog.records[0].getMessage()
    assert newest_plan(bench.store, "A").version == 0
    bench.write("a t 1\nb t 1\nc t 1\n")
    assert bench.look() is not None


def test_elsewhere_nothing_is_looked_at(bench: Bench) -> None:
    bench.write("a t 1\nb t 1\nc t 1\n")
    other = Store.over(FolderBackend(bench.folder / "s"), FakeMachine(host="other"))
    assert reread(other, bench.plan) is None
    bench.queue.unlink()
    assert bench.look(5.0) is None


def test_what_another_planner_has_taken_over_is_no_news_but_a_version(bench: Bench) -> None:
    bench.write("a t 1\nb t 1\nc t 1\n")
    plan_sweep(Store.over(FolderBackend(bench.folder / "s"), bench.machine), "A", ["q"], here=bench.folder)
    found = bench.look()
    assert found is not None
    assert (found.version, bench.names) == (1, ["a", "b", "c"])
