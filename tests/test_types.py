"""Programs that use gradcheck and the engine have types: mypy --strict accepts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

PROGRAM = """
from __future__ import annotations

from typing import Any

import numpy as np

import gradcheck
import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer, PyLayerContext


class Double(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x: paddle.Tensor) -> paddle.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: PyLayerContext, dy: paddle.Tensor) -> paddle.Tensor:
        return dy * 2


result = gradcheck.check(Double, np.ones(3), order=1, precision="loose")
assert result, result.headline()
gradcheck.assert_gradients(Double, gradcheck.replicated(np.ones(3)), world=2, outputs="replicated")
found = gradcheck.explore(Double, {"x": "B C"}, seconds=1.0)
checked: int = found.checked
shapes: dict[str, np.ndarray[Any, Any]] | None = found.inputs
"""


@pytest.mark.long
def test_a_program_with_a_layer_of_its_own_passes_mypy_strict(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(PROGRAM)
    said, errors, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "user.py")])
    assert status == 0, said + errors
