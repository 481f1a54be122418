"""``dibs launch``: workers on the first platform that has what a job wants."""

from __future__ import annotations

import logging
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dibs._clock import SystemClock
from dibs.errors import RefusedError, UsageError
from dibs.launch import Ended, Plan, Profile, Request, Started, fit, here, look_at, outlived, platform_of, worst

from ._guard import set_level
from ._launch_files import profile_named, read_request
from ._launch_store import open_beforehand, store_of
from ._options import as_json, command, store_option, verbose
from ._text import json_text, out, safe

__all__ = ["verb"]

log = logging.getLogger("dibs")


@command("launch")
@click.argument("job", metavar="JOB", type=click.Path(path_type=Path))
@store_option
@click.option("--workers", type=int, metavar="N", help="How many.  [default: the job's, else 1]")
@click.option("--on", metavar="NAME", help="Try this profile alone, and no candidate of the job.")
@click.option("--profiles", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Where profiles are.  [default: profiles/ beside JOB, then ~/.config/dibs/profiles]")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the files and commands, and do nothing.")
@click.option("--wait/--no-wait", default=None, help="Stay until all workers have ended.  [default: no]")
@click.option("--apply", is_flag=True, help="Kubernetes: hand the manifest to kubectl instead of printing it.")
@click.option("--create", is_flag=True, help="Create the store even inside a job array.")
@as_json
@verbose
def verb(job: Path, store: str | None, as_json: bool, **options: Any) -> int:
    """Start workers where they fit: here, or on a cluster.

    JOB is a file in TOML (or YAML, JSON): `run`, the worker's command, `workers`, `resources` as constraints, and
    `candidates`, the profiles to try in order. `local` needs no profile; one of a cluster says its `kind`, slurm,
    dask, ray or kubernetes. The first that has what the job wants gets the workers; why the others do not is said.

    \b
    Example:
      dibs launch job.toml --store /mnt/shared/studies
      dibs launch job.toml --on cluster-a --workers 20 --dry-run

    Workers find the store in DIBS_STORE; it is opened here first, and created if it is not there. What is generated
    lies in .dibs/launch beside JOB. A worker that was pre-empted or requeued needs nothing but its command again.

    \b
    Exit codes: 0 started; 2 usage, or the platform refused; 3 store unusable; 4
    nothing fits. With --wait the worst of the workers', where 6 ("others run the
    rest") counts for nothing beside a 0.
    """
    set_level(logging.INFO, only_louder=True)
    request = _request(job, store, options["workers"])
    chosen, passed = _chosen(request, options)
    request = replace(request, store=_seen(request, chosen))
    assert request.store is not None
    platform = platform_of(chosen.kind)
    plan = platform.plan(request, chosen, request.store, here())
    plan = replace(plan, look=(look_at(request, chosen, request.store), *plan.look))
    for note in _notes(request, chosen, plan):
        log.info("%s", safe(note))
    if options["dry_run"]:
        return _dry(plan, passed, as_json)
    waits = _waits(options["wait"], chosen, applies=options["apply"])
    open_beforehand(request.store, chosen, create=options["create"])
    if chosen.kind == "kubernetes" and not options["apply"]:
        return _printed(plan, passed, as_json)
    _written(plan)
    started = platform.start(plan, waits)
    if not as_json:
        _say_started(started)
    ended = platform.wait(started, SystemClock(), lambda text: log.info("%s", safe(text))) if waits else None
    if as_json:
        out(json_text(_said(started, passed, ended)))
    elif ended is not None:
        _say_ended(ended)
    return worst(ended) if ended is not None else 0


def _request(job: Path, store: str | None, workers: int | None) -> Request:
    """The job, with what was said on the command line: a flag beats the file, and that a variable or dibs.toml."""
    ctx = click.get_current_context()
    request = read_request(job)
    if ctx.get_parameter_source("workers") is ParameterSource.COMMANDLINE and workers is not None:
        if workers < 1:
            raise UsageError(f"--workers must be at least 1, not {workers}")
        request = replace(request, workers=workers)
    flag = ctx.get_parameter_source("store") is ParameterSource.COMMANDLINE
    return replace(request, store=store_of(request.store if request.store and not flag else store, job))


def _chosen(request: Request, options: dict[str, Any]) -> tuple[Profile, list[tuple[str, list[str]]]]:
    """The first candidate that fits, and why those before it do not. Raises RefusedError if none does."""
    names = (options["on"],) if options["on"] else request.candidates
    if not names:
        raise UsageError('no candidates: put candidates = ["local"] into the job, or say --on NAME')
    passed: list[tuple[str, list[str]]] = []
    for name in names:
        profile = profile_named(name, request, options["profiles"], alone=bool(options["on"]))
        if isinstance(profile, str):
            reasons = [profile]
        else:
            wanted = replace(request, store=_seen(request, profile))
            reasons = [
                *fit(wanted, profile),
                *platform_of(profile.kind).lacks(wanted, profile, _acts(profile, options)),
            ]
            if not reasons:
                return profile, passed
        passed.append((name, reasons))
        for reason in reasons:
            out(f"dibs: {safe(name)} is passed over: {safe(reason)}", err=True)
    none = f"none of {len(names)} candidates fits" if len(names) > 1 else "the only candidate does not fit"
    raise RefusedError(f"{none}: ask for less, or name another with --on NAME")


def _acts(profile: Profile, options: dict[str, Any]) -> bool:
    """Whether the platform will be spoken to; a plan for one that is named can be looked at anywhere."""
    return not (options["dry_run"] and options["on"]) and (profile.kind != "kubernetes" or options["apply"])


def _seen(request: Request, profile: Profile) -> str:
    """The store as the workers there see it."""
    assert request.store is not None
    return profile.store or request.store


def _waits(asked: bool | None, profile: Profile, *, applies: bool) -> bool:
    """Whether to stay: where the workers would end with this process, always. Raises UsageError for what cannot be."""
    if asked and profile.kind == "kubernetes" and not applies:
        raise UsageError("--wait needs --apply: a manifest that is printed starts nothing")
    if profile.stays:
        return bool(asked)
    if asked is False:
        raise UsageError(f"{profile.name} is a cluster of this process, and ends with it: leave --no-wait out")
    return True


def _notes(request: Request, profile: Profile, plan: Plan) -> list[str]:
    notes = list(plan.notes)
    lost = outlived(request, profile, "destroy")
    if lost:
        notes.append(f"the store {request.store} is lost when the machine is given up: what survives is {lost}")
    return notes


def _written(plan: Plan) -> None:
    """The generated files, beside the job. Raises UsageError."""
    for path, text in plan.files.items():
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(text, encoding="utf-8")
        except OSError as wrong:
            raise UsageError(f"{path} cannot be written: {wrong.strerror or wrong}") from None


def _dry(plan: Plan, passed: list[tuple[str, list[str]]], as_json: bool) -> int:
    if as_json:
        out(json_text({**plan.to_json(), "passed_over": _passed_json(passed)}))
        return 0
    for path, text in plan.files.items():
        out(f"# {safe(path)}")
        out(text)
    for call in plan.calls:
        words = [f"{name}={shlex.quote(value)}" for name, value in sorted(call.environ.items())]
        out(" ".join([*map(safe, words), safe(shlex.join(call.argv))]))
    return 0


def _printed(plan: Plan, passed: list[tuple[str, list[str]]], as_json: bool) -> int:
    """A manifest on stdout, and what to do with it on stderr."""
    (text,) = plan.files.values()
    if as_json:
        out(json_text({**plan.to_json(), "passed_over": _passed_json(passed)}))
    else:
        out(text)
    log.info("nothing is started: pipe this into %s, or say --apply", safe(shlex.join(plan.calls[0].argv)))
    return 0


def _say_started(started: Started) -> None:
    plan = started.plan
    count = f"{plan.workers} worker{'s' * (plan.workers != 1)}"
    out(f"started  {count} on {safe(plan.on)} ({safe(', '.join(started.ids))}), store {safe(plan.store)}")
    for line in (*plan.look, *started.look):
        out(f"look     {safe(line)}")
    out(f"stop     {safe(started.stop)}")


def _say_ended(ended: list[Ended]) -> None:
    for each in ended:
        out(f"ended    worker {safe(each.worker)} with {each.code}{f': {safe(each.why)}' if each.why else ''}")


def _said(started: Started, passed: list[tuple[str, list[str]]], ended: list[Ended] | None) -> dict[str, Any]:
    plan = started.plan
    told = {
        "on": plan.on, "kind": plan.kind, "name": plan.name, "store": plan.store, "workers": plan.workers,
        "ids": list(started.ids), "look": [*plan.look, *started.look], "stop": started.stop, "passed_over": _passed_json(passed),
    }  # fmt: skip
    if ended is not None:
        told["ended"] = [{"worker": each.worker, "code": each.code, "why": each.why} for each in ended]
        told["exit_code"] = worst(ended)
    return told


def _passed_json(passed: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    return [{"candidate": name, "reasons": reasons} for name, reasons in passed]
