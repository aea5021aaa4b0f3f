"""Every operation keeps to the device of its arrays, in forward, backward and double backward."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from device_array import DeviceArray, HostMixingError, plug_in
from device_suite import CASES, case_id, check

import pylayer
import pylayer.paddle as paddle
from pylayer.tape.op import Op
from pylayer.tensor.tensor import Tensor

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch)


@pytest.mark.parametrize(("op", "sample"), CASES, ids=case_id)
def test_operations_stay_on_the_device(op: Op, sample: int) -> None:
    check(op, sample, DeviceArray, DeviceArray, rtol=1e-12)


@pytest.mark.parametrize(
    "convert", [np.asarray, float, bool, int, list, lambda x: np.add(x, 1), lambda x: np.ones(2) + x]
)
def test_the_stand_in_lets_nothing_through_to_the_host(convert: object) -> None:
    with pytest.raises(TypeError):
        convert(DeviceArray(np.ones(2)))  # type: ignore[operator]


def test_the_stand_in_refuses_host_arrays() -> None:
    with pytest.raises(HostMixingError):
        DeviceArray(np.ones(2)) + np.ones(2)


def test_a_py_layer_and_a_step_of_training_stay_on_the_device() -> None:
    class Tanh(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            y = paddle.tanh(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, dy):  # type: ignore[no-untyped-def]
            (y,) = ctx.saved_tensor()
            return dy * (1 - paddle.square(y))

    x = Tensor(DeviceArray(np.linspace(-1, 1, 6).reshape(2, 3)), None, False)
    w = Tensor(DeviceArray(np.ones((3, 2))), None, False)
    (Tanh.apply(x) @ w).mean().backward()
    assert type(x.grad.array) is type(w.grad.array) is DeviceArray
    np.testing.assert_allclose(x.grad.array.get(), (1 - np.tanh(x.array.get()) ** 2) * 0.5, rtol=1e-12)


def test_random_numbers_can_be_drawn_again_and_are_those_of_the_host() -> None:
    """Recomputation goes back to an earlier state, which a device's own generator does not give."""
    paddle.seed(3)
    host = paddle.rand([4]).numpy()
    paddle.set_device("gpu")
    try:
        paddle.seed(3)
        state = paddle.get_rng_state()
        first = paddle.rand([4])
        paddle.set_rng_state(state)
        again = paddle.rand([4])
    finally:
        paddle.set_device("cpu")
    assert type(first.array) is type(again.array) is DeviceArray
    assert host.tolist() == first.array.get().tolist() == again.array.get().tolist()


def test_only_one_file_knows_cupy() -> None:
    root = Path(pylayer.__file__).parent
    importing = [p.name for p in root.rglob("*.py") if "import cupy" in p.read_text(encoding="utf-8")]
    assert importing == ["array.py"]
