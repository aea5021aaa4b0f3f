"""Paddle's public names over the bundled engine. Re-exports only: what a name means is decided where it is defined.

The engine's version is `__version__`; it is not a Paddle release.
"""

from __future__ import annotations

from pylayer import __version__ as __version__
from pylayer.dtype import DType, bool_
from pylayer.ops.complexes import complex_
from pylayer.paddle import autograd as autograd
from pylayer.paddle import linalg as linalg
from pylayer.paddle import nn as nn
from pylayer.paddle import optimizer as optimizer
from pylayer.paddle._names import exported, missing
from pylayer.tensor import Tensor as Tensor

_EXPORTS = {
    "array": "get_device set_device",
    "autograd": "enable_grad grad is_grad_enabled no_grad set_grad_enabled",
    "device": "CPUPlace CUDAPlace is_compiled_with_cuda",
    "dtype": (
        "bfloat16 complex128 complex64 float16 float32 float64 get_default_dtype int16 int32 int64 int8 "
        "set_default_dtype uint8"
    ),
    "nn.initializer": "ParamAttr create_parameter",
    "tensor": "Size",
    "ops.complexes": "as_complex as_real conj imag real",
    "ops.creation": (
        "arange assign empty empty_like eye full full_like is_tensor linspace logspace meshgrid numel ones "
        "ones_like rank shape to_tensor tril_indices triu_indices zeros zeros_like"
    ),
    "ops.diagonal": "as_strided diag diag_embed diagonal",
    "ops.elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh ceil clip cos cosh divide erf exp expm1 floor "
        "floor_divide fmax fmin lerp log log10 log1p log2 maximum minimum mod multiply neg pow reciprocal "
        "remainder round rsqrt scale sigmoid sign sin sinh sqrt square subtract tan tanh trunc"
    ),
    "ops.gathering": (
        "gather gather_nd index_add index_fill index_put index_sample index_select masked_fill masked_select "
        "put_along_axis repeat_interleave scatter scatter_nd scatter_nd_add take take_along_axis"
    ),
    "ops.indexing": "nonzero where",
    "ops.joining": "chunk concat hstack split stack tensor_split unbind unstack vstack",
    "ops.linalg": "addmm bmm dot einsum inner matmul mm mv outer t",
    "ops.logic": (
        "allclose bitwise_and bitwise_not bitwise_or bitwise_xor equal equal_all greater_equal greater_than "
        "isclose isfinite isinf isnan less_equal less_than logical_and logical_not logical_or logical_xor "
        "not_equal"
    ),
    "ops.random": (
        "bernoulli multinomial normal rand randint randint_like randn randperm seed standard_normal uniform"
    ),
    "ops.reduction": ("all amax amin any count_nonzero cumprod cumsum logsumexp max mean min norm prod std sum var"),
    "ops.shape": (
        "broadcast_shape broadcast_tensors broadcast_to cast clone expand expand_as flatten flip moveaxis reshape "
        "roll squeeze swapaxes tile transpose tril triu unflatten unsqueeze view"
    ),
    "ops.sorting": "argmax argmin argsort bucketize kthvalue searchsorted sort topk unique",
}
globals().update(exported(_EXPORTS))

dtype = DType
bool = bool_
complex = complex_

_IN_PLACE = (
    "abs_ acos_ asin_ atan_ bernoulli_ cast_ cos_ cosh_ cumsum_ divide_ erf_ expm1_ floor_divide_ index_add_ "
    "index_fill_ index_put_ log10_ log1p_ log2_ log_ masked_fill_ multiply_ neg_ pow_ remainder_ scatter_ sin_ sinh_ "
    "square_ subtract_ tan_ tanh_ tril_ triu_ trunc_"
)
"""The in-place methods of Tensor that Paddle has as functions as well."""
globals().update({name: getattr(Tensor, name) for name in _IN_PLACE.split()})

__getattr__ = missing(__name__)
