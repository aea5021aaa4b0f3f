"""Every row of the table of primitives does what JAX does, and is differentiated as JAX does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import pylayer.paddle as paddle  # noqa: E402
from gradcheck.backends.jax_primitives import PRIMITIVES  # noqa: E402
from gradcheck.backends.jax_program import JaxProgram, engine_value, plain_array  # noqa: E402

RANDOM = np.random.default_rng(3)
X, Y = RANDOM.standard_normal((3, 4)), RANDOM.standard_normal((3, 4))
POSITIVE, INSIDE = np.abs(X) + 0.5, np.tanh(X)
M, V, CUBE = RANDOM.standard_normal((4, 5)), RANDOM.standard_normal(4), RANDOM.standard_normal((2, 3, 4))
Z = X + 1j * Y
WHOLE = np.array([[3, 1, 2, 0], [1, 1, 0, 2], [0, 3, 1, 2]])
TIES = np.array([2.0, 1.0, 2.0, 0.5])

# by primitive, the calls that must be played: a function and its inputs
CALLS: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "abs": [(jnp.abs, (X,)), (jnp.abs, (Z,))],
    "acos": [(lax.acos, (INSIDE,))],
    "acosh": [(lax.acosh, (POSITIVE + 1,))],
    "add": [(lax.add, (X, Y)), (lambda x: x + 2.0, (X,)), (lax.add, (Z, Z)), (lambda i: i + 1, (WHOLE,))],
    "add_any": [],  # only within JAX's own transposition; a row as of add
    "and": [(lambda x: (x > 0) & (x < 1), (X,))],
    "argmax": [(lambda x: jnp.argmax(x, 1), (X,))],
    "argmin": [(lambda x: jnp.argmin(x, 0), (X,))],
    "asin": [(lax.asin, (INSIDE,))],
    "asinh": [(lax.asinh, (X,))],
    "atan": [(lax.atan, (X,))],
    "atan2": [(lax.atan2, (X, Y))],
    "atanh": [(lax.atanh, (INSIDE,))],
    "bessel_i0e": [(lax.bessel_i0e, (X,))],
    "bessel_i1e": [(lax.bessel_i1e, (X,))],
    "broadcast_in_dim": [
        (lambda v: jnp.broadcast_to(v, (3, 4)), (V,)),
        (lambda v: lax.broadcast_in_dim(v, (4, 2), (0,)), (V,)),
        (lambda x: x[:, None], (X,)),
    ],
    "ceil": [(jnp.ceil, (X,))],
    "clamp": [(lambda x: lax.clamp(-0.5, x, 0.5), (X,))],
    "complex": [(lax.complex, (X, Y))],
    "concatenate": [(lambda x, y: jnp.concatenate([x, y], 1), (X, Y))],
    "conj": [(jnp.conj, (Z,))],
    "conv_general_dilated": [
        (lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID"), (CUBE, RANDOM.standard_normal((5, 3, 2)))),
        (
            lambda x, w: lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (0, 0)], rhs_dilation=(1, 2)),
            (RANDOM.standard_normal((2, 3, 5, 6)), RANDOM.standard_normal((4, 3, 2, 3))),
        ),
        (
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2),
            (RANDOM.standard_normal((2, 4, 5, 5)), RANDOM.standard_normal((6, 2, 2, 2))),
        ),
        (  # as the gradient of the weights has it
            lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID", dimension_numbers=("CNW", "IOW", "CNW")),
            (CUBE, RANDOM.standard_normal((2, 5, 2))),
        ),
        (
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            (RANDOM.standard_normal((2, 5, 6, 3)), RANDOM.standard_normal((2, 3, 3, 4))),
        ),
    ],
    "convert_element_type": [(lambda x: x.astype("float32").astype("float64"), (np.float32(X),))],
    "copy": [(lambda x: jnp.array(x, copy=True), (X,))],
    "copy_p": [],  # jnp.copy under some transformations; a row as of copy
    "cos": [(jnp.cos, (X,))],
    "cosh": [(jnp.cosh, (X,))],
    "cumlogsumexp": [(lambda x: lax.cumlogsumexp(x, 1), (X,))],
    "cummax": [(lambda x: lax.cummax(x, 1), (X,)), (lambda x: lax.cummax(x, 0, reverse=True), (X,))],
    "cummin": [(lambda x: lax.cummin(x, 1), (X,))],
    "cumprod": [(lambda x: lax.cumprod(x, 1), (X,)), (lambda x: lax.cumprod(x, 0, reverse=True), (X,))],
    "cumsum": [(lambda x: lax.cumsum(x, 1), (X,)), (lambda x: lax.cumsum(x, 0, reverse=True), (X,))],
    "digamma": [(lax.digamma, (POSITIVE,))],
    "div": [(lax.div, (X, POSITIVE)), (lambda x: x / 3, (X,)), (lax.div, (Z, Z + 3))],
    "dot_general": [
        (jnp.matmul, (X, M)), (jnp.dot, (V, V)), (jnp.matmul, (X, V)), (jnp.matmul, (V, M)),
        (lambda x, y: x @ y.T, (X, Y)), (jnp.matmul, (CUBE, M)),
        (lambda a: jnp.einsum("bij,bkj->bik", a, a), (CUBE,)), (jnp.matmul, (Z, Z.T)),
        (lambda a, m: jnp.einsum("bij,jk->bki", a, m), (CUBE, M)),
        (lambda a: jnp.einsum("bij,bjk->bik", a, jnp.swapaxes(a, 1, 2)), (CUBE,)),
    ],
    "dynamic_slice": [(lambda x: lax.dynamic_slice(x, (1, 2), (2, 2)), (X,))],
    "dynamic_update_slice": [(lambda x, y: lax.dynamic_update_slice(x, y[:2, :1], (1, 2)), (X, Y))],
    "eq": [(lambda x: x == x[0], (X,))],
    "erf": [(lax.erf, (X,))],
    "erf_inv": [(lax.erf_inv, (INSIDE,))],
    "exp": [(jnp.exp, (X,)), (jnp.exp, (Z,))],
    "expm1": [(jnp.expm1, (X,))],
    "floor": [(jnp.floor, (X,))],
    "gather": [
        (lambda x: x[np.array([0, 2, 2])], (X,)), (lambda x: x[:, np.array([1, 1])], (X,)),
        (lambda x: x[np.array([0, 2]), np.array([1, 3])], (X,)), (lambda x: x[np.array([[0, 2], [1, 1]])], (X,)),
        (lambda x: x[:, np.array([2, 0])], (CUBE,)), (lambda x: jnp.take(x, np.array([1, 0, 1]), axis=1), (X,)),
        (lambda x, k: jnp.take_along_axis(x, k, axis=1), (X, WHOLE[:, :2])),
        (lambda x, k: jnp.take_along_axis(x, k, axis=0), (X, np.array([[2, 0, 1, 1]]))),
        (lambda x, k: jnp.take_along_axis(x, k, axis=1), (CUBE, np.array([[[2, 0, 1, 1]], [[0, 0, 2, 1]]]))),
    ],
    "ge": [(lambda x: x >= 0, (X,))],
    "gt": [(lambda x: x > 0, (X,))],
    "imag": [(jnp.imag, (Z,))],
    "integer_pow": [(lambda x: x**3, (X,)), (lambda x: x**-2, (POSITIVE,)), (lambda i: i**2, (WHOLE,))],
    "iota": [(lambda x: x + lax.broadcasted_iota("float64", (3, 4), 1), (X,))],
    "is_finite": [(jnp.isfinite, (X,))],
    "le": [(lambda x: x <= 0, (X,))],
    "lgamma": [(lax.lgamma, (POSITIVE,))],
    "log": [(jnp.log, (POSITIVE,)), (jnp.log, (Z,))],
    "log1p": [(jnp.log1p, (POSITIVE,))],
    "logistic": [(jax.nn.sigmoid, (X,))],
    "lt": [(lambda x: x < 0, (X,))],
    "max": [(lax.max, (X, Y)), (lambda i: lax.max(i, 1), (WHOLE,))],
    "min": [(lax.min, (X, Y))],
    "mul": [(lax.mul, (X, Y)), (lambda x: 2 * x, (X,)), (lax.mul, (Z, Z + 1))],
    "ne": [(lambda x: x != 0, (X,))],
    "neg": [(lax.neg, (X,)), (lax.neg, (WHOLE,))],
    "not": [(lambda x: ~(x > 0), (X,))],
    "optimization_barrier": [(lambda x: lax.optimization_barrier(x) * 2, (X,))],
    "or": [(lambda x: (x > 1) | (x < 0), (X,))],
    "pad": [(lambda x: jnp.pad(x, ((1, 0), (0, 2))), (X,)), (lambda v: jnp.pad(v, 1, constant_values=2.0), (V,))],
    "pow": [(lax.pow, (POSITIVE, X))],
    "real": [(jnp.real, (Z,))],
    "reduce_and": [(lambda x: jnp.all(x > 0, 1), (X,))],
    "reduce_max": [(lambda x: x.max(1), (X,)), (lambda x: x.max(), (X,))],
    "reduce_min": [(lambda x: x.min(0), (X,))],
    "reduce_or": [(lambda x: jnp.any(x > 0, 1), (X,))],
    "reduce_prod": [(lambda x: x.prod(1), (X,)), (lambda x: jnp.prod(x), (X,))],
    "reduce_sum": [(lambda x: x.sum(1), (X,)), (lambda x: x.sum(), (X,)), (lambda x: x.sum((0, 2)), (CUBE,))],
    "rem": [(lambda i: lax.rem(i - 2, jnp.full_like(i, 3)), (WHOLE,))],
    "reshape": [(lambda x: x.reshape(2, 6), (X,)), (lambda x: x.reshape(-1), (CUBE,))],
    "rev": [(lambda x: lax.rev(x, (0,)), (X,)), (lambda x: x[::-1, ::-1], (X,))],
    "rsqrt": [(lax.rsqrt, (POSITIVE,))],
    "scatter-add": [
        (lambda x, u: x.at[np.array([2, 0, 2])].add(u), (X, Y)),
        (lambda v, u: v.at[np.array([1, 1])].add(u), (V, V[:2])),
        (lambda x, u: x.at[np.array([0, 2, 0]), np.array([3, 1, 3])].add(u), (X, V[:3])),
        (lambda x, u: x.at[np.array([[0, 1], [1, 1]])].add(u), (CUBE, RANDOM.standard_normal((2, 2, 3, 4)))),
    ],
    "select_n": [(lambda x, y: jnp.where(x > 0, x, y), (X, Y)), (lambda x: jnp.where(x > 0, 0.0, x), (X,))],
    "sharding_constraint": [],  # of several devices: the identity
    "sign": [(jnp.sign, (X,))],
    "sin": [(jnp.sin, (X,)), (jnp.sin, (Z,))],
    "sinh": [(jnp.sinh, (X,))],
    "slice": [(lambda x: x[1:, ::2], (X,))],
    "sort": [(lambda x: jnp.sort(x, 1), (X,)), (lambda x: x[jnp.argsort(x)], (V,))],
    "split": [(lambda x: jnp.split(x, [1], axis=1), (X,))],
    "sqrt": [(jnp.sqrt, (POSITIVE,)), (jnp.sqrt, (Z,))],
    "square": [(jnp.square, (X,))],
    "squeeze": [(lambda x: jnp.squeeze(x[:1], 0), (X,))],
    "stop_gradient": [],  # the identity to the engine, and a constant to JAX
    "sub": [(lax.sub, (X, Y))],
    "tan": [(jnp.tan, (X,))],
    "tanh": [(jnp.tanh, (X,)), (jnp.tanh, (Z,))],
    "transpose": [(lambda x: x.T, (X,)), (lambda x: jnp.transpose(x, (2, 0, 1)), (CUBE,))],
}  # fmt: skip

ROWS = [
    pytest.param(name, function, inputs, id=f"{name}{number}")
    for name, calls in CALLS.items()
    for number, (function, inputs) in enumerate(calls)
]


def test_every_row_is_held_against_jax() -> None:
    assert set(CALLS) == set(PRIMITIVES)


def of_jax(flat: Any, inputs: Any, starts: Any) -> tuple[list[Any], list[Any]]:
    """The results of a function and the gradients of its floating inputs, as the engine counts them.

    They are compiled in one.
    """
    moved = [k for k, x in enumerate(inputs) if x.dtype.kind in "fc"]

    def both(inputs: Any, starts: Any) -> Any:
        def of_moved(*values: Any) -> Any:
            given = list(inputs)
            for k, value in zip(moved, values, strict=True):
                given[k] = value
            results = flat(*given)
            return [r for r in results if r.dtype.kind in "fc"], results

        _, back, results = jax.vjp(of_moved, *(inputs[k] for k in moved), has_aux=True)
        return results, [jnp.conj(g) for g in back([jnp.conj(s) for s in starts])]

    results, gradients = jax.jit(both)(list(inputs), starts)
    return list(map(np.asarray, results)), list(map(np.asarray, gradients))


def random_like(value: Any) -> Any:
    """Random numbers of the shape and dtype of an array."""
    return np.asarray(RANDOM.standard_normal(value.shape) + 0.3j * RANDOM.standard_normal(value.shape)).astype(
        value.dtype
    ) if value.dtype.kind == "c" else np.asarray(RANDOM.standard_normal(value.shape), value.dtype)  # fmt: skip


@pytest.mark.parametrize(("name", "function", "inputs"), ROWS)
def test_a_row_gives_the_values_and_gradients_of_jax(name: str, function: Any, inputs: Any, monkeypatch: Any) -> None:
    def not_played(self: Any, operands: Any) -> Any:
        raise AssertionError(f"{self.eqn} is not played")

    def flat(*values: Any) -> Any:
        return jax.tree.leaves(function(*values))

    monkeypatch.setattr("gradcheck.backends.jax_program.Equation.compute_by_jax", not_played)
    with jax.enable_x64(True):
        program = JaxProgram(jax.make_jaxpr(flat)(*inputs))
        assert name in {equation.name for part in program.programs() for equation in part.equations}
        leaves = [engine_value(np.asarray(x)) for x in inputs]
        for leaf in leaves:
            leaf.stop_gradient = leaf.array.dtype.kind not in "fc"
        ours = program.run(leaves)
        ends = [t for t in ours if t.array.dtype.kind in "fc"]
        starts = [random_like(t.array) for t in ends]
        theirs, wanted = of_jax(flat, inputs, starts)
    for a, b in zip(map(plain_array, ours), theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    moved = [leaf for leaf in leaves if not leaf.stop_gradient]
    tied = [(end, paddle.to_tensor(s)) for end, s in zip(ends, starts, strict=True) if not end.stop_gradient]
    if not tied:
        assert not any(map(np.any, wanted))
        return
    tensors, given = zip(*tied, strict=True)
    found = paddle.grad(list(tensors), moved, list(given), allow_unused=True)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.zeros_like(b) if a is None else a.array, b, rtol=1e-10, atol=1e-12)
