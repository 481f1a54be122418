"""Records: bytes to frozen structs and back, and the format's version. The only importer of msgspec."""

from ._codec import FORMAT, decode, decode_trial, encode, nonce_of
from ._structs import CLOSED, STATES, TrialRecord, Who

__all__ = ["CLOSED", "FORMAT", "STATES", "TrialRecord", "Who", "decode", "decode_trial", "encode", "nonce_of"]
