"""Elementwise operations, one row each: name, vjps, and a forward if the array module has no
function of that name.

The vjp of a holomorphic f is ``g * conj(f')``, as in Paddle and torch. ``conjugate()`` of a real
array is itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np

from pylayer.ops.arguments import require
from pylayer.ops.indexing import where_
from pylayer.ops.shape import cast
from pylayer.tape.op import Operation, binary, composed, op, unary
from pylayer.tape.symbol import named
from pylayer.tape.vjp import Derivative, Function
from pylayer.tensor.array import Array
from pylayer.tensor.invalid import as_floating, check_supported, invalid, wrong_type
from pylayer.tensor.tensor import Tensor

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# --------------------------------------------------------------------------- arithmetic
add = binary("add", lambda g: g, lambda g: g)
subtract = binary("subtract", lambda g: g, Derivative(lambda: -1))
multiply = binary("multiply", Derivative(lambda y: y), Derivative(lambda x: x))
divide = binary(
    "divide",
    lambda g, y: g / y.conjugate(),
    lambda g, y, out: -g * (out / y).conjugate(),
    forward=lambda xp: xp.true_divide,
    floating=True,
)
# Python's sign.
remainder_ = binary(
    "remainder",
    lambda g: g,
    lambda g, F, x, y: -g * F.floor(x / y),
    forward=lambda xp: xp.remainder,
    numbers=True,
)


def cut_number(x: Any, y: Any) -> Any:
    """`y`; a float next to a Tensor of integers becomes an integer."""
    return int(y) if isinstance(y, float) and isinstance(x, Tensor) and x.dtype.rank == 1 else y


def remainder(x: Tensor, y: Any) -> Tensor:
    """x modulo y, with the sign of y; if x is an integer Tensor, a number y is truncated to an
    integer.
    """
    return remainder_(x, cut_number(x, y))


mod = floor_mod = remainder
floor_divide = binary("floor_divide", numbers=True)
neg = unary(
    "neg", lambda g: -g, lambda xp: lambda x: x.copy() if x.dtype.kind == "b" else xp.negative(x)
)
negative = neg

# ------------------------------------------------------------------------- larger, smaller, between
maximum = binary(
    "maximum", lambda g, F, x, y: g * F.tie_share(x, y), lambda g, F, x, y: g * F.tie_share(y, x)
)
minimum = binary(
    "minimum", lambda g, F, x, y: g * F.tie_share(y, x), lambda g, F, x, y: g * F.tie_share(x, y)
)
fmax, fmin = (  # the vjps read y as well, because the search for kinks needs both operands
    binary(
        name,
        lambda g, F, x, y, out: g * F.cast(x == out, g.dtype),
        lambda g, F, x, y, out: g * F.cast(x != out, g.dtype),
    )
    for name in ("fmax", "fmin")
)


@op(inputs=("x", "y"))
def tie_share(xp: ModuleType, x: Array, y: Array) -> Array:
    """The share of x in a gradient: 1 where x > y, 0 where x < y, ½ where they are equal (observed
    rule 86).
    """
    array = x if hasattr(x, "dtype") else y
    return ((x > y) + 0.5 * (x == y)).astype(array.dtype)


@op(x=lambda g, F, x, min, max: g * F.inside_bounds(x, min, max))
def clip_(xp: ModuleType, x: Array, min: Any, max: Any) -> Array:
    """x clamped to min and max; the gradient at a bound is 1."""
    # CuPy's clip does not accept a missing bound for bfloat16.
    clipped = x if min is None else xp.maximum(x, min)
    clipped = clipped if max is None else xp.minimum(clipped, max)
    return clipped.astype(x.dtype, copy=clipped is x)


def clip(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x clamped to bounds, which are numbers, Tensors of one element or None; a float bound
    converts integers to the default floating dtype.
    """
    low, high = _bound(min, x), _bound(max, x)
    in_order = low is None or high is None or low <= high
    text = "clip(): max should be greater than or equal to min"
    require(in_order, f"{text}. But received min = {low}, max = {high}")
    if isinstance(low, float) or isinstance(high, float):
        x = as_floating(x)
    return clip_(x, low, high)


def is_cut(number: Any, x: Tensor) -> TypeGuard[np.floating[Any]]:
    """Whether Paddle truncates a number to an integer because `x` has integers: a NumPy float that
    is not a Python float.
    """
    is_numpys = isinstance(number, np.floating) and not isinstance(number, float)
    return is_numpys and x.array.dtype.kind in "iu"


def _bound(bound: Any, x: Tensor) -> Any:
    """A bound of `clip` as a Python number."""
    if is_cut(bound, x):
        return int(bound)
    if not hasattr(bound, "dtype"):
        return bound
    text = f"clip(): a bound must have 1 element, but has the shape {list(bound.shape)}"
    require(bound.size == 1, f"{text}. Use maximum and minimum for several")
    return bound.item()


@op()
def inside_bounds(xp: ModuleType, x: Array, low: Any, high: Any) -> Array:
    """1 where low ≤ x ≤ high, otherwise 0."""
    above = True if low is None else x >= low
    below = True if high is None else x <= high
    return (xp.ones(x.shape, dtype=bool) & above & below).astype(x.dtype)


# ----------------------------------------------------------------- powers, exponentials, logarithms
square = unary("square", lambda g, x: g * 2 * x.conjugate())
sqrt = unary("sqrt", lambda g, out: g * 0.5 / out.conjugate(), floating=True)
rsqrt = unary(
    "rsqrt",
    lambda g, out: g * -0.5 * (out * out * out).conjugate(),
    lambda xp: lambda x: 1 / xp.sqrt(x),
    floating=True,
)
reciprocal = unary(
    "reciprocal",
    lambda g, out: -g * (out * out).conjugate(),
    lambda xp: lambda x: 1 / x,
    floating=True,
)


def _exp(xp: ModuleType) -> Any:
    """float32 is computed in float64: NumPy's own is off by one unit at 1, and the documents print
    the right one.
    """
    return lambda x: (
        xp.exp(x, dtype="float64").astype(x.dtype) if x.dtype == "float32" else xp.exp(x)
    )


exp = unary("exp", Derivative(lambda out: out), _exp, floating=True)
expm1 = unary("expm1", lambda g, out: g * (out + 1).conjugate(), floating=True)
log = unary("log", lambda g, x: g / x.conjugate(), floating=True)
log2 = unary("log2", lambda g, x: g / (x * math.log(2)).conjugate(), floating=True)
log10 = unary("log10", lambda g, x: g / (x * math.log(10)).conjugate(), floating=True)
log1p = unary("log1p", lambda g, x: g / (1 + x).conjugate(), floating=True)


def _pow_x(g: Any, F: Any, x: Any, y: Any) -> Any:
    """``y · x**(y − 1)``; for y = 0 it is 0 even if x is 0."""
    if isinstance(y, (int, float, complex)):
        return g * 0 if y == 0 else g * (y * F.pow(x, y - 1)).conjugate()
    return g * (y * F.pow(x, F.where(y == 0, y * 0 + 1, y - 1))).conjugate()


def _pow_y(g: Any, F: Any, x: Any, out: Any) -> Any:
    """``x**y · log x``, and 0 where x is 0."""
    if isinstance(x, (int, float)):
        return g * 0 if x == 0 else g * (out * math.log(x)).conjugate()
    return g * (out * F.log(F.where(x == 0, x * 0 + 1, x))).conjugate()


def _power(xp: ModuleType) -> Any:
    def forward(x: Any, y: Any) -> Any:
        """Powers; for integers with a negative exponent, the integer part, which NumPy refuses to
        compute.
        """
        are_integers = all(getattr(v, "dtype", xp.asarray(v).dtype).kind in "iub" for v in (x, y))
        if not are_integers or not xp.any(xp.asarray(y) < 0):
            return xp.power(x, y)
        return xp.trunc(xp.power(xp.asarray(x, "float64"), y)).astype(
            (x if hasattr(x, "dtype") else y).dtype
        )

    return forward


power = binary("pow", _pow_x, _pow_y, _power, numbers=True)


def pow(x: Tensor, y: Any) -> Tensor:
    """x to the power y, a number or Tensor (otherwise a TypeError); for an integer Tensor, a number
    is truncated to its integer part.
    """
    if isinstance(y, (int, float)) and isinstance(x, Tensor) and x.dtype.rank < 2:
        y = int(y)
    text = f"pow(): y must be scalar or Tensor, but received: {type(y).__name__}"
    require(isinstance(y, (int, float, Tensor)), text, error=TypeError)
    return power(x, y)


# --------------------------------------------------------------------- trigonometric and hyperbolic
sin = unary("sin", lambda g, F, x: g * F.cos(x).conjugate(), floating=True)
cos = unary("cos", lambda g, F, x: -g * F.sin(x).conjugate(), floating=True)
tan = unary("tan", lambda g, out: g * (1 + out * out).conjugate(), floating=True)
asin = unary(
    "asin", lambda g, F, x: g * F.rsqrt(1 - x * x).conjugate(), lambda xp: xp.arcsin, floating=True
)
acos = unary(
    "acos", lambda g, F, x: -g * F.rsqrt(1 - x * x).conjugate(), lambda xp: xp.arccos, floating=True
)
atan = unary("atan", lambda g, x: g / (1 + x * x).conjugate(), lambda xp: xp.arctan, floating=True)
sinh = unary("sinh", lambda g, F, x: g * F.cosh(x).conjugate(), floating=True)
cosh = unary("cosh", lambda g, F, x: g * F.sinh(x).conjugate(), floating=True)
tanh = unary("tanh", Derivative(lambda out: 1.0 - out * out), floating=True)
asinh = unary(
    "asinh",
    lambda g, F, x: g * F.rsqrt(x * x + 1).conjugate(),
    lambda xp: xp.arcsinh,
    floating=True,
)
acosh = unary(
    "acosh",
    lambda g, F, x: g * F.rsqrt(x * x - 1).conjugate(),
    lambda xp: xp.arccosh,
    floating=True,
)
atanh = unary(
    "atanh", lambda g, x: g / (1 - x * x).conjugate(), lambda xp: xp.arctanh, floating=True
)
atan2 = binary(
    "atan2",
    lambda g, x, y: g * y / (x * x + y * y),
    lambda g, x, y: -g * x / (x * x + y * y),
    forward=lambda xp: xp.arctan2,
)


# ------------------------------------------------------------------ sigmoids and the error function
def _sigmoid(xp: ModuleType) -> Any:
    def forward(x: Array) -> Array:
        """1 / (1 + exp(−x)) without overflow for real x: exp is only taken of −|x|."""
        if x.dtype.kind == "c":
            return 1 / (1 + xp.exp(-x))
        small = xp.exp(-xp.abs(x))
        return xp.where(x >= 0, 1 / (1 + small), small / (1 + small))

    return forward


def from_math(function: Callable[[float], float], name: str) -> Any:
    """A forward that NumPy lacks: Python's `function` is called for each element. CuPy has SciPy's,
    of that `name`.
    """

    def bind(xp: ModuleType) -> Any:
        if xp.__name__ != "numpy":
            return getattr(import_module(f"{xp.__name__}x.scipy.special"), name)
        vectorised = xp.frompyfunc(function, 1, 1)
        return lambda x: xp.asarray(vectorised(x)).astype(x.dtype)

    return bind


sigmoid = unary(
    "sigmoid", lambda g, out: g * (out * (1.0 - out)).conjugate(), _sigmoid, floating=True
)
erf = unary(
    "erf",
    lambda g, F, x: g * (TWO_OVER_ROOT_PI * F.exp(-x * x)),
    from_math(math.erf, "erf"),
    floating=True,
)
erfc = unary(
    "erfc",
    lambda g, F, x: g * (-TWO_OVER_ROOT_PI * F.exp(-x * x)),
    from_math(math.erfc, "erfc"),
    floating=True,
)

# --------------------------------------------------------------------------- signs and steps
abs = unary("abs", lambda g, F, x: g * F.sign(x))  # the subgradient at 0 is 0 (observed rule 86)


def _rounding(name: str) -> Any:
    """The forward of a rounding function: integers are returned unchanged, whatever the array
    module does with them.
    """
    return lambda xp: lambda x: x.copy() if x.dtype.kind in "iub" else getattr(xp, name)(x)


sign = unary("sign", lambda g: g * 0)
floor, ceil, trunc = (
    unary(name, lambda g: g * 0, _rounding(name)) for name in ("floor", "ceil", "trunc")
)


@op(x=lambda g: g * 0)
def round(xp: ModuleType, x: Array, decimals: int = 0) -> Array:
    """x rounded to `decimals`, halves to even."""
    return xp.round(x, decimals)


@op(x=lambda g, F, x: F.where(F.isfinite(x), g, 0))
def nan_to_num(
    xp: ModuleType,
    x: Array,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """x with NaN replaced by `nan`, ∞ by the largest finite number or `posinf`, and −∞ by the
    smallest or `neginf`.
    """
    return xp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


# --------------------------------------------------------------------------- compositions
def scale(
    x: Tensor,
    scale: Any = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
) -> Tensor:
    """``scale · x + bias``, or ``scale · (x + bias)``."""
    if x.dtype.rank < 2:  # an integer Tensor stays one, scaled by integers
        scale, bias = int(scale), int(bias)
    if isinstance(scale, Tensor) and scale.dtype is not x.dtype:
        scale = scale.astype(x.dtype)
    if not bias:
        return x * scale  # type: ignore[no-any-return]
    return x * scale + bias if bias_after_scale else (x + bias) * scale  # type: ignore[no-any-return]


def lerp(x: Tensor, y: Tensor, weight: Any) -> Tensor:
    """``x + weight · (y − x)``, of x and y of one dtype."""
    require(
        x.dtype is y.dtype, "lerp(): x and y must be of one dtype. Cast one with astype()", x, y
    )
    return x + (y - x) * weight  # type: ignore[no-any-return]


# ---------------------------------------------------------------- comparisons, logic and predicates
equal = binary("equal", numbers=True)
not_equal = binary("not_equal")
less_than = binary("less_than", forward=lambda xp: xp.less)
less_equal = binary("less_equal")
greater_than = binary("greater_than", forward=lambda xp: xp.greater)
greater_equal = binary("greater_equal")

logical_and, logical_or, logical_xor = map(binary, ("logical_and", "logical_or", "logical_xor"))
logical_not = unary("logical_not")


def check_one_dtype(x: Array, y: Array) -> None:
    """Raise ValueError if the dtypes of arrays differ, or one is a number (the key phrases are
    Paddle's).
    """
    first, second = (getattr(array, "dtype", type(array).__name__) for array in (x, y))
    text = f"The type of data we are trying to retrieve ({first}) does not match the type of data"
    require(first == second, f"{text} ({second}) of the other. Cast one with astype()")


def _binary_with_checks(
    name: str, *checks: Callable[[Array, Array], None], promote: bool = False
) -> Operation:
    """The array module's function of two arrays, after `checks`, which may raise ValueError."""

    def bind(xp: ModuleType) -> Function:
        def forward(x: Array, y: Array) -> Array:
            for check in checks:
                check(x, y)
            return getattr(xp, name)(x, y)

        return forward

    return binary(name, forward=bind, promote=promote)


bitwise_and, bitwise_or, bitwise_xor = (
    _binary_with_checks(name, check_one_dtype)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
)
bitwise_not = unary("bitwise_not", forward=lambda xp: xp.invert)

isnan, isinf, isfinite = map(unary, ("isnan", "isinf", "isfinite"))


def check_same_dtype(name: str, tensors: Sequence[Any]) -> None:
    """Raise ValueError if one is not a Tensor, or their dtypes differ (the key phrases are
    Paddle's).
    """
    for position, tensor in enumerate(tensors):
        check_supported(tensor)
        if not isinstance(tensor, Tensor):
            expected = f"{name}(): argument (position {position}) must be Tensor"
            raise invalid(wrong_type(expected, tensor))
        if tensor.dtype is not tensors[0].dtype:
            text = f"({tensors[0].dtype.name}) does not match the type of data"
            text = f"{text} ({tensor.dtype.name}) of argument (position {position})"
            advice = f"Cast one with astype(){named(list(tensors))}"
            raise invalid(f"{name}(): The type of data we are trying to retrieve {text}. {advice}")


@op(inputs=("x", "y"))
def isclose(
    xp: ModuleType,
    x: Array,
    y: Array,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """``|x − y| ≤ atol + rtol·|y|``, element by element, of one dtype."""
    check_one_dtype(x, y)
    return xp.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan)


@op(inputs=("x", "y"))
def allclose(
    xp: ModuleType,
    x: Array,
    y: Array,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Whether `isclose` holds for all elements of Tensors of one shape: a bool of shape []."""
    check_one_dtype(x, y)
    require(x.shape == y.shape, "the shapes differ")
    return xp.all(xp.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=equal_nan))


@op(inputs=("x", "y"))
def equal_all(xp: ModuleType, x: Array, y: Array) -> Array:
    """Whether shapes and all elements are equal: a bool of shape []."""
    if getattr(x, "shape", ()) != getattr(y, "shape", ()):
        return xp.zeros((), bool)
    check_one_dtype(x, y)
    return xp.all(x == y)


# ------------------------------------------------------------------------ of floating-point numbers


def _copysign(xp: ModuleType) -> Any:
    """NumPy turns integers into floats here."""
    return lambda x, y: xp.copysign(x, y).astype(
        (x if hasattr(x, "dtype") else y).dtype, copy=False
    )


copysign_ = binary(
    "copysign",
    lambda g, F, x, out: g * F.sign(x) * F.sign(out),
    lambda g: g * 0,
    _copysign,
    numbers=True,
)


def copysign(x: Tensor, y: Any) -> Tensor:
    """The absolute value of x with the sign of y, a Tensor or a number."""
    return copysign_(x, cut_number(x, y))


hypot_ = binary(
    "hypot", lambda g, x, out: g * x / out, lambda g, y, out: g * y / out, floating=True
)
heaviside = binary(
    "heaviside",
    lambda g: g * 0,
    lambda g, F, x: F.where(x == 0, g, 0),
    lambda xp: (
        lambda x, y: xp.heaviside(x, y).astype(x.dtype, copy=False)
    ),  # NumPy turns integers into floats
)
logaddexp = binary(
    "logaddexp",
    lambda g, F, x, out: g * F.exp(x - out),
    lambda g, F, y, out: g * F.exp(y - out),
    floating=True,
)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """√(x² + y²), without overflow; a TypeError if one is not a Tensor."""
    fits = isinstance(x, Tensor) and isinstance(y, Tensor)
    text = f"x and y must be tensor type, but got {type(x)} and {type(y)}"
    require(fits, text, error=TypeError)
    return hypot_(x, y)


frac = composed("frac", lambda x: x - trunc(x))


def positive(x: Tensor) -> Tensor:
    """x itself; a TypeError for bools."""
    text = "The `+` operator, on a bool tensor is not supported"
    require(x.dtype.name != "bool", text, error=TypeError)
    return x


def floating(x: Tensor) -> Tensor:
    """Integers and bools as float32; other numbers as they are."""
    return cast(x, "float32") if x.dtype.rank < 2 else x


deg2rad = composed("deg2rad", lambda x: floating(x) * (math.pi / 180.0))
rad2deg = composed("rad2deg", lambda x: floating(x) * (180.0 / math.pi))
stanh = composed("stanh", lambda x, scale_a=0.67, scale_b=1.7159: tanh(x * scale_a) * scale_b)


def sinc(x: Tensor) -> Tensor:
    """sin(πx) / (πx), and 1 at 0. A TypeError for integers."""
    require(not x.dtype.rank < 2, "sinc(): x must be of floating-point numbers", x, error=TypeError)
    zero = x == 0
    scaled = where_(zero, 1.0, x * math.pi)
    return where_(zero, 1.0, sin(scaled) / scaled)


# --------------------------------------------------------------------------- integers and bits
def _check_integers(x: Array, y: Array) -> None:
    require(x.dtype.kind in "iu" and y.dtype.kind in "iu", "the Tensors must be of integers", x, y)


left_shift, right_shift = (
    _binary_with_checks(name, _check_integers, check_one_dtype)
    for name in ("left_shift", "right_shift")
)
bitwise_left_shift = composed(
    "bitwise_left_shift", lambda x, y, is_arithmetic=True, out=None: left_shift(x, y)
)


@op(inputs=("x", "y"))
def logical_right_shift(xp: ModuleType, x: Array, y: Array) -> Array:
    """The bits of x shifted right, with zeros shifted in, also for negative numbers."""
    unsigned = xp.dtype(f"u{x.dtype.name.removeprefix('u')}")
    return xp.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


bitwise_right_shift = composed(
    "bitwise_right_shift",
    lambda x, y, is_arithmetic=True, out=None: (
        right_shift if is_arithmetic else logical_right_shift
    )(x, y),
)
bitwise_invert = composed("bitwise_invert", lambda x, out=None: ~x)


# ----------------------------------------------------------------------- signs and kinds of numbers
signbit = unary("signbit")
isposinf = composed("isposinf", lambda x: logical_and(isinf(x), x > 0))
isneginf = composed("isneginf", lambda x: logical_and(isinf(x), x < 0))
less = composed("less", lambda x, y: less_than(x, y))
