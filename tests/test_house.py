"""House rules that no linter we use can state: size, laws, clocks and chance, skips, light start-up.

Walls between packages stand in pyproject.toml (import-linter); each rule here names its culprits.
"""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = sorted((ROOT / "src" / "dibs").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST = {"src": 400, "tests": 500}  # about 150 is what to aim at

# module -> where it may be used all the same
CLOCKS_AND_CHANCE = {
    "time": {"_clock.py"},
    "random": set(),
    "secrets": set(),
    "uuid": set(),
}
# calls that read the machine's clock or its global random state without importing one of these
HIDDEN = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "np.random", "numpy.random"}

HEAVY = {"scipy", "rich", "multiprocessing", "concurrent.futures", "asyncio", "http", "ssl", "sqlite3", "unittest"}


def name(path: Path) -> str:
    """How a culprit is shown."""
    return path.relative_to(ROOT).as_posix()


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain, or an empty text."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def imports(tree: ast.AST) -> Iterator[str]:
    """The first segment of every absolute import, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def only_seeded(tree: ast.AST) -> bool:
    """Whether all that a file takes from ``random`` is a generator of its own, which a simulator runs on."""
    taken = {dotted(node) for node in ast.walk(tree) if dotted(node).startswith("random.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            taken |= {f"random.{alias.name}" for alias in node.names}
    return taken == {"random.Random"}


def clocks_and_chance(path: Path, text: str) -> list[str]:
    """What a file uses of the machine's clocks and chance, where it may not."""
    tree = ast.parse(text)
    local = path.relative_to(ROOT / "src" / "dibs").as_posix()
    found = {module for module in imports(tree) if local not in CLOCKS_AND_CHANCE.get(module, {local})}
    if local.startswith("testing/") and only_seeded(tree):
        found.discard("random")
    chains = {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return sorted(found | {chain for chain in chains if chain.removeprefix("datetime.") in HIDDEN})


def bare_skips(text: str) -> list[int]:
    """Lines that skip or expect a failure without saying why."""
    found = []
    for node in ast.walk(ast.parse(text)):
        marks = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        found += [mark.lineno for mark in marks if dotted(mark) in {"pytest.mark.skip", "pytest.mark.xfail"}]
        if isinstance(node, ast.Call):
            named = {keyword.arg for keyword in node.keywords}
            match dotted(node.func):
                case "pytest.mark.skip" | "pytest.skip":
                    said = bool(node.args) or "reason" in named
                case "pytest.mark.skipif" | "pytest.mark.xfail":
                    said = "reason" in named
                case _:
                    said = True
            found += [] if said else [node.lineno]
    return found


def loaded_by(*arguments: str) -> set[str]:
    """Every module that a fresh interpreter holds at its end."""
    probe = "import atexit, sys; atexit.register(lambda: print('\\n' + ' '.join(sys.modules), file=sys.stderr)); "
    run = subprocess.run(
        [sys.executable, "-c", probe + arguments[0], *arguments[1:]], capture_output=True, text=True, check=True
    )
    return set(run.stderr.splitlines()[-1].split())


def test_files_are_short() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE + TESTS}
    assert {path: size for path, size in sizes.items() if size > LONGEST[path.partition("/")[0]]} == {}


def test_every_module_opens_with_its_law() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE}
    assert [name(path) for path, text in texts.items() if text and not ast.get_docstring(ast.parse(text))] == []


def test_time_and_chance_are_arguments() -> None:
    used = {name(path): clocks_and_chance(path, path.read_text(encoding="utf-8")) for path in SOURCE}
    assert {path: what for path, what in used.items() if what} == {}


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("store/_x.py", "import time", ["time"]),
        ("store/_x.py", "from random import Random", ["random"]),
        ("testing/_x.py", "from random import Random", []),
        ("testing/_x.py", "from random import Random, random", ["random"]),
        ("testing/_x.py", "import random\nrandom.random()", ["random"]),
        ("store/_x.py", "import numpy as np\nnp.random.rand()", ["np.random"]),
        ("store/_x.py", "import datetime\ndatetime.datetime.now()", ["datetime.datetime.now"]),
        ("store/_x.py", "from dibs._clock import iso", []),
    ],
)
def test_a_clock_in_the_wrong_place_is_seen(file: str, text: str, found: list[str]) -> None:
    assert clocks_and_chance(ROOT / "src" / "dibs" / file, text) == found


def test_a_skip_says_why() -> None:
    found = {name(path): bare_skips(path.read_text(encoding="utf-8")) for path in TESTS}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert bare_skips("import pytest\n@pytest.mark.skip\ndef test(): pytest.skip()") == [2, 3]


def test_what_is_listed_as_slow_is_there() -> None:
    listed = (ROOT / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    assert listed == sorted(set(listed))
    assert [line for line in listed if not is_there(line)] == []
    assert not is_there("tests/test_house.py::test_gone")


def is_there(test: str) -> bool:
    """Whether the file defines a function of that name."""
    file, _, function = test.rpartition("::")
    path = ROOT / file
    return path.is_file() and f"def {function}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("import dibs",),
        ("from dibs import Choice, Float, Int, Sobol, Space, Store, Study, Trial",),
        ("import runpy, sys; sys.argv = ['dibs', '--help']; runpy.run_module('dibs', run_name='__main__')",),
    ],
    ids=["import dibs", "a worker", "dibs --help"],
)
def test_start_up_is_light(arguments: tuple[str, ...]) -> None:
    assert loaded_by(*arguments) & HEAVY == set()


REPORT = """<testsuites><testsuite>
<testcase classname="a.TestOne" name="test_part"><skipped type="pytest.skip" message="not for One"/></testcase>
<testcase classname="a.TestTwo" name="test_part"/>
<testcase classname="a" name="test_known"><skipped type="pytest.xfail" message="one day"/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("report", "listing", "code"),
    [
        (REPORT, "# why\ntest_part: One has no such part\n", 0),
        (REPORT, "", 1),
        (REPORT, "test_part:\n", 1),  # no reason
        (REPORT, "test_part: One has no such part\ntest_gone: stale\n", 1),
        (REPORT.replace('name="test_part"/>', 'name="test_other"/>'), "test_part: x\n", 1),
        (REPORT.replace('name="test_part"/>', 'name="test_other"/>'), "?not for One: old kernels\n", 0),
        (REPORT, "test_part: One has no such part\n?no such kernel: old ones\n", 0),
        (REPORT, "?not for One:\n", 1),
    ],
    ids=[
        "listed",
        "not listed",
        "no reason",
        "stale",
        "run nowhere",
        "machine's",
        "machine's, and none was",
        "machine's, no reason",
    ],
)
def test_ci_refuses_skips_that_are_not_listed(report: str, listing: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(report)
    (tmp_path / "allowed.txt").write_text(listing)
    check = runpy.run_path(str(ROOT / ".ci" / "skips.py"))["main"]
    assert check(tmp_path / "report.xml", tmp_path / "allowed.txt") == code
