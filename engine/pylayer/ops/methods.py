"""Operators, methods and attributes of Tensor, and the one table that attaches them to the
class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pylayer.fast import ON, beside_number, fast_binary
from pylayer.ops import (
    complexes,
    creation,
    elementwise,
    indexing,
    joining,
    linalg,
    positions,
    random,
    shape,
)
from pylayer.ops.arguments import accept_separate_ints, as_ints, require
from pylayer.ops.inplace import copy_, detach_, fill_, fills_with, in_place, set_, set_items, zero_
from pylayer.ops.shape import astype, cast, strides
from pylayer.release import engine_objects, release_names, shared_names
from pylayer.tape.autograd import backward_from
from pylayer.tape.hooks import register_hook, retain_grads
from pylayer.tape.op import composed
from pylayer.tape.vjp import OPS, OpDef
from pylayer.tensor.array import XP, Place, check_place, owner, set_device, to_numpy
from pylayer.tensor.dtype import bfloat16
from pylayer.tensor.invalid import plain_number, wrong_type
from pylayer.tensor.tensor import Tensor
from pylayer.watch import from_numpy_hook

DTYPE_METHODS = {
    "bfloat16": "bfloat16",
    "bool": "bool",
    "byte": "uint8",
    "cdouble": "complex128",
    "cfloat": "complex64",
    "char": "int8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}
"""Methods without arguments that cast the Tensor to a dtype."""


def _new(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method that calls `make` with the dtype of the Tensor, unless one is given; Paddle's
    `device` and `pin_memory` are ignored.
    """

    def new(
        x: Tensor,
        size: Any,
        *args: Any,
        dtype: Any = None,
        requires_grad: bool = False,
        **unread: Any,
    ) -> Tensor:
        tensor = make(as_ints(size), *args, x.dtype if dtype is None else dtype)
        tensor.stop_gradient = not requires_grad
        return tensor

    return composed(f"new_{make.__name__}", new)


def apply(x: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """Call ``func`` on the Tensor; a RuntimeError if that needs a gradient."""
    text = "Cannot apply function on a tensor that required gradient"
    require(x.stop_gradient, text, error=RuntimeError)
    return func(x)


apply_ = composed("apply_", lambda x, func: apply(x, in_place(lambda t: func(t), changes=0)))


def requires_grad_(x: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether a gradient is needed; return the Tensor."""
    x.stop_gradient = not requires_grad
    return x


def share_buffer_to(x: Tensor, other: Tensor) -> None:
    """Give `other` the memory of this Tensor; `other` keeps its shape, which must not have more
    elements.
    """
    other.array = x.array.reshape(-1)[: other.size].reshape(other.array.shape)


def register_backward_hook(x: Tensor, hook: Callable[[], Any]) -> None:
    """Call `hook`, without arguments, once per backward, when the gradient of this leaf is about to
    reach `grad`.
    """
    leaf = not x.stop_gradient and x.is_leaf
    require(leaf, "_register_backward_hook(): a backward hook is for a leaf that needs a gradient")

    def call(gradient: Tensor) -> None:
        hook()

    x.register_hook(call)


pin_memory = composed("pin_memory", lambda x, blocking=True: x)
randn_like = composed(
    "randn_like", lambda x, dtype=None, **options: random.randn(x.shape, dtype or x.dtype)
)
rand_like = composed(
    "rand_like", lambda x, dtype=None, **options: random.uniform(x.shape, dtype or x.dtype)
)
is_floating_point = composed("is_floating_point", lambda x: x.dtype.is_floating, "bool")
is_complex = composed("is_complex", lambda x: x.dtype.is_complex, "bool")
is_integer = composed("is_integer", lambda x: x.dtype.rank == 1, "bool")
is_empty = composed("is_empty", lambda x: creation.full([], x.size == 0, "bool"))
cpu = composed(
    "cpu",
    lambda x: x if x.place.is_cpu_place() else Tensor(to_numpy(x.array), None, x.stop_gradient),
)


def cuda(x: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """`x` itself if it is on the current GPU, otherwise a RuntimeError: see `set_device`."""
    if x.place.is_cpu_place():
        set_device(f"gpu:{device_id or 0}")  # raises if CuPy or a GPU is missing
        raise RuntimeError("The Tensor is in host memory: make it after paddle.set_device('gpu').")
    return x


def to(
    x: Tensor,
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    other: Any = None,
    blocking: Any = None,
    non_blocking: Any = None,
    copy: Any = None,
) -> Tensor:
    """Cast to a dtype, or to that of another Tensor; without a dtype, return the Tensor itself; a
    `device` must be the current one.
    """
    for argument in (device, other, dtype, *args):
        if isinstance(argument, Tensor):
            x = x if argument.dtype is x.dtype else cast(x, argument.dtype)
        elif isinstance(argument, Place) or str(argument).partition(":")[0] in ("cpu", "gpu"):
            check_place(argument)
        elif argument is not None and not isinstance(argument, bool):  # whether to wait, or to copy
            x = cast(x, argument)
    return x


# -------------------------------------------------------------------- operators and in-place forms
FUNCTIONS = engine_objects("ops")
"""The functions of all families, by name; those that are methods of Tensor in the release become
methods.
"""

CHANGES = {
    "bernoulli": 3,
    "exponential": 0,
    "gammainc": 3,
    "hypot": 3,
    "index_fill": 3,
    "nan_to_num": 3,
    "sinc": 4,
}
"""How often Paddle changes the Tensor, and so increments its version, if not once.
Observed.
"""

IN_PLACE_ANEW = ["addmm", "cast", "cumprod", "cumsum"]
"""Functions whose in-place form may change the shape or dtype."""

IN_PLACE_VIEWS = ["flatten", "reshape", "squeeze", "transpose", "unsqueeze"]
"""Functions whose in-place form turns the Tensor into a view."""


SCALARS = (int, float, complex, np.floating, np.complexfloating, np.int64, np.int32, np.int16)
"""Classes of numbers that operators accept; Paddle refuses other NumPy scalars."""


def scalar_operand(x: Tensor, scalar: Any) -> Any:
    """A scalar of NumPy as a Python number. A TypeError if the type is not accepted."""
    text = "the operand of a Tensor must be int, float, bool or Tensor"
    require(isinstance(scalar, SCALARS), f"{text}, but got {type(scalar)}", error=TypeError)
    return int(float(scalar)) if elementwise.is_cut(scalar, x) else plain_number(scalar)


def as_operand(x: Tensor, other: Any) -> Any:
    """The other operand of an operator, with arrays as Tensors or numbers; a TypeError for a list,
    tuple or string.
    """
    other = from_numpy_hook(other)
    if isinstance(other, Tensor):
        return other
    if isinstance(other, np.generic):
        other = scalar_operand(x, other)
    elif hasattr(other, "dtype"):
        return Tensor(XP[type(x.array)].asarray(other))
    if x.dtype is bfloat16 and isinstance(other, (int, float)):
        # next to bfloat16, NumPy treats a Python float as float32
        return Tensor(XP[type(x.array)].asarray(other, bfloat16.numpy))
    if isinstance(other, (int, float, complex)):
        return other
    text = wrong_type("the operand of a Tensor must be int, float, bool or Tensor", other)
    require(not isinstance(other, (list, tuple, str)), text, error=TypeError)
    return NotImplemented


def forward_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``x ∘ other``."""

    def operator(x: Tensor, other: Any) -> Any:
        other = other if type(other) is Tensor else as_operand(x, other)
        return NotImplemented if other is NotImplemented else function(x, other)

    return operator


COMPARISONS: dict[str, Any] = {
    "lt": elementwise.less_than, "le": elementwise.less_equal,
    "gt": elementwise.greater_than, "ge": elementwise.greater_equal,
}  # fmt: skip
OPERATORS: dict[str, Any] = {
    "add": elementwise.add, "sub": elementwise.subtract,
    "mul": elementwise.multiply, "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide, "mod": elementwise.remainder_, "pow": elementwise.power,
    "matmul": linalg.matmul_, **COMPARISONS,
}  # fmt: skip
OF_INTEGERS: dict[str, Any] = {
    "and": elementwise.bitwise_and, "or": elementwise.bitwise_or, "xor": elementwise.bitwise_xor,
    "lshift": elementwise.bitwise_left_shift, "rshift": elementwise.bitwise_right_shift,
}  # fmt: skip


def integer_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """``x ∘ other``, where a number becomes a Tensor of the dtype of `x`."""

    def operator(x: Tensor, other: Any) -> Any:
        if isinstance(other, int):
            other = creation.to_tensor(other, x.dtype)
        return function(x, other) if isinstance(other, Tensor) else NotImplemented

    return operator


def reflect(function: Callable[..., Any]) -> Callable[..., Any]:
    """The reflected operation: ``other ∘ x``, given ``x ∘ other``."""
    return lambda x, other: function(other, x)


def equality(row: OpDef, otherwise: bool) -> Callable[..., Any]:
    """Compare element by element; `otherwise` if the other is not a Tensor, array or number
    (observed rule 84).
    """

    def operator(x: Tensor, other: Any) -> Any:
        is_array = hasattr(other, "dtype") and not isinstance(other, np.generic)
        if is_array or isinstance(other, SCALARS):
            return row.apply(x, as_operand(x, other))
        return otherwise

    return operator


def clip_in_dtype(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clip`; integers stay integers, also with float bounds."""
    return astype(elementwise.clip(x, min, max), x.dtype)


def where_in_place(condition: Tensor, x: Any = None, y: Any = None) -> Tensor:
    """`where` written into the memory of `x`."""
    text = "where_(): either both or neither of x and y should be given, here both"
    require(x is not None and y is not None, text)
    return in_place(lambda x: indexing.where(condition, x, y), "where_")(x)


OWN_FORMS: dict[str, Callable[..., Any]] = {
    "apply_": apply_,
    "clip_": in_place(clip_in_dtype, "clip_"),
    "copy_": copy_,
    "detach_": detach_,
    "fill_": fill_,
    "fill_diagonal_": in_place(positions.fill_diagonal),
    "set_": set_,
    "t_": composed("t_", lambda x: in_place(linalg.t, view=True)(x) if x.ndim > 1 else x),
    "where_": where_in_place,
    "zero_": zero_,
    **{
        f"{name}_": fills_with(name, drawn, CHANGES.get(name, 1))
        for name, drawn in random.FILLS.items()
    },
}
"""The in-place functions (with an underscore) that are not derived from the function without
one.
"""

_UNDERSCORED = (release_names()["paddle"] | release_names()["paddle.Tensor"]) - OWN_FORMS.keys()
IN_PLACE = sorted(
    {name for name in FUNCTIONS if f"{name}_" in _UNDERSCORED} - {*IN_PLACE_ANEW, *IN_PLACE_VIEWS}
)
"""The other functions that have an in-place form in the release."""

FORMS_IN_PLACE: dict[str, Callable[..., Any]] = {
    **{
        f"{name}_": in_place(
            FUNCTIONS[name],
            f"{name}_",
            CHANGES.get(name, 1),
            name in IN_PLACE_ANEW,
            name in IN_PLACE_VIEWS,
        )
        for name in (*IN_PLACE, *IN_PLACE_ANEW, *IN_PLACE_VIEWS)
    },
    **OWN_FORMS,
}
"""The in-place forms, by name: methods of Tensor, functions, or both, as in the release.
"""


def _in_dtype(name: str, dtype: str) -> Callable[..., Tensor]:
    return composed(name, lambda x: astype(x, dtype))


ATTRIBUTES: dict[str, Any] = {
    **{name: _in_dtype(name, dtype) for name, dtype in DTYPE_METHODS.items()},
    **{
        f"new_{make.__name__}": _new(make)
        for make in (creation.zeros, creation.ones, creation.empty, creation.full)
    },
    "data": property(Tensor.detach, lambda x, value: setattr(x, "array", value.array)),
    "requires_grad": property(
        lambda x: not x.stop_gradient, lambda x, value: setattr(x, "stop_gradient", not value)
    ),
    "requires_grad_": requires_grad_,
    "dim": lambda x: x.ndim,
    "ndimension": lambda x: x.ndim,
    "element_size": lambda x: x.dtype.itemsize,
    "itemsize": property(lambda x: x.array.dtype.itemsize),
    "strides": property(strides),
    "get_strides": strides,
    "stride": lambda x, dim=None: strides(x) if dim is None else strides(x)[dim],
    "repeat": accept_separate_ints(shape.tile),
    "split_with_sizes": lambda x, split_sizes, dim=0: joining.split(x, split_sizes, dim),
    "is_cuda": property(lambda x: x.place.is_gpu_place()),
    "is_same": lambda x, other: x is other,  # the class of values in static mode
    "_is_shared_buffer_with": lambda x, other: owner(x.array) is owner(other.array),
    "_share_buffer_to": share_buffer_to,
    "_register_backward_hook": register_backward_hook,
    "_is_initialized": lambda x: True,
    "_numel": lambda x: int(x.size),
    "_inplace_version": lambda x: x.inplace_version,
    "_grad_ivar": lambda x: x.grad,
    "backward": backward_from,
    "register_hook": register_hook,
    "retain_grads": retain_grads,
    "__eq__": equality(OPS["equal"], False),
    "__ne__": equality(OPS["not_equal"], True),
    "__neg__": elementwise.neg,
    "__abs__": elementwise.abs,
    "__pos__": elementwise.positive,
    "__div__": lambda x, other: x / other,
    "__rdiv__": lambda x, other: other / x,
    "__invert__": elementwise.bitwise_not,
    "__getitem__": indexing.getitem,
    "__setitem__": set_items,
    "T": property(lambda x: shape.transpose(x, list(range(x.ndim))[::-1]) if x.ndim != 1 else x),
    "mT": property(linalg.matrix_transpose),
    "conjugate": complexes.conj,
}
"""Members of Tensor other than operators and functions of `paddle` that are methods too."""


def attach() -> None:
    """Give Tensor its operators and methods."""
    for name, function in OPERATORS.items():
        row = function.op
        forward, reflected = forward_operator(row.apply), row.apply
        if ON and name != "matmul":
            forward = fast_binary(row, beside_number(row, forward))
            reflected = beside_number(row, reflected)
        setattr(Tensor, f"__{name}__", forward)
        if name not in COMPARISONS:
            setattr(Tensor, f"__r{name}__", forward_operator(reflect(reflected)))
    for name, function in OF_INTEGERS.items():
        takes_numbers = name.endswith("shift")  # as in Paddle, on the right
        setattr(Tensor, f"__{name}__", integer_operator(function) if takes_numbers else function)
        setattr(Tensor, f"__r{name}__", integer_operator(reflect(function)))
    functions = {name: f for name, f in FUNCTIONS.items() if not name.endswith("_")}
    methods = functions | FORMS_IN_PLACE
    for name in methods.keys() & set(shared_names("paddle.Tensor")) - vars(Tensor).keys():
        setattr(Tensor, name, methods[name])
    for name, value in ATTRIBUTES.items():
        setattr(Tensor, name, value)
