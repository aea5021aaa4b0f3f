"""The shared base of the two backends with Paddle's API, the bundled engine and Paddle: names,
terms and rules.
"""

from __future__ import annotations

import re
from typing import Any

from gradcheck.backends.base import Backend, FrameworkWords, Generator, Refusal, Tensor
from gradcheck.support.foreign import text_of

REFUSED = re.compile(
    r"^(?:\(InvalidArgument\) )?GradNodePyLayer_(\S+?)(?: : |'s backward function,? )(.*)",
    re.DOTALL,
)
"""The start of the engine's and Paddle's message when they reject the result of a PyLayer's
backward.
"""
APPLIED = r"applied at (?:[^):]*(?:arguments|of_arrays)\.py|[^):]*[/\\][\w.]+:[A-Za-z_][\w.]*):\d+"
"""A source position to remove from messages: in gradcheck itself, or in a scenario that ``gradcheck
check`` generated.
"""
TAIL = re.compile(
    rf"\s*(?:\[Hint: .*|\(at /.*|, please check your PyLayer code.*|\({APPLIED}\))",
    re.DOTALL,
)
"""Parts of messages from Paddle that describe its own source, or a position outside of the user's
code.
"""
INPUT = re.compile(r"\(input `(\w+)`\)")


class PaddleApi(Backend):
    """A backend with Paddle's API; `paddle` is the module that ``import paddle`` gives."""

    packages = ("paddle",)
    words = FrameworkWords(
        framework="Paddle",
        layer="PyLayer",
        module="nn.Layer",
        takes_gradient="stop_gradient=False",
        takes_none="stop_gradient is True for all of them",
        rules="Paddle's",
    )
    documents = "paddle"
    lacks_kernel = re.compile("kernel .* is not registered")
    submodules = "_sub_layers"

    def __init__(self, paddle: Any) -> None:
        self.paddle = paddle
        self.tensor_type = paddle.Tensor
        self.layer_type = paddle.autograd.PyLayer
        self.module_type = paddle.nn.Layer

    def names(self) -> dict[str, Any]:
        return {"paddle": self.paddle, "PyLayer": self.layer_type}

    def seed(self, seed: int) -> None:
        self.paddle.seed(seed)

    def generators(self) -> list[Generator]:
        return [*super().generators(), (self.paddle.get_rng_state, self.paddle.set_rng_state)]

    def settings(self) -> Any:
        """Whether static mode is off."""
        return self.paddle.in_dynamic_mode()

    def restore_settings(self, before: Any) -> None:
        if self.paddle.in_dynamic_mode() is not before:
            (self.paddle.enable_static, self.paddle.disable_static)[before]()

    def needs_gradient(self, tensor: Tensor) -> bool:
        return not tensor.stop_gradient

    def claims(self, output: Tensor) -> bool:
        """Outputs that a layer marks as non-differentiable make no claim. An output that is cut off
        from the inputs is a leaf, and claims a gradient of zero.
        """
        return bool(output.is_leaf or not output.stop_gradient)

    def version(self, tensor: Tensor) -> int:
        return int(tensor.inplace_version)

    def backward(self, outputs: list[Tensor], cotangents: list[Tensor | None]) -> None:
        self.paddle.autograd.backward(outputs, cotangents)

    def may_change(self, context: Any, returned: list[Tensor]) -> list[Tensor]:
        """A returned input counts as changed in place and takes its place in the graph, unless it
        is marked otherwise.
        """
        marked = set(map(id, getattr(context, "not_inplace_tensors", None) or ()))
        return [tensor for tensor in returned if id(tensor) not in marked]

    def refusal(self, error: BaseException) -> Refusal | None:
        match = REFUSED.match(text_of(error)) if isinstance(error, ValueError) else None
        if match is None:
            return None
        text = f"backward of {match[1]}: {TAIL.sub('', match[2])}"
        return Refusal(text, tuple(INPUT.findall(text)), layer=match[1])

    def alias(self, tensor: Tensor, stop_gradient: bool) -> Tensor:
        leaf = tensor.detach()
        leaf.stop_gradient = stop_gradient
        return leaf

    def reverse_axes(self, tensor: Tensor) -> Tensor:
        return tensor.transpose([*range(tensor.ndim)][::-1])

    def strided_view(self, tensor: Tensor, shape: list[int], strides: list[int]) -> Tensor:
        return self.paddle.as_strided(tensor, shape, strides)
