"""What a program may write and read, as the kernel keeps it; and what it is told where the kernel does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dibs.cell import Cause, Isolation, isolation_status
from dibs.cell import _isolation as module
from dibs.errors import UsageError

from .programs import landlocked, ran

TRIES = """
try() { if ( eval "$2" ) 2>/dev/null; then echo "$1 yes"; else echo "$1 no"; fi; }
try own ': > inside; mkdir d; mv inside d/moved; rm d/moved'
try above ': > ../../outside'
try neighbour 'echo x >> ../../neighbour/checkpoint'
try truncate ': > ../../neighbour/checkpoint'
try cut '"$PYTHON" -c "import os, sys; os.truncate(sys.argv[1], 0)" ../../neighbour/checkpoint'
try remove 'rm ../../neighbour/checkpoint'
try read 'cat ../../neighbour/checkpoint > copy'
try temporary 'echo x > "$TMPDIR/scratch"'
try null 'echo x > /dev/null'
try shared 'echo x > /dev/shm/dibs-test.$$ && rm /dev/shm/dibs-test.$$'
try child 'sh -c "echo x > ../../outside"'
"""


@pytest.fixture
def tmp_path(disk_path: Path) -> Path:
    """Not in /dev/shm, which is shared with all programs as long as no folder of a store lies in it."""
    return disk_path


def isolated(folder: Path, text: str, **more: object) -> list[str]:
    """What the program says, run where other cells have their folders beside it."""
    (folder / "neighbour").mkdir()
    (folder / "neighbour" / "checkpoint").write_text("theirs")
    (folder / "scratch").mkdir()
    isolation = Isolation.of(
        {"TMPDIR": str(folder / "scratch"), "HOME": str(folder)}, kept=[folder / "cell", folder / "neighbour"], **more
    )  # type: ignore[arg-type]
    ending = ran(
        folder / "cell",
        text,
        isolation=isolation,
        environ={"TMPDIR": str(folder / "scratch"), "PYTHON": sys.executable},
    )
    assert ending.cause is Cause.OK, ending
    return (folder / "cell" / "log.txt").read_text().splitlines()


@landlocked
def test_it_writes_to_its_own_folder_and_scratch_alone(tmp_path: Path) -> None:
    said = isolated(tmp_path, TRIES)
    assert said == [
        "own yes", "above no", "neighbour no", "truncate no", "cut no", "remove no", "read yes", "temporary yes", "null yes",
        "shared yes", "child no",
    ]  # fmt: skip
    assert (tmp_path / "neighbour" / "checkpoint").read_text() == "theirs"


@landlocked
def test_what_is_denied_is_not_read_under_any_name(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "reserved" / "deep").mkdir(parents=True)
    (data / "reserved" / "deep" / "test.csv").write_text("secret\n")
    (data / "train.csv").write_text("open\n")
    (data / "alias").symlink_to(data / "reserved")
    (tmp_path / "one").write_text("secret\n")
    text = f"""
cat '{data}/train.csv'
cat '{data}/reserved/deep/test.csv' '{data}/alias/deep/test.csv' '{tmp_path}/one' 2>/dev/null && echo leaked
sh -c "cat '{data}/reserved/deep/test.csv'" 2>/dev/null && echo leaked
ln '{data}/reserved/deep/test.csv' here 2>/dev/null && cat here 2>/dev/null && echo leaked
mv '{data}/reserved' '{data}/other' 2>/dev/null && cat '{data}/other/deep/test.csv' && echo leaked
echo mine > own && cat own
"""
    said = isolated(tmp_path, text, denied=[data / "alias", tmp_path / "one"])
    assert said == ["open", "mine"]


@landlocked
def test_without_isolation_it_writes_where_it_likes(tmp_path: Path) -> None:
    ran(tmp_path / "cell", ": > ../../outside")
    assert (tmp_path / "outside").exists()


def test_scratch_that_holds_the_cells_folders_is_not_given(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    found = Isolation.of({"TMPDIR": str(tmp_path)}, kept=[tmp_path / "store"], more=[tmp_path / "scratch"])
    assert str(tmp_path) not in found.scratch
    assert str(tmp_path / "scratch") in found.scratch
    assert found.own_temporary
    assert not Isolation.of({"TMPDIR": str(tmp_path)}, kept=[Path("/nowhere")]).own_temporary


@pytest.mark.parametrize(
    ("denied", "said"),
    [("nothing", "must be there"), (".", "cannot be denied: .*/store is in it"), ("/", "cannot be denied")],
)
def test_what_cannot_be_denied(tmp_path: Path, denied: str, said: str) -> None:
    (tmp_path / "store").mkdir()
    with pytest.raises(UsageError, match=said):
        Isolation.of({}, kept=[tmp_path / "store"], denied=[tmp_path / denied])


def test_the_status_says_what_the_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "abi", lambda: 7)
    assert isolation_status() == "enforced (Landlock 7)"
    monkeypatch.setattr(module, "abi", lambda: 0)
    assert isolation_status().startswith("advisory (this kernel has no Landlock")


@landlocked
@pytest.mark.parametrize("scratch", ["", "scratch/", "scratch/reserved/"])
def test_what_is_denied_is_not_read_because_it_lies_in_scratch(tmp_path: Path, scratch: str) -> None:
    reserved = tmp_path / "scratch" / "reserved"
    (reserved / "inner").mkdir(parents=True)
    (reserved / "test.csv").write_text("secret\n")
    (reserved / "inner" / "test.csv").write_text("secret\n")
    for name in ("TMPDIR", "HF_HOME"):
        environ = {name: str(tmp_path / scratch), "HOME": str(tmp_path)}
        isolation = Isolation.of(environ, kept=[tmp_path / "cell"], denied=[reserved])
        text = f"cat '{reserved}/test.csv' '{reserved}/inner/test.csv' && echo leaked"
        ran(tmp_path / "cell" / name, text, isolation=isolation)
        assert "secret" not in (tmp_path / "cell" / name / "log.txt").read_text()


@pytest.mark.parametrize("named", ["data", "data/reserved", "data/reserved/inner"])
def test_what_is_denied_cannot_be_written_to(tmp_path: Path, named: str) -> None:
    (tmp_path / "data" / "reserved" / "inner").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be both written to and denied"):
        Isolation.of({}, kept=[], more=[tmp_path / named], denied=[tmp_path / "data" / "reserved"])
