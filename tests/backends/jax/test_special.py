"""What functions of JAX may look like beside a plain custom_vjp, and what is said of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import gradcheck  # noqa: E402

RANDOM = np.random.default_rng(0)
X, V = RANDOM.standard_normal((3, 4)), RANDOM.standard_normal(4)
RULES = "no hand-written backward: JAX's own rules were checked"


def custom(primal: Any, fwd: Any, bwd: Any, **options: Any) -> Any:
    function = jax.custom_vjp(primal, **options)
    function.defvjp(fwd, bwd)
    return function


square = custom(lambda x: x * x, lambda x: (x * x, x), lambda x, g: (2 * x * g,))
cube = custom(lambda x: x**3, lambda x: (x**3, x), lambda x, g: (2 * x * x * g,))
rounded = custom(lambda x: jnp.round(x), lambda x: (jnp.round(x), None), lambda _, g: (g,))


def codes(result: Any) -> list[str]:
    return [cause.code for cause in result.diagnosis]


# --------------------------------------------------------------------------- what is checked
RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "an array of JAX's": (square, (jnp.asarray(V, "float32"),)),
    "float16": (square, (V.astype("float16"),)),
    "bfloat16": (square, (jnp.asarray(V, "bfloat16"),)),
    "a list of arrays": (lambda xs: square(xs[0]) * xs[1], ([V, V + 1],)),
    "jit": (jax.jit(square), (V,)),
    "vmap": (jax.vmap(square), (V,)),
    "checkpoint": (jax.checkpoint(square), (V,)),
    "beside an integer output": (lambda x: (square(x), jnp.argmax(x)), (V,)),
    "a static argument": (
        custom(
            lambda n, x: x**n, lambda n, x: (x**n, x), lambda n, x, g: (n * x ** (n - 1) * g,), nondiff_argnums=(0,)
        ),
        (3, V),
    ),
    "a key of random numbers": (lambda key, x: square(x) * jax.random.normal(key, x.shape), (jax.random.key(1), X)),
    "random numbers inside": (lambda x: square(x) * jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), (X,)),
    "an empty scan": (lambda x: square(jax.lax.scan(lambda c, r: (c + r, c), x[0], x[:0])[0]), (X,)),
    "a fori_loop": (lambda x: jax.lax.fori_loop(0, 3, lambda _, s: jnp.sin(s) * x, square(x)), (V,)),
    "a loop of too many steps": (
        custom(
            lambda x: jax.lax.while_loop(lambda s: s[1] < 20_000, lambda s: (s[0] * 1.0, s[1] + 1), (x, 0))[0],
            lambda x: (x, None), lambda _, g: (g,),
        ),
        (V,),
    ),
    "complex": (square, (V + 1j * V[::-1],)),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name: str) -> None:
    function, inputs = RIGHT[name]
    result = gradcheck.check(function, *inputs)
    assert result.verdict == "PASS", str(result)


@pytest.mark.parametrize("batched", [jax.vmap(square), jax.vmap(jax.vmap(square)), lambda x: jax.vmap(square)(x)])
def test_a_backward_runs_in_a_batch_of_it(batched: Any) -> None:
    def layer(x: Any) -> Any:
        return batched(x) * 2

    result = gradcheck.check(layer, X)
    assert (result.verdict, result.marks) == ("PASS", ())


def test_a_product_in_bfloat16_of_which_xla_leaves_out_the_rounding() -> None:
    def product(x: Any, w: Any) -> Any:
        return (x.astype("bfloat16") @ w.astype("bfloat16")).astype("float32")

    def backward(saved: Any, g: Any) -> Any:
        x, w = (value.astype("bfloat16") for value in saved)
        g = g.astype("bfloat16")
        return (g @ w.T).astype("float32"), (x.T @ g).astype("float32")

    layer = custom(product, lambda x, w: (product(x, w), (x, w)), backward)
    x, w = (np.random.default_rng(k).standard_normal(s).astype("float32") for k, s in enumerate([(3, 4), (4, 2)]))
    assert gradcheck.check(layer, x, w).verdict == "PASS"


def test_a_complex_gradient_is_not_conjugated() -> None:
    wrong = custom(lambda z: z * z, lambda z: (z * z, z), lambda z, g: (2 * jnp.conj(z) * g,))
    assert gradcheck.check(wrong, V + 1j * V[::-1]).verdict == "FAIL"


def test_a_function_without_a_hand_written_backward_is_marked() -> None:
    result = gradcheck.check(lambda x: jnp.sin(x) * jnp.exp(x), V)
    assert (result.verdict, result.marks) == ("PASS", (RULES,))


def test_a_kink_is_told() -> None:
    result = gradcheck.check(lambda x: jax.nn.relu(x), np.array([0.0, 1.0, -1.0]))
    assert (result.verdict, codes(result)) == ("KINK", ["GC120"])


@jax.custom_jvp
def softplus(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


@jax.custom_jvp
def softplus_of_minus(x: Any) -> Any:
    return jnp.log1p(jnp.exp(x))


softplus.defjvp(lambda p, t: (softplus(p[0]), jax.nn.sigmoid(p[0]) * t[0]))
softplus_of_minus.defjvp(lambda p, t: (softplus_of_minus(p[0]), jax.nn.sigmoid(-p[0]) * t[0]))


def test_custom_jvp() -> None:
    assert (gradcheck.check(softplus, V).verdict, gradcheck.check(softplus, V).marks) == ("PASS", ())
    result = gradcheck.check(softplus_of_minus, V)
    assert result.verdict == "FAIL"
    assert "jnp.log1p(jnp.exp(x))" in result.diagnosis[0].source_line


def test_second_derivatives() -> None:
    stopped = custom(
        jnp.tanh, lambda x: (jnp.tanh(x), jax.lax.stop_gradient(jnp.tanh(x))), lambda y, g: (g * (1 - y**2),)
    )
    assert gradcheck.check(square, V, order=2)
    assert codes(gradcheck.check(stopped, V, order=2))[0] == "GC140"


def test_what_is_not_meant_as_the_derivative() -> None:
    assert gradcheck.check(rounded, V).verdict == "FAIL"
    assert gradcheck.check(rounded, V, expect="straight-through").verdict == "PASS"
    assert gradcheck.check(cube, V, expect="differs").verdict == "PASS"


# --------------------------------------------------------------------------- contracts
def test_fwd_and_the_function_agree() -> None:
    other = custom(jnp.tanh, lambda x: (1.01 * jnp.tanh(x), x), lambda x, g: (1.01 * g * (1 - jnp.tanh(x) ** 2),))
    result = gradcheck.check(other, V)
    assert (result.verdict, codes(result)) == ("FAIL", ["GC139"])
    assert "fwd returns" in str(result)


def test_a_jvp_rule_and_the_function_agree() -> None:
    @jax.custom_jvp
    def own(x: Any) -> Any:
        return jnp.sin(x)

    own.defjvp(lambda p, t: (jnp.cos(p[0]), jnp.cos(p[0]) * t[0]))
    assert codes(gradcheck.check(own, V)) == ["GC139"]


@pytest.mark.parametrize(
    "bwd", [lambda res, g: (g * res[1], g * res[0]), lambda res, g: (g * res[1],)], ids=["shape", "number"]
)
def test_gradients_that_jax_refuses(bwd: Any) -> None:
    function = custom(lambda x, w: x * w, lambda x, w: (x * w, (x, w)), bwd)
    result = gradcheck.check(function, X, V)
    assert (result.verdict, codes(result)) == ("FAIL", ["GC137"])


def test_none_is_a_gradient_of_zero() -> None:
    function = custom(lambda x, w: x * w, lambda x, w: (x * w, (x, w)), lambda res, g: (g * res[1], None))
    assert codes(gradcheck.check(function, X, X)) == ["GC108"]


def test_a_backward_that_never_ran_is_not_green() -> None:
    def other_branch(x: Any) -> Any:
        return square(x) if x.shape[0] > 100 else 2 * x

    result = gradcheck.check(other_branch, V)
    assert (result.verdict, codes(result)) == ("INCONCLUSIVE", ["GC125"])


# --------------------------------------------------------------------------- what nothing sees
def sine_outside(bwd: Any) -> Any:
    """A sine that is computed by a callback, which JAX does not differentiate."""

    def primal(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return custom(primal, lambda x: (primal(x), x), bwd)


def test_callbacks_are_checked_by_differences() -> None:
    assert gradcheck.check(sine_outside(lambda x, g: (jnp.cos(x) * g,)), V).verdict == "PASS"
    assert gradcheck.check(sine_outside(lambda x, g: (jnp.sin(x) * g,)), V).verdict == "FAIL"


primals = [lambda x: x**2, lambda x: x**3]
unused = custom(primals[0], lambda x: (x**2, x), lambda x, g: (2 * x * g,))
used = custom(primals[1], lambda x: (x**3, x), lambda x, g: (3 * x * x * g,))


def test_two_functions_on_a_line_are_two() -> None:
    either = gradcheck.check(lambda x: unused(x) if x.ndim > 1 else used(x), V)
    assert either.marks == ("backward of <lambda> did not run",)
    both = gradcheck.check(lambda x: unused(x) + used(x), V)
    assert (both.verdict, both.marks) == ("PASS", ())


class Weights(NamedTuple):
    w: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclass
class Parameters:
    w: Any
    b: Any


@jax.tree_util.register_pytree_node_class
class Registered(Parameters):
    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.w, self.b), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any, Any]) -> Registered:
        return cls(*children)


PLACES = {Weights: "p[1]", Parameters: "p.b", Registered: "p[<flat index 1>]"}


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("is_nested", [False, True])
def test_arrays_in_registered_classes_are_checked(kind: Any, is_nested: bool) -> None:
    def affine(factor: float) -> Any:
        return custom(
            lambda x, p: jnp.tanh(x * p.w + p.b),
            lambda x, p: (jnp.tanh(x * p.w + p.b), (x, p)),
            lambda res, g: (slope(*res, g) * res[1].w, kind(slope(*res, g) * res[0], factor * slope(*res, g))),
        )

    def slope(x: Any, p: Any, g: Any) -> Any:
        return g * (1 - jnp.tanh(x * p.w + p.b) ** 2)

    def check(factor: float) -> Any:
        function, given = affine(factor), kind(V + 2, jnp.asarray(V / 2))
        if is_nested:
            return gradcheck.check(lambda x, p: function(x, p["of layer"]), V, {"of layer": given})
        return gradcheck.check(function, V, given)

    assert check(1.0).verdict == "PASS"
    wrong = check(2.0)
    assert wrong.verdict == "FAIL"
    place = PLACES[kind].replace("p", "p['of layer']", 1) if is_nested else PLACES[kind]
    assert f"gradient of {place}:" in str(wrong)


def test_what_jax_raises_comes_through() -> None:
    with pytest.raises(jax.errors.TracerBoolConversionError):
        gradcheck.check(lambda x: square(x) if x.sum() > -100 else 2 * x, V)
    with pytest.raises(AttributeError, match="No VJP defined"):
        gradcheck.check(jax.custom_vjp(lambda x: 2 * x), V)


def test_an_engine_that_computes_otherwise_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the engine's result is another than JAX's, what is checked is JAX's, by differences."""
    from gradcheck.backends import jax_primitives

    monkeypatch.setitem(jax_primitives.PRIMITIVES, "sin", lambda x, **_: x * 1.0)
    right = custom(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    wrong = custom(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, g: (g * 1.0,))
    assert gradcheck.check(right, V).verdict == "PASS"
    assert gradcheck.check(wrong, V).verdict == "FAIL"


# --------------------------------------------------------------------------- lines
@jax.jit
def inner(x: Any) -> Any:
    y = jnp.tanh(x)
    return y * x


def helper(x: Any) -> Any:
    return inner(jnp.sin(x))


def inner_slope(x: Any, slope: Any) -> Any:
    return slope(jnp.tanh(x)) * x + jnp.tanh(x)


@pytest.mark.parametrize(
    ("slope", "line"),
    [
        (lambda y: 1 + y**2, "y = jnp.tanh(x)"),
        (lambda y: 1.0, "y = jnp.tanh(x)"),
    ],
)
def test_the_line_in_jitted_code_that_others_call_as_well(slope: Any, line: str) -> None:
    inner(V)  # traced by another caller before
    function = custom(helper, lambda x: (helper(x), x), lambda x, g: (g * inner_slope(jnp.sin(x), slope) * jnp.cos(x),))
    result = gradcheck.check(function, V)
    assert result.verdict == "FAIL"
    cause = result.diagnosis[0]
    assert cause.source_line.strip() == line
    assert cause.source_line[cause.column : cause.end_column] == "jnp.tanh(x)"
    assert f"{Path(__file__).name}:" in cause.line


def test_a_function_of_jax_s_has_the_line_of_its_call() -> None:
    def primal(x: Any) -> Any:
        p = jax.nn.softmax(x)
        return p * x

    def bwd(x: Any, g: Any) -> Any:
        p = jax.nn.softmax(x)
        return (g * p + p * (g * x),)  # softmax's sum is left out

    jax.nn.softmax(V)
    result = gradcheck.check(custom(primal, lambda x: (primal(x), x), bwd), V)
    assert result.diagnosis[0].source_line.strip() == "p = jax.nn.softmax(x)"


# --------------------------------------------------------------------------- where it is asked for
MODULE = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def gate(x, w):
    y = jnp.tanh(x)
    return y * w


def fwd(x, w):
    return gate(x, w), (x, w)


def bwd(residuals, g):
    x, w = residuals
    y = jnp.tanh(x)
    return g * w * SLOPE, g * y


gate.defvjp(fwd, bwd)
"""
SPEC = """\
schema: gradcheck/v1
framework: jax
scenarios:
  - id: gate
    layer: {ref: "own_jax:gate"}
    inputs: {x: [3, 4], w: [3, 4]}
"""


@pytest.mark.parametrize(("slope", "code"), [("(1 - y**2)", 0), ("(1 + y**2)", 1)])
def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slope: str, code: int) -> None:
    from warm import python

    (tmp_path / "own_jax.py").write_text(MODULE.replace("SLOPE", slope))
    (tmp_path / "own.grad.yaml").write_text(SPEC)
    check = ["-m", "gradcheck", "check", "own_jax:gate", "-i", "x=3x4", "-i", "w=3x4"]
    run = ["-m", "gradcheck", "run", "own.grad.yaml", "-b", "jax", "--allow-code"]
    for arguments in (check, run):
        done = python(*arguments, folder=tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
        assert "gate@jax" in done.stdout
        if code:
            assert "y = jnp.tanh(x)" in done.stdout


def test_a_numpy_pair_is_not_jax_s(tmp_path: Path) -> None:
    pair = functools.partial(gradcheck.check, lambda x: np.sin(x), V)
    assert pair(backward=lambda x, g: g * np.cos(x))
    assert not pair(backward=lambda x, g: g * np.sin(x))


def test_jax_is_imported_only_for_what_is_its_own(tmp_path: Path) -> None:
    from warm import python

    program = """
        import sys, numpy as np, gradcheck
        assert gradcheck.check(np.sin, np.ones(3), backward=lambda x, g: g * np.cos(x))
        assert gradcheck.check("own_pylayer:Own", np.ones(3))
        assert not {"jax", "torch", "autograd"} & set(sys.modules)
    """
    layer = """
        from paddle.autograd import PyLayer
        class Own(PyLayer):
            @staticmethod
            def forward(ctx, x): return 2 * x
            @staticmethod
            def backward(ctx, dy): return 2 * dy
    """
    (tmp_path / "own_pylayer.py").write_text(dedent(layer))
    done = python("-c", dedent(program), folder=tmp_path)
    assert done.returncode == 0, done.stderr
