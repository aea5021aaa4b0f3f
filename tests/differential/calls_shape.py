"""Calls that change shapes, join, take apart, and read or write at positions: name to arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from described import DTypeNamed, T
from draws import (
    COMPLEX,
    DISTINCT,
    FLOATS,
    NUMBERS,
    REAL,
    Strategy,
    call,
    ints,
    one,
    tensor,
    tensors,
)  # fmt: skip
from hypothesis import strategies as st

ANY = (*FLOATS, *FLOATS, "int64", "bool", "complex64", "float16")
F = FLOATS


def index(*values: int, shape: tuple[int, ...] = (-1,), dtype: str = "int64") -> T:
    return T(np.array(values).reshape(shape).astype(dtype), dtype)


def mask(*shape: int) -> Strategy[T]:
    return tensor("bool", shape)


def matrix(*shape: int) -> Strategy[T]:
    return st.sampled_from(F).flatmap(lambda d: tensor(d, shape, DISTINCT))


@st.composite
def of_one_dtype(draw: Any, shapes: Any, dtypes: Any = (*F, *F, "int64"), mixed: bool = True) -> list[T]:
    """A list of Tensors, almost always of one dtype."""
    dtype = draw(st.sampled_from(list(dtypes)))
    odd = mixed and draw(st.integers(0, 9)) == 0
    return [draw(tensor(draw(st.sampled_from(F)) if odd else dtype, s)) for s in shapes]


def lists(*families: Any) -> Strategy[list[T]]:
    return one(*(of_one_dtype(family) for family in families))


SAME = lists([(2, 3), (2, 3)], [(3,), (3,), (3,)], [(), ()], [(2, 3)], [(2, 3), (2, 2)], [(0, 3), (2, 3)])
SQUARE = one(tensors(F, ((3, 3), (2, 3), (2, 2, 3), (3, 2), (0, 3))))

CALLS: dict[str, Strategy[Any]] = {
    "cast": call(tensors(ANY), one("float32", "int64", "bool", "complex128", DTypeNamed("float64"), "float16", "nothing")),
    "astype": call(tensors(ANY), one("float32", "int64", "bool", "complex128", DTypeNamed("float64"), "bfloat16")),
    "type_as": call(tensors(ANY), tensors(ANY)),
    "clone": call(tensors(NUMBERS)),
    "assign": st.one_of(
        call(tensors(NUMBERS)), call(one(np.ones(2), [1.0, 2.0], [1, 2], 3.5, True, np.ones((2, 2), "int32")))),
    "reshape": call(tensors((*F, "int64"), ((2, 3), (6,), (1, 6), (), (0, 3))), one([3, 2], [-1], [6], [2, -1], [0, -1], [-1, 1], [], [4], (3, 2), [1], [index(3), 2], [-1, -1])),
    "view": call(tensors(F, ((2, 3), (6,))), one([3, 2], [-1], [4], "float32")),
    "transpose": call(tensors(ANY, ((2, 3), (3, 3))), one([1, 0], [0, 1], [-1, 0], [0], [1, 1], [0, 2])),
    "moveaxis": call(tensors(F, ((2, 2, 3), (2, 3, 1))), one(0, 1, -1, [0, 1], [2, 0], 3), one(0, 2, -1, [1, 2], [0, 1], [0, 0])),
    "swapaxes": call(tensors(F, ((2, 3), (2, 2, 3))), one(0, -1, 5), one(1, -2)),
    **{name: call(tensors(ANY, ((3,), (1, 3), (2, 1), ())), one([2, 3], [3], [2, -1], [2, 1, 3], [-1, 3], [1], [0, 3], [])) for name in ("broadcast_to", "expand")},
    "expand_as": call(tensors(F, ((3,), (1, 3), ())), tensors(F, ((2, 3), (3,), (2, 2)))),
    "broadcast_tensors": call(lists([(2, 3), (3,)], [(2, 1), (1, 3)], [(), (3,)], [(2,), (3,)], [(2, 3)])),
    "broadcast_shape": call(one([2, 3], [1, 3], [3], []), one([3], [2, 1], [2, 3], [])),
    "squeeze": call(tensors(ANY, ((1, 3), (2, 1, 1), (1,), (), (2, 3))), axis=one(None, 0, 1, -1, [0, 1], [], 4)),
    "unsqueeze": call(tensors(ANY, ((3,), (2, 3), (), (0,))), one(0, 1, -1, [0, 1], [0, 0], [-1, 0], [2], 5, index(0))),
    "flatten": call(tensors(ANY, ((2, 2, 3), (2, 3), (), (3,), (0, 3))), start_axis=one(0, 1, -1, 2), stop_axis=one(-1, 1, 0, 4)),
    "unflatten": call(tensors(F, ((6,), (2, 6), (6, 2))), one(0, -1, 1), one([2, 3], [-1, 2], [6], [4], (3, 2))),
    "tile": call(tensors(ANY, ((3,), (2, 3), (), (0, 3))), one([2], [2, 1], [1, 2, 2], [], 2, [0, 1], index(2), [-1])),
    "flip": call(tensors(ANY, ((3,), (2, 3), (2, 2, 3), ())), one(0, -1, [0, 1], [0], [], 3)),
    "roll": call(tensors(ANY, ((3,), (2, 3), (0, 3))), one(1, -1, 4, [1, 2]), axis=one(None, 0, -1, [0, 1], 3)),
    "tril": call(SQUARE, diagonal=one(0, 1, -1, 5)), "triu": call(SQUARE, diagonal=one(0, 1, -1, 5)),
    "is_contiguous": call(tensors(F)), "contiguous": call(tensors(F)),
    # ------------------------------------------------------------------- joining and taking apart
    "concat": call(one(SAME, tensor("float64", (2,)), [], [1.0]), axis=one(0, -1, 1, 2, index(0, shape=()))),
    "stack": call(one(SAME, []), axis=one(0, -1, 1, 3)),
    "add_n": call(one(SAME, tensor("float64", (2,)), [])),
    "vstack": call(SAME), "hstack": call(SAME),
    "split": call(tensors(F, ((4, 3), (6,), (2, 4))), one(2, 3, [1, 3], [2, -1], [1, 1], 0), axis=one(0, 1, -1, 2)),
    "chunk": call(tensors(F, ((4, 3), (6,), (2, 4), (5,))), one(1, 2, 3), axis=one(0, 1, -1)),
    "tensor_split": call(tensors(F, ((4, 3), (6,), (5,))), one(2, 3, [1, 3], (2,), [3, 9]), axis=one(0, -1)),
    "unbind": call(tensors(F, ((2, 3), (3,), (3, 0))), axis=one(0, -1, 1, 3)),
    "unstack": call(tensors(F, ((2, 3), (3,))), axis=one(0, -1, 1), num=one(2, 3)),
    # ------------------------------------------------------------------- diagonals, strides
    "diagonal": call(tensors(ANY, ((3, 3), (2, 3), (2, 2, 3))), offset=one(0, 1, -1, 4), axis1=one(0, 1, -1), axis2=one(1, -1, 0)),
    "trace": call(tensors((*F, "int64"), ((3, 3), (2, 3), (2, 2, 3), (3,))), offset=one(0, 1, -1, 4), axis1=one(0, 1, -1), axis2=one(1, -1, 0)),
    "diag": call(tensors(F, ((3,), (2, 3), (3, 3), (0,), (2, 2, 2), ())), offset=one(0, 1, -1), padding_value=one(0, 1.5)),
    "diag_embed": call(tensors(F, ((3,), (2, 3))), offset=one(0, 1, -1), dim1=one(-2, 0), dim2=one(-1, 1, 0)),
    "as_strided": st.one_of(call(tensors(F, ((6,), (3, 2))), [2, 2], one([1, 2], [2, 1]), offset=one(0, 8)), call(tensors(F, ((6,),)), [3], one([1], [2]))),
    # ------------------------------------------------------------------- reading at positions
    "gather": call(tensors(ANY, ((3, 2), (3,), (3, 2, 2))), one(ints((2,), 2, least=0), ints((1,), 2, "int32", 0), index(0, shape=()), index(0, 2, shape=(2, 1)), index(5)), axis=one(0, 1, -1, index(0, shape=()))),
    "gather_nd": call(tensors(F, ((3, 2), (2, 2, 2))), one(ints((2, 1), 2, least=0), ints((3, 2), 2, least=0), ints((2,), 2, least=0), ints((0, 2), 2), index(4, 0), ints((2, 2), 2))),
    "index_select": call(tensors(ANY, ((3, 2), (3,), (3, 3))), one(ints((2,), 2, least=0), ints((2,), 2), ints((1,), 2, "int32", 0), index(5), index(), T(np.array([0.5]), "float64")), axis=one(0, 1, -1)),
    "index_sample": call(tensors(F, ((2, 3), (2, 2))), one(ints((2, 2), 2, least=0), ints((2, 1), 2, "int32", 0), ints((3, 1), 2, least=0))),
    "take": call(tensors(F, ((2, 3), (3,))), one(ints((2,), 3), ints((2, 2), 3, "int32"), index(0, shape=()), index(8), T(np.array([0.5]), "float64")), mode=one("raise", "wrap", "clip", "other")),
    "take_along_axis": call(tensors(ANY, ((3, 2), (2, 3))), one(ints((2, 2), 2, least=0), ints((1, 2), 2, least=0), ints((2, 2), 2), ints((2,), 2), index(5, 0, shape=(1, 2))), one(0, 1, -1, None), broadcast=st.booleans()),
    "masked_select": call(tensors(ANY, ((2, 3), (3,), (2, 1))), one(mask(2, 3), mask(3), mask(2, 2), index(1, 0, 1))),
    "repeat_interleave": call(tensors((*F, "int64"), ((2, 3), (3,), (3, 2))), one(2, 1, 0, index(1, 2, 0), index(2)), axis=one(None, 0, -1)),
    "where": st.one_of(
        call(mask(2, 3), matrix(2, 3), matrix(3)), call(mask(3), tensors(REAL, ((3,), (2, 3), ())), tensors(REAL, ((3,), ()))),
        call(mask(3), one(1.5, 2, 0.5, tensor("float64", (3,))), one(0.5, 1)), call(mask(2, 3)), call(matrix(3), matrix(3), matrix(3)), call(mask(3), matrix(3))),
    "nonzero": call(tensors(ANY, ((2, 3), (3,), (), (0,))), as_tuple=st.booleans()),
    # ------------------------------------------------------------------- writing at positions
    "put_along_axis": call(
        matrix(3, 2), one(ints((2, 2), 2, least=0), ints((1, 2), 2, least=0), ints((3, 1), 2, least=0)), one(1.5, 2, matrix(2, 2), matrix(1, 2), matrix(1, 1), tensor("float64", ())), one(0, 1, -1),
        reduce=one("assign", "add", "mul", "multiply", "mean", "amin", "amax", "other"), include_self=st.booleans(), broadcast=st.booleans()),
    "put_along_axis_": call(tensor("float64", (3, 2), kinds=("constant", "result")), ints((2, 2), 2, least=0), tensor("float64", (2, 2)), one(0, 1), reduce=one("assign", "add", "amax")),
    "scatter": call(matrix(3, 2), one(index(0, 2), index(1, 1), index(0, 1, shape=(2, 1)), index(5, 0), index(-1, 0)), one(matrix(2, 2), matrix(1, 2)), overwrite=st.booleans()),
    "scatter_nd_add": call(matrix(3, 2), one(ints((2, 1), 2, least=0), ints((2, 2), 2, least=0)), one(matrix(2, 2), matrix(2))),
    "scatter_nd": call(one(ints((2, 1), 2, least=0), ints((2, 2), 2, least=0)), one(matrix(2, 2), matrix(2)), one([3, 2], [2, 2], [3])),
    "index_add": call(matrix(3, 2), ints((2,), 2, least=0), one(0, 1, -1), one(matrix(2, 2), matrix(3, 2)), alpha=one(2, 0.5)),
    "index_fill": call(matrix(3, 2), one(ints((2,), 2, least=0), index(-1)), one(0, 1, -1, 2), one(1.5, 2, T(np.array(2.5), "float64"))),
    "index_put": call(matrix(3, 2), one((ints((2,), 2),), (ints((2,), 2), ints((2,), 2)), (mask(3, 2),)), one(tensor("float64", ()), tensor("float64", (1,)), matrix(2)), accumulate=st.booleans()),
    "masked_fill": call(tensors((*F, "int64"), ((2, 3), (3,))), one(mask(3), mask(2, 3), mask(2, 2), mask(1)), one(1.5, 2, tensor("float64", ()), tensor("float32", (1,)), tensor("float64", (3,)))),
    # ------------------------------------------------------------------- complex numbers
    "real": call(tensors((*COMPLEX, *F))), "imag": call(tensors((*COMPLEX, *F))), "conj": call(tensors((*COMPLEX, *F, "int64"))),
    "complex": call(one(matrix(2, 3), matrix(3), tensor("int64", (3,))), one(matrix(2, 3), matrix(3), matrix(2, 1))),
    "as_complex": call(tensors(F, ((3, 2), (2,), (2, 3), ()))),
    "as_real": call(tensors((*COMPLEX, "float64"))),
    # ------------------------------------------------------------------- sorting and searching
    **{name: call(tensors((*F, "int64", "int32", "float16"), ((2, 3), (3,), (), (1, 3), (0, 3))), axis=one(None, 0, -1, 1, 3), keepdim=st.booleans(), dtype=one("int64", "int32", "float32")) for name in ("argmax", "argmin")},
    "argsort": call(tensors((*F, "int64"), ((2, 3), (3,), (), (0, 3)), DISTINCT), axis=one(0, -1, 1, 3), descending=st.booleans(), stable=st.booleans()),
    "sort": call(tensors((*F, "int64"), ((2, 3), (3,), (), (0, 3))), axis=one(0, -1, 1, 3), descending=st.booleans()),
    "median": call(tensors((*F, "int64"), ((2, 3), (3,), (2, 2), (4,), ()), DISTINCT), axis=one(None, 0, -1, 3), keepdim=st.booleans(), mode=one("avg", "min", "other")),
    "topk": call(tensors((*F, "int64"), ((2, 3), (3,), ()), DISTINCT), one(1, 2, 3, 5, 0), axis=one(0, -1, 1), largest=st.booleans()),
    "kthvalue": call(tensors((*F, "int64"), ((2, 3), (3,), ()), DISTINCT), one(1, 2, 4, 0), axis=one(0, -1), keepdim=st.booleans()),
    "searchsorted": call(one(T(np.array([-1.0, 0.0, 0.5, 2.0]), "float64"), T(np.array([[-1.0, 0.0], [1.0, 2.0]]), "float64")), tensors(("float64",), ((2, 3), (3,), (2, 1), ()), kinds=("constant",)), out_int32=st.booleans(), right=st.booleans()),
    "bucketize": call(tensors(("float64",), ((2, 3), (3,), ()), kinds=("constant",)), one(T(np.array([-1.0, 0.0, 0.5, 2.0]), "float64"), T(np.ones((2, 2)), "float64")), out_int32=st.booleans(), right=st.booleans()),
    "unique": call(tensors(("float64", "int64"), ((2, 3), (3,), (0,), (3, 2)), (0, 1, 2)), return_index=st.booleans(), return_inverse=st.booleans(), return_counts=st.booleans(), axis=one(None, 0), dtype=one("int64", "int32")),
}  # fmt: skip

INDICES = one(
    0, -1, 5, slice(None), slice(0, 1), slice(None, None, 2), slice(None, None, -1), slice(5, 9), None, ..., (0, 1), (..., 0), (slice(None), 0),
    (0, ...), (None, 0), (slice(None), None), [0, 1], [0, 0], ([0, 1], [1, 0]), (slice(None), [0, 1]), ([0, 1], slice(0, 1)),
    (0, slice(None), [0, 1]), ([0], 0), index(0, 1), index(1, shape=()), (index(0, 1), index(1, 0)), (index(-1),), mask(2, 3), mask(2),
    (mask(2), 0), (slice(None), mask(3)), True, False, np.array([0, 1]), np.array([True, False]), 1.5, "text", T(np.array([0.5]), "float64"),
    (0, 0, 0, 0), np.int64(1), [True, False], [], (), (index(0, 1, shape=(2, 1)), index(0, 2)),
)  # fmt: skip
INDEXED = tensors((*F, *F, "int64", "bool"), ((2, 3), (2, 3), (2, 3, 2), (3,), (), (0, 3)))
VALUES = one(
    1.5,
    2,
    True,
    tensor("float64", ()),
    tensor("float64", (1,)),
    tensor("float32", (3,)),
    tensor("float64", (2, 3)),
    np.ones(1),
    np.array(2.0),
    [1.0],
    None,
)

METHODS: dict[str, Strategy[Any]] = {
    "__getitem__": call(INDEXED, INDICES),
    "__setitem__": call(INDEXED, INDICES, VALUES),
    "reshape": st.one_of(CALLS["reshape"], call(tensor("float64", (2, 3)), 3, 2)),
    "T": call(tensors(F, ((2, 3), (3,), (2, 2, 3), ()))), "mT": call(tensors(F, ((2, 3), (3,), (2, 2, 3)))),
}  # fmt: skip
