"""Weight decay: a penalty on the size of parameters, added to their gradients."""

from __future__ import annotations

from pylayer.tensor.array import XP, Array


class Regularizer:
    """A penalty on a parameter."""

    def __init__(self, coeff: float = 0.0) -> None:
        self.coeff = float(coeff)

    def gradient(self, array: Array) -> Array:
        """The penalty's derivative."""
        raise NotImplementedError(f"{type(self).__name__} must override gradient().")


class L1Decay(Regularizer):
    """``coeff · Σ|p|``."""

    def gradient(self, array: Array) -> Array:
        return self.coeff * XP[type(array)].sign(array)

    def __str__(self) -> str:
        return f"L1Decay, coeff={self.coeff:f}"


class L2Decay(Regularizer):
    """``coeff / 2 · Σp²``."""

    def gradient(self, array: Array) -> Array:
        return self.coeff * array

    def __str__(self) -> str:
        return f"L2Decay, coeff={self.coeff:f}"
