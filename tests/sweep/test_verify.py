"""What is verified was loaded; whatever does not load, is not finite, or is not what the manifest says, is named."""

from __future__ import annotations

import errno
import json
import os
import pickle
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sweep.cells import ARTIFACTS, NAME, append, begin, finish, npz, planned, result

from dibs import Store
from dibs.errors import StoreError, UsageError
from dibs.sweep import Plan, Rules, Verified, add_plan, pull, verify
from dibs.sweep._kinds import kind_of, loader_of
from dibs.sweep._marks import verified


@pytest.fixture
def plan(store: Store, dest: Path) -> Plan:
    """A sweep of two cells that are done and pulled."""
    plan = planned(store, "a", "b")
    for name in "ab":
        finish(store, plan, name)
    assert pull(store, plan, dest).exit_code == 0
    return plan


def of_file(store: Store, dest: Path, name: str, data: bytes, rules: Rules | None = None) -> Verified:
    """A sweep whose one cell left this one file, pulled and verified."""
    return of_files(store, dest, {name: data}, rules)


def of_files(store: Store, dest: Path, files: dict[str, bytes], rules: Rules | None = None) -> Verified:
    """A sweep whose one cell left these files, pulled and verified."""
    plan = planned(store, "a", artifacts=tuple(files))
    finish(store, plan, "a", files)
    assert pull(store, plan, dest).exit_code == 0
    return verify(store, plan, dest, rules)


def faults(told: Verified) -> list[tuple[str, str | None]]:
    return [(fault.kind, fault.path) for fault in told.faults]


def test_what_holds_is_written_down_in_the_folder_and_the_store(store: Store, plan: Plan, dest: Path) -> None:
    told = verify(store, plan, dest, expect=2)
    assert (told.passed, told.exit_code, faults(told)) == (True, 0, [])
    assert told.loaded == {"npz": 2, "json": 4}
    body = json.loads((dest / "VERIFIED.json").read_bytes())
    (mark,) = verified(store, NAME)
    assert body["manifest"] == mark.body["manifest"] == told.manifest
    assert (body["cells"], body["plan"], body["results"]) == (2, 0, mark.body["results"])
    assert verify(store, plan, dest).passed
    assert len(verified(store, NAME)) == 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"?")


def link(path: Path) -> None:
    path.rename(path.parent.parent / "moved")
    path.symlink_to(path.parent.parent / "moved")


def extra(path: Path) -> None:
    path.with_name("more.npz").write_bytes(npz())


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (cut, [("size", "a/best.npz")]), (flip, [("hash differs", "a/best.npz")]), (Path.unlink, [("missing", "a/best.npz")]),
        (link, [("unexpected", "moved"), ("link", "a/best.npz")]), (extra, [("unexpected", "a/more.npz")]),
    ],
)  # fmt: skip
def test_a_folder_that_changed_since_the_pull(
    store: Store, plan: Plan, dest: Path, damage: Callable[[Path], None], found: list[tuple[str, str]]
) -> None:
    assert verify(store, plan, dest).passed
    damage(dest / "a" / "best.npz")
    told = verify(store, plan, dest)
    assert (told.exit_code, faults(told)) == (1, found)
    assert not (dest / "VERIFIED.json").exists()
    assert verified(store, NAME) == []  # what was verified and does not hold is taken back


def test_mended_and_verified_again_it_counts_again(store: Store, plan: Plan, dest: Path) -> None:
    assert verify(store, plan, dest).passed
    kept = (dest / "a" / "best.npz").read_bytes()
    cut(dest / "a" / "best.npz")
    assert not verify(store, plan, dest).passed
    (dest / "a" / "best.npz").write_bytes(kept)
    assert verify(store, plan, dest).passed
    assert [mark.name[-2:] for mark in verified(store, NAME)] == ["-1"]


def test_it_is_held_against_the_newest_plan(store: Store, plan: Plan, dest: Path) -> None:
    more = append(store, plan, "c")
    assert faults(verify(store, more, dest)) == [("other plan", None), ("roster", "c")]
    finish(store, more, "c")
    assert faults(verify(store, more, dest)) == [("other plan", None), ("roster", "c")]
    pull(store, more, dest)
    assert verify(store, more, dest).passed
    dropped = more.next(cells=(*more.cells[:2], replace(more.cells[2], dropped=True)))
    assert add_plan(store, dropped)
    assert faults(verify(store, dropped, dest)) == [("other plan", None), ("roster", "c")]


def test_a_partial_pull_never_passes(store: Store, plan: Plan, dest: Path) -> None:
    more = append(store, plan, "c")
    begin(store, more, "c")
    pull(store, more, dest)
    told = verify(store, more, dest)
    assert (faults(told), told.faults[0].what) == ([("roster", "c")], "it is running")


def test_nothing_of_nothing_never_passes(store: Store, dest: Path) -> None:
    plan = planned(store, "a")
    none = plan.next(cells=(replace(plan.cells[0], dropped=True),))
    assert add_plan(store, none)
    pull(store, none, dest)
    told = verify(store, none, dest)
    assert (told.passed, told.exit_code, told.faults) == (False, 5, ())
    assert verified(store, NAME) == []


def test_as_many_as_expected(store: Store, plan: Plan, dest: Path) -> None:
    assert faults(verify(store, plan, dest, expect=3)) == [("count", None)]


def test_without_a_manifest_nothing_was_pulled(store: Store, plan: Plan, dest: Path) -> None:
    (dest / "MANIFEST.json").unlink()
    with pytest.raises(UsageError, match=r"dibs sweep pull .* writes it"):
        verify(store, plan, dest)
    (dest / "MANIFEST.json").write_text('{"files": [{"path": "../../etc/passwd"}]}')
    with pytest.raises(UsageError, match="cannot be used"):
        verify(store, plan, dest)


class Bomb:
    """A pickle that, loaded, makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_under_whatever_name_is_not_run(store: Store, dest: Path, tmp_path: Path) -> None:
    names = ["b.npy", "b.npz", "b.json", "b.safetensors", "b.csv", "b.toml", "b.pkl", "b.joblib"]
    told = of_files(store, dest, {name: pickle.dumps(Bomb(tmp_path / "boom")) for name in names})
    assert {fault.path: fault.kind for fault in told.faults} == {
        f"a/{name}": "not loaded" if name in ("b.pkl", "b.joblib") else "does not load" for name in names
    }
    assert not (tmp_path / "boom").exists()


def test_an_array_of_objects_is_a_pickle_too(store: Store, dest: Path, tmp_path: Path) -> None:
    told = of_file(store, dest, "best.npz", npz(w=np.array([Bomb(tmp_path / "boom")], dtype=object)))
    assert faults(told) == [("does not load", "a/best.npz")]
    assert not (tmp_path / "boom").exists()


def test_a_pickle_is_loaded_by_who_trusts_it(store: Store, dest: Path, tmp_path: Path) -> None:
    told = of_file(store, dest, "best.pkl", pickle.dumps(Bomb(tmp_path / "boom")), Rules(allow_pickle=True))
    assert (told.passed, (tmp_path / "boom").exists()) == (True, True)


def test_a_pickle_of_arrays_has_to_be_finite(store: Store, dest: Path) -> None:
    data = pickle.dumps({"w": [np.ones(3), np.array([1.0, np.inf])], "loss": float("nan")})
    told = of_file(store, dest, "best.pkl", data, Rules(allow_pickle=True))
    assert (faults(told), told.faults[0].what) == ([("not finite", "a/best.pkl")], "NaN or an infinity in loss, w[1]")


def test_an_array_of_objects_has_to_be_finite_in_what_it_holds(store: Store, dest: Path) -> None:
    fine = np.array([np.ones(2), np.ones(3), None, "x"], dtype=object)
    odd = np.array([np.ones(2), {"w": [np.array([np.nan])]}], dtype=object)
    files = {"fine.pkl": pickle.dumps(fine), "odd.pkl": pickle.dumps({"w": odd})}
    told = of_files(store, dest, files, Rules(allow_pickle=True))
    assert [(fault.path, fault.what) for fault in told.faults] == [("a/odd.pkl", "NaN or an infinity in w")]


def safetensors(header: dict[str, Any], data: bytes) -> bytes:
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


F32 = np.arange(4, dtype="<f4").tobytes()
BF16_INF = struct.pack("<HH", 0x3F80, 0xFF80)
TWO = {"a": tensor("F32", [2, 2], 0, 16), "b": tensor("BF16", [2], 16, 20)}


BAD: list[tuple[str, bytes, str, str]] = [
    ("m.npz", npz(w=np.array([1.0, np.nan])), "not finite", "in w"),
    ("m.npz", npz(w=np.array([1 + np.inf * 1j])), "not finite", "in w"),
    ("m.npz", npz()[:-40], "does not load", "zip"),
    ("m.npy", npz(), "does not load", "archive"),
    ("m.npy", b"\x93NUMPY\x01\x00", "does not load", ""),
    ("m.json", b'{"loss": NaN}', "not finite", "in loss"),
    ("m.json", b'{"runs": [{"auc": 1}, {"auc": -Infinity}]}', "not finite", "in runs[1].auc"),
    ("m.json", b'{"loss": 1e999}', "not finite", "in loss"),
    ("m.json", b'{"loss": 1, "loss": 2}', "does not load", "the key 'loss' is there twice"),
    ("m.json", b'{"loss": 1', "does not load", "not JSON"),
    ("m.json", b"[" * 200_000, "does not load", "nested too deeply"),
    ("m.jsonl", b'{"loss": 1}\n{"loss": NaN}\n', "not finite", "in line 2.loss"),
    ("m.jsonl", b'{"loss": 1}\n{\n', "does not load", "line 2"),
    ("m.jsonl", b"\n", "does not load", "no line"),
    ("m.csv", b"epoch,loss\n1,0.5\n2,nan\n", "not finite", "loss in line 3"),
    ("m.csv", b"epoch,loss\n1,0.5,9\n", "does not load", "3 fields"),
    ("m.csv", b"epoch,loss\n", "does not load", "no row"),
    ("m.csv", b"", "does not load", "no header"),
    ("m.tsv", b"epoch\tloss\n1\t-inf\n", "not finite", "loss in line 2"),
    ("m.toml", b"loss = nan\n", "not finite", "in loss"),
    ("m.log", b"", "does not load", "empty"),
    ("m.safetensors", safetensors(TWO, F32 + BF16_INF), "not finite", "in b"),
    ("m.safetensors", safetensors({"a": tensor("F8_E5M2", [2], 0, 2)}, b"\x01\x7c"), "not finite", "in a"),
    ("m.safetensors", safetensors({"a": tensor("F8_E4M3", [2], 0, 2)}, b"\x01\xff"), "not finite", "in a"),
    ("m.safetensors", safetensors(TWO, F32), "does not load", "take 20 bytes, and there are 16"),
    ("m.safetensors", safetensors({"a": tensor("F32", [3], 0, 16)}, F32), "does not load", "as its shape says"),
    ("m.safetensors", safetensors({"a": tensor("F32", [2], 8, 16)}, F32), "does not load", "begins at byte 8"),
    ("m.safetensors", safetensors({"a": tensor("F32", [-2, -2], 0, 16)}, F32), "does not load", "shape or a place"),
    ("m.safetensors", safetensors({"a": tensor("X1", [4], 0, 16)}, F32), "does not load", "a type nobody knows"),
    ("m.safetensors", safetensors({"a": {"dtype": "F32"}}, F32), "does not load", "nothing one can use"),
    ("m.safetensors", safetensors({}, b""), "does not load", "holds no tensor"),
    ("m.safetensors", struct.pack("<Q", 2**62) + b"{}", "does not load", "no header"),
    ("m.safetensors", b"", "does not load", "no header"),
    ("m.bin", b"x", "not loaded", "nobody knows"),
    ("m", b"x", "not loaded", "nobody knows"),
]


def test_what_does_not_load_or_is_not_finite_is_named(store: Store, dest: Path) -> None:
    told = of_files(store, dest, {f"{at}/{name}": data for at, (name, data, _, _) in enumerate(BAD)})
    found = {fault.path: fault for fault in told.faults}
    assert {path: fault.kind for path, fault in found.items()} == {
        f"a/{at}/{name}": kind for at, (name, _, kind, _) in enumerate(BAD)
    }
    said = {at: found[f"a/{at}/{name}"].what for at, (name, _, _, _) in enumerate(BAD)}
    assert {at: what for at, what in said.items() if BAD[at][3] not in what or "\n" in what} == {}


GOOD: list[tuple[str, bytes, str]] = [
    ("m.npz", npz(w=np.ones(3), names=np.array(["x"]), t=np.zeros(2, [("f", "f4"), ("k", "i4")])), "npz"),
    ("m.json", b'\xef\xbb\xbf{"loss": 0.5, "none": null}', "json"),
    ("m.jsonl", b'{"loss": 1}\n\n{"loss": 2}', "jsonl"),
    ("m.csv", b"epoch,loss\r\n1,0.5\r\n2,\r\n", "csv"),
    ("m.toml", b"loss = 0.5\n", "toml"),
    ("m.log", b"epoch 1\n\xff\n", "text"),
    ("M.SafeTensors", safetensors({**TWO, "__metadata__": {"x": "y"}}, F32 + b"\0\0\0\0"), "safetensors"),
    ("m.safetensors", safetensors({"a": tensor("F32", [0], 0, 0)}, b""), "safetensors"),
]


def test_what_loads(store: Store, dest: Path) -> None:
    told = of_files(store, dest, {f"{at}/{name}": data for at, (name, data, _) in enumerate(GOOD)})
    kinds = [how for _, _, how in GOOD] + ["json"]  # the record
    assert (faults(told), told.loaded) == ([], {kind: kinds.count(kind) for kind in kinds})


@pytest.mark.parametrize("name", ["m.pth", "m.parquet"])
def test_without_its_library_a_file_is_not_verified(store: Store, dest: Path, name: str) -> None:
    library = {"m.pth": "torch", "m.parquet": "pyarrow"}[name]
    try:
        __import__(library)
    except ImportError:
        told = of_file(store, dest, name, pickle.dumps(Bomb(dest / "boom")))
        assert (faults(told), library in told.faults[0].what) == ([("not loaded", f"a/{name}")], True)
    else:
        told = of_file(store, dest, name, pickle.dumps(Bomb(dest / "boom")))
        assert faults(told) == [("does not load", f"a/{name}")]
    assert not (dest / "boom").exists()


def test_a_torch_that_is_not_safe_is_not_asked(
    store: Store, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "torch.py").write_text('__version__ = "2.5.1+cpu"\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "old"), *sys.path]))
    told = of_file(store, dest, "m.pth", b"x")
    assert (faults(told), "2.6 or later" in told.faults[0].what) == ([("not loaded", "a/m.pth")], True)


def test_a_bomb_of_zeros_costs_an_error(store: Store, dest: Path) -> None:
    import io

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (1 << 30,)})
        packed.writestr("w.npy", head.getvalue() + bytes(1 << 20))
    told = of_file(store, dest, "m.npz", file.getvalue(), Rules(memory=256 << 20))
    assert (faults(told), "--memory" in told.faults[0].what) == ([("does not load", "a/m.npz")], True)


LOADERS = """
import os, time
def good(path):
    print("noise on stdout")
    return {"weights": [1.0, 2.0]}
def nan(path):
    return {"weights": [1.0, float("nan")]}
def wrong(path):
    raise RuntimeError("not\\nmine")
def dies(path):
    os.kill(os.getpid(), 9)
def leaves(path):
    os._exit(3)
def sleeps(path):
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("function", "found", "said"),
    [
        ("good", [], ""),
        ("nan", ["not finite"], "in weights[1]"),
        ("wrong", ["does not load"], "RuntimeError: not mine"),
        ("dies", ["does not load"], "signal 9"),
        ("leaves", ["does not load"], "exit status 3"),
        ("sleeps", ["does not load"], "--timeout"),
        ("nothere", ["not loaded"], "cannot be had"),
    ],
)
def test_a_loader_of_ones_own(
    store: Store,
    dest: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    found: list[str],
    said: str,
) -> None:
    (tmp_path / "mine.py").write_text(LOADERS)
    monkeypatch.chdir(tmp_path)
    rules = Rules(loaders=(("*.bin", f"mine:{function}"),), time_s=3.0 if function == "sleeps" else 60.0, jobs=1)
    told = of_file(store, dest, "m.bin", b"x", rules)
    assert [fault.kind for fault in told.faults] == found
    assert not found or said in told.faults[0].what
    assert told.loaded["json"] == 1  # the record, by whatever process came next


def test_what_is_let_pass_is_told(store: Store, dest: Path) -> None:
    told = of_file(store, dest, "m.bin", b"x", Rules(allow_unloaded=("*.bin",)))
    assert (told.passed, told.unloaded) == (True, ("a/m.bin",))
    (mark,) = verified(store, NAME)
    assert mark.body["unloaded"] == ["a/m.bin"]


def test_infinities_may_be_let_pass_by_name(store: Store, dest: Path) -> None:
    told = of_file(store, dest, "m.npz", npz(mask=np.array([-np.inf])), Rules(allow_not_finite=("a/*.npz",)))
    assert told.passed


def test_a_module_that_lies_here_shadows_none(
    store: Store, plan: Plan, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dest.parent / "here").mkdir()
    monkeypatch.chdir(dest.parent / "here")
    Path("numpy.py").write_text("raise SystemExit(9)")
    assert verify(store, plan, dest).passed


def test_kinds_by_name() -> None:
    assert kind_of("a/best.PTH") == "torch"
    assert kind_of("a/b.bin", [("*.bin", "torch")]) == "torch"
    assert kind_of("a/b.bin", [("b/*", "x:y")]) is None
    assert loader_of("*.bin=pkg.mod:load") == ("*.bin", "pkg.mod:load")
    for wrong in ("", "x", "*.bin=", "=a:b", "*.bin=a.b", "*.bin=a:b;c"):
        with pytest.raises(UsageError, match="is no loader"):
            loader_of(wrong)
    assert len(ARTIFACTS) == len(result())


def test_where_the_folder_cannot_be_written_nothing_is_written_down_and_nobody_sees_a_traceback(
    store: Store, plan: Plan, dest: Path
) -> None:
    (dest / "VERIFIED.json").mkdir()  # whatever his rights: nobody can put a file there, or unlink it
    with pytest.raises(StoreError, match=r"VERIFIED.json cannot be written"):
        verify(store, plan, dest)
    assert verified(store, NAME) == []
    (dest / "a" / "metrics.json").write_bytes(b"{}")
    with pytest.raises(StoreError, match="does not hold any more, and cannot be removed"):
        verify(store, plan, dest)


def test_what_does_not_hold_on_a_read_only_disk_is_told(
    store: Store, plan: Plan, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))  # also for what is not there

    (dest / "a" / "metrics.json").write_bytes(b"{}")
    monkeypatch.setattr(Path, "unlink", refuses)
    assert faults(verify(store, plan, dest)) == [("size", "a/metrics.json")]
