"""Adam and its kin, as Paddle writes them: where epsilon stands, and what is corrected for its start."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pylayer.array import XP, Array
from pylayer.optimizer.base import Optimizer, Parameters, State, step_number
from pylayer.tensor import Tensor


def _moments(state: State, g: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    """The running means of the gradient and of its square."""
    first = state["moment1"] = beta1 * state.get("moment1", 0.0) + (1 - beta1) * g
    second = state["moment2"] = beta2 * state.get("moment2", 0.0) + (1 - beta2) * (g * g)
    return first, second


def _number(value: Any) -> float:
    return float(value.item() if isinstance(value, Tensor) else value)


class Adam(Optimizer):
    """``p −= rate · m̂ / (√v̂ + epsilon)`` (Kingma and Ba, 2015); with `amsgrad`, by the largest v so far."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        for what, beta in (("beta1", beta1), ("beta2", beta2)):
            if not isinstance(beta, Tensor) and not 0 <= beta < 1:
                raise ValueError(f"Invalid value of {what}, expect {what} in [0,1).")
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._betas, self._epsilon, self._amsgrad = (_number(beta1), _number(beta2)), _number(epsilon), amsgrad

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self._betas
        at = step_number(state)
        first, second = _moments(state, gradient, beta1, beta2)
        if self._amsgrad:
            second = state["moment2_max"] = xp.maximum(state.get("moment2_max", 0.0), second)
        root = math.sqrt(1 - beta2**at)
        parameter.array -= rate * root / (1 - beta1**at) * (first / (xp.sqrt(second) + self._epsilon * root))


class AdamW(Adam):
    """`Adam`, before which ``p *= 1 − rate · weight_decay`` (Loshchilov and Hutter, 2019).

    Args:
        lr_ratio: a factor to the rate, from a parameter.
        apply_decay_param_fun: whether a parameter of this name decays.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = 0.01,
        use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        if not isinstance(weight_decay, (int, float, Tensor)):
            raise TypeError("weight_decay should be int, float or Tensor.")
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, amsgrad=amsgrad)
        self._coefficient, self._ratio, self._decays = _number(weight_decay), lr_ratio, apply_decay_param_fun

    def decayed(self, parameter: Tensor, gradient: Array) -> Array:
        return gradient

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        rate = rate if self._ratio is None else rate * self._ratio(parameter)
        coefficient = self._group(parameter).get("weight_decay", self._coefficient)
        if self._decays is None or self._decays(parameter.name):
            parameter.array *= 1 - rate * coefficient
        super().update(parameter, gradient, rate, state)


class Adamax(Optimizer):
    """``p −= rate / (1 − beta1^t) · m / u`` with ``u = max(|g|, beta2 · u + epsilon)`` (Kingma and Ba, 2015)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._betas, self._epsilon = (_number(beta1), _number(beta2)), _number(epsilon)

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self._betas
        at = step_number(state)
        first = state["moment"] = beta1 * state.get("moment", 0.0) + (1 - beta1) * gradient
        largest = state["inf_norm"] = xp.maximum(xp.abs(gradient), beta2 * state.get("inf_norm", 0.0) + self._epsilon)
        parameter.array -= rate / (1 - beta1**at) * (first / largest)


class NAdam(Optimizer):
    """`Adam` with Nesterov's momentum (Dozat, 2016)."""

    def __init__(
        self,
        learning_rate: Any = 0.002,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._betas, self._epsilon, self._decay = (_number(beta1), _number(beta2)), epsilon, momentum_decay

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self._betas
        at = step_number(state)
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (k * self._decay)) for k in (at, at + 1))
        product = state["mu_product"] = state.get("mu_product", 1.0) * now
        first, second = _moments(state, gradient, beta1, beta2)
        mean = then * first / (1 - product * then) + (1 - now) * gradient / (1 - product)
        parameter.array -= rate * mean / (xp.sqrt(second / (1 - beta2**at)) + self._epsilon)


class RAdam(Optimizer):
    """`Adam` with its variance rectified (Liu et al., 2020)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._betas, self._epsilon = (_number(beta1), _number(beta2)), epsilon

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self._betas
        at = step_number(state)
        first, second = _moments(state, gradient, beta1, beta2)
        mean = first / (1 - beta1**at)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * at * beta2**at / (1 - beta2**at)
        if length > 5:
            shrunk = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            mean = mean * math.sqrt(shrunk) * math.sqrt(1 - beta2**at) / (xp.sqrt(second) + self._epsilon)
        parameter.array -= rate * mean


class Lamb(Optimizer):
    """A step along ``m̂ / (√v̂ + epsilon) + lamb_weight_decay · p``, as long as the parameter (You et al., 2020)."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-6,
        parameters: Parameters = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        self._betas, self._epsilon = (_number(beta1), _number(beta2)), _number(epsilon)
        self._coefficient, self._excluded = lamb_weight_decay, exclude_from_weight_decay_fn
        self._always_adapt = always_adapt

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self._betas
        at = step_number(state)
        first, second = _moments(state, gradient, beta1, beta2)
        excluded = self._excluded is not None and self._excluded(parameter)
        coefficient = 0.0 if excluded else self._coefficient
        direction = first / (1 - beta1**at) / (xp.sqrt(second / (1 - beta2**at)) + self._epsilon)
        direction = direction + coefficient * parameter.array
        size, length = (xp.sqrt((a * a).sum()) for a in (parameter.array, direction))
        trusted = (size > 0) & (length > 0)
        ratio = xp.where(trusted, size / xp.where(length > 0, length, 1), 1)
        parameter.array -= rate * ratio.astype(gradient.dtype) * direction
