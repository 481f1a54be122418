"""What clients export: tensors by name, flat or node by node; checked against each other and named where they differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dibs.errors import UpdateError

from ._values import Tensor, as_tensor, plain_value

__all__ = ["Flat", "Layout", "difference", "flatten", "layout_of", "unflatten"]

Flat = Mapping[str, Tensor]
Layout = Mapping[str, tuple[str, tuple[int, ...]]]


def flatten(export: Mapping[str, Any], client: str) -> tuple[dict[str, Tensor], bool]:
    """The tensors by name in sorted order, and whether they came node by node (then a name is ``node/tensor``).

    Raises UpdateError, which names the client and the tensor.
    """
    if not isinstance(export, Mapping) or not export:
        raise UpdateError(
            f"{client!r} exports no tensors: give {{name: array}} or {{node: {{name: array}}}}", client=client
        )
    nested = [isinstance(value, Mapping) for value in export.values()]
    names: dict[str, Any] = dict(export)
    if any(nested):
        if not all(nested):
            raise UpdateError(f"{client!r} mixes nodes and tensors: give either, not both", client=client)
        names = {}
        for node, tensors in export.items():
            _name(node, client)
            if "/" in node or not tensors:
                what = "has a / in its name" if "/" in node else "holds no tensor"
                raise UpdateError(f"node {node!r} of {client!r} {what}", client=client)
            names |= {f"{node}/{_name(name, client)}": value for name, value in tensors.items()}
    for name in names:
        _name(name, client)
    return {name: as_tensor(names[name], client, name) for name in sorted(names)}, any(nested)


def _name(name: object, client: str) -> str:
    if not isinstance(name, str) or not name or name == "__metadata__":
        raise UpdateError(f"{name!r} of {client!r} is no name of a tensor", client=client)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UpdateError(f"{name!r} of {client!r} is not valid Unicode", client=client) from None
    return name


def unflatten(tensors: Mapping[str, Tensor], nested: bool) -> dict[str, Any]:
    """As they came: arrays by name, or by node and name."""
    if not nested:
        return {name: plain_value(tensor) for name, tensor in tensors.items()}
    nodes: dict[str, Any] = {}
    for whole, tensor in tensors.items():
        node, _, name = whole.partition("/")
        nodes.setdefault(node, {})[name] = plain_value(tensor)
    return nodes


def layout_of(tensors: Flat) -> Layout:
    """Type and shape of each tensor."""
    return {name: tensor.layout for name, tensor in tensors.items()}


def difference(ours: Layout, theirs: Layout) -> tuple[str, str] | None:
    """(tensor, what is different) for the first tensor in which two layouts differ; None if they are the same."""
    for name in sorted({*ours, *theirs}):
        if name not in theirs:
            return name, "is one too many"
        if name not in ours:
            return name, "is missing"
        (dtype, shape), (type_there, shape_there) = ours[name], theirs[name]
        if dtype != type_there:
            return name, f"is of type {dtype}, elsewhere of {type_there}"
        if tuple(shape) != tuple(shape_there):
            return name, f"has the shape {list(shape)}, elsewhere {list(shape_there)}"
    return None
