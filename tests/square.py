"""A layer that computes squares, as text: what the projects of tests consist of."""

from __future__ import annotations

from textwrap import indent

SAVED = {"PyLayer": "ctx.saved_tensor()", "Function": "ctx.saved_tensors"}
"""What was saved, by the name of the class of Paddle's layers and that of torch's."""


def square(factor: object = 2, base: str = "PyLayer") -> str:
    """The class `Square`; its backward takes `factor` for 2."""
    return f"""\
class Square({base}):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        x, = {SAVED[base]}
        return {factor} * x * dy
"""


def module(factor: object = 2) -> str:
    """A module with Paddle's `Square`."""
    return f"import paddle\nfrom paddle.autograd import PyLayer\n\n\n{square(factor)}"


def layer(factor: object = 2, base: str = "PyLayer") -> str:
    """The key ``layer`` of a scenario, with `Square`."""
    return "    layer: |\n" + indent(square(factor, base), "      ")
