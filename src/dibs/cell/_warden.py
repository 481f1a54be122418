"""The process between a worker and a program: whatever ends the worker ends the program and all it has started.

A script of its own (``python -I -S _warden.py JOB ARGV...``) that imports nothing of the package, so that it starts in
hundredths of a second. Its stdin is the worker's hold on it: ``t`` asks the program's group to end, ``k`` kills all,
and the end of it, which the kernel sees to when the worker is killed, kills all too. On ``fd`` it says what happened.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from typing import Any

_PDEATHSIG, _SUBREAPER = 1, 36  # of prctl(2)


class Warden:
    """One program. ``job``: ``fd`` to speak on, ``writable`` and ``denied`` (landlock), both None without isolation."""

    def __init__(self, job: dict[str, Any], argv: list[bytes]) -> None:
        self.job, self.argv = job, argv
        self.pid = 0
        self.ended = self.killing = False

    def run(self) -> None:
        """Start it, mind it, and end when nothing of it is left."""
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # whoever means the program asks the program
            signal.signal(number, signal.SIG_IGN)
        os.set_inheritable(self.job["fd"], False)
        _prctl(_SUBREAPER, 1)
        if not self._start():
            return
        poll = select.poll()
        poll.register(read, select.POLLIN)
        poll.register(0, select.POLLIN)
        while self._reap():
            for fd, _ in poll.poll():
                if fd == read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(read, 512)
                else:
                    self._obey(poll)
            if self.killing:
                self._kill_all()

    def _start(self) -> bool:
        told, tell = os.pipe()
        warden = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become(warden)
            except BaseException as wrong:
                number = wrong.errno if isinstance(wrong, OSError) else 0
                os.write(tell, json.dumps({"not_started": str(wrong)[:300], "errno": number}).encode())
            os._exit(127)
        os.close(tell)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)  # the pipe of its output ends with it
        failed = os.read(told, 4096)
        os.close(told)
        self._say({"pid": self.pid})
        if failed:
            os.waitpid(self.pid, 0)
            self._say(json.loads(failed))
        return not failed

    def _become(self, warden: int) -> None:
        """The child: a session of its own, no stdin, and from there on the program."""
        os.setsid()
        _prctl(_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden:
            os._exit(127)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if self.job["writable"] is not None:
            sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - pathlib costs
            from _landlock import restrict  # type: ignore[import-not-found]

            restrict(self.job["writable"], self.job["denied"])
        os.execvp(self.argv[0], self.argv)

    def _reap(self) -> bool:
        """Whether anything of it is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.ended = True
                code = os.waitstatus_to_exitcode(status)
                self._say({
                    "ended": code, "left": len(_below(os.getpid())),
                    "peak_kib": usage.ru_maxrss, "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
                })  # fmt: skip

    def _obey(self, poll: select.poll) -> None:
        said = os.read(0, 64)
        if not said:
            poll.unregister(0)
        if not said or b"k" in said:
            self.killing = True
        elif b"t" in said and not self.ended:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGTERM)
                os.killpg(self.pid, signal.SIGCONT)  # a stopped process hears nothing

    def _kill_all(self) -> None:
        """All that descends from it; who loses a parent becomes the warden's child, and is found at the next round."""
        with contextlib.suppress(OSError):
            if not self.ended:
                os.killpg(self.pid, signal.SIGKILL)
        for pid in _below(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _say(self, what: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            os.write(self.job["fd"], json.dumps(what).encode() + b"\n")


def _prctl(option: int, value: int) -> None:
    """Linux alone; elsewhere a killed worker leaves grandchildren that have made a session of their own."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _below(top: int) -> list[int]:
    """All living descendants of a process."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208 - pathlib costs
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields and fields[0] not in (b"Z", b"X"):
                parents.setdefault(int(fields[1]), []).append(int(name))
    found = [top]
    for pid in found:
        found += parents.get(pid, [])
    return found[1:]


if __name__ == "__main__":
    Warden(json.loads(sys.argv[1]), [os.fsencode(word) for word in sys.argv[2:]]).run()
