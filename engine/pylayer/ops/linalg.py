"""Products and contractions of matrices and vectors."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import string
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import OutOfRangeError, drop_axes, normal_axis, one_list, require
from pylayer.ops.elementwise import check_one_dtype, check_same_dtype, multiply
from pylayer.ops.indexing import along
from pylayer.ops.positions import diag_embed, diagonal
from pylayer.ops.reduction import sum
from pylayer.ops.shape import broadcast_shape, moveaxis, reshape, transpose
from pylayer.tape.op import composed, op
from pylayer.tensor.array import Array
from pylayer.tensor.tensor import Tensor


@op(view=True, view_gradient=True, x=lambda g, F: F.matrix_transpose(g))
def matrix_transpose(xp: ModuleType, x: Array) -> Array:
    """The last two axes exchanged."""
    text = f"Tensor.ndim({x.ndim}) is required to be greater than or equal to 2"
    require(x.ndim > 1, text)
    return xp.swapaxes(x, -1, -2)


def _adjoint(F: Any, x: Any) -> Any:
    """The conjugate of `x` with its last two axes swapped."""
    return x.swapaxes(-2, -1).conjugate()


def column(F: Any, x: Any) -> Any:
    """A vector as a column."""
    return F.reshape(x, [*x.shape, 1])


def row(F: Any, x: Any) -> Any:
    """A vector as a row."""
    return F.reshape(x, [*x.shape[:-1], 1, x.shape[-1]])


def _matmul_x(g: Any, F: Any, x: Any, y: Any) -> Any:
    """g·yᴴ, a vector being a row on the left and a column on the right. The tape sums over
    broadcast axes.
    """
    if y.ndim == 1:
        return F.matmul(column(F, g), row(F, y).conjugate())
    return F.matmul(row(F, g) if x.ndim == 1 else g, _adjoint(F, y))


def _matmul_y(g: Any, F: Any, x: Any, y: Any) -> Any:
    """xᴴ·g, in the same way for the other side."""
    if x.ndim == 1 == y.ndim:
        return _matmul_x(g, F, y, x)
    if x.ndim == 1:
        return F.matmul(column(F, x).conjugate(), row(F, g))
    return F.matmul(row(F, g), x.conjugate()) if y.ndim == 1 else F.matmul(_adjoint(F, x), g)


def _product(xp: ModuleType, x: Array, y: Array) -> Array:
    """x @ y in the dtype of both; without this the product of two bfloat16 arrays would be
    float32.
    """
    product = xp.matmul(x, y)
    return product.astype(x.dtype) if x.dtype == y.dtype != product.dtype else product


@op(x=_matmul_x, y=_matmul_y, promote=True)
def matmul_(xp: ModuleType, x: Array, y: Array) -> Array:
    """The product of matrices in the last two axes, promoted; a vector is a row on the left,
    otherwise a column.
    """
    if not getattr(x, "ndim", 0) or not getattr(y, "ndim", 0):
        raise ValueError("the inputs need at least one dimension each")
    return _product(xp, x, y)


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The product of matrices of one dtype, each transposed first if requested."""
    check_same_dtype("matmul", (x, y))
    x = matrix_transpose(x) if transpose_x and x.ndim > 1 else x
    y = matrix_transpose(y) if transpose_y and y.ndim > 1 else y
    return matmul_(x, y)


@op(x=_matmul_x, y=_matmul_y)
def bmm(xp: ModuleType, x: Array, y: Array) -> Array:
    """The products of two batches of matrices of one dtype."""
    check_one_dtype(x, y)
    fits = x.ndim == y.ndim == 3 and x.shape[0] == y.shape[0]
    require(fits, "the inputs must be 3-D and of the same batch size")
    return _product(xp, x, y)


mm = composed("mm", lambda input, mat2: matmul(input, mat2))


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    check_same_dtype("mv", (x, vec))
    fits = x.ndim == 2 and vec.ndim == 1
    require(fits, "mv(): The rank of input X should be 2 and that of Vec 1", x, vec)
    return matmul(x, vec)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """The sum of products over the last axis of two Tensors of one shape, 1-D or 2-D, otherwise a
    RuntimeError.
    """
    check_same_dtype("dot", (x, y))
    fits = x.ndim in (1, 2) and x.shape == y.shape
    text = "dot(): ShapeError: the inputs must be of the same 1-D or 2-D shape"
    require(fits, text, x, y, error=RuntimeError)
    return sum(multiply(x, y), -1, None, False)


def kron(x: Tensor, y: Tensor) -> Tensor:
    """Kronecker's product: y times every element of x, side by side."""
    ndim = max(x.ndim, y.ndim)
    rows, columns = ([1] * (ndim - t.ndim) + list(t.shape) for t in (x, y))
    ones = [1] * ndim
    apart_x = reshape(x, list(itertools.chain(*zip(rows, ones, strict=True))))
    apart_y = reshape(y, list(itertools.chain(*zip(ones, columns, strict=True))))
    return reshape(apart_x * apart_y, list(map(operator.mul, rows, columns)))


outer = composed("outer", lambda x, y: multiply(reshape(x, [-1, 1]), reshape(y, [1, -1])))
inner = composed(
    "inner", lambda x, y: tensordot(x, y, [-1]) if x.ndim and y.ndim else multiply(x, y)
)


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """``beta · input + alpha · x @ y`` for matrices x and y, and an input that broadcasts to their
    product.
    """
    check_same_dtype("addmm", (input, x, y))
    matrices = x.ndim == y.ndim == 2 and input.ndim in (1, 2)
    require(matrices, "addmm(): x and y must be 2-D and input 1-D or 2-D", x, y, input)
    product = matmul(x, y)
    fits = broadcast_shape(input.shape, product.shape) == product.shape
    require(
        fits, "addmm(): The input is not broadcastable with the product of x and y", input, product
    )
    return input * beta + product * alpha


def t(input: Tensor) -> Tensor:
    """The transpose of a Tensor of at most two dimensions."""
    require(input.ndim <= 2, "t(): the input must have at most 2 dimensions", input)
    return transpose(input, [1, 0]) if input.ndim == 2 else input


def _einsum_vjp(g: Any, F: Any, operands: Any, equation: str, i: int) -> Any:
    """The cotangent contracted with the other operands; an index that only this operand has was
    summed and is broadcast back.
    """
    inputs, output = equation.split("->")
    names = inputs.split(",")
    indices = names[i]
    other_operands = [
        (names[k], operand.conjugate()) for k, operand in enumerate(operands) if k != i
    ]
    known = set(output).union(*(set(name) for name, _ in other_operands))
    reachable = "".join(c for c in indices if c in known)
    gradient = F.einsum_explicit(
        [g, *(o for _, o in other_operands)],
        ",".join([output, *(n for n, _ in other_operands)]) + "->" + reachable,
    )
    sizes = dict(zip(reachable, gradient.shape, strict=True))
    reduced = F.reshape(gradient, [sizes.get(c, 1) for c in indices])
    return F.broadcast_to(
        reduced, [sizes.get(c, n) for c, n in zip(indices, operands[i].shape, strict=True)]
    )


@op(many=True, operands=_einsum_vjp)
def einsum_explicit(xp: ModuleType, operands: list[Array], equation: str) -> Array:
    """A contraction with all indices written out and none repeated within one operand."""
    result = xp.einsum(equation, *operands)
    return result.copy() if len(operands) == 1 else result  # for one operand it may be a view


def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein's summation; an ellipsis stands for broadcast axes, a missing ``->`` for the indices
    that occur once.
    """
    tensors = list(one_list(operands))
    check_same_dtype("einsum", tensors)
    inputs, output = explicit_equation(equation, [t.ndim for t in tensors]).split("->")
    names = inputs.split(",")
    for k, name in enumerate(names):
        names[k], tensors[k] = _without_repeats(name, tensors[k])
    once = "".join(dict.fromkeys(output))
    return _with_repeats(once, output, einsum_explicit(tensors, f"{','.join(names)}->{once}"))


def _with_repeats(name: str, output: str, x: Tensor) -> Tensor:
    """The result for `output` from a result with each index once; repeated indices put the values
    on the diagonal.
    """
    for index in name:
        for _ in range(output.count(index) - 1):
            x = diag_embed(moveaxis(x, name.index(index), -1))
            name = name.replace(index, "", 1) + 2 * index
    places = {index: [k for k, c in enumerate(name) if c == index] for index in output}
    order = [places[index].pop(0) for index in output]
    return x if order == sorted(order) else transpose(x, order)


def _without_repeats(name: str, x: Tensor) -> tuple[str, Tensor]:
    """An operand with repeated indices reduced to one by taking the diagonal."""
    for index in sorted(set(name)):
        while name.count(index) > 1:
            first = name.index(index)
            second = name.index(index, first + 1)
            text = f"einsum(): index {index!r} should have one size in an operand"
            require(x.shape[first] == x.shape[second], text, x)
            x = diagonal(x, 0, first, second)
            name = name[:first] + name[first + 1 : second] + name[second + 1 :] + index
    return name, x


def explicit_equation(equation: str, dimensions: list[int]) -> str:
    """`equation` with its output written out and letters in place of every ellipsis."""
    text = equation.replace(" ", "")
    inputs, arrow, result = text.partition("->")
    names = inputs.split(",")
    fits = len(names) == len(dimensions)
    mistake = f"{equation!r} is for {len(names)} operands, but got {len(dimensions)}"
    require(fits, f"einsum(): {mistake}")
    free = [c for c in reversed(string.ascii_letters) if c not in text]
    # Letters for the axes of an ellipsis; operands with fewer of them have the last ones.
    counts = [n - len(name.replace("...", "")) for name, n in zip(names, dimensions, strict=True)]
    widest = max([0, *(n for name, n in zip(names, counts, strict=True) if "..." in name)])
    spelled = "".join(free[:widest][::-1])
    for k, (name, count) in enumerate(zip(names, counts, strict=True)):
        fits = count == 0 or (count > 0 and "..." in name)
        mistake = f"{name!r} does not fit an operand of {dimensions[k]} dimensions"
        require(fits, f"einsum(): {mistake}")
        names[k] = name.replace("...", spelled[widest - count :])
    letters = "".join(names)
    once = "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spelled))
    output = result.replace("...", spelled) if arrow else spelled + once
    mistake = f"the output {result!r} of {equation!r} has an index that no operand has"
    require(set(output) <= set(letters), f"einsum(): {mistake}")
    return f"{','.join(names)}->{output}"


def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal of two axes; an OutOfRangeError if there are fewer than two."""
    text = "trace(): the Tensor needs at least 2 dimensions"
    require(x.ndim >= 2, text, x, error=OutOfRangeError)
    return sum(diagonal(x, offset, axis1, axis2), -1)


def cross(x: Tensor, y: Tensor, axis: int = 9) -> Tensor:
    """The vector product along `axis`; unless given, the first axis of size 3."""
    if axis == 9:
        axis = next((k for k, n in enumerate(x.shape) if n == 3), 9)
    require(axis != 9 and x.shape[axis] == 3, "cross(): needs an axis of size 3", x)
    axis = normal_axis(axis, x.ndim)
    first = along(x, axis, [1, 2, 0]) * along(y, axis, [2, 0, 1])
    return first - along(x, axis, [2, 0, 1]) * along(y, axis, [1, 2, 0])


def _contracted_axes(axes: Any, ndim: int) -> tuple[list[int], list[int]]:
    """The axes of x and of y that `tensordot`'s argument names; the shorter list is completed from
    the other.
    """
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        return list(range(ndim - axes, ndim)), list(range(axes))
    if not axes or isinstance(axes[0], int):
        return list(axes), list(axes)
    x_axes, y_axes = list(axes[0]), list(axes[1] if len(axes) > 1 else axes[0])
    longest = max(len(x_axes), len(y_axes))
    return x_axes + y_axes[len(x_axes) : longest], y_axes + x_axes[len(y_axes) : longest]


def tensordot(x: Tensor, y: Tensor, axes: Any = 2) -> Tensor:
    """x and y contracted over the last `axes` of x and the first of y, or over the axes in one list
    for both or in two lists.
    """
    first, second = _contracted_axes(axes, x.ndim)
    x_axes = [normal_axis(k, x.ndim) for k in first]
    y_axes = [normal_axis(k, y.ndim) for k in second]
    for k, j in zip(x_axes, y_axes, strict=True):
        if x.shape[k] == 1 != y.shape[j]:
            y = sum(y, j, None, True)  # an axis of size 1 is broadcast
        elif y.shape[j] == 1 != x.shape[k]:
            x = sum(x, k, None, True)
    outer = drop_axes(x.shape, x_axes), drop_axes(y.shape, y_axes)
    row_count, size, column_count = map(
        math.prod, (outer[0], [x.shape[k] for k in x_axes], outer[1])
    )
    rows = moveaxis(x, x_axes, list(range(x.ndim - len(x_axes), x.ndim)))
    columns = moveaxis(y, y_axes, list(range(len(y_axes))))
    product = matmul(reshape(rows, [row_count, size]), reshape(columns, [size, column_count]))
    return reshape(product, [*outer[0], *outer[1]])


def multi_dot(x: Sequence[Tensor]) -> Tensor:
    """The product of at least two matrices, computed from left to right; the first and the last may
    be vectors.
    """
    require(len(x) > 1, "multi_dot(): needs at least two Tensors", *x)
    return functools.reduce(matmul, x)


vecdot = composed("vecdot", lambda x, y, axis=-1: sum(x.conjugate() * y, axis))
