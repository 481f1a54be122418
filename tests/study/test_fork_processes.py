"""fork by real processes: several at once, one of them killed on the way, and said again."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.study.processes import SPACE, program, run
from tests.study.test_run_many import AT_ONCE, results

from dibs import Float, Space, Store, Study

TRIALS = 400  # more than are claimed between two words of progress
FORKING = """
NARROW = Space(x=Float(0.25, 1.0), y=Float(0.0, 1.0))

def fork(i, **kwargs):
    made = dibs.Study(HERE / "store", "s").fork("t", NARROW, **kwargs)
    return [made.forked.attached, made.forked.there, made.forked.left, made.definition.seed]
"""


def prepared(folder: Path) -> dict[str, float]:
    """A study of many results; those that a fork is to have, as its raw files say them."""
    study = Study(Store(folder / "store", create=True, fsync="none"), "s", SPACE, goal="min", sampler="sobol", seed=7)
    for trial in study.trials(TRIALS):
        with trial:
            trial.done(trial.point["x"] + trial.n)
    return {json.dumps(r.point): r.score or 0.0 for r in study.results() if r.point["x"] >= 0.25}


def raw(folder: Path) -> dict[str, float]:
    """What lies in the new study's folder."""
    bodies = [json.loads(path.read_text()) for path in (folder / "store/study/t/given").glob("*.json")]
    assert len({body["nonce"] for body in bodies}) == len(bodies)
    return {json.dumps(body["point"]): body["score"] for body in bodies}


def test_processes_that_fork_at_once_make_one_study(tmp_path: Path) -> None:
    wanted = prepared(tmp_path)
    body = AT_ONCE + FORKING + '\nif __name__ == "__main__":\n    assert at_once(6, fork) == [0] * 6\n'
    code, _, err = run(program(tmp_path, body))
    assert code == 0, err
    assert raw(tmp_path) == wanted
    told = results(tmp_path)
    assert sum(attached for attached, _, _, _ in told) == len(wanted), "each result by one of them"  # type: ignore[misc]
    for attached, there, left, seed in told:  # type: ignore[misc]
        assert attached + there == len(wanted)  # type: ignore[has-type]
        assert left == {"outside the new x": TRIALS - len(wanted)}  # type: ignore[has-type]
        assert seed == told[0][3]  # type: ignore[index,has-type]


def test_one_that_is_killed_half_way_is_said_again(tmp_path: Path) -> None:
    wanted = prepared(tmp_path)
    killed = FORKING + "\nfork(0, on_progress=lambda looked, whole: os.kill(os.getpid(), signal.SIGKILL))\n"
    code, _, err = run(program(tmp_path, killed))
    assert code == -signal.SIGKILL, err
    assert 0 < len(raw(tmp_path)) < len(wanted)
    code, out, err = run(program(tmp_path, FORKING + "\nprint(fork(0)[:2])\n", "again.py"))
    assert code == 0, err
    attached, there = json.loads(out)
    assert (attached + there, there > 0) == (len(wanted), True)
    assert raw(tmp_path) == wanted
    assert list((tmp_path / "store/tmp").iterdir()) == [], "nothing is left of the killed one's tries"
    assert Study(tmp_path / "store", "t").space == Space(x=Float(0.25, 1.0), y=Float(0.0, 1.0))
