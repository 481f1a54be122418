"""Federated averaging in memory: exports of several clients become one. Pure.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data" (AISTATS 2017), with the
coordinate median and trimmed mean of Yin et al., "Byzantine-Robust Distributed Learning" (ICML 2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np

from dibs.errors import UpdateError, UsageError

from ._exports import Flat, Layout, difference, flatten, layout_of, unflatten
from ._rules import Rule, combine, squares, weights_of
from ._values import Array, Tensor, finite, is_float

__all__ = ["Averaged", "average", "averaged_pieces", "demand_base", "fedavg", "scales_of", "unfit"]

_PIECE = 1 << 16  # values of one client that are looked at together: fixed, as sums of squares depend on it
_AT_ONCE = 1 << 22  # values of all clients together


@final
@dataclass(frozen=True, slots=True)
class Averaged:
    """``tensors`` as the exports were; ``weights``: each client's part (None: it was not weighed); ``rejected``: who
    is not in, and why."""

    tensors: dict[str, Any]
    weights: dict[str, float | None]
    rejected: dict[str, str] = field(default_factory=dict)


def fedavg(
    exports: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    sizes: Mapping[str, float] | Sequence[float] | None = None,
    *,
    robust: str | None = None,
    clip: float | None = None,
    base: Mapping[str, Any] | None = None,
    bad: Literal["stop", "drop"] = "stop",
    others: Literal["first", "max"] = "first",
) -> dict[str, Any]:
    """The average of the clients' tensors, in their own types; the same exports give the same bits on every machine.

    ``exports``: by client (any order: they are taken in the order of their names) or a list of them; each is
    ``{tensor: array}`` or ``{node: {tensor: array}}``. ``sizes``: what each weighs, such as how many examples it learned
    from; for all or for none. ``robust``: ``"median"`` or ``"trimmed:0.1"``, value by value, which weigh nobody.
    ``clip``: no client's floats may be farther than that (Euclidean, over all of them) from ``base``; who is, is moved
    towards it. ``bad``: with NaN or an infinity, ``"stop"`` raises and ``"drop"`` goes on without that client
    (``average`` tells which). ``others``: tensors that are no floats, the ``"first"`` client's or the ``"max"``.

    Accumulated in float64. Raises UpdateError, which names client and tensor, and UsageError.
    """
    rule = Rule(robust, clip, bad, others)
    return average(exports, sizes, rule=rule, base=base).tensors


def average(
    exports: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    sizes: Mapping[str, float] | Sequence[float] | None = None,
    *,
    rule: Rule | None = None,
    base: Mapping[str, Any] | None = None,
) -> Averaged:
    """As ``fedavg``, and who weighed what, and who was left out why. Raises UpdateError, UsageError."""
    rule = rule or Rule()
    named = _named(exports)
    if not named:
        raise UsageError("there is nothing to average: give the exports of one client at least")
    flat = {client: flatten(export, client) for client, export in named.items()}
    first = next(iter(flat))
    nested = flat[first][1]
    for client, (tensors, by_node) in flat.items():
        _demand_alike(client, tensors, by_node, first, flat[first])
    sized = _sizes(sizes, list(flat))
    weights_of(sized, rule)  # what is wrong with the sizes is wrong whoever is dropped
    origin = _base(base, rule, flat[first][0])
    rejected = {client: why for client, (tensors, _) in flat.items() if (why := unfit(tensors)) is not None}
    if rejected and rule.bad == "stop":
        client, why = next(iter(rejected.items()))
        raise UpdateError(f"the update of {client!r} was rejected: {why}", client=client)
    left = {client: tensors for client, (tensors, _) in flat.items() if client not in rejected}
    if not left:
        raise UpdateError("no client is left: " + "; ".join(f"{client!r}: {why}" for client, why in rejected.items()))
    weights = weights_of({client: sized[client] for client in left}, rule)
    scales = scales_of(list(left.values()), rule, origin)
    done = {
        name: _whole(averaged_pieces(name, list(left.values()), rule, weights, scales, origin), tensor)
        for name, tensor in next(iter(left.values())).items()
    }
    told: dict[str, float | None] = dict(zip(left, weights, strict=True)) if weights else dict.fromkeys(left)
    return Averaged(unflatten(done, nested), told, rejected)


def unfit(tensors: Flat) -> str | None:
    """Why an update cannot be averaged at all, None if it can: the first tensor with NaN or an infinity."""
    for name in sorted(tensors):
        tensor = tensors[name]
        words = tensor.words.reshape(-1)
        if not all(finite(words[at : at + _PIECE], tensor.dtype) for at in range(0, len(words), _PIECE)):
            return f"tensor {name!r} holds NaN or an infinity"
        if tensor.dtype == "BOOL" and bool((words.view(np.uint8) > 1).any()):
            return f"tensor {name!r} holds bytes that are neither true nor false"
    return None


def scales_of(clients: Sequence[Flat], rule: Rule, base: Flat | None) -> list[float] | None:
    """How much of each client's way from the base is gone, so that nobody is farther than ``rule.clip``; None: all."""
    if rule.clip is None:
        return None
    scales = []
    for tensors in clients:
        total = 0.0
        for name in sorted(tensors):
            if is_float(tensors[name].dtype):
                total += _squared(tensors[name], base[name] if base is not None else None)
        far = math.sqrt(total)
        scales.append(1.0 if far <= rule.clip else rule.clip / far)
    return scales


def _squared(tensor: Tensor, base: Tensor | None) -> float:
    words, origin = tensor.words.reshape(-1), base.words.reshape(-1) if base is not None else None
    total = 0.0
    with np.errstate(over="ignore"):  # then it is infinitely far
        for at in range(0, len(words), _PIECE):
            part = origin[at : at + _PIECE] if origin is not None else None
            total += squares(words[at : at + _PIECE], part, tensor.dtype)
    return total


def averaged_pieces(
    name: str,
    clients: Sequence[Flat],
    rule: Rule,
    weights: Sequence[float] | None,
    scales: Sequence[float] | None,
    base: Flat | None,
) -> Iterator[Array]:
    """One tensor's average, piece by piece (flat words): memory does not grow with the tensor, nor with the clients.

    Raises UpdateError if it is not finite: nobody could go on with that.
    """
    flat = [tensors[name].words.reshape(-1) for tensors in clients]
    dtype = clients[0][name].dtype
    origin = base[name].words.reshape(-1) if base is not None and scales is not None else None
    step = max(1024, min(_PIECE, _AT_ONCE // len(clients)))
    for at in range(0, len(flat[0]), step):
        part = origin[at : at + step] if origin is not None else None
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            piece = combine([words[at : at + step] for words in flat], dtype, rule, weights, scales, part)
        if not finite(piece, dtype):
            raise UpdateError(f"the average of tensor {name!r} is beyond what {dtype} holds", tensor=name)
        yield piece


def _whole(pieces: Iterator[Array], like: Tensor) -> Tensor:
    words = np.empty(like.words.size, like.words.dtype)
    at = 0
    for piece in pieces:
        words[at : at + len(piece)] = piece
        at += len(piece)
    return Tensor(like.dtype, words.reshape(like.shape))


def _named(exports: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    if isinstance(exports, Mapping):
        return {client: exports[client] for client in sorted(exports)}
    return {str(at): export for at, export in enumerate(exports)}


def _sizes(sizes: Mapping[str, float] | Sequence[float] | None, clients: list[str]) -> dict[str, float | None]:
    if sizes is None:
        return dict.fromkeys(clients)
    if not isinstance(sizes, Mapping):
        if len(sizes) != len(clients):
            raise UsageError(f"there are {len(sizes)} sizes for {len(clients)} clients: one for each, or none at all")
        return dict(zip(clients, sizes, strict=True))
    if unknown := sorted(set(sizes) - set(clients)):
        raise UsageError(f"there is a size of {unknown[0]!r}, which exports nothing")
    return {client: sizes.get(client) for client in clients}


def _base(base: Mapping[str, Any] | None, rule: Rule, like: Flat) -> Flat | None:
    """The tensors that clipping measures from: none of them means that exports are differences already."""
    if base is None:
        return None
    if rule.clip is None:
        raise UsageError("base is what clip measures from: give clip, too, or leave base out")
    tensors, _ = flatten(base, "base")
    demand_base(tensors, layout_of(like))
    return tensors


def demand_base(base: Flat, layout: Layout) -> None:
    """Raises UpdateError for a base of another layout, and for one with NaN or an infinity."""
    found = difference(layout_of(base), layout)
    if found is not None:
        raise UpdateError(f"tensor {found[0]!r} of the base {found[1]}", client="base", tensor=found[0])
    if why := unfit(base):
        raise UpdateError(f"the base cannot be used: {why}", client="base")


def _demand_alike(client: str, tensors: Flat, by_node: bool, first: str, there: tuple[Flat, bool]) -> None:
    if by_node != there[1]:
        raise UpdateError(f"{client!r} and {first!r} differ: only one of them exports node by node", client=client)
    found = difference(layout_of(tensors), layout_of(there[0]))
    if found is not None:
        name, what = found
        what = what.replace("elsewhere", f"in {first!r}")
        raise UpdateError(f"tensor {name!r} of {client!r} {what} (compared with {first!r})", client=client, tensor=name)
