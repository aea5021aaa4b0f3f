"""Whole derivatives: Jacobian and Hessian matrices, of what was computed and of functions, and products with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pylayer.ops.creation import ones_like, zeros_like
from pylayer.ops.indexing import getitem
from pylayer.ops.inplace import assign
from pylayer.ops.joining import concat, stack
from pylayer.ops.shape import reshape
from pylayer.static.backward import gradients as static_gradients
from pylayer.tape.autograd import grad
from pylayer.tape.symbol import recording
from pylayer.tensor.tensor import Tensor


def gradients(
    ys: Any, xs: Any, cotangents: Any = None, create_graph: bool = True
) -> Sequence[Tensor | None]:
    """The gradients of what was computed; in static mode as further operators of the program."""
    if recording.get() is not None:
        return static_gradients(ys, xs, cotangents)
    return grad(ys, xs, cotangents, create_graph=create_graph, allow_unused=True)


class _Matrix:
    """The derivatives of all elements of some Tensors by all of others, computed when they are first used.

    They are [outputs, inputs], or batched [batch, outputs, inputs], where entries of the batch do not mix.
    """

    def __init__(self, ys: Sequence[Tensor], xs: Sequence[Tensor], batched: bool) -> None:
        self._ys, self._xs, self._batched = ys, xs, batched
        self._found: Tensor | None = None

    @property
    def shape(self) -> Any:
        """The shape of the matrix, or of the batch of them."""
        return (*self._flat(self._ys).shape, self._flat(self._xs).shape[-1])

    def evaluated(self) -> Tensor:
        """All of it as a Tensor that can be differentiated again."""
        if self._found is None:
            ys = self._flat(self._ys)
            rows = [self._row(getitem(ys, (..., k))) for k in range(ys.shape[-1])]
            self._found = reshape(stack(rows, -2), list(self.shape))
        return self._found

    def _flat(self, tensors: Sequence[Tensor]) -> Tensor:
        return concat(
            [reshape(t, [t.shape[0], -1] if self._batched else [-1]) for t in tensors], -1
        )

    def _row(self, y: Tensor) -> Tensor:
        """The gradient of one output; zeros for what it does not depend on."""
        found = [None] * len(self._xs) if y.stop_gradient else gradients(y, self._xs)
        return self._flat(
            [zeros_like(x) if g is None else g for x, g in zip(self._xs, found, strict=True)]
        )

    def __getitem__(self, index: Any) -> Tensor:
        if any(part is Ellipsis for part in (index if isinstance(index, tuple) else (index,))):
            raise IndexError("Ellipsis index currently is not supported.")
        return self.evaluated()[index]


# --------------------------------------------------------------------------- of what was computed
class Jacobian(_Matrix):
    """The derivatives of `ys` by `xs`, otherwise as the Tensor of them.

    Its shape is that of `ys` followed by that of `xs`; with `is_batched` the first axis of both is one.

    Raises:
        ValueError: `ys` or `xs` has more than one axis beside that of the batch.
    """

    def __init__(self, ys: Tensor | Jacobian, xs: Tensor, is_batched: bool = False) -> None:
        ys = ys.evaluated() if isinstance(ys, Jacobian) else ys
        least, most = (1, 2) if is_batched else (0, 1)
        for name, t in (("xs", xs), ("ys", ys)):
            if not least <= t.ndim <= most:
                raise ValueError(
                    f"{name}.ndim should be {least} or {most} when is_batched={is_batched} but got {t.ndim}"
                )
        super().__init__([ys], [xs], is_batched)

    @property
    def shape(self) -> list[int]:
        """The shape of the matrix, or of the batch of them."""
        return [*self._ys[0].shape, *self._xs[0].shape[self._batched :]]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.evaluated(), name)


class Hessian(Jacobian):
    """The second derivatives of `ys` by `xs`."""


def _delegated(name: str) -> Callable[..., Any]:
    def operator(self: Jacobian, other: Any) -> Any:
        return getattr(self.evaluated(), name)(
            other.evaluated() if isinstance(other, Jacobian) else other
        )

    return operator


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "pow",
    "mod",
    "floordiv",
    "matmul",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
):
    setattr(Jacobian, f"__{_name}__", _delegated(f"__{_name}__"))


def jacobian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """The `Jacobian` of each of `ys` by each of `xs`: one, a tuple where one is a sequence, of tuples where both are.

    Raises:
        ValueError: `batch_axis` is neither None nor 0, or a Tensor has too many axes.
    """
    if batch_axis not in (None, 0):
        raise ValueError(f"batch_axis should be None or 0, but got {batch_axis}.")
    if isinstance(ys, (list, tuple)):
        return tuple(jacobian(y, xs, batch_axis) for y in ys)
    if isinstance(xs, (list, tuple)):
        return tuple(Jacobian(ys, x, batch_axis is not None) for x in xs)
    return Jacobian(ys, xs, batch_axis is not None)


def hessian(ys: Tensor, xs: Any, batch_axis: int | None = None) -> Any:
    """The second derivatives of a scalar, or of one scalar per entry of the batch; see `jacobian`.

    Raises:
        ValueError: `ys` has several elements, or `batch_axis` is neither None nor 0.
    """
    if batch_axis not in (None, 0):
        raise ValueError("Only support batch_axis=0 yet.")
    batched = batch_axis is not None
    name, one = ("ys[0]", ys[0]) if batched else ("ys", ys)
    if one.size > 1:
        raise ValueError(
            f"Only support {name}.numel()({one.size})==1 when batch_axis is {'int' if batched else None}."
        )
    ys = reshape(ys, [-1] if batched else [])
    if isinstance(xs, (list, tuple)):
        return tuple(tuple(Hessian(Jacobian(ys, x, batched), z, batched) for z in xs) for x in xs)
    return Hessian(Jacobian(ys, xs, batched), xs, batched)


# --------------------------------------------------------------------------- products
def _apart(value: Any) -> Any:
    """Leaves of the same values that need a gradient: what comes out belongs to no other graph."""
    if isinstance(value, (list, tuple)):
        return tuple(_apart(v) for v in value)
    leaf = value.detach()
    leaf.stop_gradient = False
    return leaf


def _check_shapes(v: Any, like: Any) -> None:
    wanted = [list(t.shape) for t in as_tensors(like)]
    given = wanted if v is None else [list(t.shape) for t in as_tensors(v)]
    if wanted != given:
        raise RuntimeError(
            f"The v should have the same shapes as what it is multiplied with, {wanted}, but has {given}."
        )


def _gradients(ys: Any, xs: Any, v: Any) -> Any:
    found = gradients(as_tensors(ys), as_tensors(xs), None if v is None else as_tensors(v))
    filled = [zeros_like(x) if g is None else g for x, g in zip(as_tensors(xs), found, strict=True)]
    return tuple(filled) if isinstance(xs, (list, tuple)) else filled[0]


def as_tensors(xs: Any) -> Any:
    """A Tensor or a list of them as a tuple; anything else as it is."""
    if isinstance(xs, Tensor):
        return (xs,)
    return tuple(xs) if isinstance(xs, Sequence) else xs


def vjp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """``func(xs)`` and the product of `v`, ones unless given, with its Jacobian.

    Raises:
        RuntimeError: the shapes of `v` are not those of what `func` returns.
    """
    inputs = _apart(xs)
    ys = func(*as_tensors(inputs))
    _check_shapes(v, ys)
    return ys, _gradients(ys, inputs, v)


def jvp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """``func(xs)`` and the product of its Jacobian with `v`, ones unless given: a vjp of a vjp.

    Raises:
        RuntimeError: the shapes of `v` are not those of `xs`.
    """
    inputs = _apart(xs)
    ys = func(*as_tensors(inputs))
    _check_shapes(v, inputs)
    cotangents: Sequence[Tensor] = [zeros_like(y) for y in as_tensors(ys)]
    for cotangent in cotangents:
        cotangent.stop_gradient = False
    backward = _gradients(ys, inputs, cotangents)
    directions = [ones_like(x) for x in as_tensors(inputs)] if v is None else as_tensors(v)
    found = _gradients(as_tensors(backward), list(cotangents), directions)
    return ys, found if isinstance(ys, (list, tuple)) else found[0]


# --------------------------------------------------------------------------- of a function
class FunctionJacobian(_Matrix):
    """The derivatives of a function: `paddle.incubate.autograd.Jacobian`, all inputs and all outputs flattened.

    Args:
        func: of as many Tensors as `xs` has; it returns one or several.
        xs: a Tensor or a list of them; their elements stand one Tensor after the other.
        is_batched: the first axis is that of a batch, whose entries do not mix.
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        # each in a place of its own in the graph; a leaf that needs a gradient, if it needed none
        inputs = [_apart(x) if x.stop_gradient else assign(x) for x in as_tensors(xs)]
        super().__init__(as_tensors(func(*inputs)), inputs, is_batched)


class FunctionHessian(FunctionJacobian):
    """The second derivatives of a function of one output, or of one per entry of the batch; see `FunctionJacobian`.

    Raises:
        RuntimeError: it has several outputs.
    """

    def __init__(self, func: Callable[..., Any], xs: Any, is_batched: bool = False) -> None:
        def gradient(*inputs: Tensor) -> Tensor:
            first = FunctionJacobian(func, inputs, is_batched)
            if first.shape[-2] != 1:
                raise RuntimeError(
                    "The function given to Hessian should return as single element Tensor or batched single element "
                    f"Tensor, but returns {first.shape[-2]} elements."
                )
            return first[:, 0, :] if is_batched else first[0, :]

        super().__init__(gradient, xs, is_batched)
