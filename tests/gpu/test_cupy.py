"""The operations, and a check of a gradient, on a real GPU through CuPy; skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from device_suite import CASES, case_id, check

import pylayer.paddle as paddle
from gradcheck.commands import main
from pylayer.tape.op import Op
from pylayer.tensor.array import XP

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install '.[cupy]'")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(autouse=True)
def gpu() -> Iterator[None]:
    try:
        paddle.set_device("gpu")
    except RuntimeError as error:
        pytest.skip(str(error))
    yield
    paddle.set_device("cpu")


@pytest.mark.parametrize(("op", "sample"), CASES, ids=case_id)
def test_operations_stay_on_the_device(op: Op, sample: int) -> None:
    check(op, sample, cupy.ndarray, cupy.asarray, rtol=1e-9)


def test_new_tensors_are_made_on_the_device() -> None:
    for tensor in (paddle.to_tensor([1.0]), paddle.ones([2]), paddle.randn([2]), paddle.arange(3)):
        assert type(tensor.array) is cupy.ndarray
        assert type(tensor.array) in XP
        assert repr(tensor.place) == "Place(gpu:0)"
    assert isinstance(paddle.ones([2]).numpy(), np.ndarray)


def test_the_bundled_numerics_pass_on_it() -> None:
    specs = Path(__file__).parents[2] / "specs"
    found = CliRunner().invoke(main, ["run", "-b", "cupy", str(specs / "checker" / "numerics.grad.yaml")])
    assert found.exit_code == 0, found.output
