"""Certainly dead: same host, same boot, same pid namespace, and that process is not there any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parts import FakeClock

from dibs.cell._usage import _all_children
from dibs.record import Who
from dibs.store import Here

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="without /proc nobody is certainly dead")

WHO = "import json; from dibs.store import Here; print(json.dumps(Here().who('child')), flush=True)"


@pytest.fixture
def child() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", f"{WHO}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process  # type: ignore[misc]
    process.kill()
    process.communicate()


def who_of(process: subprocess.Popen[str]) -> Who:
    import json

    assert process.stdout
    return Who(**json.loads(process.stdout.readline()))


def changed(who: Who, **fields: object) -> Who:
    return Who(**{name: fields.get(name, getattr(who, name)) for name in ("me", "host", "boot", "pid", "token")})  # type: ignore[arg-type]


def test_this_process_lives() -> None:
    assert not Here().gone(Who(**Here().who("me")))


def test_a_process_that_lives_is_not_gone_and_one_that_ended_is(child: subprocess.Popen[str]) -> None:
    who = who_of(child)
    assert not Here().gone(who)
    child.kill()
    child.wait()
    assert Here().gone(who)


def test_that_a_process_lives_is_believed_for_a_moment(child: subprocess.Popen[str]) -> None:
    here, who = Here(), who_of(child)
    here.clock = clock = FakeClock()
    assert not here.gone(who)
    child.kill()
    child.wait()
    assert not here.gone(who)
    clock.now += 0.2
    assert here.gone(who)
    assert here.gone(who)


def test_a_zombie_has_ended(child: subprocess.Popen[str]) -> None:
    who = who_of(child)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended and nobody has looked yet
    assert Here().gone(who)


def test_a_pid_that_was_given_again_is_another_process() -> None:
    ours = Who(**Here().who("me"))
    namespace, _, started = ours.token.rpartition("-")
    assert Here().gone(changed(ours, token=f"{namespace}-{int(started) - 1}"))


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "elsewhere"},
        {"boot": "another"},
        {"boot": ""},
        {"token": ""},
        {"token": "77-77"},
        {"token": "junk"},
        {"host": "", "boot": "", "token": ""},
    ],
)
def test_nothing_certain_is_said_of_other_machines_boots_and_namespaces(
    child: subprocess.Popen[str], fields: dict[str, str]
) -> None:
    who = who_of(child)
    child.kill()
    child.wait()
    assert Here().gone(who)
    assert not Here().gone(changed(who, **fields))


def test_a_record_without_a_who_is_nobodys_corpse() -> None:
    assert not Here().gone(Who())


def test_a_process_may_be_called_by_any_bytes() -> None:
    """The number of a dead process may have gone to one whose name is cut in the middle of a character."""
    called = "import ctypes; ctypes.CDLL(None).prctl(15, bytes([255, 254]), 0, 0, 0); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", called], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ours = Here().who("")
        namespace = ours["token"].rpartition("-")[0]
        dead = Who(host=ours["host"], boot=ours["boot"], pid=other.pid, token=f"{namespace}-1")
        try:
            assert Here().gone(dead)
            assert other.pid in _all_children()[os.getpid()]
        finally:
            other.kill()
