"""Where jobs and profiles lie, and how they are read."""

from __future__ import annotations

from pathlib import Path

from dibs.errors import UsageError
from dibs.launch import Profile, Request, local_profile

from ._tablefile import ENDINGS, read_table

__all__ = ["profile_named", "read_request"]

_LOCAL = "local"


def read_request(path: Path) -> Request:
    """The job in a file. Raises UsageError naming the file and the key."""
    return Request.of(read_table(path, "the job"), path.stem, path.absolute().parent, str(path))


def profile_named(name: str, request: Request, profiles: Path | None, *, alone: bool) -> Profile | str:
    """The profile of a candidate, or why there is none. ``alone``: it was asked for by name, so that is an error.

    ``local`` needs no file; one by that name adds to what is measured. Raises UsageError for a file that does not read.
    """
    folders = [profiles] if profiles else [request.folder / "profiles", Path("~/.config/dibs/profiles").expanduser()]
    if profiles is not None and not profiles.is_dir():
        raise UsageError(f"there is no folder {profiles} (--profiles)")
    if "/" in name or name.startswith("."):
        raise UsageError(f"{name!r} is no profile's name: it is its file's, without folder and ending")
    place = request.folder if not Path(request.place).is_dir() else Path(request.place)
    path = next((folder / f"{name}{ending}" for folder in folders for ending in ENDINGS if (folder / f"{name}{ending}").is_file()), None)  # fmt: skip
    if path is not None:
        found = Profile.of(read_table(path, "the profile"), name, str(path))
        return local_profile(place, found) if found.kind == _LOCAL else found
    if name == _LOCAL:
        return local_profile(place)
    there = sorted(
        {file.stem for folder in folders if folder.is_dir() for file in folder.iterdir() if file.suffix in ENDINGS}
    )
    places = " or ".join(str(folder) for folder in folders)
    missing = f"there is no {name}.toml in {places}; the profiles there are {', '.join([_LOCAL, *there])}"
    if alone:
        raise UsageError(missing)
    return missing
