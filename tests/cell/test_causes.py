"""Why a program ended: a table of what may be seen, and what it means."""

from __future__ import annotations

import json

import pytest

from dibs.cell import LOST, Cause, Evidence, classify
from dibs.cell._causes import detail_of

SLURM = {"SLURM_JOB_ID": "7"}
CASES = [
    ("ended well", Evidence(code=0), Cause.OK),
    ("ended well, whatever it printed", Evidence(code=0, tail=("CUDA out of memory",), free_bytes=0), Cause.OK),
    ("made something that was not kept", Evidence(code=0, synced=False), Cause.SYNC),
    ("made something that was kept", Evidence(code=0, synced=True), Cause.OK),
    ("an exception", Evidence(code=1, tail=("Traceback", "ValueError: x")), Cause.CODE),
    ("a crash in native code", Evidence(signal=11), Cause.CODE),
    ("the same as a shell says it", Evidence(code=139), Cause.CODE),
    ("could not be started", Evidence(not_started="Exec format error"), Cause.CODE),
    ("our time limit", Evidence(code=0, limit="over the time limit of 1s"), Cause.TIME),
    ("our memory limit", Evidence(signal=9, limit="over the memory limit", memory_limit=True), Cause.CGROUP_MEMORY),
    ("killed, and the cgroup counted it", Evidence(signal=9, cgroup_kills=1, host_kills=1), Cause.CGROUP_MEMORY),
    ("killed, and the machine counted it", Evidence(signal=9, host_kills=1), Cause.HOST_MEMORY),
    ("what the shell ran was", Evidence(code=137, host_kills=1), Cause.HOST_MEMORY),
    ("killed, and nobody counted", Evidence(signal=9, tail=("epoch 3",)), Cause.VANISHED),
    ("a shell says Killed", Evidence(code=137, tail=("Killed",)), Cause.VANISHED),
    ("slurm says it", Evidence(signal=9, scheduler=SLURM,
     tail=("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",)), Cause.CGROUP_MEMORY),
    ("slurm's time", Evidence(signal=15, tail=("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT x DUE TO TIME LIMIT ***",)), Cause.TIME),
    ("slurm pre-empts", Evidence(signal=15, tail=("*** JOB 7 ON n1 CANCELLED AT x DUE TO PREEMPTION ***",)), Cause.PREEMPTED),
    ("slurm pre-empts and kills", Evidence(signal=9, tail=("*** STEP 7.0 CANCELLED AT x DUE TO PREEMPTION ***",)), Cause.PREEMPTED),
    ("an exception that quotes slurm", Evidence(code=1, tail=("error: CANCELLED AT x",)), Cause.CODE),
    ("asked to end by somebody", Evidence(signal=15), Cause.PREEMPTED),
    ("the same through a shell", Evidence(code=143), Cause.PREEMPTED),
    ("its terminal went", Evidence(signal=1), Cause.PREEMPTED),
    ("ulimit -t", Evidence(signal=24), Cause.TIME),
    ("torch", Evidence(code=1, tail=("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",)), Cause.DEVICE_MEMORY),
    ("torch 2", Evidence(code=1, tail=("torch.OutOfMemoryError: CUDA out of memory.",)), Cause.DEVICE_MEMORY),
    ("amd", Evidence(code=1, tail=("RuntimeError: HIP out of memory.",)), Cause.DEVICE_MEMORY),
    ("apple", Evidence(code=1, tail=("RuntimeError: MPS backend out of memory (MPS allocated: 9 GB)",)), Cause.DEVICE_MEMORY),
    ("cuda itself", Evidence(code=1, tail=("CUDA error: CUDA_ERROR_OUT_OF_MEMORY",)), Cause.DEVICE_MEMORY),
    ("jax", Evidence(code=1, tail=("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying",)), Cause.DEVICE_MEMORY),
    ("tensorflow", Evidence(code=1, tail=("OOM when allocating tensor with shape[1]",)), Cause.DEVICE_MEMORY),
    ("cublas", Evidence(signal=6, tail=("CUBLAS_STATUS_ALLOC_FAILED when calling",)), Cause.DEVICE_MEMORY),
    ("python", Evidence(code=1, tail=("Traceback", "MemoryError")), Cause.HOST_MEMORY),
    ("numpy", Evidence(code=1, tail=("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array",)), Cause.HOST_MEMORY),
    ("c++", Evidence(signal=6, tail=("terminate called after throwing an instance of 'std::bad_alloc'",)), Cause.HOST_MEMORY),
    ("fork", Evidence(code=1, tail=("fork: Cannot allocate memory",)), Cause.HOST_MEMORY),
    ("java", Evidence(code=1, tail=("java.lang.OutOfMemoryError: Java heap space",)), Cause.HOST_MEMORY),
    ("the disk", Evidence(code=1, tail=("OSError: [Errno 28] No space left on device",)), Cause.DISK),
    ("a quota", Evidence(code=1, tail=("cp: Disk quota exceeded",)), Cause.DISK),
    ("the log met it", Evidence(code=1, log_lost=10, tail=("x",)), Cause.DISK),
    ("no room left", Evidence(code=1, free_bytes=0), Cause.DISK),
    ("no files left", Evidence(code=1, free_bytes=1 << 30, free_files=0), Cause.DISK),
    ("room enough", Evidence(code=1, free_bytes=1 << 30, free_files=9), Cause.CODE),
    ("its end was not seen", Evidence(), Cause.VANISHED),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "cause"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_cause_follows_from_what_was_seen(seen: Evidence, cause: Cause) -> None:
    assert classify(seen) is cause
    said = detail_of(cause, seen)
    assert "\n" not in said
    assert said.startswith(("exit status 0", seen.limit) if seen.limit or cause is Cause.OK else str(cause))
    json.dumps(seen.to_json(), allow_nan=False)


def test_every_cause_is_in_the_table() -> None:
    assert {case[2] for case in CASES} == set(Cause)


def test_only_what_the_program_did_not_do_is_lost() -> None:
    assert set(LOST) == {Cause.PREEMPTED, Cause.VANISHED}


def test_the_line_that_tells_is_told() -> None:
    seen = Evidence(code=1, tail=("OSError: [Errno 28] No space left on device", "bye"))
    assert detail_of(Cause.DISK, seen) == "disk full: exit status 1: OSError: [Errno 28] No space left on device"
    assert detail_of(Cause.CODE, seen) == "code error: exit status 1: bye"
    assert detail_of(Cause.CODE, Evidence(signal=11)) == "code error: killed by SIGSEGV"
