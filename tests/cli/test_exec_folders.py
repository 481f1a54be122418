"""``dibs exec --out``: an output folder is one attempt's alone, whoever asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.exec_words import Call, words
from tests.parts import memory_kills, script

from dibs import Study


def test_output_folders_that_would_be_shared_are_refused_naming_both(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\necho x > checkpoint; echo 1 > "$DIBS_RESULT"\n')
    dibs(*words("--out", "runs/{opt}", "--max-failures", "0", trials=6), "./train.sh", code=1)
    results = Study(tmp_path / "s", "mill").results()
    done = {result.point["opt"]: result.n for result in results if result.state == "done"}
    assert sorted(done) == ["adam", "sgd"]
    for result in results:
        if result.state == "failed":
            both = rf"trial {result.n} attempt 0 of study 'mill' would write to {tmp_path}/runs/{result.point['opt']}"
            assert result.reason is not None
            assert both in result.reason
            assert f"belongs to trial {done[result.point['opt']]} attempt 0" in result.reason
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["adam", "sgd"]


def test_folders_named_after_their_attempt_are_never_shared(dibs: Call, mill: Path, tmp_path: Path) -> None:
    dibs(*words("--out", str(tmp_path / "runs" / "{name}"), trials=3), "./train.sh", "{lr}")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["mill-0-0", "mill-1-0", "mill-2-0"]


def test_two_stores_in_one_work_folder_share_no_folder_and_no_result(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\nls; echo x > made; [ -e "$DIBS_HERE/stale" ] || echo 7 > "$DIBS_RESULT"\n')
    work = str(tmp_path / "work")
    dibs(*words(trials=1), "./train.sh", "{lr}", DIBS_WORK=work)
    (tmp_path / "stale").touch()
    other = tuple("s2" if word == "s" else word for word in words("--max-failures", "0", trials=1))
    dibs(*other, "./train.sh", "{lr}", code=1, DIBS_WORK=work)
    assert [result.state for result in Study(tmp_path / "s2", "mill").results()] == ["failed"]  # no score of another's
    assert len(list((tmp_path / "work").rglob("made"))) == 2
    logs = [path.read_text() for path in (tmp_path / "work" / "mill" / "work").glob("00000000-0-*/log.txt")]
    assert len(logs) == 2
    assert not any("made" in log for log in logs)


@memory_kills(ours=False)
def test_what_another_store_left_is_no_earlier_attempt(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\necho "of $DIBS_HERE/$1: $(cat "$DIBS_PREVIOUS/made")"; echo "$1" > made\n'
           '[ "$1.$DIBS_ATTEMPT" = s2.0 ] && kill -9 $$; echo 7 > "$DIBS_RESULT"\n')  # fmt: skip
    for store in ("s", "s2"):
        given = [store if word == "s" else word for word in words(trials=1)]
        dibs(*given, "./train.sh", store, DIBS_WORK=str(tmp_path / "work"))
    assert [result.attempt for result in Study(tmp_path / "s2", "mill").results()] == [1]
    (log,) = (tmp_path / "work" / "mill" / "work").glob("00000000-1-*/log.txt")
    assert log.read_text() == f"of {tmp_path}/s2: s2\n"


@pytest.mark.parametrize("out", ["SHARED/{name}", "{here}/shared/{name}", "link/{name}", "shared/run-{name}"])
def test_isolated_output_folders_beneath_scratch_are_not_each_others(
    dibs: Call, mill: Path, tmp_path: Path, out: str
) -> None:
    shared = tmp_path / "shared"  # a temporary folder, as /dev/shm is
    (shared / "theirs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(shared)
    script(mill, '#!/bin/sh\n(: > ../theirs/checkpoint)\necho 1 > "$DIBS_RESULT"\n')
    out = out.replace("SHARED", str(shared))
    dibs(
        *words("--isolate", "--out", out, trials=1), "./train.sh", TMPDIR=str(shared), DIBS_WORK=str(tmp_path / "work")
    )
    assert not list((shared / "theirs").iterdir())


def test_one_output_folder_for_all_trials_is_refused_before_anything_is_claimed(
    dibs: Call, mill: Path, tmp_path: Path
) -> None:
    assert "4 trials would share it" in dibs(*words("--out", "runs"), "./train.sh", "{lr}", code=2).stderr
    assert not (tmp_path / "s").exists()
    said = dibs(*words("--out", "runs", trials=1), "./train.sh", "{lr}").stderr
    assert "the attempt after one that was interrupted would share its folder" in said
    assert "would share" not in dibs(*words("--out", "more/{name}", trials=3), "./train.sh", "{lr}").stderr


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("s/study/mill/work/{trial}/out/{name}", "would share its files with"),
        ("s/study/{name}", "would share its files with"),
        ("link/other/{name}", "would share its files with"),
        ("work/mill/work/{name}", "would share its files with"),
        ("full/{trial}", "is not empty (there is 'theirs')"),
        ("train.sh/{name}", "cannot be made: Not a directory"),
        (f"{{name}}/{'x' * 300}", "cannot be made: File name too long"),
    ],
)
def test_an_output_folder_that_cannot_be_an_attempts_own_fails_the_trial_alone(
    dibs: Call, mill: Path, tmp_path: Path, out: str, said: str
) -> None:
    (tmp_path / "full" / "0").mkdir(parents=True)
    (tmp_path / "full" / "0" / "theirs").touch()
    (tmp_path / "link").symlink_to("s/study")
    work = str(tmp_path / "work") if out.startswith("work") else ""
    dibs(*words("--out", out, "--max-failures", "0", trials=1), "./train.sh", "{lr}", code=1, DIBS_WORK=work)
    (result,) = Study(tmp_path / "s", "mill").results()
    assert result.state == "failed"
    assert said in (result.reason or "")


def test_a_parameter_called_out_may_name_the_output_folder(dibs: Call, mill: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text('out = ["a", "b"]\n')
    script(mill, '#!/bin/sh\necho 1 > "$DIBS_RESULT"\n')
    dibs(*words("--out", "runs/{out}-{name}", space="odd.toml", trials=1), "./train.sh")
    assert list((tmp_path / "runs").iterdir())
