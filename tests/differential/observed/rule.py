"""A rule, and what its program prints."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np

HELPERS = """
class Square(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * 2 * x


def leaf(*values):
    return paddle.to_tensor(values, dtype="float64", stop_gradient=False)


def layer(forward, backward):
    return type("L", (PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def build(make, feed=np.ones((3, 2), "float32")):
    paddle.enable_static()
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        x = paddle.static.data("x", [None, 2], "float32")
        x.stop_gradient = False
        return paddle.static.Executor(paddle.CPUPlace()).run(main, feed={"x": feed}, fetch_list=make(x))


pylayer, gradients = paddle.static.nn.static_pylayer, paddle.static.gradients
"""
"""What the programs use beside `paddle`, `np` and `PyLayer`."""


class Rule(NamedTuple):
    """A rule by its number: what it says, and a program whose output shows it.

    `engine` says how and why the bundled engine differs, empty if it does the same. `crashes`: the program ends the
    process of the release, so it is run in one of its own; its output is not part of the page.
    """

    number: int
    says: str
    program: str
    engine: str = ""
    crashes: bool = False


def printed(paddle: Any, program: str) -> str:
    """What a program prints on a library, and the type of the exception that it ends with."""
    names: dict[str, Any] = {"paddle": paddle, "np": np, "PyLayer": paddle.autograd.PyLayer, "__name__": "program"}
    out = io.StringIO()
    with redirect_stdout(out), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(HELPERS + program, names)
        except Exception as error:
            print(type(error).__name__)
        finally:
            paddle.disable_static()
    return out.getvalue()
