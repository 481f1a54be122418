"""What the Gaussian process makes of scores: whether its fit has arrived, and where `auto` uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dibs import Choice, Float, Space
from dibs.search import Auto, Sobol, _auto, _gaussian
from dibs.search._cube import cube_of
from dibs.search._stream import uniforms

CUBE = Space(x=Float(0, 1), y=Float(0, 1))


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("waves", [0.0, 0.05])
def test_the_fit_is_where_many_more_steps_lead(noise: float, waves: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begun where there is no noise it ended as much as e^40 below, and far from the lengths."""
    cube, minimise, found = cube_of(CUBE), _gaussian.minimise, []
    rows = cube.rows([Sobol(seed=3).ask(CUBE, n) for n in range(100)])[0]
    y = np.square(rows - 0.4).sum(axis=1) + waves * np.cos(60.0 * rows).sum(axis=1)
    z = _gaussian.standardised(y + noise * (uniforms(len(y), "noise") - 0.5))

    def watched(loss: Any, start: Any, steps: int) -> Any:
        end, silent = minimise(loss, start, steps), np.append(start[:-1], -8.0)
        best = min(loss(minimise(loss, there, 200))[0] for there in (start, silent))
        found.append(loss(end)[0] - best)
        return end

    monkeypatch.setattr(_gaussian, "minimise", watched)
    _gaussian._fitted.cache_clear()
    features = _gaussian.Features(cube)
    _gaussian.fitted(features.of(rows), features.axis, z)
    _gaussian._fitted.cache_clear()
    assert len(found) == 1
    assert found[0] < 1.0


@pytest.mark.parametrize(
    ("space", "gaussian"),
    [
        (CUBE, True),
        (Space(a=Choice("x", "y"), b=Float(0, 1, when={"a": ["x"]})), True),
        (Space({f"x{i}": Float(0, 1) for i in range(21)}), False),
        (Space(a=Choice(*range(41))), False),
    ],
    ids=["numbers", "conditions", "many", "wide"],
)
def test_auto_is_the_gaussian_process_where_that_was_measured(
    space: Space, gaussian: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    for name in ("propose_by_improvement", "propose_by_density"):
        monkeypatch.setattr(_auto, name, lambda *_, name=name: asked.append(name))
    points = [Sobol(seed=3).ask(space, n) for n in range(12)]
    Auto(goal="min", seed=1).ask(space, 12, [(point, float(n)) for n, point in enumerate(points)])
    assert asked == ["propose_by_improvement" if gaussian else "propose_by_density"]
