"""``dibs exec`` in this process: what is refused before anything is claimed, and what a program is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.cell.programs import landlocked
from tests.cli.exec_words import PLACE, WELL, Call, logs, words
from tests.parts import memory_kills, script

from dibs import Store, Study


def test_a_search_over_a_program(dibs: Call, mill: Path, tmp_path: Path) -> None:
    said = dibs(*words(), "./train.sh", "{lr}").stdout
    assert "trials   4 done; 4 in this run" in said
    assert "-- ./train.sh '{lr}'" in said  # what to type again
    for result in Study(tmp_path / "s", "mill").results():
        assert result.score == result.point["lr"]
        shown = json.loads(dibs("show", str(result.n), *PLACE, "--json").stdout)
        assert list(shown["attempts"][0]["files"]) == ["program/train.sh"]


def test_without_a_dash_dash_everything_after_the_program_is_its_own(dibs: Call, mill: Path) -> None:
    dibs(*words()[:-1], "./train.sh", "{lr}", "--trials", "{opt}")


def test_what_a_program_is_told(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\nprintf "%s|" "$@"; echo; pwd; env | grep -E "^(DIBS|WANDB)_"; echo 1 > "$DIBS_RESULT"\n')
    dibs(
        *words(trials=8), "./train.sh", "--lr", "{lr}", "--momentum", "{momentum}", "--m={momentum}", "--resume", "{previous}",
        "{out}", "{name}", "{{x}}", "{trial}.{attempt}", WANDB_TAGS="mine",
    )  # fmt: skip
    results = Study(tmp_path / "s", "mill").results()
    assert {"sgd", "adam"} == {result.point["opt"] for result in results}
    for result, log in zip(results, logs(tmp_path), strict=True):
        args, cwd, *env = log.splitlines()
        out = tmp_path / "s" / "study" / "mill" / "work" / f"{result.n:08d}-0" / "out"
        momentum = result.point.get("momentum")
        active = [] if momentum is None else ["--momentum", repr(momentum), f"--m={momentum!r}"]
        expected = ["--lr", repr(result.point["lr"]), *active, str(out), f"mill-{result.n}-0", "{x}", f"{result.n}.0"]
        assert args.split("|")[:-1] == expected
        assert cwd == str(out)
        told = dict(line.split("=", 1) for line in env)
        assert json.loads(told.pop("DIBS_POINT")) == result.point
        assert told.pop("DIBS_SEED").isdigit()
        assert len(told.pop("DIBS_CELL")) == 16
        assert told == {
            "DIBS_PARAM_LR": repr(result.point["lr"]), "DIBS_PARAM_OPT": result.point["opt"],
            **({} if momentum is None else {"DIBS_PARAM_MOMENTUM": repr(momentum)}),
            "DIBS_TRIAL": str(result.n), "DIBS_ATTEMPT": "0", "DIBS_STUDY": "mill", "DIBS_NAME": f"mill-{result.n}-0",
            "DIBS_RUN_NAME": f"mill-{result.n}-0", "DIBS_OUT": str(out), "DIBS_RESULT": str(out.parent / "result.json"),
            "DIBS_HERE": str(tmp_path), "WANDB_RUN_GROUP": "mill", "WANDB_TAGS": "mine",
        }  # fmt: skip


def test_hostile_values_reach_it_as_they_are_and_run_nothing(dibs: Call, mill: Path, tmp_path: Path) -> None:
    values = ["$(touch pwned)", "`touch pwned`", "a\nb", "'; touch pwned; '", "ü😀 \\", '"', "", "*", "{lr}", "-n"]
    (tmp_path / "space.toml").write_text(f"v = {json.dumps(values, ensure_ascii=False)}\n")
    script(mill, '#!/bin/sh\nprintf "%s" "$1" > value; echo 0 > "$DIBS_RESULT"\n')
    dibs(*words("--sampler", "grid", trials=10), "./train.sh", "{v}")
    dibs(*[word if word != "mill" else "line" for word in words("--sampler", "grid", "--shell", trials=10)],
         'printf %s {v} > value; echo 0 > "$DIBS_RESULT"')  # fmt: skip
    for study in ("mill", "line"):
        for result in Study(tmp_path / "s", study).results("done"):
            value = tmp_path / "s" / "study" / study / "work" / f"{result.n:08d}-0" / "out" / "value"
            assert value.read_bytes().decode() == result.point["v"]
        assert len(Study(tmp_path / "s", study).results("done")) == 10
    assert list(tmp_path.rglob("pwned")) == []


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (("./train.sh", "{lr}"), "{momentum}"),
        (("./train.sh", "{lr}", "--momentum", "{momentum}"), None),  # where it is, opt is known
        (("./train.sh", "{lr}", "--opt={opt}", "--momentum", "{momentum}"), None),
        (("./train.sh",), None),  # it reads its environment
        (("--shell", "./train.sh {lr} $DIBS_PARAM_OPT"), "{momentum}"),
        (("--shell", 'echo {lr} "$DIBS_POINT"'), None),
    ],
)
def test_a_parameter_that_the_command_forgot_is_said(
    dibs: Call, mill: Path, command: tuple[str, ...], left: str | None
) -> None:
    shell, words = command[0] == "--shell", command[command[0] == "--shell" :]
    done = dibs("exec", "--space", "space.toml", "--dry-run", *(["--shell"] if shell else []), "--", *words)
    said = f"dibs: the command does not name {left}: the program finds it in its environment, or nowhere\n"
    assert done.stderr == (said if left else "")
    assert done.stdout.count("\n") == 5


def test_one_score_for_several_goals_is_failed_with_what_to_print(dibs: Call, mill: Path, tmp_path: Path) -> None:
    dibs(*words("--goal", "min,max", trials=1), "./train.sh", "{lr}", code=1)
    (result,) = Study(tmp_path / "s", "mill").results()
    assert (result.reason or "").startswith(
        'this study has 2 goals and it gave one score: print {"scores": [0.1, ...]}, 2'
    )


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("./nothing.sh",), "the program ./nothing.sh is not there"),
        (("no-such-program", "{lr}"), "no program 'no-such-program' on the PATH"),
        (("./space.toml",), "may not be executed"),
        (("python3", "nothing.py", "{lr}"), "there is no file nothing.py"),
        (
            ("./train.sh", "{tipo}"),
            "{tipo} in '{tipo}' is nothing that could be filled in; there is {attempt}, {here}, {lr}",
        ),
        (("./train.sh", "{"), "a lone {"),
        ((), "there is no command"),
    ],
)
def test_what_is_wrong_with_the_command_is_one_sentence_and_no_store(
    dibs: Call, mill: Path, tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    done = dibs(*words(), *command, code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((*words(space="nothing.toml"), "true"), "the space nothing.toml cannot be read: No such file"),
        (("exec", *PLACE, "--trials", "1", "true"), "there is no folder"),
        (("exec", "--space", "space.toml", *PLACE, "--trials", "1", "true"), "no goal: say --goal min"),
        (("exec", "--space", "space.toml", *PLACE, "--goal", "min", "true"), "no number of trials"),
        ((*words("--shell"), "echo {lr}", "x"), "--shell takes one line"),
        ((*words("--shell"), "echo '{lr}'"), "without quotes around it"),
        ((*words("--writable", "."), "true"), "--writable says what --isolate lets"),
        ((*words("--isolate", "--writable", "nothing"), "true"), "there is no folder nothing to be written to"),
        ((*words("--deny-read", "nothing"), "true"), "what is not to be read must be there: nothing"),
        ((*words("--freeze", "nothing"), "true"), "there is no file nothing"),
        ((*words("--out", "{previous}"), "true"), "{previous} in '{previous}' is nothing"),
        ((*words("--keep", "../x"), "true"), "--keep ../x: name a file within the output folder"),
    ],
)
def test_what_is_wrong_with_the_options_is_one_sentence(
    dibs: Call, mill: Path, tmp_path: Path, given: tuple[str, ...], said: str
) -> None:
    done = dibs(*given, code=3 if said == "there is no folder" else 2)
    assert said in done.stderr or code_3(done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_what_the_store_lies_in_cannot_be_denied_however_its_url_is_spelt(
    dibs: Call, mill: Path, tmp_path: Path
) -> None:
    (tmp_path / "a b").mkdir()
    place = f"file://{tmp_path}/a%20b/s"
    given = (place if word == "s" else word for word in words("--deny-read", "a b"))
    assert f"a b cannot be denied: {tmp_path}/a b/s is in it" in dibs(*given, "true", code=2).stderr


def code_3(said: str) -> bool:
    """The store is not there."""
    return "there is no store" in said


def test_a_space_that_no_program_can_be_given_is_refused(dibs: Call, mill: Path, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text('a-b = {float = [0, 1]}\n"a b" = {float = [0, 1]}\n')
    assert "would both be DIBS_PARAM_A_B" in dibs(*words(), "true", code=2).stderr
    (tmp_path / "space.toml").write_text('a = ["x\\u0000y"]\n')
    assert "a zero character" in dibs(*words(), "true", code=2).stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("space.json", '{"lr": {"float": [1e-5, 0.1], "log": true}, "opt": {"choice": ["no", "yes", 1]}}'),
        ("space.yaml", "lr: {float: [1e-5, 0.1], log: true}\nopt: [no, 'yes', 1]\n"),
        ("space.toml", 'lr = {float = [1e-5, 0.1], log = true}\nopt = ["no", "yes", 1]\n'),
    ],
)
def test_a_space_is_the_same_in_every_language(dibs: Call, mill: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    dibs(*words(space=name, trials=1), "./train.sh", "{lr}")
    assert Study(tmp_path / "s", "mill").space.to_json() == {
        "lr": {"float": [1e-05, 0.1], "log": True}, "opt": {"choice": ["no", "yes", 1]},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("space.yaml", "lr: {", "space.yaml: the space is not valid YAML"),
        ("space.yaml", "- 1", "space.yaml: a space is a table"),
        ("space.json", "{", "space.json: the space is not valid JSON"),
        ("space.toml", "lr = {float = [1]}", "space.toml: 'lr': float is followed by"),
    ],
)
def test_a_broken_space_names_its_file(dibs: Call, mill: Path, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    assert said in dibs(*words(space=name), "true", code=2).stderr


def test_the_space_of_a_study_that_exists_need_not_be_said(dibs: Call, mill: Path) -> None:
    dibs(*words(trials=1), "./train.sh", "{lr}")
    dibs("exec", *PLACE, "--trials", "2", "--quiet", "./train.sh", "{lr}")
    assert (
        "there is no study 'other' in s to take the space from"
        in dibs("exec", "--store", "s", "--study", "other", "--trials", "1", "true", code=2).stderr
    )


def test_a_dry_run_prints_command_lines_and_touches_nothing(dibs: Call, mill: Path, tmp_path: Path) -> None:
    said = dibs(*words("--dry-run"), "./train.sh", "{lr}", "--m", "{momentum}", "{opt} x").stdout.splitlines()
    assert len(said) == 5
    assert all(line.startswith(f"{tmp_path}/train.sh ") for line in said)
    assert any("--m 0." in line and line.endswith("'sgd x'") for line in said)
    assert any("--m" not in line and line.endswith("'adam x'") for line in said)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exit 0", "it ended well and gave no score: print {"),
        ("echo 0.5", "it ended well and gave no score"),
        ("echo '{\"score\": NaN}'", "a score must be finite, not nan"),
        ('echo \'{"score": "x"}\'', "\"score\" must be a number, not 'x'"),
        ('echo oops > "$DIBS_RESULT"; echo \'{"score": 1}\'', "the result file is neither JSON nor a number"),
        ("echo '{\"score\": 1}'; exit 3", 'code error: exit status 3: {"score": 1}'),
        ("echo 'RuntimeError: CUDA out of memory.' >&2; exit 1", "out of memory (accelerator): exit status 1: Runtime"),
        ("kill -SEGV $$", "code error: killed by SIGSEGV"),
    ],
)
def test_a_program_without_a_result_fails_and_says_why(
    dibs: Call, mill: Path, tmp_path: Path, text: str, reason: str
) -> None:
    script(mill, f"#!/bin/sh\n{text}\n")
    dibs(*words("--max-failures", "0", trials=2), "./train.sh", "{lr}", code=1)
    for result in Study(tmp_path / "s", "mill").results():
        assert (result.state, result.score) == ("failed", None)
        assert result.reason is not None
        assert result.reason.startswith(reason)


def test_a_failure_keeps_its_evidence(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, "#!/bin/sh\necho working; echo 'no such layer' >&2; exit 3\n")
    dibs(*words("--max-failures", "0", trials=1), "./train.sh", "{lr}", code=1)
    shown = dibs("show", "0", *PLACE).stdout
    assert "reason   code error: exit status 3: no such layer" in shown
    assert "| $ " in shown
    assert "|   no such layer" in shown
    attempt = json.loads(dibs("show", "0", *PLACE, "--json").stdout)["attempts"][0]
    ended = attempt["ended"]
    assert json.loads(Store(tmp_path / "s").get(attempt["blob"]))["ended"] == ended
    assert (ended["cause"], ended["code"], ended["tail"]) == ("code error", 3, ["working", "no such layer"])


def test_a_program_that_always_fails_is_given_up(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, "#!/bin/sh\nexit 3\n")
    done = dibs(*words(trials=50), "./train.sh", "{lr}", code=1)
    assert "the first 3 trials all failed; the last one: code error: exit status 3" in done.stderr
    assert f"once that is mended: dibs retry --store {tmp_path / 's'} --study mill, and the same" in done.stderr
    assert len(Study(tmp_path / "s", "mill").results()) == 3


def test_status_shows_the_versions_of_a_script(dibs: Call, mill: Path) -> None:
    dibs(*words(trials=1), "./train.sh", "{lr}")
    script(mill, WELL + "# mended\n")
    dibs(*words(trials=2), "./train.sh", "{lr}")
    programs = json.loads(dibs("status", *PLACE, "--json").stdout)["programs"]
    assert [program["file"] for program in programs] == ["./train.sh", "./train.sh"]
    assert len({program["digest"] for program in programs}) == 2
    lines = [line for line in dibs("status", *PLACE).stdout.splitlines() if "./train.sh" in line]
    assert len(lines) == 2
    assert "./train.sh '{lr}'" in lines[0]


def test_progress_lines_are_the_curve_and_a_pruner_stops_it(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\ntrap "echo x > asked; exit 0" TERM\n'
           'echo "{\\"step\\": 0, \\"score\\": 1}"; echo "{\\"step\\": 1, \\"score\\": NaN}"\n'
           'while :; do sleep 0.01; done\n')  # fmt: skip
    dibs(*words("--pruner", "diverged", trials=1), "./train.sh")
    result = Study(tmp_path / "s", "mill").results()[0]
    assert result.state == "pruned"
    shown = json.loads(dibs("show", "0", *PLACE, "--json").stdout)["attempts"][0]
    assert [step for step, _ in shown["curve"]] == [0, 1]
    assert (tmp_path / "s" / "study" / "mill" / "work" / "00000000-0" / "out" / "asked").exists()


def test_the_score_of_a_curve_is_its_last_line(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\nfor i in 0 1 2; do echo "{\\"step\\": $i, \\"score\\": 0.$i}"; done\n')
    dibs(*words(trials=1), "./train.sh")
    assert Study(tmp_path / "s", "mill").results()[0].score == 0.2


def test_a_parameter_named_like_a_field_is_the_parameter(dibs: Call, mill: Path, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(
        'name = ["mine"]\nuse = [true, false]\nseed = {int = [1, 3], when = {use = true}}\n'
    )
    script(mill, '#!/bin/sh\necho "$*"; echo 1 > "$DIBS_RESULT"\n')
    dibs(*words(trials=8), "./train.sh", "{name}", "--seed", "{seed}")
    assert {log.split()[0] for log in logs(tmp_path)} == {"mine"}
    assert "mine\n" in logs(tmp_path)  # not the trial's seed, where the parameter has no value


def test_settings_of_a_run_hold_here_too(dibs: Call, mill: Path, tmp_path: Path) -> None:
    (tmp_path / "dibs.toml").write_text('store = "s"\nstudy = "mill"\ngoal = "max"\ntrials = 2\n')
    done = dibs("exec", "--space", "space.toml", "--json", "--quiet", "./train.sh", "{lr}")
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["ran"], told["goal"], told["exit_code"]) == (2, "max", 0)


@pytest.mark.parametrize("word", ["isolate", "deny"])
def test_isolation_is_said_and_kept(dibs: Call, mill: Path, tmp_path: Path, word: str) -> None:
    from dibs.cell._landlock import abi

    (tmp_path / "reserved").mkdir()
    (tmp_path / "reserved" / "test.csv").write_text("secret")
    script(mill, f'#!/bin/sh\ncat {tmp_path}/reserved/test.csv; (: > {tmp_path}/outside); echo 1 > "$DIBS_RESULT"\n'
           'echo x > "$TMPDIR/mine"\n')  # fmt: skip
    options = ("--isolate",) if word == "isolate" else ("--deny-read", "reserved")
    said = dibs(
        *[each for each in words(*options, trials=1) if each != "--quiet"], "./train.sh", TMPDIR=str(tmp_path)
    ).stderr
    if not abi():
        assert "isolation is advisory" in said
        pytest.skip("this kernel has no Landlock")
    assert "isolation is enforced (Landlock" in said
    assert not (tmp_path / "outside").exists()
    assert ("secret" in logs(tmp_path)[0]) == (word == "isolate")
    assert len(list((tmp_path / "s").rglob("tmp/mine"))) == 1  # TMPDIR holds the store: it has one of its own
    assert os.environ.get("TMPDIR") != str(tmp_path)


def test_several_scores_and_constraints(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\necho "{\\"scores\\": [$1, 2], \\"constraints\\": {\\"gb\\": -0.5}}"\n')
    goals = ["min,max" if word == "min" else word for word in words(trials=2)]
    dibs(*goals, "./train.sh", "{lr}")
    for result in Study(tmp_path / "s", "mill").results():
        assert (result.state, result.scores) == ("done", (result.point["lr"], 2.0))
        assert result.constraints == {"gb": -0.5}
    script(mill, WELL)
    more = ["3" if word == "2" else word for word in goals]
    dibs(*more[:-1], "--max-failures", "0", "--", "./train.sh", "{lr}", code=1)
    assert "2" in (Study(tmp_path / "s", "mill").results("failed")[0].reason or "")


def test_constraints_beside_one_score(dibs: Call, mill: Path, tmp_path: Path) -> None:
    script(mill, '#!/bin/sh\necho "{\\"score\\": 1, \\"constraints\\": {\\"gb\\": 0.5}}"\n')
    dibs(*words(trials=1), "./train.sh")
    assert Study(tmp_path / "s", "mill").results()[0].constraints == {"gb": 0.5}


@landlocked
@pytest.mark.parametrize("workers", ["1", "2"])
@memory_kills(ours=False)
def test_a_run_that_closed_a_trial_as_poison_says_that_it_failed(spawn: Any, mill: Path, workers: str) -> None:
    script(mill, '#!/bin/sh\n[ "$DIBS_TRIAL" = 0 ] && kill -9 $$\necho 1 > "$DIBS_RESULT"\n')
    child = spawn(*words("--workers", workers, trials=2), "./train.sh")
    out, _ = child.communicate()
    assert "1 done, 1 failed (1 poison)" in out
    assert child.returncode == 1
