"""Spaces and points as JSON, TOML and words on a command line.

Whatever the text, the outcome is a space, a point, or one SpaceError that names the parameter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from dibs.errors import SpaceError

from ._numeric import Float, Int
from ._param import Choice, Constant, Param
from ._values import Value, shown, typed, value_from_json

if TYPE_CHECKING:
    from ._space import Space

__all__ = ["params_from_json", "params_from_plain", "params_from_toml", "point_from_text"]

_FIELDS = {
    "float": {"log", "prior", "step", "when"},
    "int": {"log", "prior", "step", "when"},
    "choice": {"ordered", "prior", "when"},
    "constant": {"when"},
}


def params_from_json(obj: Any) -> Iterator[tuple[str, Param]]:
    """(name, parameter) of the ``space`` of a study.json."""
    if not isinstance(obj, Mapping):
        raise SpaceError(f"a space is a table of parameters, not {shown(obj)}")
    for name, spec in obj.items():
        try:
            yield name, _param(spec)
        except SpaceError as error:
            raise SpaceError(f"{shown(name)}: {error}", parameter=name if isinstance(name, str) else None) from None


def _param(spec: Any) -> Param:
    if not isinstance(spec, Mapping):
        raise SpaceError(f'{shown(spec)} is no parameter: write e.g. {{"float": [0, 1]}}')
    kinds = [kind for kind in _FIELDS if kind in spec]
    if len(kinds) != 1:
        raise SpaceError(
            f'a parameter has one of {", ".join(_FIELDS)}, such as {{"float": [0, 1]}}, not {shown(sorted(map(str, spec)))}'
        )
    kind, given = kinds[0], spec[kinds[0]]
    unknown = [key for key in spec if key != kind and key not in _FIELDS[kind]]
    if unknown:
        raise SpaceError(f"unknown field {shown(unknown[0])}; {kind} knows {', '.join(sorted(_FIELDS[kind]))}")
    options = {key: spec[key] for key in _FIELDS[kind] if key in spec}
    if "when" in options:
        options["when"] = _when(options["when"])
    if kind == "constant":
        return Constant(value_from_json(given), **options)
    if type(given) is not list:
        raise SpaceError(f"{kind} is followed by a list, not {shown(given)}")
    if kind == "choice":
        if "prior" in options:
            options["prior"] = value_from_json(options["prior"])
        return Choice(*map(value_from_json, given), **options)
    if len(given) != 2:
        raise SpaceError(f"{kind} is followed by [low, high], not {shown(given)}")
    return Float(*given, **options) if kind == "float" else Int(*given, **options)


def _when(obj: Any) -> Any:
    if not isinstance(obj, Mapping):
        raise SpaceError(f'when is followed by {{"parent": ["value", ...]}}, not {shown(obj)}')
    return {
        parent: [value_from_json(v) for v in values] if type(values) is list else value_from_json(values)
        for parent, values in obj.items()
    }


def params_from_toml(text: str) -> Iterator[tuple[str, Param]]:
    """(name, parameter) of a space written in TOML: the tables of the JSON, a bare list for a choice, a bare
    value for a constant, a list within a list for a tuple."""
    import tomllib  # a worker reads JSON

    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"the space is not valid TOML: {error}") from None
    return params_from_plain(tables)


def params_from_plain(tables: Any) -> Iterator[tuple[str, Param]]:
    """The same of what a parser has made of a TOML or YAML file."""
    if not isinstance(tables, Mapping):
        raise SpaceError(f"a space is a table of parameters, not {shown(tables)}")
    return params_from_json({name: _toml_param(value) for name, value in tables.items()})


def _toml_param(value: Any) -> Any:
    if type(value) is list:
        return {"choice": [_tuples(v) for v in value]}
    if type(value) is not dict:
        return {"constant": value}
    spec = dict(value)
    if type(spec.get("choice")) is list:
        spec["choice"] = [_tuples(v) for v in spec["choice"]]
    if "prior" in spec:
        spec["prior"] = _tuples(spec["prior"])
    if "constant" in spec:
        spec["constant"] = _tuples(spec["constant"])
    if type(spec.get("when")) is dict:
        spec["when"] = {p: [_tuples(v) for v in x] if type(x) is list else x for p, x in spec["when"].items()}
    return spec


def _tuples(value: Any) -> Any:
    return {"tuple": [_tuples(item) for item in value]} if type(value) is list else value


def point_from_text(space: Space, text: str) -> dict[str, Value]:
    """The point that ``lr=0.1 opt=adam`` or a JSON object stands for, not yet checked as a whole."""
    if not text.lstrip().startswith("{"):
        return _by_name(_words(space, text))
    try:
        point: dict[str, Value] = json.loads(text, object_pairs_hook=_object)
    except SpaceError:
        raise
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"the point is not valid JSON: {error}") from None
    return point


def _object(pairs: list[tuple[str, Any]]) -> Any:
    """A JSON object within the text of a point: the point, or a tuple inside it."""
    if len(pairs) == 1 and pairs[0][0] == "tuple" and type(pairs[0][1]) is list:
        return {"tuple": pairs[0][1]}
    return _by_name((name, partial(value_from_json, _tuples(value))) for name, value in pairs)


def _words(space: Space, text: str) -> Iterator[tuple[str, Callable[[], Value]]]:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SpaceError(f"cannot read {shown(text)}: {error}") from None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise SpaceError(f"cannot read {shown(word)}: write name=value")
        yield name, partial(_read, space.params.get(name), value)


def _by_name(pairs: Iterable[tuple[str, Callable[[], Value]]]) -> dict[str, Value]:
    point: dict[str, Value] = {}
    for name, value in pairs:
        if name in point:
            raise SpaceError(f"{name} is given twice", parameter=name)
        try:
            point[name] = value()
        except SpaceError as error:
            raise SpaceError(f"{name}: {error}", parameter=name) from None
    return point


def _read(param: Param | None, text: str) -> Value:
    if param is None:
        return text  # an unknown name, which the check of the whole point reports
    if isinstance(param, Float | Int):
        try:
            return float(text) if isinstance(param, Float) else int(text)
        except ValueError:
            kind = "a number" if isinstance(param, Float) else "an int"
            raise SpaceError(f"{shown(text)} is not {kind}") from None
    allowed = [param.cell(k) for k in range(param.cells or 0)]
    meant = {typed(reading) for reading in _readings(text)}
    found = [value for value in allowed if typed(value) in meant or text == repr(value)]
    if not found:  # a person's 1 may be a 1.0 if there is no 1
        found = [value for value in allowed if type(value) is float and text.strip() == f"{value:g}"]
    if len(found) == 1:
        return found[0]
    if not found:
        raise SpaceError(f"{shown(text)} is not one of {shown(allowed)}")
    raise SpaceError(f"{shown(text)} may mean {' or '.join(map(shown, found))}: write the point as JSON")


def _readings(text: str) -> Iterator[Value]:
    """What a word may mean: itself, or a JSON value."""
    yield text
    try:
        yield value_from_json(_tuples(json.loads(text)))
    except (ValueError, RecursionError):  # SpaceError is a ValueError
        return
