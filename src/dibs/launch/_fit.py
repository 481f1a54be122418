"""Whether a platform has what a job wants. Pure: offers of this machine are measured before."""

from __future__ import annotations

from pathlib import PurePosixPath

from dibs.cell._limits import size_text, span_text

from ._profile import Profile
from ._request import Request
from ._resources import Gpu

__all__ = ["fit", "outlived"]


def fit(request: Request, profile: Profile) -> list[str]:
    """Why it does not fit, a sentence each; empty if it does. ``request.store``: as the workers will see it."""
    times = request.workers if profile.row.together else 1
    want, have = request.resources, profile.offers
    reasons = [
        _short("cpus", want.cpus, have.cpus, times, str),
        _short("memory", want.memory_bytes, have.memory_bytes, times, size_text),
        _short("disk", want.disk_bytes, have.disk_bytes, times, size_text),
        _short("time", want.time_s, have.time_s, 1, span_text),
        *(_no_device(gpu, have.gpus, times) for gpu in want.gpus),
    ]
    lost = outlived(request, profile, "stop")
    if lost:
        reasons.append(f"the store {request.store} is not what survives a stop there ({lost}): it would be lost")
    return [reason for reason in reasons if reason]


def outlived(request: Request, profile: Profile, what: str) -> str:
    """What does survive a "stop" or "destroy" there, if the profile says so and the store, a folder, is not in it."""
    kept = profile.survives.get(what)
    if kept is None or request.store is None or "://" in request.store.removeprefix("file://"):
        return ""
    store = PurePosixPath(request.store.removeprefix("file://"))
    return "" if any(store.is_relative_to(folder) for folder in kept) else ", ".join(kept) or "nothing does"


def _short(what: str, want: float | None, have: float | None, times: int, text: object) -> str:
    """A reason if there is less than ``times`` what is wanted; nothing is held against what is not known."""
    assert callable(text)
    if want is None or have is None or want * times <= have:
        return ""
    wanted = text(want) if times == 1 else f"{times} x {text(want)}"
    return f"{what}: {wanted} wanted, {text(have)} there"


def _no_device(want: Gpu, have: tuple[Gpu, ...], times: int) -> str:
    if any(want.within(offered, times) for offered in have):
        return ""
    wanted = _text(Gpu(want.name, want.count * times, want.memory_bytes))
    return f"gpu: {wanted} wanted, {', '.join(map(_text, have)) or 'none'} there"


def _text(gpu: Gpu) -> str:
    memory = f" of {size_text(gpu.memory_bytes)}" if gpu.memory_bytes else ""
    return f"{gpu.count} x {gpu.name or 'any'}{memory}"
