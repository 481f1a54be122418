"""Real programs: their log, their score, their curve, and every way in which they end."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.cell import Cause, Limits, Told, run
from dibs.errors import StoreError

from .programs import Watching, alive, job, number_in, ran, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="without /proc nobody tells who lives")


def test_a_score_and_a_log_of_both_streams(tmp_path: Path) -> None:
    ending = ran(tmp_path, "echo to-err >&2; pwd; echo '{\"score\": 0.25}'")
    assert (ending.cause, ending.told, ending.asked) == (Cause.OK, Told(0.25), False)
    log = (tmp_path / "log.txt").read_text().splitlines()
    assert sorted(log) == sorted(["to-err", str(tmp_path / "own"), '{"score": 0.25}'])
    assert ending.evidence.peak_bytes
    assert ending.evidence.cpu_s is not None


def test_arguments_and_environment_are_exact(tmp_path: Path) -> None:
    words = ["", "a b", "a\nb", "'\"$x`", "ü€😀", "\udcff", "-", "{}"]
    text = "import os, sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])) + os.environb[b'ODD'])"
    ending = ran(tmp_path, text, *words, program=sys.executable, environ={"ODD": "é\n"})
    assert ending.cause is Cause.OK
    assert (tmp_path / "log.txt").read_bytes() == "|".join(words).encode("utf-8", "surrogateescape") + "é\n".encode()


def test_it_starts_alone_and_with_nothing_to_read(tmp_path: Path) -> None:
    text = 'read x; echo "read $?"; python=$(ps -o sid= -p $$ 2>/dev/null); echo $$ > pid; (ls /proc/$$/fd > fds); :'
    ending = ran(tmp_path, text)
    assert ending.cause is Cause.OK
    assert (tmp_path / "log.txt").read_text().startswith("read 1\n")
    fds = {int(fd) for fd in (tmp_path / "own" / "fds").read_text().split()} - {
        10,
        255,
    }  # shells keep the script open there
    assert fds <= {0, 1, 2}


def test_the_result_file_wins(tmp_path: Path) -> None:
    ending = ran(tmp_path, 'echo 7 > "$DIBS_RESULT"; echo \'{"score": 1}\'')
    assert ending.told == Told(7.0)


def test_a_result_file_that_is_a_pipe_or_a_folder_or_empty_stops_nobody(tmp_path: Path) -> None:
    for make in ("mkfifo", "mkdir"):
        ending = ran(tmp_path / make, f'{make} "$DIBS_RESULT"; echo \'{{"score": 1}}\'')
        assert ending.told is not None
        assert "is no file" in ending.told.wrong
    assert ran(tmp_path / "b", ': > "$DIBS_RESULT"; echo \'{"score": 1}\'').told == Told(1.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("printf '{\"score\": 2}'", Told(2.0)),  # no newline at the end
        ("head -c 100000 /dev/urandom; echo; echo '{\"score\": 3}'", Told(3.0)),
        ("echo '{\"score\": 1}'; echo '{\"score\": 4}'; echo bye", Told(4.0)),
        ("echo done", None),
        ("true", None),
    ],
)
def test_the_last_line_with_a_score_counts(tmp_path: Path, text: str, told: Told | None) -> None:
    assert ran(tmp_path, text).told == told


def test_nan_is_told_as_nan(tmp_path: Path) -> None:
    told = ran(tmp_path, "echo '{\"score\": NaN}'").told
    assert told is not None
    assert told.score is not None
    assert math.isnan(told.score)


def test_progress_is_seen_while_it_runs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")

    class Letting(Watching):
        def progress(self, told: Told) -> bool:
            if told.step == 0:
                (tmp_path / "go").open("w").close()  # it waits for this
            return super().progress(told)

    watching = Letting()
    text = f'echo \'{{"step": 0, "score": 1}}\'; : < \'{tmp_path}/go\'; echo \'{{"step": 1, "score": 2}}\''
    ending = ran(tmp_path, text, watching=watching)
    assert watching.steps == [(0, 1.0), (1, 2.0)]
    assert ending.told == Told(2.0, step=1)


def test_stopped_by_its_curve_it_has_time_to_end(tmp_path: Path) -> None:
    text = """
trap 'echo saved > checkpoint; exit 0' TERM
(trap '' TERM; sleep 300) &
echo '{"step": 0, "score": 9}'
while :; do sleep 0.01; done
"""
    ending = ran(tmp_path, text, watching=Watching(stop_at=0), grace_s=1e6)
    assert ending.asked
    assert (tmp_path / "own" / "checkpoint").read_text() == "saved\n"


def test_what_does_not_listen_is_killed(tmp_path: Path) -> None:
    text = "trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done"
    pid = tmp_path / "own" / "pid"
    ending = ran(tmp_path, text, watching=Watching(stops=lambda: number_in(pid) > 0), grace_s=0.1)
    assert (ending.asked, ending.evidence.signal) == (True, signal.SIGKILL)
    assert not alive(number_in(pid))


def test_over_the_time_limit(tmp_path: Path) -> None:
    ending = ran(tmp_path, "sleep 300", limits=Limits(time_s=0.3))
    assert (ending.cause, ending.detail, ending.asked) == (Cause.TIME, "over the time limit of 0.3s", False)


def test_over_the_memory_limit_counting_grandchildren(tmp_path: Path) -> None:
    text = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = b\"x\" * (300 << 20); input() if 0 else __import__(\"time\").sleep(1000)'])"
    ending = ran(tmp_path, text, program=sys.executable, limits=Limits(memory_bytes=200 << 20))
    assert ending.cause is Cause.CGROUP_MEMORY
    assert ending.detail.startswith("over the memory limit of 200 MiB (")


def test_killed_from_outside(tmp_path: Path) -> None:
    ending = ran(tmp_path, "echo '{\"score\": 1}'; kill -9 $$")
    assert (ending.cause, ending.evidence.signal) == (Cause.VANISHED, signal.SIGKILL)
    assert "vanished: killed by SIGKILL" in ending.detail


def test_an_error_shows_its_last_line(tmp_path: Path) -> None:
    ending = ran(tmp_path, "echo first; echo 'bad: \x1b[31mno such layer' >&2; exit 3")
    assert ending.detail == "code error: exit status 3: bad: ?[31mno such layer"


def test_what_it_says_last_on_stderr_stands_last(tmp_path: Path) -> None:
    class Late(Watching):
        def progress(self, told: Told) -> bool:
            return bool(until((tmp_path / "own" / "written").exists)) and False

    text = 'echo \'{"step": 0, "score": 1}\'; echo working; echo bad >&2; : > written; exit 1'
    assert ran(tmp_path, text, watching=Late()).detail == "code error: exit status 1: bad"


def test_what_it_leaves_behind_is_gone(tmp_path: Path) -> None:
    text = """
( setsid sh -c 'echo $$ > daemon; exec sleep 300' & )
sleep 300 & echo $! > child
while [ ! -s daemon ]; do sleep 0.01; done
echo '{"score": 1}'
"""
    ending = ran(tmp_path, text)
    assert (ending.cause, ending.told, ending.evidence.left) == (Cause.OK, Told(1.0), 2)
    assert not alive(number_in(tmp_path / "own" / "daemon"))
    assert not alive(number_in(tmp_path / "own" / "child"))


def test_a_reader_of_its_last_pipe_may_finish(tmp_path: Path) -> None:
    ending = ran(tmp_path, "mkfifo p; ( cat p; echo '{\"score\": 5}' ) & echo last > p")
    assert ending.told == Told(5.0)


def test_a_program_that_cannot_be_executed(tmp_path: Path) -> None:
    ending = run(job(tmp_path, "not a program", program=str(tmp_path / "script")), Watching())
    assert (ending.cause, ending.told) == (Cause.CODE, None)
    assert "Permission denied" in ending.detail


def test_arguments_that_no_program_can_be_given(tmp_path: Path) -> None:
    ending = ran(tmp_path, "true", "x" * (3 << 20))
    assert (ending.cause, ending.detail) == (Cause.CODE, "code error: Argument list too long")


def test_it_may_close_its_streams_and_go_on(tmp_path: Path) -> None:
    ending = ran(tmp_path, 'exec >&- 2>&-; sleep 0.1; echo 3 > "$DIBS_RESULT"')
    assert (ending.cause, ending.told) == (Cause.OK, Told(3.0))


def test_a_hundred_megabytes_of_output_are_logged_and_not_held(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = (
        "head -c 50000000 /dev/zero; echo; yes 'some words of a line' | head -c 50000000; echo; echo '{\"score\": 1}'"
    )
    ending = ran(tmp_path, text)
    assert ending.told == Told(1.0)
    assert (tmp_path / "log.txt").stat().st_size == 100_000_002 + len('{"score": 1}\n')
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB


def test_an_endless_curve_is_thinned_and_the_last_one_is_there(tmp_path: Path) -> None:
    watching = Watching()
    text = 'awk \'BEGIN { for (i = 0; i < 200000; i++) printf "{\\"step\\": %d, \\"score\\": %d}\\n", i, i }\''
    ending = ran(tmp_path, text, watching=watching)
    assert ending.told == Told(199_999.0, step=199_999)
    assert len(watching.steps) < 6000
    assert watching.steps[-1] == (199_999, 199_999.0)


def test_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path]).returncode:
        pytest.skip("a small file system needs root")
    try:
        ending = ran(tmp_path, "i=0; while [ $i -lt 20000 ]; do echo some words of a log; i=$((i+1)); done; exit 1")
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)
    assert ending.cause is Cause.DISK
    assert ending.evidence.log_lost > 0


def test_a_killed_warden_and_a_child_that_goes_on_writing(tmp_path: Path) -> None:
    warden = tmp_path / "own" / "warden"

    def stops() -> bool:
        if number_in(warden):
            os.kill(number_in(warden), signal.SIGKILL)
            warden.unlink()
        return False

    ending = ran(tmp_path, "yes & echo $PPID > warden; wait", watching=Watching(stops=stops))
    assert ending.cause is Cause.VANISHED
    assert ending.detail.startswith("vanished: its end was not seen")


def test_a_warden_killed_after_the_program_has_ended_leaves_nothing_either(tmp_path: Path) -> None:
    daemon = tmp_path / "own" / "daemon"

    class Killing(Watching):
        def progress(self, told: Told) -> bool:
            until(lambda: not alive(number_in(tmp_path / "own" / "pid")))  # it has ended, and the warden knows
            os.kill(number_in(tmp_path / "own" / "warden"), signal.SIGKILL)
            return False

    text = """
setsid sh -c 'echo $$ > daemon; exec sleep 300' &
while [ ! -s daemon ]; do sleep 0.01; done
echo $$ > pid; echo $PPID > warden; echo '{"step": 0, "score": 1}'
"""
    ending = ran(tmp_path, text, watching=Killing())
    assert ending.told == Told(1.0, step=0)
    assert not alive(number_in(daemon))


EATER = """
import json, os, sys
from pathlib import Path
from tests.cell.programs import ran
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
ending = ran(Path(sys.argv[2]), "x = b'x' * (400 << 20)", program=sys.executable)
print(json.dumps([str(ending.cause), ending.evidence.cgroup_kills]))
"""


def test_killed_by_the_kernel_for_the_memory_of_its_cgroup(tmp_path: Path) -> None:
    group = Path("/sys/fs/cgroup/memory") / f"dibs-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(150 << 20))
    except OSError:
        pytest.skip("a cgroup of one's own needs root and the memory controller of cgroup v1")
    try:
        done = subprocess.run(
            [sys.executable, "-c", EATER, group, tmp_path], env=path_env(), stdout=subprocess.PIPE, check=True
        )
    finally:
        group.rmdir()
    assert json.loads(done.stdout) == ["out of memory (cgroup)", 1]


def path_env() -> dict[str, str]:
    """An environment in which a fresh process finds these tests."""
    root = Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def test_a_log_that_cannot_be_written_is_the_stores_trouble(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the log .* cannot be written: No such file"):
        ran(tmp_path, "true", log=tmp_path / "nowhere" / "log.txt")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_whatever_interrupts_the_run_ends_the_program(tmp_path: Path, error: type[BaseException]) -> None:
    pid = tmp_path / "own" / "pid"
    raised = []

    def stops() -> bool:
        if number_in(pid) and not raised:
            raised.append(1)
            raise error
        return False

    with pytest.raises(error):
        ran(
            tmp_path,
            "trap 'echo x > asked; exit' TERM; echo $$ > pid; while :; do sleep 0.01; done",
            watching=Watching(stops=stops),
        )
    assert not alive(number_in(pid))
    assert (tmp_path / "own" / "asked").exists() == (error is KeyboardInterrupt)  # whom a person interrupts may save


WORKER = """
import sys
from pathlib import Path
from dibs.cell import run
from tests.cell.programs import Watching, job
run(job(Path(sys.argv[1]), Path(sys.argv[2]).read_text()), Watching())
"""


@pytest.mark.parametrize("who", ["worker", "warden", "both"])
def test_a_killed_worker_or_warden_leaves_nothing_running(tmp_path: Path, who: str) -> None:
    text = "setsid sh -c 'echo $$ > daemon; exec sleep 300' & sh -c 'echo $$ > child; exec sleep 300' & echo $$ > pid; wait"
    (tmp_path / "text").write_text(text)
    own = tmp_path / "own"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(tmp_path / "text")], env=path_env())
    pids = [until(lambda name=name: number_in(own / name)) for name in ("pid", "child", "daemon")]
    warden = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
    if who == "both":
        os.kill(worker.pid, signal.SIGSTOP)  # it must not see to it
    for process in {"worker": [worker.pid], "warden": [warden], "both": [warden, worker.pid]}[who]:
        os.kill(process, signal.SIGKILL)
    worker.wait(60)
    gone = pids[:1] if who == "both" else pids  # without both only the program itself is sure to go
    until(lambda: not any(alive(pid) for pid in gone))
    until(lambda: not alive(warden))
    if who == "warden":
        assert worker.returncode == 0
    for pid in set(pids) - set(gone):
        os.kill(pid, signal.SIGKILL)


def test_evidence_is_json(tmp_path: Path) -> None:
    ending = ran(tmp_path, "exit 1", environ={"SLURM_JOB_ID": "7"})
    assert json.loads(json.dumps(ending.evidence.to_json()))["scheduler"] == {"SLURM_JOB_ID": "7"}
