"""Devices of a host: what the pool is, who holds what, and that no two processes ever have the same one."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import pytest
from tests.parts import at_once
from tests.study.processes import alive, end, eventually, open_study, program, run, start
from tests.study.test_slots import Hall

from dibs import Store
from dibs.errors import UsageError
from dibs.store import HostKeys
from dibs.study import _devices
from dibs.study._child import Last
from dibs.study._devices import Devices, Lease, pool_of
from dibs.study._pool import Pool
from dibs.study._slots import Standing
from dibs.study._work import Terms
from dibs.study._worker import Seat

UUIDS = "GPU-8a1c2f3e-0000-4b1d-9c2e-aaaaaaaaaaaa,MIG-77777777-1111-5222-8333-bbbbbbbbbbbb"
LISTING = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-8a1c2f3e)
  MIG 3g.20gb     Device  0: (UUID: MIG-77777777)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-8a1c2f3f)
"""


# ---- the pool


@pytest.mark.parametrize(
    ("preset", "pool"), [("0,1", ["0", "1"]), ("3", ["3"]), (" 2 , 0 ", ["2", "0"]), (UUIDS, UUIDS.split(","))]
)
def test_a_preset_pool_is_taken_as_it_is(preset: str, pool: list[str]) -> None:
    assert pool_of({"CUDA_VISIBLE_DEVICES": preset}, 1) == pool


@pytest.mark.parametrize(
    ("preset", "count", "said"),
    [
        ("", 1, r"no device for gpus=1 \(CUDA_VISIBLE_DEVICES=\): name a pool: CUDA_VISIBLE_DEVICES=0,1 dibs run"),
        ("-1", 1, "no device for gpus=1"),
        ("NoDevFiles", 1, "no device for gpus=1"),
        ("0,1", 3, r"should have 3 devices and there are 2 \(CUDA_VISIBLE_DEVICES=0,1\)"),
        ("0,0", 1, "names a device twice"),
        ("0,,1", 1, "or none at one place"),
    ],
)
def test_a_pool_that_cannot_do_says_how_to_name_one(preset: str, count: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        pool_of({"CUDA_VISIBLE_DEVICES": preset}, count)


def test_without_a_preset_nvidia_smi_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if _devices.shutil.which("nvidia-smi") is None:
        with pytest.raises(UsageError, match=r"no device for gpus=1 \(nvidia-smi\)"):
            pool_of({}, 1)
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    tool.chmod(0o755)
    assert pool_of({}, 2) == ["0", "1"]
    tool.write_text("#!/bin/sh\nexit 9\n")  # a driver that is not loaded
    with pytest.raises(UsageError, match=r"no device for gpus=1 \(nvidia-smi\)"):
        pool_of({}, 1)


# ---- leases


def devices(hall: Hall, pool: str = "0,1", count: int = 1, store: Store | None = None, **environ: str) -> Devices:
    return Devices(store or hall.store(), pool.split(","), count, environ, None, beat_s=10.0, stale_s=60.0)


def leased(side: Devices) -> Lease:
    lease = side.lease()
    assert lease is not None
    return lease


def visible(lease: Lease) -> str:
    assert list(lease.environ) == ["CUDA_VISIBLE_DEVICES"]
    return lease.environ["CUDA_VISIBLE_DEVICES"]


def test_each_device_goes_to_one_worker() -> None:
    hall = Hall()
    one, two = devices(hall), devices(hall)
    seen = [visible(leased(one)), visible(leased(two))]
    assert sorted(seen) == ["0", "1"]
    assert one.lease() is None
    assert two.holders().count(" by ") == 2
    names = [name.name for name in hall.first.scan("gpu/fake/b-t/")]
    assert sorted(names) == ["gpu/fake/b-t/0/0", "gpu/fake/b-t/1/0"]


def test_all_or_nothing() -> None:
    hall = Hall()
    half, both = devices(hall), devices(hall, count=2)
    lease = leased(half)
    before = len(list(hall.first.scan()))
    assert both.lease() is None
    assert len(list(hall.first.scan())) == before  # nothing is written where there are too few
    half.back(lease)
    assert visible(leased(both)) == "0,1"


def test_what_was_taken_in_vain_goes_back() -> None:
    hall = Hall()
    both, quick = devices(hall, count=2), devices(hall)
    look = both.slots.look

    def late() -> dict[int, Standing]:
        seen = look()
        leased(quick)  # between the look and the claim
        return seen

    both.slots.look = late  # type: ignore[method-assign]
    assert both.lease() is None
    assert sorted(look().values()) == [Standing.FREE, Standing.HELD]


def test_two_that_each_need_both_do_not_wait_for_each_other() -> None:
    hall = Hall()
    sides = [devices(hall, "0,1,2,3", count=3) for _ in range(4)]
    got = [lease for lease in at_once([side.lease for side in sides]) if lease is not None]
    assert len(got) <= 1
    if not got:  # they were in each other's way, and nobody kept a part
        assert len(visible(leased(sides[0])).split(",")) == 3


def test_a_worker_takes_over_and_its_end_is_what_frees_the_device() -> None:
    hall = Hall()
    parent, worker = hall.store(), hall.store()
    side = devices(hall, "0", store=parent)
    lease = leased(side)
    lease = Lease(devices(hall, "0", store=worker).slots, lease.taken, lease.environ)
    holds = lease.take_over()
    assert holds is not None
    hall.dead.add(parent.machine.pid())
    assert devices(hall, "0").lease() is None  # the worker lives
    hall.dead.add(worker.machine.pid())
    assert visible(leased(devices(hall, "0"))) == "0"


def test_what_a_worker_never_took_over_comes_back() -> None:
    hall = Hall()
    side = devices(hall, "0")
    side.back(leased(side))
    other = devices(hall, "0")
    lease = leased(other)
    hall.dead.add(other.store.machine.pid())
    leased(devices(hall, "0"))  # it was between its parent's end and its own beginning
    assert Lease(other.slots, lease.taken, lease.environ).take_over() is None


def test_jobs_and_hosts_have_pools_of_their_own() -> None:
    hall = Hall()
    assert visible(leased(devices(hall, "0"))) == "0"
    assert visible(leased(devices(hall, "0", SLURM_JOB_ID="17"))) == "0"  # the first of that job's
    assert devices(hall, "0", SLURM_JOB_ID="17").lease() is None


def test_names_keep_their_generation_however_long_they_are() -> None:
    keys = HostKeys("gpu", "A-Very-Long-Name.Of-A-Host/" * 3)
    for thing in ("0", UUIDS):
        key = keys.key(thing, 12345)
        assert keys.generation(thing, key.removeprefix("name/")) == 12345
        assert keys.generation(thing + "1", key.removeprefix("name/")) is None
    plain = HostKeys("gpu", "node3/1a2b")
    assert plain.key("0", 7) == "name/gpu%2fnode3%2f1a2b%2f0%2f7.json"
    assert [plain.generation("0", file) for file in ("nightly.json", "gpu%2fnode3%2f1a2b%2f0%2fx.json")] == [None] * 2


def test_a_lease_travels(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    side = Devices(store, ["0"], 1, {}, None, 10.0, 60.0)
    lease = pickle.loads(pickle.dumps(leased(side)))
    (hold,) = lease.take_over()
    assert (hold.n, hold.generation) == (0, 1)


# ---- real processes


SHARED = """
DEVICE = os.environ.get("CUDA_VISIBLE_DEVICES")  # as the program saw it when it was imported

def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False

def objective(trial):
    mark = HERE / f"device-{DEVICE}"
    try:
        fd = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        other = int(mark.read_text() or 0)
        if other != os.getpid() and alive(other):
            (HERE / f"overlap-{trial.n}").touch()
        mark.unlink()
        fd = os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(fd, str(os.getpid()).encode())
    os.close(fd)
    (HERE / f"seen-{sys.argv[1]}-{DEVICE}").touch()
    for _ in range(20):  # stay for a moment, or until both are in use
        if len(list(HERE.glob("device-*"))) == 2:
            break
        time.sleep(0.005)
    if trial.n == 1 and trial.attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)  # what it held is free
    return 1.0

if __name__ == "__main__":
    from dibs.study import Limits
    study = dibs.Study(HERE / "store", sys.argv[1], SPACE, goal="min", seed=7, sampler="sobol")
    assert study.run(objective, 5, workers=4, limits=Limits(gpus=1), progress=False).why == "settled"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7,8"
"""


def test_two_runs_share_the_devices_of_their_host(tmp_path: Path) -> None:
    processes = [
        start(program(tmp_path, SHARED, f"{name}.py"), name, CUDA_VISIBLE_DEVICES="7,8") for name in ("one", "two")
    ]
    answers = [end(process) for process in processes]
    assert [code for code, _, _ in answers] == [0, 0], answers
    assert sorted(path.name for path in tmp_path.glob("device-*")) == ["device-7", "device-8"]
    assert list(tmp_path.glob("overlap-*")) == []
    assert all(list(tmp_path.glob(f"seen-{name}-*")) for name in ("one", "two"))


HOLDS = """
def objective(trial):
    (HERE / f"begun-{sys.argv[1]}").write_text(str(os.getpid()))
    while not (HERE / "finish").exists():
        time.sleep(0.01)
    return 1.0

if __name__ == "__main__":
    from dibs.study import Limits
    study = dibs.Study(HERE / "store", sys.argv[1], SPACE, goal="min", seed=7, sampler="sobol")
    print(study.run(objective, 1, limits=Limits(gpus=1), grace_s=60).why)
"""


def test_a_killed_holder_frees_its_device_and_a_killed_parent_does_not(tmp_path: Path) -> None:
    first = start(program(tmp_path, HOLDS, "one.py"), "one", CUDA_VISIBLE_DEVICES="5")
    holder = int(eventually(lambda: text_of(tmp_path / "begun-one"), first))
    second = start(program(tmp_path, HOLDS, "two.py"), "two", CUDA_VISIBLE_DEVICES="5")
    said = tmp_path / "two.err"
    eventually(lambda: f"every device is held: 5 by {open_study(tmp_path).store.me()} (" in said.read_text(), second)
    first.kill()
    end(first)
    assert alive(holder)
    seen = Devices(Store(tmp_path / "store"), ["5"], 1, {}, None, 60.0, 3600.0).slots.look()
    assert seen == {0: Standing.HELD}
    os.kill(holder, signal.SIGKILL)
    eventually(lambda: text_of(tmp_path / "begun-two"), second)
    (tmp_path / "finish").touch()
    code, out, err = end(second)
    assert (code, out) == (0, "settled\n"), err


def test_a_worker_killed_before_it_began_frees_its_device(tmp_path: Path) -> None:
    body = """
if __name__ != "__main__":
    try:
        (HERE / "first").touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "finish").touch()
    code, out, err = run(program(tmp_path, body + HOLDS), "s", CUDA_VISIBLE_DEVICES="5")
    assert (code, out) == (0, "settled\n"), err


def test_who_waits_for_a_device_leaves_when_nothing_is_left_to_run(tmp_path: Path) -> None:
    side = Devices(Store(tmp_path / "store"), ["5"], 1, {}, None, 60.0, 3600.0)
    leased(side)  # this process holds it
    study = open_study(tmp_path)
    process = start(program(tmp_path, HOLDS), "s", CUDA_VISIBLE_DEVICES="5")
    eventually(lambda: "every device is held" in (tmp_path / "program.err").read_text(), process)
    study.run(lambda trial: 1.0, 1, progress=False)
    code, out, err = end(process)
    assert (code, out) == (0, "settled\n"), err


def test_a_worker_that_found_nothing_sends_nobody_away_who_waits(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    pool = Pool(study, b"", Terms(trials=1), 2, 1, None)
    pool.vacant = [Seat(1)]  # another worker has died, and there is no device for the next one
    pool.devices = Devices(study.store, ["5"], 1, {}, None, 60.0, 3600.0)
    leased(Devices(study.store, ["5"], 1, {}, None, 60.0, 3600.0))
    pool._through(Seat(0), Last(1, 0, "held"))
    pool._fill_again()
    assert pool.vacant == [Seat(1)]
    study.run(lambda trial: 1.0, 1, progress=False)
    pool._fill_again()
    assert pool.vacant == []
    assert pool.tally.why == "settled"


def test_a_machine_without_devices_says_how_to_name_some(tmp_path: Path) -> None:
    code, _, err = run(program(tmp_path, HOLDS), "s", CUDA_VISIBLE_DEVICES="")
    assert code == 1
    assert "no device for gpus=1 (CUDA_VISIBLE_DEVICES=): name a pool" in err.splitlines()[-1]
    assert open_study(tmp_path).results() == []


def text_of(path: Path) -> str:
    """What a file says, empty if it is not there (yet)."""
    return path.read_text() if path.exists() else ""
