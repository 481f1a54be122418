"""Records: bytes to frozen structs and back, and the format's version. The only importer of msgspec."""

from ._codec import (
    FORMAT,
    decode,
    decode_roll,
    decode_trial,
    decode_who,
    encode,
    nonce_of,
    records_of,
    verbatim,
)
from ._structs import CLOSED, STATES, Closed, TrialRecord, Who, is_closed

__all__ = [
    "CLOSED",
    "FORMAT",
    "STATES",
    "Closed",
    "TrialRecord",
    "Who",
    "decode",
    "decode_roll",
    "decode_trial",
    "decode_who",
    "encode",
    "is_closed",
    "nonce_of",
    "records_of",
    "verbatim",
]
