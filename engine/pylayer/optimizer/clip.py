"""Holding gradients down: what optimizers take as `grad_clip`, and `paddle.nn.utils.clip_grad_norm_` and the like."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pylayer.array import XP, Array
from pylayer.ops.creation import zeros
from pylayer.tensor import Tensor
from pylayer.versions import mark_changed

Pairs = list[tuple[Tensor, Array]]
"""Parameters and their gradients."""


def _norm(array: Array) -> Array:
    return XP[type(array)].sqrt((array * array).sum())


def _may_be_clipped(parameter: Tensor) -> bool:
    return bool(getattr(parameter, "need_clip", True))


class GradientClip:
    """What an optimizer does to all gradients before a step."""

    def clipped(self, pairs: Pairs) -> Pairs:
        """The pairs with their gradients held down."""
        raise NotImplementedError(f"{type(self).__name__} must override clipped().")

    def __call__(self, params_grads: Sequence[tuple[Tensor, Tensor | None]]) -> list[tuple[Tensor, Tensor | None]]:
        """As `clipped`, on Tensors; parameters without a gradient stay as they are."""
        pairs = [(p, g.array) for p, g in params_grads if g is not None]
        found = iter(self.clipped(pairs))
        return [(p, None if g is None else Tensor(next(found)[1])) for p, g in params_grads]


class ClipGradByValue(GradientClip):
    """Every element held between `min`, −`max` unless given, and `max`."""

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def clipped(self, pairs: Pairs) -> Pairs:
        return [(p, g.clip(self.min, self.max) if _may_be_clipped(p) else g) for p, g in pairs]


class ClipGradByNorm(GradientClip):
    """Each gradient scaled down to a 2-norm of `clip_norm`, if it has a larger one."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def clipped(self, pairs: Pairs) -> Pairs:
        def held(g: Array) -> Array:
            size = _norm(g)
            return g * (self.clip_norm / XP[type(g)].maximum(size, self.clip_norm))

        return [(p, held(g) if _may_be_clipped(p) else g) for p, g in pairs]


class ClipGradByGlobalNorm(GradientClip):
    """All gradients scaled by one number, so that the 2-norm of all together is at most `clip_norm`."""

    def __init__(self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False) -> None:
        self.clip_norm, self.group_name, self.auto_skip_clip = float(clip_norm), group_name, auto_skip_clip

    def clipped(self, pairs: Pairs) -> Pairs:
        squares = [(g * g).sum() for p, g in pairs if _may_be_clipped(p)]
        if not squares:
            return pairs
        xp = XP[type(pairs[0][1])]
        total = squares[0]
        for square in squares[1:]:
            total = total + square
        factor = self.clip_norm / xp.maximum(xp.sqrt(total), self.clip_norm)
        return [(p, (g * factor).astype(g.dtype) if _may_be_clipped(p) else g) for p, g in pairs]


# --------------------------------------------------------------------------- in place, without an optimizer
def _with_gradient(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p for p in given if p.grad is not None]


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale the gradients of `parameters` so that their norm is at most `max_norm`; returns what it was.

    Raises:
        RuntimeError: it is infinite or NaN, and `error_if_nonfinite`.
    """
    found = _with_gradient(parameters)
    if not found:
        return zeros([])
    xp = XP[type(found[0].array)]
    gradients = [p.grad.array for p in found]  # type: ignore[union-attr]
    if norm_type == math.inf:
        total = xp.stack([xp.abs(g).max() for g in gradients]).max()
    else:
        sizes = xp.stack([(xp.abs(g) ** norm_type).sum() for g in gradients])
        total = sizes.sum() ** (1.0 / norm_type)
    if error_if_nonfinite and not bool(xp.isfinite(total)):
        raise RuntimeError(
            f"The total norm of {norm_type} order of the gradients from `parameters` is non-finite, so it cannot be "
            f"clipped. In any case, disable this error and scale the gradient by non-finite norm, set "
            f"`error_if_nonfinite=False`"
        )
    factor = xp.minimum(max_norm / (total + 1e-6), 1.0)
    for gradient in gradients:
        gradient *= factor
        mark_changed(gradient)
    return Tensor(xp.asarray(total))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Hold every element of the gradients of `parameters` between −`clip_value` and `clip_value`."""
    for parameter in _with_gradient(parameters):
        gradient: Any = parameter.grad.array  # type: ignore[union-attr]
        gradient[...] = gradient.clip(-clip_value, clip_value)
        mark_changed(gradient)
