"""Calls of `paddle.linalg`, `paddle.fft` and `paddle.geometric`: name to arguments, and scripts where a result is not unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from calls_numbers import POSITIVE_DEFINITE, SQUARES, matched, spread
from described import Library, T
from draws import DISTINCT, FLOATS, Strategy, call, ints, one, tensor, tensors
from hypothesis import strategies as st

F = FLOATS
MATRICES = tensors((*F, *F, "complex128"), ((2, 3), (3, 2), (2, 2), (2, 2, 3), (3,)), DISTINCT)
SYMMETRIC = st.sampled_from(
    [T(np.array(m), d, k) for m in ([[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, -1.0]], [[[4.0]], [[2.25]]], [[1.0, 2.0]])
     for d in ("float64",) for k in ("constant", "leaf")]
)  # fmt: skip
SIGNAL = tensors((*F, "complex128", "complex64", "int64"), ((4,), (2, 3), (2, 2, 3), (1,), ()), DISTINCT)
NORMS = one("backward", "ortho", "forward", "other")
LAST = one(-1, 0, 1, 3)
PAIRS = one([0, 1], [-2, -1], [0, 0], [0], None)
WHERE = ints((3,), 2, least=0)

CALLS: dict[str, Strategy[Any]] = {
    "cholesky_solve": call(tensor("float64", (2, 1), DISTINCT), POSITIVE_DEFINITE, upper=st.booleans()),
    "eigvalsh": call(SYMMETRIC, UPLO=one("L", "U", "X")), "svdvals": call(MATRICES),
    "matrix_exp": call(SQUARES),
    "pinv": call(tensors((*F, "complex128"), ((2, 3), (3, 2), (3,)), DISTINCT), rcond=one(1e-15), hermitian=False),
    # ------------------------------------------------------------------- transforms
    **{name: call(SIGNAL, n=one(None, 2, 5, 0), axis=LAST, norm=NORMS) for name in "fft ifft rfft irfft hfft ihfft".split()},
    **{f"{name}2": call(SIGNAL, s=one(None, [2, 3], [4]), axes=PAIRS, norm=NORMS) for name in "fft ifft rfft irfft hfft ihfft".split()},
    **{f"{name}n": call(SIGNAL, s=one(None, [2, 3], [4]), axes=PAIRS, norm=NORMS) for name in "fft ifft rfft irfft hfft ihfft".split()},
    **{name: call(SIGNAL, axes=one(None, 0, -1, [0, 1], 3)) for name in ("fftshift", "ifftshift")},
    **{name: call(one(4, 5, 1, 0), d=one(1.0, 0.5), dtype=one("float64", "float32")) for name in ("fftfreq", "rfftfreq")},
    # ------------------------------------------------------------------- graphs
    **{f"segment_{name}": call(tensors(F, ((3, 2), (3,))), one(T(np.array([0, 0, 1]), "int64"), T(np.array([0, 2, 2], "int32"), "int32"), T(np.array([0, 1]), "int64"))) for name in ("sum", "mean", "min", "max")},
    "send_u_recv": call(tensors(F, ((2, 3), (2,))), WHERE, WHERE, reduce_op=one("sum", "mean", "max", "min", "other"), out_size=one(None, 3)),
    "send_ue_recv": spread(matched([(2, 3), (3, 3)], [(2, 3), (3, 1)], [(2, 3), (3,)]), src_index=st.just(T(np.array([0, 1, 1]), "int64")), dst_index=st.just(T(np.array([1, 0, 1]), "int64")), message_op=one("add", "sub", "mul", "div"), reduce_op=one("sum", "mean", "max", "min")),
    "send_uv": spread(matched([(2, 3), (2, 3)], [(2, 3), (2, 1)]), src_index=st.just(T(np.array([0, 1, 1]), "int64")), dst_index=st.just(T(np.array([1, 0, 1]), "int64")), message_op=one("add", "sub", "mul", "div")),
}  # fmt: skip
CALLS["send_ue_recv"] = st.tuples(matched([(2, 3), (3, 3)], [(2, 3), (3, 1)], [(2, 3), (3,)]), WHERE, WHERE, call(message_op=one("add", "sub", "mul", "div"), reduce_op=one("sum", "mean", "max", "min"))).map(lambda p: type(p[3])((*p[0], p[1], p[2]), p[3].kwargs))  # fmt: skip
CALLS["send_uv"] = st.tuples(matched([(2, 3), (2, 3)], [(2, 3), (2, 1)]), WHERE, WHERE, call(message_op=one("add", "sub", "mul", "div"))).map(lambda p: type(p[3])((*p[0], p[1], p[2]), p[3].kwargs))  # fmt: skip


def magnitudes(name: str, *signed: int) -> Callable[..., Any]:
    """A factorisation with the magnitudes of those parts whose signs are a matter of taste."""

    def run(paddle: Library, x: Any, *args: Any, **options: Any) -> Any:
        parts = getattr(paddle.linalg, name)(x, *args, **options)
        if not isinstance(parts, (list, tuple)):
            return parts.abs()
        return [part.abs() if k in signed else part for k, part in enumerate(parts)]

    return run


def eigenvalues(name: str) -> Callable[..., Any]:
    """The magnitudes of eigenvalues in order, for libraries list them in orders of their own."""

    def run(paddle: Library, x: Any) -> Any:
        found = getattr(paddle.linalg, name)(x)
        values = found[0] if name == "eig" else found
        return paddle.sort(paddle.abs(values), -1)

    return run


SCRIPTS: dict[str, tuple[Callable[..., Any], Strategy[Any]]] = {
    "svd": (magnitudes("svd", 0, 2), call(MATRICES, full_matrices=False)),
    "qr": (magnitudes("qr", 0, 1), call(MATRICES, mode=one("reduced", "complete", "r", "other"))),
    "eigh": (magnitudes("eigh", 1), call(SYMMETRIC, UPLO=one("L", "U", "X"))),
    **{name: (eigenvalues(name), call(tensors(F, ((2, 2), (3, 3), (2, 3)), DISTINCT, ("constant",)))) for name in ("eig", "eigvals")},
}  # fmt: skip
