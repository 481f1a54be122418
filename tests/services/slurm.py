"""A Slurm of the tests' own: munge, a controller and one node on the loopback, in a folder, ended by their pids.

The node is said to have eight cores, whatever there is. There is no accounting: like most small clusters, and it is
the harder case.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services.mounts import free_port, process, tool, until

CONF = """\
ClusterName=tested
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={controller}
SlurmdPort={node}
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=200000,sched_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MinJobAge=300
KillWait=3
MessageTimeout=10
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=8000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=2
PartitionName=steady Nodes={host} MaxTime=INFINITE State=UP PriorityTier=2
"""


@dataclass(frozen=True)
class Slurm:
    """A cluster that takes jobs. ``environ``: what its commands need to find it."""

    folder: Path
    environ: dict[str, str]

    def ask(self, *words: str) -> str:
        """What one of its commands answers."""
        return subprocess.run(
            words, check=True, capture_output=True, text=True, timeout=60, env={**os.environ, **self.environ}
        ).stdout

    def tasks(self, job: str) -> dict[str, str]:
        """Of an array: task -> state, as the controller says."""
        text = self.ask("scontrol", "--oneliner", "show", "job", job)
        found = (dict(re.findall(r"(?:^| )(ArrayTaskId|JobState)=(\S*)", line)) for line in text.splitlines())
        return {each["ArrayTaskId"]: each["JobState"] for each in found if "ArrayTaskId" in each}

    def again(self, job: str, task: str = "0") -> None:
        """Have a task that was requeued run soon. A node refuses to run it in the second in which it ended it."""
        self.until(lambda: self.tasks(job).get(task) == "PENDING", "the task is in the queue again")
        self.ask("scontrol", "update", f"JobId={job}_{task}", "StartTime=now+2")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait until it holds; the controller's last words if it does not."""
        try:
            until(true, what)
        except RuntimeError as error:
            error.add_note((self.folder / "slurmctld.out").read_text(errors="replace")[-2000:])
            raise


@contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Start it, and end it with all its jobs."""
    munged, controller, node = tool("munged"), tool("slurmctld"), tool("slurmd")
    for name in ("sbatch", "scontrol", "scancel", "squeue", "sinfo"):
        tool(name)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(host=platform.node(), folder=folder, controller=free_port(), node=free_port()))
    environ = {"SLURM_CONF": str(conf)}
    cluster = Slurm(folder, environ)
    munge = [
        munged, "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed",
    ]  # fmt: skip
    with process(munge, folder / "munge.out") as credentials:
        until((folder / "munge.socket").exists, f"munged (see {folder})", credentials)
        with (
            process([controller, "-D", "-c", "-f", str(conf)], folder / "slurmctld.out", **environ) as head,
            process([node, "-D", "-f", str(conf)], folder / "slurmd.out", **environ),
        ):
            try:
                until(lambda: _idle(cluster), f"Slurm (see {folder})", head)
                yield cluster
            finally:
                subprocess.run(["scancel", "--user=root"], env={**os.environ, **environ}, check=False, timeout=30)
                until(lambda: not cluster.ask("squeue", "--noheader"), "the end of all jobs")


def _idle(cluster: Slurm) -> bool:
    try:
        return "idle" in cluster.ask("sinfo", "--noheader", "--format=%T")
    except subprocess.CalledProcessError:
        return False
