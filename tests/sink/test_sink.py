"""One process: what is recorded, what comes back, which of several equals, and what is said when something is not there."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from tests.sink.looks import elsewhere, files, found, listed

import dibs
from dibs import Sink, SinkRecord
from dibs.errors import StoreError, UsageError
from dibs.sink import _best, _folder, _marks, _sink


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    monkeypatch.setenv("DIBS_SINK_DIR", str(tmp_path))
    with Sink.create() as sink:
        yield sink


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("holds a socket")


class Unloadable:
    def __reduce__(self) -> Any:
        return open, ("/nowhere/model",)


def test_the_best_comes_back_with_all_that_was_said_of_it(sink: Sink) -> None:
    assert sink.best() is None
    assert sink.record(0.5, artifact={"weights": [1, 2]}, params={"lr": 0.1, "shape": (3, 4)}, epochs=3, self="kept")
    assert not sink.record(0.4, artifact="worse", params={"lr": 0.2})
    assert not sink.record(0.5, artifact="an equal that no parameters tell from it")
    assert found(sink) == SinkRecord(
        score=0.5, params={"lr": 0.1, "shape": (3, 4)}, scalars={"epochs": 3, "self": "kept"},
        artifact={"weights": [1, 2]}, artifact_error=None, matched_best_params=None, tied_count=1, artifact_is_winner=True,
        artifact_score=0.5, artifact_params={"lr": 0.1, "shape": (3, 4)}, artifact_scalars={"epochs": 3, "self": "kept"},
        skipped=0,
    )  # fmt: skip
    assert files(sink) == ["blob", "kept", "seen"]


def test_lower_may_be_better(tmp_path: Path) -> None:
    sink = Sink(tmp_path, maximize=False)
    assert [sink.record(score) for score in (3, 4, 2, float("-inf"), float("nan"))] == [True, False, True, False, False]
    assert found(sink).score == 2.0
    assert sink.is_better(1, 2)
    assert sink.is_better(1, None)
    assert not sink.is_better(2, 1)
    assert not sink.is_better(1, 1.0)
    assert not sink.is_better(float("-inf"), 1)
    assert not sink.is_better(None, None)


@pytest.mark.parametrize("many", [10_001, 3])
def test_scalars_come_back_however_many_and_however_deep(sink: Sink, many: int) -> None:
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    assert sink.record(1.0, artifact="x", deep=deep, long=list(range(20_000)), **{f"m{k}": k for k in range(many)})
    best = found(sink)
    assert (best.score, best.artifact, best.skipped) == (1.0, "x", 0)
    assert (len(best.scalars), best.scalars["m2"]) == (many + 2, 2)


def test_a_record_does_not_raise_whatever_fails(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(size: int) -> bytes:
        raise NotImplementedError("no source of chance")

    monkeypatch.setattr(os, "urandom", fails)
    assert not sink.record(1.0, artifact="x")
    monkeypatch.undo()
    assert sink.record(1.0, artifact="x")


def test_only_one_blob_stays(sink: Sink) -> None:
    for score in range(5):
        assert sink.record(score, artifact=score)
    assert files(sink) == ["blob", "kept", "seen"]
    assert found(sink).artifact == 4


def test_a_winner_without_artefact_has_the_best_there_is_with_its_own_numbers(sink: Sink) -> None:
    assert sink.record(1.0, artifact="good", params={"x": 1}, n=1)
    assert sink.record(3.0, params={"x": 3}, n=3)
    assert sink.record(2.0, artifact="better", params={"x": 2}, n=2)
    best = found(sink)
    assert (best.score, best.params, best.scalars, best.artifact_is_winner) == (3.0, {"x": 3}, {"n": 3}, False)
    assert (best.artifact, best.artifact_score, best.artifact_params, best.artifact_scalars) == (
        "better", 2.0, {"x": 2}, {"n": 2},
    )  # fmt: skip
    assert best.artifact_error is None


def test_what_cannot_be_pickled_is_said_and_the_score_is_kept(sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
    assert sink.record(1.0, artifact="good")
    assert sink.record(2.0, artifact=Unpicklable())
    best = found(sink)
    assert (best.score, best.artifact, best.artifact_score, best.artifact_is_winner) == (2.0, "good", 1.0, False)
    assert best.artifact_error == "could not be pickled: RuntimeError: holds a socket"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert not sink.record(1.5, artifact=Unpicklable())
    assert len(caplog.records) == 1


def test_what_cannot_be_unpickled_is_said_and_no_other_is_tried(sink: Sink) -> None:
    assert sink.record(1.0, artifact="good")
    assert sink.record(2.0, artifact=Unloadable())
    best = found(sink)
    assert (best.score, best.artifact, best.artifact_is_winner, best.artifact_score) == (2.0, None, False, None)
    assert best.artifact_error is not None
    assert best.artifact_error.startswith("could not be unpickled: FileNotFoundError: ")


def test_a_blob_that_is_cut_or_gone_is_said(sink: Sink) -> None:
    assert sink.record(2.0, artifact=list(range(100)))
    (blob,) = Path(sink.folder).glob("blob-*")
    whole = blob.stat().st_size
    os.truncate(blob, 10)
    assert found(sink).artifact_error == f"has 10 bytes of {whole}"
    blob.unlink()
    assert (found(sink).artifact_error or "").startswith("could not be read: ")
    assert found(sink).artifact_score is None


def test_a_blob_replaced_while_it_is_looked_for(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sink.record(1.0, artifact="old")
    read = _best.read

    def overtaken(folder: str) -> Any:
        entries = read(folder)
        sink.record(2.0, artifact="new")
        return entries

    monkeypatch.setattr(_best, "read", overtaken)
    assert (found(sink).artifact, found(sink).score) == ("new", 2.0)


def test_at_most_one_artefact_is_unpickled(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    for process in range(8):
        assert elsewhere(sink, process // 2, artifact=process)
    loaded = []
    monkeypatch.setattr(pickle, "load", lambda file: loaded.append(file.name))
    assert found(sink).tied_count == 2
    assert len(loaded) == 1


# ---- files that are not what they should be


@pytest.mark.parametrize(
    "content",
    ["", "{", "null", "[]", "{}", '{"v":1,"trial":"x","score":NaN,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0}',
     '{"v":1,"trial":"x","score":9.0,"params":{"what":1},"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":[],"boot":"","tick":0.0,"wall":0.0}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0,"blob":"../../etc/passwd"}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0,"blob":"blob-/../x"}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0,"blob":"blob-\\u0000"}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0,"blob":"blob-\\ud800"}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0,"bytes":Infinity}',
     '{"v":1,"trial":"x","score":9.0,"params":null,"scalars":{"dict":[]},"boot":"","tick":NaN,"wall":0.0}',
     '{"v":1,"trial":"x","score":9.0,"params":{"float":N},"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0}'.replace("N", "9" * 400),
     '{"v":1,"trial":"x","score":9.0,"params":N,"scalars":{"dict":[]},"boot":"","tick":0.0,"wall":0.0}'.replace("N", "[" * 450 + "]" * 450),
     "[" * 100_000, "9" * 10_000, "\udcff"],
)  # fmt: skip
def test_an_unreadable_file_is_passed_over_and_counted(
    sink: Sink, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    Path(sink.folder, "kept-1-ab.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert sink.best() is None
    assert sink.record(1.0, artifact="good")
    Path(sink.folder, "seen-1-ab.json").mkdir()
    caplog.clear()
    best = found(sink, {"lr": 0.1})
    assert (best.score, best.artifact, best.skipped) == (1.0, "good", 2)
    assert [record.getMessage() for record in caplog.records] == [
        f"2 files in {sink.folder} could not be read and are passed over: kept-1-ab.json, seen-1-ab.json"
    ]
    assert elsewhere(sink, 2.0)  # by a process that looks at what others have before it begins
    Path(sink.folder, "seen-1-ab.json").rmdir()


# ---- the object, and the folder


def test_it_is_a_path_and_a_flag(sink: Sink, tmp_path: Path) -> None:
    assert len(pickle.dumps(sink)) < 200
    assert len(cloudpickle.dumps(sink)) < 200
    assert not hasattr(sink, "__dict__")
    for copied in (copy.deepcopy(sink), pickle.loads(pickle.dumps(sink)), Sink(sink.folder)):
        assert copied == sink
        assert hash(copied) == hash(sink)
        assert copied.maximize
    assert sink != Sink(sink.folder, maximize=False)
    assert repr(sink) == f"Sink({sink.folder!r}, maximize=True)"
    with os.scandir(os.fsencode(tmp_path)) as entries:
        in_bytes = next(entries)  # a path, and no text
    for folder in (None, "", "a\0b", 3, in_bytes):
        with pytest.raises(UsageError, match=r"is no folder: .* Sink\.create\(\)"):
            Sink(folder)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="maximize=1: True if a higher score is better"):
        Sink.create(maximize=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [dibs, dibs.sink, _sink], ids=lambda module: module.__name__)
def test_by_value_it_is_refused_with_the_reason(sink: Sink, module: Any) -> None:
    cloudpickle.register_pickle_by_value(module)
    try:
        for refused in (lambda: cloudpickle.dumps(lambda: sink), lambda: pickle.dumps(sink), Sink.create):
            with pytest.raises(UsageError, match=r"shipped by value: .* high-water marks .*unregister_pickle_by_value"):
                refused()
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert pickle.loads(cloudpickle.dumps(sink)) == sink


@pytest.mark.parametrize("home", ["joblib.externals", "ray", "pyspark"])
def test_copies_that_others_have_of_cloudpickle_are_asked_too(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    copied = types.ModuleType(f"{home}.cloudpickle")
    copied.list_registry_pickle_by_value = lambda: {"numpy", "dibs"}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, copied.__name__, copied)
    with pytest.raises(UsageError, match="shipped by value"):
        pickle.dumps(sink)


def test_others_may_be_shipped_by_value(sink: Sink) -> None:
    import tests.sink.disk as other

    cloudpickle.register_pickle_by_value(other)
    try:
        assert pickle.loads(cloudpickle.dumps(sink)) == sink
    finally:
        cloudpickle.unregister_pickle_by_value(other)


def test_without_cloudpickle_it_is_pickle(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert sink.record(1.0, artifact="plain")
    assert sink.record(2.0, artifact=lambda: 1)
    assert (found(sink).artifact, found(sink).artifact_score) == ("plain", 1.0)
    assert (found(sink).artifact_error or "").startswith("could not be pickled: ")


def test_an_artefact_is_pickled_by_the_copy_that_is_loaded(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = types.ModuleType("joblib.externals.cloudpickle")
    copied.dumps = lambda artifact, protocol: pickle.dumps("by joblib's")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, copied.__name__, copied)
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert sink.record(1.0, artifact=lambda: 1)
    assert found(sink).artifact == "by joblib's"


def test_the_folder_is_private_and_goes_with_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIBS_SINK_DIR", str(tmp_path))
    with Sink.create() as sink:
        assert Path(sink.folder).parent == tmp_path
        assert Path(sink.folder).stat().st_mode & 0o777 == 0o700
        assert sink.record(1.0, artifact="x")
    assert listed(tmp_path) == []
    sink.cleanup()
    assert not sink.record(2.0)
    with pytest.raises(StoreError, match=r"call best\(\) before cleanup\(\)"):
        sink.best()


def test_a_copy_in_a_worker_leaves_the_folder_alone(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_folder, "_made", {})  # as in another process
    with pickle.loads(pickle.dumps(sink)) as copied:
        assert copied.record(1.0)
    assert found(sink).score == 1.0
    monkeypatch.undo()


def test_cleanup_removes_nothing_that_is_not_a_sinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    sink = Sink(tmp_path)
    assert sink.record(1.0, artifact="x")
    sink.cleanup()
    assert listed(tmp_path) == ["thesis.tex"]
    assert "could not be removed" in caplog.text


@pytest.mark.parametrize("place", ["file", "file/below", "gone", "a\0b"])
def test_a_place_that_cannot_be_used_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "environ", {**os.environ, "DIBS_SINK_DIR": str(tmp_path / place)})
    with Sink.create() as sink:
        assert sink.record(1.0)
        assert tmp_path not in Path(sink.folder).parents
    assert "DIBS_SINK_DIR" in caplog.text


def test_a_relative_place_is_absolute_for_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIBS_SINK_DIR", ".")
    with Sink.create() as sink:
        assert Path(sink.folder).parent == tmp_path


def test_no_place_at_all_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIBS_SINK_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(StoreError, match="let DIBS_SINK_DIR name a folder that can be written"):
        Sink.create()


def test_very_many_at_once(tmp_path: Path) -> None:
    sinks = [Sink(tmp_path / str(k)) for k in range(200)]
    for sink in sinks:
        Path(sink.folder).mkdir()
    for score in (1.0, 3.0, 2.0):
        answers = {sink.record(score, artifact=score) for sink in sinks}
        assert answers == {score != 2.0}
    assert {found(sink).artifact for sink in sinks} == {3.0}
    assert {len(listed(sink.folder)) for sink in sinks} == {3}


def test_marks_of_folders_that_are_gone_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_marks, "_marks", {})
    monkeypatch.setattr(_marks, "_many", 64)
    for k in range(500):
        folder = tmp_path / str(k)
        folder.mkdir()
        assert Sink(folder).record(1.0)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    assert len(_marks._marks) <= 64


def test_threads_of_one_process_share_its_marks(sink: Sink) -> None:
    start = threading.Barrier(8)

    def work(k: int) -> None:
        start.wait()
        for score in range(50):
            sink.record(score * 8 + k, artifact=(k, score), params=k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    best = found(sink)
    assert (best.score, best.artifact, best.params, best.tied_count) == (399.0, (7, 49), 7, 1)
    assert files(sink) == ["blob", "kept", "seen"]


class Recording:
    """An artefact whose own pickling records a better one."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def __reduce__(self) -> Any:
        assert self.sink.record(9.0, artifact="inner")
        return str, ("outer",)


def test_a_record_within_a_record(sink: Sink) -> None:
    assert not sink.record(5.0, artifact=Recording(sink))
    assert (found(sink).score, found(sink).artifact) == (9.0, "inner")


def test_a_record_by_a_signal_in_the_middle_of_a_commit(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = _sink.commit

    def interrupted(folder: str, mark: Any, *args: Any) -> Any:
        monkeypatch.setattr(_sink, "commit", commit)
        mark.busy = True
        assert sink.record(9.0, artifact="signal's")
        return commit(folder, mark, *args)

    monkeypatch.setattr(_sink, "commit", interrupted)
    assert sink.record(5.0, artifact="first")
    assert (found(sink).score, found(sink).artifact) == (9.0, "signal's")
    assert sink.record(6.0, artifact="less") is False
