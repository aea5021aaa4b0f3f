"""`paddle.nn.functional`'s fractional max pooling (Graham, 2015): windows whose sizes and places a number decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pylayer.nn.adaptive_pooling import max_of_spans
from pylayer.nn.spatial import check_space, per_axis
from pylayer.ops import random
from pylayer.tensor import Tensor


def _spans(size: int, count: int, kernel: int, u: float) -> list[range]:
    """Where each of `count` windows over an axis begins and ends, in single precision as in Paddle.

    Window i begins at ⌊(i + u) a⌋ - ⌊u a⌋, with the step a = size / count; it ends where the next begins, and u is
    made smaller first, so that the last ends with the axis. With a kernel, a = (size - kernel) / (count - 1), and each
    window is as long as the kernel.
    """
    single = np.float32
    step = single(size - kernel) / single(max(count - (kernel > 0), 1))
    if not kernel:
        base = size // count
        u *= float(min(single(base + 2) / step - 1, single(size + 1 - base) / step - (count - 1)))
    starts = [int((single(i) + single(u)) * step) - int(single(u) * step) for i in range(count + 1)]
    ends = [min(size, starts[i] + kernel if kernel else starts[i + 1]) for i in range(count)]
    return [range(start, end) for start, end in zip(starts, ends, strict=False)]


def _largest(
    name: str, ndim: int, x: Tensor, output_size: Any, kernel_size: Any, random_u: float | None, return_mask: bool
) -> Any:
    check_space(name, x, ndim)
    if random_u is not None and not 0 < random_u < 1:
        raise ValueError(f"The param `random_u` should be a `float` in (0, 1), but is {random_u}.")
    given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * ndim
    if len(given) != ndim:
        raise ValueError(f"(InvalidArgument) {name}(): output_size should be {ndim} sizes, but is {output_size}.")
    counts = [n if count is None else int(count) for count, n in zip(given, x.shape[2:], strict=True)]
    kernel = [0] * ndim if kernel_size is None else per_axis(kernel_size, ndim, "kernel_size")
    for n, count, k in zip(x.shape[2:], counts, kernel, strict=True):
        if not 1 <= count <= n - max(k - 1, 0):
            raise ValueError(
                f"(InvalidArgument) {name}(): {count} windows of {k or 'at least 1'} do not fit into an axis of {n}."
            )
    u = float(random.rand([1], "float64")) if random_u is None else random_u
    spans = [_spans(n, count, k, u) for n, count, k in zip(x.shape[2:], counts, kernel, strict=True)]
    return max_of_spans(x, spans, return_mask)


def _fractional_max_pool(ndim: int, space: str) -> Callable[..., Any]:
    """The function of that many spatial axes."""

    def function(
        x: Tensor,
        output_size: Any,
        kernel_size: Any = None,
        random_u: float | None = None,
        return_mask: bool = False,
        name: str | None = None,
    ) -> Any:
        return _largest(function.__name__, ndim, x, output_size, kernel_size, random_u, return_mask)

    function.__name__ = function.__qualname__ = f"fractional_max_pool{ndim}d"
    function.__doc__ = f"""The largest element of `output_size` windows of `x`, [batch, channels, {space}].

    Args:
        output_size: the number of windows, for both axes or one each; None keeps an axis.
        kernel_size: the size of windows, which may then overlap; without it they follow one another.
        random_u: what decides where windows begin, in (0, 1); drawn unless given.
        return_mask: a pair is returned, the second int32 positions in the flattened space.

    Raises:
        ValueError: shapes or sizes that do not fit, or `random_u` outside (0, 1).
    """
    return function


fractional_max_pool2d = _fractional_max_pool(2, "height, width")
fractional_max_pool3d = _fractional_max_pool(3, "depth, height, width")
