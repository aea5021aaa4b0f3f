"""Products of matrices and vectors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pylayer.array import Array
from pylayer.op import op
from pylayer.ops.elementwise import add, multiply
from pylayer.ops.reduction import sum
from pylayer.ops.shape import reshape, transpose
from pylayer.tensor import Tensor

METHODS = ("addmm", "bmm", "dot", "inner", "matmul", "mm", "mv", "outer", "t")
"""The functions that are methods of Tensor as well."""


def _adjoint(F: Any, x: Any) -> Any:
    """The conjugate of `x` with its last two axes swapped."""
    axes = list(range(x.ndim))
    return F.transpose(x, [*axes[:-2], axes[-1], axes[-2]]).conjugate()


def _as_matrices(F: Any, g: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Cotangent and inputs of a product with vectors written as a row on the left, a column on the right."""
    shape = list(g.shape)
    if x.ndim == 1:
        x, shape = (
            F.reshape(x, [1, *x.shape]),
            [*shape[: -1 if y.ndim > 1 else None], 1, *(shape[-1:] if y.ndim > 1 else [])],
        )
    if y.ndim == 1:
        y, shape = F.reshape(y, [*y.shape, 1]), [*shape, 1]
    return F.reshape(g, shape), x, y


def _matmul_x(g: Any, F: Any, x: Any, y: Any) -> Any:
    """g·yᴴ; batch axes that were broadcast are summed by the tape, those beside a vector here."""
    matrix, _, columns = _as_matrices(F, g, x, y)
    gradient = F.matmul(matrix, _adjoint(F, columns))
    return gradient if x.ndim > 1 else F.reshape(_summed_batch(F, gradient), list(x.shape))


def _matmul_y(g: Any, F: Any, x: Any, y: Any) -> Any:
    """xᴴ·g, as for the other side."""
    matrix, rows, _ = _as_matrices(F, g, x, y)
    gradient = F.matmul(_adjoint(F, rows), matrix)
    return gradient if y.ndim > 1 else F.reshape(_summed_batch(F, gradient), list(y.shape))


def _summed_batch(F: Any, x: Any) -> Any:
    """`x` summed over all but its last two axes."""
    return F.sum(x, list(range(x.ndim - 2)), None, False) if x.ndim > 2 else x


@op(x=_matmul_x, y=_matmul_y, promote=True)
def matmul_(xp: ModuleType, x: Array, y: Array) -> Array:
    """The product of matrices in the last two axes, the others broadcast;
    a vector is a row on the left, a column right."""
    if not x.ndim or not y.ndim:
        raise ValueError("the inputs need at least one dimension each")
    return xp.matmul(x, y)


def matmul(
    x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None
) -> Tensor:
    """The product of matrices, each transposed first if asked for."""
    x = _swapped(x) if transpose_x and x.ndim > 1 else x
    y = _swapped(y) if transpose_y and y.ndim > 1 else y
    return matmul_(x, y)  # type: ignore[no-any-return]


def _swapped(x: Tensor) -> Tensor:
    axes = list(range(x.ndim))
    return transpose(x, [*axes[:-2], axes[-1], axes[-2]])  # type: ignore[no-any-return]


def mm(input: Tensor, mat2: Tensor, name: str | None = None) -> Tensor:
    """The product of two matrices."""
    return matmul(input, mat2)


def bmm(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The products of two batches of matrices.

    Raises:
        ValueError: an input has not three dimensions.
    """
    if x.ndim != 3 or y.ndim != 3:
        raise ValueError(
            f"(InvalidArgument) bmm(): the inputs must be 3-D, but have the shapes {x.shape} and {y.shape}."
        )
    return matmul(x, y)


def mv(x: Tensor, vec: Tensor, name: str | None = None) -> Tensor:
    """A matrix times a vector."""
    return matmul(x, vec)


def dot(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The sum of products over the last axis."""
    return sum(multiply(x, y), -1, None, False)  # type: ignore[no-any-return]


def inner(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The sums of products over the last axes of both."""
    return multiply(x, y) if not x.ndim or not y.ndim else tensordot_last(x, y)


def tensordot_last(x: Tensor, y: Tensor) -> Tensor:
    """x and y contracted over their last axes."""
    rows, columns = list(x.shape)[:-1], list(y.shape)[:-1]
    flat = matmul(reshape(x, [-1, x.shape[-1]]), reshape(y, [-1, y.shape[-1]]), transpose_y=True)
    return reshape(flat, [*rows, *columns])  # type: ignore[no-any-return]


def outer(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """All products of an element of x and one of y, both flattened."""
    return multiply(reshape(x, [-1, 1]), reshape(y, [1, -1]))  # type: ignore[no-any-return]


def addmm(
    input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0, name: str | None = None
) -> Tensor:
    """``beta · input + alpha · x @ y``."""
    return add(multiply(input, beta), multiply(matmul(x, y), alpha))  # type: ignore[no-any-return]


def t(input: Tensor, name: str | None = None) -> Tensor:
    """The transpose of a Tensor of at most two dimensions.

    Raises:
        ValueError: it has more.
    """
    if input.ndim > 2:
        raise ValueError(f"(InvalidArgument) t(): the input must have at most 2 dimensions, but has {input.ndim}.")
    return transpose(input, [1, 0]) if input.ndim == 2 else input


def _einsum_vjp(g: Any, F: Any, operands: Any, equation: str, i: int) -> Any:
    """The cotangent contracted with the other operands;
    an index of this one alone was summed, so it is broadcast back."""
    inputs, output = equation.split("->")
    names = inputs.split(",")
    mine = names[i]
    others = [(names[k], operand.conjugate()) for k, operand in enumerate(operands) if k != i]
    known = set(output).union(*(set(name) for name, _ in others))
    reachable = "".join(c for c in mine if c in known)
    gradient = F.einsum_explicit(
        [g, *(o for _, o in others)], ",".join([output, *(n for n, _ in others)]) + "->" + reachable
    )
    shape = [n if c in known else 1 for c, n in zip(mine, operands[i].shape, strict=True)]
    return F.broadcast_to(F.reshape(gradient, shape), list(operands[i].shape))


@op(many=True, operands=_einsum_vjp)
def einsum_explicit(xp: ModuleType, operands: list[Array], equation: str) -> Array:
    """A contraction with all indices spelled out, none of them twice in one operand."""
    return xp.einsum(equation, *operands)


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation; an ellipsis stands for broadcast axes, a missing ``->`` for the indices that occur once.

    Raises:
        ValueError: the equation does not fit the operands, or repeats an index within one.
    """
    tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    return einsum_explicit(tensors, explicit_equation(equation, [t.ndim for t in tensors]))  # type: ignore[no-any-return]


def explicit_equation(equation: str, dimensions: list[int]) -> str:
    """`equation` with its output written out and letters in place of every ellipsis."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    names = left.split(",")
    if len(names) != len(dimensions):
        raise ValueError(
            f"(InvalidArgument) einsum(): {equation!r} is for {len(names)} operands, but got {len(dimensions)}."
        )
    free = [c for c in "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in text]
    widest = 0
    for k, (name, ndim) in enumerate(zip(names, dimensions, strict=True)):
        if "..." in name:
            extra = ndim - len(name) + 3
            widest = widest if widest > extra else extra
            names[k] = name.replace("...", "".join(free[:extra][::-1]))
        if len(names[k]) != ndim:
            raise ValueError(f"(InvalidArgument) einsum(): {name!r} does not fit an operand of {ndim} dimensions.")
        if len(set(names[k])) != len(names[k]):
            raise ValueError(f"(InvalidArgument) einsum(): {name!r} repeats an index; take the diagonal first.")
    spelled = "".join(free[:widest][::-1])
    letters = "".join(names)
    once = "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spelled))
    output = right.replace("...", spelled) if arrow else spelled + once
    return f"{','.join(names)}->{output}"
