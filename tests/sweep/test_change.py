"""What may be done to a queue that is planned: lines appended, commented, uncommented. Everything else is shown and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dibs.errors import RefusedError
from dibs.sweep._change import Change, compare

OLD = ("# cells", "a.toml t 1", "", "#b.toml t 2")


@pytest.mark.parametrize(
    ("new", "change"),
    [
        (OLD, Change()),
        ((*OLD, "c.toml t 3", "# x"), Change(appended=(5, 6))),
        (("# cells", "# a.toml t 1", "", "#b.toml t 2"), Change(dropped=(2,))),
        (("# cells", "  ##a.toml t 1  broken, see the mail", "", "#b.toml t 2"), Change(dropped=(2,))),
        (("# cells", "a.toml t 1", "", "b.toml t 2"), Change(restored=(4,))),
        (("# other words", "a.toml t 1   ", "", "# b.toml t 2 later"), Change()),
    ],
)
def test_what_may_be_done(new: tuple[str, ...], change: Change) -> None:
    assert compare("q", OLD, new) == change


@pytest.mark.parametrize(
    "new",
    [
        OLD[:3],
        ("a.toml t 1", "", "#b.toml t 2", "c.toml t 1"),
        ("# cells", "a.toml t 2", "", "#b.toml t 2"),
        ("# cells", "", "a.toml t 1", "#b.toml t 2"),
        ("# new", *OLD),
        ("# cells", "# something else", "", "#b.toml t 2"),
        ("# cells", "a.toml t 1", "", "c.toml t 2"),
        ("# cells", "a.toml t 1", "c.toml t 1", "#b.toml t 2"),
        (),
    ],
)
def test_what_may_not(new: tuple[str, ...]) -> None:
    with pytest.raises(RefusedError, match=r"^q was changed in a way that moves cells") as raised:
        compare("q", OLD, new)
    assert "--- q (planned)\n+++ q (now)\n@@" in str(raised.value)


def test_a_long_diff_is_cut() -> None:
    with pytest.raises(RefusedError, match=r"\n\.\.\. and \d+ more lines$"):
        compare("q", [f"a{n} t" for n in range(1000)], [f"b{n} t" for n in range(1000)])


@given(st.lists(st.sampled_from(["a t", "b t", "# c t", "#", ""]), max_size=6), st.data())
def test_a_line_that_is_not_touched_is_never_moved(old: list[str], data: st.DataObject) -> None:
    """Whatever was done: if it is accepted, every cell of before is on its line, as a cell or as a comment of itself."""
    new = data.draw(st.lists(st.sampled_from([*old, "# a t", "x t", "# x"]), max_size=8))
    try:
        change = compare("q", old, new)
    except RefusedError:
        return
    for number, line in enumerate(old, 1):
        if line and not line.startswith("#"):
            assert new[number - 1] == line if number not in change.dropped else new[number - 1].startswith(f"# {line}")
