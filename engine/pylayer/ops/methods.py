"""Operators and methods of Tensor: the one table that attaches the operations to the class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pylayer.ops.complexes as complexes
import pylayer.ops.conversions as conversions
import pylayer.ops.diagonal as diagonal
import pylayer.ops.elementwise as elementwise
import pylayer.ops.indexing as indexing
import pylayer.ops.linalg as linalg
import pylayer.ops.logic as logic
import pylayer.ops.random as random
import pylayer.ops.shape as shape
from pylayer import fast
from pylayer.array import XP
from pylayer.autograd import backward_from
from pylayer.dtype import bfloat16
from pylayer.fast.calls import beside_number, fast_binary
from pylayer.hooks import register_hook, retain_grads
from pylayer.invalid import invalid
from pylayer.op import composed
from pylayer.ops.creation import to_tensor
from pylayer.ops.inplace import (
    copy_,
    detach_,
    fill_,
    fills_with,
    in_place,
    in_place_anew,
    set_,
    sets_items,
    zero_,
)
from pylayer.release import defined, release_names, shared_names
from pylayer.tensor import Tensor
from pylayer.vjp import OPS
from pylayer.watch import taken, watching

FUNCTIONS = defined("ops")
"""The functions of all families, by name; one that the release has as a method of Tensor is one."""

CHANGES = {"hypot": 3, "ldexp": 2}
"""How often Paddle changes the Tensor, where that is not once: it counts as many versions."""

IN_PLACE_ANEW = (
    "addmm", "cast", "cumprod", "cumsum", "flatten", "reshape", "squeeze", "transpose", "unsqueeze",
)  # fmt: skip
"""Those whose form with an underscore may change the shape."""


def as_operand(x: Tensor, other: Any) -> Any:
    """The other side of an operator: arrays become Tensors, those of shape [] numbers; Tensors and numbers stay.

    A TypeError for a list, a tuple or a string, which Python would otherwise repeat, or join.
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


def clip_kept(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clip`, of integers with bounds that are floats still integers."""
    return shape.astype(elementwise.clip(x, min, max), x.dtype)


def where_in_place(condition: Tensor, x: Any = None, y: Any = None) -> Tensor:
    """`where` written into the memory of `x`."""
    if x is None or y is None:
        raise invalid("where_(): either both or neither of x and y should be given, and here both")

    return in_place(lambda x: indexing.where(condition, x, y), "where_")(x)


OWN_FORMS: dict[str, Callable[..., Any]] = {
    "apply_": conversions.apply_,
    "clip_": in_place(clip_kept, "clip_"),
    "copy_": copy_,
    "detach_": detach_,
    "fill_": fill_,
    "fill_diagonal_": in_place(diagonal.fill_diagonal),
    "set_": set_,
    "t_": composed("t_", lambda x: in_place_anew(linalg.t)(x) if x.ndim > 1 else x),
    "where_": where_in_place,
    "zero_": zero_,
    **{f"{name}_": fills_with(name, drawn) for name, drawn in random.FILLS.items()},
}
"""The forms with an underscore that are not made of the one without."""

_UNDERSCORED = (release_names()["paddle"] | release_names()["paddle.Tensor"]) - OWN_FORMS.keys()
IN_PLACE = sorted(name for name in FUNCTIONS if f"{name}_" in _UNDERSCORED and name not in IN_PLACE_ANEW)
"""The other functions that the release has a form with an underscore of."""

FORMS_IN_PLACE: dict[str, Callable[..., Any]] = {
    **{f"{name}_": in_place(FUNCTIONS[name], f"{name}_", CHANGES.get(name, 1)) for name in IN_PLACE},
    **{f"{name}_": in_place_anew(FUNCTIONS[name]) for name in IN_PLACE_ANEW},
    **OWN_FORMS,
}
"""The forms with an underscore, by name: methods of Tensor, functions, or both, as the release has them."""

set_items = sets_items(indexing.setitem)


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
    for name in [n for n in shared_names("paddle.Tensor") if n not in vars(Tensor)]:
        if name in FORMS_IN_PLACE:
            setattr(Tensor, name, FORMS_IN_PLACE[name])
        elif name in FUNCTIONS and not name.endswith("_"):
            setattr(Tensor, name, FUNCTIONS[name])
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
        "__setitem__": set_items,
        "T": property(lambda x: shape.transpose(x, list(range(x.ndim))[::-1]) if x.ndim != 1 else x),
        "mT": property(linalg._swapped),
        "conjugate": complexes.conj,
    }
    for name, value in {**conversions.ATTRIBUTES, **attributes}.items():
        setattr(Tensor, name, value)
