"""What a search of scikit-learn's is known by: the same on every machine that means the same, another for all others.

Nothing here trusts ``repr``: it holds addresses, which differ from process to process, and leaves out the middle of long
arrays and texts, where two searches may differ. A function is its name where that finds it again, else its code too.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import joblib
import numpy as np

from dibs.errors import UsageError

__all__ = ["identity"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST = 50


def identity(*parts: Any) -> str:
    """SHA-256 of everything that is said here: data, estimators, functions, spaces.

    Raises UsageError for what cannot be told apart from others of its kind (an open file, say, or an endless nest).
    """
    return hashlib.sha256(repr([_said(part, 0) for part in parts]).encode("utf-8", "surrogatepass")).hexdigest()


def _said(thing: Any, depth: int) -> Any:
    """The thing in texts and lists of texts, whose ``repr`` is whole and has no addresses."""
    if depth > _DEEPEST:
        raise UsageError(
            "a search is known by what is in its estimator and scoring, and these are nested without an end"
        )
    kind = type(thing)
    if kind in _PLAIN:
        return [kind.__name__, repr(thing)]
    if isinstance(thing, type):
        return ["class", thing.__module__, thing.__qualname__]
    if isinstance(thing, FunctionType | BuiltinFunctionType | np.ufunc):
        return _function(thing, depth)
    if isinstance(thing, MethodType):
        return ["method", thing.__name__, _said(thing.__self__, depth + 1)]
    if isinstance(thing, functools.partial):
        return ["partial", *(_said(part, depth + 1) for part in (thing.func, thing.args, thing.keywords))]
    if kind in (list, tuple):
        return [kind.__name__, *(_said(each, depth + 1) for each in thing)]
    if isinstance(thing, Mapping):
        rows = ([_said(name, depth + 1), _said(each, depth + 1)] for name, each in thing.items())
        return ["mapping", *sorted(rows, key=repr)]
    if isinstance(thing, set | frozenset):
        return ["set", *sorted((_said(each, depth + 1) for each in thing), key=repr)]
    if hasattr(thing, "columns") and hasattr(thing, "dtypes"):
        return _table(thing, depth)
    if hasattr(thing, "get_params"):
        return ["estimator", _said(kind, depth), _said(thing.get_params(deep=False), depth + 1)]
    return _object(thing, depth)


def _table(thing: Any, depth: int) -> Any:
    """A table by its columns: how it lies in memory depends on what has been done to it."""
    columns = [str(thing[name].dtype) + joblib.hash(np.asarray(thing[name])) for name in thing.columns]
    return ["table", _said(list(thing.columns), depth + 1), columns]


def _object(thing: Any, depth: int) -> Any:
    """What pickles in a way of its own (arrays, generators of random numbers) by its bytes, else by its attributes."""
    kind = type(thing)
    if kind in (np.ndarray, np.memmap):  # whatever its order in memory, and wherever that is
        return ["array", list(thing.shape), joblib.hash(np.ascontiguousarray(np.asarray(thing)))]
    if isinstance(thing, np.ma.MaskedArray):
        return ["masked", *(_object(np.asarray(part), depth) for part in (thing.data, np.ma.getmaskarray(thing)))]
    if not any("__reduce__" in vars(base) or "__reduce_ex__" in vars(base) for base in kind.__mro__[:-1]):
        state = thing.__getstate__()  # not vars(): what an object would not pickle, such as a time, is not it
        if isinstance(state, dict):
            return ["object", _said(kind, depth), _said(state, depth + 1)]
    try:
        return ["bytes", joblib.hash(thing)]
    except Exception as wrong:  # whatever an object's own way of being pickled may raise
        raise UsageError(
            f"a search is known by what is in its estimator and scoring, and {type(thing).__name__} there cannot be told "
            f"from another one ({wrong})"
        ) from None


def _function(thing: Any, depth: int) -> Any:
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__qualname__", thing.__name__)
    said = ["function", module, name]
    if not isinstance(thing, FunctionType) or (module != "__main__" and _found(module, name) is thing):
        return said
    held = [cell.cell_contents for cell in thing.__closure__ or () if _is_full(cell)]
    return [*said, _code(thing.__code__, depth), _said([thing.__defaults__, thing.__kwdefaults__, held], depth + 1)]


def _found(module: str, name: str) -> Any:
    """What another process finds under the name."""
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError, ValueError):
        return None


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 because an empty one raises
    except ValueError:  # its own name, before it has been given
        return False
    return True


def _code(code: CodeType, depth: int) -> Any:
    consts = [_code(c, depth + 1) if isinstance(c, CodeType) else _said(c, depth + 1) for c in code.co_consts]
    return [code.co_code.hex(), consts, list(code.co_names)]
