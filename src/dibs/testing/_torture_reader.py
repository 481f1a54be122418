"""``dibs VERB ...`` in a process that tells of every write and lock below the store: readers have none.

``python -m dibs.testing._torture_reader STORE VERB ...``: the verb's own answer and exit code, or 97 and the list.
An audit hook (PEP 578) sees each call before it happens, whatever the file system would have said to it.
"""

from __future__ import annotations

import os
import sys

__all__ = ["WROTE", "main"]

WROTE = 97
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = (
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.utime", "os.chmod",
    "os.chown", "os.mkfifo", "os.setxattr",
)  # fmt: skip
_LOCKS = ("fcntl.flock", "fcntl.lockf", "os.lockf")


def main(arguments: list[str]) -> int:
    """Run the verb with the hook in place."""
    root, *words = arguments
    root = os.path.abspath(root)  # noqa: PTH100 - what the hook compares with is plain text
    seen: list[str] = []

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event in _LOCKS:
            seen.append(f"{event} {args}")
        opens = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
        if (opens or event in _CHANGES) and any(_below(root, arg) for arg in args[:2]):
            seen.append(f"{event} {args}")

    from dibs.cli import main as dibs

    sys.addaudithook(hook)
    code: object = 0
    try:
        dibs(words)
    except SystemExit as ended:
        code = ended.code
    if seen:
        print("a reader wrote:", *seen, sep="\n  ", file=sys.stderr)
        return WROTE
    return code if isinstance(code, int) else int(code is not None)


def _below(root: str, what: object) -> bool:
    if not isinstance(what, str | bytes | os.PathLike):
        return False
    path = os.path.abspath(os.fsdecode(what))  # noqa: PTH100
    return path == root or path.startswith(root + "/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
