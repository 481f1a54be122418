"""Federated averaging: what several clients learned becomes one model, the same bits on every machine."""

from ._fedavg import Averaged, average, fedavg
from ._files import Mapped, open_tensors
from ._gather import Gathered, gather, latest
from ._look import Round, rounds_in, runs_in
from ._optimisers import FedAdam, FedAvgM, Stepped
from ._participation import participants
from ._rules import Rule
from ._values import Tensor
from ._verify import Verified, verify

__all__ = [
    "Averaged", "FedAdam", "FedAvgM", "Gathered", "Mapped", "Round", "Rule", "Stepped", "Tensor", "Verified", "average", "fedavg",
    "gather", "latest", "open_tensors", "participants", "rounds_in", "runs_in", "verify",
]  # fmt: skip
