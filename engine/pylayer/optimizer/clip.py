"""Clipping of gradients: what optimizers take as `grad_clip`."""

from __future__ import annotations

from collections.abc import Sequence

from pylayer.tensor.array import XP, Array
from pylayer.tensor.tensor import Tensor

Pairs = list[tuple[Tensor, Array]]
"""Parameters and their gradients."""


def _may_be_clipped(parameter: Tensor) -> bool:
    return bool(getattr(parameter, "need_clip", True))


class GradientClip:
    """What an optimizer does to all gradients before a step."""

    def held(self, gradient: Array) -> Array:
        """One gradient held down, by itself."""
        raise NotImplementedError(f"{type(self).__name__} must override held() or clipped().")

    def clipped(self, pairs: Pairs) -> Pairs:
        """The pairs with their gradients held down."""
        return [(p, self.held(g) if _may_be_clipped(p) else g) for p, g in pairs]

    def __call__(
        self, params_grads: Sequence[tuple[Tensor, Tensor | None]]
    ) -> list[tuple[Tensor, Tensor | None]]:
        """As `clipped`, on Tensors; parameters without a gradient stay as they are."""
        pairs = [(p, g.array) for p, g in params_grads if g is not None]
        found = iter(self.clipped(pairs))
        return [(p, None if g is None else Tensor(next(found)[1])) for p, g in params_grads]


class ClipGradByValue(GradientClip):
    """Every element held between `min`, −`max` unless given, and `max`."""

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def held(self, gradient: Array) -> Array:
        return gradient.clip(self.min, self.max)


class ClipGradByNorm(GradientClip):
    """Each gradient scaled down to a 2-norm of `clip_norm`, if it has a larger one."""

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def held(self, gradient: Array) -> Array:
        xp = XP[type(gradient)]
        size = xp.sqrt((gradient * gradient).sum())
        return gradient * (self.clip_norm / xp.maximum(size, self.clip_norm))


class ClipGradByGlobalNorm(GradientClip):
    """All gradients scaled by one number, so that the 2-norm of all together is at most
    `clip_norm`.
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        self.clip_norm, self.group_name = float(clip_norm), group_name
        self.auto_skip_clip = auto_skip_clip

    def clipped(self, pairs: Pairs) -> Pairs:
        squares = [(g * g).sum() for p, g in pairs if _may_be_clipped(p)]
        if not squares:
            return pairs
        xp = XP[type(pairs[0][1])]
        size = xp.sqrt(sum(squares[1:], squares[0]))
        factor = self.clip_norm / xp.maximum(size, self.clip_norm)
        return [(p, (g * factor).astype(g.dtype) if _may_be_clipped(p) else g) for p, g in pairs]
