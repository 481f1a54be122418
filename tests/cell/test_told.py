"""What a program says of its result, among whatever else it prints."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.cell._told import Lines, Thin, Told, told_by, told_by_file


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"score": 0.1}', Told(0.1)),
        (b'  {"step": 3, "score": 2, "more": []}\r', Told(2.0, step=3)),
        (b'50%|###  |\r{"score": 0.5}', Told(0.5)),
        (b'{"step": 3.0, "score": "inf"}', Told(math.inf, step=3)),
        (b'{"scores": [1, 2.5]}', Told(scores=(1.0, 2.5))),
        (b'{"score": 1, "constraints": {"gb": -0.5}}', Told(1.0, constraints={"gb": -0.5})),
        (b"0.25", None), (b"", None), (b"{", None), (b'{"loss": 1}', None), (b'["score"]', None), (b'"{score}"', None),
        (b'x {"score": 1}', None), (b'{"score": 1} x', None), (b'{"a": {"score": 1}}', None), (b'{"score": }', None),
        (b'{"score": 1' + b"0" * 5000 + b"}", None),  # more digits than Python reads
        (b'{"score": ' + b"[" * 9000 + b"]" * 9000 + b"}", None), (b'{"score": "\xff\xfe"}', None),
    ],
)  # fmt: skip
def test_a_line_of_stdout(line: bytes, told: Told | None) -> None:
    assert told_by(line) == told


@pytest.mark.parametrize("score", ["NaN", "null", '"nan"', '"NaN"'])
def test_nan_in_every_language(score: str) -> None:
    told = told_by(f'{{"score": {score}}}'.encode())
    assert told is not None
    assert told.score is not None
    assert math.isnan(told.score)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"score": "good"}', '"score" must be a number'), (b'{"score": true}', "must be a number"),
        (b'{"score": 1' + b"0" * 400 + b"}", "too large"), (b'{"score": 1, "step": -1}', '"step" must be'),
        (b'{"score": 1, "step": 0.5}', '"step" must be'), (b'{"scores": 3}', "a list of numbers"),
        (b'{"score": 1, "constraints": [1]}', "numbers by name"), (b'{"score": 1, "step": NaN}', '"step" must be'),
    ],
)  # fmt: skip
def test_what_was_meant_to_be_a_result_and_is_none(line: bytes, said: str) -> None:
    told = told_by(line)
    assert told is not None
    assert said in told.wrong


@pytest.mark.parametrize(
    ("data", "score"), [(b"0.25\n", 0.25), (b'{"score": 3}', 3.0), (b"-inf", -math.inf), (b'\n{"score":\n1}\n', 1.0)]
)
def test_a_result_file(data: bytes, score: float) -> None:
    assert told_by_file(data) == Told(score)


@pytest.mark.parametrize("data", [b"\xff\x00", b"good", b"[1]", b'{"loss": 1}', b'"x"', b"true"])
def test_a_result_file_that_is_none_says_what_to_write(data: bytes) -> None:
    assert told_by_file(data).wrong


@given(st.lists(st.binary(max_size=8), max_size=8), st.lists(st.integers(0, 5), max_size=12))
def test_lines_come_out_whole_however_the_bytes_arrive(parts: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(parts)
    lines, found = Lines(), []
    rest = data
    for cut in cuts:
        found += lines.feed(rest[:cut])
        rest = rest[cut:]
    found += [*lines.feed(rest), *lines.close()]
    expected = data.split(b"\n")
    assert found == (expected if expected[-1] else expected[:-1])


def test_a_line_without_end_is_not_held() -> None:
    lines, found = Lines(), []
    for _ in range(1000):
        found += lines.feed(b"x" * 10_000)
    assert len(lines._rest) == 0
    found += [*lines.feed(b'\n{"score": 1}\n'), *lines.close()]
    assert found == [b'{"score": 1}']


def test_of_an_endless_curve_ever_fewer_steps_are_kept_and_always_the_same() -> None:
    thin = Thin()
    kept = [at for at in range(1_000_000) if thin.keeps()]
    assert kept[:1000] == list(range(1000))
    assert 3000 < len(kept) < 7000
    assert max(b - a for a, b in pairwise(kept)) <= 1024
