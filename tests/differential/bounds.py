"""How far values and gradients of drawn calls may lie from Paddle's: a bound for each family, with its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from described import Arguments

UNIT = {"float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}  # fmt: skip
"""The unit in the last place of 1, by dtype."""

SINGLE = UNIT["float32"]
COTANGENT = 3.0
"""The largest entry of the cotangents that `outcome.cotangent` makes."""


@dataclass(frozen=True)
class Compared:
    """Values of the release that a bound is for."""

    sizes: np.ndarray[Any, Any]
    """The magnitudes of the entries."""
    unit: float
    """The unit of the coarsest dtype among the result and the arguments."""
    arguments: Arguments
    is_gradient: bool

    @property
    def largest(self) -> float:
        """The largest finite magnitude, and for a gradient at least that of its cotangent."""
        finite = self.sizes[np.isfinite(self.sizes)]
        return max(float(finite.max(initial=0.0)), COTANGENT if self.is_gradient else 0.0)

    @property
    def terms(self) -> float:
        """n times the sum of the magnitudes that a reduction adds up, of products those of their factors' largest."""
        sizes = [np.abs(t.values).astype("float64") for t in self.arguments.tensors() if t.dtype != "bool"]
        sizes = [s[np.isfinite(s)] for s in sizes]
        count = max((s.size for s in sizes), default=1) or 1
        product = np.prod([max(1.0, float(s.max(initial=0.0))) for s in sizes])
        return count * count * float(product) * (COTANGENT if self.is_gradient else 1.0)

    @property
    def condition(self) -> float:
        """The largest condition number of the matrices among the arguments."""
        found = [1.0]
        for tensor in self.arguments.tensors():
            if tensor.values.ndim > 1 and tensor.values.size and np.isfinite(tensor.values).all():
                found.append(float(np.max(np.linalg.cond(tensor.values.astype("complex128")))))
        return max(found)

    @property
    def order(self) -> Any:
        """The order of a norm: the argument p, or the first number among the arguments."""
        numbers = [value for value in self.arguments.args if isinstance(value, (int, float))]
        return self.arguments.kwargs.get("p", numbers[0] if numbers else 2)


Bound = Callable[[Compared], Any]
"""The error that is allowed, a number or one for each entry."""


def entries(count: float) -> Bound:
    """So many units in the last place of each entry."""
    return lambda values: count * values.unit * values.sizes


def largest(count: float) -> Bound:
    """So many units in the last place of the largest entry."""
    return lambda values: count * values.unit * values.largest


def absolute(count: float) -> Bound:
    """So many units in the last place of the largest entry or of 1."""
    return lambda values: count * values.unit * max(values.largest, 1.0)


def terms(values: Compared) -> float:
    """The bound of a sum in any order, n · eps · Σ|terms| (Higham 2002, section 4.2)."""
    count = max((t.values.size for t in values.arguments.tensors()), default=1)
    return values.unit * max(values.terms, count * values.largest)


def single(count: float) -> Bound:
    """So many units of single precision, of the largest entry or of 1."""
    return lambda values: count * max(values.unit, SINGLE) * max(values.largest, 1.0)


def conditioned(power: int) -> Bound:
    """The bound of a backward stable factorisation: n · eps · κ to a power, of the largest entry."""

    def bound(values: Compared) -> float:
        count = max((t.values.size for t in values.arguments.tensors()), default=1)
        scale = max(values.largest, 1.0)
        return 8 * count * values.unit * scale * min(values.condition**power, 1 / values.unit)

    return bound


def p_norm(values: Compared) -> float:
    """The bound of a sum, and Paddle's epsilon; powers of another order than 1 and 2 are taken in single precision."""
    if values.order in (0, 1, 2, np.inf, -np.inf) or isinstance(values.order, str):
        return terms(values) + 1e-12 * max(values.largest, 1.0)
    return single(8)(values)


def single_if(question: Callable[[str], bool]) -> Bound:
    """Eight units of single precision if an argument is of such a dtype, else of each entry, or of the largest."""

    def bound(values: Compared) -> Any:
        if any(question(t.dtype) for t in values.arguments.tensors()):
            return single(8)(values)
        return (largest if values.is_gradient else entries)(8)(values)

    return bound


class Family(NamedTuple):
    """Names that share a bound: last parts of paths, and those with an underscore after them."""

    names: str
    values: Bound
    gradients: Bound
    source: str


ELEMENTWISE = Family(
    "", entries(8), largest(8),
    "A function of the C library or of Eigen is within 4 units of the exact value, so two libraries differ by 8 at most. A derivative"
    " is made of terms as large as 1 (1 - tanh(x)**2), times the cotangent.",
)  # fmt: skip
REDUCTIONS = Family(
    "sum mean nansum nanmean std var logsumexp logcumsumexp cumsum cumprod prod matmul mm"
    " bmm mv dot inner outer kron multi_dot vecdot addmm einsum tensordot cov corrcoef trapezoid"
    " cumulative_trapezoid linear add_n __matmul__ __rmatmul__ cross reduce_as segment_sum segment_mean"
    " send_u_recv send_ue_recv unfold fold group_norm instance_norm rms_norm"
    " cosine_similarity cosine_embedding_loss scaled_dot_product_attention softmax log_softmax"
    " gumbel_softmax mse_loss l1_loss smooth_l1_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits"
    " nll_loss cross_entropy softmax_with_cross_entropy dice_loss sigmoid_focal_loss margin_ranking_loss"
    " hinge_embedding_loss triplet_margin_with_distance_loss gaussian_nll_loss"
    " label_smooth square_error_cost log_loss conv1d conv2d conv3d conv1d_transpose conv2d_transpose conv3d_transpose"
    " quantile nanquantile histogram bincount Linear LayerNorm Softmax CrossEntropyLoss MSELoss"
    " BCEWithLogitsLoss Sequential ParameterList Layer LayerList SGD trace index_add index_put scatter_add"
    " scatter_reduce put_along_axis repeat_interleave",
    terms, terms,
    "Sums of n terms in any order differ by n · eps · Σ|terms| (Higham 2002, section 4.2), products by their factors.",
)  # fmt: skip

TRANSFORMS = Family(
    " ".join(f"{name}{end}" for name in "fft ifft rfft irfft hfft ihfft".split() for end in ("", "2", "n")),
    terms, terms,
    "A transform is a sum of n terms; a fast one is better (Higham 2002, theorem 24.2).",
)  # fmt: skip

FACTORISATIONS = Family(
    "inv inverse det slogdet solve triangular_solve cholesky cholesky_solve eigvalsh eigh eig"
    " eigvals svd svdvals pinv qr matrix_exp matrix_power",
    conditioned(1), conditioned(2),
    "A backward stable algorithm's result differs by n · eps · κ (Higham 2002, chapters 8 to 10), and the derivative of"
    " an inverse has κ twice.",
)  # fmt: skip

P_NORMS = Family(
    "norm vector_norm matrix_norm dist cdist normalize pairwise_distance triplet_margin_loss", p_norm, p_norm,
    "Paddle's p_norm kernels add 1e-12, and hold their order, and 1 over it, in single precision.",
)  # fmt: skip

SINGLE_PRECISION: tuple[Family, ...] = (
    Family("selu stanh", single(8), single(8), "Their constants are float attributes: 1.0507, 1.67326, 0.67, 1.7159."),
    Family("celu elu softshrink hardshrink leaky_relu", single(8), single(8),
           "alpha, threshold and slope are float attributes: what is not a float32 is rounded."),
    Family("hardsigmoid hardswish", single(8), single(8), "hardsigmoid's slope is 0.1666667, a float attribute."),
    Family("avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d",
           single(8), single(8), "The kernels divide by a float."),
    Family("layer_norm LayerNorm batch_norm", single(8), single(8), "epsilon and the momentum are float attributes."),
    Family("gumbel_softmax", single(8), single(8), "The temperature is a float attribute."),
    Family("exp sigmoid silu swish soft_margin_loss poisson_nll_loss Sigmoid Silu",
           single_if(lambda dtype: dtype.startswith("complex")), single_if(lambda dtype: dtype.startswith("complex")),
           "Paddle's complex exponential is computed in single precision."),
    Family("atan2", single_if(lambda dtype: dtype.startswith("int")), largest(8), "Of integers it is computed in float."),
)  # fmt: skip

OTHERS: tuple[Family, ...] = (
    Family("gelu GELU tanhshrink swiglu", absolute(8), absolute(8), "A difference of numbers as large as 1, or as x."),
    Family("mish log_sigmoid logsigmoid softplus", absolute(8), absolute(8), "log(1 + exp(x)), of which Paddle rounds the sum: a unit of 1."),
    Family("i0e i1e", entries(8), largest(16), "The derivative is a difference of two Bessel functions."),
    Family("lgamma gammaln", entries(16), largest(1024), "Paddle's digamma adds up to nine reciprocals and a series to 1e-13."),
    Family("arange linspace logspace", largest(8), largest(8), "start + k · step, rounded at the size of the largest."),
)  # fmt: skip

FAMILIES: tuple[Family, ...] = (REDUCTIONS, TRANSFORMS, FACTORISATIONS, P_NORMS, *SINGLE_PRECISION, *OTHERS)

BY_NAME: dict[str, Family] = {name: family for family in FAMILIES for name in family.names.split()}
"""The family of a name; what is in none is elementwise, or moves elements as they are."""


def family_of(path: str) -> Family:
    """The family whose bound holds for calls at a path."""
    name = path.replace(" ", ".").rpartition(".")[2]
    return BY_NAME.get(name) or BY_NAME.get(name.removesuffix("_")) or ELEMENTWISE


def are_close(path: str, arguments: Arguments, fact: str, ours: Any, real: Any, dtype: str) -> bool:
    """Whether values are within the bound of the family; of whole numbers and of what is not finite, the same."""
    if not isinstance(ours, (np.ndarray, np.generic)) or not isinstance(real, (np.ndarray, np.generic)):
        return ours is real
    if ours.shape != real.shape:
        return True  # which is a difference of its own
    if ours.dtype.kind not in "fc" and real.dtype.kind not in "fc":
        return np.array_equal(ours, real)
    wide = "complex128" if "c" in (ours.dtype.kind, real.dtype.kind) else "float64"
    ours, real = (np.atleast_1d(side).astype(wide) for side in (ours, real))
    finite = np.isfinite(ours) & np.isfinite(real)
    if not np.array_equal(ours[~finite], real[~finite], equal_nan=True):
        return False
    family, is_gradient = family_of(path), fact.startswith("gradient")
    casts = [value for value in arguments.kwargs.values() if isinstance(value, str)]
    units = [UNIT[name] for name in (*(t.dtype for t in arguments.tensors()), *casts) if name in UNIT]
    compared = Compared(np.abs(real), max([UNIT.get(dtype, SINGLE), *units]), arguments, is_gradient)
    with np.errstate(all="ignore"):
        allowed = np.broadcast_to((family.gradients if is_gradient else family.values)(compared), real.shape)
        return bool((np.abs(ours[finite] - real[finite]) <= allowed[finite]).all())
