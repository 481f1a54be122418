"""The files in examples/launch read, and a platform of every kind is among them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.launch.jobs import HERE

from dibs.launch import KINDS, Profile, Request, fit, platform_of

FOLDER = Path(__file__).parents[2] / "examples" / "launch"
PROFILES = sorted((FOLDER / "profiles").glob("*.toml"))


def read(path: Path) -> Profile:
    return Profile.of(tomllib.loads(path.read_text()), path.stem, str(path))


@pytest.fixture
def job() -> Request:
    return Request.of(tomllib.loads((FOLDER / "job.toml").read_text()), "job", FOLDER, "job.toml")


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_a_profile_reads_and_plans(path: Path, job: Request) -> None:
    profile = read(path)
    plan = platform_of(profile.kind).plan(job, profile, "/shared/studies", HERE)
    assert plan.kind == profile.kind
    assert plan.workers == job.workers
    assert plan.calls


def test_the_first_candidate_fits(job: Request) -> None:
    assert fit(job, read(FOLDER / "profiles" / f"{job.candidates[0]}.toml")) == []


def test_there_is_one_of_every_kind() -> None:
    assert {read(path).kind for path in PROFILES} | {"local"} == set(KINDS)
