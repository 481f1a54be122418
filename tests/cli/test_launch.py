"""``dibs launch``: which candidate and why, which store, what is shown, and that a mistake is one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dibs import Study

Call = Callable[..., Result]
RUN = 'run = ["dibs", "run", "searching.py", "--study", "spam", "--trials", "8", "--sampler", "random"]\n'


@pytest.fixture
def job(search: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write a job; returns its name. Nothing is found in the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def write(text: str = RUN + 'candidates = ["local"]\n', **profiles: str) -> str:
        (tmp_path / "job.toml").write_text(text)
        for name, profile in profiles.items():
            (tmp_path / "profiles").mkdir(exist_ok=True)
            (tmp_path / "profiles" / f"{name}.toml").write_text(profile)
        return "job.toml"

    return write


def test_two_workers_here_search_a_study_to_its_end(dibs: Call, job: Callable[..., str], tmp_path: Path) -> None:
    done = dibs("launch", job(), "--store", "s", "--workers", "2", "--wait", "--json")
    told = json.loads(done.stdout)
    assert (told["on"], told["kind"], told["workers"], told["passed_over"]) == ("local", "local", 2, [])
    assert told["store"] == str(tmp_path / "s")
    assert sorted(each["code"] for each in told["ended"]) in ([0, 0], [0, 6])
    assert told["exit_code"] == 0
    assert "created the store" in done.stderr
    study = Study(tmp_path / "s", "spam")
    assert [row.state for row in study.results()] == ["done"] * 8
    names = {row.who.me for row in study.results()}
    assert names <= {f"{os.uname().nodename}-{at}" for at in range(2)}
    again = dibs("launch", job(), "--store", "s", "--wait")
    assert "is there" in again.stderr
    assert "ended    worker 0 with 0" in again.stdout


def test_a_worker_that_failed_ends_with_the_last_words_of_its_log(dibs: Call, job: Callable[..., str]) -> None:
    noisy = job('run = "echo old; echo new >&2; exit 3"\ncandidates = ["local"]\n')
    assert "ended    worker 0 with 3: new\n" in dibs("launch", noisy, "--store", "s", "--wait", code=3).stdout
    silent = job('run = "exit 3"\ncandidates = ["local"]\n')
    assert "ended    worker 0 with 3\n" in dibs("launch", silent, "--store", "s", "--wait", code=3).stdout


def test_workers_outlive_the_command_and_the_line_it_prints_ends_them(
    dibs: Call, job: Callable[..., str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ready = "import os; open('pipe', 'w').write('ready'); open('pipe').read()"
    done = dibs(
        "launch", job(f'run = ["python3", "-c", "{ready}"]\ncandidates = ["local"]\n'), "--store", "s", "--json"
    )
    told = json.loads(done.stdout)
    assert (tmp_path / "pipe").read_text() == "ready"
    (pid,) = map(int, told["ids"])
    assert os.getsid(pid) == pid
    subprocess.run(["sh", "-c", told["stop"]], check=True)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM


def test_sigterm_while_waiting_reaches_the_workers(
    spawn: Callable[..., Any], job: Callable[..., str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ready = "open('pipe', 'w').write('ready'); open('pipe').read()"
    child = spawn(
        "launch", job(f'run = ["python3", "-c", "{ready}"]\ncandidates = ["local"]\n'), "--store", "s", "--wait"
    )
    assert (tmp_path / "pipe").read_text() == "ready"
    child.terminate()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 143, out + err
    assert "ended    worker 0 with 143" in out


def test_the_first_that_fits_is_taken_and_why_not_the_others_is_said(dibs: Call, job: Callable[..., str]) -> None:
    small = 'kind = "local"\n[offers]\ncpus = 1\n[survives]\nstop = ["/scratch"]\n'
    name = job(
        RUN + 'candidates = ["gone", "small", "local"]\n[resources]\ncpus = 2\n', small=small, local='kind = "local"\n[offers]\ncpus = 2\n'
    )  # fmt: skip
    done = dibs("launch", name, "--store", "s", "--dry-run", "--json")
    told = json.loads(done.stdout)
    assert told["on"] == "local"
    assert [each["candidate"] for each in told["passed_over"]] == ["gone", "small"]
    assert "gone is passed over: there is no gone.toml in" in done.stderr
    assert "small is passed over: cpus: 2 wanted, 1 there" in done.stderr
    assert "is not what survives a stop there (/scratch)" in done.stderr
    assert not Path("s").exists()
    assert not Path(".dibs").exists()
    refused = dibs("launch", name, "--store", "s", "--workers", "2", code=4)
    assert "local is passed over: cpus: 2 x 2 wanted, 2 there" in refused.stderr
    assert "none of 3 candidates fits: ask for less" in refused.stderr


def test_which_store_a_flag_the_job_or_a_variable(dibs: Call, job: Callable[..., str], tmp_path: Path) -> None:
    def store(*words: str, **env: str) -> str:
        told = json.loads(dibs("launch", "job.toml", "--dry-run", "--json", *words, **env).stdout)
        assert {call["environ"]["DIBS_STORE"] for call in told["calls"]} == {told["store"]}
        return str(told["store"])

    job()
    assert store(DIBS_STORE="v") == str(tmp_path / "v")
    job('store = "j"\nworkers = 2\n' + RUN + 'candidates = ["local"]\n')
    assert store(DIBS_STORE="v") == str(tmp_path / "j")
    assert store("--store", "f", DIBS_STORE="v") == str(tmp_path / "f")
    assert store("--store", "s3://bucket/p") == "s3://bucket/p"
    job(RUN + 'candidates = ["local"]\n', local='kind = "local"\nstore = "/elsewhere/s"\n')
    assert store("--store", "f") == "/elsewhere/s"


def test_the_jobs_workers_beat_those_of_a_settings_file(dibs: Call, job: Callable[..., str]) -> None:
    Path("dibs.toml").write_text("workers = 9\n")
    job("workers = 2\n" + RUN + 'candidates = ["local"]\n')
    assert json.loads(dibs("launch", "job.toml", "--store", "s", "--dry-run", "--json").stdout)["workers"] == 2


def test_a_job_in_yaml(dibs: Call, search: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("run: [dibs, run, searching.py]\nworkers: 2\ncandidates: [local]\n")
    assert len(json.loads(dibs("launch", "job.yaml", "--store", "s", "--dry-run", "--json").stdout)["calls"]) == 2


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        (None, [], 2, "the job job.toml cannot be read: No such file"),
        ("run = [", [], 2, "the job job.toml does not read: "),
        (RUN, [], 2, 'no candidates: put candidates = ["local"] into the job, or say --on NAME'),
        (RUN, ["--workers", "0", "--on", "local"], 2, "--workers must be at least 1, not 0"),
        (RUN, ["--on", "gone"], 2, "there is no gone.toml in"),
        (RUN, ["--on", "../x"], 2, "is no profile's name"),
        (RUN, ["--on", "odd"], 2, "there is no kind 'slrum': did you mean slurm?"),
        (RUN, ["--on", "broken"], 2, "broken.toml does not read: "),
        (RUN, ["--on", "local", "--profiles", "nowhere"], 2, "there is no folder nowhere (--profiles)"),
        (RUN + 'env = { NOT_SET = true }\n', ["--on", "local"], 4, "local is passed over: NOT_SET is not set here"),
        (RUN, ["--on", "local", "--store", "no/parent/s"], 3, "no folder"),
        ('run = ["no-such-program"]\n', ["--on", "local"], 2, "there is no program 'no-such-program' to run"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_a_code(
    dibs: Call, job: Callable[..., str], text: str | None, words: list[str], code: int, said: str
) -> None:
    job(text or "", odd='kind = "slrum"\n', broken="kind = \n")
    if text is None:
        Path("job.toml").unlink()
    done = dibs("launch", "job.toml", *(() if "--store" in words else ("--store", "s")), *words, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_store_must_be_said(dibs: Call, job: Callable[..., str]) -> None:
    assert 'or store = "FOLDER" in job.toml' in dibs("launch", job(), code=2).stderr


KUBERNETES = 'kind = "kubernetes"\n[kubernetes]\nimage = "registry.example/search:1"\n'


def test_a_manifest_is_printed_and_nothing_is_started(dibs: Call, job: Callable[..., str]) -> None:
    done = dibs("launch", job(RUN, k8s=KUBERNETES), "--on", "k8s", "--store", "/data/s")
    assert json.loads(done.stdout)["spec"]["completionMode"] == "Indexed"
    assert "the store /data/s is not looked at: k8s has folders of its own" in done.stderr
    assert "nothing is started: pipe this into kubectl create -o name -f -, or say --apply" in done.stderr
    assert not Path(".dibs").exists()


def test_a_manifest_is_handed_to_kubectl_if_it_is_there(
    dibs: Call, job: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ("launch", job(RUN, k8s=KUBERNETES), "--on", "k8s", "--store", "/data/s", "--apply")
    assert "k8s is passed over: there is no kubectl here" in dibs(*words, code=4).stderr
    (tmp_path / "kubectl").write_text("#!/bin/sh\n/bin/cat > given.json; echo refused by the cluster >&2; exit 1\n")
    (tmp_path / "kubectl").chmod(0o755)
    assert "kubectl refused: refused by the cluster" in dibs(*words, code=2).stderr
    assert json.loads(Path("given.json").read_text()) == json.loads(
        Path(".dibs/launch/job/kubernetes.json").read_text()
    )
    (tmp_path / "kubectl").write_text("#!/bin/sh\n/bin/cat > given.json; echo job.batch/job-x7k2p\n")
    told = json.loads(dibs(*words, "--json").stdout)
    assert told["ids"] == ["job-x7k2p"]
    assert told["stop"] == "kubectl delete job.batch/job-x7k2p"
    assert told["look"][-1] == "kubectl logs -f -l batch.kubernetes.io/job-name=job-x7k2p --prefix"


def test_waiting_needs_something_that_was_started(dibs: Call, job: Callable[..., str]) -> None:
    done = dibs("launch", job(RUN, k8s=KUBERNETES), "--on", "k8s", "--store", "/data/s", "--wait", code=2)
    assert "--wait needs --apply: a manifest that is printed starts nothing" in done.stderr


def test_inside_a_job_array_a_store_is_made_only_if_told(dibs: Call, job: Callable[..., str]) -> None:
    words = ("launch", job('run = ["true"]\ncandidates = ["local"]\n'), "--store", "s", "--wait")
    assert "a task of a job array does not create one" in dibs(*words, code=3, SLURM_ARRAY_TASK_ID="1").stderr
    assert not Path(".dibs").exists()
    dibs(*words, "--create", SLURM_ARRAY_TASK_ID="1")
    assert Path("s/dibs.json").exists()


def test_a_sweep_is_looked_at_as_one(dibs: Call, job: Callable[..., str], tmp_path: Path) -> None:
    name = job('run = ["dibs", "sweep", "run", "--name", "A b"]\ncandidates = ["local"]\n')
    line = f"dibs sweep status --store {tmp_path}/s --name 'A b'"
    assert f"look     {line}" in dibs("launch", name, "--store", "s", "--wait", code=2).stdout.splitlines()
    assert json.loads(dibs("launch", name, "--store", "s", "--dry-run", "--json").stdout)["look"][0] == line
