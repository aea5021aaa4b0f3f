"""Paddle's public names over the bundled engine. Re-exports only: what a name means is decided where it is defined.

The engine's version is `__version__`; it is not a Paddle release.
"""

from __future__ import annotations

import math as _math

from pylayer import __version__ as __version__
from pylayer.compatibility import no as _no
from pylayer.dtype import DType as _DType
from pylayer.dtype import as_dtype as _as_dtype
from pylayer.dtype import bool_ as _bool
from pylayer.ops.complexes import complex_ as _complex
from pylayer.ops.methods import functions_in_place as _functions_in_place
from pylayer.ops.spellings import respelled as _respelled
from pylayer.paddle import amp as amp
from pylayer.paddle import autograd as autograd
from pylayer.paddle import base as base
from pylayer.paddle import device as device
from pylayer.paddle import distributed as distributed
from pylayer.paddle import fft as fft
from pylayer.paddle import framework as framework
from pylayer.paddle import geometric as geometric
from pylayer.paddle import incubate as incubate
from pylayer.paddle import jit as jit
from pylayer.paddle import linalg as linalg
from pylayer.paddle import nn as nn
from pylayer.paddle import optimizer as optimizer
from pylayer.paddle import pir as pir
from pylayer.paddle import pir_utils as pir_utils
from pylayer.paddle import regularizer as regularizer
from pylayer.paddle import special as special
from pylayer.paddle import static as static
from pylayer.paddle import tensor as tensor
from pylayer.paddle import utils as utils
from pylayer.paddle import vision as vision
from pylayer.paddle._functions import FUNCTIONS as _FUNCTIONS
from pylayer.paddle._names import aliases as _aliases
from pylayer.paddle._names import exported, missing
from pylayer.paddle.base import core as core
from pylayer.tensor import Tensor as Tensor

_EXPORTS = {
    **_FUNCTIONS,
    "amp": "is_autocast_enabled",
    "array": "get_device set_device",
    "autograd": "grad",
    "compatibility": "get_flags set_flags",
    "device": "CPUPlace CUDAPlace is_compiled_with_cuda",
    "dtype": (
        "bfloat16 complex128 complex64 float16 float32 float64 get_default_dtype int16 int32 int64 int8 "
        "set_default_dtype uint8"
    ),
    "grad_mode": "enable_grad is_grad_enabled no_grad set_grad_enabled",
    "limits": "finfo iinfo",
    "nn.initializer": "ParamAttr create_parameter",
    "saving": "load save",
    "size": "Size",
    "static.recorder": "disable_static enable_static in_dynamic_mode",
}
globals().update(exported(_EXPORTS))

dtype = _DType
bool = _bool
half, float, double = _as_dtype("float16"), _as_dtype("float32"), _as_dtype("float64")
short, int, long = _as_dtype("int16"), _as_dtype("int32"), _as_dtype("int64")
cfloat, cdouble = _as_dtype("complex64"), _as_dtype("complex128")
is_compiled_with_xpu = is_compiled_with_rocm = _no
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
complex = _complex

globals().update({name: _respelled(name, form) for name, form in _functions_in_place().items()})
globals().update(_aliases(globals()))

__getattr__ = missing(__name__)
