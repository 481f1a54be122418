"""Can a store lie in this folder? One machine looks; several race each other there, which is the only proof.

Works on a path with plain system calls and with the very claims of a store; knows no study.
"""

from ._bucket import BucketJoined, BucketRace, join_bucket
from ._joined import join, site_of
from ._local import checkup
from ._models import Checkup, Clocks, Delay, Finding, Guest, Joined, Method, Stamps
from ._stamps import step_text

__all__ = [
    "BucketJoined", "BucketRace", "Checkup", "Clocks", "Delay", "Finding", "Guest", "Joined", "Method", "Stamps", "checkup", "join", "join_bucket", "site_of",
    "step_text",
]  # fmt: skip
