"""The update rules beside Adam's, as Paddle writes them: where epsilon stands, and what the rate multiplies."""

from __future__ import annotations

from typing import Any

from pylayer.array import XP, Array
from pylayer.optimizer.base import State, step_number
from pylayer.optimizer.rule import REQUIRED, Rule
from pylayer.tensor import Tensor


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
        parameter.array -= rate * (gradient + momentum * velocity if self.options.use_nesterov else velocity)


class Adagrad(
    Rule, learning_rate=REQUIRED, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None, name=None,
    initial_accumulator_value=0.0,
):  # fmt: skip
    """``s += g²``, ``p −= rate · g / (√s + epsilon)`` (Duchi et al., 2011)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        first = self.options.initial_accumulator_value
        total = state["moment"] = state.get("moment", first) + gradient * gradient
        parameter.array -= rate * gradient / (XP[type(gradient)].sqrt(total) + self.options.epsilon)


class RMSProp(
    Rule, learning_rate=REQUIRED, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameters=None,
    weight_decay=None, grad_clip=None, name=None,
):  # fmt: skip
    """``v = momentum · v + rate · g / √(s + epsilon)`` with s the mean square (or variance, `centered`), ``p −= v``."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        rho = self.options.rho
        square = state["mean_square"] = rho * state.get("mean_square", 0.0) + (1 - rho) * (gradient * gradient)
        if self.options.centered:
            mean = state["mean_grad"] = rho * state.get("mean_grad", 0.0) + (1 - rho) * gradient
            square = square - mean * mean
        change = rate * gradient / XP[type(gradient)].sqrt(square + self.options.epsilon)
        velocity = state["momentum"] = self.options.momentum * state.get("momentum", 0.0) + change
        parameter.array -= velocity


class Adadelta(
    Rule, learning_rate=0.001, epsilon=1e-6, rho=0.95, parameters=None, weight_decay=None, grad_clip=None, name=None,
):  # fmt: skip
    """``d = √((E(d²) + epsilon) / (E(g²) + epsilon)) · g``, ``p −= rate · d`` (Zeiler, 2012)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        rho, epsilon = self.options.rho, self.options.epsilon
        changes = state.get("_avg_squared_update", 0.0)
        square = state["_avg_squared_grad"] = rho * state.get("_avg_squared_grad", 0.0) + (1 - rho) * (
            gradient * gradient
        )
        change = XP[type(gradient)].sqrt((changes + epsilon) / (square + epsilon)) * gradient
        state["_avg_squared_update"] = rho * changes + (1 - rho) * (change * change)
        parameter.array -= rate * change


class ASGD(
    Rule, learning_rate=0.001, batch_num=1, parameters=None, weight_decay=None, grad_clip=None, multi_precision=False,
    name=None,
):  # fmt: skip
    """A step along the mean of the last gradients of `batch_num` batches (Schmidt et al., 2017)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.options.batch_num <= 0:
            raise ValueError("batch_num should be greater than 0")

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        at, batches = step_number(state), self.options.batch_num
        place = f"y{(at - 1) % batches}"
        total = state["d"] = state.get("d", 0.0) - state.get(place, 0.0) + gradient
        state[place] = gradient.copy()
        parameter.array -= rate * (total / min(at, batches))


class Rprop(
    Rule, learning_rate=0.001, learning_rate_range=(1e-5, 50), parameters=None, etas=(0.5, 1.2), grad_clip=None,
    multi_precision=False, name=None,
):  # fmt: skip
    """Steps of a size of its own per element, which grows while the gradient keeps its sign (Riedmiller, 1993)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        less, more = self.options.etas
        sizes = state.get("learning_rate")
        sizes = xp.full_like(gradient, rate) if sizes is None else sizes
        agreement = gradient * state.get("prev", xp.zeros_like(gradient))
        factor = xp.where(agreement > 0, more, xp.where(agreement < 0, less, 1.0))
        sizes = (sizes * factor).clip(*self.options.learning_rate_range).astype(gradient.dtype)
        state["learning_rate"] = sizes
        kept = state["prev"] = xp.where(agreement < 0, 0, gradient)
        parameter.array -= xp.sign(kept) * sizes
