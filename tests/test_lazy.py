"""Packages whose names load their module when first used: they have what they say, and load no more than was asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
PACKAGES = ["dibs", "dibs.cell", "dibs.search", "dibs.sweep", "dibs.testing", "dibs.view"]


def imported(tree: ast.AST) -> dict[str, str]:
    """name -> module of what is imported for type checkers only."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}


def lazy(tree: ast.AST) -> dict[str, str]:
    """name -> module of what is loaded when first used."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazily"]
    homes: dict[str, list[str]] = ast.literal_eval(calls[0].args[1])
    return {name: module for module, names in homes.items() for name in names}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_type_checkers_see_is_what_there_is(package: str) -> None:
    tree = ast.parse((SOURCE / package.replace(".", "/") / "__init__.py").read_text("utf-8"))
    assert lazy(tree) == imported(tree)
    module = import_module(package)
    assert set(lazy(tree)) <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_packages_that_are_lazy_are_looked_at_here() -> None:
    found = {path for path in (SOURCE / "dibs").rglob("*.py") if "= lazily(" in path.read_text("utf-8")}
    assert found == {SOURCE / package.replace(".", "/") / "__init__.py" for package in PACKAGES}


NAMES = """
import pkgutil
from importlib import import_module
from dibs.search import _pruner, _sampler
homes = [dict(known.homes) for known in (_sampler._KNOWN, _pruner._KNOWN)]
for module in pkgutil.iter_modules(import_module("dibs.search").__path__):
    import_module(f"dibs.search.{module.name}")
told = [{kind.name: kind.__module__.rpartition(".")[2] for kind in known.values()} for known in (_sampler._KNOWN, _pruner._KNOWN)]
assert told == homes, (told, homes)
"""
OWN = """
from dibs.search import Sampler, make_sampler, register
class Mine(Sampler):
    name = "tpe"
    def ask(self, space, n, history=()): return None
register(Mine)
import dibs
dibs.TPE
assert type(make_sampler("tpe")) is Mine
"""

VERBS = [  # modules that a verb begins with, and what belongs to other verbs
    (
        "dibs.cli._exec dibs.cli._run dibs.cli._status",
        "view",
        "contours slices rulers importances best_so_far sweep rounds",
    ),
    ("dibs.cli._sweep_run", "sweep", "planning pull verify release prove retry outlook"),
    ("dibs.cli._sweep_status", "sweep", "planning pull verify release prove running program"),
]


@pytest.mark.parametrize(("verbs", "package", "unwanted"), VERBS)
def test_verbs_load_nothing_of_other_verbs(verbs: str, package: str, unwanted: str) -> None:
    code = f"import sys, {', '.join(verbs.split())}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {f"dibs.{package}._{name}" for name in unwanted.split()}
    assert {f"{name.replace('.', '/')}.py" for name in names} <= {
        path.relative_to(SOURCE).as_posix() for path in (SOURCE / "dibs" / package).iterdir()
    }
    assert set(done.stdout.split()) & names == set()


@pytest.mark.parametrize("program", [NAMES, OWN], ids=["every sampler and pruner", "one of a user's own"])
def test_what_has_a_name_is_found_by_it(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
