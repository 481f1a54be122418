"""Many processes at once: every index exactly once, no file lock, one creator."""

from __future__ import annotations

import json
from pathlib import Path

from tests.study.processes import open_study, program, run

# Forked, not spawned: fifty interpreters would take longer to start than all they have to do.
AT_ONCE = """
import json
dibs.Study, dibs.Store, dibs.Sobol  # loaded once, before the forks

def at_once(count, action):
    gate, opened = os.pipe()
    results = HERE / "results"
    results.mkdir()
    pids = []
    for i in range(count):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(opened)
                os.read(gate, 1)
                (results / f"{i}.json").write_text(json.dumps(action(i)))
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(opened)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
"""


def results(folder: Path) -> list[object]:
    return [json.loads(path.read_text()) for path in (folder / "results").glob("*.json")]


def test_8_processes_200_trials_no_lock(tmp_path: Path) -> None:
    body = (
        AT_ONCE
        + """
def locked(event, args):
    if event in ("fcntl.flock", "fcntl.lockf", "os.lockf"):
        (HERE / "locked").touch()

def search(i):
    sys.addaudithook(locked)
    ran = []
    summary = study(me=f"p{i}").run(lambda trial: ran.append(trial.n) or trial.point["x"], 200, progress=False)
    return [ran, summary.ran, summary.why]

if __name__ == "__main__":
    assert at_once(8, search) == [0] * 8
"""
    )
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    answers = results(tmp_path)
    ran = [n for ours, _, _ in answers for n in ours]  # type: ignore[misc]
    assert sorted(ran) == list(range(200))
    assert all(len(ours) == count for ours, count, _ in answers)  # type: ignore[misc]
    assert {why for _, _, why in answers} <= {"settled", "held"}  # type: ignore[misc]
    study = open_study(tmp_path)
    assert [(r.n, r.attempt, r.state) for r in study.results()] == [(n, 0, "done") for n in range(200)]
    alone = tmp_path / "alone"
    alone.mkdir()
    single = open_study(alone)
    for n, result in enumerate(study.results()):
        assert result.point == single.definition.sampler.ask(single.space, n)  # type: ignore[union-attr]
    assert not (tmp_path / "locked").exists()


def test_the_hook_would_see_a_lock(tmp_path: Path) -> None:
    body = """
import fcntl
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
with open(HERE / "file", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    fcntl.flock(file, fcntl.LOCK_EX)
assert {"fcntl.lockf", "fcntl.flock"} <= set(seen)
"""
    assert run(program(tmp_path, body))[0] == 0


def test_50_processes_create_one_study(tmp_path: Path) -> None:
    body = (
        AT_ONCE
        + """
def create(i):
    try:
        made = dibs.Study(HERE / "store", "s", SPACE, goal="min" if i else "max", me=f"p{i}")
    except dibs.RefusedError as wrong:
        return ["refused", wrong.field, wrong.ours]
    return [made.goal, made.definition.seed]

if __name__ == "__main__":
    assert at_once(50, create) == [0] * 50
"""
    )
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    answers = results(tmp_path)
    assert len(answers) == 50
    body_at = json.loads((tmp_path / "store/study/s/study.json").read_text())
    joined = [answer for answer in answers if answer[0] == body_at["goal"]]  # type: ignore[index]
    assert {answer[1] for answer in joined} == {body_at["seed"]}  # type: ignore[index]
    refused = [answer for answer in answers if answer[0] == "refused"]  # type: ignore[index]
    assert len(joined) + len(refused) == 50
    assert len(refused) in (1, 49)  # the one who wants the other goal, or all others if it was first
    assert {answer[1] for answer in refused} == {"goal"}  # type: ignore[index]
    assert list((tmp_path / "store/tmp").iterdir()) == []
