"""Any text becomes one legal segment of a key, injectively; the same on every file system and bucket.

``a-z 0-9 . _ -`` stand for themselves, every other UTF-8 byte is ``%hh``; capitals too, because some
mounts fold case. What comes out is never empty, ``.``, ``..``, hidden, or a Windows device.
"""

from __future__ import annotations

import hashlib
import re

from dibs.errors import UsageError

__all__ = ["LIMIT_BYTES", "escape", "unescape"]

LIMIT_BYTES = 100  # longer names keep a readable prefix and a digest
_PREFIX_BYTES = 80
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-")
_DEVICES = frozenset(["con", "nul", "aux", "prn", *(f"{d}{i}" for d in ("com", "lpt") for i in range(1, 10))])

_WHOLE = re.compile(r"(?:[a-z0-9._-]|%[0-9a-f]{2})+\Z")  # "%-" marks a name that was too long
_HEX = re.compile(rb"%(..)")


def escape(name: str) -> str:
    """The segment for a name. Raises UsageError for an empty name or one that is not text."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"a name must be a text with at least one character, not {name!r}")
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the name {name!r} is not valid Unicode: choose another") from None
    units = [chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in raw]
    for end in (0, -1):
        if units[end] == ".":
            units[end] = "%2e"
    if name.split(".")[0] in _DEVICES:
        units[0] = f"%{raw[0]:02x}"
    segment = "".join(units)
    if len(segment) <= LIMIT_BYTES:
        return segment
    prefix = ""
    for unit in units:
        if len(prefix) + len(unit) > _PREFIX_BYTES:
            break
        prefix += unit
    return f"{prefix}%-{hashlib.sha256(raw).hexdigest()[:16]}"


def unescape(segment: str) -> str | None:
    """The name behind a segment, or None if it is no whole name: too long (the record has it), or foreign."""
    if not _WHOLE.match(segment):
        return None
    raw = _HEX.sub(lambda unit: bytes([int(unit[1], 16)]), segment.encode())
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
