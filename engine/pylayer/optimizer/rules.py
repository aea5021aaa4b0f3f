"""The update rules beside Adam's, as Paddle writes them: where epsilon stands, and what the rate multiplies."""

from __future__ import annotations

from typing import Any

from pylayer.array import XP, Array
from pylayer.optimizer.base import Optimizer, Parameters, State, step_number
from pylayer.tensor import Tensor


class SGD(Optimizer):
    """``p −= rate · g``."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        parameter.array -= rate * gradient


class Momentum(Optimizer):
    """``v = momentum · v + g``, ``p −= rate · v``; with Nesterov's, ``p −= rate · (g + momentum · v)``."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        momentum: float = 0.9,
        parameters: Parameters = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._momentum, self._nesterov, self._rescale = momentum, use_nesterov, rescale_grad

    def decayed(self, parameter: Tensor, gradient: Array) -> Array:
        return super().decayed(parameter, gradient * self._rescale if self._rescale != 1 else gradient)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        velocity = state["velocity"] = self._momentum * state.get("velocity", 0.0) + gradient
        parameter.array -= rate * (gradient + self._momentum * velocity if self._nesterov else velocity)


class Adagrad(Optimizer):
    """``s += g²``, ``p −= rate · g / (√s + epsilon)`` (Duchi et al., 2011)."""

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1e-6,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._initial = epsilon, initial_accumulator_value

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        total = state["moment"] = state.get("moment", self._initial) + gradient * gradient
        parameter.array -= rate * gradient / (XP[type(gradient)].sqrt(total) + self._epsilon)


class RMSProp(Optimizer):
    """``v = momentum · v + rate · g / √(s + epsilon)`` with s the mean square (or variance, `centered`), ``p −= v``."""

    def __init__(
        self,
        learning_rate: Any,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._rho, self._epsilon, self._momentum, self._centered = rho, epsilon, momentum, centered

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        rho = self._rho
        square = state["mean_square"] = rho * state.get("mean_square", 0.0) + (1 - rho) * (gradient * gradient)
        if self._centered:
            mean = state["mean_grad"] = rho * state.get("mean_grad", 0.0) + (1 - rho) * gradient
            square = square - mean * mean
        change = rate * gradient / XP[type(gradient)].sqrt(square + self._epsilon)
        velocity = state["momentum"] = self._momentum * state.get("momentum", 0.0) + change
        parameter.array -= velocity


class Adadelta(Optimizer):
    """``d = √((E(d²) + epsilon) / (E(g²) + epsilon)) · g``, ``p −= rate · d`` (Zeiler, 2012)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._rho, self._epsilon = rho, epsilon

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        rho, epsilon = self._rho, self._epsilon
        changes = state.get("_avg_squared_update", 0.0)
        square = state["_avg_squared_grad"] = rho * state.get("_avg_squared_grad", 0.0) + (1 - rho) * (
            gradient * gradient
        )
        change = XP[type(gradient)].sqrt((changes + epsilon) / (square + epsilon)) * gradient
        state["_avg_squared_update"] = rho * changes + (1 - rho) * (change * change)
        parameter.array -= rate * change


class ASGD(Optimizer):
    """A step along the mean of the last gradients of `batch_num` batches (Schmidt et al., 2017)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        batch_num: int = 1,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if batch_num <= 0:
            raise ValueError("batch_num should be greater than 0")
        self._batches = batch_num

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        at = step_number(state)
        place = f"y{(at - 1) % self._batches}"
        total = state["d"] = state.get("d", 0.0) - state.get(place, 0.0) + gradient
        state[place] = gradient.copy()
        parameter.array -= rate * (total / min(at, self._batches))


class Rprop(Optimizer):
    """Steps of a size of its own per element, which grows while the gradient keeps its sign (Riedmiller, 1993)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_range: tuple[float, float] = (1e-5, 50),
        parameters: Parameters = None,
        etas: tuple[float, float] = (0.5, 1.2),
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        self._range, self._etas = learning_rate_range, etas

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        sizes = state.get("learning_rate")
        sizes = xp.full_like(gradient, rate) if sizes is None else sizes
        agreement = gradient * state.get("prev", xp.zeros_like(gradient))
        factor = xp.where(agreement > 0, self._etas[1], xp.where(agreement < 0, self._etas[0], 1.0))
        sizes = state["learning_rate"] = (sizes * factor).clip(*self._range).astype(gradient.dtype)
        kept = state["prev"] = xp.where(agreement < 0, 0, gradient)
        parameter.array -= xp.sign(kept) * sizes
