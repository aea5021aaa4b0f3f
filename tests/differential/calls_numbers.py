"""Calls that reduce, multiply matrices, create and draw at random; losses and layers: name to arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from described import DTypeNamed, T
from draws import (
    DISTINCT,
    FLOATS,
    POSITIVE,
    REAL,
    USUAL,
    Strategy,
    call,
    distinct,
    one,
    reduction,
    tensor,
    tensors,
)  # fmt: skip
from hypothesis import strategies as st

F = FLOATS
INF = float("inf")


@st.composite
def matched(draw: Any, *shapes: Any, dtypes: Any = F, values: Any = USUAL) -> Any:
    """Tensors of one dtype (now and then not), one of the families of shapes."""
    family = draw(st.sampled_from(shapes))
    dtype = draw(st.sampled_from(list(dtypes)))
    odd = draw(st.integers(0, 11)) == 0
    return [draw(tensor(draw(st.sampled_from(F)) if odd else dtype, shape, values)) for shape in family]


def spread(strategy: Any, **named: Any) -> Strategy[Any]:
    """The list that a strategy gives as separate arguments."""
    return st.tuples(strategy, call(**named)).map(lambda pair: type(pair[1])(tuple(pair[0]), pair[1].kwargs))


SQUARES = tensors(F, ((2, 2), (3, 3), (2, 2, 2), (2, 3), (2,)), DISTINCT)
POSITIVE_DEFINITE = st.sampled_from(
    [
        T(np.array(m), "float64", k)
        for m in ([[2.0, 0.5], [0.5, 1.0]], [[[4.0]], [[2.25]]], [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0]])
        for k in ("constant", "leaf")
    ]
)
LINEAR = (*F, *F, "complex128", "int64")
DIMS = one([2, 3], [3], [], [0, 2], 3, (2, 1), T(np.array([2, 2]), "int64"), [T(np.array(2), "int64"), 1], [-1], [2.5])
DTYPES = one("float32", "float64", "int64", "bool", DTypeNamed("float64"), np.float32, "complex64", "nothing")
INDEXED_LIKE = tensors((*F, "int64", "bool", "complex64"))
LIKE = tensors((*F, "int64", "bool"), ((2, 3), (), (0,)))

CALLS: dict[str, Strategy[Any]] = {
    "sum": reduction((*REAL, "bool", "complex128"), dtype=one("float64", "int64")),
    "mean": reduction((*REAL, "complex128")),
    **{name: reduction(REAL, shapes=((), (1,), (3,), (2, 3), (3, 1), (2, 2, 3), (0, 3))) for name in ("max", "min", "amax", "amin")},
    "prod": reduction((*F, "int64", "int32"), dtype=one("float64")),
    "logsumexp": reduction((*F, *F, "int64")),
    **{name: reduction((*F, *F, "int64"), unbiased=st.booleans(), shapes=((3,), (2, 3), (2, 2, 3), (1, 3), ())) for name in ("std", "var")},
    "norm": call(tensors((*F, "complex128"), ((3,), (2, 3), (2, 2, 3), ())), p=one(2, 1, "fro", 0, 3, INF, -INF, 2.5, "other", -1), axis=one(None, 0, -1, [0, 1], 1), keepdim=st.booleans()),
    **{name: call(tensors((*F, "int64", "int32", "bool"), ((2, 3), (3,), (), (0, 3))), axis=one(None, 0, -1, 1, 3), dtype=one("float64", "int64")) for name in ("cumsum",)},
    "cumprod": call(tensors((*F, "int64"), ((2, 3), (3,), ())), dim=one(0, -1, 1, 3), dtype=one("float64")),
    **{name: reduction(("bool", "int64", *F)) for name in ("all", "any", "count_nonzero")},
    # ------------------------------------------------------------------- matrices
    "matmul": st.one_of(
        spread(matched([(2, 3), (3, 2)], [(3,), (3,)], [(2, 3), (3,)], [(3,), (3, 2)], [(2, 2, 3), (3, 2)], [(2, 1, 2, 3), (2, 3, 1)], [(2, 3), (2, 3)], [(0, 3), (3, 2)], [(), (3,)], dtypes=LINEAR)),
        spread(matched([(2, 3), (2, 3)], [(3, 3), (3, 3)], [(3,), (3, 2)]), transpose_x=st.booleans(), transpose_y=st.booleans()), call(tensor("float64", (2, 3)), one(2.0, np.ones(3)))),
    **{name: spread(matched([(2, 3), (3, 2)], [(2, 3), (2, 3)], [(2, 3), (3,)], dtypes=LINEAR)) for name in ("mm",)},
    "bmm": spread(matched([(2, 2, 3), (2, 3, 1)], [(2, 2, 3), (1, 3, 2)], [(2, 3), (3, 2)], [(2, 2, 3), (2, 2, 3)])),
    "mv": spread(matched([(2, 3), (3,)], [(2, 3), (2,)], [(3,), (3,)])),
    "dot": spread(matched([(3,), (3,)], [(2, 3), (2, 3)], [(3,), (2,)], [(), ()], [(2, 2, 3), (2, 2, 3)], dtypes=LINEAR)),
    "inner": spread(matched([(3,), (3,)], [(2, 3), (3,)], [(2, 3), (1, 3)], [(), (3,)], [(2, 3), (2,)])),
    "outer": spread(matched([(3,), (2,)], [(2, 3), (2,)], [(), (3,)], dtypes=LINEAR)),
    "kron": spread(matched([(2, 3), (3, 2)], [(3,), (2,)], [(2, 2), (3,)], [(), (3,)])),
    **{name: call(SQUARES) for name in ("inv", "inverse")},
    **{name: call(tensors(F, ((2, 2), (3, 3), (2, 2, 2)), DISTINCT)) for name in ("det", "slogdet")},
    "solve": call(tensor("float64", (2, 2), DISTINCT), one(tensor("float64", (2, 1)), tensor("float64", (2, 2)), tensor("float64", (2,))), left=st.booleans()),
    "triangular_solve": call(tensor("float64", (2, 2), DISTINCT), tensor("float64", (2, 2)), upper=st.booleans(), transpose=st.booleans(), unitriangular=st.booleans()),
    "cholesky": call(POSITIVE_DEFINITE, upper=st.booleans()),
    "matrix_power": call(SQUARES, one(0, 1, 2, 3, -1)),
    "multi_dot": call(one(matched([(2, 3), (3, 2)], [(2, 3), (3, 2), (2, 2)], [(3,), (3, 2)], [(2, 3), (3,)], [(2, 3)]))),
    "vector_norm": call(tensors(F, ((3,), (2, 3)), DISTINCT), p=one(1.0, 2.0, 3.0, INF, -INF, 0.0), axis=one(None, 0, -1), keepdim=st.booleans()),
    "matrix_norm": call(tensors(F, ((2, 3), (2, 2, 3)), DISTINCT), p=one("fro", 1, -1, INF, -INF), axis=one([-2, -1], [0, 1]), keepdim=st.booleans()),
    "matrix_transpose": call(tensors(F, ((2, 3), (2, 2, 3), (3,)))),
    "vecdot": spread(matched([(3,), (3,)], [(2, 3), (2, 3)], [(2, 3), (3,)]), axis=one(-1, 0)),
    "addmm": spread(matched([(2, 2), (2, 3), (3, 2)], [(2,), (2, 3), (3, 2)], [(1, 2), (2, 3), (3, 2)], [(3,), (2, 3), (3, 2)], [(2, 2), (3,), (3, 2)]), beta=one(0.5, 2.0), alpha=one(2.0, 0)),
    "t": call(tensors((*F, "int64"), ((2, 3), (3,), (), (2, 2, 3)))),
    "einsum": st.one_of(
        call(one("ij,jk->ik", "ij,jk", "ij,kj->ik", "ij,jk->ki", "ij,jk,", "zz"), tensor("float64", (2, 3)), tensor("float64", (3, 2))),
        call(one("ij->j", "ij->", "ij->ji", "ij"), tensor("float64", (2, 3))), call(one("ii->i", "ii", "ii->"), tensor("float64", (3, 3))),
        call(one("...i,i->...", "bij,i->bj"), tensor("float64", (2, 3, 3)), tensor("float64", (3,)))),
    # ------------------------------------------------------------------- creation
    "to_tensor": call(
        one(1, 1.5, True, 1 + 2j, [1, 2], [[1.0, 2.0]], [], np.ones(2), np.float32(1), np.ones((2, 2), "int32"), (1, 2), "text", None, [1, 2.5], [[1], [2, 3]], tensors(F), [tensor("float64", ()), tensor("float64", ())], np.array(["a"]), range(3), {"a": 1}, np.bool_(True), [True, False], np.ones(2, "uint16")),
        dtype=DTYPES, stop_gradient=st.booleans()),
    **{name: call(DIMS, dtype=DTYPES) for name in ("zeros", "ones", "empty")},
    "full": call(DIMS, one(1, 1.5, True, 1j, T(np.array(2.5), "float64"), np.float64(1.5), "2.5", "text", None), dtype=DTYPES),
    **{name: call(LIKE, dtype=DTYPES) for name in ("zeros_like", "ones_like", "empty_like")},
    "full_like": call(LIKE, one(1, 1.5, True, T(np.array(2.5), "float64")), dtype=DTYPES),
    "arange": st.one_of(
        call(one(3, 2.5, 0, -1, T(np.array(3), "int64")), dtype=DTYPES),
        call(one(0, 1, 0.5, -2), one(3, 4.5, -3), one(1, 2, 0.5, -1, 0, 0.3), dtype=one("float64", "int32", "float32")), call(start=1, end=4)),
    "linspace": call(one(0, 1.5, T(np.array(1.0), "float64")), one(5, -1.0, 2), one(1, 2, 5, 0, T(np.array(3), "int64")), dtype=one("float64", "int64", "int32")),
    "logspace": call(one(0, 1.5), one(2, -1.0), one(1, 2, 5), base=one(2, 10.0, 0.5), dtype=one("float64", "float32")),
    "eye": call(one(2, 3, 0, -1, 2.5), num_columns=one(None, 1, 3), dtype=DTYPES),
    **{name: call(one(2, 3, 0), col=one(2, 4, None), offset=one(0, 1, -1), dtype=one("int64", "int32")) for name in ("tril_indices", "triu_indices")},
    "meshgrid": st.one_of(call(tensor("float64", (2,)), tensor("float64", (3,))), call([tensor("float64", (2,)), tensor("float64", (1,)), tensor("float64", (3,))]), call(tensor("float64", (2, 2)))),
    **{name: call(INDEXED_LIKE) for name in ("is_complex", "is_floating_point", "is_integer")},
    "is_tensor": call(one(tensors(F), 1.5, [1], np.ones(2))),
    **{name: call(one(tensors((*F, "int64")))) for name in ("numel", "rank", "shape")},
    # ------------------------------------------------------------------- random numbers
    "uniform": call(DIMS, dtype=one("float64", "float32", "int64"), min=one(-1.0, 0), max=one(1.0, 2), seed=one(0, 3)),
    **{name: call(DIMS, dtype=one("float64", "float32", "int64")) for name in ("rand", "randn", "standard_normal")},
    "normal": st.one_of(call(mean=one(0.0, 1), std=one(1.0, 2), shape=DIMS), call(tensors(("float64", "float32"), ((2, 3), (3,))), one(1.0, 2)), call(one(1.0, 0), tensors(("float64", "float32"), ((3,),), POSITIVE)), call(tensor("float64", (3,)), tensor("float32", (3,), POSITIVE))),
    "randint": call(one(1, 3, 0), high=one(5, None, 3), shape=one([2, 3], [], [1], (2,)), dtype=one("int64", "int32", "float32")),
    "randint_like": call(tensors((*F, "int64"), ((2, 3), ())), one(1, 3), high=one(5, None), dtype=one("int64", "int32", "float32")),
    "randperm": call(one(1, 3, 5, 0, -1), dtype=one("int64", "int32", "float32")),
    "uniform_": call(tensors((*F, "int64"), ((2, 3), (3,))), min=one(-1.0), max=one(2.0)),
    "normal_": call(tensors(F, ((2, 3), (3,))), mean=one(-1.0), std=one(2.0)), "exponential_": call(tensors(F, ((2, 3), (3,))), lam=one(0.5)),
    "bernoulli_": call(tensors(F, ((2, 3), (3,))), p=one(0.5, 0.0)),
    "bernoulli": call(tensors((*F, *F, "int64"), values=(0.0, 0.25, 0.5, 1.0, 1.5)), p=one(0.5, 0.0)),
    "multinomial": call(tensors(F, ((3,), (2, 3), (2, 2, 3), ()), POSITIVE), num_samples=one(1, 2, 5), replacement=st.booleans()),
    "seed": call(one(1, 33)),
}  # fmt: skip
RANDOM = set(
    "empty empty_like dropout uniform_ normal_ exponential_ uniform rand randn standard_normal normal randint randint_like randperm bernoulli bernoulli_ multinomial seed".split()
)
"""The names whose values are drawn at random, and so cannot agree."""

REDUCTION = one("mean", "sum", "none", "other")


def losses(values: Any = USUAL, labels: Any = USUAL) -> Any:
    shape = st.sampled_from([(2, 3), (3,), ()])
    return st.tuples(st.sampled_from(F), shape).flatmap(
        lambda p: st.tuples(tensor(p[0], p[1], values), tensor(p[0], p[1], labels))
    )


def labels(shape: Any, size: int = 3, least: int = 0, dtype: str = "int64") -> Strategy[T]:
    return tensor(dtype, shape, [float(k) for k in range(least, size)], ("constant",))


WEIGHT = one(None, tensor("float64", (3,), POSITIVE))
FUNCTIONAL: dict[str, Strategy[Any]] = {
    "linear": st.one_of(
        spread(matched([(2, 3), (3, 2)], [(3,), (3, 2)], [(2, 2, 3), (3, 2)], [(2, 2), (3, 2)])),
        spread(matched([(2, 3), (3, 2), (2,)], [(3,), (3, 2), (2,)], [(2, 3), (3, 2), (3,)]))),
    "embedding": call(one(labels((2,)), labels((2, 2)), labels((), 3), labels((2,), 5)), tensor("float64", (3, 2)), padding_idx=one(None, 0, -1, 1, 5), sparse=False),
    "dropout": call(tensors(F, ((2, 3), (3,))), p=one(0.0, 0.5, 1.0, 0, 1, 1.5), training=st.booleans(), axis=one(None, 0, [0, 1]), mode=one("upscale_in_train", "downscale_in_infer", "other")),
    "layer_norm": st.one_of(
        call(distinct("float64", (2, 3)), one([3], 3, [2, 3], [2]), epsilon=one(1e-3)),
        call(distinct("float32", (2, 2, 3)), [3], weight=tensor("float32", (3,)), bias=tensor("float32", (3,)))),
    "normalize": call(tensors(F, ((2, 3), (3,), (2, 2, 3)), DISTINCT), p=one(2, 1, 3), axis=one(0, -1), epsilon=one(1e-3)),
    "cosine_similarity": spread(matched([(2, 3), (2, 3)], [(2, 3), (1, 3)], [(3,), (3,)], values=DISTINCT), axis=one(0, -1, 1), eps=one(1e-3)),
    "mse_loss": spread(losses(), reduction=REDUCTION), "l1_loss": spread(losses(), reduction=REDUCTION),
    "smooth_l1_loss": spread(losses(), reduction=REDUCTION, delta=one(0.5, 2.0)),
    "kl_div": spread(losses(USUAL, (0.0, *POSITIVE)), reduction=one("mean", "sum", "none", "batchmean", "other"), log_target=st.booleans()),
    "binary_cross_entropy": spread(losses([0.0, 0.25, 0.5, 0.875, 1.0], [0.0, 1.0, 0.5]), weight=one(None, tensor("float64", (3,), POSITIVE)), reduction=REDUCTION),
    "binary_cross_entropy_with_logits": spread(losses(USUAL, [0.0, 1.0, 0.5]), weight=one(None, tensor("float64", (3,), POSITIVE)), reduction=REDUCTION, pos_weight=one(None, tensor("float64", (3,), POSITIVE))),
    "nll_loss": st.one_of(
        call(tensor("float64", (2, 3)), labels((2,)), weight=WEIGHT, ignore_index=one(1, -100), reduction=REDUCTION),
        call(tensor("float64", (2, 3, 2)), labels((2, 2)), reduction=REDUCTION), call(tensor("float64", (2, 3)), labels((3,)))),
    "cross_entropy": st.one_of(
        call(tensor("float64", (2, 3)), one(labels((2,)), labels((2, 1)), labels((2,), dtype="int32")), weight=WEIGHT, ignore_index=one(1, -100, -1), reduction=REDUCTION, use_softmax=True, label_smoothing=one(0.0, 0.1)),
        call(tensor("float32", (2, 3)), T(np.array([[0.25, 0.5, 0.25], [0.0, 1.0, 0.0]], "float32"), "float32"), soft_label=True, reduction=REDUCTION, label_smoothing=one(0.0, 0.25)),
        call(tensor("float64", (2, 3, 2)), labels((2, 2)), axis=1, reduction=REDUCTION), call(tensor("float64", (2, 3)), labels((3,))), call(tensor("float64", (2, 3)), labels((2,), 6, 4)),
        call(tensor("float64", (3,)), labels((), 3))),
    "one_hot": call(one(labels((2,)), labels((2, 2)), labels(()), labels((2,), dtype="int32"), labels((2,), 5)), num_classes=one(3, -1, 4, 2)),
    "pad": st.one_of(
        call(tensors(F, ((2, 3), (3,))), one([1, 2], [1, 0, 0, 2], [0, 1, 2, 0]), mode=one("constant"), value=one(0.5, 2.0)),
        call(tensor("float64", (1, 2, 3)), one([1, 2], [1, 0, 0, 1, 1, 1]), mode=one("constant", "reflect", "replicate", "circular", "other"), value=0.5, data_format=one("NCL", "NLC")),
        call(tensor("float64", (1, 2, 3, 3)), one([1, 2, 0, 1]), mode=one("constant", "reflect", "replicate", "circular"), data_format=one("NCHW", "NHWC"))),
}  # fmt: skip
