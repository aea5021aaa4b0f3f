"""Programs keep to the device of their executor: every operation, on a stand-in for device arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from both_ways import CASES, at_once, in_a_program
from device_array import DeviceArray, plug_in
from samples import SAMPLES

import pylayer.paddle as paddle
import pylayer.tensor.array

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plug_in(monkeypatch)
    token = pylayer.tensor.array._device.set("gpu:0")
    yield
    pylayer.tensor.array._device.reset(token)


@pytest.mark.parametrize(("name", "k"), [case for case in CASES if case[0] not in ("unbind", "as_complex")])
def test_operations_of_a_program_stay_on_the_device(name: str, k: int, device: None) -> None:
    expected = at_once(name, SAMPLES[name][k])
    _, values = in_a_program(name, SAMPLES[name][k], unknown=True)
    for value, wanted in zip(values, expected, strict=True):
        if wanted is not None and value is not None:
            np.testing.assert_allclose(value, wanted, rtol=1e-12)


def test_a_layer_with_cond_and_a_step_of_training_stay_on_the_device(device: None) -> None:
    x = paddle.static.data("X", [None, 3], "float64")
    weight = paddle.static.create_parameter([3, 1], "float64", "w")
    before = weight.numpy()
    weight.array = DeviceArray(before.copy())  # the stand-in draws no random numbers

    def backward_fn(d):  # type: ignore[no-untyped-def]
        return paddle.static.nn.cond(x.sum() > 0, lambda: d * 2, lambda: d * 3)

    hidden = paddle.static.nn.static_pylayer(lambda a: a * 1, [x @ weight], backward_fn)
    paddle.optimizer.SGD(0.5).minimize(hidden.sum())
    paddle.static.Executor().run(feed={"X": np.ones((2, 3))}, fetch_list=[hidden])
    np.testing.assert_allclose(weight.array.get(), before - 0.5 * 2 * 2)
