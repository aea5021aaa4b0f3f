"""What surrounds layers: recomputing, transforms, factors, optimizers, other spellings."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pylayer.paddle as paddle

RANDOM = np.random.default_rng(7)
M = RANDOM.standard_normal((4, 3))


def leaf(values):
    return paddle.to_tensor(values, stop_gradient=False)


# --------------------------------------------------------------------------- derivatives
def test_recomputing_gives_the_same_gradients_and_runs_twice():
    recompute = paddle.distributed.fleet.utils.recompute
    calls = []
    layer = paddle.nn.Linear(3, 3).to(dtype="float64")

    def block(x, scale):
        calls.append(1)
        return paddle.tanh(layer(x)) * scale

    x = leaf(M)
    block(x, 2.0).sum().backward()
    expected = x.grad.numpy(), layer.weight.grad.numpy()
    x.clear_grad(), layer.clear_gradients()
    calls.clear()
    recompute(block, x, 2.0).sum().backward()
    assert len(calls) == 2
    np.testing.assert_allclose(x.grad.numpy(), expected[0])
    np.testing.assert_allclose(layer.weight.grad.numpy(), expected[1])


def test_recomputing_draws_the_same_numbers_again():
    x = leaf(np.ones(1000))
    out = paddle.distributed.fleet.utils.recompute(lambda t: paddle.nn.functional.dropout(t, 0.5), x)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.numpy())


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputing_gives_gradients_of_the_tensors_in_a_tuple(reentrant):
    x, y = leaf(M), leaf(M + 1)
    out = paddle.distributed.fleet.utils.recompute(lambda p, z: p[0] * p[1] * z, (x, y), y, use_reentrant=reentrant)
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (M + 1) ** 2)
    np.testing.assert_allclose(y.grad.numpy(), 2 * M * (M + 1))


@pytest.mark.parametrize(
    ("pair", "message"),
    [((leaf(M), 1), "tensor and non-tensor"), ((leaf(M), paddle.to_tensor(M)), "different stop gradient")],
)
def test_recomputing_refuses_a_mixed_tuple(pair, message):
    with pytest.raises(ValueError, match=message):
        paddle.distributed.fleet.utils.recompute(lambda p: p[0] * p[1], pair)


@pytest.mark.parametrize("more", [{}, {"n": 1}], ids=["Tensors alone", "a number too"])
def test_recomputing_hands_a_dict_on_as_it_is(more):
    x = leaf(M)
    recompute = paddle.distributed.fleet.utils.recompute
    with pytest.warns(UserWarning, match="Tensors in a dict"):
        out = recompute(lambda a, options: a * options["w"], x, {"w": paddle.to_tensor(M), **more})
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), M)


WAYS = {
    "closure": lambda f, x, y: (lambda a: f(a, y), (x.detach(),), {}),
    "keyword": lambda f, x, y: (f, (x,), {"y": y}),
    "dict": lambda f, x, y: (lambda d: f(d["x"], d["y"]), ({"x": x, "y": y},), {}),
    "list": lambda f, x, y: (lambda pair: f(*pair), ([x, y],), {}),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_recomputing_without_reentrance_gives_gradients_of_whatever_is_read(way):
    calls = []

    def function(x, y):
        calls.append(1)
        return {"out": [paddle.tanh(x * y) * y]}

    found = []
    for again in (False, True):
        x, y = leaf(M), leaf(M + 1)
        block, args, kwargs = way(function, x, y)
        if again:
            calls.clear()
            out = paddle.distributed.fleet.utils.recompute(block, *args, use_reentrant=False, **kwargs)
        else:
            out = block(*args, **kwargs)
        wanted = [t for t in (x, y) if t is y or block is function]
        gradients = paddle.grad(out["out"][0].sum(), wanted, create_graph=True)
        found.append([*gradients, *paddle.grad(gradients[-1].sum(), wanted)])
    assert len(calls) == 2
    for plain, recomputed in zip(*found, strict=True):
        np.testing.assert_allclose(recomputed.numpy(), plain.numpy())


def test_a_function_made_static_runs_eagerly():
    seen = []

    @paddle.jit.to_static
    def f(x):
        seen.append(float(x.sum()))
        return x * 2

    assert f(paddle.ones([2])).numpy().tolist() == [2.0, 2.0]
    assert seen == [2.0]
    assert "eagerly" in paddle.jit.to_static.__doc__


# --------------------------------------------------------------------------- against NumPy
Z = M + 1j * RANDOM.standard_normal((4, 3))
TRANSFORMS = {
    **dict.fromkeys(("fft", "ifft", "fft2", "ifft2", "fftn", "ifftn", "irfft", "irfft2", "irfftn", "hfft"), Z),
    **dict.fromkeys(("rfft", "rfft2", "rfftn", "ihfft"), M),
}


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, norm):
    values = TRANSFORMS[name]
    found = getattr(paddle.fft, name)(paddle.to_tensor(values), norm=norm).numpy()
    np.testing.assert_allclose(found, getattr(np.fft, name)(values, norm=norm), atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("entry", [np.inf, -np.inf, np.nan])
def test_singular_values_of_an_infinite_matrix_are_refused_where_lapack_never_ends(entry, full):
    values = np.ones((3, 4))
    values[1, 2] = entry
    with pytest.raises(ValueError, match="finite entries"):
        paddle.linalg.svd(paddle.to_tensor(values), full_matrices=full)


def test_factors_multiply_to_the_matrix():
    for values in (M, M.T, M[:3]):
        x = paddle.to_tensor(values)
        q, r = paddle.linalg.qr(x)
        np.testing.assert_allclose((q @ r).numpy(), values, atol=1e-12)
        u, s, vh = paddle.linalg.svd(x)
        np.testing.assert_allclose(((u * s) @ vh).numpy(), values, atol=1e-12)
        np.testing.assert_allclose(paddle.linalg.pinv(x).numpy(), np.linalg.pinv(values), atol=1e-12)
    square = M[:3] @ M[:3].T
    w, v = paddle.linalg.eigh(paddle.to_tensor(square))
    np.testing.assert_allclose(((v * w) @ v.T).numpy(), square, atol=1e-12)
    w, v = paddle.linalg.eig(paddle.to_tensor(M[:3]))
    np.testing.assert_allclose(M[:3] @ v.numpy(), v.numpy() * w.numpy(), atol=1e-12)


@pytest.mark.parametrize("x", [0.1, 0.7, 1.0, 2.5, 17.3])
def test_special_functions_by_what_defines_them(x):
    def of(name, *rest):
        return float(getattr(paddle, name)(paddle.to_tensor(np.array(x)), *rest))

    def at(name, value, *rest):
        return float(getattr(paddle, name)(paddle.to_tensor(np.array(value)), *rest))

    assert at("digamma", x + 1) == pytest.approx(of("digamma") + 1 / x, rel=1e-13)  # A. and S., 6.3.5
    assert at("polygamma", x + 1, 2) == pytest.approx(of("polygamma", 2) + 2 / x**3, rel=1e-12)  # 6.4.6
    assert of("lgamma") == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-15)
    assert of("i0") == pytest.approx(
        np.mean(np.exp(x * np.cos(np.pi * (np.arange(200) + 0.5) / 200))), rel=1e-13
    )  # 9.6.16
    assert of("i0e") == pytest.approx(of("i0") * math.exp(-x), rel=1e-13)
    assert math.erf(at("erfinv", math.tanh(x) * 0.99)) == pytest.approx(math.tanh(x) * 0.99, rel=1e-14)


# --------------------------------------------------------------------------- training
@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adam"])
def test_every_optimizer_descends_and_goes_on_from_its_state(name):
    def trained(steps, saved=None):
        weight = paddle.create_parameter([2], "float64", default_initializer=paddle.nn.initializer.Assign([3.0, -2.0]))
        weight.name = "w"
        optimizer = getattr(paddle.optimizer, name)(learning_rate=0.05, parameters=[weight])
        if saved is not None:
            weight.set_value(saved[0])
            optimizer.set_state_dict(saved[1])
        for _ in range(steps):
            (weight * weight).sum().backward()
            optimizer.step()
            optimizer.clear_grad()
        return weight.numpy(), optimizer.state_dict()

    whole, _ = trained(6)
    assert (whole**2).sum() < 13
    np.testing.assert_allclose(trained(3, trained(3))[0], whole, rtol=1e-12)


def test_other_words_for_arguments():
    x = paddle.to_tensor(M)
    np.testing.assert_array_equal(paddle.mean(input=x, dim=1, keepdim=True).numpy(), M.mean(1, keepdims=True))
    np.testing.assert_array_equal(x.sum(dim=0).numpy(), M.sum(0))
    with pytest.raises(TypeError, match="dim"):
        x.sum(axis=0, dim=1)
