"""The average: what it is, that its bits depend on nothing else, and who is named when it cannot be."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dibs import UpdateError, UsageError
from dibs.federation import Rule, Tensor, average, fedavg
from dibs.federation import _fedavg as fedavg_module

FLOATS = st.floats(-1e6, 1e6, width=32)
MODELS = st.integers(1, 5).flatmap(
    lambda count: st.lists(arrays(np.float32, (2, 3), elements=FLOATS), min_size=count, max_size=count)
)

DOUBLES = st.lists(arrays(np.float64, 9, elements=st.floats(-1e6, 1e6)), min_size=3, max_size=6)


def bits(value: Any) -> bytes:
    return np.ascontiguousarray(value).tobytes()


@given(MODELS, st.data())
def test_it_is_the_weighted_mean_within_one_rounding(models: list[Any], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 100), min_size=len(models), max_size=len(models)).filter(any))
    got = fedavg([{"w": model} for model in models], sizes)["w"]
    assert got.dtype == np.float32
    for at in np.ndindex(2, 3):
        exact = sum((Fraction(k) * Fraction(float(m[at])) for k, m in zip(sizes, models, strict=True)), Fraction())
        exact /= sum(sizes)
        most = max(abs(float(m[at])) for m in models)
        assert abs(float(got[at]) - float(exact)) <= np.spacing(np.float32(abs(float(exact)))) / 2 + 1e-14 * most


@given(DOUBLES, st.randoms(use_true_random=False), st.sampled_from([None, "median", "trimmed:0.2"]))
def test_the_order_in_which_clients_are_given_changes_no_bit(models: list[Any], luck: Any, robust: str | None) -> None:
    named = [(f"c{at}", {"w": model}) for at, model in enumerate(models)]
    once = fedavg(dict(named), robust=robust)["w"]
    luck.shuffle(named)
    assert bits(fedavg(dict(named), robust=robust)["w"]) == bits(once)


@given(arrays(np.float32, 7, elements=FLOATS), st.integers(1, 6), st.sampled_from([None, "median", "trimmed:0.3"]))
def test_the_average_of_the_same_is_the_same(model: Any, count: int, robust: str | None) -> None:
    got = fedavg([{"w": model}] * count, robust=robust)["w"]
    assert np.array_equal(got, model)


@given(st.lists(arrays(np.float64, 5, elements=st.floats(-10, 10)), min_size=3, max_size=9))
def test_one_client_cannot_move_a_median_beyond_the_others(models: list[Any]) -> None:
    poisoned = [*models[:-1], np.full(5, 1e300)]
    got = fedavg([{"w": model} for model in poisoned], robust="median")["w"]
    assert (got <= np.max(models[:-1], axis=0)).all()
    assert (got >= np.min(models[:-1], axis=0)).all()


def test_trimmed_leaves_out_a_share_at_either_end() -> None:
    models = [{"w": np.array([float(k)])} for k in (0, 1, 2, 3, 1000)]
    assert fedavg(models, robust="trimmed:0.2")["w"].tolist() == [2.0]
    assert fedavg(models, robust="trimmed:0.1")["w"].tolist() == [201.2]  # a tenth of five is nobody


@pytest.mark.parametrize("robust", [None, "median", "trimmed:0.25"])
def test_pieces_change_no_bit(robust: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [{"w": np.random.default_rng(k).normal(size=5000).astype(np.float32)} for k in range(5)]
    whole = fedavg(models, robust=robust)["w"]
    monkeypatch.setattr(fedavg_module, "_AT_ONCE", 1)
    assert bits(fedavg(models, robust=robust)["w"]) == bits(whole)


def test_these_bits_are_the_same_on_every_machine() -> None:
    """Written down once: whoever gets others here would not be able to verify anybody's average."""
    rng = np.random.default_rng(7)
    ints = [rng.integers(-(10**6), 10**6, size=2170) / 1e6 for _ in range(5)]
    models = {f"c{k}": {"w": x[:2100].reshape(300, 7).astype(np.float32), "b": x[2100:]} for k, x in enumerate(ints)}
    sizes = {f"c{k}": 10 + 3 * k for k in range(5)}
    base = {name: np.zeros_like(array) for name, array in models["c0"].items()}
    told = [
        fedavg(models, sizes),
        fedavg(models, robust="median"),
        fedavg(models, robust="trimmed:0.2"),
        fedavg(models, sizes, clip=3.0, base=base),
    ]
    digest = hashlib.sha256(b"".join(bits(one["w"]) + bits(one["b"]) for one in told)).hexdigest()
    assert digest == "4757bb5aef9e99dab7775c201f34d581a37496b4ada7b6979901cb8c00cff90b"


def test_clip_moves_who_is_far_towards_the_base() -> None:
    base = {"w": np.array([1.0, 1.0]), "n": np.array([3])}
    models = {
        "a": {"w": np.array([4.0, 5.0]), "n": np.array([9])},
        "b": {"w": np.array([1.0, 1.5]), "n": np.array([4])},
    }
    got = fedavg(models, clip=1.0, base=base)
    # a is 5 from the base: a fifth of its way, which is (1.6, 1.8); b is near enough
    assert np.allclose(got["w"], [1.3, 1.65])
    assert got["n"].tolist() == [9]


def test_nodes_come_back_as_nodes() -> None:
    one = {"encoder": {"w": np.ones(2), "b": np.zeros(1)}, "head": {"w": np.ones(3)}}
    two = {"head": {"w": np.zeros(3)}, "encoder": {"b": np.ones(1), "w": np.zeros(2)}}
    got = fedavg([one, two])
    assert {node: {name: value.tolist() for name, value in tensors.items()} for node, tensors in got.items()} == {
        "encoder": {"b": [0.5], "w": [0.5, 0.5]}, "head": {"w": [0.5] * 3},
    }  # fmt: skip


@pytest.mark.parametrize(("others", "expected"), [("first", 3), ("max", 8)])
def test_what_is_no_float_follows_the_policy(others: Any, expected: int) -> None:
    exports = {name: {"num_batches_tracked": np.array(k), "w": np.ones(1)} for name, k in (("a", 3), ("b", 8))}
    got = fedavg(exports, others=others)["num_batches_tracked"]
    assert (got.item(), got.dtype, got.shape) == (expected, np.int64, ())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_type_comes_back(dtype: Any) -> None:
    got = fedavg([{"w": np.array([1, 2], dtype)}, {"w": np.array([2, 4], dtype)}])["w"]
    assert (got.dtype, got.tolist()) == (dtype, [1.5, 3.0])


def test_bfloat16_is_averaged_as_what_it_means() -> None:
    def words(*values: float) -> Tensor:
        return Tensor("BF16", (np.array(values, "<f4").view("<u4") >> 16).astype("<u2"))

    got = fedavg([{"w": words(1.0, -3.0, 1.0)}, {"w": words(2.0, 5.0, 1.0078125)}])["w"]
    assert isinstance(got, Tensor)
    values = (got.words.astype("<u4") << 16).view("<f4")
    assert values.tolist() == [1.5, 1.0, 1.0]  # halfway between two: the even one


BAD = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize("value", BAD)
def test_one_client_with_nan_is_named_or_dropped(value: float) -> None:
    exports = {"a": {"w": np.ones(2)}, "b": {"w": np.array([1.0, value])}, "c": {"w": np.zeros(2)}}
    with pytest.raises(UpdateError, match=r"'b' was rejected: tensor 'w' holds NaN or an infinity") as caught:
        fedavg(exports, {"a": 1, "b": 100, "c": 3})
    assert caught.value.client == "b"
    told = average(exports, {"a": 1, "b": 100, "c": 3}, rule=Rule(bad="drop"))
    assert told.tensors["w"].tolist() == [0.25, 0.25]
    assert (told.weights, list(told.rejected)) == ({"a": 0.25, "c": 0.75}, ["b"])
    with pytest.raises(UpdateError, match="no client is left"):
        fedavg({"b": exports["b"]}, bad="drop")


def test_nan_in_bfloat16_and_half_is_seen() -> None:
    nan = Tensor("BF16", np.array([0x3F80, 0x7FC0], "<u2"))
    with pytest.raises(UpdateError, match="NaN"):
        fedavg([{"w": nan}])
    with pytest.raises(UpdateError, match="NaN"):
        fedavg([{"w": np.array([np.inf], np.float16)}])


W = np.ones((2, 2), np.float32)
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("tensor 'v' of 'b' is one too many", {"w": W, "v": W}),
    ("tensor 'w' of 'b' is missing", {"x": W, "w2": W} | {"w2": W}),
    ("tensor 'w' of 'b' has the shape .4., in 'a' .2, 2.", {"w": W.reshape(4)}),
    ("tensor 'w' of 'b' is of type F64, in 'a' of F32", {"w": W.astype(np.float64)}),
    ("tensor 'w' of 'b' is of type complex64", {"w": W.astype(np.complex64)}),
    ("tensor 'w' of 'b' is of type object", {"w": np.array([[None]])}),
    ("only one of them exports node by node", {"n": {"w": W}}),
    ("'b' exports no tensors", {}),
    ("'b' mixes nodes and tensors", {"n": {"w": W}, "w": W}),
    ("node 'n/m' of 'b' has a /", {"n/m": {"w": W}}),
    ("node 'n' of 'b' holds no tensor", {"n": {}}),
    ("is no name of a tensor", {"__metadata__": W}),
]


@pytest.mark.parametrize(("said", "export"), WRONG, ids=[said for said, _ in WRONG])
def test_who_differs_is_named(said: str, export: dict[str, Any]) -> None:
    with pytest.raises(UpdateError, match=said) as caught:
        fedavg({"a": {"w": W}, "b": export})
    assert caught.value.client == "b"


@pytest.mark.parametrize(
    ("said", "sizes"),
    [
        ("'a' has a size and 'b' has none", {"a": 1}),
        ("0 or more", {"a": 1, "b": -1}),
        ("0 or more", {"a": 1, "b": np.nan}),
        ("is a number", {"a": 1, "b": True}),
        ("all 0", {"a": 0, "b": 0}),
        ("exports nothing", {"a": 1, "b": 1, "z": 1}),
        ("3 sizes for 2 clients", [1, 2, 3]),
    ],
)
def test_sizes_are_for_all_or_for_none(said: str, sizes: Any) -> None:
    with pytest.raises(UsageError, match=said):
        fedavg({"a": {"w": W}, "b": {"w": W}}, sizes)


@pytest.mark.parametrize(
    "options",
    [{"robust": "mode"}, {"robust": "trimmed:0.5"}, {"robust": "trimmed:x"}, {"clip": 0}, {"clip": np.inf}, {"bad": "x"},
     {"others": "min"}, {"base": {"w": W}}, {"clip": 1.0, "base": {"v": W}}, {"clip": 1.0, "base": {"w": W * np.nan}}],
    ids=str,
)  # fmt: skip
def test_rules_that_cannot_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        fedavg([{"w": W}], **options)


def test_what_weighs_nobody_takes_no_sizes() -> None:
    with pytest.raises(UsageError, match="weighs nobody"):
        fedavg([{"w": W}], [3], robust="median")
    with pytest.raises(UsageError, match="nothing to average"):
        fedavg([])


def test_exports_are_left_as_they_were() -> None:
    mine = {"w": W.copy(), "k": np.array([1])}
    got = fedavg([mine], others="first")
    got["w"][:] = 5
    got["k"][:] = 5
    assert np.array_equal(mine["w"], W)
    assert mine["k"].tolist() == [1]


@pytest.mark.parametrize("size", [1e308, 1.7e308, 2**1023])
def test_sizes_whose_sum_no_float_holds_weigh_all_the_same(size: float) -> None:
    assert fedavg([{"w": W}, {"w": 3 * W}, {"w": W}], [size, size, 0])["w"].tolist() == (2 * W).tolist()


def test_a_size_that_no_float_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="finite"):
        fedavg([{"w": W}] * 2, [10**400, 1])


FAR = np.array([np.finfo("f8").max])


@pytest.mark.filterwarnings("error")
def test_an_average_that_is_not_finite_is_none() -> None:
    """Clipped from the other end of what a float holds: the way from there is longer than any float."""
    with pytest.raises(UpdateError, match="the average of tensor 'w' is beyond what F64 holds"):
        fedavg([{"w": FAR}, {"w": -FAR}], clip=1.0, base={"w": FAR})


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("cannot be read as an array", [[1], [1, 2]]),
        ("has masked values", np.ma.array([1.0, 2.0], mask=[0, 1])),
        ("has 33 dimensions, and 32 is the most", Tensor("F32", np.zeros((1,) * 33, "<f4"))),
    ],
)
def test_what_no_machine_could_average_is_refused_before_it_is_sent(said: str, value: Any) -> None:
    with pytest.raises(UpdateError, match=f"tensor 'w' of 'a' {said}"):
        fedavg({"a": {"w": value}, "b": {"w": value}})
