"""The reference pages say what the code does."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable
from pathlib import Path

import pytest

import dibs
import dibs.errors
import dibs.federation
import dibs.study
from dibs.cli._root import VERBS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"

# verbs that messages in the code name as a remedy although they are not there yet; may only get fewer
PROMISED: set[str] = set()


def rows(page: str) -> list[list[str]]:
    """The cells of every table row of a page."""
    lines = (REFERENCE / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def test_cli_page_is_what_help_prints() -> None:
    page = runpy.run_path(str(REFERENCE.parent / "generate.py"))["page"]
    written = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert written == page(), "docs/reference/cli.md is behind the help texts: run make docs"


def test_every_error_is_listed_with_its_code_and_its_base() -> None:
    listed = {row[0].strip("`"): (row[1].strip("`"), row[2]) for row in rows("exit-codes.md") if len(row) == 3}
    for name in dibs.errors.__all__:
        error = getattr(dibs.errors, name)
        assert listed[name] == (error.__bases__[-1].__name__, str(error.exit_code)), name
    codes = {row[0] for row in rows("exit-codes.md")}
    assert {str(getattr(dibs.errors, name).exit_code) for name in dibs.errors.__all__} <= codes


@pytest.mark.parametrize("module", [dibs, dibs.federation, dibs.study], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_api_page(module) -> None:
    words = set(re.findall(r"\w+", (REFERENCE / "api.md").read_text(encoding="utf-8")))
    assert set(module.__all__) - {"__version__", *dibs.errors.__all__} - words == set()


def test_environment_page_names_every_variable() -> None:
    page = (REFERENCE / "environment.md").read_text(encoding="utf-8")
    source = Path(dibs.__file__).parent.rglob("*.py")
    used = {name for path in source for name in re.findall(r"[\"'](DIBS_[A-Z_]+)[\"']", path.read_text("utf-8"))}
    assert {name for name in used if f"`{name}`" not in page} == set()


def named_verbs(paths: Iterable[Path]) -> set[str]:
    """Every verb that a text tells somebody to type."""
    return {verb for path in paths for verb in re.findall(r"`dibs ([a-z]+)\b", path.read_text(encoding="utf-8"))}


def test_every_verb_that_is_named_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    pages = [page for page in pages if "design" not in page.parts]
    assert named_verbs(pages) - VERBS.keys() == set()
    assert named_verbs((ROOT / "src").rglob("*.py")) - VERBS.keys() == PROMISED


def test_every_target_that_is_named_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    named = {target for page in pages for target in re.findall(r"`make ([a-z]+)", page.read_text(encoding="utf-8"))}
    there = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert named
    assert named - there == set()
