"""Products and distances of vectors beside those of `linalg`."""

from __future__ import annotations

import math
from typing import Any

from pylayer.array import XP
from pylayer.invalid import invalid
from pylayer.op import composed
from pylayer.ops.arguments import normal_axis
from pylayer.ops.creation import full_like
from pylayer.ops.elementwise import abs as absolute
from pylayer.ops.elementwise import pow
from pylayer.ops.indexing import getitem, where_
from pylayer.ops.joining import stack
from pylayer.ops.linalg import matmul
from pylayer.ops.norms import norm
from pylayer.ops.reduction import sum as total
from pylayer.ops.shape import reshape, transpose, unsqueeze
from pylayer.tensor import Tensor


def cross(x: Tensor, y: Tensor, axis: int = 9) -> Tensor:
    """The vector product along `axis`; unless given, the first axis of size 3."""
    if axis == 9:
        axis = next((k for k, n in enumerate(x.shape) if n == 3), 9)
    if axis == 9 or x.shape[axis] != 3:
        raise invalid(f"cross(): needs an axis of size 3, but the shape is {x.shape}")
    at = normal_axis(axis, x.ndim)

    def turned(t: Tensor, order: list[int]) -> Tensor:
        return getitem(t, (*(slice(None),) * at, order))

    first = turned(x, [1, 2, 0]) * turned(y, [2, 0, 1])
    return first - turned(x, [2, 0, 1]) * turned(y, [1, 2, 0])


def _contracted(axes: Any, ndim: int) -> tuple[list[int], list[int]]:
    """The axes of x and of y that `tensordot`'s argument names; the shorter list is filled up from the other."""
    if isinstance(axes, Tensor):
        axes = axes.tolist()
    if isinstance(axes, int):
        return list(range(ndim - axes, ndim)), list(range(axes))
    if not axes or isinstance(axes[0], int):
        return list(axes), list(axes)
    ours, theirs = list(axes[0]), list(axes[1] if len(axes) > 1 else axes[0])
    longest = max(len(ours), len(theirs))
    return ours + theirs[len(ours) : longest], theirs + ours[len(theirs) : longest]


def tensordot(x: Tensor, y: Tensor, axes: Any = 2) -> Tensor:
    """x and y contracted: over the last `axes` of the one and the first of the other, or over the axes named.

    These are two lists, of axes of x and of y; or one list, for both. An axis of size 1 is broadcast.
    """
    named = _contracted(axes, x.ndim)
    ours, theirs = [normal_axis(k, x.ndim) for k in named[0]], [normal_axis(k, y.ndim) for k in named[1]]
    for k, j in zip(ours, theirs, strict=True):
        if x.shape[k] == 1 != y.shape[j]:
            y = total(y, j, None, True)
        elif y.shape[j] == 1 != x.shape[k]:
            x = total(x, k, None, True)
    rows, columns = ([k for k in range(t.ndim) if k not in axes] for t, axes in ((x, ours), (y, theirs)))
    size = math.prod(x.shape[k] for k in ours)
    outer = [[x.shape[k] for k in rows], [y.shape[k] for k in columns]]
    left = reshape(transpose(x, [*rows, *ours]), [math.prod(outer[0]), size])
    right = reshape(transpose(y, [*theirs, *columns]), [size, math.prod(outer[1])])
    return reshape(matmul(left, right), [*outer[0], *outer[1]])


dist = composed("dist", lambda x, y, p=2: norm(reshape(x - y, [-1]), float(p), 0))


def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norms of the differences of all rows of x and y: [..., rows of x, rows of y]; else an AssertionError."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise AssertionError(
            f"The x and y must be at least 2-D with rows of one size, but are {x.shape} and {y.shape}."
        )
    if p < 0:
        raise AssertionError(f"The p must be greater than or equal to 0, But received p is {p}.\n")
    return norm(unsqueeze(x, -2) - unsqueeze(y, -3), float(p), -1)


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of each two rows of a matrix."""
    rows, columns = XP[type(x.array)].triu_indices(x.shape[0], 1)
    return norm(getitem(x, Tensor(rows)) - getitem(x, Tensor(columns)), float(p), -1)


def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """`x` with the slices along `axis` whose p-norm is above `max_norm` scaled down to it."""
    at = normal_axis(axis, x.ndim)
    others = [k for k in range(x.ndim) if k != at]
    size = pow(total(pow(absolute(x), float(p)), others, None, True), 1.0 / p)
    return where_(size > max_norm, x * (max_norm / (size + 1e-7)), x)


def vander(x: Tensor, n: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a 1-d Tensor as columns, the highest first unless `increasing`."""
    if x.ndim != 1:
        raise ValueError(f"The input of x is expected to be a 1-D Tensor.But now the dims of Input(X) is {x.ndim}.")
    count = x.shape[0] if n is None else n
    if count < 0:
        raise ValueError("N must be non-negative.")
    powers: list[Any] = [full_like(x, 1)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    powers = powers[:count]
    return stack(powers if increasing else powers[::-1], 1)
