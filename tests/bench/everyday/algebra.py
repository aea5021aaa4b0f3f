"""Linear algebra, kernels, iterations, quantisers and complex layers, in NumPy and in Paddle operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from everyday.activations import in_numpy, in_paddle

import pylayer.paddle as paddle


def np_linear_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    return g @ w.T, x.T @ g, g.sum(0)


def np_solve_vjp(a: Any, b: Any, y: Any, g: Any) -> Any:
    db = np.linalg.solve(np.tril(a).T, g)
    return -np.tril(db @ y.T), db


def np_logdet_vjp(a: Any, y: Any, g: Any) -> Any:
    return g[:, None, None] * np.linalg.inv(a).swapaxes(-1, -2)


def symmetric(a: Any) -> Any:
    return a @ a.T + len(a) * np.eye(len(a), dtype=a.dtype)


def np_cholesky_vjp(a: Any, y: Any, g: Any) -> Any:
    inverse = np.linalg.inv(y)
    middle = np.tril(y.T @ g)
    middle[np.diag_indices(len(a))] /= 2
    s = inverse.T @ middle @ inverse
    return (s + s.T) @ a


def np_rbf(x: Any, z: Any) -> Any:
    return np.exp(-((x[:, None] - z[None]) ** 2).sum(-1) / 2)


def np_rbf_vjp(x: Any, z: Any, y: Any, g: Any) -> Any:
    weighted = (g * y)[:, :, None] * (x[:, None] - z[None])
    return -weighted.sum(1), weighted.sum(0)


def np_complex_linear_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    return g @ w.conj().T, x.conj().T @ g


def np_power_spectrum_vjp(x: Any, y: Any, g: Any) -> Any:
    n = x.shape[-1]
    return 2 * n * np.fft.ifft(g * np.fft.fft(x, axis=-1), axis=-1)


def np_fake_float32(x: Any, w: Any) -> Any:
    return (x.astype("float32") @ w.astype("float32")).astype(x.dtype)


def bilinear(x: Any, w: Any, z: Any) -> Any:
    return paddle.einsum("bi,oij,bj->bo", x, w, z)


def bilinear_vjp(x: Any, w: Any, z: Any, y: Any, g: Any) -> Any:
    return (
        paddle.einsum("bo,oij,bj->bi", g, w, z),
        paddle.einsum("bo,bi,bj->oij", g, x, z),
        paddle.einsum("bo,oij,bi->bj", g, w, x),
    )


def expert_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    return paddle.einsum("bhe,hde->bhd", g, w), paddle.einsum("bhd,bhe->hde", x, g)


def inverse_vjp(a: Any, y: Any, g: Any) -> Any:
    return -(y.T @ g @ y.T)


def solve_vjp(a: Any, b: Any, y: Any, g: Any) -> Any:
    db = paddle.linalg.solve(a.T, g)
    return -(db @ y.T), db


def rbf(x: Any, z: Any) -> Any:
    return paddle.exp(-((x.unsqueeze(1) - z.unsqueeze(0)) ** 2).sum(-1) / 2)


def rbf_vjp(x: Any, z: Any, y: Any, g: Any) -> Any:
    weighted = (g * y).unsqueeze(-1) * (x.unsqueeze(1) - z.unsqueeze(0))
    return -weighted.sum(1), weighted.sum(0)


def powers(w: Any, v: Any) -> tuple[list[Any], list[Any]]:
    """Vectors and their norms of three steps of v ← wᵀw v / |wᵀw v|."""
    vectors, norms = [v], []
    for _ in range(3):
        u = w.T @ (w @ vectors[-1])
        norms.append(paddle.norm(u))
        vectors.append(u / norms[-1])
    return vectors, norms


def spectral(w: Any, v: Any) -> Any:
    return w / paddle.norm(w @ powers(w, v)[0][-1])


def spectral_vjp(w: Any, v: Any, y: Any, g: Any) -> Any:
    vectors, norms = powers(w, v)
    image = w @ vectors[-1]
    sigma = paddle.norm(image)
    ds = -(g * w).sum() / sigma**2
    dw = g / sigma + ds * paddle.outer(image / sigma, vectors[-1])
    dv = ds * (w.T @ (image / sigma))
    for k in reversed(range(3)):
        du = (dv - vectors[k + 1] * (vectors[k + 1] * dv).sum()) / norms[k]
        before = vectors[k]
        dw = dw + paddle.outer(w @ before, du) + paddle.outer(w @ du, before)
        dv = w.T @ (w @ du)
    return dw, dv


def fixed_point(w: Any, x: Any) -> Any:
    z = paddle.zeros_like(x)
    for _ in range(12):
        z = paddle.tanh(z @ w + x)
    return z


def fixed_point_vjp(w: Any, x: Any, y: Any, g: Any) -> Any:
    states = [paddle.zeros_like(x)]
    for _ in range(12):
        states.append(paddle.tanh(states[-1] @ w + x))
    dw, dx = paddle.zeros_like(w), paddle.zeros_like(x)
    for k in reversed(range(12)):
        d = g * (1 - states[k + 1] ** 2)
        dx, dw, g = dx + d, dw + states[k].T @ d, d @ w.T
    return dw, dx


def newton(a: Any) -> Any:
    """Square roots by Newton's iteration, eight steps."""
    y = (1 + a) / 2
    for _ in range(8):
        y = (y + a / y) / 2
    return y


def complex_product_vjp(a: Any, b: Any, y: Any, g: Any) -> Any:
    return g * b.conj(), g * a.conj()


def modulus_vjp(z: Any, y: Any, g: Any) -> Any:
    return g.astype(z.dtype) * z / y.astype(z.dtype)


def complex_pair(r: Any, *shape: int) -> Any:
    return [*(r.standard_normal((2, *shape)) + 1j * r.standard_normal((2, *shape)))]


def lower(r: Any) -> Any:
    return [np.tril(0.3 * r.standard_normal((8, 8)), -1) + np.diag(r.uniform(1, 2, 8)), r.standard_normal((8, 5))]


LAYERS = [
    in_numpy("linear", forward=lambda x, w, b: x @ w + b, backward=np_linear_vjp, inputs=lambda r: [
        r.standard_normal((16, 24)), r.standard_normal((24, 20)) / 5, r.standard_normal(20)]),
    in_numpy("triangular solve", forward=lambda a, b: np.linalg.solve(np.tril(a), b), backward=np_solve_vjp,
             inputs=lower),
    in_numpy("log-determinant", forward=lambda a: np.linalg.slogdet(a)[1], backward=np_logdet_vjp,
             inputs=lambda r: [r.standard_normal((3, 8, 8)) + 4 * np.eye(8)]),
    in_numpy("cholesky of a product", forward=lambda a: np.linalg.cholesky(symmetric(a)), backward=np_cholesky_vjp,
             inputs=lambda r: [r.standard_normal((8, 8))]),
    in_numpy("rbf kernel", forward=np_rbf, backward=np_rbf_vjp,
             inputs=lambda r: [r.standard_normal((16, 3)), r.standard_normal((12, 3))]),
    in_numpy("quantiser of 8 bits", forward=lambda x: np.round(255 * x) / 255, backward=lambda x, y, g: 0 * g,
             inputs=lambda r: [r.uniform(0, 1, (16, 16))]),
    in_numpy("complex linear", forward=lambda x, w: x @ w, backward=np_complex_linear_vjp, inputs=lambda r: [
        complex_pair(r, 8, 6)[0], complex_pair(r, 6, 10)[0]]),
    in_numpy("power spectrum", forward=lambda x: np.abs(np.fft.fft(x, axis=-1)) ** 2, backward=np_power_spectrum_vjp,
             inputs=lambda r: complex_pair(r, 4, 16)[:1]),
    in_numpy("matrix product in float32", forward=np_fake_float32, coarse=True,
             backward=lambda x, w, y, g: (np_fake_float32(g, w.T), np_fake_float32(x.T, g)),
             inputs=lambda r: [r.standard_normal((16, 24)), r.standard_normal((24, 16)) / 5]),
    in_paddle("bilinear", forward=bilinear, backward=bilinear_vjp, inputs=lambda r: [
        r.standard_normal((8, 6)), r.standard_normal((5, 6, 7)) / 4, r.standard_normal((8, 7))]),
    in_paddle("einsum per head", forward=lambda x, w: paddle.einsum("bhd,hde->bhe", x, w), backward=expert_vjp,
              inputs=lambda r: [r.standard_normal((6, 4, 8)), r.standard_normal((4, 8, 8)) / 3]),
    in_paddle("inverse", forward=paddle.inverse, backward=inverse_vjp,
              inputs=lambda r: [r.standard_normal((10, 10)) + 5 * np.eye(10)]),
    in_paddle("solve", forward=paddle.linalg.solve, backward=solve_vjp,
              inputs=lambda r: [r.standard_normal((8, 8)) + 4 * np.eye(8), r.standard_normal((8, 4))]),
    in_paddle("rbf kernel in operations", forward=rbf, backward=rbf_vjp,
              inputs=lambda r: [r.standard_normal((16, 3)), r.standard_normal((12, 3))]),
    in_paddle("spectral norm, three steps", forward=spectral, backward=spectral_vjp,
              inputs=lambda r: [r.standard_normal((12, 8)), r.standard_normal(8)]),
    in_paddle("fixed point, unrolled", forward=fixed_point, backward=fixed_point_vjp,
              inputs=lambda r: [r.standard_normal((8, 8)) / 8, r.standard_normal((4, 8))]),
    in_paddle("square root by Newton", forward=newton, backward=lambda a, y, g: g / (2 * y),
              inputs=lambda r: [r.uniform(0.3, 4, (8, 16))]),
    in_paddle("quantiser by floor", forward=lambda x: paddle.floor(x * 16) / 16,
              backward=lambda x, y, g: paddle.zeros_like(g), inputs=lambda r: [r.standard_normal((12, 16))]),
    in_paddle("complex product", forward=lambda a, b: a * b, backward=complex_product_vjp,
              inputs=lambda r: complex_pair(r, 6, 8)),
    in_paddle("complex modulus", forward=paddle.abs, backward=modulus_vjp,
              inputs=lambda r: complex_pair(r, 8, 8)[:1]),
]  # fmt: skip
