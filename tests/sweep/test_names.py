"""Names of cells: folders on every file system, each once, and the cure for two that are one."""

from __future__ import annotations

import pytest

from dibs.errors import UsageError
from dibs.sweep._names import check_apart, check_name, name_of, naming_of
from dibs.sweep._queue import Row


def row(
    cfg: object = "configs/a.toml", task: str = "seg", line: int = 1, name: str | None = None, **more: object
) -> Row:
    return Row(line, {"cfg": cfg, "task": task, **more}, name)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("template", "name"),
    [("{stem}", "a.b"), ("{task}-{stem}", "seg-a.b"), ("x_{lr}", "x_0.001"), ("{{}", None), ("{stem}{{", None)],
)
def test_a_template_of_columns(template: str, name: str | None) -> None:
    if name is None:
        with pytest.raises((UsageError, ValueError)):
            name_of(row(), naming_of(template))
    else:
        assert name_of(row("c/a.b.toml", lr=0.001), naming_of(template)) == name


@pytest.mark.parametrize("name", ["a", "A-1_x.y", "a" * 100, "console", "nullable", "a.con"])
def test_what_can_be_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", "../x", "a/b", "a\\b", "😀", "ä", "a b", "a\n", ".hidden", "..", "-rf", "a.", "a" * 101, "x" * 300,
        "CON", "con", "nul.toml", "COM1", "lpt9.x", "a\0", "$(id)", "a:b", "*",
    ],
)  # fmt: skip
def test_what_cannot_be_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a cell"):
        check_name(name)
    with pytest.raises(ValueError, match="from the column name"):
        name_of(row(name=name), naming_of("{stem}"))


def test_a_template_that_nothing_fills() -> None:
    with pytest.raises(
        ValueError, match=r"\{seed\} of --name '\{seed\}' has no value here; there is \{cfg\}, \{stem\}"
    ):
        name_of(row(), naming_of("{seed}"))
    with pytest.raises(ValueError, match=r"no cfg .*, add a column name, or say --name .*, such as '\{lr\}-\{seed\}'$"):
        name_of(Row(1, {"config": "c/a.toml", "lr": 0.1, "seed": 1, "task": "t"}), naming_of("{stem}"))
    with pytest.raises(ValueError, match="there is '/' in it"):
        name_of(row(), naming_of("{cfg}"))
    with pytest.raises(UsageError, match="calls every cell the same"):
        naming_of("x")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (row(), row(task="det"), "q:1 and q:2: both are 'a'; tell them apart with --name '{task}-{stem}'"),
        (row(epochs=1), row(epochs=2), "tell them apart with --name '{epochs}-{stem}'"),
        (row("x/A.toml"), row("y/a.toml", seed=3), "'A' and 'a' are one name but for capitals; tell them apart"),
        (row(), row(), "they say the same: remove one of them"),
        (row(name="a"), row(), "give one of them another name in the column name"),
        (
            row(),
            None,
            "that cell is in the sweep already: uncomment its line, if it is a comment now, or give the new one a name of its own",
        ),
    ],
)
def test_two_of_one_name(one: Row, other: Row | None, said: str) -> None:
    naming = naming_of("{stem}")
    second = (name_of(other, naming), "q:2", other) if other else ("a", "q:2", None)
    with pytest.raises(UsageError) as raised:
        check_apart([(name_of(one, naming), "q:1", one), second], naming)
    assert said in str(raised.value)


def test_the_cure_is_one() -> None:
    rows = [row("a.toml", task, n, lr=lr) for n, (task, lr) in enumerate([("s", 1), ("s", 2), ("d", 1), ("d", 2)], 1)]
    naming = naming_of("{stem}")
    with pytest.raises(UsageError) as raised:
        check_apart([("a", f"q:{each.line}", each) for each in rows], naming)
    template = str(raised.value).rsplit("--name '", 1)[1].removesuffix("'")
    check_apart([(name_of(each, naming_of(template)), f"q:{each.line}", each) for each in rows], naming_of(template))
