"""Calls of the elementwise functions and operators, of logic and of activations: name to arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from described import T
from draws import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    POSITIVE,
    REAL,
    SPECIAL,
    USUAL,
    WITHIN,
    Strategy,
    binary,
    call,
    one,
    operands,
    tensor,
    tensors,
    unary,
)  # fmt: skip
from hypothesis import strategies as st

SMOOTH = (*FLOATS, *FLOATS, *COMPLEX, "int64", "float16", "bool")
WHOLE = ("int64", "int32", "uint8", "bool")

CALLS: dict[str, Strategy[Any]] = {
    **{
        name: unary(SMOOTH, SPECIAL)
        for name in "exp expm1 sin cos sinh cosh tanh asinh atan sigmoid square abs sign neg".split()
    },
    **{name: unary(REAL, SPECIAL) for name in "erf ceil floor trunc".split()},
    **{name: unary(SMOOTH, POSITIVE) for name in "sqrt rsqrt reciprocal log log2 log10 log1p".split()},
    **{name: unary(SMOOTH, WITHIN) for name in "tan asin acos atanh".split()},
    "acosh": unary(SMOOTH, [1 + v for v in POSITIVE]),
    "round": call(tensors((*FLOATS, "float16", "int64"), values=[v + 0.125 for v in USUAL]), decimals=one(0, 1, 2, -1)),
    **{name: binary() for name in "add subtract multiply".split()},
    "divide": binary(right=POSITIVE),
    "remainder": binary(REAL, right=POSITIVE), "mod": binary(REAL, right=POSITIVE),
    "floor_divide": binary(REAL, right=POSITIVE),
    **{name: binary(REAL, SPECIAL, SPECIAL) for name in "maximum minimum fmax fmin".split()},
    "pow": binary(REAL, POSITIVE),
    "pow_": call(tensors(FLOATS, values=POSITIVE), one(2, 0.5, -1.5, tensor("float64", ()))),
    "atan2": binary(REAL, POSITIVE),
    "nan_to_num": call(tensors((*FLOATS, "int64"), values=SPECIAL), nan=one(0.5, -1.0), posinf=one(9.0, None), neginf=one(-9.0)),
    "lerp": st.one_of(
        call(tensor("float64", (2, 3)), tensor("float64", (3,)), one(0.5, 2, tensor("float64", (2, 3)))),
        call(tensor("float32", (3,)), tensor("float64", (3,)), 0.5),
        call(tensor("int64", (3,)), tensor("int64", (3,)), 0.5),
    ),
    "clip": call(
        tensors(REAL, values=SPECIAL), min=one(0, -0.75, -1.0, None, T(np.array(0.5), "float64"), 3.0),
        max=one(1, 0.75, 1.5, None, T(np.array([1.0]), "float64")),
    ),
    "scale": call(
        tensors((*FLOATS, "int64", "float16")), scale=one(2.0, 3, T(np.array(2.0), "float64")), bias=one(0.5, 1),
        bias_after_scale=st.booleans(),
    ),
    **{
        name: binary((*REAL, "bool"), SPECIAL, SPECIAL)
        for name in "equal not_equal less_than less_equal greater_than greater_equal".split()
    },
    **{name: binary() for name in "logical_and logical_or logical_xor".split()},
    "logical_not": unary(),
    **{name: binary(WHOLE) for name in "bitwise_and bitwise_or bitwise_xor".split()},
    "bitwise_not": unary((*INTS, "bool")),
    **{name: unary((*NUMBERS, "uint8"), SPECIAL) for name in "isnan isinf isfinite".split()},
    **{
        name: call(tensor(d, (3,), SPECIAL), tensor(e, (3,), SPECIAL), rtol=one(0.1, 0.0), atol=one(0.25, 0.0),
                   equal_nan=st.booleans())
        for name in ("isclose", "allclose") for d, e in [("float64", "float64")]
    },
    "equal_all": binary(FLOATS),
}  # fmt: skip

MATRIX_PAIRS = st.one_of(
    call(
        tensor("float64", (2, 3)), one(tensor("float64", (3, 2)), tensor("float32", (3,)), tensor("float64", (2,)), 2.0)
    ),
    call(tensor("float32", (3,)), one(tensor("float32", (3, 2)), tensor("float64", (3,)), [1.0])),
)
SQUARE_PAIRS = call(tensor("float64", (3, 3)), one(tensor("float64", (3, 3)), np.ones((3, 3)), 2.0))

OPERATORS: dict[str, Strategy[Any]] = {
    **{f"__{name}__": MATRIX_PAIRS for name in ("matmul",)}, "__rmatmul__": SQUARE_PAIRS,
    **{f"__{name}__": operands() for name in "add sub mul radd rsub rmul".split()},
    **{f"__{name}__": operands(right=POSITIVE) for name in "truediv rtruediv div rdiv".split()},
    **{f"__{name}__": operands(REAL, POSITIVE) for name in ("floordiv", "mod", "rmod", "rfloordiv")},
    **{f"__{name}__": call(tensors(REAL, values=POSITIVE), one(2, 3.0, 0.5, tensors(REAL, ((), (3,), (1,))))) for name in ("pow", "rpow")},
    **{f"__{name}__": operands((*REAL, "bool")) for name in "eq ne lt le gt ge".split()},
    **{f"__{name}__": st.one_of(binary(WHOLE), call(tensors(WHOLE), one(1, True, 3))) for name in "and or xor".split()},
    **{f"__{name}__": call(tensors(WHOLE), one(1, True, 3)) for name in "rand ror rxor".split()},
    **{f"__{name}__": call(tensors(INTS), one(1, 2, 0)) for name in "lshift rshift rlshift rrshift".split()},
    "__invert__": call(tensors((*INTS, "bool"))),
    **{f"__{name}__": call(tensors(SMOOTH)) for name in ("neg", "pos")},
    "__abs__": call(tensors(SMOOTH)),
}  # fmt: skip

ACTIVATIONS: dict[str, Strategy[Any]] = {
    **{
        name: unary((*FLOATS, *FLOATS, "float16", "int64"), SPECIAL)
        for name in "relu relu6 silu swish mish softsign tanhshrink log_sigmoid logsigmoid hardswish sigmoid tanh selu".split()
    },
    "gelu": call(tensors(FLOATS), approximate=one(True, False, "tanh", "none", "other")),
    "leaky_relu": call(tensors(FLOATS), negative_slope=one(0.2, 0.0, 1)),
    "elu": call(tensors(FLOATS), alpha=one(1.5, 0.5, 1)),
    "celu": call(tensors(FLOATS), alpha=one(1.5, 0.5)),
    "hardtanh": call(tensors(FLOATS), min=one(-0.5, -1), max=one(0.5, 1)),
    "hardsigmoid": call(tensors(FLOATS, values=[v * 2 for v in USUAL]), slope=one(0.25), offset=one(0.25)),
    "softplus": call(tensors(FLOATS), beta=one(2.0, 0.5, 1), threshold=one(1.0, 20)),
    "glu": call(tensors(FLOATS, ((2, 4), (4,), (2, 2, 2), (3,))), axis=one(0, -1, 1)),
    "prelu": st.one_of(
        call(tensor("float64", (2, 3)), tensor("float64", (1,))), call(tensor("float64", (2, 3)), tensor("float64", (3,))),
        call(tensor("float32", (2, 3, 2)), tensor("float32", (3,))), call(tensor("float64", (2, 3)), tensor("float64", (2,))),
    ),
    **{
        name: call(tensors((*FLOATS, "int64"), values=SPECIAL[:50]), axis=one(0, -1, 1, 3), dtype=one("float64", "float32"))
        for name in ("softmax", "log_softmax")
    },
}  # fmt: skip
