"""SeaweedFS as a store: the storage contract, the state machine, the studies, and what cannot be one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.buckets import test_bucket_backend, test_bucket_copy, test_bucket_study
from tests.buckets.servers import Server
from tests.services.buckets import stores

from dibs import Float, Space, Store, StoreError, Study
from dibs.backend import Backend, BucketBackend
from dibs.study import finished
from dibs.testing import BackendMachine
from dibs.testing._backend_races import put

pytestmark = [pytest.mark.services, pytest.mark.timeout(300)]
MIB = 1 << 20


class TestSeaweed(test_bucket_backend.TestBucket):
    """The backend suite."""

    race_processes = 3

    def test_folders_are_the_next_segments(self, backend: Backend) -> None:
        """SeaweedFS is a file system underneath: for a while it tells of a folder whose last key was deleted."""
        for key in ("a/b.json", "a-b/x.json", "a/c/d.json"):
            put(backend, key)
        assert backend.folders("") == ["a", "a-b"]
        assert backend.folders("a/") == ["c"]
        assert backend.folders("nothing/") == []


# a real server on a shared machine: the same steps every time, however long they take
PATIENT = settings(
    max_examples=10, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def test_the_state_machine(server: Server, place: str) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    serial = iter(range(10**6))

    class Machine(BackendMachine):
        def make_backend(self) -> BucketBackend:
            return BucketBackend(server.url(f"{place}/{next(serial)}"), server.options())

    run_state_machine_as_test(Machine, settings=PATIENT)


def _again(module: Any, *names: str) -> None:
    """The same tests, against this server."""
    for name in names:
        globals()[name] = getattr(module, name)


store = test_bucket_study.store
_again(
    test_bucket_study,
    "test_the_same_names_and_the_same_json",
    "test_the_functions",
    "test_a_beat_rewrites_and_a_late_one_changes_nothing",
    "test_files_and_logs_are_kept_by_digest",
    "test_worker_processes_and_every_verb",
    "test_nothing_of_the_probe_stays_and_the_marker_says_what_was_found",
    "test_a_prefix_that_holds_something_else_is_refused",
)
url = test_bucket_copy.url
_again(test_bucket_copy, "test_folder_to_bucket_and_back")


def test_a_server_that_ignores_conditions_is_refused(liar: Server, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", liar.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", liar.secret)
    with pytest.raises(StoreError, match="accepted a second conditional PUT") as told:
        Store.on_bucket(liar.endpoint, liar.bucket, place)
    print(told.value)
    left = BucketBackend(liar.url(place), liar.options())
    assert list(left.list("")) == []


# ---- what cannot be opened


def test_no_such_bucket(server: Server) -> None:
    with pytest.raises(StoreError, match="no such bucket"):
        Store.on_bucket(server.endpoint, "nobucket", "p")


@pytest.mark.parametrize("who", [stores.READER, stores.DROPPER], ids=["may not write", "may not list"])
def test_rights_that_are_missing(
    server: Server, place: str, who: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", who[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", who[1])
    with pytest.raises(StoreError, match="may not do that") as told:
        Store.on_bucket(server.endpoint, server.bucket, place)
    print(told.value)


def test_credentials_that_do_not_fit(server: Server, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    with pytest.raises(StoreError, match="secret key does not fit"):
        Store.on_bucket(server.endpoint, server.bucket, place)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    with pytest.raises(StoreError, match="does not know these credentials"):
        Store.on_bucket(server.endpoint, server.bucket, place)


_SKEW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *ts) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, ts);
    if (id == CLOCK_REALTIME) ts->tv_sec += 3600;
    return done;
}
"""


def test_a_clock_an_hour_off(server: Server, place: str, tmp_path: Path) -> None:
    (tmp_path / "skew.c").write_text(_SKEW)
    made = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "skew.so"), str(tmp_path / "skew.c"), "-ldl"]
    try:
        subprocess.run(made, check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("no C compiler to make a clock that is wrong")
    code = f"import dibs; dibs.Store.on_bucket({server.endpoint!r}, {server.bucket!r}, {place!r})"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "LD_PRELOAD": str(tmp_path / "skew.so")},
    )  # fmt: skip
    assert "this machine's clock is off" in told.stderr, told.stderr


# ---- large blobs


def test_a_large_blob_needs_little_memory(server: Server, place: str, tmp_path: Path) -> None:
    """200 MB up, down and down again from a part, in a process that would show it."""
    code = f"""
import os, pathlib, resource, sys
from dibs import Store
store = Store.on_bucket({server.endpoint!r}, {server.bucket!r}, {place!r})
source, out = pathlib.Path("big"), pathlib.Path("out")
with source.open("wb") as file:
    for _ in range(200):
        file.write(os.urandom(1 << 20))
digest = store.put(source)
part = pathlib.Path(f".out.{{digest[:16]}}.part")
part.write_bytes(source.open("rb").read(150 << 20))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
store.fetch(digest, out)
assert not part.exists()
import filecmp
assert filecmp.cmp(source, out, shallow=False)
"""
    code = code.replace(
        'part.write_bytes(source.open("rb").read(150 << 20))', "os.system(f'head -c 157286400 big > {part}')"
    )
    code += "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    mib = int(done.stdout) / (MIB / 1024 if sys.platform == "darwin" else 1024)
    print(f"200 MB up and down: {mib:.0f} MiB of memory at most")
    assert mib < 160, mib


# ---- Azure


def test_a_study_in_azure(azure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCOUNT_NAME": "devstoreaccount1", "ACCOUNT_KEY": stores.AZURITE_KEY}.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    _make_container(azure, "studies")
    url = f"az://studies/p?endpoint={azure}"
    space = Space(x=Float(0, 1))
    for trial in Study(Store(url), "s", space, goal="min", seed=0).trials(5):
        with trial:
            trial.report(1.0)
            trial.report(trial.point["x"])
    assert len(finished(Store(url), space, study="s")) == 5
    with pytest.raises(StoreError, match="no such bucket"):
        Store(f"az://nothing/p?endpoint={azure}")


class TestAzurite(test_bucket_backend.TestBucket):
    """The backend suite."""

    test_racing_processes_have_one_winner_per_name = None  # SeaweedFS's part is that

    @pytest.fixture
    def backend(self, azure: str, place: str) -> BucketBackend:
        _make_container(azure, place + "-suite")
        options = {"endpoint": azure, "account_name": "devstoreaccount1", "account_key": stores.AZURITE_KEY}
        return BucketBackend(f"az://{place}-suite/p", options)


def _make_container(endpoint: str, name: str) -> None:
    """Azure's REST: PUT of a container, signed with the emulator's key."""
    import base64
    import hashlib
    import hmac
    import urllib.error
    import urllib.request
    from email.utils import formatdate

    date = formatdate(usegmt=True)
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:2021-08-06\n/devstoreaccount1/devstoreaccount1/{name}\nrestype:container"
    mac = base64.b64encode(hmac.new(base64.b64decode(stores.AZURITE_KEY), signed.encode(), hashlib.sha256).digest())
    asked = urllib.request.Request(f"{endpoint}/{name}?restype=container", method="PUT", headers={
        "x-ms-date": date, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey devstoreaccount1:{mac.decode()}",
    })  # fmt: skip
    try:
        urllib.request.urlopen(asked, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code != 409:  # it is there
            raise
