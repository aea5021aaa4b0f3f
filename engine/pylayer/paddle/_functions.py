"""The functions of `paddle`, which are those of `paddle.tensor`, too."""

from __future__ import annotations

FUNCTIONS = {
    "ops.arithmetic": (
        "angle bitwise_invert bitwise_left_shift bitwise_right_shift copysign deg2rad floor_mod frac frexp gcd "
        "heaviside hypot isneginf isposinf isreal lcm ldexp less logaddexp negative nextafter polar positive "
        "rad2deg sgn signbit sinc stanh"
    ),
    "ops.complexes": "as_complex as_real conj imag real",
    "ops.conversions": "rand_like randn_like",
    "ops.counting": "bincount histogram histogram_bin_edges isin unique_consecutive",
    "ops.creation": (
        "arange empty empty_like eye full full_like is_tensor linspace logspace meshgrid numel ones ones_like "
        "rank shape to_tensor tril_indices triu_indices zeros zeros_like"
    ),
    "ops.describing": "is_complex is_empty is_floating_point is_integer",
    "ops.diagonal": "as_strided diag diag_embed diagonal trace",
    "ops.distances": "cdist cross dist pdist renorm tensordot vander",
    "ops.elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh ceil clip cos cosh divide erf exp expm1 floor "
        "floor_divide fmax fmin lerp log log10 log1p log2 maximum minimum mod multiply nan_to_num neg pow "
        "reciprocal remainder round rsqrt scale sigmoid sign sin sinh sqrt square subtract tan tanh trunc"
    ),
    "ops.gathering": "gather gather_nd index_sample index_select masked_select repeat_interleave take take_along_axis",
    "ops.indexing": "nonzero where",
    "ops.inplace": "assign increment",
    "ops.joining": "add_n chunk concat hstack split stack tensor_split unbind unstack vstack",
    "ops.linalg": "addmm bmm dot einsum inner kron matmul mm mv outer t",
    "ops.logic": (
        "allclose bitwise_and bitwise_not bitwise_or bitwise_xor equal equal_all greater_equal greater_than "
        "isclose isfinite isinf isnan less_equal less_than logical_and logical_not logical_or logical_xor "
        "not_equal"
    ),
    "ops.norms": "norm",
    "ops.overwriting": (
        "diagflat diagonal_scatter masked_scatter scatter_add scatter_reduce select_scatter slice_scatter"
    ),
    "ops.random": (
        "Generator bernoulli get_rng_state multinomial normal rand randint randint_like randn randperm seed "
        "set_rng_state standard_normal uniform"
    ),
    "ops.rearranging": (
        "argwhere atleast_1d atleast_2d atleast_3d block_diag cartesian_prod cat column_stack combinations "
        "concatenate crop dsplit dstack hsplit msort multiplex narrow permute ravel reduce_as reverse rot90 "
        "row_stack slice strided_slice swapdims take_along_dim unfold view_as view_as_complex view_as_real vsplit"
    ),
    "ops.reduction": "all amax amin any count_nonzero cumprod cumsum logsumexp max mean min prod std sum var",
    "ops.running": "cummax cummin cumulative_trapezoid diff logcumsumexp trapezoid",
    "ops.scattering": "index_add index_fill index_put masked_fill put_along_axis scatter scatter_nd scatter_nd_add",
    "ops.shape": (
        "broadcast_shape broadcast_tensors broadcast_to cast clone expand expand_as flatten flip moveaxis reshape "
        "roll squeeze swapaxes tile transpose tril triu unflatten unsqueeze view"
    ),
    "ops.solving": "inverse",
    "ops.sorting": "argmax argmin argsort bucketize kthvalue median searchsorted sort topk unique",
    "ops.special": "digamma erfinv gammainc gammaincc gammaln i0 i0e i1 i1e lgamma logit multigammaln polygamma",
    "ops.statistics": "mode nanmean nanmedian nanquantile nansum quantile",
}
"""By module of the engine, the names."""
