"""Where in a shell line a value may stand: what is open after each piece of it (POSIX, 2.2, 2.3 and 2.6.3). Pure.

Only as much of a shell's grammar as decides about quotes: quotes, backslashes, comments, here-documents, and commands
within double quotes, where quotes begin anew. Where it is not sure, a value may not stand.
"""

from __future__ import annotations

__all__ = ["Shell"]

_WORD_ENDS = " \t\n;&|()<>"
_NAMES = {"\\": "a word behind a backslash", "#": "a comment", "`": "backquotes", "<": "a here-document"}


class Shell:
    """Reads a line piece by piece; between them ``value`` says that a value stands there."""

    def __init__(self) -> None:
        self._open: list[str] = []  # innermost last: ' " \ # ` < as themselves, $ before the ( of a command in quotes
        self._word = False  # the last character belongs to a word: # begins no comment

    @property
    def within(self) -> str:
        """What is open here that no value may stand in, in words; empty where one may."""
        found = next((each for each in self._open if each != "("), "")
        return _NAMES.get(found, found)

    def value(self) -> None:
        """A value stands here."""
        self._word = True

    def read(self, text: str) -> None:
        """The next piece."""
        for at, char in enumerate(text):
            self._one(char, text[at + 1 : at + 2])

    def _one(self, char: str, following: str) -> None:
        top = self._open[-1] if self._open else ""
        if top == "\\":
            self._open.pop()
        elif top == "$":  # the parenthesis itself
            self._open[-1], self._word = "(", False
        elif top in ("'", "#", "`"):
            if char == ("\n" if top == "#" else top):
                self._open.pop()
                self._word = top != "#"
            elif char == "\\" and top == "`":
                self._open.append(char)
        elif top == '"':
            if char == '"':
                self._open.pop()
            elif char in "\\`" or (char == "$" and following == "("):
                self._open.append(char)
        elif top != "<":
            self._plain(char, following)

    def _plain(self, char: str, following: str) -> None:
        arithmetic = self._open[-2:] == ["(", "("]
        if char == ")" and self._open:
            self._open.pop()
        elif char in "'\"\\`(" or (char == "#" and not self._word) or (char + following == "<<" and not arithmetic):
            self._open.append(char)
        self._word = char not in _WORD_ENDS
