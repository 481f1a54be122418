"""Federation for those who have state_dicts: tensors become arrays on their way to a store, and tensors again on the way back.

Nothing is pickled, and BF16 stays BF16. All is on the CPU when it comes back; ``load_state_dict`` takes it from there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from dibs import federation
from dibs.federation import Gathered, Tensor
from dibs.store import Store

__all__ = ["arrays", "fedavg", "gather", "latest", "state_dict"]

Exports = Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]


def arrays(export: Mapping[str, Any]) -> dict[str, Any]:
    """A state_dict (or several, by node) as what ``dibs.federation`` takes. What is no tensor is left as it is."""
    return {name: arrays(value) if isinstance(value, Mapping) else _array(value) for name, value in export.items()}


def state_dict(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of ``arrays``: tensors on the CPU, that share memory with nothing."""
    return {
        name: state_dict(value) if isinstance(value, Mapping) else _tensor(value) for name, value in tensors.items()
    }


def fedavg(
    exports: Exports, sizes: Mapping[str, float] | Sequence[float] | None = None, **options: Any
) -> dict[str, Any]:
    """``dibs.federation.fedavg`` of state_dicts, as a state_dict, with the same guarantees, options and errors."""
    named: Any = (
        {client: arrays(export) for client, export in exports.items()}
        if isinstance(exports, Mapping)
        else [arrays(export) for export in exports]
    )
    return state_dict(federation.fedavg(named, sizes, **_options(options)))


def gather(store: Store | str | os.PathLike[str], export: Mapping[str, Any] | None, **options: Any) -> Gathered:
    """``dibs.federation.gather`` of a state_dict; ``tensors`` is a state_dict, with the same guarantees, options and errors."""
    told = federation.gather(store, None if export is None else arrays(export), **_options(options))
    return replace(told, tensors=state_dict(told.tensors))


def latest(store: Store | str | os.PathLike[str], run: str) -> Gathered | None:
    """``dibs.federation.latest``, as a state_dict."""
    told = federation.latest(store, run)
    return None if told is None else replace(told, tensors=state_dict(told.tensors))


def _options(options: dict[str, Any]) -> dict[str, Any]:
    base = options.get("base")
    return options if base is None else {**options, "base": arrays(base)}


def _array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        return Tensor("BF16", plain.view(torch.int16).numpy().view("<u2"))
    return plain.numpy()


def _tensor(value: Any) -> torch.Tensor:
    if isinstance(value, Tensor):
        return torch.from_numpy(value.words.astype("<u2").view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))
