"""Files loaded, by kind, and looked through for NaN and infinities. Runs in a process that may be killed for it.

Nothing here runs code of the file's, but for ``pickle`` and a loader of the user's, which somebody has to ask for by name.
"""

from __future__ import annotations

import csv
import re
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ._safetensors import check_safetensors
from ._strict import not_finite, strict_json

__all__ = ["load", "prepare"]

_CHUNK = 1 << 20
_DEEPEST = 100
_SAFE_TORCH = (2, 6)  # before it weights_only could be got round: CVE-2025-32434


class CannotLoad(Exception):
    """A library that is needed is not here: the sentence says which."""


def prepare(how: str) -> None:
    """Import what the kind needs, before anything is limited. Raises CannotLoad."""
    library = {"torch": "torch", "parquet": "pyarrow"}.get(how)
    try:
        if library is not None:
            found = import_module(library + (".parquet" if how == "parquet" else ""))
            if library == "torch" and _version(found) < _SAFE_TORCH:
                raise CannotLoad(
                    f"PyTorch {found.__version__} can be made to run a file's code all the same: 2.6 or later is needed"
                )
        elif ":" in how:
            _own(how)
    except (ImportError, AttributeError) as wrong:
        if library is not None:
            raise CannotLoad(f"it cannot be loaded without {library}: pip install {library}") from None
        raise CannotLoad(f"the loader {how} cannot be had: {wrong}") from None


def _version(module: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(getattr(module, "__version__", "0")))[:2])


def load(path: Path, how: str) -> tuple[str, list[str]]:
    """What it holds, in words, and the names of what is not finite. Raises whatever loading it raises."""
    if ":" in how:
        return "by " + how, _walk(_own(how)(str(path)))
    return {
        "torch": _torch, "safetensors": _safetensors, "npz": _npz, "npy": _npy, "json": _json, "jsonl": _jsonl,
        "csv": _csv, "tsv": _tsv, "parquet": _parquet, "toml": _toml, "text": _text, "pickle": _pickle,
    }[how](path)  # fmt: skip


def _torch(path: Path) -> tuple[str, list[str]]:
    import torch

    found = torch.load(path, map_location="cpu", weights_only=True)
    tensors = list(_all(found, lambda one: isinstance(one, torch.Tensor)))
    if not tensors:
        raise ValueError("it holds no tensor")
    return _several(len(tensors), "tensor"), [name for name, one in tensors if not _finite_tensor(torch, one)]


def _all(value: Any, wanted: Callable[[Any], bool], name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors, or arrays, in plain containers, and where they are."""
    if wanted(value):
        yield name or "the value", value
    elif depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _all(item, wanted, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _all(item, wanted, f"{name}[{at}]", depth + 1)


def _finite_tensor(torch: Any, tensor: Any) -> bool:
    if tensor.layout is not torch.strided:
        tensor = tensor.coalesce().values() if tensor.layout is torch.sparse_coo else tensor.values()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    if tensor.element_size() == 1:  # 8 bits have no isfinite
        tensor = tensor.to(torch.float32)
    return bool(torch.isfinite(tensor).all())


def _safetensors(path: Path) -> tuple[str, list[str]]:
    count, bad = check_safetensors(path)
    return _several(count, "tensor") + ", by dibs's own reader", bad


def _npz(path: Path) -> tuple[str, list[str]]:
    with zipfile.ZipFile(path) as packed:
        torn = packed.testzip()
        names = packed.namelist()
    if torn is not None:
        raise ValueError(f"{torn!r:.100} in it is damaged (CRC)")
    if not names:
        raise ValueError("it holds no array")
    if len(set(names)) != len(names):
        raise ValueError("it holds two arrays of one name")
    bad = []
    with np.load(path, allow_pickle=False) as found:
        for name in found.files:
            array = found[name]
            if not isinstance(array, np.ndarray):
                raise ValueError(f"{name!r:.100} in it is no array")
            if not _finite(array):
                bad.append(name)
    return _several(len(names), "array"), bad


def _npy(path: Path) -> tuple[str, list[str]]:
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an archive, and no single array")
    return f"an array of {array.shape}", [] if _finite(array) else ["the array"]


def _finite(array: Any) -> bool:
    if array.dtype.names is not None:
        return all(_finite(array[name]) for name in array.dtype.names)
    if array.dtype.kind == "O":
        return not any(_walk(one) for one in array.flat)
    return bool(array.dtype.kind not in "fc" or np.isfinite(array).all())


def _json(path: Path) -> tuple[str, list[str]]:
    return "JSON", list(not_finite(strict_json(path.read_bytes())))


def _jsonl(path: Path) -> tuple[str, list[str]]:
    lines, bad = 0, []
    with path.open("rb") as file:
        for at, line in enumerate(file, 1):
            if line.strip():
                lines += 1
                try:
                    bad += list(not_finite(strict_json(line), f"line {at}"))
                except ValueError as wrong:
                    raise ValueError(f"line {at}: {wrong}") from None
    if not lines:
        raise ValueError("it holds no line")
    return _several(lines, "line"), bad


def _csv(path: Path, delimiter: str = ",") -> tuple[str, list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True, delimiter=delimiter)
        header = next(rows, None)
        if not header:
            raise ValueError("it has no header")
        bad: list[str] = []
        count = 0
        for row in rows:
            count += 1
            if len(row) != len(header):
                raise ValueError(f"line {rows.line_num} has {len(row)} fields, and the header {len(header)}")
            bad += [f"{name} in line {rows.line_num}" for name, text in zip(header, row, strict=True) if _is_nan(text)]
    if not count:
        raise ValueError("it has a header and no row")
    return _several(count, "row"), bad


def _tsv(path: Path) -> tuple[str, list[str]]:
    return _csv(path, "\t")


def _is_nan(text: str) -> bool:
    return text.strip().lstrip("+-").casefold() in ("nan", "inf", "infinity")


def _parquet(path: Path) -> tuple[str, list[str]]:
    import pyarrow.parquet

    found = pyarrow.parquet.ParquetFile(path)
    bad: dict[str, None] = {}
    rows = 0
    for batch in found.iter_batches():
        rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not all(np.isfinite(values).all() for values in _floats_in(column)):
                bad[name] = None
    if not rows:
        raise ValueError("it holds no row")
    return _several(rows, "row"), list(bad)


def _floats_in(column: Any) -> Iterator[Any]:
    """The floats of a column, and those in its lists, structs and maps; an embedding is a list."""
    import pyarrow

    if isinstance(column, pyarrow.ExtensionArray):
        yield from _floats_in(column.storage)
    elif pyarrow.types.is_nested(column.type):
        parts = [column.keys, column.items] if isinstance(column, pyarrow.MapArray) else column.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            yield from _floats_in(part)
    elif pyarrow.types.is_floating(column.type):
        yield column.drop_null().to_numpy(zero_copy_only=False)


def _toml(path: Path) -> tuple[str, list[str]]:
    return "TOML", list(not_finite(tomllib.loads(path.read_text(encoding="utf-8"))))


def _text(path: Path) -> tuple[str, list[str]]:
    """A log may hold any bytes: it is read, and has to hold something."""
    lines = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            lines += chunk.count(b"\n")
        if not file.tell():
            raise ValueError("it is empty")
    return _several(lines, "line"), []


def _pickle(path: Path) -> tuple[str, list[str]]:
    if path.name.endswith(".joblib"):
        return "a pickle (joblib)", _walk(import_module("joblib").load(path))
    import pickle

    with path.open("rb") as file:
        return "a pickle", _walk(pickle.load(file))


def _walk(value: Any) -> list[str]:
    """Arrays, tensors, tables and numbers in plain containers that are not finite."""
    arrays = [name for name, one in _all(value, _is_array) if not _finite(np.asarray(one))]
    return [*not_finite(value), *arrays]


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and (hasattr(value, "dtype") or hasattr(value, "columns"))


def _own(how: str) -> Any:
    module, _, name = how.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _several(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
