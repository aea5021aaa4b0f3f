"""Where the engine is known to differ from Paddle 3.3.1 on odd inputs, and in functions that few layers use."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from described import Arguments, T, args
from outcome import Outcome
from rows import (
    FLAGS,
    GRADIENT,
    LABELS,
    RESERVED,
    UNINITIALISED,
    Crash,
    Known,
    f64,
    first,
    i64,
    leaf,
    mask,
    ndim,
    result,
)

When = Callable[[Arguments, Outcome, Outcome], bool]


def any_tensor(question: Callable[[T], bool]) -> When:
    """Calls with a Tensor of which something holds."""
    return lambda arguments, ours, real: any(question(t) for t in arguments.tensors())


def is_empty(x: T) -> bool:
    return x.values.size == 0


def is_scalar(x: T) -> bool:
    return x.values.ndim == 0


def of(*dtypes: str) -> When:
    """Calls with a Tensor of one of these dtypes."""
    return any_tensor(lambda x: x.dtype in dtypes)


COMPLEX = of("complex64", "complex128")
LISTED = of("float16", "bfloat16", "complex64", "complex128")
HALF = of("float16", "bfloat16")
EMPTY = any_tensor(is_empty)
SCALAR = any_tensor(is_scalar)
TRANSPOSED = any_tensor(lambda x: x.transposed)
NOT_FINITE = any_tensor(lambda x: x.values.dtype.kind in "fc" and not np.isfinite(x.values).all())
UNLIKE = any_tensor(lambda x: True)
BOTH = r"error (?!nothing)\w+\|(?!nothing)\w+"
OURS = r"error (?!nothing)\w+\|nothing"
THEIRS = r"error nothing\|\w+"
META = r"(out|input \d)(\[\d\])* .*"
NONE = r"|".join((FLAGS, GRADIENT))
POSITIONS = "An integer result has no gradient; Paddle marks it as if it had."
E0 = T(np.zeros((0, 3)), "float64")
F1 = f64(1.0, 2.0)
M22 = f64(1.0, 2.0, 3.0, 5.0, shape=(2, 2))
Z22 = T(np.array([[1 + 2j, 2], [3, 5 - 1j]]), "complex128")
CROOKED = np.array(
    [
        [-5.81 + 6.77j, 5.29 - 5.44j, -1 + 5.29j],
        [6.03 - 1.37j, 6.4 + 6.4j, -1.37 + 6.03j],
        [5.29 - 1j, -5.44 + 5.29j, 6.77 - 5.81j],
    ]
)
TURNED = T(np.arange(6.0).reshape(3, 2), "float64", transposed=True)

ODD: tuple[Known, ...] = (
    # ------------------------------------------------------------------- what is no Tensor
    Known("angle bitwise_not isposinf isneginf isreal signbit sinc sinc_ stanh logaddexp is_empty swiglu digamma digamma_ frac deg2rad rad2deg sgn equal_all eq lgamma lgamma_ frac_ gammainc gammaincc copysign_ heaviside hypot_ nanmedian", BOTH, "Both refuse what is not a Tensor; the wrapper that notices it has another error.", args([1.0, 2.0])),
    Known("dsplit hsplit vsplit", BOTH, "Both refuse to split into 0 parts.", args(f64(1.0, 2.0, shape=(2, 1)), 0), path="vsplit"),
    Known("to_tensor", THEIRS, "asarray and as_tensor have no stop_gradient in Paddle, and from_numpy takes arrays only; in the engine all are to_tensor.", args(1), path="from_numpy"),
    # ------------------------------------------------------------------- without elements
    Known(
        "inverse inv index_sample nanmedian median quantile nanquantile index_fill_ increment gumbel_softmax expand_as fold fft ifft rfft ihfft fft2 ifft2 rfft2 ihfft2 fftn ifftn rfftn"
        " ihfftn lerp lerp_ pinv mode scatter scatter_add scatter_add_ scatter_reduce scatter_nd_add slice_scatter max_pool1d max_pool2d max_pool3d"
        " adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d group_norm batch_norm split dist unfold sequence_mask copy_",
        OURS, "Nothing to compute with: the engine refuses, or does not broadcast it; Paddle returns a Tensor without elements.", args(E0, 0.25), EMPTY, path="quantile",
    ),
    Known(
        "narrow Layer LayerList Linear LayerNorm masked_scatter_ scatter_nd one_hot conv1d conv2d conv3d pixel_shuffle pixel_unshuffle cov view_as",
        THEIRS, "Paddle's shape checks do not provide for an axis of size 0.", args(E0, E0), EMPTY, path="Tensor.view_as",
    ),
    Known("masked_scatter_", BOTH, "Both refuse.", args(T(np.zeros((0, 3)), "float64", "leaf"), T(np.zeros((0, 3), bool), "bool"), f64(shape=(0,))), EMPTY),
    Known("histogram bincount index_sample unique cdist nll_loss conv3d fill_diagonal_tensor fill_diagonal_tensor_ index_fill_ clear_gradient clear_grad grad diff", r".*", "Without elements Paddle returns its input, a default dtype, or a Tensor without a gradient.", args(E0), EMPTY, path="histogram"),
    # ------------------------------------------------------------------- 0-d
    Known(
        "cross index_add index_add_ searchsorted tril tril_ triu triu_ det fold strided_slice scatter_nd matrix_norm dice_loss nll_loss group_norm triangular_solve",
        BOTH, "Both refuse a Tensor of no axes; the engine where it asks for a size.", args(f64(1.0, shape=()), f64(1.0, shape=())), SCALAR, path="searchsorted",
    ),
    Known("masked_scatter masked_scatter_ matrix_exp label_smooth normalize gumbel_softmax", f"{OURS}|out (shape|repr)", "A Tensor of no axes has no axis to work along; Paddle reads it as of one element.", args(f64(1.0, shape=())), SCALAR, path="nn.functional.normalize"),
    Known(
        "binary_cross_entropy sigmoid_focal_loss bincount gaussian_nll_loss smooth_l1_loss grad isclose allclose batch_norm cosine_similarity soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss instance_norm poisson_nll_loss BCEWithLogitsLoss",
        THEIRS, "Paddle does not broadcast a Tensor of no axes here; the engine does.", args(f64(1.0, shape=()), f64(1.0, 2.0)), SCALAR, path="isclose",
    ),
    # ------------------------------------------------------------------- half precision, complex
    Known("frac frac_ cumulative_trapezoid trapezoid sgn matrix_exp scatter_reduce cosine_embedding_loss dice_loss gaussian_nll_loss", THEIRS, "Paddle's wrapper lists dtypes, and half precision or complex numbers are not among them.", args(f64(1.0, 2.0, dtype="float16")), LISTED, path="frac"),
    Known("normal remainder mod hypot hypot_ remainder_ mod_ Linear rand_like randn_like softplus logsigmoid log_sigmoid", OURS, "The function is not defined for complex numbers; Paddle orders them somehow, or has a result of another meaning.", args(T(np.array([1 + 1j]), "complex128")), COMPLEX, path="rand_like"),
    Known("sigmoid_focal_loss binary_cross_entropy_with_logits clip clip_", BOTH, "Both refuse complex numbers.", args(i64(1), min=3.0, max=T(np.array([1 + 1j]), "complex128")), COMPLEX, path="clip"),
    Known("pinv", rf"out value|{GRADIENT}", "Paddle's pseudo-inverse of a complex matrix lacks a conjugate: A A+ A is not A.", args(T(np.array([[1 + 2j, 2], [3, 5 - 1j], [1j, 1]]), "complex128")), COMPLEX, path="linalg.pinv"),
    Known("matrix_norm", r"out (dtype|value|repr)|gradient.*", "A norm is real; Paddle gives a complex number that is not one.", args(Z22), COMPLEX, path="linalg.matrix_norm"),
    Known("eigh eigvalsh", r".* value", "The engine takes the Hermitian part, Paddle reads a triangle and leaves the imaginary part of the diagonal out.", args(Z22), COMPLEX, path="linalg.eigvalsh"),
    Known("hardswish", r".* value", "There is no order of complex numbers for it to cut off at.", args(T(np.array([-3 - 3j]), "complex128")), COMPLEX, path="nn.functional.hardswish"),
    Known("twice", r"out\[\d\] value", "The gradient of a conjugate: Paddle drops its part in the second derivative.", args(T(np.array([1 + 2j]), "complex128", "leaf")), COMPLEX, path="grad twice"),
    Known("numpy __array__ tolist item", "out.*", "Paddle gives the bits of bfloat16 as integers; the engine its values.", args(f64(1.0, 2.0, dtype="bfloat16")), of("bfloat16"), path="Tensor.tolist"),
    # ------------------------------------------------------------------- transposed
    Known("cast_ logical_and_ logical_or_ logical_xor_ greater_than_ greater_equal_ less_than_ less_equal_ equal_ not_equal_ cumsum_ addmm_ set_", f"{THEIRS}|.* value", "In place Paddle does not change the dtype, the shape or the layout of a view that is not contiguous.", args(TURNED), TRANSPOSED, path="cumsum_"),
    Known("copy_", ".*", "Neither library's graph sees copy_.", args(T(np.ones((2, 3)), "float64", "result", True), leaf(2.75, shape=())), TRANSPOSED),
    # ------------------------------------------------------------------- NaN and infinities
    Known("max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d cdist pairwise_distance", r".* value", "Paddle's largest number passes over NaN; the engine's is NaN.", args(f64(math.nan, 2.0, 1.0, 0.0, shape=(1, 1, 4)), 2), NOT_FINITE, path="nn.functional.max_pool1d"),
    Known("softmax softmax_ log_softmax", ".* value", "Of one NaN alone Paddle's softmax is 1.", args(f64(math.nan, shape=())), NOT_FINITE, path="nn.functional.softmax"),
    Known("sinc sinc_", "(out|input 0) value", "Paddle takes NaN for 0.", args(f64(math.nan)), NOT_FINITE),
    Known("heaviside", "out value", "Paddle takes NaN for a negative number.", args(f64(math.nan), f64(1.0)), NOT_FINITE),
    Known("logcumsumexp", ".* value", "Paddle leaves NaN out, and gives the smallest number.", args(f64(math.nan, -3.0)), NOT_FINITE),
    Known("mode nanmedian", ".*", "NaN is equal to nothing: Paddle's places and counts of it are its own.", args(f64(math.nan, math.nan)), NOT_FINITE, path="mode"),
    Known("triangular_solve", ".* value", "Paddle's solver multiplies NaN in the triangle that it is not to read.", args(f64(math.nan, 6.0, -2.0, 6.0, shape=(2, 2)), f64(1.0, 2.0, shape=(2, 1)), upper=False), NOT_FINITE, path="linalg.triangular_solve"),
    Known("gammainc gammaincc clip histogram solve bernoulli binary_cross_entropy triplet_margin_with_distance_loss triplet_margin_loss", THEIRS, "Paddle refuses NaN.", args(f64(math.nan)), NOT_FINITE, path="histogram"),
    Known("leaky_relu quantile nanquantile nanmedian scaled_dot_product_attention smooth_l1_loss copysign", GRADIENT, "What the derivative is at a NaN or an infinity.", args(leaf(math.nan), 0.25), NOT_FINITE, path="quantile"),
    Known("softshrink", ".* value", "Paddle adds both branches, times 0 and 1: NaN at infinities.", args(f64(math.inf)), NOT_FINITE, path="nn.functional.softshrink"),
    # ------------------------------------------------------------------- values
    Known("gammainc gammaincc gammainc_ gammaincc_", rf"(out|input 0) .*|{GRADIENT}|backward error", "Paddle does not broadcast the second argument: 0 or 1 beyond its elements.", args(f64(2.0, 3.0), f64(1.5, shape=()))),
    Known("logit logit_", GRADIENT, "Outside [0, 1] there is no logit, nor a derivative: NaN in Paddle.", args(leaf(1.5))),
    Known("__truediv__ __rtruediv__ __div__ __rdiv__ divide divide_", "out .*", "Paddle's quotient of two bools is a bool.", args(mask(True), mask(True)), of("bool"), path="Tensor.__truediv__"),
    # ------------------------------------------------------------------- gradients
    Known("cummax cummin mode", r"out\[1\] (stop_gradient|is_leaf|repr)", POSITIONS, args(leaf(1.0, 2.0)), path="cummax"),
    Known("median nanmedian", r"out\[1\] (stop_gradient|is_leaf|repr)|gradient.*", POSITIONS, args(leaf(3.07, shape=()), axis=-1, keepdim=True, mode="min"), path="nanmedian"),
    Known("send_uv send_ue_recv slice_scatter", rf"{GRADIENT}|backward error", "Paddle's one operand has a gradient only if the other has one.", args(f64(1.0, 2.0, shape=(2, 1)), leaf(1.0, 2.0, shape=(2, 1)), i64(0, 1), i64(1, 0), message_op="mul"), path="geometric.send_uv"),
    Known("sigmoid_focal_loss", GRADIENT, "Paddle's gradient of the logits is wrong if the labels need one too.", args(leaf(0.0, shape=()), leaf(1.0, shape=())), path="nn.functional.sigmoid_focal_loss"),
    Known("log_loss label_smooth dice_loss", NONE, LABELS, args(f64(0.5, shape=(1, 1), dtype="float32"), leaf(0.5, shape=(1, 1), dtype="float32")), path="nn.functional.log_loss"),
    Known("qr matrix_exp", rf"{NONE}|backward error", "Paddle's qr has no gradient in mode r, none of its own in mode complete, and matrix_exp none.", args(leaf(1.0, 2.0, 3.0, 5.0, shape=(2, 2)), mode="r"), path="linalg.qr"),
    Known("diff sinc_ broadcast_to expand view_as", "out (is|is_leaf)", "Which object is returned where nothing changes, or in place.", args(f64(1.0)), path="sinc_"),
    Known("prod", GRADIENT, "Paddle divides by an element that is 0: NaN.", args(leaf(-1.75, 1.25, 0.75, 0.5, 0.0, -2.5, 0.5, -2.25, 2.0, -0.25, -0.25, 3.0, shape=(2, 2, 3)), axis=-1, keepdim=True)),
    Known("sum", "out (dtype|repr)", "Of no elements Paddle's sum does not look at dtype.", args(i64(dtype="int32"), axis=0, dtype="float64")),
    Known("mode", GRADIENT, "Paddle's gradient of a 0-d Tensor is 1, whatever the cotangent.", args(leaf(2.0, shape=()))),
    Known("scatter_add scatter_add_", GRADIENT, UNINITIALISED, args(leaf(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), 0, i64(1, -2, 1, 1, shape=(2, 2)), leaf(1.0, 2.0, 3.0, 4.0, shape=(2, 2)))),
    Known("scatter_reduce", GRADIENT, "Values for one place that are equal: Paddle shares the gradient among other elements.", args(leaf(6.0, -5.0, 2.0, 1.0, shape=(2, 2)), 0, i64(0, 0, 1, 1, shape=(2, 2)), leaf(-5.0, 6.0, 2.0, -2.0, shape=(2, 2)), "amax")),
    Known("divide_", "backward error|gradient.*", "The quotient of a real Tensor in place by a complex one: the engine keeps it real.", args(f64(1.0), T(np.array(0.75 + 2.25j), "complex128", "leaf"))),
    # ------------------------------------------------------------------- arguments
    Known("nanmedian", OURS, "The engine's nanmedian is for floating-point numbers.", args(i64(3, 4))),
    Known("scatter_add scatter_add_ scatter_reduce cumulative_trapezoid trapezoid", OURS, "Paddle casts values of another dtype here, and repeats indices; the engine refuses.", args(f64(1.0, 2.0, dtype="float32"), f64(1.0, 2.0)), path="cumulative_trapezoid"),
    Known("pinv svd svdvals", OURS, "The engine refuses NaN and infinities.", args(f64(math.inf, 1.0, 2.0, 3.0, shape=(2, 2))), NOT_FINITE, path="linalg.pinv"),
    Known("avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d slice full_like hfft irfft hfft2 irfft2 hfftn irfftn select_scatter eigvalsh eigh negative", OURS, RESERVED, args(f64(1.0, 2.0, shape=(1, 1, 2)), 9), path="nn.functional.avg_pool1d"),
    Known(
        "isin pin_memory strided_slice fftshift ifftshift log_loss pixel_unshuffle softmax_with_cross_entropy equal_all narrow cross view histogram is_empty scatter_add scatter_add_ scatter_reduce put_along_axis put_along_axis_ fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn irfftn hfftn ihfftn mode dice_loss sinc sinc_",
        THEIRS, "The engine promotes dtypes, counts axes from the end, or passes over what does not matter, where Paddle refuses.", args(f64(1.0, 2.0)), path="fft.fftshift",
    ),
    Known("gammainc gammaincc segment_sum segment_mean segment_min segment_max dropout linspace sigmoid_focal_loss diagonal_scatter sort", THEIRS, "Paddle refuses another dtype, a Tensor of no axes or elements, or an axis from the end; the engine takes it.", args(f64(1.0, shape=()), axis=1), path="sort"),
    Known("scatter_ adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d index_put index_put_ scaled_dot_product_attention cummax cummin", OURS, "The engine refuses other dtypes, sizes of 0 and axes that are not there; Paddle takes what comes.", args(T(np.zeros((0, 2), "float32"), "float32"), i64(), T(np.zeros((0, 2)), "float64"), overwrite=False), path="scatter_"),
    Known("trapezoid cumulative_trapezoid solve softmax scaled_dot_product_attention", BOTH, "Both refuse.", args(f64(1.0, shape=()), f64(1.0, 2.0, shape=(2, 1)), left=False), path="linalg.solve"),
    Known("segment_min segment_max", ".* value", "Paddle's extreme passes over NaN.", args(f64(math.nan, -1.5), i64(0, 0)), NOT_FINITE, path="geometric.segment_max"),
    Known("linspace", ".* value", "The first and the last value are those given; Paddle computes them.", args(f64(math.nan, shape=(1,)), f64(1.0, shape=(1,)), 3), NOT_FINITE),
    Known("fill_diagonal_tensor fill_diagonal_tensor_", NONE, "Paddle gives what is written along the diagonal no gradient.", args(result(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), leaf(1.0, 2.0)), path="Tensor.fill_diagonal_tensor"),
    Known("batch_norm", r"input \d changed", "The engine counts that running statistics change.", args(f64(1.0, 2.0, shape=(2, 1)), f64(1.0), f64(1.0), training=True), path="nn.functional.batch_norm"),
    Known("bitwise_or bitwise_and bitwise_xor bitwise_or_ bitwise_and_ bitwise_xor_ matmul heaviside copysign hypot conv1d conv2d conv3d", rf"{OURS}|backward error|{GRADIENT}", "Without elements the engine checks dtypes and sizes all the same.", args(f64(shape=(0, 3), dtype="float32"), f64(*range(6), shape=(3, 2))), EMPTY, path="matmul"),
    Known("label_smooth instance_norm batch_norm swiglu unfold", THEIRS, "Paddle takes one dtype, and sizes that fit.", args(f64(1.0, 0.0, dtype="float32"), epsilon=0.25, prior_dist=f64(1.0, 2.0, shape=(1, 2))), path="nn.functional.label_smooth"),
    Known("fftfreq rfftfreq cumsum_ where_ cosine_embedding_loss", BOTH, "Both refuse.", args(0), path="fft.fftfreq"),
    Known("instance_norm", rf"{GRADIENT}|backward error", "Paddle's backward fails if the Tensor itself needs no gradient, and gives weight and bias one only if both need it.", args(f64(*range(6), shape=(2, 3)), bias=leaf(1.0, 2.0, 3.0)), lambda a, o, r: any(t.kind != "constant" for t in a.tensors()[1:]), path="nn.functional.instance_norm"),
    Known("group_norm", GRADIENT, "Paddle's gradient is wrong without a weight: not 0 for groups of one element.", args(leaf(-4.33, 5.66, -5.07, 2.7, shape=(1, 4)), 4), lambda a, o, r: a.kwargs.get("weight") is None, path="nn.functional.group_norm"),
    Known("norm", rf"out value|{GRADIENT}", "Over two axes Paddle's default order is 2, the largest singular value; documented is fro.", args(f64(-1.0, -0.75, -1.0, -0.5, -3.0, 2.5, shape=(2, 3)), axis=[0, 1]), lambda a, o, r: a.kwargs.get("p") is None, path="linalg.norm"),
    Known("softmax", THEIRS, "paddle.special.softmax is the one with PyTorch's words, which has no axis.", args(f64(1.0, 2.0), axis=0), lambda a, o, r: "compat" in r.message, path="special.softmax"),
    Known("cosine_embedding_loss", OURS, RESERVED, args(f64(1.0, 2.0, shape=(1, 2)), f64(1.0, 2.0, shape=(1, 2)), i64(1), margin=2, reduction="other"), path="nn.functional.cosine_embedding_loss"),
)  # fmt: skip


def mixed(arguments: Arguments) -> bool:
    return len({t.kind == "constant" for t in arguments.tensors()}) > 1


def no_elements(arguments: Arguments) -> bool:
    return any(map(is_empty, arguments.tensors()))


def no_axes(arguments: Arguments) -> bool:
    return isinstance(first(arguments), T) and ndim(first(arguments)) == 0


IDS = i64(0)
ODD_CRASHES: tuple[Crash, ...] = (
    Crash("fftn ifftn rfftn irfftn hfftn ihfftn vector_norm pad", "SIGSEGV or SIGFPE for a 0-d Tensor.", args(f64(1.0, shape=())), no_axes),
    Crash("addmm", "SIGSEGV in backward for a vector that needs no gradient.", args(f64(2.5, -1.0, dtype="float32"), leaf(*range(6), shape=(2, 3), dtype="float32"), f64(*range(6), shape=(3, 2), dtype="float32"), beta=2.0), lambda a: ndim(first(a)) == 1 and mixed(a)),
    Crash("fill_diagonal_", "SIGFPE for a Tensor of fewer than two axes.", args(f64(1.0, 2.0), 1.5), lambda a: ndim(first(a)) < 2),
    Crash("eig eigvals", "LAPACK ends the process, with status 0, for a matrix with a NaN.", args(f64(math.nan, -2.0, -3.0, 4.0, shape=(2, 2), dtype="float32")), lambda a: any(not np.isfinite(t.values).all() or is_empty(t) for t in a.tensors())),
    Crash("cummax cummin", "SIGSEGV in backward for a 0-d Tensor.", args(leaf(-1.5, shape=()), axis=-1), no_axes),
    Crash("cholesky_solve", "SIGSEGV in backward if one of the two needs no gradient.", args(leaf(1.0, 2.0, shape=(2, 1)), f64(2.0, 0.5, 0.5, 1.0, shape=(2, 2))), mixed),
    Crash("index_put index_put_", "SIGSEGV for a 0-d Tensor.", args(f64(1.0, shape=()), (i64(0, 0),), f64(1.0, shape=())), no_axes),
    Crash("segment_sum segment_mean segment_min segment_max cross send_uv embedding", "SIGSEGV or SIGFPE for Tensors without elements.", args(f64(shape=(0, 2)), i64()), no_elements),
    Crash("diagonal_scatter slice_scatter fill_diagonal_tensor fill_diagonal_tensor_", "SIGSEGV, or no end, for values of another dtype.", args(leaf(*range(9), shape=(3, 3)), f64(1.0, 2.0, 3.0, dtype="float32"), offset=0), lambda a: len({t.dtype for t in a.tensors()}) > 1),
    Crash("as_strided", "SIGSEGV in backward for complex numbers.", args(T(np.arange(6) + 1j, "complex128", "leaf"), [2, 2], [2, 1], offset=1), lambda a: any(t.dtype.startswith("complex") for t in a.tensors())),
    Crash("unique", "Heap corruption for an axis counted from the end.", args(f64(1.0, 2.0, 2.0, 1.0, 2.0, 0.0, shape=(2, 3)), return_inverse=True, return_counts=True, axis=-2), lambda a: (a.kwargs.get("axis") or 0) < 0),
    Crash("scatter_reduce", "No end in backward for positions counted from the end.", args(leaf(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), 1, i64(-1, -1, 0, 1, shape=(2, 2)), leaf(1.0, 2.0, 3.0, 4.0, shape=(2, 2)), "mean"), lambda a: bool((a.args[2].values < 0).any())),
)  # fmt: skip
