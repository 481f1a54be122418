"""Command lines with holes: every argument exact, nothing run that was only a value, nothing filled that is unknown."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.cell import Line, Words, check_values, parse, text_of, variables_of
from dibs.errors import UsageError

HOSTILE = [
    "",
    " ",
    "a b",
    "$(touch /tmp/x)",
    "`id`",
    "'",
    '"',
    "\\",
    "a\nb",
    "*",
    "ü€😀",
    "{lr}",
    "-x",
    ";&|<>",
    "\x01\x1b[31m",
]
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{lr}", "0.1"), ("--lr={lr}", "--lr=0.1"), ("{{lr}}", "{lr}"), ("{{{lr}}}", "{0.1}"), ("a{lr}b{lr}", "a0.1b0.1"),
        ("", ""), ("}}{{", "}{"), ("{two words}", "2"),
    ],
)  # fmt: skip
def test_holes_are_filled_and_doubled_braces_are_braces(text: str, filled: str) -> None:
    assert parse(text).fill({"lr": "0.1", "two words": "2"}) == filled


@pytest.mark.parametrize("text", ["{", "}", "{}", "a{b", "{a{b}", "{{}"])
def test_a_lone_brace_is_refused_with_the_cure(text: str) -> None:
    with pytest.raises(UsageError, match=r"write \{\{ or \}\} for a brace"):
        parse(text)


@pytest.mark.parametrize("command", [Words.of(["x", "{tipo}"]), Line.of("x {tipo}")])
def test_an_unknown_name_is_refused_with_those_there_are(command: Words | Line) -> None:
    with pytest.raises(
        UsageError, match=r"\{tipo\} in .* is nothing that could be filled in; there is \{lr\}, \{out\}"
    ):
        command.check({"out", "lr"})
    command.check({"tipo"})


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["p", "--m", "{m}", "z"], ["p", "z"]),
        (["p", "--m={m}", "z"], ["p", "z"]),
        (["p", "-m", "{m}"], ["p"]),
        (["p", "q", "{m}"], ["p", "q"]),  # not an option: it stays
        (["p", "--a=b", "{m}"], ["p", "--a=b"]),  # has its value already
        (["p", "--m", "x{m}"], ["p", "--m"]),  # a word of its own, whatever stands before it
        (["p", "-1", "{m}"], ["p", "-1"]),
        (["p", "--", "{m}"], ["p", "--"]),
        (["p", "--m", "{m}", "{m}"], ["p"]),  # one option goes with one value
        (["p", "--{a}", "{m}"], ["p", "--1"]),
        (["{m}", "{m}"], []),
    ],
)
def test_a_value_that_is_absent_takes_its_option_along(words: list[str], left: list[str]) -> None:
    assert Words.of(words).filled({"a": "1"})[0] == left


@given(st.lists(TEXTS, max_size=4))
def test_a_value_is_one_argument_whatever_is_in_it(values: list[str]) -> None:
    fields = {f"v{at}": value for at, value in enumerate(values)}
    argv, more = Words.of(["p", *(f"{{{name}}}" for name in fields)]).filled(fields)
    assert argv == ["p", *values]
    assert more == {}


@pytest.mark.parametrize("value", HOSTILE)
def test_a_shell_line_gets_a_value_as_one_argument_and_runs_none_of_it(value: str) -> None:
    line = Line.of("printf '%s|' pre{v}post {v} && printf '[%s]' {w}")
    argv, more = line.filled({"v": value})
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin", **more}, capture_output=True, check=True)
    assert done.stdout.decode() == f"pre{value}post|{value}|[]"
    shown = subprocess.run(["/bin/sh", "-c", line.shown({"v": value})], capture_output=True, check=True)
    assert shown.stdout == done.stdout  # what a dry run prints does the same


@pytest.mark.parametrize("line", ["echo '{v}'", 'echo "{v}"', 'x="a b" "$(y {v})"', "echo 'it'\\'' {v}'"])
def test_a_hole_within_quotes_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="without quotes around it"):
        Line.of(line)


@pytest.mark.parametrize(
    "line",
    [
        "printf %s \\{v}",  # the backslash would take the quote away
        'echo "$(printf %s "{v}")"',  # quotes begin anew in there
        'echo "$(printf %s ")" {v})"',
        '# "\nprintf %s "{v}"',  # a quote in a comment opens nothing
        "true # it's\nprintf %s '{v}'",
        "echo # {v}",
        "echo `printf %s {v}`",
        "cat <<EOF\n{v}\nEOF",  # there quotes are text
    ],
)
def test_a_hole_is_refused_where_its_quotes_would_not_be_quotes(line: str) -> None:
    with pytest.raises(UsageError, match="stands within"):
        Line.of(line)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "line",
    [
        "true {v} # it's \"{{\nprintf %s {v} | cat",
        'a=$(printf %s {v}; echo .); printf %s "${{a%.}}" # $( \'',
        '(true {v}) && printf %s "$(echo "")"{v}',
        ": {v}#\"\" $((1<<2)) {v} a#'b'; printf %s {v}",
        'echo "`echo \'"\'`" > /dev/null; printf %s {v}',
    ],
)
def test_a_value_is_one_argument_beside_comments_and_commands(line: str, value: str) -> None:
    argv, more = Line.of(line).filled({"v": value})
    done = subprocess.run(argv, env={"PATH": "/usr/bin:/bin", **more}, capture_output=True, check=True)
    assert done.stdout.decode() == value


def test_quotes_that_are_closed_or_escaped_are_none() -> None:
    for line in ["echo 'a' {v}", 'echo "a\\"b" {v}', "echo \\' {v}", "echo \\\" {v} 'x'"]:
        Line.of(line)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "0.1"), (1e-5, "1e-05"), (1.0, "1.0"), (1, "1"), (True, "true"), (None, "null"), ("a b", "a b"), ("1", "1"),
     ((1, "x"), '[1, "x"]'), ("é", "é")],
)  # fmt: skip
def test_values_are_texts_of_any_language(value: object, text: str) -> None:
    assert text_of(value) == text


def test_the_environment_says_the_same() -> None:
    base = {"PATH": "/bin", "DIBS_PARAM_OLD": "1", "DIBS_PREVIOUS": "x", "WANDB_TAGS": "mine", "PYTHONUNBUFFERED": "0"}
    found = variables_of(base, {"lr": 0.1, "k-fold": 3}, {"out": "/o", "trial": "7"}, "s-7-0", "s")
    assert found == {
        "PATH": "/bin", "WANDB_TAGS": "mine", "WANDB_RUN_GROUP": "s", "PYTHONUNBUFFERED": "0", "DIBS_OUT": "/o",
        "DIBS_TRIAL": "7", "DIBS_PARAM_LR": "0.1", "DIBS_PARAM_K_FOLD": "3", "DIBS_POINT": '{"lr": 0.1, "k-fold": 3}',
        "DIBS_RUN_NAME": "s-7-0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "values", "said"),
    [
        (["a-b", "a_b"], [], "'a-b' and 'a_b' would both be DIBS_PARAM_A_B"),
        (["x"], ["a\0b"], "a zero character"),
        (["x"], ["\ud800"], "not valid Unicode"),
    ],
)
def test_what_no_program_can_be_given_is_refused(names: list[str], values: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_values(names, values)
