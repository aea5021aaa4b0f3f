"""The steps of SGD, Momentum and Adam, as Paddle writes them: where epsilon stands, and what the rate multiplies."""

from __future__ import annotations

import math
from typing import Any

from pylayer.optimizer.base import State, step_number
from pylayer.optimizer.rule import Rule
from pylayer.tensor.array import XP, Array
from pylayer.tensor.tensor import Tensor


class SGD(
    Rule, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None, multi_precision=False, name=None,
):  # fmt: skip
    """``p −= rate · g``."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        parameter.array -= rate * gradient


class Momentum(
    Rule, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None, grad_clip=None,
    multi_precision=False, rescale_grad=1.0, use_multi_tensor=False, name=None,
):  # fmt: skip
    """``v = momentum · v + g``, ``p −= rate · v``; with Nesterov's, ``p −= rate · (g + momentum · v)``."""

    def decayed(self, parameter: Tensor, gradient: Array) -> Array:
        scale = self.options.rescale_grad
        return super().decayed(parameter, gradient * scale if scale != 1 else gradient)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        momentum = self.options.momentum
        velocity = state["velocity"] = momentum * state.get("velocity", 0.0) + gradient
        parameter.array -= rate * (
            gradient + momentum * velocity if self.options.use_nesterov else velocity
        )


class Adam(
    Rule, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=None,
    grad_clip=None, lazy_mode=False, multi_precision=False, use_multi_tensor=False, amsgrad=False, name=None,
):  # fmt: skip
    """``p −= rate · m̂ / (√v̂ + epsilon)`` (Kingma and Ba, 2015); with `amsgrad`, by the largest v so far."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for what in ("beta1", "beta2"):
            if not 0 <= getattr(self.options, what) < 1:
                raise ValueError(f"Invalid value of {what}, expect {what} in [0,1).")

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self.options.beta1, self.options.beta2
        at = step_number(state)
        first = state["moment1"] = beta1 * state.get("moment1", 0.0) + (1 - beta1) * gradient
        second = state["moment2"] = beta2 * state.get("moment2", 0.0) + (1 - beta2) * (
            gradient * gradient
        )
        if self.options.amsgrad:
            second = state["moment2_max"] = xp.maximum(state.get("moment2_max", 0.0), second)
        root = math.sqrt(1 - beta2**at)
        parameter.array -= (
            rate
            * root
            / (1 - beta1**at)
            * (first / (xp.sqrt(second) + self.options.epsilon * root))
        )
