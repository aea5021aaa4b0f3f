"""Weight decay: a penalty on the size of parameters, added to their gradients."""

from __future__ import annotations

from pylayer.tensor.array import Array


class L2Decay:
    """The penalty ``coeff / 2 · Σp²`` on a parameter."""

    def __init__(self, coeff: float = 0.0) -> None:
        self.coeff = float(coeff)

    def gradient(self, array: Array) -> Array:
        """Its derivative."""
        return self.coeff * array

    def __str__(self) -> str:
        return f"L2Decay, coeff={self.coeff:f}"
