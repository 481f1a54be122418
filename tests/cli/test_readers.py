"""status, best, trials and show: what they print, as text, JSON and CSV, and that they leave no trace."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import dibs as library
from dibs import Store, Study

Call = Callable[..., Result]
PICTURES = (("history",), ("slice",), ("contour", "x", "kind"))


def test_best_prints_the_winner_and_its_point(studied: Call) -> None:
    best = Study("s", "spam").best()
    lines = studied("best", "--store", "s", "--study", "spam").stdout.splitlines()
    assert lines[0] == f"{best.score:.6g}  trial {best.n}, goal min"
    assert lines[1:] == [f"  {name:4}  {value!r}" for name, value in best.point.items()]


def test_best_in_json_one_object_and_with_top_an_array(studied: Call) -> None:
    one = json.loads(studied("best", "--store", "s", "--json").stdout)
    many = json.loads(studied("best", "--store", "s", "--json", "--top", "3").stdout)
    assert many[0] == one
    assert [row["score"] for row in many] == sorted(row["score"] for row in many)
    assert (one["study"], one["goal"], one["state"], len(many)) == ("spam", "min", "done", 3)


def test_the_best_point_of_one_study_is_a_wish_for_another(studied: Call, search: Path) -> None:
    point = studied("best", "--store", "s", "--point-only").stdout.strip()
    studied("run", str(search), "--store", "s", "--study", "next", "--trials", "0", "--quiet")
    assert studied("enqueue", point, "--store", "s", "--study", "next").stdout.startswith("queued: ")
    studied("run", str(search), "--store", "s", "--study", "next", "--trials", "1", "--quiet")
    assert Study("s", "next").best().point == Study("s", "spam").best().point


def test_top_is_a_table_and_points_one_to_a_line(studied: Call) -> None:
    assert len(studied("best", "--store", "s", "--top", "2").stdout.splitlines()) == 3
    lines = studied("best", "--store", "s", "--top", "2", "--point-only").stdout.splitlines()
    assert [set(json.loads(line)) for line in lines] == [{"x", "kind"}] * 2


def test_trials_as_table_json_and_csv(studied: Call) -> None:
    table = studied("trials", "--store", "s").stdout.splitlines()
    assert table[0].split() == ["trial", "attempt", "state", "score", "took", "me", "point"]
    assert [line.split()[:3] for line in table[1:]] == [[str(n), "0", "done"] for n in range(4)]
    rows = json.loads(studied("trials", "--store", "s", "--json").stdout)
    lines = list(csv.DictReader(io.StringIO(studied("trials", "--store", "s", "--csv").stdout)))
    assert [row["n"] for row in rows] == [int(line["n"]) for line in lines] == [0, 1, 2, 3]
    for row, line in zip(rows, lines, strict=True):
        assert float(line["score"]) == row["score"] == row["point"]["x"] == float(line["point.x"])
        kind = row["point"]["kind"]
        assert line["point.kind"] == (kind if isinstance(kind, str) else json.dumps(kind))


def test_trials_are_sorted_filtered_and_limited(studied: Call) -> None:
    def ns(*more: str) -> list[int]:
        return [row["n"] for row in json.loads(studied("trials", "--store", "s", "--json", *more).stdout)]

    by_score = [row.n for row in Study("s", "spam").top(4)]
    assert ns("--sort", "score") == by_score
    assert ns("--sort", "score", "--limit", "2") == by_score[:2]
    assert ns("--state", "failed") == []
    assert studied("trials", "--store", "s", "--state", "failed").stdout.startswith("trial")
    studied("trials", "--store", "s", "--state", "gone", code=2)
    studied("trials", "--store", "s", "--csv", "--json", code=2)


def test_show_is_the_trial_in_full(studied: Call) -> None:
    text = studied("show", "2", "--store", "s").stdout
    assert text.startswith("trial 2 of study spam: done, score ")
    assert "attempt 0: done" in text
    detail = json.loads(studied("show", "2", "--store", "s", "--json").stdout)
    assert (detail["row"]["n"], len(detail["attempts"])) == (2, 1)
    assert "no trial 9" in studied("show", "9", "--store", "s", code=2).stderr
    assert "replay" not in text
    assert "replay: the same point comes out" in studied("show", "2", "--store", "s", "--replay").stdout
    detail = json.loads(studied("show", "2", "--store", "s", "--replay", "--json").stdout)
    assert detail["replay"]["matches"] is True


def test_a_replay_that_differs_or_cannot_be_has_a_code_of_its_own(studied: Call, tmp_path: Path) -> None:
    path = next((tmp_path / "s").glob("study/spam/trial/*/00000001-0.json"))
    body = json.loads(path.read_text())
    name = next(iter(body["point"]))
    path.write_text(json.dumps({**body, "point": {**body["point"], name: 0.015625}}))
    text = studied("show", "1", "--store", "s", "--replay", code=1).stdout
    assert "another point comes out" in text
    path.write_text(json.dumps({**body, "wish": "ab" * 32}))
    assert "wished" in studied("show", "1", "--store", "s", "--replay", code=5).stdout


def test_show_has_the_traceback_and_the_curve(dibs: Call, tmp_path: Path) -> None:
    file = tmp_path / "failing.py"
    file.write_text(
        "import dibs\ngoal = 'max'\nspace = dibs.Space(x=dibs.Int(1, 9))\n"
        "def objective(trial):\n    trial.report(float('nan'))\n    trial.report(0.5)\n    raise ValueError('no \\x1b[31m')\n"
    )
    dibs("run", str(file), "--store", "s", "--study", "f", "--trials", "1", "--quiet", code=1)
    text = dibs("show", "0", "--store", "s").stdout
    assert "curve    0:nan 1:0.5" in text
    assert "| ValueError: no \\x1b[31m" in text
    assert "\x1b" not in text
    assert json.loads(dibs("show", "0", "--store", "s", "--json").stdout)["attempts"][0]["curve"] == [
        [0, "nan"],
        [1, 0.5],
    ]


def test_status_of_a_study_and_of_a_store(studied: Call) -> None:
    text = studied("status", "--store", "s", "--study", "spam").stdout
    assert "  trials    4: 4 done" in text
    assert "  goal      min, sampler auto, seed 1" in text
    assert "x = Float(0.0, 1.0)" in text
    assert "1 machine, 1 process" in text
    whole = json.loads(studied("status", "--store", "s", "--json").stdout)
    assert [(line["study"], line["counts"]["done"]) for line in whole["studies"]] == [("spam", 4)]
    assert json.loads(studied("status", "--store", "s", "--study", "spam", "--json").stdout)["of"] == 4


def test_status_says_what_is_stopped_queued_and_held(studied: Call) -> None:
    study = Study("s", "spam")
    studied("stop", "--store", "s", "--study", "spam")
    studied("enqueue", "x=0.5", "kind=a", "--store", "s", "--study", "spam")
    taken = library.study.take(study.store, {"x": 0.1, "kind": "a"}, study="stray", trial=0, goal="min", of=2)
    assert taken is not None
    text = studied("status", "--store", "s", "--study", "spam").stdout
    assert "stopped   no new trials anywhere" in text
    assert "queued    kind='a' x=0.5" in text
    assert "no trial below 4 is free" in text
    assert "last beat" in studied("status", "--store", "s", "--study", "stray").stdout


def test_one_study_need_not_be_named_and_several_are_listed(studied: Call, search: Path) -> None:
    studied("best", "--store", "s")
    studied("run", str(search), "--store", "s", "--study", "eggs", "--trials", "1", "--quiet")
    assert "has 2 studies ('eggs', 'spam')" in studied("best", "--store", "s", code=2).stderr
    assert "there: 'eggs', 'spam'" in studied("best", "--store", "s", "--study", "no", code=2).stderr


def test_no_result_is_code_5_with_the_counts_and_an_empty_stdout(dibs: Call, search: Path) -> None:
    dibs("run", str(search), "--store", "s", "--study", "spam", "--trials", "0", "--quiet")
    done = dibs("best", "--store", "s", "--json", code=5)
    assert (done.stdout, "no done trial yet (no trials)" in done.stderr) == ("", True)


def test_readers_and_steering_create_nothing(dibs: Call, tmp_path: Path) -> None:
    readers = (("status",), ("best",), ("trials",), ("show", "0"), *PICTURES, ("importances",))
    steering = (("stop",), ("rescue",), ("enqueue", "x=1"))
    named = [(*words, "--study", "x") for words in (*readers, *steering)]
    for words in (*named, ("fork", "x", "y")):
        said = dibs(*words, "--store", "nowhere", code=3).stderr
        assert "there is no store at" in said
    assert list(tmp_path.iterdir()) == []


def traces(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What would show that somebody had been there."""
    stats = {str(path): path.stat() for path in [folder, *folder.rglob("*")]}
    return {path: (stat.st_mtime_ns, stat.st_ino, stat.st_size) for path, stat in stats.items()}


@pytest.mark.parametrize(
    "words",
    [("status",), ("status", "--study", "spam"), ("best",), ("trials",), ("show", "1"), *PICTURES],
    ids=" ".join,
)
def test_readers_leave_no_trace(studied: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    before = traces(tmp_path / "s")
    studied(*words, "--store", "s")
    studied(*words, "--store", "s", "--json")
    assert traces(tmp_path / "s") == before


@pytest.mark.parametrize(
    ("junk", "newer"),
    [(b"", False), (b'{"v":1,"ki', False), (b"\xff\x00\x1b[31m" * 50, False), (b"[]", False), (b'{"v":7}', True)],
    ids=["empty", "truncated", "binary", "array", "newer"],
)
def test_a_damaged_record_is_shown_with_its_cure_and_nothing_breaks(
    studied: Call, search: Path, tmp_path: Path, junk: bytes, newer: bool
) -> None:
    (tmp_path / "s/study/spam/trial/000000/00000001-0.json").write_bytes(junk)
    for words in (("status",), ("trials",), ("best",), ("show", "1"), ("show", "0"), *PICTURES):
        assert "\x1b" not in studied(*words, "--store", "s").output
    text = studied("status", "--store", "s", "--study", "spam").stdout
    assert "study/spam/trial/000000/00000001-0.json" in text
    assert ("upgrade dibs" if newer else "dibs rescue") in text
    problems = json.loads(studied("status", "--store", "s", "--study", "spam", "--json").stdout)["problems"]
    assert [problem["newer"] for problem in problems] == [newer]
    done = studied("run", str(search), "--store", "s", "--study", "spam", "--trials", "5", "--quiet", code=6)
    assert "damaged  study/spam/trial/000000/00000001-0.json" in done.stdout
    assert "trial 1 is held by an unreadable record" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("junk", [b"", b"{", b'{"v":7}'], ids=["empty", "truncated", "newer"])
def test_a_damaged_definition_hides_no_result(studied: Call, tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "s/study/spam/study.json").write_bytes(junk)
    for words in (("best",), ("trials",), *PICTURES):
        studied(*words, "--store", "s")
    assert "study/spam/study.json" in studied("status", "--store", "s", "--study", "spam").stdout
    assert "1 do not read" in studied("status", "--store", "s").stdout


def test_a_damaged_marker_is_code_3(studied: Call, tmp_path: Path) -> None:
    (tmp_path / "s/dibs.json").write_bytes(b"{")
    assert "marker" in studied("status", "--store", "s", code=3).stderr


NAMES = ["../x", "\N{PARROT} \u200bx", "n" * 300, "Spam", "spam", "..", "a/b", "con", "\x1b[31mred\x07", "-v", "[red]x"]


def test_hostile_names_are_names(dibs: Call, search: Path, tmp_path: Path) -> None:
    for name in NAMES:
        done = dibs("run", str(search), "--store", "s", f"--study={name}", "--trials", "1", "--quiet")
        assert "\x1b" not in done.output
    assert sorted(Store("s").studies()) == sorted(NAMES)
    assert {path.name for path in tmp_path.iterdir()} == {"s", "searching.py"}
    listed = json.loads(dibs("status", "--store", "s", "--json").stdout)["studies"]
    assert sorted(line["study"] for line in listed) == sorted(NAMES)
    assert "\x1b" not in dibs("status", "--store", "s").output
    for name in NAMES:
        for words in (("best",), ("status",), ("trials",), *PICTURES, ("stop",), ("resume",)):
            done = dibs(*words, "--store", "s", f"--study={name}")
            assert "\x1b" not in done.output
            assert "\x07" not in done.output


def test_a_reader_that_goes_away_is_no_error(studied: Call, spawn: Callable[..., Any]) -> None:
    child = spawn("trials", "--store", "s", stdout=subprocess.PIPE)
    child.stdout.close()
    assert (child.wait(), child.stderr.read()) == (141, "")


def test_an_answer_that_cannot_be_written_is_told(studied: Call, spawn: Callable[..., Any]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        child = spawn("best", "--store", "s", stdout=full)
        assert child.wait() == 74
    assert child.stderr.read() == "dibs: the answer cannot be written: No space left on device\n"


def test_closed_streams_are_no_error(studied: Call, tmp_path: Path) -> None:
    command = f"{sys.executable} -m dibs best --store s >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path).returncode == 0
