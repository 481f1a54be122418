"""Federated averaging: what several clients learned becomes one model, the same bits on every machine."""

from ._fedavg import Averaged, average, fedavg
from ._files import Mapped, open_tensors
from ._gather import Gathered, gather, latest
from ._optimisers import FedAdam, FedAvgM, Stepped
from ._participation import participants
from ._rules import Rule
from ._values import Tensor

__all__ = [
    "Averaged", "FedAdam", "FedAvgM", "Gathered", "Mapped", "Rule", "Stepped", "Tensor", "average", "fedavg", "gather", "latest",
    "open_tensors", "participants",
]  # fmt: skip
