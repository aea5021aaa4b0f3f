"""The update steps of SGD, Momentum and Adam, as in Paddle, including where epsilon is added."""

from __future__ import annotations

import math
from typing import Any

from pylayer.ops.arguments import require
from pylayer.optimizer.base import Optimizer, Parameters, State
from pylayer.tensor.array import XP, Array
from pylayer.tensor.tensor import Tensor


class SGD(Optimizer):
    """``p −= rate · g``."""

    def __init__(
        self,
        learning_rate: float | Tensor = 0.001,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        parameter.array -= rate * gradient


class Momentum(Optimizer):
    """``v = momentum · v + g``, ``p −= rate · v``; with Nesterov momentum, ``p −= rate · (g +
    momentum · v)``.
    """

    def __init__(
        self,
        learning_rate: float | Tensor = 0.001,
        momentum: float = 0.9,
        parameters: Parameters = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: None = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._momentum, self._use_nesterov, self._rescale = momentum, use_nesterov, rescale_grad

    def add_weight_decay(self, parameter: Tensor, gradient: Array) -> Array:
        return super().add_weight_decay(parameter, gradient * self._rescale)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        velocity = self._momentum * state.get("velocity", 0.0) + gradient
        state["velocity"] = velocity
        step = gradient + self._momentum * velocity if self._use_nesterov else velocity
        parameter.array -= rate * step


class Adam(Optimizer):
    """``p −= rate · m̂ / (√v̂ + epsilon)`` (Kingma and Ba, 2015); with `amsgrad`, v̂ is the largest
    so far.
    """

    def __init__(
        self,
        learning_rate: float | Tensor = 0.001,
        beta1: float | Tensor = 0.9,
        beta2: float | Tensor = 0.999,
        epsilon: float | Tensor = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)
        self._amsgrad = amsgrad
        require(0 <= self._beta1 < 1, "Invalid value of beta1, expect beta1 in [0,1)")
        require(0 <= self._beta2 < 1, "Invalid value of beta2, expect beta2 in [0,1)")

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp, beta1, beta2 = XP[type(gradient)], self._beta1, self._beta2
        state["step"] = state.get("step", xp.zeros(1)) + 1.0
        first = beta1 * state.get("moment1", 0.0) + (1 - beta1) * gradient
        second = beta2 * state.get("moment2", 0.0) + (1 - beta2) * (gradient * gradient)
        state.update(moment1=first, moment2=second)
        if self._amsgrad:
            second = state["moment2_max"] = xp.maximum(state.get("moment2_max", 0.0), second)
        count = float(state["step"][0])
        root = math.sqrt(1 - beta2**count)
        factor = rate * root / (1 - beta1**count)
        parameter.array -= factor * (first / (xp.sqrt(second) + self._epsilon * root))
