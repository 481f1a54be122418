"""README and every page under docs/ do what they show."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .runner import RUN, Page, blocks

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "examples" / "exec" / "README.md",
    ROOT / "examples" / "federated_sms" / "README.md",
    ROOT / "examples" / "sms_spam" / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.relative_to(ROOT / "docs").parts[0] != "design"),
]


def name(path: Path) -> str:
    """A page as the tests show it."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.timeout(300)  # a page is a session of many commands, some of which train models
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
    ("examples/sms_spam/README.md", "the README of the clone runs it"),
    ("docs/how-to/buckets.md", "there is no bucket here"),
    ("docs/how-to/buckets.md", "there is no bucket here"),
    ("docs/how-to/federation.md", "there is no PyTorch here"),
    ("docs/how-to/limits.md", "there are no devices here"),
    ("docs/how-to/slurm.md", "there is no scheduler here"),
    ("docs/how-to/shared-folders.md", "a race needs a second machine"),
    ("docs/how-to/two-machines.md", "a race needs a second machine"),
]


def test_what_is_not_run_is_listed() -> None:
    found = [
        (name(path), block.value)
        for path in PAGES
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.word == "not run" and block.language in RUN
    ]
    assert sorted(found) == sorted(NOT_RUN)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as they are made of them: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_readme_shows_the_quick_start() -> None:
    shown = next(block for block in blocks((ROOT / "README.md").read_text("utf-8")) if block.value == "quickstart.py")
    file = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    law = ast.get_docstring(ast.parse(file), clean=False)
    assert file == f'"""{law}"""\n\n{shown.body}'
