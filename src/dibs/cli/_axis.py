"""One parameter as people read it along a slice or a contour: its bands, its notes, which choices there is room for."""

from __future__ import annotations

from collections.abc import Mapping

from dibs.view import Axis, Band

from ._text import out, safe

__all__ = ["axis_notes", "band_text", "say_hidden", "shown_bands"]

_MOST_CHOICES = 12  # shown of a choice; --json has them all


def band_text(axis: Axis, band: Band, most: int) -> str:
    """``0.001 .. 0.01``, one number, or a choice as Python writes it, cut to ``most`` characters."""
    if axis.kind == "choice":
        return safe(repr(band.choice), most)
    if band.low == band.high:
        return f"{band.low:.6g}" if axis.kind == "float" else str(band.low)
    return f"{band.low:.4g} .. {band.high:.4g}" if axis.kind == "float" else f"{band.low} .. {band.high}"


def axis_notes(axis: Axis) -> list[str]:
    """What to know of its scale."""
    return [*(["log"] if axis.log else []), *(["no definition: as seen"] if axis.assumed else [])]


def shown_bands(axis: Axis, weights: Mapping[int, int]) -> list[int]:
    """The bands to show, in order: all of a number's, of a choice those that weigh most; ``weights``: by band."""
    every = range(len(axis.bands))
    if axis.kind != "choice" or len(every) <= _MOST_CHOICES:
        return list(every)
    return sorted(sorted(every, key=lambda at: (-weights[at], at))[:_MOST_CHOICES])


def say_hidden(count: int) -> None:
    """One line about choices that are not shown, if there are any."""
    if count:
        out(f"  ... and {count} more choices with no more results: --json has them all")
