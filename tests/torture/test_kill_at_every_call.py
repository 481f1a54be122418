"""SIGKILL at every call by which a worker changes the file system: the next process finishes, and nothing told is lost.

Below the backend's verbs: an audit hook (PEP 578) sees each open for writing, link, rename, unlink, mkdir and utime
before it happens, so a death may fall between the temporary, its link and its removal.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.study.processes import program

BODY = """
import json, logging, traceback
logging.disable()
from dibs.study import _rolls
from dibs.testing._raw_check import Raw, folded
from dibs.upkeep import check as look_after
from dibs.view import Source, study_status
METHOD = sys.argv[1]
WISH = {"x": 0.5, "y": 0.25}
CALLS = {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR
(HERE / "file").write_text("half a model")

def die_at(k, root):
    seen = 0
    def hook(event, args):
        nonlocal seen
        writes = event in CALLS or (event == "open" and isinstance(args[2], int) and args[2] & WRITES)
        if writes and str(args[0]).startswith(root):
            seen += 1
            if seen == k:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

def forked(action, *args):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action(*args)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def opened(root):
    return dibs.Study(root, "s", SPACE, goal="min", seed=7)

def victim(root, k):
    def tell(**facts):
        with open(root + ".told", "a") as file:
            file.write(json.dumps(facts) + chr(10))
    if METHOD == "mkdir":  # a study whose creator dies between its two steps is a case for a person, who is told so
        opened(root)
    die_at(k, root)
    study = opened(root)
    study.view.rolls.threshold = 2
    study.enqueue(WISH)
    tell(wished=True)
    for trial in study.trials(3):
        with trial:
            trial.report(1.0)
            trial._attempt.show(force=True)
            if trial.n == 0:
                tell(n=0, saved=trial.save("state", HERE / "file"))
            trial.report(0.5)
            if trial.n == 2:
                raise ValueError("no")
        tell(n=trial.n, state=trial.state)
    study.retry()
    tell(retried=True)

def next_worker(root):
    for _ in range(2):
        for trial in opened(root).trials(3):
            with trial:
                found = trial.load("state")
                assert found is None or found.read_text() == "half a model"
                trial.done(2.0)
            assert trial.state == "done"
        for path in Path(root, "study").rglob("*.json*"):
            os.utime(path, (1, 1))  # whoever did not get to writing who it is counts as quiet after hours
        opened(root).rescue()
    check(root)

def check(root):
    fresh = opened(root)
    status = study_status(Source.over(fresh))
    told = [json.loads(line) for line in open(root + ".told")] if os.path.exists(root + ".told") else []
    raw = Raw(root, "s")
    results = {result.n: result for result in fresh.results()}
    files = {n: folded(seen, raw.released.get(n, set())) for n, seen in raw.trials().items()}
    assert sorted(results) == sorted(files) == [0, 1, 2], (results, files)
    for n, (state, settled, attempt, score) in files.items():
        assert settled
        assert (results[n].state, results[n].attempt, results[n].score) == (state, attempt, score)
    for fact in told:
        if fact.get("state") == "done":
            assert (results[fact["n"]].state, results[fact["n"]].score) == ("done", 0.5), fact
        if "saved" in fact:
            named = [seen.record.files.get("state") for seen in fresh.view.whole(0) if seen.record]
            assert fact["saved"] in named, fact
            assert fresh.store.get(fact["saved"]) == b"half a model"
        if "wished" in fact:
            carriers = [r.n for r in results.values() if r.point == WISH]
            # a bare claim may carry it for all anybody knows; the wish then waits for room, and is shown
            assert carriers == [0] or (METHOD == "mkdir" and not carriers and list(status.queued) == [WISH]), results
    shown = {problem.key for problem in status.problems}
    report = look_after(fresh.store, deep=True)
    assert report.clean, report.findings
    left = {"tmp/" + name for name in os.listdir(root + "/tmp")} | set(raw.wrong)
    assert {finding.key for finding in report.findings} >= left, "what the dead left is named"
    if METHOD == "link":
        assert shown == set(raw.wrong) == set()

def main():
    k = deaths = 0
    while True:
        k += 1
        root = str(HERE / f"store{k}")
        dibs.Store(root)
        if METHOD == "mkdir":
            marker = Path(root, "dibs.json")
            marker.write_text(marker.read_text().replace('"claim":"link"', '"claim":"mkdir"'))
        code = forked(victim, root, k)
        assert code in (0, -signal.SIGKILL), code
        assert forked(next_worker, root) == 0, f"killed at call {k}"
        if code == 0:
            break
        deaths += 1
    print(json.dumps(deaths))

if __name__ == "__main__":
    main()
"""


@pytest.mark.timeout(400)  # hundreds of processes, one after the other
@pytest.mark.parametrize("method", ["link", "mkdir"])
def test_sigkill_at_every_call_that_changes_the_file_system(method: str, tmp_path: Path) -> None:
    command = [sys.executable, str(program(tmp_path, BODY)), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 60
