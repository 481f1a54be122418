"""Queue files: what a line may be, what it may not, and that the error says where and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import UsageError
from dibs.sweep import Cell
from dibs.sweep._queue import lines_of, read_queue, written
from dibs.sweep._rosterfile import read_roster

WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=12)


def read(text: str, epochs: int | None = None) -> list[tuple[int, dict[str, object]]]:
    return [(row.line, dict(row.fields)) for row in read_queue("q", lines_of(text), epochs)]


def test_lines_keep_their_place_whatever_is_between() -> None:
    text = "\ufeff# a comment\r\n\r\na.toml seg 20\r\n   # c.toml seg 1\n\tb.toml\tdet  \n"
    assert read(text, 5) == [
        (3, {"cfg": "a.toml", "task": "seg", "epochs": 20}),
        (5, {"cfg": "b.toml", "task": "det", "epochs": 5}),
    ]
    assert read("b.toml det") == [(1, {"cfg": "b.toml", "task": "det"})]
    assert lines_of("a\n\nb") == ("a", "", "b")
    assert lines_of("") == ()


def test_words_are_quoted_as_in_a_shell() -> None:
    assert read(r"""'my configs/a b.toml' "t \"x\"" 3
c\ d.toml t#1""") == [
        (1, {"cfg": "my configs/a b.toml", "task": 't "x"', "epochs": 3}),
        (2, {"cfg": "c d.toml", "task": "t#1"}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a.toml", "'a.toml' is one word: write <cfg> <task>"),
        ("a.toml seg 20 # twenty", "5 words: a comment has a line of its own"),
        ("a.toml seg 20 21", "4 words: write <cfg> <task> .epochs., quotes around a blank in a path"),
        ("a.toml seg zwei", "epochs must be a whole number of at least 1, not 'zwei'"),
        ("a.toml seg 0", "epochs must be a whole number of at least 1, not 0"),
        ("a.toml seg -1", "epochs must be"),
        ("a.toml seg 1.5", "epochs must be"),
        ("a.toml seg ٣", "epochs must be"),
        ("'a.toml seg 1", "No closing quotation: quotes come in pairs"),
        ("a.toml seg\\", "quotes come in pairs, and a backslash"),
        ("'' seg", "an empty word"),
        ("a.toml seg\0", "a zero byte: this is no text file"),
    ],
)
def test_a_wrong_line_is_said_with_its_place(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"^q:3: .*{said}"):
        read(f"a.toml seg\n\n{line}\n")


def test_all_wrong_lines_are_counted() -> None:
    with pytest.raises(UsageError, match=r"^q:1: .*\(and 2 more wrong lines\)$"):
        read("x\ny\nz\na.toml seg\n")


@given(st.lists(st.tuples(WORDS, WORDS, st.none() | st.integers(1, 10**6))))
def test_what_is_written_reads_back(rows: list[tuple[str, str, int | None]]) -> None:
    fields = [{"cfg": cfg, "task": task} | ({} if epochs is None else {"epochs": epochs}) for cfg, task, epochs in rows]
    text = written([Cell(n, f"c{n}", each, "q", n + 1) for n, each in enumerate(fields)])
    assert text is not None
    assert [dict(row.fields) for row in read_queue("q", lines_of(text))] == fields


def test_other_columns_cannot_be_a_queue() -> None:
    assert written([Cell(0, "c", {"cfg": "a", "task": "t", "lr": 0.1}, "q", 1)]) is None
    assert written([Cell(0, "c", {"cfg": "a"}, "q", 1)]) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "the queue file q cannot be read: No such file"),
        (lambda path: path.mkdir(), "q is a folder: give the queue file itself"),
        (lambda path: path.write_bytes(b"\x80\x02\x00\xff"), "q is not UTF-8 text .byte 0."),
        (lambda path: path.write_bytes("a.toml seg".encode("utf-16")), "q is not UTF-8 text"),
    ],
)
def test_what_is_no_queue_file(make: object, said: str, tmp_path: Path) -> None:
    make(tmp_path / "q")  # type: ignore[operator]
    with pytest.raises(UsageError, match=f"^{said}"):
        read_roster("q", tmp_path / "q")


def test_a_pipe_cannot_be_read_again(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "q")
    with pytest.raises(UsageError, match="no file that could be read again"):
        read_roster("q", tmp_path / "q")
