"""What ``make test`` leaves out: tests of which a case takes more than a second and a quarter of CPU, its children's included.

They are listed in slow.txt, and ``make test-all`` runs them with the others. The listing is measured, not judged:
``python -m pytest -p tests.quick -n 0 --costs`` says what it should be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SLOW = Path(__file__).with_name("slow.txt")
SLOW_S = 1.25
_cost_s: dict[str, float] = {}  # a test -> its dearest case


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what slow.txt lists, unless files are named")
    parser.addoption("--costs", action="store_true", help="say in the end what belongs into slow.txt")


def pytest_configure(config: pytest.Config) -> None:
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.option.quick = False  # who names a file wants all of it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        slow = set(SLOW.read_text(encoding="utf-8").splitlines())
        config.hook.pytest_deselected(items=[item for item in items if _name(item) in slow])
        items[:] = [item for item in items if _name(item) not in slow]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = os.times()
    done = yield
    cost_s = sum(os.times()[:4]) - sum(before[:4])
    _cost_s[_name(item)] = max(cost_s, _cost_s.get(_name(item), 0.0))
    return done


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("costs"):
        terminalreporter.section(f"more than {SLOW_S} s of CPU")
        for name in sorted(name for name, cost_s in _cost_s.items() if cost_s > SLOW_S):
            terminalreporter.write_line(name)


def _name(item: pytest.Item) -> str:
    """A test without its case."""
    return item.nodeid.partition("[")[0]
