"""Jobs and profiles as tests write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dibs.launch import Here, Profile, Request

HERE = Here("node", "/venv/bin")
HOSTILE = 'it\'s a "job" $HOME `id` %j; rm -rf \\ *'


def request(**said: Any) -> Request:
    """A job in /jobs, of three workers unless said otherwise."""
    table = {"run": ["dibs", "run", "search.py"], "workers": 3, "store": "/mnt/shared/s", **said}
    return Request.of(table, "job", Path("/jobs"), "job.toml")


def profile(kind: str, **said: Any) -> Profile:
    """A profile called ``there``; what is not a key of profiles is an option of its kind."""
    keys = ("offers", "survives", "before", "env", "store")
    options = {name: said.pop(name) for name in list(said) if name not in keys}
    return Profile.of({"kind": kind, **({kind: options} if options else {}), **said}, "there", "there.toml")
