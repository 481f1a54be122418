"""State_dicts of real modules through rounds, and our files read by the library whose format they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tests.federation.rounds import write_tensors
from tests.parts import at_once

from dibs import RefusedError, Store, UpdateError
from dibs.federation import open_tensors
from dibs.federation._exports import flatten
from dibs.store import RoundKeys
from dibs.torch import arrays, fedavg, gather, latest, state_dict

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # the libraries' own


def net(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    made = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    made(torch.randn(16, 4))  # moves the statistics of the batches
    return made


def equal(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(
        one[name].dtype == two[name].dtype and torch.equal(one[name], two[name]) for name in one
    )


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_every_type_comes_back(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    value = (torch.arange(6.0)[: int(np.prod(shape))].reshape(shape) / 2).to(dtype)
    assert equal(state_dict(arrays({"w": value})), {"w": value})


def test_the_average_of_modules_is_theirs_and_loads() -> None:
    nets = [net(seed) for seed in range(3)]
    told = fedavg([one.state_dict() for one in nets], [1, 2, 1])
    for name, value in told.items():
        parts = [one.state_dict()[name].double() for one in nets]
        if (
            value.is_floating_point()
        ):  # the statistics of batch normalisation, too, which parameters() would leave behind
            expected = (0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]).to(value.dtype)
            assert torch.allclose(value, expected, rtol=1e-6, atol=0)
    assert told["1.num_batches_tracked"].item() == 1
    nets[0].load_state_dict(told)


def test_bfloat16_is_rounded_as_torch_rounds() -> None:
    torch.manual_seed(0)
    parts = [torch.randn(5000).to(torch.bfloat16) for _ in range(2)]
    told = fedavg([{"w": part} for part in parts])["w"]
    assert torch.equal(told, (0.5 * parts[0].double() + 0.5 * parts[1].double()).to(torch.bfloat16))


def test_rounds_of_state_dicts(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", create=True)
    exports = {name: net(seed).state_dict() for seed, name in enumerate("abc")}

    def one(client: str) -> Any:
        return gather(store, exports[client], run="r", round=0, clients=["a", "b", "c"], client=client, within=60.0)

    told = at_once([lambda client=client: one(client) for client in exports])
    assert [equal(each.tensors, fedavg(exports)) for each in told] == [True] * 3
    newest = latest(store, "r")
    assert newest is not None
    assert equal(newest.tensors, told[0].tensors)
    for entry in store.backend.list(RoundKeys("r").base):  # nothing of it is a pickle
        there = store.backend.read(entry.key)
        assert there is not None
        assert there.data[:1] == b"{"


def test_a_client_without_torch_takes_part(tmp_path: Path) -> None:
    from dibs import federation

    store = Store(tmp_path / "store", create=True)
    options: dict[str, Any] = {"run": "r", "round": 0, "clients": ["a", "b"], "within": 60.0}
    calls = [
        lambda: gather(store, {"w": torch.tensor([1.0, 2.0])}, client="a", **options).tensors["w"].tolist(),
        lambda: (
            federation.gather(store, {"w": np.array([3, 4], np.float32)}, client="b", **options).tensors["w"].tolist()
        ),
    ]
    assert at_once(calls) == [[2.0, 3.0], [2.0, 3.0]]
    with pytest.raises(RefusedError, match="'w' of this client is of type F64"):
        gather(store, {"w": torch.tensor([1.0, 2.0], dtype=torch.float64)}, client="a", **options)


def test_what_is_no_tensor_is_named() -> None:
    with pytest.raises(UpdateError, match="_extra_state"):
        fedavg([{"w": torch.ones(1), "_extra_state": object()}])


def test_the_library_reads_ours_and_we_read_its(tmp_path: Path) -> None:
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False]), "c": np.ones(3, np.float16)}
    write_tensors(tmp_path / "ours", flatten(tensors, "c")[0], {"run": "r"})
    assert {k: v.tolist() for k, v in load_file(tmp_path / "ours").items()} == {
        k: v.tolist() for k, v in tensors.items()
    }
    save_file(tensors, tmp_path / "theirs", {"x": "y"})
    found = open_tensors(tmp_path / "theirs")
    assert {name: found[name].words.tolist() for name in found} == {k: v.tolist() for k, v in tensors.items()}
