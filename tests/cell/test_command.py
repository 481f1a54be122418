"""A command before anything is claimed: what it runs is there, and what it runs stays as it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parts import script

from dibs import Store
from dibs.cell import Command, claim_folder, freeze, frozen_in, hold
from dibs.errors import StoreError, UsageError


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    (folder / "lib").mkdir(parents=True)
    script(folder / "train.sh", "#!/bin/sh\n. ./helper\n")
    (folder / "train.py").write_text("import helper\nfrom lib import model\n")
    (folder / "helper.py").write_text("print('helper 1')\n")
    (folder / "lib" / "__init__.py").write_text("")
    (folder / "lib" / "model.py").write_text("print('model 1')\n")
    (folder / "data.csv").write_text("1,2\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def of(here: Path, *words: str, **more: object) -> Command:
    return Command.of(words, here=here, path=os.environ["PATH"], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "there is no command: write it after --"),
        (("./nothing.sh",), r"the program ./nothing.sh is not there \(looked for in .*here\)"),
        (("./lib",), "the program ./lib is a folder"),
        (("./data.csv",), r"may not be executed: chmod \+x ./data.csv"),
        (("no-such-program",), "there is no program 'no-such-program' on the PATH$"),
        (("train.sh",), "a program in this folder is ./train.sh"),
        (("",), "there is no program '' on the PATH"),
        (("python3", "missing.py"), "there is no file missing.py in .*here for python3"),
        (("sh", "missing.sh", "{x}"), "there is no file missing.sh"),
        (("./train.sh", "{"), "has a lone {"),
    ],
)  # fmt: skip
def test_a_program_that_is_not_there_is_refused(here: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        of(here, *words)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("#!/no/such/interpreter\n", "says that '/no/such/interpreter' runs it"),
        ("echo 1\n", "without a first line that says"),
    ],
)
def test_a_script_that_no_kernel_would_run_is_refused(here: Path, head: str, said: str) -> None:
    script(here / "bad", head)
    with pytest.raises(UsageError, match=said):
        of(here, "./bad")


@pytest.mark.parametrize(
    "words", [("sh", "-c", "echo {lr}"), ("python3", "-m", "this"), ("{here}/{lr}",), ("awk", "BEGIN {{}}")]
)
def test_what_may_well_be_there_is_not_refused(here: Path, words: tuple[str, ...]) -> None:
    assert of(here, *words).scripts == {}


@pytest.mark.parametrize(
    ("words", "scripts"),
    [
        (("./train.sh", "data.csv"), {"./train.sh": 0}),
        (("python3", "-u", "train.py", "data.csv"), {"train.py": 2}),
        (("env", "A=1", "./train.sh"), {"./train.sh": 2}),
        (("sh", "-e", "{here}/train.sh"), {}),
    ],
)
def test_the_script_a_command_runs(here: Path, words: tuple[str, ...], scripts: dict[str, int]) -> None:
    assert of(here, *words).scripts == scripts
    assert of(here, *words, scripts=False).scripts == {}


def test_a_script_by_its_whole_path_is_ones_own_unless_it_is_installed(here: Path) -> None:
    assert of(here, str(here / "train.sh"), "data.csv").scripts == {str(here / "train.sh"): 0}
    (here / "bin").mkdir()
    launcher = script(here / "bin" / "torchrun", "#!/bin/sh\n")
    assert of(here, str(launcher), "train.py").scripts == {"train.py": 1}


def test_the_program_starts_elsewhere_so_its_path_is_whole(here: Path) -> None:
    assert of(here, "./train.sh", "x").filled({})[0] == [str(here / "train.sh"), "x"]
    assert Path(of(here, "sh", "x.d").filled({})[0][0]).is_absolute() if (here / "x.d").mkdir() is None else False


def test_an_edited_script_changes_nothing_that_runs(here: Path, store: Store) -> None:
    command = of(here, "python3", "train.py", "{lr}", freeze=["lib/model.py"])
    with freeze(command, store, "spam") as frozen:
        argv, _ = frozen.filled({"lr": "1"})
        copy = Path(argv[1])
        (here / "train.py").write_text("edited")
        (here / "lib" / "model.py").write_text("edited")
        (here / "helper.py").write_text("print('helper 2')\n")
        assert copy.read_text() == "import helper\nfrom lib import model\n"
        assert (copy.parent / "lib" / "model.py").read_text() == "print('model 1')\n"
        assert (copy.parent / "helper.py").read_text() == "print('helper 2')\n"  # a neighbour is the one of today
        assert copy.resolve() == copy
        assert frozen.shown({"lr": "1"}).endswith("python3 train.py 1")  # as it was given
    assert not copy.exists()
    assert {each.file for each in frozen_in(store, "spam")} == {"train.py", "lib/model.py"}
    assert store.get(frozen.digests["train.py"]) == b"import helper\nfrom lib import model\n"


def test_a_new_version_is_a_new_digest_and_the_same_one_is_none(here: Path, store: Store) -> None:
    command = of(here, "./train.sh")
    for text in ("#!/bin/sh\n", "#!/bin/sh\n", "#!/bin/sh\nexit 1\n"):
        script(here / "train.sh", text)
        with freeze(command, store, "spam") as frozen:
            assert os.access(frozen.filled({})[0][0], os.X_OK)
    assert len(frozen_in(store, "spam")) == 2
    assert frozen_in(store, "spam2") == []


def test_copies_of_a_killed_run_are_removed_by_the_next_one_and_no_others(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = store.machine.who("")
    dead, living = {**ours, "token": ours["token"].rpartition("-")[0] + "-1"}, ours
    rows = (
        ("old", dead, 1e5),
        ("new", dead, 0),
        ("used", dead, 1e5),
        ("living", living, 1e5),
        ("foreign", {"x": 1}, 1e5),
    )
    for name, who, age_s in rows:
        folder = tmp_path / f"dibs-program-{name}"
        folder.mkdir()
        (folder / "owner.json").write_text(json.dumps(who))
        os.utime(folder, (store.machine.clock.wall() - age_s,) * 2)
    code = f"import sys; from dibs.cell import hold; hold(['{tmp_path}/dibs-program-used/0/x']); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()  # it has outlived its run, and is through with nothing yet
        with freeze(of(here, "./train.sh"), store, "spam"):
            pass
        assert sorted(path.name for path in tmp_path.glob("dibs-program-*")) == [
            "dibs-program-foreign", "dibs-program-living", "dibs-program-used",
        ]  # fmt: skip
        worker.kill()
    with freeze(of(here, "./train.sh"), store, "spam"):
        pass
    assert not (tmp_path / "dibs-program-used").exists()


def test_copies_that_nobody_said_to_be_his_go_after_a_day(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name, owner, age_s in (("none", None, 1e5), ("half", "", 1e5), ("begun", None, 0.0)):  # killed at once
        folder = tmp_path / f"dibs-program-{name}"
        (folder / "0").mkdir(parents=True)
        if owner is not None:
            (folder / "owner.json").write_text(owner)
        os.utime(folder, (store.machine.clock.wall() - age_s,) * 2)
    with freeze(of(here, "./train.sh"), store, "spam"):
        pass
    assert [path.name for path in tmp_path.glob("dibs-program-*")] == ["dibs-program-begun"]


@pytest.mark.parametrize("step", ["tempfile.mkdtemp", "pathlib.Path.write_text"])
def test_no_room_for_private_copies_is_said_with_its_place(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def full(*_: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step, full)
    with (
        pytest.raises(StoreError, match=f"no room in {tmp_path} for private copies.*No space left on device"),
        freeze(of(here, "./train.sh"), store, "spam"),
    ):
        pass
    assert list(tmp_path.glob("dibs-program-*")) == []


def test_where_there_is_no_temporary_folder_they_lie_in_the_work_folder(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "new" / "work"))
    with freeze(of(here, "./train.sh"), store, "spam") as frozen:
        assert Path(frozen.frozen["./train.sh"]).is_relative_to(tmp_path / "new" / "work")
    assert list((tmp_path / "new" / "work").iterdir()) == []


def test_where_no_lock_can_tell_they_stay_for_a_day(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    ours = store.machine.who("")
    for name, age_s in (("old", 1e5), ("new", 0)):
        folder = tmp_path / f"dibs-program-{name}"
        folder.mkdir()
        (folder / "owner.json").write_text(json.dumps({**ours, "token": ours["token"].rpartition("-")[0] + "-1"}))
        os.utime(folder, (store.machine.clock.wall() - age_s,) * 2)
    with freeze(of(here, "./train.sh"), store, "spam") as frozen:
        hold(frozen.frozen.values())
    assert [path.name for path in tmp_path.glob("dibs-program-*")] == ["dibs-program-new"]


def test_copies_that_are_gone_are_nobodys_fault(
    here: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with freeze(of(here, "./train.sh"), store, "spam") as frozen:
        copies = list(frozen.frozen.values())
        hold(copies)
        hold(copies)
    with pytest.raises(StoreError, match="are gone: the run that made them has ended"):
        hold(copies)
    hold([str(here / "train.sh")])  # no copy of ours


def test_a_shell_line_names_its_frozen_files(here: Path, store: Store) -> None:
    command = of(here, "sh {train.sh} {lr} | tail -1", shell=True, freeze=["train.sh"])
    command.check({"lr"})
    with freeze(command, store, "spam") as frozen:
        argv, more = frozen.filled({"lr": "1"})
        assert argv[:2] == ["/bin/sh", "-c"]
        assert Path(more["DIBS_ARG_0"]).read_text() == (here / "train.sh").read_text()
    with pytest.raises(UsageError, match="--shell takes one line, not 2 words"):
        of(here, "a", "b", shell=True)
    with pytest.raises(UsageError, match=r"there is no file nothing in .* to freeze"):
        of(here, "true", freeze=["nothing"])


def test_an_output_folder_has_one_owner_by_its_real_path(tmp_path: Path, store: Store) -> None:
    real = tmp_path / "runs" / "a"
    real.mkdir(parents=True)
    (tmp_path / "alias").symlink_to(tmp_path / "runs")
    claim_folder(store, real, "trial 1")
    claim_folder(store, real, "trial 1")  # it is its own
    for path in (real, tmp_path / "alias" / "a", tmp_path / "runs" / ".." / "runs" / "a"):
        with pytest.raises(UsageError, match=r"trial 2 would write to .*/runs/a, and that belongs to trial 1"):
            claim_folder(store, path, "trial 2")
    claim_folder(store, tmp_path / "runs" / "ab", "trial 2")  # a longer name is no folder within


def test_folders_within_one_another_are_one_place(tmp_path: Path, store: Store) -> None:
    claim_folder(store, tmp_path / "runs" / "a", "trial 1")
    with pytest.raises(UsageError, match=r"which is within .*/runs/a, and that belongs to trial 1"):
        claim_folder(store, tmp_path / "runs" / "a" / "deep" / ("x" * 90), "trial 2")
    with pytest.raises(UsageError, match=r"which is around .*/runs/a, and that belongs to trial 1"):
        claim_folder(store, tmp_path / "runs", "trial 3")
    claim_folder(store, tmp_path / "runs" / "b", "trial 4")  # who was refused has nothing
    with pytest.raises(UsageError, match="belongs to trial 3"):
        claim_folder(store, tmp_path / "runs", "trial 5")  # but a name is given once


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("#!/bin/sh\r\n", "the lines of .* end as on Windows"),
        ("#!/usr/bin/env sh\r\n", "the lines of .* end as on Windows"),
        ("#!/usr/bin/env no-such-program\n", "says that 'no-such-program' runs it"),
        ("#!/usr/bin/env sh -e\n", "says that 'sh -e' runs it"),  # without -S it is one name
        ("#!/usr/bin/env -S A=1 no-such-program -u\n", "says that 'no-such-program' runs it"),
        ("#!/no/such/interpreter\n", "says that '/no/such/interpreter' runs it"),
        ("#!/etc/passwd\n", "says that '/etc/passwd' runs it"),
        ("#!/bin/sh\n", ""),
        ("#!/bin/sh\t-e\n", ""),
        ("#! /bin/sh -e\n", ""),
        ("#!/bin/sh -e\n#\r\n", ""),
        ("#!/usr/bin/env sh\n", ""),
        ("#!/usr/bin/env -S A=1 sh -e\n", ""),
    ],
)
@pytest.mark.parametrize("on_path", [False, True])
def test_who_runs_a_script_is_there_or_it_is_refused(here: Path, head: str, said: str, on_path: bool) -> None:
    script(here / "odd.sh", head + "echo ran\n")
    path = f"{here}:{os.environ['PATH']}"
    name = "odd.sh" if on_path else "./odd.sh"
    if said:
        with pytest.raises(UsageError, match=said):
            Command.of([name], here=here, path=path)
    else:
        argv, _ = Command.of([name], here=here, path=path).filled({})
        assert subprocess.run(argv, capture_output=True, check=False).stdout == b"ran\n"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("python3 -u missing.py", True),
        ("python3 -uB missing.py {lr}", True),
        ("sh -ex missing.sh", True),
        ("perl -w missing.pl", True),
        ("python3 -u train.py missing.cfg", False),
        ("python3 -m train", False),
        ("python3 -c pass missing", False),
        ("python3 -W error train.py", False),
        ("sh -c true missing", False),
        ("sh -u {lr}", False),
        ("python3 -", False),
        ("python3 -u", False),
    ],
)
def test_a_missing_script_is_seen_behind_switches(here: Path, words: str, refused: bool) -> None:
    if words.startswith("perl") and not shutil.which("perl"):
        pytest.skip("no perl")
    if refused:
        with pytest.raises(UsageError, match="there is no file missing"):
            of(here, *words.split())
    else:
        of(here, *words.split())


def test_a_script_that_is_not_frozen_is_found_all_the_same(here: Path, store: Store) -> None:
    whole = str(here / "train.py")
    for words in (["python3", "train.py"], ["python3", "-u", "train.py"], ["nice", "./train.py"]):
        command = of(here, *words, scripts=False)
        assert command.filled({})[0][1:] == [whole if word.endswith("train.py") else word for word in words[1:]]
        assert command.shown({}).endswith(words[-1])
    with (here / "train.py").open("r+b") as file:
        file.truncate(17 << 20)  # too large to be kept: it is run itself, and what is named after it is no script
    command = of(here, "python3", "train.py", "helper.py")
    with freeze(command, store, "spam") as frozen:
        assert frozen.filled({})[0][1:] == [whole, "helper.py"]


def test_a_copy_finds_what_lies_above_it(here: Path, store: Store) -> None:
    (here / "scripts").mkdir()
    (here / "settings.txt").write_text("from above")
    script(
        here / "scripts" / "train.sh",
        '#!/bin/sh\ncat "$(dirname "$0")/../settings.txt" "$(dirname "$0")/../../here/settings.txt"\n',
    )
    for at, name in ((here, "scripts/train.sh"), (here / "scripts", "./train.sh")):
        with freeze(Command.of([name], here=at, path=os.environ["PATH"]), store, "spam") as frozen:
            argv, _ = frozen.filled({})
            assert not argv[0].startswith(str(here))
            assert subprocess.run(argv, capture_output=True, check=False, cwd="/").stdout == b"from above" * 2


def test_a_full_folder_costs_nothing_unless_a_script_stands_by_it(tmp_path: Path, store: Store) -> None:
    crowd, by_it = tmp_path / "crowd", tmp_path / "crowd" / "by it"
    for folder in (crowd, by_it):
        (folder / "here" / "lib").mkdir(parents=True)
        for n in range(501):
            (folder / f"{n}.txt").touch()
    (tmp_path / "few.txt").touch()
    for name in ("train.sh", "lib/train.sh"):  # both: as far as above the folder that the command is given in
        script(by_it / "here" / name, "#!/bin/sh\n")
        command = Command.of([f"./{name}"], here=by_it / "here", path=os.environ["PATH"])
        with freeze(command, store, "spam") as frozen:
            copy = Path(frozen.filled({})[0][0])
            mirrored = copy.parents[name.count("/") + 1]
            assert len(list(mirrored.glob("*.txt"))) == 501
            assert not list(mirrored.parent.glob("*.txt"))  # a crowd that is further away: /tmp, say
            assert (mirrored.parent.parent / "few.txt").exists()
    elsewhere = Command.of([str(by_it / "here" / "lib" / "train.sh")], here=crowd / "here", path=os.environ["PATH"])
    with freeze(elsewhere, store, "spam") as frozen:  # only its own folders count then
        copy = Path(frozen.filled({})[0][0])
        assert (copy.parents[1] / "train.sh").exists()
        assert not list(copy.parents[2].glob("*.txt"))
