"""Rosters with any columns: the same cells out of TOML, CSV and YAML, each with its line; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dibs.errors import UsageError
from dibs.sweep._queue import Roster
from dibs.sweep._rosterfile import read_roster

TOML = """\
artifacts = ["best.pth"]
command = "./t.sh {cfg}"

[[cell]]  # the first
cfg = "a.toml"
lr = 0.5
amp = true
cost = 3
name = "first"

# [[cell]]
[[ cell ]]
cfg = "b.toml"
epochs = 7
"""
CSV = """\
# what we try
cfg, lr, amp, cost, name, epochs

a.toml,0.5,true,3,first,
"b,c.toml",,,,,7
"""
YAML = """\
# list
- cfg: a.toml
  lr: 0.5
  amp: yes
  cost: 3
  name: first

- {cfg: b.toml, epochs: 7, lr: null}
"""


@pytest.fixture
def roster(tmp_path: Path) -> Callable[..., Roster]:
    def read(name: str, text: str, epochs: int | None = None) -> Roster:
        (tmp_path / name).write_text(text)
        return read_roster(name, tmp_path / name, epochs)

    return read


def plain(roster: Roster) -> list[tuple[object, ...]]:
    return [(row.line, row.name, row.cost, dict(row.fields)) for row in roster.rows]


def test_toml(roster: Callable[..., Roster]) -> None:
    found = roster("r.toml", TOML, 5)
    assert plain(found) == [
        (4, "first", 3.0, {"cfg": "a.toml", "lr": 0.5, "amp": True, "epochs": 5}),
        (12, None, None, {"cfg": "b.toml", "epochs": 7}),
    ]
    assert found.defaults == {"artifacts": ["best.pth"], "command": "./t.sh {cfg}"}
    assert len(found.lines) == TOML.count("\n")


def test_csv(roster: Callable[..., Roster]) -> None:
    assert plain(roster("r.csv", CSV)) == [
        (4, "first", 3.0, {"cfg": "a.toml", "lr": "0.5", "amp": "true"}),
        (5, None, None, {"cfg": "b,c.toml", "epochs": 7}),
    ]
    assert plain(roster("r.tsv", CSV.replace(",", "\t").replace("b\tc", "b,c"))) == plain(roster("r.csv", CSV))


def test_yaml(roster: Callable[..., Roster]) -> None:
    assert plain(roster("r.yaml", YAML)) == [
        (2, "first", 3.0, {"cfg": "a.toml", "lr": 0.5, "amp": "yes"}),  # YAML 1.2: yes is a text
        (8, None, None, {"cfg": "b.toml", "epochs": 7}),
    ]
    found = roster("s.yml", "epochs: 4\ncell:\n  - cfg: a.toml\n")
    assert plain(found) == [(3, None, None, {"cfg": "a.toml", "epochs": 4})]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.toml", "[[cell]", "r.toml is not valid TOML: "),
        ("r.toml", 'cell = "x"', "r.toml has no cells: write each of them as a table"),
        ("r.toml", "cell = [{cfg = 1}, {cfg = 2}]", "write each of its 2 cells as a table of its own"),
        ("r.toml", "[[cell]]\ncfg = 2026-01-01", "r.toml:1: cfg must be a text, a finite number"),
        ("r.toml", "[[cell]]\nlr = nan", "r.toml:1: lr must be a text, a finite number"),
        ("r.toml", "[[cell]]\nlr = [1]", "r.toml:1: lr must be"),
        ("r.toml", "[[cell]]\nepochs = true\ncfg = 'a'", "r.toml:1: epochs must be a whole number"),
        ("r.toml", "[[cell]]\ncost = 0\ncfg = 'a'", "r.toml:1: cost must be a number above 0"),
        ("r.toml", "[[cell]]\nname = 3\ncfg = 'a'", "r.toml:1: name must be a text"),
        ("r.toml", "[[cell]]\nout = 'x'", "r.toml:1: a column cannot be called 'out'"),
        ("r.toml", "[[cell]]\n", "r.toml:1: this cell has no columns"),
        ("r.toml", "artefacts = ['a']\n[[cell]]\ncfg = 'a'", "r.toml: unknown 'artefacts' beside the cells; did you mean artifacts\\?$"),
        ("r.toml", "artifacts = 'a'\n[[cell]]\ncfg = 'a'", "r.toml: artifacts must be a list of texts"),
        ("r.toml", "isolate = 1\n[[cell]]\ncfg = 'a'", "r.toml: isolate must be true or false"),
        ("r.csv", "cfg;task\na;b\n", "r.csv:1: 'cfg;task' is one column: there is a comma between two, in a .tsv a tab$"),
        ("r.tsv", "cfg,task\na,b\n", "r.tsv:1: 'cfg,task' is one column"),
        ("r.csv", "cfg,cfg\na,b\n", "r.csv:1: two columns are called 'cfg'"),
        ("r.csv", "cfg,\na,b\n", "r.csv:1: '' cannot be the name of a column"),
        ("r.csv", "cfg,task\na\n", "r.csv:2: 1 fields, and the header has 2"),
        ("r.csv", 'cfg,task\n"a\nb",t\n', "r.csv:2: .*a quoted field must end on its line$"),
        ("r.csv", "cfg,cost\na,many\n", "r.csv:2: cost must be a number above 0, not 'many'"),
        ("r.csv", "cfg,task\na,\0\n", "r.csv:2: there is a zero byte"),
        ("r.yaml", "- [a", "r.yaml is not valid YAML: "),
        ("r.yaml", "a", "r.yaml has no cells: write a list of mappings"),
        ("r.yaml", "", "r.yaml has no cells"),
        ("r.yaml", "cells:\n- cfg: a\n", "r.yaml has no cells: .*, or put one under cell$"),
        ("r.yaml", "zzz: 1\ncell:\n- cfg: a\n", "r.yaml: unknown 'zzz' beside the cells; there is artifacts, "),
        ("r.yaml", "- a: 1\n- 2\n", "r.yaml:2: a cell is a mapping of columns to values, not 2"),
        ("r.yaml", "- 1: 2\n", "r.yaml:1: 1 cannot be the name of a column"),
        ("r.yaml", "- &a {cfg: x}\n- *b\n", "r.yaml is not valid YAML"),
        ("r.yaml", "[{cfg: x}, {cfg: y}]\n", "r.yaml:1: two cells begin on this line"),
        ("r.yaml", "- &a {cfg: x}\n- *a\n", "r.yaml:1: two cells begin on this line"),
        ("r.toml", "epochs = 0\n[[cell]]\ncfg = 'a'", "r.toml: epochs must be a whole number of at least 1"),
    ],
)  # fmt: skip
def test_what_is_refused(roster: Callable[..., Roster], name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"^{said}" if said.startswith(name) else said):
        roster(name, text)
