"""A spam filter in numpy: hashed words, logistic regression. It knows of no store, no study and no round."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from messages import Message, normalise

WORDS = 2048  # columns; what two words share a column is rarely a matter
Array = npt.NDArray[np.float64]


class Part(NamedTuple):
    """Counts of words, a row for each message, and labels."""

    counts: Array
    spam: Array


def tokenised(messages: list[Message]) -> Part:
    """The same columns on every machine: a word's column is its checksum."""
    counts = np.zeros((len(messages), WORDS))
    for row, message in enumerate(messages):
        for word in normalise(message.text).split():
            counts[row, zlib.crc32(word.encode()) % WORDS] += 1
    return Part(counts, np.array([message.spam for message in messages], float))


def rarity(documents: Array, messages: float) -> Array:
    """How much a word tells (inverse document frequency), from in how many of all messages it occurs."""
    weights: Array = np.log((1 + messages) / (1 + documents))
    return weights


def features(part: Part, rare: Array, sublinear: bool) -> Array:
    """Rows of length one."""
    rows = (np.log1p(part.counts) if sublinear else part.counts) * rare
    scaled: Array = rows / np.maximum(1e-12, np.linalg.norm(rows, axis=1, keepdims=True))
    return scaled


def chances(model: dict[str, Any], rows: Array) -> Array:
    """The chance of spam, by row."""
    odds: Array = rows @ model["w"] + model["b"]
    return 1 / (1 + np.exp(-np.clip(odds, -30, 30)))


def train(model: dict[str, Any], rows: Array, spam: Array, lr: float, l2: float, epochs: int) -> dict[str, Any]:
    """Some steps of gradient descent, all messages at once."""
    w, b = model["w"].copy(), model["b"].copy()
    for _ in range(epochs):
        wrong = chances({"w": w, "b": b}, rows) - spam
        w -= lr * (rows.T @ wrong / len(rows) + l2 * w)
        b -= lr * wrong.mean()
    return {"w": w, "b": b}


def log_loss(model: dict[str, Any], rows: Array, spam: Array) -> float:
    """In nats; lower is better."""
    p = np.clip(chances(model, rows), 1e-12, 1 - 1e-12)
    return float(-np.mean(spam * np.log(p) + (1 - spam) * np.log(1 - p)))
