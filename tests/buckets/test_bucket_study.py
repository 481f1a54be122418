"""A study in a bucket is the same study: the functions, the loop, worker processes and every verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.buckets.servers import Server
from tests.parts import dibs

from dibs import Float, NotFound, RefusedError, Space, Store, StoreError, Study, UsageError
from dibs.backend import MemoryBackend, Outcome, RetryingBackend
from dibs.store import _opening_bucket
from dibs.study import finished, report, take
from dibs.view import Source, trial_detail

SPACE = Space(x=Float(0, 1))
FILE = """
import dibs
goal = "min"
space = dibs.Space(x=dibs.Float(0, 1))

def objective(trial):
    print("hello from", trial.n)
    return trial.point["x"]
"""

pytestmark = pytest.mark.usefixtures("credentials")


@pytest.fixture
def store(server: Server, place: str) -> Store:
    return Store.on_bucket(server.endpoint, server.bucket, place)


def test_the_same_names_and_the_same_json(store: Store, tmp_path: Path) -> None:
    folder = Store(tmp_path / "s")
    for where in (store, folder):
        study = Study(where, "spam", SPACE, goal="min", seed=0)
        for trial in study.trials(5):
            with trial:
                trial.report(1.0)
                trial.report(trial.point["x"])
        study.enqueue({"x": 0.5})
        study.stop()
    keys = [[entry.key for entry in where.backend.list("")] for where in (store, folder)]
    assert [k for k in keys[0] if not k.startswith("blobs")] == [k for k in keys[1] if not k.startswith("blobs")]
    for key in keys[0]:
        if "/trial/" in key:
            bodies = [json.loads(where.backend.read(key).data) for where in (store, folder)]  # type: ignore[union-attr]
            assert bodies[0].keys() == bodies[1].keys()
            assert bodies[0]["point"] == bodies[1]["point"]


def test_the_functions(store: Store) -> None:
    for n in range(3):
        taken = take(store, {"x": n / 4}, study="f", trial=n, goal="min", me="a")
        assert taken is not None
        assert take(Store(store.url), {"x": 0.9}, study="f", trial=n, goal="min", me="b") is None
        report(store, {"x": n / 4}, [1.0, n / 4], study="f", trial=n, state="done", goal="min")
    assert [score for _, score in finished(Store(store.url), SPACE, study="f")] == [0.0, 0.25, 0.5]


def test_a_pruner_reads_curves_and_its_verdict_is_kept(store: Store) -> None:
    study = Study(store, "s", SPACE, goal="min", seed=0, pruner="asha", max_step=81)
    for trial in study.trials(3):
        with trial:
            for step in range(2):
                trial.report(0.0, step)
    loop = study.trials(4)
    running = next(loop)
    for step in range(2):
        assert not running.report(-1.0, step)
    for trial in Study(store.url, "s").trials(5):  # a store object of its own, which knows nothing yet
        with trial:
            assert [trial.report(1.0, step) for step in range(2)] == [False, True]
    running.done()
    pruned = Study(store.url, "s").results("pruned")[0]
    assert pruned.reason == "its best by rung 1, 1, is not among the best 1 of the 5 that got there"


def test_a_beat_rewrites_and_a_late_one_changes_nothing(store: Store) -> None:
    study = Study(store, "s", SPACE, goal="min", seed=0)
    attempt = study.claimer(1).step()
    key = study.view.keys.attempt(0, 0)
    before = store.backend.read(key)
    attempt.beat()  # type: ignore[union-attr]
    after = store.backend.read(key)
    assert before is not None
    assert after is not None
    assert after.data == before.data
    draft = store.backend.stage(after.data)  # a beat that is on its way while the owner closes
    attempt.close("done", score=1.0)  # type: ignore[union-attr]
    assert store.backend.replace(key, draft, after.version) is Outcome.LOST
    assert Study(store.url, "s").best().score == 1.0


def test_files_and_logs_are_kept_by_digest(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_WORK", str(tmp_path / "work"))
    study = Study(store, "s", SPACE, goal="min", seed=0)
    (tmp_path / "ck").write_bytes(b"weights" * 1000)
    for trial in study.trials(1):
        trial.save("ck.pt", tmp_path / "ck")
        trial.log.write_text("it began")
        trial.interrupt("pre-empted")
        break
    for trial in Study(Store(store.url), "s").trials(1):
        with trial:
            loaded = trial.load("ck.pt")
            assert loaded is not None
            assert loaded.read_bytes() == b"weights" * 1000
            trial.done(1.0)
    record = study.view.whole(0)[0].record
    assert record is not None
    assert store.get(record.files["log.txt"]) == b"it began"


def test_worker_processes_and_every_verb(server: Server, place: str, tmp_path: Path) -> None:
    (tmp_path / "search.py").write_text(FILE)
    url = _opening_bucket.bucket_url(server.endpoint, server.bucket, place)
    ran = dibs("run", "search.py", "--store", url, "--study", "spam", "--trials", "8", "--workers", "2", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "8 done" in ran.stdout
    assert server.secret not in ran.stdout + ran.stderr
    for words in (["status"], ["status", "--study", "spam"], ["best"], ["trials"], ["show", "3"]):
        told = dibs(*words, "--store", url, "--json", cwd=tmp_path)
        assert told.returncode == 0, told.stderr
        json.loads(told.stdout)
    for words in (["enqueue", "x=0.5"], ["stop"], ["resume"], ["retry"], ["rescue"]):
        told = dibs(*words, "--store", url, "--study", "spam", cwd=tmp_path)
        assert told.returncode == 0, told.stderr
    for words in (["check"], ["gc"]):
        told = dibs(*words, "--store", url, cwd=tmp_path)
        assert told.returncode == 0, told.stdout + told.stderr
    again = dibs("run", "search.py", "--store", url, "--study", "spam", "--trials", "9", "--goal", "max", cwd=tmp_path)
    assert again.returncode == 4


def test_nothing_of_the_probe_stays_and_the_marker_says_what_was_found(store: Store) -> None:
    assert [entry.key for entry in store.backend.list("")] == ["dibs.json"]
    assert (store.marker["claim"], store.marker["verdict"]) == ("put", "conditional")


class Liar(MemoryBackend):
    """A server that ignores conditions, as some gateways do."""

    def __init__(self, *lies: str) -> None:
        super().__init__(conditional_replace=True)
        self.lies = lies

    def create(self, key, draft):  # type: ignore[no-untyped-def]
        return self.put(key, draft) if "create" in self.lies else super().create(key, draft)

    def replace(self, key, draft, version):  # type: ignore[no-untyped-def]
        return self.put(key, draft) if "replace" in self.lies else super().replace(key, draft, version)


@pytest.mark.parametrize(("lie", "said"), [("create", "accepted a second conditional PUT"), ("replace", "If-Match")])
def test_a_server_that_lies_is_refused_with_what_it_did(lie: str, said: str) -> None:
    from tests.parts import FakeMachine

    liar = Liar(lie)
    with pytest.raises(StoreError, match=said):
        _opening_bucket._probe(liar, FakeMachine(), "s3://x")
    assert list(liar.list("")) == []


def test_what_cannot_be_opened_is_told_in_a_sentence(server: Server, place: str) -> None:
    url = f"s3://nobucket/{place}?endpoint={server.endpoint}"
    with pytest.raises(StoreError, match="no such bucket"):
        Store(url)
    with pytest.raises(StoreError, match="no store at"):
        Store(f"s3://{server.bucket}/{place}?endpoint={server.endpoint}", create=False)
    with pytest.raises(UsageError, match="logs"):
        Store(f"s3://AK:SK@{server.bucket}/{place}")
    with pytest.raises(UsageError, match="logs"):
        Store(f"s3://{server.bucket}/{place}?secret_access_key=SK")
    with pytest.raises(UsageError, match="unknown option"):
        Store(f"s3://{server.bucket}/{place}?endpiont={server.endpoint}")
    with pytest.raises(UsageError, match="names no bucket"):
        Store("s3:///x")


def test_a_prefix_that_holds_something_else_is_refused(server: Server, place: str) -> None:
    from dibs.backend import BucketBackend

    backend = BucketBackend(server.url(place), server.options())
    backend.create("photos/cat.json", backend.stage(b"meow"))
    with pytest.raises(StoreError, match="holds other objects"):
        Store.on_bucket(server.endpoint, server.bucket, place)


def test_a_job_array_does_not_create_one(server: Server, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    with pytest.raises(StoreError, match="job array"):
        Store.on_bucket(server.endpoint, server.bucket, place)
    Store.on_bucket(server.endpoint, server.bucket, place, create=True)
    Store.on_bucket(server.endpoint, server.bucket, place)  # it is there now


def test_joining_with_other_terms_is_refused(store: Store) -> None:
    Study(store, "s", SPACE, goal="min")
    with pytest.raises(RefusedError, match="goal"):
        Study(Store(store.url), "s", SPACE, goal="max")
    with pytest.raises(NotFound, match="'s'"):
        Study(Store(store.url), "t")


def test_what_passes_is_asked_again_and_what_does_not_is_not() -> None:
    from tests.parts import FakeMachine

    class Flaky(MemoryBackend):
        left = 3
        passing = True

        def read(self, key):  # type: ignore[no-untyped-def]
            if self.left:
                self.left -= 1
                raise StoreError("slow down", passing=self.passing)
            return super().read(key)

    machine = FakeMachine()
    flaky = Flaky(conditional_replace=True)
    assert RetryingBackend(flaky, machine.clock, machine.entropy).read("a/b.json") is None
    assert len(machine.clock.slept) == 3
    flaky.left, flaky.passing = 1, False
    with pytest.raises(StoreError, match="slow down"):
        RetryingBackend(flaky, machine.clock, machine.entropy).read("a/b.json")
    flaky.left, flaky.passing = 10**6, True
    with pytest.raises(StoreError, match="slow down"):
        RetryingBackend(flaky, machine.clock, machine.entropy, patience_s=20).read("a/b.json")


def test_opening_a_folder_loads_no_client() -> None:
    code = "import sys, dibs; dibs.Store, dibs.Study; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0


@pytest.mark.parametrize("verb", [["status"], ["run", "search.py", "--study", "s", "--trials", "1"]])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "search.py").write_text(FILE)
    code = "import sys; sys.modules['obstore'] = None; from dibs.cli import main; main(sys.argv[1:])"
    told = subprocess.run(
        [sys.executable, "-c", code, *verb, "--store", "s3://a/b"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 2, told.stderr
    assert "pip install obstore" in told.stderr
    assert "Traceback" not in told.stderr


def test_the_log_of_another_store_is_not_this_ones(
    server: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two buckets, or one store made anew, and studies of one name: they meet in the temporary folder of a machine."""
    monkeypatch.delenv("DIBS_WORK", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    for name in "ab":
        study = Study(Store.on_bucket(server.endpoint, server.bucket, f"{place}/{name}"), "s", SPACE, goal="min")
        study.run(lambda trial, name=name: print("of", name) or 1.0, 1, capture=True, progress=False)
        (attempt,) = trial_detail(Source.over(study), 0).attempts
        assert study.store.get(attempt.files["log.txt"]) == f"of {name}\n".encode()
        assert attempt.log is not None
        assert Path(attempt.log).read_text() == f"of {name}\n"


def test_a_planted_folder_in_the_temporary_one_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DIBS_WORK", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    study = Study(store, "s", SPACE, goal="min", seed=0)
    trials = study.trials(1)
    trial = next(trials)
    assert trial.folder.is_relative_to(tmp_path)
    base = tmp_path / f"dibs-work-{os.getuid()}"
    assert base.stat().st_mode & 0o077 == 0
    base.chmod(0o777)
    with pytest.raises(StoreError, match="DIBS_WORK"):
        _ = trial.folder


def test_a_fork_takes_the_results_along_and_another_machine_reads_them(
    store: Store, server: Server, place: str
) -> None:
    study = Study(store, "spam", SPACE, goal="min", seed=1, sampler="random")
    for trial in study.trials(12):
        with trial:
            trial.done(trial.point["x"])
    fork = study.fork("two", Space(x=Float(0.5, 1)))
    wanted = sorted(result.score or 0.0 for result in study.results() if result.point["x"] >= 0.5)
    assert fork.forked is not None
    assert (fork.forked.attached, fork.forked.left) == (len(wanted), {"outside the new x": 12 - len(wanted)})
    elsewhere = Study(Store.on_bucket(server.endpoint, server.bucket, place), "two")
    assert sorted(score or 0.0 for _, score in elsewhere.finished()) == wanted
    again = Study(elsewhere.store, "spam").fork("two", Space(x=Float(0.5, 1))).forked
    assert again is not None
    assert (again.attached, again.there) == (0, len(wanted))


def test_a_folder_that_a_console_made_is_nothing(server: Server, place: str, store: Store) -> None:
    """An empty object called ``.../``, as consoles and some servers leave where a folder should show."""
    import boto3

    study = Study(store, "spam", SPACE, goal="min", seed=0)
    study.attach({"x": 0.5}, 0.25)
    made = boto3.client(
        "s3", endpoint_url=server.endpoint, aws_access_key_id=server.key, aws_secret_access_key=server.secret,
        region_name="us-east-1",
    )  # fmt: skip
    for folder in ("given/", "trial/", "note/", ""):
        made.put_object(Bucket=server.bucket, Key=f"{place}/study/spam/{folder}", Body=b"")
    fresh = Study(Store.on_bucket(server.endpoint, server.bucket, place), "spam")
    assert [score for _, score in finished(fresh.store, study="spam")] == [0.25]
    for trial in study.trials(1):
        with trial:
            trial.done(1.0)
    assert [result.state for result in fresh.results()] == ["done"]
    assert fresh.store.studies() == ["spam"]
