"""Operations of torch (aten) expressed in the engine's operations: a table.

Each row has aten's name of an operation, the name of the engine's operation that gives the result,
and a function that computes it from the arguments in the order of aten's schema. An operation
without a row is recorded with torch's own derivative. A test compares every row with torch's
autograd.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.backends.played import Counterpart, Unplayed
from pylayer import paddle
from pylayer.ops import indexing
from pylayer.tensor.tensor import Tensor as Shadow

P: Any = paddle
F = P.nn.functional
Play = Callable[..., Any]


# ------------------------------------------------ shared memory
def write_places(flat: Shadow, places: Array, value: Shadow) -> Shadow:
    """All elements of a storage, with those at some positions replaced."""
    return indexing.setitem(flat, Shadow(np.ascontiguousarray(places)), value)


def select_places(flat: Shadow, places: Array) -> Shadow:
    """The elements of a storage at some positions."""
    return flat[Shadow(np.ascontiguousarray(places))]


# ------------------------------ arguments
def reduced_axes(axis: Any) -> Any:
    """Axes of a reduction: aten writes an empty list for all axes."""
    return None if axis is None or axis == [] else axis


def scale(y: Any, alpha: Any) -> Any:
    """A factor that is usually 1."""
    return y if isinstance(alpha, (int, float)) and alpha == 1 else y * alpha


def index_axis(x: Any, axis: int, index: Any) -> Any:
    """A slice of an axis."""
    return x[(slice(None),) * (axis % max(x.ndim, 1)) + (index,)]


def reduce_loss(loss: Any, reduction: int) -> Any:
    """A loss per element, its mean or its sum, by aten's numbers 0, 1, 2."""
    if reduction == 0:
        return loss
    return P.mean(loss) if reduction == 1 else P.sum(loss)


# ---------------------------------------- operations with a function
def divide(x: Any, y: Any, mode: Any = None) -> Any:
    """A quotient, perhaps rounded."""
    quotient = x / y
    if mode is None:
        return quotient
    return P.floor(quotient) if mode == "floor" else P.trunc(quotient)


def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Bounds that may be tensors."""
    if isinstance(low, Shadow) or isinstance(high, Shadow):
        x = x if low is None else P.maximum(x, low)
        return x if high is None else P.minimum(x, high)
    return P.clip(x, low, high)


def layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """A normalisation, with the mean and the inverse deviation that aten returns as well."""
    axes = list(range(x.ndim - len(shape), x.ndim))
    mean = P.mean(x, axes, True)
    centred = x - mean
    inverse = P.rsqrt(P.mean(centred * centred, axes, True) + eps)
    result = centred * inverse
    result = result if weight is None else result * weight
    return (result if bias is None else result + bias), mean, inverse


def variance(x: Any, axis: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    """A variance with Bessel's correction."""
    axis = reduced_axes(axis)
    centred = x - P.mean(x, axis, True)
    squares = P.sum(centred * centred, axis, None, keepdim)
    count = centred.array.size // max(squares.array.size, 1)
    return squares / (count - (1 if correction is None else correction))


def deviation(*arguments: Any) -> Any:
    """The root of `variance`."""
    return P.sqrt(variance(*arguments))


def vector_norm(x: Any, p: Any = 2, axis: Any = None, keepdim: bool = False, *_: Any) -> Any:
    """A norm of order 1, 2 or infinity."""
    if p not in (1, 2, math.inf):
        raise Unplayed("norm")
    return P.linalg.vector_norm(x, p, reduced_axes(axis), keepdim)


def extreme_along(find: Play) -> Play:
    """The maximum or minimum along an axis and its position; `position` is the engine's function
    for that.
    """

    def play(x: Any, axis: int, keepdim: bool = False) -> Any:
        places = find(x, axis, True)
        values = P.take_along_axis(x, places, axis)
        if keepdim:
            return values, places
        return P.squeeze(values, axis), P.squeeze(places, axis)

    return play


def sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    """Sorted values and their positions; equal values keep their order."""
    places = P.argsort(x, axis, descending, True)
    return P.take_along_axis(x, places, axis), places


def stable_sort(x: Any, stable: Any, axis: int = -1, descending: bool = False) -> Any:
    """The overload of `sort` with the argument `stable`."""
    return sort(x, axis, descending)


def add_product(product: Play) -> Play:
    """β x + α product(a, b)."""

    def play(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        return scale(x, beta) + scale(product(a, b), alpha)

    return play


def nll(x: Any, target: Any, weight: Any, reduction: int, ignore: int) -> Any:
    """The negative log likelihood, and the weight that it is divided by."""
    if x.ndim != 2 or weight is not None or bool((target.array == ignore).any()):
        raise Unplayed("nll")
    picked = -P.take_along_axis(x, P.reshape(target, [-1, 1]), 1)[:, 0]
    total = float(picked.array.size) if reduction else 0.0
    return reduce_loss(picked, reduction), Shadow(np.asarray(total, picked.array.dtype))


def pool(function: Play) -> Play:
    """The maximum over each window, and its position."""

    def play(
        x: Any, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
    ) -> Any:
        if any(step != 1 for step in np.atleast_1d(dilation)):
            raise Unplayed("dilation")
        return function(x, size, list(stride) or None, padding, ceil_mode=ceil, return_mask=True)

    return play


def scatter(kind: str) -> Play:
    """Values written at positions along an axis."""

    def play(x: Any, axis: int, index: Any, values: Any) -> Any:
        return P.put_along_axis(x, index, values, axis, kind, True, False)

    return play


def expand(x: Any, shape: Sequence[int], *_: Any) -> Any:
    """Broadcast to a shape, −1 for an axis that stays."""
    old_shape = [1] * (len(shape) - x.ndim) + list(x.shape)
    return P.broadcast_to(x, [m if n < 0 else n for n, m in zip(shape, old_shape, strict=True)])


def split(x: Any, size: int, axis: int = 0) -> Any:
    """Parts of one size, the last perhaps smaller."""
    length = x.shape[axis]
    return P.split(x, [min(size, length - k) for k in range(0, length, size)], axis)


def index_of(indices: Sequence[Any]) -> tuple[Any, ...]:
    """The index of a Tensor: in aten None stands for a whole axis."""
    return tuple(slice(None) if index is None else index for index in indices)


def put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Write values at positions, or add them there."""
    if any(index is None for index in indices):
        raise Unplayed("index_put")
    return P.index_put(x, list(indices), values, accumulate)


def put_back(g: Any, shape: Sequence[int], index: tuple[Any, ...]) -> Any:
    """Zeros with a part replaced: the gradient of indexing."""
    return indexing.setitem(P.zeros(shape, g.dtype), index, g)


def slice_back(g: Any, shape: Any, axis: int, start: Any, end: Any, step: int) -> Any:
    """The gradient of a slice."""
    return put_back(g, shape, (slice(None),) * (axis % len(shape)) + (slice(start, end, step),))


def select_back(g: Any, shape: Any, axis: int, index: int) -> Any:
    """The gradient of one index."""
    return put_back(g, shape, (slice(None),) * (axis % len(shape)) + (index,))


def copy(x: Any, y: Any, *_: Any) -> Any:
    """The values of another tensor, in the dtype and shape of the first."""
    y = y if x.array.dtype == y.array.dtype else P.cast(y, x.dtype)
    return y if x.array.shape == y.array.shape else P.broadcast_to(y, x.shape)


def gelu(x: Any, approximate: str = "none") -> Any:
    """GELU with the error function, or by tanh."""
    return F.gelu(x, approximate == "tanh")


def softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    """Linear above a threshold."""
    return F.softplus(x, beta, threshold)


def inverse(x: Any, check: bool = False) -> Any:
    """An inverse, and aten's status code for success."""
    return P.linalg.inv(x), Shadow(np.zeros(tuple(x.shape[:-2]), np.int32))


def cholesky(x: Any, upper: bool = False, check: bool = False) -> Any:
    """A factor, and aten's status code for success."""
    return P.linalg.cholesky(x, upper), Shadow(np.zeros(tuple(x.shape[:-2]), np.int32))


def identity(x: Any, *_: Any) -> Any:
    """A view of everything."""
    return x


def clone(x: Any, *_: Any) -> Any:
    """A copy."""
    return P.clone(x)


def to_dtype(x: Any, dtype: Any = None, *_: Any) -> Any:
    """A copy in a dtype."""
    return P.clone(x) if dtype in (None, x.array.dtype.name) else P.cast(x, dtype)


BY_NAME = [
    "exp", "log", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfinv", "sqrt", "rsqrt", "reciprocal", "abs",
    "neg", "sign", "floor", "ceil", "trunc", "square", "lgamma", "digamma", "log2", "log10",
    "logical_not", "isnan", "isfinite", "isinf", "maximum", "minimum", "fmax", "fmin", "atan2",
    "logaddexp", "hypot", "logical_and", "logical_or", "logical_xor", "real", "imag", "conj",
    "tril", "triu", "roll", "flip", "where", "max", "min", "argmax", "argmin", "bmm", "reshape",
    "stack", "unbind", "diagonal", "complex", "logsumexp",
]  # fmt: skip
"""Operations that have the same name and the same arguments."""

ATEN_ROWS: dict[str, tuple[str, Play]] = {
    **{name: (name, getattr(P, name)) for name in BY_NAME},
    # elementwise
    "sigmoid": ("sigmoid", F.sigmoid),
    "round": ("round", lambda x: P.round(x)),
    "eq": ("equal", operator.eq),
    "ne": ("not_equal", operator.ne),
    "lt": ("less_than", operator.lt),
    "le": ("less_equal", operator.le),
    "gt": ("greater_than", operator.gt),
    "ge": ("greater_equal", operator.ge),
    "add": ("add", lambda x, y, alpha=1: x + scale(y, alpha)),
    "sub": ("subtract", lambda x, y, alpha=1: x - scale(y, alpha)),
    "rsub": ("subtract", lambda x, y, alpha=1: y - scale(x, alpha)),
    "mul": ("multiply", operator.mul),
    "div": ("divide", divide),
    "pow": ("pow", operator.pow),
    "remainder": ("remainder", operator.mod),
    "floor_divide": ("floor_divide", operator.floordiv),
    "addcmul": ("add", lambda x, a, b, value=1: x + scale(a * b, value)),
    "addcdiv": ("add", lambda x, a, b, value=1: x + scale(a / b, value)),
    "lerp": ("add", lambda x, y, w: x + w * (y - x)),
    "sgn": ("sign", P.sign),
    "clamp": ("clip", clamp),
    "clamp_min": ("clip", clamp),
    "clamp_max": ("clip", lambda x, high: clamp(x, None, high)),
    "masked_fill": ("where", lambda x, mask, v: P.where(mask, P.zeros_like(x) + v, x)),
    # activations
    "relu": ("relu", F.relu),
    "leaky_relu": ("leaky_relu", F.leaky_relu),
    "hardtanh": ("hardtanh", F.hardtanh),
    "elu": ("multiply", lambda x, alpha=1, factor=1, *_: scale(F.elu(x, alpha), factor)),
    "softplus": ("softplus", softplus),
    "silu": ("multiply", F.silu),
    "gelu": ("multiply", gelu),
    "threshold": ("where", lambda x, least, v: P.where(x > least, x, P.full_like(x, v))),
    "threshold_backward": ("where", lambda g, x, least: P.where(x <= least, P.zeros_like(g), g)),
    "sigmoid_backward": ("multiply", lambda g, y: g * (y * (1 - y))),
    "tanh_backward": ("multiply", lambda g, y: g * (1 - y * y)),
    "_softmax": ("softmax", lambda x, axis, half: F.softmax(x, axis)),
    "_log_softmax": ("log_softmax", lambda x, axis, half: F.log_softmax(x, axis)),
    # reductions
    "sum": ("sum", lambda x, dtype=None: P.sum(x, None, dtype)),
    "sum.dim_IntList": (
        "sum",
        lambda x, axis=None, keepdim=False, dtype=None: P.sum(
            x, reduced_axes(axis), dtype, keepdim
        ),
    ),
    "mean": ("mean", lambda x, dtype=None: P.mean(x)),
    "mean.dim": (
        "mean",
        lambda x, axis=None, keepdim=False, dtype=None: P.mean(x, reduced_axes(axis), keepdim),
    ),
    "amax": ("max", lambda x, axis=None, keepdim=False: P.max(x, reduced_axes(axis), keepdim)),
    "amin": ("min", lambda x, axis=None, keepdim=False: P.min(x, reduced_axes(axis), keepdim)),
    "max.dim": ("max", extreme_along(P.argmax)),
    "min.dim": ("min", extreme_along(P.argmin)),
    "max.other": ("maximum", P.maximum),
    "min.other": ("minimum", P.minimum),
    "prod": ("prod", lambda x, dtype=None: P.prod(x)),
    "prod.dim_int": ("prod", lambda x, axis, keepdim=False, dtype=None: P.prod(x, axis, keepdim)),
    "var.correction": ("divide", variance),
    "std.correction": ("sqrt", deviation),
    "linalg_vector_norm": ("norm", vector_norm),
    "dist": ("norm", lambda x, y, p=2: vector_norm(x - y, p)),
    "cumsum": ("cumsum", lambda x, axis, dtype=None: P.cumsum(x, axis)),
    "cumprod": ("cumprod", lambda x, axis, dtype=None: P.cumprod(x, axis)),
    "sort": ("getitem", sort),
    "sort.stable": ("getitem", stable_sort),
    "topk": ("getitem", P.topk),
    # products
    "mm": ("matmul", P.matmul),
    "mv": ("matmul", P.matmul),
    "dot": ("matmul", P.matmul),
    "addmm": ("add", add_product(P.matmul)),
    "baddbmm": ("add", add_product(P.bmm)),
    "addmv": ("add", add_product(P.matmul)),
    "linalg_inv_ex": ("inv", inverse),
    "linalg_cholesky_ex": ("cholesky", cholesky),
    # shapes
    "view": ("reshape", P.reshape),
    "_unsafe_view": ("reshape", P.reshape),
    "view_as": ("reshape", lambda x, y: P.reshape(x, y.shape)),
    "t": ("transpose", lambda x: P.transpose(x, [1, 0]) if x.ndim == 2 else x),
    "transpose": ("transpose", P.swapaxes),
    "permute": ("transpose", P.transpose),
    "unsqueeze": ("reshape", P.unsqueeze),
    "squeeze": ("reshape", P.squeeze),
    "expand": ("broadcast_view", expand),
    "select": ("getitem", index_axis),
    "slice": (
        "getitem",
        lambda x, axis=0, start=None, end=None, step=1: index_axis(
            x, axis, slice(start, end, step)
        ),
    ),
    "cat": ("concat", P.concat),
    "split": ("split", split),
    "split_with_sizes": ("split", P.split),
    "diag_embed": ("put_reduced", P.diag_embed),
    "repeat": ("tile", P.tile),
    # copies
    "clone": ("clone", clone),
    "contiguous": ("clone", clone),
    "detach": ("reshape", identity),
    "alias": ("reshape", identity),
    "lift": ("reshape", identity),
    "lift_fresh": ("reshape", identity),
    "resolve_conj": ("clone", identity),
    "_to_copy": ("cast", to_dtype),
    "copy": ("cast", copy),
    "zero": ("fill", lambda x: P.zeros_like(x)),
    "fill": ("fill", lambda x, v: P.zeros_like(x) + v),
    "zeros_like": ("fill", lambda x, *_: P.zeros_like(x)),
    "ones_like": ("fill", lambda x, *_: P.ones_like(x)),
    "full_like": ("fill", lambda x, v, *_: P.full_like(x, v)),
    # places
    "index": ("getitem", lambda x, indices: x[index_of(indices)]),
    "index_select": ("getitem", lambda x, axis, index: P.index_select(x, index, axis)),
    "gather": (
        "getitem",
        lambda x, axis, index, sparse=False: P.take_along_axis(x, index, axis, False),
    ),
    "scatter_add": ("put_reduced", scatter("add")),
    "scatter.src": ("setitem", scatter("assign")),
    "index_add": ("add", lambda x, axis, index, v, alpha=1: P.index_add(x, index, axis, v, alpha)),
    "index_put": ("setitem", put),
    "select_backward": ("setitem", select_back),
    "slice_backward": ("setitem", slice_back),
    # complex numbers
    "_conj": ("conj", P.conj),
    "view_as_real": ("reshape", P.as_real),
    "view_as_complex": ("reshape", P.as_complex),
    # windows and losses
    "max_pool2d_with_indices": ("getitem", pool(F.max_pool2d)),
    "max_pool3d_with_indices": ("getitem", pool(F.max_pool3d)),
    "native_layer_norm": ("add", layer_norm),
    "nll_loss_forward": ("mean", nll),
    "mse_loss": (
        "mean",
        lambda x, y, reduction=1: reduce_loss((x - y) * (x - y), reduction),
    ),
}
"""The operations, by aten's name, or by name and overload."""


def counterpart_of(name: str, overload: str) -> Counterpart | None:
    """The engine's counterpart of an aten operation; for an in-place operation, that of its
    out-of-place form.
    """
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    row = ATEN_ROWS.get(f"{plain}.{overload}") or ATEN_ROWS.get(plain)
    return None if row is None else Counterpart(*row)
