"""What a worker loads: one that samples at random or by Sobol needs neither scipy nor rich, nor an extra, nor other samplers.

Every worker of a job array pays for what is imported before its first trial, so this is looked at in fresh processes
that really run trials.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# scipy.special alone costs half a second of a worker's start; the rest belongs to extras or to other verbs
UNWANTED = {
    "scipy", "rich", "sklearn", "pandas", "polars", "torch", "optuna", "sqlalchemy", "joblib", "obstore", "starlette", "uvicorn", "jinja2", "ruamel",
    "yaml", "dask", "ray", "greenlet", "hypothesis", "pytest", "multiprocessing.pool", "asyncio", "http.client",
    "tempfile", "tomllib", "shlex", "dibs.search._asha", "dibs.search._cmaes", "dibs.search._gp", "dibs.search._median",
    "dibs.search._nsga2", "dibs.search._tpe",
}  # fmt: skip

LOOP = """
study = dibs.Study(sys.argv[1], "s", space, goal="min", sampler=sys.argv[2], seed=1)
for trial in study.trials(3):
    with trial:
        trial.report(trial.point["x"])
done = len(study.finished())
"""
RUN = """
study = dibs.Study(sys.argv[1], "s", space, goal="min", sampler=sys.argv[2], seed=1)
done = study.run(lambda trial: trial.point["x"], trials=3, progress=False).ran
"""
FUNCTIONS = """
from dibs.study import finished, in_flight, report, take
store = dibs.Store(sys.argv[1])
sampler = {"random": dibs.Random, "sobol": dibs.Sobol}[sys.argv[2]](seed=1)
for n in range(3):
    history = finished(store, space, study="s") + in_flight(store, space, study="s")
    taken = take(store, sampler.ask(space, n, history), study="s", trial=n, goal="min")
    report(store, taken.point, [0.5], study="s", trial=n, state="done", goal="min")
done = len(finished(store, space, study="s"))
"""
PROGRAM = """
import sys
import dibs
space = dibs.Space(x=dibs.Float(0.0, 1.0), k=dibs.Int(1, 9), c=dibs.Choice("a", "b"))
{body}
print(done, *sys.modules)
"""


@pytest.mark.parametrize("sampler", ["random", "sobol"])
@pytest.mark.parametrize("body", [LOOP, RUN, FUNCTIONS], ids=["trials", "run", "functions"])
def test_a_worker_loads_nothing_that_its_sampler_does_not_need(tmp_path: Path, body: str, sampler: str) -> None:
    command = [sys.executable, "-c", PROGRAM.format(body=body), str(tmp_path / "store"), sampler]
    done, *modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert done == "3"
    assert "dibs.study" in modules
    assert sorted(UNWANTED & {*modules, *(name.partition(".")[0] for name in modules)}) == []
