"""Hypothesis strategies for parameters, spaces and values, and a few spaces written out."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from dibs.errors import SpaceError
from dibs.space import Choice, Constant, Float, Int, Param, Space, Value

SETTINGS = settings(deadline=None, max_examples=80)

FIVE = (True, 1, 1.0, "1", None)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from(FIVE),
)
values: st.SearchStrategy[Value] = st.recursive(scalars, lambda s: st.lists(s, max_size=3).map(tuple), max_leaves=4)
finite = st.floats(allow_nan=False, allow_infinity=False)
units = st.floats(0, 1, exclude_max=True)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)

# what comes from anywhere: any JSON, and any Python scalar a user may get wrong
json_like = st.recursive(
    st.one_of(scalars, st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from(["float", "int", "choice", "constant", "when", "log", "step", "tuple"]), names),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


def tried(make: Any) -> Param | None:
    """The parameter, or None if the arguments do not fit together."""
    try:
        return make()  # type: ignore[no-any-return]
    except SpaceError:
        return None


def believed(draw: st.DrawFn, made: Param) -> Param:
    """The same parameter, now and then with a prior."""
    if not draw(st.integers(0, 2)):
        args, kwargs = made._call()
        return type(made)(*args, **kwargs, prior=made.value(draw(units)))
    return made


@st.composite
def floats(draw: st.DrawFn) -> Param:
    number = draw(st.sampled_from([finite, st.floats(-10, 10), st.floats(1e-9, 1e9)]))
    low, high = sorted((draw(number), draw(number)))
    log = draw(st.booleans())
    step = None if log else draw(st.one_of(st.none(), st.sampled_from([0.1, 0.25, 1e-3, 3.0])))
    made = tried(lambda: Float(low, high, log=log, step=step))
    return believed(draw, made if made is not None else Float(0.5, 2, log=log))


@st.composite
def ints(draw: st.DrawFn) -> Param:
    number = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.integers(-5, 9), st.integers(1, 2**45)]))
    low, high = sorted((draw(number), draw(number)))
    log = draw(st.booleans())
    made = tried(lambda: Int(low, high, log=log, step=1 if log else draw(st.integers(1, 4))))
    return believed(draw, made if made is not None else Int(low, low))


@st.composite
def choices(draw: st.DrawFn) -> Param:
    listed = draw(st.lists(values, min_size=1, max_size=5))
    made = tried(lambda: Choice(*listed, ordered=draw(st.booleans())))
    return believed(draw, made if made is not None else Choice(listed[0]))


small_ints = st.tuples(st.integers(-3, 3), st.integers(0, 4), st.integers(1, 2)).map(
    lambda t: Int(t[0], t[0] + max(t[1], t[2]), step=t[2])
)
params = st.one_of(floats(), ints(), choices(), values.map(Constant))
finite_params = st.one_of(small_ints, choices(), values.map(Constant))


@st.composite
def spaces(draw: st.DrawFn, of: st.SearchStrategy[Param] = params) -> Space:
    """A space in which later parameters may depend on earlier ones, its names in no particular order."""
    made: dict[str, Param] = {}
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        param = draw(of)
        parents = [n for n, p in made.items() if not isinstance(p, Float)]
        when = {}
        for parent in draw(st.lists(st.sampled_from(parents), max_size=2, unique=True)) if parents else ():
            above = made[parent]
            ks = draw(st.lists(st.integers(0, min(above.cells or 1, 6) - 1), min_size=1, max_size=2))
            when[parent] = [above.cell(k) for k in ks]
        args, kwargs = param._call()
        made[name] = type(param)(*args, **kwargs, when=when)
    return Space(made)


@st.composite
def points(draw: st.DrawFn, space: Space) -> dict[str, Value]:
    return space.point([draw(units) for _ in space.axes])


def typed_items(point: Any) -> list[tuple[str, Any]]:
    """A point as something in which types and the order of the names count."""
    return [(name, repr(value)) for name, value in point.items()]
