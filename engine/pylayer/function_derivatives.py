"""`paddle.incubate.autograd`'s Jacobian and Hessian of functions: matrices, all inputs and all outputs flattened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pylayer.derivatives import as_tensors, gradients
from pylayer.ops.creation import zeros_like
from pylayer.ops.indexing import getitem
from pylayer.ops.inplace import assign
from pylayer.ops.joining import concat, stack
from pylayer.ops.shape import reshape
from pylayer.tensor import Tensor


def _input(x: Tensor) -> Tensor:
    """The Tensor in a place of its own in the graph; a leaf that needs a gradient, if it needed none."""
    if not x.stop_gradient:
        return assign(x)
    leaf = x.detach()
    leaf.stop_gradient = False
    return leaf


class Jacobian:
    """The derivatives of a function, [outputs, inputs], computed when they are first used.

    Args:
        func: of as many Tensors as `xs` has; it returns one or several.
        xs: a Tensor or a list of them; their elements stand one Tensor after the other.
        is_batched: the first axis is that of a batch, whose entries do not mix: [batch, outputs, inputs].
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        self._xs = [_input(x) for x in as_tensors(xs)]
        self._batched = is_batched
        self._ys = self._flat(as_tensors(func(*self._xs)))
        self._found: Tensor | None = None

    def _flat(self, tensors: Sequence[Tensor]) -> Tensor:
        rows = [reshape(t, [t.shape[0], -1] if self._batched else [-1]) for t in tensors]
        return concat(rows, -1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix, or of the batch of them."""
        return (*self._ys.shape, self._flat(self._xs).shape[-1])

    def _row(self, y: Tensor) -> Tensor:
        """The gradient of one output; zeros for what it does not depend on."""
        found: Sequence[Tensor | None] = [None] * len(self._xs)
        if not y.stop_gradient:
            found = gradients(y, self._xs)
        return self._flat([zeros_like(x) if g is None else g for x, g in zip(self._xs, found, strict=True)])

    def __getitem__(self, index: Any) -> Tensor:
        if any(part is Ellipsis for part in (index if isinstance(index, tuple) else (index,))):
            raise IndexError("Ellipsis index currently is not supported.")
        if self._found is None:
            rows = [self._row(getitem(self._ys, (..., k))) for k in range(self._ys.shape[-1])]
            self._found = stack(rows, -2)
        return self._found[index]


class Hessian(Jacobian):
    """The second derivatives of a function of one output, or of one per entry of the batch; see `Jacobian`.

    Raises:
        RuntimeError: it has several outputs.
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        def gradient(*inputs: Tensor) -> Tensor:
            first = Jacobian(func, inputs, is_batched)
            if first.shape[-2] != 1:
                raise RuntimeError(
                    "The function given to Hessian should return as single element Tensor or batched single element "
                    f"Tensor, but returns {first.shape[-2]} elements."
                )
            return first[:, 0, :] if is_batched else first[0, :]

        super().__init__(gradient, xs, is_batched)
