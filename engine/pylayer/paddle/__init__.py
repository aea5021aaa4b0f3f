"""Paddle's public names over the bundled engine. Re-exports only: what a name means is decided where it is defined.

The engine's version is `__version__`; it is not a Paddle release.
"""
# ruff: noqa: A001, A004, F401

from __future__ import annotations

from pylayer import __version__ as __version__
from pylayer.array import get_device as get_device
from pylayer.array import set_device as set_device
from pylayer.autograd import (
    enable_grad as enable_grad,
    grad as grad,
    is_grad_enabled as is_grad_enabled,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from pylayer.dtype import (
    DType as dtype,
    bfloat16 as bfloat16,
    bool_ as bool,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    get_default_dtype as get_default_dtype,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    set_default_dtype as set_default_dtype,
    uint8 as uint8,
)
# ops: begin
from pylayer.ops.complexes import (
    as_complex as as_complex,
    as_real as as_real,
    complex_ as complex,
    conj as conj,
    imag as imag,
    real as real,
)
from pylayer.ops.creation import (
    arange as arange,
    assign as assign,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    full as full,
    full_like as full_like,
    is_tensor as is_tensor,
    linspace as linspace,
    logspace as logspace,
    meshgrid as meshgrid,
    numel as numel,
    ones as ones,
    ones_like as ones_like,
    rank as rank,
    shape as shape,
    to_tensor as to_tensor,
    tril_indices as tril_indices,
    triu_indices as triu_indices,
    zeros as zeros,
    zeros_like as zeros_like,
)
from pylayer.ops.diagonal import (
    as_strided as as_strided,
    diag as diag,
    diag_embed as diag_embed,
    diagonal as diagonal,
)
from pylayer.ops.elementwise import (
    add as add,
    divide as divide,
    exp as exp,
    multiply as multiply,
    subtract as subtract,
    tanh as tanh,
)
from pylayer.ops.gathering import (
    gather as gather,
    gather_nd as gather_nd,
    index_add as index_add,
    index_fill as index_fill,
    index_put as index_put,
    index_sample as index_sample,
    index_select as index_select,
    masked_fill as masked_fill,
    masked_select as masked_select,
    put_along_axis as put_along_axis,
    repeat_interleave as repeat_interleave,
    scatter as scatter,
    scatter_nd as scatter_nd,
    scatter_nd_add as scatter_nd_add,
    take as take,
    take_along_axis as take_along_axis,
)
from pylayer.ops.indexing import (
    nonzero as nonzero,
    where as where,
    where_ as where_,
)
from pylayer.ops.joining import (
    chunk as chunk,
    concat as concat,
    hstack as hstack,
    split as split,
    stack as stack,
    tensor_split as tensor_split,
    unbind as unbind,
    unstack as unstack,
    vstack as vstack,
)
from pylayer.ops.random import (
    bernoulli as bernoulli,
    multinomial as multinomial,
    normal as normal,
    rand as rand,
    randint as randint,
    randint_like as randint_like,
    randn as randn,
    randperm as randperm,
    seed as seed,
    standard_normal as standard_normal,
    uniform as uniform,
)
from pylayer.ops.reduction import (
    broadcast_to as broadcast_to,
    reshape as reshape,
    sum as sum,
)
from pylayer.ops.shape import (
    broadcast_shape as broadcast_shape,
    broadcast_tensors as broadcast_tensors,
    cast as cast,
    clone as clone,
    expand as expand,
    expand_as as expand_as,
    flatten as flatten,
    flip as flip,
    moveaxis as moveaxis,
    roll as roll,
    squeeze as squeeze,
    swapaxes as swapaxes,
    tile as tile,
    transpose as transpose,
    tril as tril,
    triu as triu,
    unflatten as unflatten,
    unsqueeze as unsqueeze,
    view as view,
)
from pylayer.ops.sorting import (
    argsort as argsort,
    bucketize as bucketize,
    kthvalue as kthvalue,
    searchsorted as searchsorted,
    sort as sort,
    topk as topk,
    unique as unique,
)
# ops: end
from pylayer.tensor import Size as Size
from pylayer.tensor import Tensor as Tensor

from pylayer.paddle import autograd as autograd
from pylayer.paddle import linalg as linalg
from pylayer.paddle._missing import missing

__getattr__ = missing(__name__)
