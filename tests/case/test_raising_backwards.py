"""A backward that raises for some cotangents alone: the line that raises is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradcheck
import pylayer.paddle as paddle

PyLayer: Any = paddle.autograd.PyLayer


class Halves(PyLayer):
    """The backward does not take the cotangent of an output that takes no part in the loss."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x / 2, x / 2

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return (g + h) / 2


def test_the_line_that_raises_is_shown() -> None:
    result = gradcheck.check(Halves, np.ones(3))
    cause = result.diagnosis[0]
    assert (result.verdict, cause.code) == ("FAIL", "GC136")
    assert cause.source_line[cause.column : cause.end_column] == "g + h"
    assert "│ return (g + h) / 2" in str(result)
