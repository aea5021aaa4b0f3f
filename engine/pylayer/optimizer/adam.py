"""Adam and its kin, as Paddle writes them: where epsilon stands, and what is corrected for its start."""

from __future__ import annotations

import math
from typing import Any

from pylayer.array import XP, Array
from pylayer.optimizer.base import State, step_number
from pylayer.optimizer.rule import Rule
from pylayer.tensor import Tensor


def _moments(state: State, g: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    """The running means of the gradient and of its square."""
    first = state["moment1"] = beta1 * state.get("moment1", 0.0) + (1 - beta1) * g
    second = state["moment2"] = beta2 * state.get("moment2", 0.0) + (1 - beta2) * (g * g)
    return first, second


_BETAS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
_USUAL: dict[str, Any] = {"parameters": None, "weight_decay": None, "grad_clip": None}


class Adam(
    Rule, learning_rate=0.001, **_BETAS, **_USUAL, lazy_mode=False, multi_precision=False, use_multi_tensor=False,
    amsgrad=False, name=None,
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
        first, second = _moments(state, gradient, beta1, beta2)
        if self.options.amsgrad:
            second = state["moment2_max"] = xp.maximum(state.get("moment2_max", 0.0), second)
        root = math.sqrt(1 - beta2**at)
        parameter.array -= rate * root / (1 - beta1**at) * (first / (xp.sqrt(second) + self.options.epsilon * root))


class AdamW(
    Adam, learning_rate=0.001, **_BETAS, parameters=None, weight_decay=0.01, use_lowprecision_moment=False,
    lr_ratio=None, apply_decay_param_fun=None, grad_clip=None, lazy_mode=False, multi_precision=False, amsgrad=False,
    name=None,
):  # fmt: skip
    """`Adam`, before which ``p *= 1 − rate · weight_decay`` (Loshchilov and Hutter, 2019).

    Args:
        lr_ratio: a factor to the rate, from a parameter.
        apply_decay_param_fun: whether a parameter of this name decays.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not isinstance(self._weight_decay, (int, float, Tensor)):
            raise TypeError("weight_decay should be int, float or Tensor.")

    def decayed(self, parameter: Tensor, gradient: Array) -> Array:
        return gradient

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        ratio, decays = self.options.lr_ratio, self.options.apply_decay_param_fun
        rate = rate if ratio is None else rate * ratio(parameter)
        coefficient = float(self._group(parameter).get("weight_decay", self._weight_decay))
        if decays is None or decays(parameter.name):
            parameter.array *= 1 - rate * coefficient
        super().update(parameter, gradient, rate, state)


class Adamax(Rule, learning_rate=0.001, **_BETAS, **_USUAL, name=None):
    """``p −= rate / (1 − beta1^t) · m / u`` with ``u = max(|g|, beta2 · u + epsilon)`` (Kingma and Ba, 2015)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self.options.beta1, self.options.beta2
        at = step_number(state)
        first = state["moment"] = beta1 * state.get("moment", 0.0) + (1 - beta1) * gradient
        largest = state["inf_norm"] = xp.maximum(
            xp.abs(gradient), beta2 * state.get("inf_norm", 0.0) + self.options.epsilon
        )
        parameter.array -= rate / (1 - beta1**at) * (first / largest)


class NAdam(Rule, learning_rate=0.002, **_BETAS, momentum_decay=0.004, **_USUAL, name=None):
    """`Adam` with Nesterov's momentum (Dozat, 2016)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self.options.beta1, self.options.beta2
        at = step_number(state)
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (k * self.options.momentum_decay)) for k in (at, at + 1))
        product = state["mu_product"] = state.get("mu_product", 1.0) * now
        first, second = _moments(state, gradient, beta1, beta2)
        mean = then * first / (1 - product * then) + (1 - now) * gradient / (1 - product)
        parameter.array -= rate * mean / (xp.sqrt(second / (1 - beta2**at)) + self.options.epsilon)


class RAdam(Rule, learning_rate=0.001, **_BETAS, **_USUAL, name=None):
    """`Adam` with its variance rectified (Liu et al., 2020)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self.options.beta1, self.options.beta2
        at = step_number(state)
        first, second = _moments(state, gradient, beta1, beta2)
        mean = first / (1 - beta1**at)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * at * beta2**at / (1 - beta2**at)
        if length > 5:
            shrunk = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            mean = mean * math.sqrt(shrunk) * math.sqrt(1 - beta2**at) / (xp.sqrt(second) + self.options.epsilon)
        parameter.array -= rate * mean


class Lamb(
    Rule, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6, parameters=None,
    grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False, always_adapt=False, name=None,
):  # fmt: skip
    """A step along ``m̂ / (√v̂ + epsilon) + lamb_weight_decay · p``, as long as the parameter (You et al., 2020)."""

    def update(self, parameter: Tensor, gradient: Array, rate: float, state: State) -> None:
        xp = XP[type(gradient)]
        beta1, beta2 = self.options.beta1, self.options.beta2
        at = step_number(state)
        first, second = _moments(state, gradient, beta1, beta2)
        excluded = self.options.exclude_from_weight_decay_fn
        coefficient = 0.0 if excluded is not None and excluded(parameter) else self.options.lamb_weight_decay
        direction = first / (1 - beta1**at) / (xp.sqrt(second / (1 - beta2**at)) + self.options.epsilon)
        direction = direction + coefficient * parameter.array
        size, length = (xp.sqrt((a * a).sum()) for a in (parameter.array, direction))
        trusted = (size > 0) & (length > 0)
        ratio = xp.where(trusted, size / xp.where(length > 0, length, 1), 1)
        parameter.array -= rate * ratio.astype(gradient.dtype) * direction
