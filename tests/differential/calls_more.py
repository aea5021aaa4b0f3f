"""Calls of special functions, statistics, shapes and positions that few layers use: name to arguments."""

from __future__ import annotations

from typing import Any

from calls_numbers import matched, spread
from calls_shape import index, lists, mask, matrix
from described import DTypeNamed
from draws import (
    COMPLEX,
    DISTINCT,
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
    ints,
    one,
    reduction,
    tensor,
    tensors,
    unary,
)  # fmt: skip
from hypothesis import strategies as st

F = FLOATS
REALS = (*FLOATS, *FLOATS, "float16", "int64")
SMOOTH = (*FLOATS, *FLOATS, *COMPLEX, "int64", "float16")
WHOLE = ("int64", "int32", "uint8")
ANY = (*FLOATS, *FLOATS, "int64", "bool", "complex64", "float16")
NAN = (*USUAL, float("nan"))
VECTORS = tensors(F, ((3,), (2,), (1,), (0,)))
PAIR = matched([(2, 3), (2, 3)], [(3,), (3,)], [(2, 3), (3,)], [(), ()], [(0,), (0,)], [(2, 3), (2,)])
JOINED = lists([(2, 3), (2, 3)], [(3,), (3,)], [(), ()], [(2, 3)], [(2, 2, 3), (2, 2, 3)], [(2,), (3,)])
POSITIONS = one(ints((2, 2), 2, least=0), ints((1, 2), 2, least=0), ints((2, 2), 2))
SECTIONS = one(2, 3, [1], [1, 3], (1,), 0)

ELEMENTWISE: dict[str, Strategy[Any]] = {
    **{name: unary(REALS, SPECIAL) for name in "deg2rad rad2deg frac i0 i0e i1 i1e isneginf isposinf signbit stanh sinc".split()},
    **{name: unary(SMOOTH, SPECIAL) for name in "angle isreal negative positive sgn".split()},
    **{name: unary(REALS, [*POSITIVE, -0.75, -1.25]) for name in "digamma lgamma gammaln".split()},
    "erfinv": unary(REALS, [*WITHIN, 1.0]), "logit": call(tensors(REALS, values=[0.0, 0.125, 0.5, 0.75, 1.0, 1.5]), eps=one(0.125, None)),
    "polygamma": call(tensors(F, values=POSITIVE), one(0, 1, 2, -1)),
    "bitwise_invert": unary((*INTS, "bool")), "is_empty": unary(),
    "increment": call(tensors((*F, "int64"), ((1,), (), (2,))), value=one(1.0, 2.5)),
    **{name: binary((*REAL, "bool"), SPECIAL, SPECIAL) for name in "less".split()},
    **{name: binary(REALS, SPECIAL, SPECIAL) for name in "copysign heaviside".split()},
    **{name: st.one_of(spread(matched([(2, 3), (2, 3)], [(3,), (3,)])), binary(REALS)) for name in "hypot logaddexp".split()},
    "floor_mod": binary(REAL, right=POSITIVE),
    **{name: binary(F, POSITIVE, POSITIVE) for name in "gammainc gammaincc".split()},
    **{name: st.one_of(binary(WHOLE), spread(matched([(3,), (3,)], [(2, 3), (2, 3)], dtypes=("int64", "int32"), values=(2.0, 3.0, 4.0)))) for name in "".split()},
    **{name: st.one_of(binary(WHOLE, right=(0.0, 1.0, 2.0)), spread(matched([(3,), (3,)], dtypes=("int64",), values=(1.0, 2.0)), is_arithmetic=st.booleans())) for name in "bitwise_left_shift bitwise_right_shift".split()},
    "polar": spread(PAIR), "isin": call(tensors((*F, "int64")), tensors((*F, "int64")), assume_unique=False, invert=st.booleans()),
}  # fmt: skip

REDUCTIONS: dict[str, Strategy[Any]] = {
    "nansum": reduction((*F, *F, "int64", "float16"), NAN), "nanmean": reduction((*F, *F, "float16"), NAN),
    "nanmedian": call(tensors((*F, "int64"), ((2, 3), (3,), (4,), ()), (*DISTINCT, float("nan"))), axis=one(None, 0, -1, 3), keepdim=st.booleans(), mode=one("avg", "min")),
    **{name: call(tensors(F, ((2, 3), (3,), ()), values), one(0.25, 0, 1.0, [0.25, 0.5], 1.5), axis=one(None, 0, -1, [0, 1], 3), keepdim=st.booleans(), interpolation=one("linear", "lower", "higher", "midpoint", "nearest", "other"))
       for name, values in (("quantile", DISTINCT), ("nanquantile", (*DISTINCT, float("nan"))))},
    "logcumsumexp": call(tensors((*F, "int64", "float16"), ((2, 3), (3,), (), (0, 3))), axis=one(None, 0, -1, 1, 3), dtype=one("float64")),
    **{name: call(tensors((*F, "int64", "int32"), ((2, 3), (3,), ())), axis=one(None, 0, -1, 1, 3), dtype=one("int64", "int32")) for name in ("cummax", "cummin")},
    "mode": call(tensors((*F, "int64"), ((2, 3), (3,), ()), (0, 1, 2)), axis=one(0, -1, 1, 3), keepdim=st.booleans()),
    "msort": call(tensors((*F, "int64"), ((2, 3), (3,), (2, 2, 3)))),
    "diff": call(tensors((*F, "int64", "bool"), ((2, 3), (3,), (0, 3))), n=one(1, 2, 0), axis=one(-1, 0, 1, 3), prepend=one(None, tensor("float64", (2, 1)))),
    "trapezoid": call(tensors(F, ((2, 3), (3,), (0,))), x=one(None, tensor("float64", (3,))), dx=one(None, 0.5), axis=one(-1, 0)),
    "cumulative_trapezoid": call(tensors(F, ((2, 3), (3,), (0,))), x=one(None, tensor("float64", (3,))), dx=one(None, 0.5), axis=one(-1, 0)),
    "bincount": call(one(ints((3,), 4, least=0), ints((0,), 2), ints((2,), 2), ints((2, 2), 2, least=0), ints((3,), 3, "int32", 0)), weights=one(None, tensor("float64", (3,), kinds=("constant",))), minlength=one(0, 5)),
    "histogram": call(tensors((*F, "int64"), ((2, 3), (3,), (0,), ()), kinds=("constant",)), bins=one(4, 1, 0), min=one(0, -1), max=one(0, 2), density=st.booleans()),
    "dist": spread(PAIR, p=one(2, 1, 0, 3.0, float("inf"), -float("inf"))),
    "cdist": spread(matched([(2, 3), (3, 3)], [(2, 2, 3), (2, 1, 3)], [(2, 3), (2, 2)], [(0, 3), (2, 3)], values=DISTINCT), p=one(2.0, 1.0, 0.0, 3.0, float("inf"))),
    "reduce_as": spread(matched([(2, 3), (3,)], [(2, 3), (2, 1)], [(2, 3), ()], [(2, 3), (2, 3)], [(3,), (2,)])),  # of more axes than x: Paddle reads beyond the shape
    "cov": call(tensors(F, ((2, 3), (3, 3), (3,)), DISTINCT), rowvar=st.booleans(), ddof=st.booleans(), fweights=one(None, index(1, 2, 1)), aweights=one(None, tensor("float64", (3,), POSITIVE))),
    "corrcoef": call(tensors(F, ((2, 3), (3, 3), (3,)), DISTINCT), rowvar=st.booleans()),
    "tensordot": st.one_of(spread(matched([(2, 3), (2, 3)], [(2, 3), (3, 2)], [(3,), (3,)], [(2, 2, 3), (2, 3)]), axes=one(2, 1, 0, [[1], [0]], [[0, 1], [0, 1]]))),
    "cross": spread(matched([(2, 3), (2, 3)], [(3,), (3,)], [(3, 2), (3, 2)], [(2, 2), (2, 2)], [(3, 3), (1, 3)], dtypes=(*F, "int64", "complex128")), axis=one(0, 1, -1, 9)),
}  # fmt: skip

SHAPES: dict[str, Strategy[Any]] = {
    **{name: call(tensors(ANY)) for name in "atleast_1d atleast_2d atleast_3d ravel argwhere".split()},
    **{name: call(JOINED) for name in "column_stack dstack row_stack".split()},
    "diagflat": call(tensors((*F, "int64"), ((3,), (2, 2), (), (0,))), offset=one(0, 1, -1)),
    "diagonal_scatter": call(matrix(3, 3), one(matrix(3), matrix(2)), offset=one(0, 1, -1), axis1=one(0, -1), axis2=one(1, 0)),
    "dsplit": call(tensors(F, ((2, 2, 4), (2, 3))), SECTIONS), "hsplit": call(tensors(F, ((2, 4), (4,), ())), SECTIONS), "vsplit": call(tensors(F, ((4, 2), (4,), (2, 2))), SECTIONS),
    "narrow": call(tensors(ANY, ((3, 3), (3,))), one(0, -1, 1, 2), one(0, 1, -1, 4), one(1, 2, 3, 0)),
    "reverse": call(tensors(ANY, ((3,), (2, 3), (2, 2, 3))), one([0], [0, 1], -1, 3)),
    "rot90": call(tensors(ANY, ((2, 3), (2, 2, 3), (3,))), k=one(1, 2, -1, 0, 5), axes=one([0, 1], [1, 0], [-1, 0], [0, 0], [0])),
    "select_scatter": call(matrix(2, 3), one(matrix(3), matrix(2)), one(0, 1, -1), one(0, 1, -1, 5)),
    "slice": call(tensors(ANY, ((3, 3), (2, 3))), one([0], [0, 1], [1], [-1], [2]), one([0, 1], [0], [-2], [1]), one([2, 3], [9], [-1], [1])),
    "slice_scatter": call(matrix(3, 3), one(matrix(2, 3), matrix(3, 2), matrix(1, 3)), one([0], [1], [-1]), one([0], [1]), one([2], [3]), one([1], [2])),
    "strided_slice": call(tensors(F, ((3, 3), (2, 3))), one([0], [1], [-1], [0, 1]), one([0], [2], [-1], [0, 0]), one([2], [3], [0], [-9], [2, 2]), one([1], [2], [-1], [1, 2])),
    **{name: call(tensors(F, ((3,), (2, 3), (2, 2, 3))), one(0, -1, 1), one(2, 1, 3, 5), one(1, 2, 0)) for name in ("unfold",)},
    "view_as": call(tensors(F, ((2, 3), (6,))), tensors(F, ((3, 2), (6,), (2, 2)))),
    "view_as_complex": call(tensors(F, ((3, 2), (2,), (2, 3), ()))), "view_as_real": call(tensors((*COMPLEX, "float64"))),
    "masked_scatter": call(matrix(2, 3), one(mask(2, 3), mask(3), mask(2, 2)), one(matrix(2, 3), matrix(6), matrix(1))),
    "scatter_add": call(matrix(2, 2), one(0, 1, -1, 2), POSITIONS, one(matrix(2, 2), matrix(1, 2))),
    "scatter_reduce": call(matrix(2, 2), one(0, 1, -1), POSITIONS, one(matrix(2, 2), matrix(1, 2)), one("sum", "prod", "mean", "amin", "amax", "other"), include_self=st.booleans()),
    "rand_like": call(tensors((*F, "int64")), dtype=one("float64", "float32")), "randn_like": call(tensors((*F, "int64")), dtype=one("float64", "float32")),
    "broadcast_shapes": call(one([2, 3], [1, 3], [3], []), one([3], [2, 1], [2, 3], [])),
}  # fmt: skip

DIMS = one([2, 3], [3], [], 3, (2, 1), [-1])
DTYPES = one("float32", "float64", "int64", "bool", DTypeNamed("float64"))
METHODS: dict[str, Strategy[Any]] = {
    **{name: call(tensors(ANY)) for name in "bfloat16 bool byte cdouble cfloat char double float half int long short data is_cuda itemsize requires_grad pin_memory".split()},
    **{name: call(tensors(F)) for name in "get_strides strides stride".split()},
    "apply": call(tensors(F, kinds=("constant", "leaf")), st.just(lambda x: x * 2)), "apply_": call(tensors(F, kinds=("constant", "result")), st.just(lambda x: x * 2)),
    "fill_diagonal_": call(tensors(F, ((3, 3), (2, 3), (3,)), kinds=("constant", "result")), one(1.5, 2), offset=one(0, 1, -1), wrap=st.booleans()),
    **{name: call(tensors(F, ((3, 3), (2, 3)), kinds=("constant", "result")), one(matrix(3), matrix(2)), offset=one(0, 1), dim1=one(0, 1), dim2=one(1, -1)) for name in ("fill_diagonal_tensor", "fill_diagonal_tensor_")},
    **{name: call(tensors(ANY), DIMS, dtype=DTYPES) for name in ("new_empty", "new_ones", "new_zeros")}, "new_full": call(tensors(ANY), DIMS, one(1.5, 2), dtype=DTYPES),
    "random_": call(tensors((*F, "int64")), one(0, 1), one(3, 5, None)),
    "repeat": call(tensors(ANY, ((3,), (2, 3), ())), one(2, [2, 1], [1, 2, 2])),
    "requires_grad_": call(tensors(F), st.booleans()), "split_with_sizes": call(tensors(F, ((4, 3), (6,))), one([1, 3], [2, 4], [2, 2]), one(0, -1)),
    "is_empty": call(tensors(NUMBERS)),
}  # fmt: skip

CALLS: dict[str, Strategy[Any]] = {**ELEMENTWISE, **REDUCTIONS, **SHAPES}
RANDOM = set("rand_like randn_like new_empty random_".split())
