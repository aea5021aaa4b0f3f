"""Special functions: gamma, Bessel, the inverse of the error function.

Each is computed from its series with the array module's arithmetic, to a few units in the last
place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pylayer.ops.arguments import require
from pylayer.ops.elementwise import clip, erf, floating, from_math
from pylayer.ops.indexing import where_
from pylayer.tape.op import composed, op, unary
from pylayer.tape.vjp import Function
from pylayer.tensor.array import Array
from pylayer.tensor.dtype import float64
from pylayer.tensor.tensor import Tensor

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The Bernoulli numbers B₂, B₄ … B₁₆: for arguments above `_FAR`, the omitted terms of Stirling's
series are below 1e-17.
"""
_FAR = 16.0
_LEAST = -1000.0
_LAST_FACTORIAL = 170
"""The largest number whose factorial, a factor of a derivative, is within float64."""


def _wide(function: Function, *rest: Any) -> Callable[[ModuleType], Function]:
    """Make a forward that calls a function of float64 arrays, and keeps the dtype of its input."""
    return lambda xp: lambda x: function(xp, x.astype("float64"), *rest).astype(x.dtype)


# --------------------------------------------------------------------------- gamma
def _polygamma(xp: ModuleType, x: Array, n: int) -> Array:
    """ψ⁽ⁿ⁾ by its recurrence up to `_FAR`, then Stirling's series (Abramowitz and Stegun, 6.3.18
    and 6.4.11).

    For n = 0, numbers that are not positive use reflection (6.3.7); for other n they use the
    recurrence, down to `_LEAST`.
    """
    sign = (-1.0) ** (n + 1)
    if n > _LAST_FACTORIAL:
        return xp.where(x > 0, sign * math.inf, math.nan)
    reflected = x <= 0
    pole = reflected & (x == xp.floor(x))
    z = xp.where(reflected, 1 - x, x) if n == 0 else xp.where(pole | (x < _LEAST), math.nan, x)
    total = xp.zeros_like(x)
    while bool((near := z < _FAR).any().item()):
        total = total + xp.where(
            near, sign * math.factorial(n) / xp.where(near, z, 1.0) ** (n + 1), 0.0
        )
        z = xp.where(near, z + 1, z)
    if n:
        series = math.factorial(n - 1) / z**n + math.factorial(n) / (2 * z ** (n + 1))
        for k, b in enumerate(_BERNOULLI, 1):
            series = series + b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / z ** (
                2 * k + n
            )
        return total + sign * series
    psi = total + xp.log(z) - 0.5 / z
    for k, b in enumerate(_BERNOULLI, 1):
        psi = psi - b / (2 * k * z ** (2 * k))
    mirrored = psi - math.pi / xp.tan(math.pi * xp.where(reflected & ~pole, x, 0.5))
    return xp.where(pole, math.nan, xp.where(reflected, mirrored, psi))


@op(floating=True, x=lambda g, F, x, n: g * F.polygamma(x, n + 1))
def polygamma(xp: ModuleType, x: Array, n: int) -> Array:
    """The `n`-th derivative of `digamma`; NaN at poles and below −1000. A TypeError if `n` is not
    an int.
    """
    require(
        isinstance(n, int),
        f"The input of n must be int type, but received: {type(n)}",
        error=TypeError,
    )
    require(n >= 0, f"The input of n must be greater than or equal to 0. But received n = {n}")
    return _wide(_polygamma, n)(xp)(x)


def _lgamma_of_one(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # from 2.6e305 on, and at poles
        return math.inf


_lgamma = from_math(_lgamma_of_one, "gammaln")
lgamma = unary("lgamma", lambda g, F, x: g * F.polygamma(x, 0), _lgamma, floating=True)
digamma = composed("digamma", lambda x: where_(x == 0, -1 / x, polygamma(x, 0)))
gammaln = lgamma


_SMALLEST = 1e-300
_RELATIVE = 2.0**-52
"""One unit in the last place: a factor this close to 1 no longer changes a result.
"""
_MOST_STEPS = 10_000
"""The most steps of the series and of the fraction. If y is about a, about 8.6 √a terms matter; an
element that needs more steps (a above 1.3e6) is NaN.
"""


def _gamma_ratio(xp: ModuleType, a: Array, y: Array) -> Array:
    """y^a e^(−y) / Γ(a + 1), the factor of the series and of the fraction."""
    return xp.exp(a * xp.log(y) - y - _lgamma(xp)(a + 1))


def _gamma_series(xp: ModuleType, a: Array, y: Array) -> Array:
    """Σ yᵏ / ((a + 1) … (a + k)), for y < a + 1: each term is smaller than the one before."""
    term = total = xp.ones_like(a)
    open_ = xp.ones(a.shape, bool)
    for k in range(1, _MOST_STEPS):
        term = xp.where(open_, term * (y / (a + k)), 0.0)
        total = total + term
        open_ = open_ & (term > _RELATIVE * total)
        if not open_.any().item():
            break
    return xp.where(open_, math.nan, total)


def _gamma_fraction(xp: ModuleType, a: Array, y: Array) -> Array:
    """The continued fraction as a product, for y > a + 1 (Lentz, 1976)."""
    even = y + 1 - a
    c, d = xp.full_like(a, 1 / _SMALLEST), 1 / even
    product = d
    open_ = xp.ones(a.shape, bool)
    for k in range(1, _MOST_STEPS):
        factor = k * (a - k)
        even = even + 2
        d, c = even + factor * d, even + factor / c
        d = 1 / xp.where(d == 0, _SMALLEST, d)
        c = xp.where(c == 0, _SMALLEST, c)
        open_ = open_ & (factor != 0)  # there the fraction ends
        step = xp.where(open_, c * d, 1.0)
        product = product * step
        open_ = open_ & (xp.abs(step - 1) > _RELATIVE)
        if not open_.any().item():
            break
    return xp.where(open_, math.nan, product)


def _gammaincc(xp: ModuleType, a: Array, y: Array) -> Array:
    """Γ(a, y) / Γ(a): by the series (Abramowitz and Stegun, 6.5.29) up to y = a + 1, then the
    fraction (6.5.31).

    A converged element is final: the rounding of others does not change it.
    """
    inside = (a > 0) & (y > 0) & xp.isfinite(a) & xp.isfinite(y)
    near = inside & (y < a + 1)
    far = inside & ~near
    b, z = xp.where(near, a, 1.0), xp.where(near, y, 0.5)
    series = 1.0 - _gamma_ratio(xp, b, z) * _gamma_series(xp, b, z)
    b, z = xp.where(far, a, 1.0), xp.where(far, y, 2.5)
    fraction = _gamma_ratio(xp, b, z) * b * _gamma_fraction(xp, b, z)
    outside = xp.where(
        xp.isnan(a) | xp.isnan(y), math.nan, xp.where((y == 0) & (a > 0) | xp.isinf(a), 1.0, 0.0)
    )
    return xp.where(near, series, xp.where(far, fraction, outside))


def _gammaincc_vjp(g: Any, F: Any, x: Any, y: Any) -> Any:
    at_one = F.cast((x - 1) * (x - 1) + y == 0, y.dtype)  # where y^(x − 1) is 1
    x = x + 0 * at_one  # makes x a Tensor if y is one
    return -g * F.exp((x - 1) * F.log(y + at_one) - y - F.lgamma(x))


@op(floating=True, y=_gammaincc_vjp)
def gammaincc(xp: ModuleType, x: Array, y: Array) -> Array:
    """Γ(x, y) / Γ(x), the regularised upper incomplete gamma function; `x` has no gradient, as in
    Paddle.
    """
    x, y = xp.broadcast_arrays(x, y)
    if xp.any((x < 0) | (y < 0)).item():
        raise ValueError("The input arguments x and y must be greater than or equal to 0")
    return _gammaincc(xp, x.astype("float64"), y.astype("float64")).astype(xp.result_type(x, y))


gammainc = composed("gammainc", lambda x, y: 1 - gammaincc(x, y))


# --------------------------------------------------------------------------- Bessel functions
_LARGE = 30.0
"""The argument from which the asymptotic series is used: there its 30th term is below 1e-17, and
the power series needs 80 terms.
"""


def _bessel(xp: ModuleType, x: Array, order: int, scaled: bool = True) -> Array:
    """I₀ or I₁, times exp(−|x|) if `scaled`: the power series, or the asymptotic one (A. and S.,
    9.6.10, 9.7.1).
    """
    size = xp.abs(x)
    large = size > _LARGE
    near, far = xp.where(large, 1.0, size), xp.where(large, size, _LARGE)
    quarter = near * near / 4
    term = xp.ones_like(x) if order == 0 else near / 2
    total = term
    for k in range(1, 80):
        term = term * quarter / (k * (k + order))
        total = total + term
    far_term, series = xp.ones_like(x), xp.ones_like(x)
    for k in range(1, 30):
        far_term = far_term * -(4 * order * order - (2 * k - 1) ** 2) / (8 * k * far)
        series = series + far_term
    result = xp.where(large, series / xp.sqrt(2 * math.pi * far), total * xp.exp(-near))
    result = xp.sign(x) * result if order else result
    return result if scaled else result * xp.exp(size)


i0 = unary("i0", lambda g, F, x: g * F.i1(x), _wide(_bessel, 0, False), floating=True)
# The slope at ±0 is that on the side of its sign, as in Paddle.
i0e = unary(
    "i0e",
    lambda g, F, x, out: g * (F.i1e(x) - F.copysign(out, x)),
    _wide(_bessel, 0),
    floating=True,
)
i1 = unary(
    "i1",
    lambda g, F, x: g * (F.i0(x) - F.i1e_over(x) * F.exp(F.abs(x))),
    _wide(_bessel, 1, False),
    floating=True,
)


def _i1e_vjp(g: Any, F: Any, x: Any) -> Any:
    """The derivative in double precision, because the terms of the second derivative cancel."""
    wide = F.cast(x, float64)
    return g * F.cast(F.i0e(wide) - F.sign(wide) * F.i1e(wide) - F.i1e_over(wide), x.dtype)


i1e = unary("i1e", _i1e_vjp, _wide(_bessel, 1), floating=True)


def _i1e_over(xp: ModuleType, x: Array) -> Array:
    """exp(−|x|) · I₁ / x, and 1/2 at 0."""
    zero = x == 0
    return xp.where(zero, 0.5, _bessel(xp, x, 1) / xp.where(zero, 1.0, x))


def _i1e_over_vjp(g: Any, F: Any, x: Any) -> Any:
    """exp(−|x|) · (I₀ ∓ I₁ − 2 I₁ / x) / x, in double precision, and 0 at 0, where the limits are
    ∓1/2.
    """
    zero, wide = x == 0, F.cast(x, float64)
    ratio = F.i1e_over(wide)
    slope = F.where(
        zero, 0, (F.i0e(wide) - F.abs(wide) * ratio - 2 * ratio) / F.where(zero, 1, wide)
    )
    return g * F.cast(slope, x.dtype)


i1e_over = unary("i1e_over", _i1e_over_vjp, _wide(_i1e_over), floating=True)


# ---------------------------------------------------------------- the inverse of the error function
_WINITZKI = 8 / (3 * math.pi) * (math.pi - 3) / (4 - math.pi)


def _erfinv(xp: ModuleType, x: Array) -> Array:
    """The inverse error function by Winitzki's approximation and Halley's steps, each of which
    triples the number of digits: 2, 6, 18.
    """
    inside = xp.where(xp.abs(x) < 1, x, 0.0)
    logarithm = xp.log1p(-inside * inside)
    middle = 2 / (math.pi * _WINITZKI) + logarithm / 2
    y = xp.sign(inside) * xp.sqrt(xp.sqrt(middle * middle - logarithm / _WINITZKI) - middle)
    kernel = erf.op.kernels[type(x)]  # type: ignore[attr-defined]
    for _ in range(3):
        step = (kernel(y) - inside) / (2 / math.sqrt(math.pi) * xp.exp(-y * y))
        y = y - step / (1 + y * step)
    edge = xp.where(xp.abs(x) == 1, xp.sign(x) * math.inf, math.nan)
    return xp.where(xp.abs(x) < 1, y, edge)


erfinv = unary(
    "erfinv",
    lambda g, F, out: g * (math.sqrt(math.pi) / 2) * F.exp(out * out),
    _wide(_erfinv),
    floating=True,
)


logit_of = unary("logit", lambda g, x: g / (x * (1 - x)), lambda xp: lambda x: xp.log(x / (1 - x)))


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 − x)), with x first clamped to `eps` and 1 − `eps`; without `eps`, NaN outside [0,
    1].
    """
    x = clip(floating(x), eps, 1 - eps) if eps else floating(x)
    return logit_of(x)
