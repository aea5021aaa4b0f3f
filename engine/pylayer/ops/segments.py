"""Rows gathered into segments: `paddle.geometric`. All by way of `put_reduced`, `add_at` and `getitem`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pylayer.op import composed
from pylayer.ops.arguments import as_int
from pylayer.ops.creation import full, zeros
from pylayer.ops.indexing import add_at, getitem, where_
from pylayer.ops.scattering import put_reduced
from pylayer.ops.shape import reshape
from pylayer.tensor import Tensor


def _pooled(kind: str, x: Tensor, rows: Tensor, count: int) -> Tensor:
    """The rows of `x` of one number in `rows`, summed, averaged, or their extreme; zeros where there are none."""
    shape = [count, *x.shape[1:]]
    nothing = zeros(shape, x.dtype)
    if kind in ("sum", "mean"):
        total: Tensor = add_at(nothing, rows, x)
        if kind == "sum":
            return total
    counts = add_at(zeros([count], x.dtype), rows, full([rows.size], 1, x.dtype))
    counts = reshape(counts, [-1, *[1] * (x.ndim - 1)])
    if kind == "mean":
        return total / where_(counts == 0, counts + 1, counts)
    found = put_reduced(nothing, rows, x, {"min": "minimum", "max": "maximum"}[kind], False)
    return where_(counts == 0, nothing, found)


def _segment(kind: str) -> Callable[..., Tensor]:
    """The sums, or the like, of rows with equal ids, which rise; zeros where there are none."""

    def segment(data: Tensor, segment_ids: Tensor) -> Tensor:
        count = as_int(segment_ids.array[-1]) + 1 if segment_ids.size else 0
        return _pooled(kind, data, segment_ids, count)

    return composed(f"segment_{kind}", segment)


segment_sum, segment_mean, segment_min, segment_max = map(_segment, ("sum", "mean", "min", "max"))

_MESSAGES = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
}  # fmt: skip


def _message(kind: str, a: Tensor, b: Tensor) -> Tensor:
    if kind not in _MESSAGES:
        raise ValueError(f"message_op should be `add`, `sub`, `mul`, `div`, but received {kind}")
    return _MESSAGES[kind](a, b)  # type: ignore[no-any-return]


def _received(messages: Tensor, dst_index: Tensor, reduce_op: str, out_size: Any, rows: int) -> Tensor:
    count = rows if out_size is None or as_int(out_size) <= 0 else as_int(out_size)
    if reduce_op not in ("sum", "mean", "min", "max"):
        raise ValueError(f"reduce_op should be `sum`, `mean`, `max` or `min`, but received {reduce_op}")
    return _pooled(reduce_op, messages, dst_index, count)


def send_u_recv(
    x: Tensor, src_index: Tensor, dst_index: Tensor, reduce_op: str = "sum", out_size: Any = None
) -> Tensor:
    """Along the edges of a graph, the rows `src_index` of `x` brought to the rows `dst_index` and reduced there."""
    return _received(getitem(x, src_index), dst_index, reduce_op, out_size, x.shape[0])


def send_ue_recv(
    x: Tensor,
    y: Tensor,
    src_index: Tensor,
    dst_index: Tensor,
    message_op: str = "add",
    reduce_op: str = "sum",
    out_size: Any = None,
) -> Tensor:
    """`send_u_recv` of the rows combined with those of the edges, `y`, by add, sub, mul or div."""
    return _received(_message(message_op, getitem(x, src_index), y), dst_index, reduce_op, out_size, x.shape[0])


def send_uv(x: Tensor, y: Tensor, src_index: Tensor, dst_index: Tensor, message_op: str = "add") -> Tensor:
    """Per edge, the row `src_index` of `x` combined with the row `dst_index` of `y`, as in `send_ue_recv`."""
    return _message(message_op, getitem(x, src_index), getitem(y, dst_index))
