"""Operators and methods of Tensor: the one table that attaches the operations to the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pylayer.ops.arithmetic as arithmetic
import pylayer.ops.complexes as complexes
import pylayer.ops.conditioning as conditioning
import pylayer.ops.conversions as conversions
import pylayer.ops.counting as counting
import pylayer.ops.creation as creation
import pylayer.ops.describing as describing
import pylayer.ops.diagonal as diagonal
import pylayer.ops.distances as distances
import pylayer.ops.eigenvalues as eigenvalues
import pylayer.ops.elementwise as elementwise
import pylayer.ops.elimination as elimination
import pylayer.ops.factors as factors
import pylayer.ops.gathering as gathering
import pylayer.ops.indexing as indexing
import pylayer.ops.joining as joining
import pylayer.ops.linalg as linalg
import pylayer.ops.logic as logic
import pylayer.ops.norms as norms
import pylayer.ops.overwriting as overwriting
import pylayer.ops.random as random
import pylayer.ops.rearranging as rearranging
import pylayer.ops.reduction as reduction
import pylayer.ops.running as running
import pylayer.ops.scattering as scattering
import pylayer.ops.shape as shape
import pylayer.ops.solving as solving
import pylayer.ops.sorting as sorting
import pylayer.ops.special as special
import pylayer.ops.statistics as statistics
from pylayer import fast
from pylayer.array import XP
from pylayer.autograd import backward_from
from pylayer.dtype import bfloat16
from pylayer.fast.calls import beside_number, fast_binary
from pylayer.hooks import register_hook, retain_grads
from pylayer.ops.creation import to_tensor
from pylayer.ops.inplace import (
    copy_,
    detach_,
    fill_,
    fills_with,
    in_place,
    in_place_anew,
    set_,
    set_value,
    sets_items,
    zero_,
)
from pylayer.tensor import Tensor
from pylayer.vjp import OPS
from pylayer.watch import taken, watching

FAMILIES: tuple[Any, ...] = (
    arithmetic, complexes, conditioning, counting, creation, describing, diagonal, distances, eigenvalues, elementwise,
    elimination, factors, gathering, indexing, joining, linalg, logic, norms, overwriting, random, rearranging,
    reduction, running, scattering, shape, solving, sorting, special, statistics,
)  # fmt: skip

IN_PLACE = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "copysign",
    "cos", "cosh", "digamma", "divide", "erf", "erfinv", "exp", "expm1", "floor", "floor_divide", "floor_mod", "frac",
    "gammainc", "gammaincc", "gammaln", "gcd", "hypot", "i0", "index_add", "index_fill", "index_put", "lcm", "ldexp",
    "lerp", "lgamma", "log", "log10", "log1p", "log2", "logit", "masked_fill", "masked_scatter", "mod",
    "multigammaln", "multiply", "nan_to_num", "neg", "polygamma", "pow", "put_along_axis", "reciprocal", "remainder",
    "renorm", "round", "rsqrt", "scale", "scatter", "scatter_add", "sigmoid", "sin", "sinc", "sinh", "sqrt", "square",
    "subtract", "tan", "tanh", "tril", "triu", "trunc",
)  # fmt: skip
"""The methods that have a form with an underscore."""

CHANGES = {"hypot": 3, "ldexp": 2}
"""How often Paddle changes the Tensor, where that is not once: it counts as many versions."""

IN_PLACE_LOGICAL = (
    "equal", "greater_equal", "greater_than", "less", "less_equal", "less_than", "logical_and", "logical_not",
    "logical_or", "logical_xor", "not_equal",
)  # fmt: skip
"""Those whose form with an underscore makes the Tensor bool."""

IN_PLACE_ANEW = (
    "addmm", "cast", "cumprod", "cumsum", "flatten", "reshape", "squeeze", "transpose", "unsqueeze",
)  # fmt: skip
"""Those whose form with an underscore may change the shape."""


def as_operand(x: Tensor, other: Any) -> Any:
    """The other side of an operator: arrays become Tensors, those of shape [] numbers; Tensors and numbers stay.

    Raises:
        TypeError: it is a list, a tuple or a string, which Python would otherwise repeat, or join.
    """
    if watching:
        other = taken(other)
    if isinstance(other, Tensor):
        return other
    if hasattr(other, "dtype"):
        array = XP[type(x.array)].asarray(other)
        return Tensor(array) if array.ndim else array.item()
    if isinstance(other, (int, float, complex)):
        weak = x.dtype is bfloat16 and not isinstance(other, complex)  # beside which NumPy takes a float for float32
        return Tensor(XP[type(x.array)].asarray(other, bfloat16.numpy)) if weak else other
    if isinstance(other, (list, tuple, str)):
        raise TypeError(
            f"(InvalidType) the operand of a Tensor must be int, float, bool or Tensor, but got "
            f"{type(other).__name__}. Convert it with paddle.to_tensor."
        )
    return NotImplemented


def forward_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``x ∘ other``."""

    def operator(x: Tensor, other: Any) -> Any:
        if type(other) is not Tensor:
            other = as_operand(x, other)
            if other is NotImplemented:
                return NotImplemented
        return function(x, other)

    return operator


def reflected_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``other ∘ x``."""

    def operator(x: Tensor, other: Any) -> Any:
        other = as_operand(x, other)
        return NotImplemented if other is NotImplemented else function(other, x)

    return operator


def reflected_bitwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """``other ∘ x`` for a number, which becomes a Tensor of the dtype of `x`."""

    def operator(x: Tensor, other: Any) -> Any:
        return function(to_tensor(other, x.dtype), x) if isinstance(other, int) else NotImplemented

    return operator


OPERATORS: dict[str, Any] = {
    "add": elementwise.add, "sub": elementwise.subtract, "mul": elementwise.multiply, "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder, "pow": elementwise.power,
    "matmul": linalg.matmul_,
}  # fmt: skip
BITWISE: dict[str, Any] = {"and": logic.bitwise_and, "or": logic.bitwise_or, "xor": logic.bitwise_xor}
COMPARISONS: dict[str, Any] = {
    "lt": logic.less_than, "le": logic.less_equal, "gt": logic.greater_than, "ge": logic.greater_equal,
}  # fmt: skip


def equals(x: Tensor, other: Any) -> Any:
    """``x == other``: element by element, and False for what is no Tensor, array or number (observed rule 84)."""
    return OPS["equal"].apply(x, as_operand(x, other)) if comparable(other) else False


def differs(x: Tensor, other: Any) -> Any:
    """``x != other``: element by element, and True for what is no Tensor, array or number."""
    return OPS["not_equal"].apply(x, as_operand(x, other)) if comparable(other) else True


def comparable(other: Any) -> bool:
    """Whether `other` is a Tensor, an array or a number."""
    return isinstance(other, (Tensor, int, float, complex)) or hasattr(other, "dtype")


def clip_kept(x: Tensor, min: Any = None, max: Any = None, name: str | None = None) -> Tensor:
    """`clip`, of integers with bounds that are floats still integers."""
    return shape.astype(elementwise.clip(x, min, max), x.dtype)


clip_kept.__name__ = "clip"


def where_in_place(condition: Tensor, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`where` written into the memory of `x`.

    Raises:
        ValueError: x or y is missing, x is a leaf that needs a gradient, or the result does not fit into it.
    """
    if x is None or y is None:
        raise ValueError(
            "(InvalidArgument) where_(): either both or neither of x and y should be given, and here both."
        )

    def where(x: Tensor) -> Tensor:
        return indexing.where(condition, x, y)  # type: ignore[no-any-return]

    return in_place(where)(x)


def transposed_in_place(x: Tensor, name: str | None = None) -> Tensor:
    """`t`, in place: nothing to do for less than two axes."""
    return in_place_anew(linalg.t)(x) if x.ndim > 1 else x


METHODS_ONLY = {
    f"{name}_"
    for name in (
        "add", "ceil", "clip", "exp", "floor", "lerp", "put_along_axis", "reciprocal", "round", "rsqrt", "scale",
        "sigmoid", "sqrt", "uniform", "exponential", "erfinv", "fill_diagonal",
    )
}  # fmt: skip
"""The forms with an underscore that Paddle has no function for."""

FUNCTIONS_ONLY = {"erf_", "expm1_"}
"""Those that Paddle has no method for."""


def _function(name: str) -> Callable[..., Any]:
    return next(vars(family)[name] for family in FAMILIES if name in family.METHODS)  # type: ignore[no-any-return]


FORMS_IN_PLACE: dict[str, Callable[..., Any]] = {
    **{f"{name}_": in_place(_function(name), changes=CHANGES.get(name, 1)) for name in (*IN_PLACE, *IN_PLACE_LOGICAL)},
    **{f"{name}_": in_place_anew(_function(name)) for name in IN_PLACE_ANEW},
    "clip_": in_place(clip_kept),
    "fill_diagonal_": in_place(overwriting.fill_diagonal),
    "t_": transposed_in_place,
    "where_": where_in_place,
    **{
        f"{name}_": fills_with(getattr(random, f"{name}_like"))
        for name in ("bernoulli", "exponential", "normal", "uniform")
    },
}
"""The forms with an underscore, by name."""


def functions_in_place() -> dict[str, Callable[..., Any]]:
    """Those that are functions of Paddle as well."""
    return {name: form for name, form in FORMS_IN_PLACE.items() if name not in METHODS_ONLY}


def attach() -> None:
    """Give Tensor its operators and methods."""
    for name, function in OPERATORS.items():
        row = function.op
        forward, reflected = forward_operator(row.apply), row.apply
        if fast.ON and function is not linalg.matmul_:
            forward, reflected = fast_binary(row, beside_number(row, forward)), beside_number(row, reflected)
        setattr(Tensor, f"__{name}__", forward)
        setattr(Tensor, f"__r{name}__", reflected_operator(reflected))
    for name, function in BITWISE.items():
        setattr(Tensor, f"__{name}__", function)
        setattr(Tensor, f"__r{name}__", reflected_bitwise(function))
    for name, function in COMPARISONS.items():
        row = function.op
        compare = forward_operator(function.op.apply)
        setattr(Tensor, f"__{name}__", fast_binary(row, beside_number(row, compare)) if fast.ON else compare)
    for family in FAMILIES:
        for name in family.METHODS:
            setattr(Tensor, name, getattr(family, name))
    for name, form in FORMS_IN_PLACE.items():
        if name not in FUNCTIONS_ONLY:
            setattr(Tensor, name, form)
    attributes: dict[str, Any] = {
        "backward": backward_from,
        "register_hook": register_hook,
        "retain_grads": retain_grads,
        "__eq__": equals,
        "__ne__": differs,
        "__neg__": elementwise.neg,
        "__abs__": elementwise.abs,
        "__invert__": logic.bitwise_not,
        "__getitem__": indexing.getitem,
        "__setitem__": sets_items(indexing.setitem),
        "T": property(lambda x: shape.transpose(x, list(range(x.ndim))[::-1]) if x.ndim != 1 else x),
        "mT": property(linalg._swapped),
        "conjugate": complexes.conj,
        "copy_": copy_,
        "detach_": detach_,
        "set_": set_,
        "set_value": set_value,
        "fill_": fill_,
        "zero_": zero_,
    }
    for name, value in {**conversions.ATTRIBUTES, **attributes}.items():
        setattr(Tensor, name, value)
