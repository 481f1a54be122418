"""``FILE[:objective]``: a search file, loaded by path so that every worker process loads the same one.

The file's folder goes on ``sys.path``, as when Python runs it. What it prints while loading goes to stderr, because
stdout is for answers. Every way in which a file can be wrong is one sentence.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from dibs.errors import UsageError

if TYPE_CHECKING:
    from dibs.search import Goals, PrunerSpec, Sampler
    from dibs.space import Space

__all__ = ["FileObjective", "SearchFile", "load", "own_traceback"]

_loaded: dict[tuple[str, str], ModuleType] = {}  # (path, module name) -> what this process made of it


class FileObjective:
    """The function ``name`` of the file ``path``, loaded as ``module``. Pickled as these three texts."""

    def __init__(self, path: str, name: str, module: str) -> None:
        self.path, self.name, self.module = path, name, module
        self._function = _function(_module(path, module), path, name)

    def __call__(self, trial: Any) -> Any:
        return self._function(trial)

    def __reduce__(self) -> tuple[type[FileObjective], tuple[str, str, str]]:
        return FileObjective, (self.path, self.name, self.module)

    def __repr__(self) -> str:
        return f"<objective {self.name} of {self.path}>"


@dataclass(frozen=True)
class SearchFile:
    """What a file says: its objective and its space, and what else it may say (checked when it is asked for)."""

    path: str
    objective: Callable[[Any], Any]
    space: Space
    names: dict[str, Any]

    def goal(self) -> Goals | None:
        """``goal = "min"``, or ``goal = ["min", "max"]``; UsageError if it is something else."""
        from dibs.search import a_goal

        goal = self.names.get("goal")
        try:
            return None if goal is None else a_goal(goal)
        except UsageError as wrong:
            raise UsageError(
                f'goal in {self.path} is {goal!r:.80}: write goal = "min" or goal = "max", or a list of these ({wrong})'
            ) from None

    def sampler(self) -> str | Sampler | None:
        """``sampler = "random"``, or an instance."""
        from dibs.search import Sampler

        sampler = self.names.get("sampler")
        if sampler is None or isinstance(sampler, str | Sampler):
            return sampler
        raise UsageError(f"sampler in {self.path} is {sampler!r}: give a name or an instance, such as dibs.Random()")

    def pruner(self) -> PrunerSpec | None:
        """``pruner = "median"``, an instance, or a list of these."""
        from dibs.search import Pruner

        pruner = self.names.get("pruner")
        if pruner is None or isinstance(pruner, str | Pruner | list | tuple):
            return pruner
        raise UsageError(f"pruner in {self.path} is {pruner!r}: give a name, an instance or a list of these")

    def max_step(self) -> int | None:
        """``max_step = 30``; UsageError if it is something else."""
        step = self.names.get("max_step")
        if step is None or (isinstance(step, int) and not isinstance(step, bool)):
            return step
        raise UsageError(f"max_step in {self.path} is {step!r}: give the last step that a full trial reports")

    def name(self) -> str | None:
        """``name = "spam"``: the study's name."""
        name = self.names.get("name")
        return name if isinstance(name, str) else None

    def trials(self) -> int | None:
        """``trials = 100``."""
        trials = self.names.get("trials")
        return trials if isinstance(trials, int) and not isinstance(trials, bool) else None


def load(target: str) -> SearchFile:
    """The search file behind ``FILE[:objective]``. Raises UsageError that says what is wrong and what to write."""
    from dibs.space import Space

    path, name = _split(target)
    where = str(path)
    module = _run_file(path, _module_name(path))
    objective = FileObjective(where, name, module.__name__)
    space = getattr(module, "space", None)
    if space is None:
        raise UsageError(f"{where} has no space: put space = dibs.Space(lr=dibs.Float(1e-5, 0.1, log=True), ...) in it")
    if not isinstance(space, Space):
        raise UsageError(f"space in {where} is a {type(space).__name__}: write space = dibs.Space(...)")
    return SearchFile(where, objective, space, vars(module))


def _split(target: str) -> tuple[Path, str]:
    file, colon, name = target.rpartition(":")
    path = Path(target)
    if colon and name.isidentifier() and not path.exists():
        path = Path(file)
    else:
        name = "objective"
    if path.is_dir():
        raise UsageError(f"{path} is a folder: give the Python file that has the space and the objective")
    if not path.exists():
        meant = path.with_name(f"{path.name}.py")
        raise UsageError(f"there is no file {path}" + (f": did you mean {meant}?" if meant.is_file() else ""))
    return path.resolve(), name


def _module_name(path: Path) -> str:
    """The file's stem, under which its neighbours and its own child processes import it, unless that is taken."""
    stem = path.stem
    known = sys.modules.get(stem)
    ours = known is not None and getattr(known, "__file__", None) == str(path)
    free = ours or (known is None and "." not in stem and stem not in ("dibs", "__main__"))
    return stem if free else f"dibs_file_{''.join(c if c.isalnum() else '_' for c in stem)}"


def _module(path: str, name: str) -> ModuleType:
    """The module of a file in this process, executed once, be it by us or by whoever imported it before."""
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == path:
        return known
    return _loaded.get((path, name)) or _run_file(Path(path), name)


def _run_file(path: Path, name: str) -> ModuleType:
    """Execute the file as a module; UsageError with the place for whatever goes wrong."""
    code = _compile(path)
    folder = str(path.parent)
    if path.with_name("dibs.py").is_file():  # behind everything else: worker processes would find that one in our place
        if folder not in sys.path:
            sys.path.append(folder)
    elif sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path) or ModuleSpec(name, None, origin=str(path))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(code, vars(module))
    except BaseException as wrong:
        _put_back(name, before)
        if isinstance(wrong, SystemExit):
            raise UsageError(
                f"{path} ends the process when it is loaded (sys.exit({wrong.code!r})): put what runs it by hand under "
                'if __name__ == "__main__":'
            ) from None
        if not isinstance(wrong, Exception):
            raise
        raise UsageError(f"{path} raises when it is loaded:\n{_traceback(wrong, folder)}") from wrong
    _loaded[str(path), name] = module
    return module


def _put_back(name: str, before: ModuleType | None) -> None:
    if before is None:
        sys.modules.pop(name, None)
    else:
        sys.modules[name] = before


def _compile(path: Path) -> Any:
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as wrong:
        raise UsageError(f"{path} cannot be read: {wrong.strerror}") from None
    except SyntaxError as wrong:
        line = f":{wrong.lineno}" if wrong.lineno else ""
        text = f": {wrong.text.strip()[:80]}" if wrong.text else ""
        raise UsageError(f"{path}{line} is not valid Python: {wrong.msg}{text}") from None
    except (ValueError, RecursionError, MemoryError) as wrong:  # zero bytes; nested beyond all measure
        raise UsageError(f"{path} is not Python: {wrong}") from None


def _traceback(wrong: Exception, folder: str) -> str:
    """The last lines of a traceback that are about the file and its neighbours, and the exception."""
    frames = [frame for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename.startswith(folder)]
    lines = traceback.format_list(frames[-5:]) + traceback.format_exception_only(wrong)
    return "".join(lines).rstrip()


def own_traceback(wrong: BaseException | None) -> str | None:
    """The traceback from where an objective was called on; None if none was, so that it is not the objective's fault.

    By the call and not by the file: an objective may be imported from elsewhere, or take no trial at all.
    """
    if wrong is None:
        return None
    called = FileObjective.__call__.__code__
    codes = [frame.f_code for frame, _ in traceback.walk_tb(wrong.__traceback__)]
    if called not in codes:
        return None
    frames = traceback.extract_tb(wrong.__traceback__)[codes.index(called) + 1 :]
    return "".join(traceback.format_list(frames) + traceback.format_exception_only(wrong)).rstrip()


def _function(module: ModuleType, path: str, name: str) -> Callable[[Any], Any]:
    function = getattr(module, name, None)
    if function is None:
        if name == "objective":
            raise UsageError(f"{path} has no objective: define objective(trial), or name another: FILE:NAME")
        raise UsageError(f"{path} has no {name}: define {name}(trial), which returns the score")
    if not callable(function):
        raise UsageError(f"{name} in {path} is a {type(function).__name__}, not a function: define {name}(trial)")
    return cast("Callable[[Any], Any]", function)
