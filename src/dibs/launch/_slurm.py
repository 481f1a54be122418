"""A Slurm array: one ``sbatch``, whose script is kept beside the job and may be submitted again as it is.

Nothing that was said becomes shell: options are words of ``sbatch``'s own command line, the rest is quoted in the script.
A task that is pre-empted or requeued runs the same command again, which is all a worker needs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from math import ceil

from dibs._clock import Clock
from dibs.errors import UsageError

from ._plan import INTERRUPTED, KILLED, UNFINISHED, Call, Ended, Here, Plan, Started
from ._profile import Profile
from ._request import Request
from ._script import env_for, script_of, wants_of

__all__ = ["ended_in", "lacks", "plan", "start", "wait"]

_POLL_S, _SLOWEST_S = 1.0, 20.0
_WAIT_S = 120.0
_ENDED = {
    "BOOT_FAIL": INTERRUPTED, "CANCELLED": INTERRUPTED, "DEADLINE": INTERRUPTED, "NODE_FAIL": INTERRUPTED,
    "PREEMPTED": INTERRUPTED, "TIMEOUT": INTERRUPTED, "OUT_OF_MEMORY": KILLED, "COMPLETED": 0, "FAILED": 0,
}  # fmt: skip
_SCRIPT = """\
#!/bin/bash
# A worker of {name}. The same lines again are all that a worker needs which was pre-empted or requeued.
cd -- {place} || exit 2
PATH="$PATH":{bin}
export DIBS_ME="slurm-${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}_${{SLURM_ARRAY_TASK_ID:-0}}"
{exports}
{worker}
"""


def lacks(request: Request, profile: Profile, acting: bool) -> list[str]:
    """``sbatch``, and variables that go by their names: it takes them along from here."""
    if not acting:
        return []
    missing = [] if shutil.which("sbatch") else ["there is no sbatch here"]
    return missing + [f"{name} is not set here" for name in wants_of(request, profile) if name not in os.environ]


def plan(request: Request, profile: Profile, store: str, here: Here) -> Plan:
    """One array of as many tasks as workers."""
    script = str(request.kept / "slurm.sh")
    exports = {"DIBS_STORE": store, **env_for(request, profile)}
    text = _SCRIPT.format(
        name=request.name,
        place=shlex.quote(request.place),
        bin=shlex.quote(here.bin),
        exports="\n".join(f"export {name}={shlex.quote(value)}" for name, value in exports.items()),
        worker=script_of(request, profile, wants_of(request, profile)),
    )
    log = str(request.kept / "slurm-%A_%a.log")
    call = Call(("sbatch", *_options(request, profile), script), {"DIBS_STORE": store}, None, log)
    look = (f"squeue --me --name {shlex.quote(request.name)}", f"tail -f {shlex.quote(str(request.kept))}/slurm-*.log")
    return Plan(
        "slurm", profile.name, request.name, store, request.workers, (call,), {script: text}, look=look,
    )  # fmt: skip


def _options(request: Request, profile: Profile) -> list[str]:
    want, said = request.resources, profile.options
    at_once = f"%{said['at_once']}" if "at_once" in said else ""
    # --export=ALL beats a site's SBATCH_EXPORT: what goes by its name must arrive
    found = [
        "--parsable", f"--job-name={request.name}", f"--array=0-{request.workers - 1}{at_once}", "--nodes=1", "--ntasks=1",
        "--requeue", "--open-mode=append", f"--signal=B:TERM@{said.get('signal_s', 60)}", "--export=ALL",
        f"--output={str(request.kept).replace('%', '%%')}/slurm-%A_%a.log",
    ]  # fmt: skip
    if want.cpus is not None:
        found.append(f"--cpus-per-task={want.cpus}")
    if want.memory_bytes is not None:
        found.append(f"--mem={ceil(want.memory_bytes / (1 << 20))}M")
    if want.time_s is not None:
        found.append(f"--time={ceil(want.time_s / 60)}")
    for gpu in want.gpus:
        found.append(f"--gres={said.get('gres', 'gpu')}:{gpu.count}")
    found += [
        f"--{name}={said[name]}"
        for name in ("partition", "account", "qos", "constraint", "reservation")
        if name in said
    ]
    return [*found, *said.get("options", ())]


def start(plan: Plan, wait: bool) -> Started:
    """Submit it. Raises UsageError with Slurm's words."""
    (call,) = plan.calls
    done = _ask(call.argv)
    if done.returncode or not re.match(r"\d+", done.stdout):
        raise UsageError(f"sbatch refused: {_words(done.stderr or done.stdout) or f'exit status {done.returncode}'}")
    number = done.stdout.strip().partition(";")[0]
    return Started(plan, (number,), f"scancel {number}")


def wait(started: Started, clock: Clock, say: Callable[[str], None]) -> list[Ended]:
    """Asks the controller until all tasks have ended. Whatever interrupts it leaves the array as it is."""
    (number,) = started.ids
    ended: dict[str, Ended] = {}
    pause, failures = _POLL_S, 0
    try:
        while True:
            done = _ask(["scontrol", "--oneliner", "show", "job", number])
            gone = bool(done.returncode) and "Invalid job id" in done.stderr
            failures = failures + 1 if done.returncode and not gone else 0
            if failures == 1:
                say(f"Slurm does not answer, and is asked again: {_words(done.stderr)}")
            running, found = ended_in(done.stdout)
            for each in found:
                if each.worker not in ended:
                    say(f"worker {each.worker} ended with {each.code}{f', {each.why}' if each.why else ''}")
                ended[each.worker] = each
            if gone or (found and not running):  # long ended: Slurm forgets
                break
            clock.sleep(pause)
            pause = min(_SLOWEST_S, pause * 1.3)
    except BaseException:
        say(f"the array {number} runs on: {started.stop} ends it")
        raise
    for at in map(str, range(started.plan.workers)):
        ended.setdefault(at, Ended(at, UNFINISHED, "Slurm does not tell any more"))
    return [ended[at] for at in sorted(ended, key=int)]


def ended_in(text: str) -> tuple[int, list[Ended]]:
    """What ``scontrol --oneliner show job`` says: how many entries have not ended, and how the others did."""
    running, found = 0, []
    for line in text.splitlines():
        fields = dict(re.findall(r"(?:^| )(ArrayTaskId|JobState|ExitCode)=(\S*)", line))
        state = fields.get("JobState", "")
        if state not in _ENDED:
            running += bool(state)
            continue
        code, _, number = fields.get("ExitCode", "0:0").partition(":")
        own = int(code or 0) or (128 + int(number) if int(number or 0) else 0)
        why = "" if state in ("COMPLETED", "FAILED") else state.lower().replace("_", " ")
        for at in _tasks(fields.get("ArrayTaskId", "0")):
            found.append(Ended(at, _ENDED[state] or own or int(state == "FAILED"), why))
    return running, found


def _tasks(text: str) -> list[str]:
    """The numbers of ``3``, ``0-2``, ``1,4-5%2``."""
    found: list[str] = []
    for part in text.partition("%")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += map(str, range(int(first), int(last or first) + 1))
    return found


def _ask(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_WAIT_S)
    except FileNotFoundError:
        raise UsageError(f"there is no {words[0]} here: start this where Slurm's commands are") from None
    except (OSError, subprocess.TimeoutExpired) as wrong:
        return subprocess.CompletedProcess(list(words), 1, "", str(wrong))


def _words(text: str) -> str:
    return " ".join(text.split())[:300]
