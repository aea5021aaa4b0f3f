"""Alternative names that Paddle accepts, for arguments (``dim=`` for ``axis=``) and for functions
(``gt``).

The tables are those of Paddle 3.3.1's own decorators.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pylayer.tensor.tensor import Tensor

_ARGUMENTS: dict[str, str] = {
    "input=x": (
        "abs adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d ceil clip conv1d conv2d "
        "conv3d cos cumprod "
        "dropout embedding empty_like exp floor frac full_like is_complex is_floating_point "
        "isfinite isnan log "
        "log_sigmoid logical_not masked_select multinomial nonzero one_hot ones_like pad "
        "randn_like round rsqrt "
        "sigmoid sign silu sin sqrt tanh trace trunc view_as_complex view_as_real zeros_like"
    ),
    "input=x other=y": (
        "add bitwise_or divide equal floor_divide greater_equal greater_than less_equal less_than "
        "multiply "
        "not_equal remainder subtract true_divide where"
    ),
    "input=x dim=axis": (
        "all amax amin any argmax argmin argsort chunk cumsum diff fft glu hfft ifft ihfft irfft "
        "logsumexp mean median "
        "prod quantile repeat_interleave rfft softmax squeeze sum topk unsqueeze var index_select"
    ),
    "input=x dim=axis keepdims=keepdim": "std",
    "input=x dim=axes": (
        "fftn fftshift ifftn ifftshift rfftn irfftn hfftn ihfftn fft2 ifft2 rfft2 irfft2 hfft2 "
        "ihfft2"
    ),
    "input=x A=x ord=p dim=axis": "norm",
    "ord=p dim=axis": "vector_norm",
    "A=x B=y": "solve",
    "dim=axis": "cosine_similarity cross unbind",
    "tensors=x dim=axis": "cat concat concatenate stack",
    "input=x dim=axis source=value": "index_add",
    "input=x dim=axis eps=epsilon": "normalize",
    "input=arr dim=axis": "take_along_axis",
    "input=x dim=axis sizes=shape": "unflatten",
    "dimension=axis": "unfold",
    "dim0=perm": "transpose",
    "input=x dims=repeat_times": "tile",
    "elements=x test_elements=test_x": "isin",
    "end=stop steps=num": "linspace",
    "input=x start_dim=start_axis end_dim=stop_axis": "flatten",
    "input=x eps=epsilon": "layer_norm",
    "x1=x x2=y eps=epsilon": "pairwise_distance",
    "input=x exponent=y": "pow",
    "input=values": "searchsorted",
    "d=dtype": "set_default_dtype",
    "input=x boundaries=sorted_sequence": "bucketize",
    "input=x lambd=threshold": "hardshrink softshrink",
    "input=x return_indices=return_mask": (
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "input=x size=shape": "broadcast_to",
    "input=x vec2=y": "outer",
    "n=num_rows m=num_columns": "eye",
    "obj=x": "is_tensor",
    "size=shape": "empty full normal ones rand randn zeros",
    "size=shape_or_dtype dtype=shape_or_dtype": "view",
    "target=label": "cross_entropy",
    (
        "input=x output_size=output_sizes kernel_size=kernel_sizes dilation=dilations "
        "padding=paddings stride=strides"
    ): "fold",
}
"""Alternative names of arguments, and the functions that accept them."""

SPELLINGS = {
    name: dict(pair.split("=") for pair in words.split())
    for words, names in _ARGUMENTS.items()
    for name in names.split()
}
"""Alternative names of a function's arguments, by function."""

DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {("median", "dim"): {"mode": "min"}}
"""Defaults for other arguments that a keyword implies in Paddle, by function and keyword."""

SIZES = {
    **dict.fromkeys(("empty", "ones", "rand", "randn", "zeros"), 0),
    **dict.fromkeys(("new_empty", "new_ones", "new_zeros", "view"), 1),
}
"""The position from which a shape may be given as separate sizes, by function."""

ALIASES = {
    "clamp": "clip",
    "div": "divide",
    "div_": "divide_",
    "eq": "equal",
    "ge": "greater_equal",
    "greater": "greater_than",
    "gt": "greater_than",
    "le": "less_equal",
    "logsigmoid": "log_sigmoid",
    "lt": "less_than",
    "mul": "multiply",
    "mul_": "multiply_",
    "ne": "not_equal",
    "sub": "subtract",
    "sub_": "subtract_",
    "true_divide": "divide",
}
"""Alternative names of functions."""


def place_of_name(function: Callable[..., Any]) -> int | None:
    """The position of the last argument ``name`` that Paddle's function has and the engine's lacks;
    None if it does not lack one, negative if it takes any number of arguments.

    The name has no effect. Paddle's layers pass it by position.
    """
    rooms = ("pylayer.ops.", "pylayer.nn.")
    is_engines = isinstance(function, FunctionType) and function.__module__.startswith(rooms)
    if not is_engines or hasattr(function, "op"):
        return None
    code = inspect.unwrap(function).__code__
    if "name" in code.co_varnames[: code.co_argcount]:
        return None
    return -1 if code.co_flags & inspect.CO_VARARGS else code.co_argcount


@functools.cache
def accept_spellings(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that accepts alternative names for its arguments, and a ``name``; a TypeError if
    an argument is given under both names.
    """
    words = SPELLINGS.get(name) or SPELLINGS.get(name.removesuffix("_"), {})
    sizes, place = SIZES.get(name), place_of_name(function)
    is_usual = not words and sizes is None and place is None
    if is_usual or isinstance(function, type):
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if sizes is not None and len(args) > sizes and isinstance(args[sizes], int):
            args = (*args[:sizes], list(args[sizes:]))
        if place is not None and len(args) == place + 1 > 0:
            args = args[:-1]
        if not kwargs:
            return function(*args)
        if place is not None:
            kwargs.pop("name", None)
        if kwargs.get("out", call) is None:  # as NumPy's functions call the methods of their names
            del kwargs["out"]
        for word in kwargs.keys() & words.keys():
            if words[word] not in kwargs:
                kwargs[words[word]] = kwargs.pop(word)
                kwargs = DEFAULTS.get((name, word), {}) | kwargs
        return function(*args, **kwargs)

    return call


def attach() -> None:
    """Give the methods of Tensor and their arguments their alternative names; operators have
    none.
    """
    for name, method in list(vars(Tensor).items()):
        if isinstance(method, FunctionType) and not name.startswith("__"):
            setattr(Tensor, name, accept_spellings(name, method))
    for alias, name in ALIASES.items():
        if hasattr(Tensor, name):
            setattr(Tensor, alias, getattr(Tensor, name))
