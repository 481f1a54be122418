"""Listing a folder in byte order of whole keys, without stat and without following a link.

A folder sorts as ``name/``: ``a-b/x`` comes before ``a/x`` because ``-`` is less than ``/``.
Whatever is not a folder and has a legal name is listed, a link or a FIFO too: its name is taken, and reading says why.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from stat import S_ISDIR

from dibs.backend._base import Entry
from dibs.backend._names import TEMPS, legal_segment
from dibs.backend._oserrors import store_error

__all__ = ["CLAIM", "folders_below", "version_of", "walk"]

CLAIM = ".claim"  # <key>.claim/ is a claim by mkdir
_TRIES = 3

Line = tuple[str, "os.DirEntry[str]", bool]  # sort key, entry, is a claim without its record (so far as seen)


def version_of(stat: os.stat_result, size: int) -> str:
    """Changes with every rewrite: a rewrite is a new file, so a new stamp, and mostly a new inode."""
    return f"{stat.st_mtime_ns:x}-{size:x}-{stat.st_ino:x}"


def walk(base: str, prefix: str, after: str, details: bool, claims: bool) -> Iterator[Entry]:
    """The keys below ``base + prefix`` that sort behind ``after``; nothing where there is no such folder.

    ``claims``: a folder ``<key>.claim/`` stands for its key while the record is missing.
    """
    if (after <= prefix or after.startswith(prefix)) and not _led_astray(base, prefix):
        yield from _walk(base, prefix, after, details, claims)


def _walk(base: str, prefix: str, after: str, details: bool, claims: bool) -> Iterator[Entry]:
    for line, entry, bare in sorted(_lines(base, prefix, claims), key=_sort_key):
        key = prefix + line
        if line[-1] == "/":
            inside = after.startswith(key)
            if inside or key > after:
                yield from _walk(base, key, after if inside else "", details, claims)
        elif key > after:
            found = _entry(key, entry, bare) if details else Entry(key, "", 0.0, 0 if bare else -1)
            if found is not None:
                yield found


def folders_below(base: str, prefix: str, claims: bool) -> list[str]:
    """The names of the folders directly below the prefix that hold a key at any depth, sorted."""
    if _led_astray(base, prefix):
        return []
    names = (line[:-1] for line, _, _ in _lines(base, prefix, claims) if line[-1] == "/")
    return sorted(name for name in names if _holds_a_key(base, f"{prefix}{name}/", claims))


def _sort_key(line: Line) -> str:
    return line[0]


def _lines(base: str, prefix: str, claims: bool) -> list[Line]:
    """One line per legal name in the folder; folders end in ``/``, claims with their record are left out."""
    found: dict[str, Line] = {}
    for entry in _scan(base, prefix):
        name = entry.name
        if not legal_segment(name):
            continue
        if not entry.is_dir(follow_symlinks=False):
            found[name] = (name, entry, False)
        elif claims and name.endswith(CLAIM):
            found.setdefault(name[: -len(CLAIM)], (name[: -len(CLAIM)], entry, True))
        elif prefix or name + "/" != TEMPS:
            found[name + "/"] = (name + "/", entry, False)
    return list(found.values())


def _scan(base: str, prefix: str) -> list[os.DirEntry[str]]:
    """What is in the folder; nothing if it vanished or never was. A stale handle is tried again."""
    for attempt in range(1, _TRIES + 1):
        try:
            with os.scandir(base + prefix) as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except NotADirectoryError as error:
            if os.path.isdir(base):  # noqa: PTH112 - as plain text as the rest of the listing
                return []
            raise store_error(error, "list the store at", base) from error
        except OSError as error:
            if error.errno != errno.ESTALE or attempt == _TRIES:
                raise store_error(error, "list the store's folder", base + prefix, prefix) from error
    return []


def _entry(key: str, entry: os.DirEntry[str], bare: bool) -> Entry | None:
    try:
        stat = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # removed meanwhile
    except OSError as error:
        if error.errno == errno.ESTALE:
            return None
        raise store_error(error, "look at", entry.path, key) from error
    size = 0 if bare else stat.st_size
    return Entry(key, version_of(stat, size), stat.st_mtime, size)


def _holds_a_key(base: str, prefix: str, claims: bool) -> bool:
    lines = _lines(base, prefix, claims)
    return any(line[-1] != "/" for line, _, _ in lines) or any(
        _holds_a_key(base, prefix + line, claims) for line, _, _ in lines
    )


def _led_astray(base: str, prefix: str) -> bool:
    """True if a segment of the prefix is a link: what lies behind it is not the store's."""
    end = prefix.find("/")
    while end >= 0:
        try:
            mode = os.lstat(base + prefix[:end]).st_mode
        except OSError:
            return False  # missing; the scan says so
        if not S_ISDIR(mode):
            return True
        end = prefix.find("/", end + 1)
    return False
