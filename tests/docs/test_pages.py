"""README and every page under docs/ do what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from .runner import RUN, Page, blocks

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "examples" / "sms_spam" / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.relative_to(ROOT / "docs").parts[0] != "design"),
]


def name(path: Path) -> str:
    """A page as the tests show it."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_page(path: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = Page(tmp_path)
    for block in blocks(path.read_text(encoding="utf-8")):
        try:
            page.run(block)
        except BaseException as error:
            error.add_note(f"in {name(path)}, the block at line {block.line}")
            raise


# What the pages show without it being run here: (page, reason). A new line here is a decision.
NOT_RUN = [
    ("README.md", "the suite cannot run itself"),
    ("README.md", "there is no second machine here"),
    ("docs/how-to/slurm.md", "there is no scheduler here"),
]


def test_what_is_not_run_is_listed() -> None:
    found = [
        (name(path), block.value)
        for path in PAGES
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.word == "not run" and block.language in RUN
    ]
    assert sorted(found) == sorted(NOT_RUN)
