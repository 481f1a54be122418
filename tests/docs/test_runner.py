"""The runner of the documentation sees what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runner import Page, blocks, commands, matches


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nz\n", "a\nz\n", True),
        ("...\nz\n", "a\n", False),
        ("took ... s\n", "took 1.5 s\n", True),
        ("took ... s\n", "took 1.5\ns\n", False),
        ("3.5 (x)\n", "335 (x)\n", False),
    ],
)
def test_output_is_compared_with_wildcards(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_commands_are_split_from_their_output() -> None:
    assert commands("$ one \\\n    more\nout\n$ two\n") == [("one \\\n    more", "out\n"), ("two", "")]
    with pytest.raises(ValueError, match="opens with"):
        commands("out\n$ one\n")


PAGE = """
<!-- file: hello.txt -->
```text
hello
```
```console
$ cat hello.txt
hel...
```
```python
import pathlib
word = pathlib.Path("hello.txt").read_text()
print(word)
```
<!-- output -->
```text
hello
```
<!-- not run: there is no second machine -->
```bash
ssh other true
```
"""


@pytest.mark.parametrize(
    ("broken", "by"),
    [
        (PAGE, None),
        (PAGE.replace("hel...", "bye"), AssertionError),
        (PAGE.replace("$ cat hello.txt", "$ cat nothing.txt"), AssertionError),
        (PAGE.replace("print(word)", "print(1)"), AssertionError),
        (PAGE.replace("print(word)", "print(world)"), NameError),
    ],
    ids=["as it should be", "output", "exit", "printed", "name"],
)
def test_a_page_runs_in_order(broken: str, by: type[BaseException] | None, tmp_path: Path) -> None:
    page, found = Page(tmp_path), blocks(broken)
    assert [block.language for block in found] == ["text", "console", "python", "text", "bash"]
    if by is None:
        for block in found:
            page.run(block)
        return
    with pytest.raises(by):  # noqa: PT012 because the block that fails differs
        for block in found:
            page.run(block)
