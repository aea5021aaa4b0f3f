"""Layers that nobody has tuned a checker by: one row each, with a right backward and everyday mistakes in it.

``forward(*inputs)`` and ``backward(*inputs, y, g)`` are written once with ``m`` for the module of arrays; the bench
writes them out as a PyLayer with ``np`` or ``paddle`` in its place. A mistake is a piece of the backward's text and
what stands there by mistake; a third text, where given, is part of the line of the forward that the cause should name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

m: Any = np

Mistake = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True)
class Fresh:
    """A layer; `inputs` draws float64 and integer arrays from a generator. `halves`: fit for float16 and bfloat16."""

    name: str
    forward: Callable[..., Any]
    backward: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Sequence[Any]]
    mistakes: Sequence[Mistake]
    halves: bool = True


FRESH: list[Fresh] = []


def row(name: str, inputs: Any, mistakes: Sequence[Mistake], halves: bool = True) -> Callable[[type], type]:
    """Put the class's ``forward`` and ``backward`` into the list."""

    def put(layer: Any) -> Any:
        FRESH.append(Fresh(name, layer.forward, layer.backward, inputs, mistakes, halves))
        return layer

    return put


def normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Any]]:
    return lambda r: [r.standard_normal(s) for s in shapes]


# --------------------------------------------------------------------------- activations
@row(
    "snake, per channel",
    lambda r: [r.normal(size=(4, 16, 32)), r.uniform(0.5, 2, 16)],
    [
        ("m.sin(2 * a * x)", "m.sin(a * x)"),
        ("- s * s / (a * a)", "+ s * s / (a * a)"),
        ("x * m.sin(2 * a * x) / a - ", "0 - "),
        (".sum((0, 2))", ".mean((0, 2))"),
        ("1 + m", "m"),
    ],
)
class Snake:
    def forward(x: Any, alpha: Any) -> Any:
        a = alpha[:, None]
        s = m.sin(a * x)
        return x + s * s / a

    def backward(x: Any, alpha: Any, y: Any, g: Any) -> Any:
        a = alpha[:, None]
        s = m.sin(a * x)
        dx = g * (1 + m.sin(2 * a * x))
        da = g * (x * m.sin(2 * a * x) / a - s * s / (a * a))
        return dx, da.sum((0, 2))


@row(
    "bent identity with gain",
    lambda r: [r.normal(size=(64, 48)), r.uniform(0.5, 1.5, 48), r.normal(size=48)],
    [
        ("x / (2 * r) + 1", "x / r + 1"),
        ("m.sqrt(x * x + 1)", "m.sqrt(x * x) + 1"),
        ("gain * (x", "(x"),
        ("g.sum(0)", "g.mean(0)"),
        ("(r - 1) / 2 + x", "(r + 1) / 2 + x"),
    ],
)
class BentIdentity:
    def forward(x: Any, gain: Any, bias: Any) -> Any:
        return gain * ((m.sqrt(x * x + 1) - 1) / 2 + x) + bias

    def backward(x: Any, gain: Any, bias: Any, y: Any, g: Any) -> Any:
        r = m.sqrt(x * x + 1)
        dx = g * gain * (x / (2 * r) + 1)
        dgain = (g * ((r - 1) / 2 + x)).sum(0)
        return dx, dgain, g.sum(0)


@row(
    "squareplus with learned b",
    lambda r: [r.normal(size=(32, 64)) * 2, np.array([1.5])],
    [
        ("(1 + x / r)", "(1 - x / r)"),
        ("/ (4 * r)", "/ (2 * r)"),
        ("+ b)", "+ 4)"),
        ("0.5 * g * (1", "g * (1"),
        ("x / r)", "y / r)"),
    ],
)
class Squareplus:
    def forward(x: Any, b: Any) -> Any:
        return 0.5 * (x + m.sqrt(x * x + b))

    def backward(x: Any, b: Any, y: Any, g: Any) -> Any:
        r = m.sqrt(x * x + b)
        dx = 0.5 * g * (1 + x / r)
        db = (g / (4 * r)).sum()
        return dx, db.reshape((1,))


@row(
    "generalised logistic",
    lambda r: [r.normal(size=(20, 50)), r.uniform(0.5, 2, 50), r.uniform(0.5, 2, 50)],
    [
        ("a * b * e", "a * e"),
        ("-m.log(1 + e) * y", "m.log(1 + e) * y"),
        ("a * x * e", "x * e"),
        ("y / (1 + e) * g\n", "y * g\n"),
        ("(g * -m.log(1 + e) * y).sum(0)", "(g * -m.log(1 + e) * y).mean(0)"),
    ],
)
class GeneralisedLogistic:
    def forward(x: Any, a: Any, b: Any) -> Any:
        e = m.exp(-b * x)
        return (1 + e) ** (-a)

    def backward(x: Any, a: Any, b: Any, y: Any, g: Any) -> Any:
        e = m.exp(-b * x)
        u = y / (1 + e) * g
        dx = a * b * e * u
        da = (g * -m.log(1 + e) * y).sum(0)
        db = (a * x * e * u).sum(0)
        return dx, da, db


@row(
    "maxout of three pieces",
    lambda r: [r.normal(size=(12, 10)), r.normal(size=(3, 10, 14)), r.normal(size=(3, 1, 14))],
    [
        ("z == z.max(0)", "z == z.min(0)"),
        ("h.sum(1, keepdims=True)", "h.mean(1, keepdims=True)"),
        ("z = x @ w + b\n", "z = x @ w\n"),
        ("m.where(z == z.max(0), g, 0 * z)", "m.where(z > 0, g, 0 * z)"),
        ("x, h)", "x, h * 1.5)"),
    ],
)
class Maxout:
    def forward(x: Any, w: Any, b: Any) -> Any:
        z = x @ w + b
        return z.max(0)

    def backward(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
        z = x @ w + b
        h = m.where(z == z.max(0), g, 0 * z)
        dx = m.einsum("kno,kdo->nd", h, w)
        dw = m.einsum("nd,kno->kdo", x, h)
        return dx, dw, h.sum(1, keepdims=True)


@row(
    "reglu",
    normal((16, 20), (20, 24), (20, 24)),
    [
        ("b > 0", "a > 0"),
        ("g * a * gate", "g * a"),
        ("x.T @ da", "x.T @ db"),
        ("da @ u.T + db @ v.T", "da @ u.T"),
        ("g * m.clip(b, 0.0, None)", "g * b"),
    ],
)
class ReGLU:
    def forward(x: Any, u: Any, v: Any) -> Any:
        a, b = x @ u, x @ v
        return a * m.clip(b, 0.0, None)

    def backward(x: Any, u: Any, v: Any, y: Any, g: Any) -> Any:
        a, b = x @ u, x @ v
        gate = (b > 0).astype(x.dtype)
        da = g * m.clip(b, 0.0, None)
        db = g * a * gate
        dx = da @ u.T + db @ v.T
        return dx, x.T @ da, x.T @ db


@row(
    "asinh compression with scale",
    lambda r: [r.normal(size=(8, 16, 16)) * 4, r.uniform(0.5, 3, (16, 1))],
    [
        ("s * s * x * x + 1", "s * x * x + 1"),
        ("g * s / q", "g / q"),
        ("(0, 2)", "(0, 1)"),
        ("x / q", "s / q"),
        ("m.sqrt(s * s", "(s * s"),
    ],
)
class Asinh:
    def forward(x: Any, s: Any) -> Any:
        return m.asinh(s * x)

    def backward(x: Any, s: Any, y: Any, g: Any) -> Any:
        q = m.sqrt(s * s * x * x + 1)
        dx = g * s / q
        ds = (g * (x / q)).sum((0, 2)).reshape((16, 1))
        return dx, ds


# --------------------------------------------------------------------------- losses
@row(
    "log-cosh loss, weighted",
    lambda r: [r.normal(size=(40, 30)), r.normal(size=(40, 30)), r.uniform(0.2, 1, 30)],
    [
        ("m.tanh(d) * w", "m.tanh(d)"),
        ("-dx", "dx"),
        ("/ 1200", "/ 40"),
        ("- 0.6931471805599453", "- 0.0"),
        (".sum(0)", ".mean(0)"),
    ],
)
class LogCosh:
    def forward(x: Any, t: Any, w: Any) -> Any:
        d = x - t
        each = m.abs(d) + m.log1p(m.exp(-2 * m.abs(d))) - 0.6931471805599453
        return (w * each).mean()

    def backward(x: Any, t: Any, w: Any, y: Any, g: Any) -> Any:
        d = x - t
        dx = g * m.tanh(d) * w / 1200
        each = m.abs(d) + m.log1p(m.exp(-2 * m.abs(d))) - 0.6931471805599453
        dw = (g * each / 1200).sum(0)
        return dx, -dx, dw


@row(
    "Student-t likelihood",
    lambda r: [r.normal(size=(30, 20)), r.normal(size=(30, 20)), r.normal(size=20) * 0.3],
    [
        ("(nu + 1) * z", "nu * z"),
        ("z * z / nu", "z * z"),
        ("1 - (nu + 1)", "(nu + 1)"),
        (".sum(0)", ".mean(0)"),
        ("m.exp(-ls)", "m.exp(ls)"),
    ],
)
class StudentT:
    def forward(x: Any, mu: Any, ls: Any) -> Any:
        nu = 5.0
        z = (x - mu) * m.exp(-ls)
        return ls + 0.5 * (nu + 1) * m.log1p(z * z / nu)

    def backward(x: Any, mu: Any, ls: Any, y: Any, g: Any) -> Any:
        nu = 5.0
        z = (x - mu) * m.exp(-ls)
        dz = g * (nu + 1) * z / (nu * (1 + z * z / nu))
        dx = dz * m.exp(-ls)
        dls = g * (1 - (nu + 1) * z * z / (nu * (1 + z * z / nu)))
        return dx, -dx, dls.sum(0)


@row(
    "Tukey's biweight",
    lambda r: [r.normal(size=(30, 40)) * 3, r.normal(size=(30, 40))],
    [
        ("< c", "> c"),
        ("(1 - (r / c) ** 2) ** 2", "(1 - (r / c) ** 2)"),
        ("c = 4.685", "c = 4.0"),
        ("return d, -d", "return d, d"),
        ("g * r * (1", "g * (1"),
    ],
)
class Tukey:
    def forward(x: Any, t: Any) -> Any:
        c = 4.685
        r = x - t
        inside = c * c / 6 * (1 - (1 - (r / c) ** 2) ** 3)
        return m.where(m.abs(r) < c, inside, 0 * r + c * c / 6)

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        c = 4.685
        r = x - t
        d = m.where(m.abs(r) < c, g * r * (1 - (r / c) ** 2) ** 2, 0 * r)
        return d, -d


@row(
    "pinball loss of five quantiles",
    lambda r: [r.normal(size=(60, 5)), r.normal(size=(60, 1)), np.arange(1, 6)],
    [
        ("tau - 1", "1 - tau"),
        ("e > 0", "e < 0"),
        ("/ 60", "/ 300"),
        ("/ 6", "/ 5"),
        (".sum(-1, keepdims=True)", ".mean(-1, keepdims=True)"),
    ],
)
class Pinball:
    def forward(q: Any, t: Any, k: Any) -> Any:
        tau = k.astype(q.dtype) / 6
        e = t - q
        return m.where(e > 0, tau * e, (tau - 1) * e).sum(-1).mean()

    def backward(q: Any, t: Any, k: Any, y: Any, g: Any) -> Any:
        tau = k.astype(q.dtype) / 6
        e = t - q
        de = g * m.where(e > 0, tau + 0 * e, tau - 1 + 0 * e) / 60
        return -de, de.sum(-1, keepdims=True), None


@row(
    "wing loss of landmarks",
    lambda r: [r.normal(size=(12, 20, 2)) * 3, r.normal(size=(12, 20, 2)), r.uniform(0.5, 1, 20)],
    [
        ("/ (eps + a)", "/ eps"),
        ("m.sign(d)", "1"),
        ("a < 2.0", "a < 4.0"),
        ("v[:, None] *", ""),
        ("/ (eps + a)", "/ (1 + a)"),
    ],
)
class Wing:
    def forward(p: Any, t: Any, v: Any) -> Any:
        eps, c = 0.5, 2.0 - 2.0 * 1.6094379124341003
        d = p - t
        a = m.abs(d)
        each = m.where(a < 2.0, 2.0 * m.log1p(a / eps), a - c)
        return (v[:, None] * each).sum((1, 2))

    def backward(p: Any, t: Any, v: Any, y: Any, g: Any) -> Any:
        eps, c = 0.5, 2.0 - 2.0 * 1.6094379124341003
        d = p - t
        a = m.abs(d)
        each = m.where(a < 2.0, 2.0 * m.log1p(a / eps), a - c)
        slope = m.where(a < 2.0, 2.0 / (eps + a), 1 + 0 * a)
        dp = g[:, None, None] * v[:, None] * slope * m.sign(d)
        dv = (g[:, None, None] * each).sum((0, 2))
        return dp, -dp, dv


@row(
    "soft dice per class",
    lambda r: [r.normal(size=(4, 6, 8, 8)), r.integers(0, 2, (4, 6, 8, 8))],
    [
        ("2 * t / u", "t / u"),
        ("- i / (u * u)", "+ i / (u * u)"),
        ("p * (1 - p)", "p"),
        (" - i / (u * u)", ""),
        ("i = 2 * ", "i = "),
    ],
)
class Dice:
    def forward(x: Any, mask: Any) -> Any:
        t = mask.astype(x.dtype)
        p = 1 / (1 + m.exp(-x))
        i = 2 * (p * t).sum((2, 3)) + 1
        u = p.sum((2, 3)) + t.sum((2, 3)) + 1
        return 1 - i / u

    def backward(x: Any, mask: Any, y: Any, g: Any) -> Any:
        t = mask.astype(x.dtype)
        p = 1 / (1 + m.exp(-x))
        i = 2 * (p * t).sum((2, 3)) + 1
        u = (p.sum((2, 3)) + t.sum((2, 3)) + 1)[:, :, None, None]
        i = i[:, :, None, None]
        dp = -g[:, :, None, None] * (2 * t / u - i / (u * u))
        return dp * p * (1 - p), None


@row(
    "Poisson likelihood with offset",
    lambda r: [r.normal(size=(25, 6)), r.normal(size=(6, 10)) * 0.5, r.normal(size=10), r.integers(0, 5, (25, 10))],
    [
        ("m.exp(eta) - ", "m.exp(-eta) - "),
        ("e @ w.T", "e @ w.T / 25"),
        ("e.sum(0)", "e.mean(0)"),
        ("- k.astype", "+ k.astype"),
        ("eta = x @ w + b", "eta = x @ w"),
    ],
)
class Poisson:
    def forward(x: Any, w: Any, b: Any, k: Any) -> Any:
        eta = x @ w + b
        return m.exp(eta) - k.astype(x.dtype) * eta

    def backward(x: Any, w: Any, b: Any, k: Any, y: Any, g: Any) -> Any:
        eta = x @ w + b
        e = g * (m.exp(eta) - k.astype(x.dtype))
        return e @ w.T, x.T @ e, e.sum(0), None


@row(
    "Gaussian likelihood with log-variance",
    normal((32, 24), (32, 24), (32, 24)),
    [
        ("d * d * m.exp(-lv)", "m.abs(d) * m.exp(-lv)"),
        ("0.5 * g * (1 -", "0.5 * g * (1 +"),
        ("d * m.exp(-lv)\n", "d * m.exp(-0.5 * lv)\n"),
        ("return -dmu, dmu,", "return dmu, dmu,"),
        ("0.5 * g * (1", "g * (1"),
    ],
)
class GaussianLikelihood:
    def forward(mu: Any, t: Any, lv: Any) -> Any:
        d = t - mu
        return 0.5 * (lv + d * d * m.exp(-lv))

    def backward(mu: Any, t: Any, lv: Any, y: Any, g: Any) -> Any:
        d = t - mu
        dmu = g * d * m.exp(-lv)
        dlv = 0.5 * g * (1 - d * d * m.exp(-lv))
        return -dmu, dmu, dlv


@row(
    "Cox partial likelihood",
    lambda r: [r.normal(size=(80,)), r.integers(0, 2, 80)],
    [
        ("d - e * later", "d + e * later"),
        ("m.flip(m.cumsum(m.flip(d / c, 0), 0), 0)", "m.cumsum(d / c, 0)"),
        ("g * (d - ", "(d - "),
        ("m.cumsum(e, 0)", "e.sum() + 0 * e"),
        ("d / c", "1 / c"),
    ],
)
class Cox:
    def forward(risk: Any, event: Any) -> Any:
        d = event.astype(risk.dtype)
        e = m.exp(risk)
        return (d * (risk - m.log(m.cumsum(e, 0)))).sum()

    def backward(risk: Any, event: Any, y: Any, g: Any) -> Any:
        d = event.astype(risk.dtype)
        e = m.exp(risk)
        c = m.cumsum(e, 0)
        later = m.flip(m.cumsum(m.flip(d / c, 0), 0), 0)
        return g * (d - e * later), None


@row(
    "CLIP loss with temperature",
    lambda r: [r.normal(size=(16, 24)) * 0.3, r.normal(size=(16, 24)) * 0.3, np.array([0.7])],
    [
        ("p + q - 2 * ", "p + q - "),
        ("dl.T @ a", "dl @ a"),
        ("/ 32", "/ 16"),
        ("m.exp(scale) * (ds * dot).sum()", "(ds * dot).sum()"),
        ("p + q -", "2 * p -"),
    ],
)
class Clip:
    def forward(a: Any, b: Any, scale: Any) -> Any:
        s = m.exp(scale) * (a @ b.T)
        rows = m.log(m.exp(s).sum(1)) + m.log(m.exp(s).sum(0))
        return (rows - 2 * m.diagonal(s)).mean() / 2

    def backward(a: Any, b: Any, scale: Any, y: Any, g: Any) -> Any:
        dot = a @ b.T
        e = m.exp(m.exp(scale) * dot)
        p, q = e / e.sum(1, keepdims=True), e / e.sum(0, keepdims=True)
        ds = g * (p + q - 2 * m.eye(16).astype(a.dtype)) / 32
        dl = m.exp(scale) * ds
        return dl @ b, dl.T @ a, m.exp(scale) * (ds * dot).sum()


@row(
    "additive angular margin",
    lambda r: [r.uniform(-0.8, 0.8, (24, 12)), r.integers(0, 12, 24)],
    [
        ("m.sin(th + 0.3) / s", "m.sin(th) / s"),
        ("8 * g", "g"),
        ("1 - c * c", "1 + c * c"),
        ("m.sin(th + 0.3) / s, 1", "m.sin(th + 0.3), 1"),
        ("t[:, None] == k", "t[:, None] != k"),
    ],
)
class Margin:
    def forward(c: Any, t: Any) -> Any:
        k = m.arange(12)
        th = m.acos(c)
        return 8 * m.where(t[:, None] == k, m.cos(th + 0.3), c)

    def backward(c: Any, t: Any, y: Any, g: Any) -> Any:
        k = m.arange(12)
        th = m.acos(c)
        s = m.sqrt(1 - c * c)
        return 8 * g * m.where(t[:, None] == k, m.sin(th + 0.3) / s, 1 + 0 * c), None


@row(
    "Barlow twins",
    normal((40, 10), (40, 10)),
    [
        ("lam * 2 * c", "2 * c"),
        ("b @ dc.T / 40", "b @ dc.T"),
        ("a @ dc / 40", "a @ dc.T / 40"),
        ("- (da * a).mean(0) * a", "", "s = m.sqrt"),
        ("b @ dc.T / 40", "a @ dc.T / 40"),
    ],
)
class Barlow:
    def forward(x: Any, z: Any) -> Any:
        lam = 0.05
        u = x - x.mean(0)
        s = m.sqrt((u * u).mean(0) + 1e-4)
        v = z - z.mean(0)
        r = m.sqrt((v * v).mean(0) + 1e-4)
        c = (u / s).T @ (v / r) / 40
        on = m.diagonal(c)
        return ((on - 1) ** 2).sum() + lam * ((c * c).sum() - (on * on).sum())

    def backward(x: Any, z: Any, y: Any, g: Any) -> Any:
        lam = 0.05
        u = x - x.mean(0)
        s = m.sqrt((u * u).mean(0) + 1e-4)
        v = z - z.mean(0)
        r = m.sqrt((v * v).mean(0) + 1e-4)
        a, b = u / s, v / r
        c = a.T @ b / 40
        eye = m.eye(10).astype(x.dtype)
        dc = g * (lam * 2 * c * (1 - eye) + 2 * (c - 1) * eye)
        da, db = b @ dc.T / 40, a @ dc / 40
        du = (da - da.mean(0) - (da * a).mean(0) * a) / s
        dv = (db - db.mean(0) - (db * b).mean(0) * b) / r
        return du, dv


@row(
    "CRPS of an ensemble",
    lambda r: [r.normal(size=(30, 8)), r.normal(size=30)],
    [
        ("/ 64", "/ 8"),
        ("- m.sign(pair)", "+ m.sign(pair)"),
        ("m.sign(e) / 8", "m.sign(e)"),
        (".sum(1)\n", ".mean(1)\n"),
        ("m.sign(pair).sum(-1)", "m.sign(pair).sum(1)"),
    ],
)
class Crps:
    def forward(x: Any, t: Any) -> Any:
        e = x - t[:, None]
        pair = x[:, :, None] - x[:, None, :]
        return m.abs(e).mean(1) - m.abs(pair).sum((1, 2)) / 128

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        e = x - t[:, None]
        pair = x[:, :, None] - x[:, None, :]
        h = g[:, None]
        dx = h * (m.sign(e) / 8 - m.sign(pair).sum(-1) / 64)
        dt = -(h * m.sign(e) / 8).sum(1)
        return dx, dt


@row(
    "sorted transport in one dimension",
    lambda r: [r.normal(size=(6, 50)), r.normal(size=(6, 50))],
    [
        ("2 * g", "g"),
        ("m.argsort(i, -1)", "i"),
        ("-m.take_along_axis(d, m.argsort(j, -1), -1)", "-d"),
        ("/ 50", "/ 300"),
        ("j = m.argsort(q, -1)", "j = m.argsort(p, -1)"),
    ],
)
class Transport:
    def forward(p: Any, q: Any) -> Any:
        d = m.sort(p, -1) - m.sort(q, -1)
        return (d * d).mean(-1)

    def backward(p: Any, q: Any, y: Any, g: Any) -> Any:
        i = m.argsort(p, -1)
        j = m.argsort(q, -1)
        d = 2 * g[:, None] * (m.sort(p, -1) - m.sort(q, -1)) / 50
        return m.take_along_axis(d, m.argsort(i, -1), -1), -m.take_along_axis(d, m.argsort(j, -1), -1)


@row(
    "energy distance of kernels (MMD)",
    normal((15, 6), (18, 6)),
    [
        ("2 * g / (15 * 15)", "g / (15 * 15)"),
        ("- 2 * g / (15 * 18)", "+ 2 * g / (15 * 18)"),
        ("k**3", "k"),
        ("(kxy * d).sum(0)", "(kxy * d).mean(0)"),
        ("z[None, :, :] - z[:, None, :]", "z[:, None, :] - z[None, :, :]"),
    ],
)
class Mmd:
    def forward(x: Any, z: Any) -> Any:
        xx = ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1)
        zz = ((z[:, None, :] - z[None, :, :]) ** 2).sum(-1)
        xz = ((x[:, None, :] - z[None, :, :]) ** 2).sum(-1)
        return (1 / m.sqrt(1 + xx)).mean() + (1 / m.sqrt(1 + zz)).mean() - 2 * (1 / m.sqrt(1 + xz)).mean()

    def backward(x: Any, z: Any, y: Any, g: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        k = 1 / m.sqrt(1 + (d * d).sum(-1, keepdims=True))
        dx = -2 * g / (15 * 15) * (k**3 * d).sum(1)
        d = -(z[None, :, :] - z[:, None, :])
        k = 1 / m.sqrt(1 + (d * d).sum(-1, keepdims=True))
        dz = -2 * g / (18 * 18) * (k**3 * d).sum(1)
        d = x[:, None, :] - z[None, :, :]
        kxy = (1 / m.sqrt(1 + (d * d).sum(-1, keepdims=True))) ** 3
        dx = dx + 2 * g / (15 * 18) * (kxy * d).sum(1)
        dz = dz - 2 * g / (15 * 18) * (kxy * d).sum(0)
        return dx, dz


# --------------------------------------------------------------------------- finance
@row(
    "bond prices from a yield curve",
    lambda r: [r.uniform(0.5, 2, (20, 12)), r.uniform(0.01, 0.08, 12), r.uniform(-0.01, 0.02, 20)],
    [
        ("-t * p", "t * p"),
        ("(1 + r) ** (-t)", "(1 + r) ** (-t + 1)"),
        (".sum(0)", ".mean(0)"),
        ("/ (1 + r)", ""),
        ("t = m.arange(12).astype(c.dtype) + 1", "t = m.arange(12).astype(c.dtype) + 1.5"),
    ],
)
class Bonds:
    def forward(c: Any, curve: Any, spread: Any) -> Any:
        t = m.arange(12).astype(c.dtype) + 1
        r = curve + spread[:, None]
        return (c * (1 + r) ** (-t)).sum(-1)

    def backward(c: Any, curve: Any, spread: Any, y: Any, g: Any) -> Any:
        t = m.arange(12).astype(c.dtype) + 1
        r = curve + spread[:, None]
        p = g[:, None] * (1 + r) ** (-t)
        dr = -t * p * c / (1 + r)
        return p, dr.sum(0), dr.sum(1)


@row(
    "Sharpe ratio of weights",
    lambda r: [r.normal(size=(60, 10)) * 0.1 + 0.05, r.normal(size=(10, 4))],
    [
        ("1 / s - mu * d", "1 / s + mu * d"),
        ("/ 60", "/ 59"),
        ("w * (dw - ", "(dw - "),
        ("s**3", "s**2"),
        ("(dw * w).sum(0)", "(dw * w).mean(0)"),
    ],
)
class Sharpe:
    def forward(r: Any, v: Any) -> Any:
        e = m.exp(v)
        w = e / e.sum(0)
        p = r @ w
        mu = p.mean(0)
        d = p - mu
        return mu / m.sqrt((d * d).mean(0) + 1e-4)

    def backward(r: Any, v: Any, y: Any, g: Any) -> Any:
        e = m.exp(v)
        w = e / e.sum(0)
        p = r @ w
        mu = p.mean(0)
        d = p - mu
        s = m.sqrt((d * d).mean(0) + 1e-4)
        dp = g * (1 / s - mu * d / (s**3)) / 60
        dw = r.T @ dp
        return dp @ w.T, w * (dw - (dw * w).sum(0))


@row(
    "GARCH(1,1) likelihood",
    lambda r: [r.normal(size=(24, 8)), r.uniform(0.1, 0.4, 8), r.uniform(0.1, 0.3, 8), r.uniform(0.4, 0.6, 8)],
    [
        ("dv + beta * carry", "dv"),
        ("db + carry * v[t - 1]", "db + carry * v[t]"),
        ("1 / v[t] - ", "1 / v[t] + "),
        ("da + carry * r[t - 1] ** 2", "da + carry * r[t - 1]"),
        ("2 * alpha * r[t - 1]", "alpha * r[t - 1]"),
    ],
)
class Garch:
    def forward(r: Any, omega: Any, alpha: Any, beta: Any) -> Any:
        v = 0 * omega + 1
        total = m.log(v) + r[0] ** 2 / v
        for t in range(1, 24):
            v = omega + alpha * r[t - 1] ** 2 + beta * v
            total = total + m.log(v) + r[t] ** 2 / v
        return total / 2

    def backward(r: Any, omega: Any, alpha: Any, beta: Any, y: Any, g: Any) -> Any:
        v = [0 * omega + 1]
        for t in range(1, 24):
            v.append(omega + alpha * r[t - 1] ** 2 + beta * v[-1])
        dr = [g * r[t] / v[t] for t in range(24)]
        do, da, db, carry = 0 * omega, 0 * omega, 0 * omega, 0 * omega
        for t in range(23, 0, -1):
            dv = g / 2 * (1 / v[t] - r[t] ** 2 / v[t] ** 2)
            carry = dv + beta * carry
            do = do + carry
            da = da + carry * r[t - 1] ** 2
            db = db + carry * v[t - 1]
            dr[t - 1] = dr[t - 1] + carry * 2 * alpha * r[t - 1]
        return m.stack(dr, 0), do, da, db


# --------------------------------------------------------------------------- physics
@row(
    "Lennard-Jones energies of charged pairs",
    lambda r: [
        np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(27, 3) * 1.3 + r.uniform(-0.1, 0.1, (27, 3)),
        r.uniform(0.5, 1, 27),
    ],
    [
        ("-12 * i6 * i6 + 6 * i6", "-12 * i6 * i6 - 6 * i6"),
        ("/ d2", "/ m.sqrt(d2)"),
        ("- f.sum(0)", "- 0 * f.sum(0)"),
        ("dq + ", ""),
        ("-12 * i6", "-6 * i6"),
    ],
    halves=False,
)
class LennardJones:
    def forward(x: Any, q: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        eye = m.eye(27).astype(x.dtype)
        d2 = (d * d).sum(-1) + eye
        i6 = (1 - eye) / d2**3
        return (q[:, None] * q[None, :] * (i6 * i6 - i6)).sum(1)

    def backward(x: Any, q: Any, y: Any, g: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        eye = m.eye(27).astype(x.dtype)
        d2 = (d * d).sum(-1) + eye
        i6 = (1 - eye) / d2**3
        h = g[:, None] * q[:, None] * q[None, :] * (-12 * i6 * i6 + 6 * i6) / d2
        f = h[:, :, None] * d
        u = g[:, None] * (i6 * i6 - i6)
        dq = (u * q[None, :]).sum(1)
        return f.sum(1) - f.sum(0), dq + (u * q[:, None]).sum(0)


@row(
    "softened gravity",
    lambda r: [r.normal(size=(20, 3)), r.uniform(0.5, 2, 20)],
    [
        ("3 * dot", "dot"),
        ("- u.sum(1)", "+ u.sum(1)"),
        ("d2 + 0.1", "d2 + 0.01"),
        ("(k * g[:, None, :] * d).sum((0, 2))", "(k * g[:, None, :] * d).sum((1, 2))"),
        ("3 * dot * k / s", "3 * dot * k"),
    ],
)
class Gravity:
    def forward(x: Any, mass: Any) -> Any:
        d = x[None, :, :] - x[:, None, :]
        s = (d * d).sum(-1, keepdims=True) + 0.1
        return (mass[None, :, None] * d / (s * m.sqrt(s))).sum(1)

    def backward(x: Any, mass: Any, y: Any, g: Any) -> Any:
        d = x[None, :, :] - x[:, None, :]
        d2 = (d * d).sum(-1, keepdims=True)
        s = d2 + 0.1
        k = 1 / (s * m.sqrt(s))
        h = mass[None, :, None] * g[:, None, :]
        dot = (h * d).sum(-1, keepdims=True)
        u = h * k - 3 * dot * k / s * d
        return u.sum(0) - u.sum(1), (k * g[:, None, :] * d).sum((0, 2))


@row(
    "leapfrog of a pendulum chain",
    normal((10, 12), (10, 12), (12,)),
    [
        ("m.cos(q)", "m.sin(q)"),
        ("dk - 0.1 * dp * m.sin(q)", "dk - dp * m.sin(q)"),
        ("dp + 0.1 * dq", "dp"),
        ("dq - 0.1 * dp * k", "dq + 0.1 * dp * k"),
        ("dk.sum(0)", "dk.mean(0)"),
    ],
)
class Leapfrog:
    def forward(q: Any, p: Any, k: Any) -> Any:
        for _ in range(3):
            p = p - 0.1 * k * m.sin(q)
            q = q + 0.1 * p
        return q, p

    def backward(q: Any, p: Any, k: Any, y: Any, g: Any) -> Any:
        before = []
        for _ in range(3):
            before.append(q)
            p = p - 0.1 * k * m.sin(q)
            q = q + 0.1 * p
        dq, dp = g
        dk = 0 * dq
        for q in before[::-1]:
            dp = dp + 0.1 * dq
            dk = dk - 0.1 * dp * m.sin(q)
            dq = dq - 0.1 * dp * k * m.cos(q)
        return dq, dp, dk.sum(0)


@row(
    "heat step on a torus",
    lambda r: [r.normal(size=(3, 16, 16)), r.uniform(0.1, 1, (16, 16))],
    [
        ("m.roll(a * ex, 1, 1)", "m.roll(a * ex, -1, 1)"),
        ("g - 0.2 * (", "0.2 * ("),
        ("0.2 * (eu", "(eu"),
        ("ex * ux + ey * uy", "ex * ux"),
        (").sum(0)", ").mean(0)"),
    ],
)
class Heat:
    def forward(u: Any, a: Any) -> Any:
        fx = a * (u - m.roll(u, -1, 1))
        fy = a * (u - m.roll(u, -1, 2))
        return u - 0.2 * (fx - m.roll(fx, 1, 1) + fy - m.roll(fy, 1, 2))

    def backward(u: Any, a: Any, y: Any, g: Any) -> Any:
        ex = g - m.roll(g, -1, 1)
        ey = g - m.roll(g, -1, 2)
        ux = u - m.roll(u, -1, 1)
        uy = u - m.roll(u, -1, 2)
        eu = a * ex - m.roll(a * ex, 1, 1) + a * ey - m.roll(a * ey, 1, 2)
        du = g - 0.2 * (eu)
        da = -0.2 * (ex * ux + ey * uy).sum(0)
        return du, da


# --------------------------------------------------------------------------- graphs
@row(
    "graph convolution, symmetric degrees",
    lambda r: [r.uniform(0.1, 1, (14, 14)), r.normal(size=(14, 9)), r.normal(size=(9, 7))],
    [
        ("- 0.5 * (r * r * r", "+ 0.5 * (r * r * r"),
        ("(e.sum(0) + e.sum(1))", "e.sum(1)"),
        ("n.T @ h", "n @ h"),
        ("g @ w.T", "g @ w.T / 14"),
        ("r[:, None] * r * dn", "r * dn"),
    ],
)
class Gcn:
    def forward(a: Any, x: Any, w: Any) -> Any:
        r = 1 / m.sqrt(a.sum(1))
        return (r[:, None] * a * r) @ x @ w

    def backward(a: Any, x: Any, w: Any, y: Any, g: Any) -> Any:
        r = 1 / m.sqrt(a.sum(1))
        n = r[:, None] * a * r
        h = g @ w.T
        dn = h @ x.T
        e = dn * n
        dr = (e.sum(0) + e.sum(1)) / r
        da = r[:, None] * r * dn - 0.5 * (r * r * r * dr)[:, None]
        return da, n.T @ h, x.T @ (n.T @ g)


@row(
    "graph attention, leaky and masked",
    lambda r: [
        r.normal(size=(12, 8)),
        r.normal(size=8),
        r.normal(size=8),
        (r.uniform(size=(12, 12)) < 0.4) | np.eye(12, dtype=bool),
    ],
    [
        ("0.2 + 0 * z", "0.02 + 0 * z"),
        ("p.T @ g", "p @ g"),
        ("- (dp * p).sum(1, keepdims=True)", ""),
        ("dz.sum(0) @ x", "dz.sum(1) @ x"),
        ("+ dz.sum(1)[:, None] * a", "- dz.sum(1)[:, None] * a"),
    ],
)
class Gat:
    def forward(x: Any, a: Any, b: Any, edges: Any) -> Any:
        z = (x @ a)[:, None] + x @ b
        s = m.where(z > 0, z, 0.2 * z)
        e = m.where(edges, m.exp(s), 0 * s)
        return (e / e.sum(1, keepdims=True)) @ x

    def backward(x: Any, a: Any, b: Any, edges: Any, y: Any, g: Any) -> Any:
        z = (x @ a)[:, None] + x @ b
        s = m.where(z > 0, z, 0.2 * z)
        e = m.where(edges, m.exp(s), 0 * s)
        p = e / e.sum(1, keepdims=True)
        dp = g @ x.T
        ds = p * (dp - (dp * p).sum(1, keepdims=True))
        dz = ds * m.where(z > 0, 1 + 0 * z, 0.2 + 0 * z)
        dx = p.T @ g + dz.sum(1)[:, None] * a + dz.sum(0)[:, None] * b
        return dx, dz.sum(1) @ x, dz.sum(0) @ x, None


@row(
    "messages along edges, by incidence",
    lambda r: [r.normal(size=(15, 6)), r.normal(size=40), r.integers(0, 15, 40), r.integers(0, 15, 40)],
    [
        ("t * w[:, None] * g[dst]", "w[:, None] * g[dst]"),
        ("1 - h * h", "1 + h * h"),
        ("(g[dst] * h).sum(1)", "(g[dst] * h).mean(1)"),
        ("- into(dst", "+ into(dst"),
        ("g[dst]).astype", "g[src]).astype"),
    ],
)
class Messages:
    def forward(x: Any, w: Any, src: Any, dst: Any) -> Any:
        h = m.tanh(x[src] - x[dst])
        onto = (dst[None, :] == m.arange(15)[:, None]).astype(x.dtype)
        return x + onto @ (w[:, None] * h)

    def backward(x: Any, w: Any, src: Any, dst: Any, y: Any, g: Any) -> Any:
        def into(at: Any, values: Any) -> Any:
            return (at[None, :] == m.arange(15)[:, None]).astype(x.dtype) @ values

        h = m.tanh(x[src] - x[dst])
        t = 1 - h * h
        d = (t * w[:, None] * g[dst]).astype(x.dtype)
        return g + into(src, d) - into(dst, d), (g[dst] * h).sum(1), None, None


@row(
    "personalised PageRank, three steps",
    lambda r: [r.uniform(0.1, 1, (16, 16)), r.uniform(0.1, 1, (5, 16))],
    [
        ("0.85 * v[k].T @ d", "v[k].T @ d"),
        ("- (dp * p).sum(1, keepdims=True)", ""),
        ("d @ p.T", "d @ p"),
        ("ds + 0.15 * d", "0.15 * d"),
        ("keepdims=True)) / a.sum(1, keepdims=True)", "keepdims=True))"),
    ],
)
class PageRank:
    def forward(a: Any, s: Any) -> Any:
        p = a / a.sum(1, keepdims=True)
        v = s
        for _ in range(3):
            v = 0.85 * v @ p + 0.15 * s
        return v

    def backward(a: Any, s: Any, y: Any, g: Any) -> Any:
        p = a / a.sum(1, keepdims=True)
        v = [s]
        for _ in range(3):
            v.append(0.85 * v[-1] @ p + 0.15 * s)
        d, ds, dp = g, 0 * s, 0 * a
        for k in (2, 1, 0):
            dp = dp + 0.85 * v[k].T @ d
            ds = ds + 0.15 * d
            d = 0.85 * d @ p.T
        da = (dp - (dp * p).sum(1, keepdims=True)) / a.sum(1, keepdims=True)
        return da, ds + d


# --------------------------------------------------------------------------- interpolation
@row(
    "Catmull-Rom curve",
    lambda r: [r.normal(size=(20, 3)), r.uniform(0.05, 0.95, 17)],
    [
        ("3 * t * t", "t * t"),
        ("-1 + 4 * t", "4 * t"),
        ("w[2][:, None] * g", "w[1][:, None] * g"),
        ("0.5 * (g * v).sum(1)", "(g * v).sum(1)"),
        ("p[3:] * (3 * t", "p[2:-1] * (3 * t", "p[3:]"),
    ],
)
class CatmullRom:
    def forward(p: Any, u: Any) -> Any:
        t = u[:, None]
        a = p[:-3] * (-t + 2 * t * t - t**3) + p[1:-2] * (2 - 5 * t * t + 3 * t**3)
        b = p[2:-1] * (t + 4 * t * t - 3 * t**3) + p[3:] * (t**3 - t * t)
        return 0.5 * (a + b)

    def backward(p: Any, u: Any, y: Any, g: Any) -> Any:
        t = u
        w = [
            0.5 * (-t + 2 * t * t - t**3),
            0.5 * (2 - 5 * t * t + 3 * t**3),
            0.5 * (t + 4 * t * t - 3 * t**3),
            0.5 * (t**3 - t * t),
        ]
        zero = 0 * p[:1]
        dp = m.concatenate([w[0][:, None] * g, zero, zero, zero], 0)
        dp = dp + m.concatenate([zero, w[1][:, None] * g, zero, zero], 0)
        dp = dp + m.concatenate([zero, zero, w[2][:, None] * g, zero], 0)
        dp = dp + m.concatenate([zero, zero, zero, w[3][:, None] * g], 0)
        t = u[:, None]
        v = p[:-3] * (-1 + 4 * t - 3 * t * t) + p[1:-2] * (-10 * t + 9 * t * t)
        v = v + p[2:-1] * (1 + 8 * t - 9 * t * t) + p[3:] * (3 * t * t - 2 * t)
        return dp, 0.5 * (g * v).sum(1)


@row(
    "barycentric interpolation",
    lambda r: [r.normal(size=(9, 5)), np.linspace(-0.93, 0.93, 25) + 0.013],
    [
        ("c.T @ g", "c.T @ g / 9"),
        ("- (g * y).sum(1, keepdims=True)", ""),
        ("k * k / w", "k / w"),
        ("-(dc", "(dc"),
        ("k / s", "k"),
    ],
    halves=False,
)
class Barycentric:
    def forward(f: Any, x: Any) -> Any:
        j = m.arange(9).astype(f.dtype)
        w = (1 - 2 * (j % 2)) * (1 - 0.5 * ((j == 0) | (j == 8)).astype(f.dtype))
        k = w / (x[:, None] - m.cos(3.141592653589793 * j / 8))
        return k @ f / k.sum(1, keepdims=True)

    def backward(f: Any, x: Any, y: Any, g: Any) -> Any:
        j = m.arange(9).astype(f.dtype)
        w = (1 - 2 * (j % 2)) * (1 - 0.5 * ((j == 0) | (j == 8)).astype(f.dtype))
        k = w / (x[:, None] - m.cos(3.141592653589793 * j / 8))
        s = k.sum(1, keepdims=True)
        c = k / s
        dc = g @ f.T - (g * y).sum(1, keepdims=True)
        return c.T @ g, -(dc / s * (k * k / w)).sum(1)


@row(
    "Shepard's inverse distances",
    normal((30, 2), (12, 2), (12, 4)),
    [
        ("w.T @ g", "w.T @ g / 12"),
        ("- (dw * w).sum(1, keepdims=True)", ""),
        ("-2 * e", "2 * e"),
        (".sum(0)", ".mean(0)"),
        ("k * k", "k"),
    ],
)
class Shepard:
    def forward(x: Any, p: Any, v: Any) -> Any:
        d = x[:, None, :] - p[None, :, :]
        k = 1 / ((d * d).sum(-1) + 0.1)
        return (k / k.sum(1, keepdims=True)) @ v

    def backward(x: Any, p: Any, v: Any, y: Any, g: Any) -> Any:
        d = x[:, None, :] - p[None, :, :]
        k = 1 / ((d * d).sum(-1) + 0.1)
        s = k.sum(1, keepdims=True)
        w = k / s
        dw = g @ v.T
        dk = (dw - (dw * w).sum(1, keepdims=True)) / s
        e = dk * k * k
        dx = -2 * e[:, :, None] * d
        return dx.sum(1), -dx.sum(0), w.T @ g


@row(
    "polynomial by Horner",
    lambda r: [r.uniform(-1.2, 1.2, (200,)), r.normal(size=(7,))],
    [
        ("d * x + p", "d + p"),
        ("g * power", "power"),
        ("power = power * x", "power = power * x * x"),
        ("dc.append((g * power).sum())", "dc.append((g * power).mean())"),
        ("range(5, -1, -1)", "range(4, -1, -1)"),
    ],
)
class Horner:
    def forward(x: Any, c: Any) -> Any:
        p = 0 * x + c[6]
        for k in range(5, -1, -1):
            p = p * x + c[k]
        return p

    def backward(x: Any, c: Any, y: Any, g: Any) -> Any:
        p, d = 0 * x + c[6], 0 * x
        for k in range(5, -1, -1):
            d = d * x + p
            p = p * x + c[k]
        dc, power = [], 0 * x + 1
        for _ in range(7):
            dc.append((g * power).sum())
            power = power * x
        return g * d, m.stack(dc, 0)


# --------------------------------------------------------------------------- signals
@row(
    "autocorrelation, normalised",
    normal(
        (10, 40),
    ),
    [
        ("- r[:, i - 1] * x * 2", "- r[:, i - 1] * x"),
        ("ahead + behind", "ahead"),
        ("/ e", ""),
        ("ahead + behind", "ahead - behind"),
        ("range(1, 6)", "range(1, 5)"),
    ],
)
class Autocorrelation:
    def forward(x: Any) -> Any:
        e = (x * x).sum(1) + 0.01
        return m.stack([(x[:, k:] * x[:, : 40 - k]).sum(1) / e for k in range(1, 6)], 1)

    def backward(x: Any, y: Any, g: Any) -> Any:
        e = (x * x).sum(1, keepdims=True) + 0.01
        r = y[:, :, None]
        dx = 0 * x
        for i in range(1, 6):
            k = slice(i - 1, i)
            none = 0 * x[:, :i]
            ahead = m.concatenate([x[:, i:], none], 1)
            behind = m.concatenate([none, x[:, : 40 - i]], 1)
            dx = dx + g[:, k] / e * (ahead + behind - r[:, i - 1] * x * 2)
        return dx


@row(
    "biquad filter",
    lambda r: [r.normal(size=(8, 30)), r.normal(size=8) * 0.3, r.normal(size=8) * 0.3, r.normal(size=8)],
    [
        ("- a1 * d1", "+ a1 * d1"),
        ("- a2 * d2", ""),
        ("d * y[:, t - 1]", "d * x[:, t - 1]"),
        ("b * after", "after"),
        ("db + d * x[:, t - 1]", "db + d * x[:, t]"),
    ],
)
class Biquad:
    def forward(x: Any, a1: Any, a2: Any, b: Any) -> Any:
        y = [x[:, 0], x[:, 1]]
        for t in range(2, 30):
            y.append(x[:, t] + b * x[:, t - 1] - a1 * y[t - 1] - a2 * y[t - 2])
        return m.stack(y, 1)

    def backward(x: Any, a1: Any, a2: Any, b: Any, y: Any, g: Any) -> Any:
        d1, d2, after = 0 * a1, 0 * a1, 0 * a1
        da1, da2, db = 0 * a1, 0 * a1, 0 * a1
        dx = []
        for t in range(29, -1, -1):
            d = g[:, t] - a1 * d1 - a2 * d2
            dx.append(d + b * after)
            if t > 1:
                da1 = da1 - d * y[:, t - 1]
                da2 = da2 - d * y[:, t - 2]
                db = db + d * x[:, t - 1]
            d2, d1 = d1, d if t > 1 else 0 * d
            after = d1
        return m.stack(dx[::-1], 1), da1, da2, db


@row(
    "log-magnitude spectrum of frames",
    lambda r: [r.normal(size=(6, 32)), r.uniform(0.3, 1, 32)],
    [
        ("2 * re", "re"),
        ("+ (2 * im * h) @ s", "- (2 * im * h) @ s"),
        ("h = g / p", "h = g * p"),
        ("* window", ""),
        (".sum(0)", ".mean(0)"),
    ],
)
class LogSpectrum:
    def forward(x: Any, window: Any) -> Any:
        n = m.arange(32).astype(x.dtype)
        phase = 0.19634954084936207 * ((n[:17, None] * n) % 32)
        v = x * window
        re, im = v @ m.cos(phase).T, v @ m.sin(phase).T
        return m.log(re * re + im * im + 0.1)

    def backward(x: Any, window: Any, y: Any, g: Any) -> Any:
        n = m.arange(32).astype(x.dtype)
        phase = 0.19634954084936207 * ((n[:17, None] * n) % 32)
        c, s = m.cos(phase), m.sin(phase)
        v = x * window
        re, im = v @ c.T, v @ s.T
        p = re * re + im * im + 0.1
        h = g / p
        dv = (2 * re * h) @ c + (2 * im * h) @ s
        dx = dv * window
        return dx, (dv * x).sum(0)


@row(
    "Haar step with soft threshold",
    lambda r: [r.normal(size=(12, 64)), r.uniform(0.1, 0.5, 12)],
    [
        ("m.abs(b) > t", "m.abs(b) < t"),
        ("-m.sign(b)", "m.sign(b)"),
        ("h * (ga - db)", "h * (ga + db)"),
        ("h = 0.7071067811865476", "h = 0.5"),
        (".sum(1)", ".mean(1)"),
    ],
)
class Haar:
    def forward(x: Any, thr: Any) -> Any:
        h = 0.7071067811865476
        t = thr[:, None]
        a, b = h * (x[:, ::2] + x[:, 1::2]), h * (x[:, ::2] - x[:, 1::2])
        soft = m.sign(b) * m.clip(m.abs(b) - t, 0.0, None)
        return m.concatenate([a, soft], 1)

    def backward(x: Any, thr: Any, y: Any, g: Any) -> Any:
        h = 0.7071067811865476
        t = thr[:, None]
        b = h * (x[:, ::2] - x[:, 1::2])
        ga = g[:, :32]
        db = m.where(m.abs(b) > t, g[:, 32:], 0 * b)
        dt = (db * -m.sign(b)).sum(1)
        dx = m.stack([h * (ga + db), h * (ga - db)], 2).reshape((12, 64))
        return dx, dt


@row(
    "SI-SDR",
    normal((8, 100), (8, 100)),
    [
        ("2 * k / p * s", "k / p * s"),
        ("- 2 * e / n", "+ 2 * e / n"),
        ("4.342944819032518", "10"),
        ("* ss - 2 * dot * s", "* ss"),
        ("+ 2 * s / ss", ""),
    ],
    halves=False,
)
class SiSdr:
    def forward(x: Any, s: Any) -> Any:
        ss = (s * s).sum(1, keepdims=True)
        k = (x * s).sum(1, keepdims=True) / ss
        e = x - k * s
        return 4.342944819032518 * (m.log((k * k * ss)[:, 0]) - m.log((e * e).sum(1)))

    def backward(x: Any, s: Any, y: Any, g: Any) -> Any:
        ss = (s * s).sum(1, keepdims=True)
        dot = (x * s).sum(1, keepdims=True)
        k = dot / ss
        e = x - k * s
        p, n = k * k * ss, (e * e).sum(1, keepdims=True)
        h = 4.342944819032518 * g[:, None]
        dx = h * (2 * k / p * s - 2 * e / n)
        dk = 2 / k
        ds = h * (dk * (x * ss - 2 * dot * s) / (ss * ss) + 2 * s / ss + 2 * k * e / n)
        return dx, ds


@row(
    "mu-law companding with gain",
    lambda r: [r.uniform(-1, 1, (10, 100)), np.array([1.1])],
    [
        ("255 * g", "g"),
        ("1 + 255 * a", "1 + a"),
        ("m.sign(v)", "1"),
        ("gain * d", "d"),
        ("(d * x).sum()", "(d * x).mean()"),
    ],
)
class MuLaw:
    def forward(x: Any, gain: Any) -> Any:
        v = gain * x
        return m.sign(v) * m.log1p(255 * m.abs(v)) / 5.545177444479562

    def backward(x: Any, gain: Any, y: Any, g: Any) -> Any:
        v = gain * x
        a = m.abs(v)
        d = 255 * g / (1 + 255 * a) / 5.545177444479562
        d = d * (m.sign(v) * m.sign(v))
        return gain * d, (d * x).sum().reshape((1,))


# --------------------------------------------------------------------------- geometry
@row(
    "rotation by quaternions",
    normal((40, 4), (40, 3)),
    [
        ("2 * m.cross(v, dt)", "m.cross(v, dt)", "2 * m.cross(u, v)"),
        ("- (dq * q).sum(-1, keepdims=True) * q", ""),
        ("m.cross(g, u)", "m.cross(u, g)"),
        ("w * g", "g"),
        ("/ n", ""),
    ],
)
class Quaternion:
    def forward(r: Any, v: Any) -> Any:
        q = r / m.sqrt((r * r).sum(-1, keepdims=True))
        w, u = q[:, :1], q[:, 1:]
        t = 2 * m.cross(u, v)
        return v + w * t + m.cross(u, t)

    def backward(r: Any, v: Any, y: Any, g: Any) -> Any:
        n = m.sqrt((r * r).sum(-1, keepdims=True))
        q = r / n
        w, u = q[:, :1], q[:, 1:]
        t = 2 * m.cross(u, v)
        dw = (g * t).sum(-1, keepdims=True)
        dt = w * g + m.cross(g, u)
        du = m.cross(t, g) + 2 * m.cross(v, dt)
        dv = g + 2 * m.cross(dt, u)
        dq = m.concatenate([dw, du], -1)
        return (dq - (dq * q).sum(-1, keepdims=True) * q) / n, dv


@row(
    "Gram-Schmidt of two vectors",
    normal((30, 3), (30, 3)),
    [
        ("- (da * a).sum(1, keepdims=True) * a", ""),
        ("- (du * a).sum(1, keepdims=True) * a", "", "u = "),
        ("- (a * y2).sum(1, keepdims=True) * du", ""),
        ("m.cross(b, g3)", "m.cross(g3, b)", "m.cross(a, b)"),
        ("/ nu", ""),
    ],
)
class GramSchmidt:
    def forward(x1: Any, y2: Any) -> Any:
        a = x1 / m.sqrt((x1 * x1).sum(1, keepdims=True))
        u = y2 - (a * y2).sum(1, keepdims=True) * a
        b = u / m.sqrt((u * u).sum(1, keepdims=True))
        return a, b, m.cross(a, b)

    def backward(x1: Any, y2: Any, y: Any, g: Any) -> Any:
        g1, g2, g3 = g
        nx = m.sqrt((x1 * x1).sum(1, keepdims=True))
        a = x1 / nx
        u = y2 - (a * y2).sum(1, keepdims=True) * a
        nu = m.sqrt((u * u).sum(1, keepdims=True))
        b = u / nu
        db = g2 + m.cross(g3, a)
        du = (db - (db * b).sum(1, keepdims=True) * b) / nu
        da = g1 + m.cross(b, g3) - (du * a).sum(1, keepdims=True) * y2 - (a * y2).sum(1, keepdims=True) * du
        dy = du - (du * a).sum(1, keepdims=True) * a
        return (da - (da * a).sum(1, keepdims=True) * a) / nx, dy


@row(
    "perspective projection",
    lambda r: [r.normal(size=(100, 3)) + np.array([0, 0, 5.0]), r.uniform(0.8, 1.2, 2), r.normal(size=2)],
    [
        ("/ (z * z)", "/ z"),
        ("-(g * f", "(g * f"),
        ("g.sum(0)", "g.mean(0)"),
        ("g * f / z", "g / z"),
        ("p[:, :2] / z", "p[:, :2]"),
    ],
)
class Projection:
    def forward(p: Any, f: Any, c: Any) -> Any:
        z = p[:, 2:]
        return f * p[:, :2] / z + c

    def backward(p: Any, f: Any, c: Any, y: Any, g: Any) -> Any:
        z = p[:, 2:]
        dxy = g * f / z
        dz = -(g * f * p[:, :2]).sum(1, keepdims=True) / (z * z)
        df = (g * (p[:, :2] / z)).sum(0)
        return m.concatenate([dxy, dz], 1), df, g.sum(0)


@row(
    "triangle areas of a mesh",
    lambda r: [r.normal(size=(20, 3)), r.permuted(np.tile(np.arange(20), (30, 1)), axis=1)[:, :3]],
    [
        ("0.5 * g", "g"),
        ("-(du + dv)", "(du + dv)"),
        ("m.cross(v, dn)", "m.cross(dn, v)"),
        ("/ m.sqrt((n * n).sum(1, keepdims=True))", ""),
        ("into(f[:, 2], dv)", "into(f[:, 1], dv)"),
    ],
)
class Areas:
    def forward(x: Any, f: Any) -> Any:
        u, v = x[f[:, 1]] - x[f[:, 0]], x[f[:, 2]] - x[f[:, 0]]
        n = m.cross(u, v)
        return 0.5 * m.sqrt((n * n).sum(1))

    def backward(x: Any, f: Any, y: Any, g: Any) -> Any:
        def into(at: Any, values: Any) -> Any:
            return (at[None, :] == m.arange(20)[:, None]).astype(x.dtype) @ values

        u, v = x[f[:, 1]] - x[f[:, 0]], x[f[:, 2]] - x[f[:, 0]]
        n = m.cross(u, v)
        dn = 0.5 * g[:, None] * n / m.sqrt((n * n).sum(1, keepdims=True))
        du, dv = m.cross(v, dn), m.cross(dn, u)
        return into(f[:, 0], -(du + dv)) + into(f[:, 1], du) + into(f[:, 2], dv), None


@row(
    "Chamfer distance",
    normal((20, 3), (25, 3)),
    [
        ("2 * d * near", "d * near"),
        ("/ 20", "/ 25"),
        ("q == q.min(0)", "q == q.max(0)"),
        ("return e.sum(1), -e.sum(0)", "return e.sum(1), e.sum(0)"),
        ("+ (q == q.min(0)).astype(a.dtype) / 25", ""),
    ],
)
class Chamfer:
    def forward(a: Any, b: Any) -> Any:
        d = a[:, None, :] - b[None, :, :]
        q = (d * d).sum(-1)
        return q.min(1).mean() + q.min(0).mean()

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        d = a[:, None, :] - b[None, :, :]
        q = (d * d).sum(-1)
        near = (q == q.min(1, keepdims=True)).astype(a.dtype) / 20 + (q == q.min(0)).astype(a.dtype) / 25
        e = g * 2 * d * near[:, :, None]
        return e.sum(1), -e.sum(0)


@row(
    "haversine distances",
    lambda r: [r.uniform(-1.2, 1.2, (50, 2)), r.uniform(-1.2, 1.2, (50, 2))],
    [
        ("m.sin(d[:, 1])", "m.cos(d[:, 1])"),
        ("[-da0 - dh * m.sin", "[-da0 + dh * m.sin"),
        ("m.sqrt(h * (1 - h))", "m.sqrt(h)"),
        ("[-da0 - ", "[da0 - "),
        ("cc * m.sin(d", "m.sin(d"),
    ],
)
class Haversine:
    def forward(p: Any, q: Any) -> Any:
        d = (q - p) / 2
        h = m.sin(d[:, 0]) ** 2 + m.cos(p[:, 0]) * m.cos(q[:, 0]) * m.sin(d[:, 1]) ** 2
        return 2 * m.asin(m.sqrt(h))

    def backward(p: Any, q: Any, y: Any, g: Any) -> Any:
        d = (q - p) / 2
        cc = m.cos(p[:, 0]) * m.cos(q[:, 0])
        s2 = m.sin(d[:, 1]) ** 2
        h = m.sin(d[:, 0]) ** 2 + cc * s2
        dh = g / m.sqrt(h * (1 - h))
        da0 = dh * m.sin(d[:, 0]) * m.cos(d[:, 0])
        da1 = dh * cc * m.sin(d[:, 1]) * m.cos(d[:, 1])
        dp = m.stack([-da0 - dh * m.sin(p[:, 0]) * m.cos(q[:, 0]) * s2, -da1], 1)
        dq = m.stack([da0 - dh * m.cos(p[:, 0]) * m.sin(q[:, 0]) * s2, da1], 1)
        return dp, dq


@row(
    "Poincare distances",
    lambda r: [r.uniform(-0.4, 0.4, (60, 4)), r.uniform(-0.4, 0.4, (60, 4))],
    [
        ("m.sqrt(c * c - 1)", "m.sqrt(c * c + 1)"),
        ("4 * h * d", "2 * h * d"),
        ("/ (al * al * be)", "/ (al * be)"),
        ("e / (al * al * be) * u", "0 * u"),
        ("- 4 * h * d", "+ 4 * h * d"),
    ],
)
class Poincare:
    def forward(u: Any, v: Any) -> Any:
        al, be = 1 - (u * u).sum(1), 1 - (v * v).sum(1)
        d = u - v
        return m.acosh(1 + 2 * (d * d).sum(1) / (al * be))

    def backward(u: Any, v: Any, y: Any, g: Any) -> Any:
        al, be = 1 - (u * u).sum(1, keepdims=True), 1 - (v * v).sum(1, keepdims=True)
        d = u - v
        e = (d * d).sum(1, keepdims=True)
        c = 1 + 2 * e / (al * be)
        h = g[:, None] / m.sqrt(c * c - 1)
        du = 4 * h * d / (al * be) + 4 * h * (e / (al * al * be) * u)
        dv = 4 * h * (e / (al * be * be) * v) - 4 * h * d / (al * be)
        return du, dv


# --------------------------------------------------------------------------- statistics
@row(
    "Mahalanobis distances",
    lambda r: [r.normal(size=(30, 6)), r.normal(size=6), r.normal(size=(6, 6)) * 0.3 + np.eye(6)],
    [
        ("(z @ chol) / r", "(z @ chol.T) / r"),
        ("-h.sum(0)", "h.sum(0)"),
        ("d.T @ (z / r * g)", "(z / r * g).T @ d"),
        ("/ r * g\n", "* g\n"),
        ("-h.sum(0)", "-h.mean(0)"),
    ],
)
class Mahalanobis:
    def forward(x: Any, mu: Any, chol: Any) -> Any:
        z = (x - mu) @ chol.T
        return m.sqrt((z * z).sum(1))

    def backward(x: Any, mu: Any, chol: Any, y: Any, g: Any) -> Any:
        d = x - mu
        z = d @ chol.T
        r, g = y[:, None], g[:, None]
        h = (z @ chol) / r * g
        dl = (d.T @ (z / r * g)).T
        return h, -h.sum(0), dl


@row(
    "covariance with shrinkage",
    lambda r: [r.normal(size=(40, 8)), np.array([0.3])],
    [
        ("g + g.T", "g"),
        ("/ 39", "/ 40"),
        ("(1 - a)", "a"),
        ("- c * 1", "+ c * 1"),
        ("eye * m.trace(c) / 8 -", "eye -"),
    ],
)
class Shrinkage:
    def forward(x: Any, a: Any) -> Any:
        d = x - x.mean(0)
        c = d.T @ d / 39
        return (1 - a) * c + a * m.eye(8).astype(x.dtype) * m.trace(c) / 8

    def backward(x: Any, a: Any, y: Any, g: Any) -> Any:
        d = x - x.mean(0)
        c = d.T @ d / 39
        eye = m.eye(8).astype(x.dtype)
        h = (1 - a) * (g + g.T) + a * 2 * eye * m.trace(g) / 8
        dd = d @ h / 39
        da = (g * (eye * m.trace(c) / 8 - c * 1)).sum()
        return dd - dd.mean(0), da.reshape((1,))


@row(
    "Pearson correlation",
    normal((12, 50), (12, 50)),
    [
        ("- y[:, None] * a / sa", ""),
        ("/ (sa * sb)", "/ (sa * sa)"),
        ("a / (sa * sb) - y[:, None] * b / (sb * sb)", "a / (sa * sb) + y[:, None] * b / (sb * sb)"),
        ("b = t - t.mean(1, keepdims=True)", "b = t"),
        ("g[:, None] * (b", "y[:, None] * (b"),
    ],
)
class Pearson:
    def forward(x: Any, t: Any) -> Any:
        a, b = x - x.mean(1, keepdims=True), t - t.mean(1, keepdims=True)
        return (a * b).sum(1) / m.sqrt((a * a).sum(1) * (b * b).sum(1))

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        a = x - x.mean(1, keepdims=True)
        b = t - t.mean(1, keepdims=True)
        sa, sb = m.sqrt((a * a).sum(1, keepdims=True)), m.sqrt((b * b).sum(1, keepdims=True))
        dx = g[:, None] * (b / (sa * sb) - y[:, None] * a / sa / sa)
        dt = g[:, None] * (a / (sa * sb) - y[:, None] * b / (sb * sb))
        return dx, dt


@row(
    "attentive statistics pooling",
    normal((5, 10, 12), (5, 10)),
    [
        ("2 * d * gs", "d * gs"),
        ("/ (2 * s)", "/ s"),
        ("- (p * dp).sum(1, keepdims=True)", ""),
        ("(gm[:, None, :] * x + gs * d * d)", "(gm[:, None, :] * x)"),
        ("p[:, :, None] * (gm[:, None, :] +", "(gm[:, None, :] +"),
    ],
)
class StatisticsPooling:
    def forward(x: Any, score: Any) -> Any:
        e = m.exp(score - score.max(1, keepdims=True))
        p = (e / e.sum(1, keepdims=True))[:, :, None]
        mu = (p * x).sum(1)
        d = x - mu[:, None, :]
        return m.concatenate([mu, m.sqrt((p * d * d).sum(1) + 1e-3)], -1)

    def backward(x: Any, score: Any, y: Any, g: Any) -> Any:
        e = m.exp(score - score.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        mu, s = y[:, :12], y[:, 12:]
        d = x - mu[:, None, :]
        gm = g[:, :12]
        gs = (g[:, 12:] / (2 * s))[:, None, :]
        dx = p[:, :, None] * (gm[:, None, :] + 2 * d * gs)
        dp = (gm[:, None, :] * x + gs * d * d).sum(-1)
        return dx, p * (dp - (p * dp).sum(1, keepdims=True))


@row(
    "skewness",
    normal(
        (15, 40),
    ),
    [
        ("3 * (d * d - v)", "3 * d * d"),
        ("- 3 * y[:, None] * d", "- y[:, None] * d"),
        ("/ 40", "/ 39"),
        ("s**3", "s**2"),
        ("d / v", "d"),
    ],
)
class Skewness:
    def forward(x: Any) -> Any:
        d = x - x.mean(1, keepdims=True)
        v = (d * d).mean(1)
        return (d**3).mean(1) / (v * m.sqrt(v))

    def backward(x: Any, y: Any, g: Any) -> Any:
        d = x - x.mean(1, keepdims=True)
        v = (d * d).mean(1, keepdims=True)
        s = m.sqrt(v)
        return g[:, None] * (3 * (d * d - v) / s**3 - 3 * y[:, None] * d / v) / 40


@row(
    "Gaussian mixture log-likelihood",
    lambda r: [r.normal(size=(30, 4)), r.normal(size=(5, 4)), r.normal(size=(5, 4)) * 0.2, r.normal(size=5)],
    [
        ("r[:, :, None] * z * s", "r[:, :, None] * z"),
        ("1 - z * z", "z * z"),
        ("- pi * g.sum()", ""),
        ("du.sum(1), -du.sum(0)", "du.sum(1), du.sum(0)"),
        ("r.sum(0) -", "r.mean(0) -"),
    ],
)
class Mixture:
    def forward(x: Any, mu: Any, ls: Any, w: Any) -> Any:
        z = (x[:, None, :] - mu) * m.exp(-ls)
        lw = w - m.log(m.exp(w).sum())
        a = lw - (0.5 * z * z + ls).sum(-1)
        top = a.max(1, keepdims=True)
        return m.log(m.exp(a - top).sum(1)) + top[:, 0]

    def backward(x: Any, mu: Any, ls: Any, w: Any, y: Any, g: Any) -> Any:
        s = m.exp(-ls)
        z = (x[:, None, :] - mu) * s
        pi = m.exp(w) / m.exp(w).sum()
        a = m.log(pi) - (0.5 * z * z + ls).sum(-1)
        r = g[:, None] * m.exp(a - y[:, None])
        du = -r[:, :, None] * z * s
        dls = -(r[:, :, None] * (1 - z * z)).sum(0)
        return du.sum(1), -du.sum(0), dls, r.sum(0) - pi * g.sum()


@row(
    "kernel density of Cauchy kernels",
    lambda r: [r.normal(size=40), r.normal(size=25), np.array([0.6])],
    [
        ("-2 * u", "2 * u"),
        ("k * k", "k"),
        (".sum(0)", ".mean(0)"),
        ("(k - 2 * u * u * k * k)", "(k + 2 * u * u * k * k)"),
        ("/ f[:, None]", ""),
    ],
)
class CauchyDensity:
    def forward(x: Any, c: Any, h: Any) -> Any:
        u = (x[:, None] - c) / h
        return m.log((1 / (1 + u * u)).mean(1) / h)

    def backward(x: Any, c: Any, h: Any, y: Any, g: Any) -> Any:
        u = (x[:, None] - c) / h
        k = 1 / (1 + u * u)
        f = k.mean(1)
        q = g[:, None] / 25 / f[:, None]
        dx = -2 * u * k * k * q / h
        dh = -(q * (k - 2 * u * u * k * k)).sum() / h
        return dx.sum(1), -dx.sum(0), dh


# --------------------------------------------------------------------------- attention
@row(
    "linear attention, elu + 1",
    normal((2, 12, 8), (2, 12, 8), (2, 12, 6)),
    [
        (" + dn * z", ""),
        ("m.where(k > 0, 1 + 0 * k, m.exp(k))", "m.where(k > 0, 1 + 0 * k, 0 * k)"),
        ("a @ dkv", "a @ dkv / 12"),
        ("g / n", "g"),
        ("+ dz", "- dz", "sum(1, keepdims=True)"),
    ],
)
class LinearAttention:
    def forward(q: Any, k: Any, v: Any) -> Any:
        f, a = m.where(q > 0, q + 1, m.exp(q)), m.where(k > 0, k + 1, m.exp(k))
        z = a.sum(1, keepdims=True)
        return f @ (a.swapaxes(1, 2) @ v) / (f * z).sum(-1, keepdims=True)

    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        f, a = m.where(q > 0, q + 1, m.exp(q)), m.where(k > 0, k + 1, m.exp(k))
        z = a.sum(1, keepdims=True)
        n = (f * z).sum(-1, keepdims=True)
        h = g / n
        kv = a.swapaxes(1, 2) @ v
        dn = -(h * y).sum(-1, keepdims=True)
        df = h @ kv.swapaxes(1, 2) + dn * z
        dkv = f.swapaxes(1, 2) @ h
        dz = (dn * f).sum(1, keepdims=True)
        da = v @ dkv.swapaxes(1, 2) + dz
        dq = df * m.where(q > 0, 1 + 0 * q, m.exp(q))
        return dq, da * m.where(k > 0, 1 + 0 * k, m.exp(k)), a @ dkv


@row(
    "causal attention with distance bias",
    lambda r: [r.normal(size=(3, 10, 6)), r.normal(size=(3, 10, 6)), r.normal(size=(3, 10, 6)), r.uniform(0.1, 1, 3)],
    [
        ("0.4082482904638631 * ds @ k", "ds @ k", "0.4082482904638631"),
        ("ds.swapaxes(1, 2) @ q", "ds @ q"),
        ("- (dp * p).sum(-1, keepdims=True)", ""),
        ("(ds * dist).sum((1, 2))", "(ds * dist).mean((1, 2))"),
        ("p.swapaxes(1, 2) @ g", "p @ g"),
    ],
)
class Alibi:
    def forward(q: Any, k: Any, v: Any, slope: Any) -> Any:
        i = m.arange(10)
        dist = (i - i[:, None]).astype(q.dtype)
        s = 0.4082482904638631 * q @ k.swapaxes(1, 2) + slope[:, None, None] * dist
        e = m.exp(s) * (dist <= 0).astype(q.dtype)
        return (e / e.sum(-1, keepdims=True)) @ v

    def backward(q: Any, k: Any, v: Any, slope: Any, y: Any, g: Any) -> Any:
        i = m.arange(10)
        dist = (i - i[:, None]).astype(q.dtype)
        s = 0.4082482904638631 * q @ k.swapaxes(1, 2) + slope[:, None, None] * dist
        e = m.exp(s) * (dist <= 0).astype(q.dtype)
        p = e / e.sum(-1, keepdims=True)
        dp = g @ v.swapaxes(1, 2)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True))
        dq = 0.4082482904638631 * ds @ k
        dk = 0.4082482904638631 * ds.swapaxes(1, 2) @ q
        return dq, dk, p.swapaxes(1, 2) @ g, (ds * dist).sum((1, 2))


@row(
    "additive attention",
    normal((6, 8), (9, 8), (8,), (9, 5)),
    [
        ("1 - t * t", "1 - t"),
        ("(ds[:, :, None] * t).sum((0, 1))", "(ds[:, :, None] * t).mean((0, 1))"),
        ("dh.sum(0)", "dh.sum(0) / 6"),
        ("- (dp * p).sum(1, keepdims=True)", ""),
        ("p.T @ g", "p.T @ g * 0.9"),
    ],
)
class Bahdanau:
    def forward(q: Any, k: Any, w: Any, v: Any) -> Any:
        t = m.tanh(q[:, None, :] + k)
        s = t @ w
        e = m.exp(s)
        return (e / e.sum(1, keepdims=True)) @ v

    def backward(q: Any, k: Any, w: Any, v: Any, y: Any, g: Any) -> Any:
        t = m.tanh(q[:, None, :] + k)
        s = t @ w
        e = m.exp(s)
        p = e / e.sum(1, keepdims=True)
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(1, keepdims=True))
        dh = ds[:, :, None] * w * (1 - t * t)
        return dh.sum(1), dh.sum(0), (ds[:, :, None] * t).sum((0, 1)), p.T @ g


@row(
    "squeeze and excitation",
    normal((4, 8, 6, 6), (8, 4), (4, 8)),
    [
        ("/ 36", ""),
        ("s * (1 - s)", "s"),
        ("(h > 0)", "(h < 0)"),
        ("g * s[:, :, None, None] +", "0 * g +"),
        ("g * x).sum((2, 3))", "g * x).mean((2, 3))"),
    ],
)
class SqueezeExcite:
    def forward(x: Any, w1: Any, w2: Any) -> Any:
        z = x.mean((2, 3))
        h = m.clip(z @ w1, 0.0, None)
        s = 1 / (1 + m.exp(-(h @ w2)))
        return x * s[:, :, None, None]

    def backward(x: Any, w1: Any, w2: Any, y: Any, g: Any) -> Any:
        z = x.mean((2, 3))
        h = m.clip(z @ w1, 0.0, None)
        s = 1 / (1 + m.exp(-(h @ w2)))
        ds = (g * x).sum((2, 3)) * s * (1 - s)
        dh = ds @ w2.T * (h > 0).astype(x.dtype)
        dz = dh @ w1.T
        return g * s[:, :, None, None] + dz[:, :, None, None] / 36, z.T @ dh, h.T @ ds


# --------------------------------------------------------------------------- recurrences
@row(
    "minimal gated unit over time",
    lambda r: [
        r.normal(size=(8, 4, 6)),
        r.normal(size=(4, 6)),
        r.normal(size=(6, 6)) * 0.5,
        r.normal(size=(6, 6)) * 0.5,
    ],
    [
        ("(1 - f) * dh", "f * dh"),
        ("1 - c * c", "1 - c"),
        ("f * (1 - f) * df", "f * df"),
        ("df @ w.T + dr * f", "dr * f"),
        ("dr * h", "dr * c"),
    ],
)
class MinimalGatedUnit:
    def forward(x: Any, h: Any, w: Any, u: Any) -> Any:
        for t in range(8):
            f = 1 / (1 + m.exp(-(x[t] + h @ w)))
            c = m.tanh(x[t] + (f * h) @ u)
            h = (1 - f) * h + f * c
        return h

    def backward(x: Any, h: Any, w: Any, u: Any, y: Any, g: Any) -> Any:
        steps = []
        for t in range(8):
            f = 1 / (1 + m.exp(-(x[t] + h @ w)))
            c = m.tanh(x[t] + (f * h) @ u)
            steps.append((h, f, c))
            h = (1 - f) * h + f * c
        dh, dw, du, dx = g, 0 * w, 0 * u, []
        for h, f, c in steps[::-1]:
            dc = dh * f * (1 - c * c)
            dr = dc @ u.T
            df = dh * (c - h) + dr * h
            df = f * (1 - f) * df
            dw = dw + h.T @ df
            du = du + (f * h).T @ dc
            dx.append(df + dc)
            dh = (1 - f) * dh + df @ w.T + dr * f
        return m.stack(dx[::-1], 0), dh, dw, du


@row(
    "diagonal state space scan",
    lambda r: [r.normal(size=(3, 16, 5)), r.uniform(0.3, 1.5, 5), r.normal(size=5), r.normal(size=5)],
    [
        ("-a * m.exp", "a * m.exp"),
        ("decay * carry", "carry"),
        ("(g * s).sum((0, 1))", "(g * s).mean((0, 1))"),
        ("x[:, t]).sum(0)", "s[:, t]).sum(0)"),
        ("carry * s[:, t - 1]", "carry * s[:, t]"),
    ],
)
class StateSpace:
    def forward(x: Any, dt: Any, b: Any, c: Any) -> Any:
        a = 0.8
        s, states = 0 * x[:, 0], []
        for t in range(16):
            s = m.exp(-a * dt) * s + b * x[:, t]
            states.append(s)
        return c * m.stack(states, 1)

    def backward(x: Any, dt: Any, b: Any, c: Any, y: Any, g: Any) -> Any:
        a = 0.8
        decay = m.exp(-a * dt)
        s = y / c
        carry, dd, db, dx = 0 * x[:, 0], 0 * dt, 0 * b, []
        for t in range(15, -1, -1):
            carry = c * g[:, t] + decay * carry
            dx.append(b * carry)
            db = db + (carry * x[:, t]).sum(0)
            if t > 0:
                dd = dd + (carry * s[:, t - 1]).sum(0)
        return m.stack(dx[::-1], 1), -a * m.exp(-a * dt) * dd, db, (g * s).sum((0, 1))


@row(
    "causal depthwise filter of four taps",
    lambda r: [r.normal(size=(3, 20, 10)), r.normal(size=(4, 10)), r.normal(size=10)],
    [
        ("g[:, k:] * w[k]", "g[:, k:] * w[3 - k]"),
        (".sum((0, 1))\n", ".mean((0, 1))\n"),
        ("s * (1 + z * (1 - s))", "s * (1 + z)"),
        ("h[:, k:] * x[:, : 20 - k]", "h[:, k:] * x[:, k:]"),
        ("+ b\n", "\n"),
    ],
)
class CausalFilter:
    def forward(x: Any, w: Any, b: Any) -> Any:
        z = x * w[0] + b
        for k in range(1, 4):
            z = z + m.concatenate([0 * x[:, :k], x[:, : 20 - k] * w[k]], 1)
        return z / (1 + m.exp(-z))

    def backward(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
        z = x * w[0] + b
        for k in range(1, 4):
            z = z + m.concatenate([0 * x[:, :k], x[:, : 20 - k] * w[k]], 1)
        s = 1 / (1 + m.exp(-z))
        g = h = g * s * (1 + z * (1 - s))
        dx = g * w[0]
        dw = [(g * x).sum((0, 1))]
        for k in range(1, 4):
            dx = dx + m.concatenate([g[:, k:] * w[k], 0 * g[:, :k]], 1)
            dw.append((h[:, k:] * x[:, : 20 - k]).sum((0, 1)))
        db = g.sum((0, 1))
        return dx, m.stack(dw, 0), db


# --------------------------------------------------------------------------- pooling, normalisation
@row(
    "generalised mean pooling",
    lambda r: [r.uniform(0.2, 2, (6, 10, 25)), np.array([3.0])],
    [
        ("(x / q) ** (p - 1)", "(x / q) ** p"),
        ("/ 25", ""),
        ("- m.log(y)", ""),
        ("/ p", ""),
        ("m.log(x)", "x"),
    ],
)
class Gem:
    def forward(x: Any, p: Any) -> Any:
        return (x**p).mean(-1) ** (1 / p)

    def backward(x: Any, p: Any, y: Any, g: Any) -> Any:
        q = y[:, :, None]
        dx = g[:, :, None] * (x / q) ** (p - 1) / 25
        r = ((x / q) ** p * m.log(x)).mean(-1)
        dp = (g * y / p * (r - m.log(y))).sum()
        return dx, dp.reshape((1,))


@row(
    "softmax-weighted pooling of windows",
    normal(
        (4, 6, 32),
    ),
    [
        ("1 + v - y[:, :, :, None]", "1 + y[:, :, :, None] - v"),
        ("p * (1 + v", "p * (v"),
        ("p = e / e.sum(-1, keepdims=True)", "p = e"),
        ("- y[:, :, :, None]", ""),
        ("g[:, :, :, None] * p", "p"),
    ],
)
class SoftPool:
    def forward(x: Any) -> Any:
        v = x.reshape((4, 6, 8, 4))
        e = m.exp(v)
        return (e * v).sum(-1) / e.sum(-1)

    def backward(x: Any, y: Any, g: Any) -> Any:
        v = x.reshape((4, 6, 8, 4))
        e = m.exp(v)
        p = e / e.sum(-1, keepdims=True)
        return (g[:, :, :, None] * p * (1 + v - y[:, :, :, None])).reshape((4, 6, 32))


@row(
    "global response norm",
    lambda r: [r.normal(size=(3, 25, 12)), r.normal(size=12), r.normal(size=12)],
    [
        ("- (dn * n).mean(-1, keepdims=True)", ""),
        ("x / gx", "x"),
        ("g * (gamma * n + 1)", "g * gamma * n"),
        ("(g * x * n).sum((0, 1))", "(g * x * n).mean((0, 1))"),
        ("/ mu * (x", "* (x"),
    ],
)
class GlobalResponse:
    def forward(x: Any, gamma: Any, beta: Any) -> Any:
        gx = m.sqrt((x * x).sum(1, keepdims=True))
        n = gx / gx.mean(-1, keepdims=True)
        return gamma * (x * n) + beta + x

    def backward(x: Any, gamma: Any, beta: Any, y: Any, g: Any) -> Any:
        gx = m.sqrt((x * x).sum(1, keepdims=True))
        mu = gx.mean(-1, keepdims=True)
        n = gx / mu
        dn = (g * gamma * x).sum(1, keepdims=True)
        dx = g * (gamma * n + 1) + (dn - (dn * n).mean(-1, keepdims=True)) / mu * (x / gx)
        return dx, (g * x * n).sum((0, 1)), g.sum((0, 1))


@row(
    "local response norm over channels",
    normal(
        (4, 9, 16),
    ),
    [
        ("-1.5 * q", "1.5 * q"),
        ("0.2 * x\n", "0.4 * x\n"),
        ("d**-0.75", "d**-1.0"),
        ("t = g * y / d", "t = g * x / d"),
        ("band @ t", "t"),
    ],
)
class LocalResponse:
    def forward(x: Any) -> Any:
        i = m.arange(9)
        band = (m.abs(i - i[:, None]) <= 2).astype(x.dtype)
        d = 1 + 0.2 * (band @ (x * x))
        return x * d**-0.75

    def backward(x: Any, y: Any, g: Any) -> Any:
        i = m.arange(9)
        band = (m.abs(i - i[:, None]) <= 2).astype(x.dtype)
        d = 1 + 0.2 * (band @ (x * x))
        t = g * y / d
        q = 0.2 * x
        return g * d**-0.75 + -1.5 * q * (band @ t)


@row(
    "filter response norm with threshold",
    lambda r: [r.normal(size=(4, 6, 20)), r.uniform(0.5, 1.5, (6, 1)), r.normal(size=(6, 1)), r.normal(size=(6, 1))],
    [
        ("z > t", "z < t"),
        ("- h * (d * h).mean(-1, keepdims=True)", ""),
        ("(g * above * h).sum((0, 2))", "(g * above * h).mean((0, 2))"),
        ("(g - g * above)", "(g * above)"),
        ("+ 0.01", "+ 0.1"),
    ],
)
class FilterResponse:
    def forward(x: Any, gamma: Any, beta: Any, t: Any) -> Any:
        h = x / m.sqrt((x * x).mean(-1, keepdims=True) + 0.01)
        return m.maximum(gamma * h + beta, t)

    def backward(x: Any, gamma: Any, beta: Any, t: Any, y: Any, g: Any) -> Any:
        r = m.sqrt((x * x).mean(-1, keepdims=True) + 0.01)
        h = x / r
        z = gamma * h + beta
        above = (z > t).astype(x.dtype)
        d = g * above * gamma
        dx = (d - h * (d * h).mean(-1, keepdims=True)) / r
        dgamma = (g * above * h).sum((0, 2)).reshape((6, 1))
        dbeta = (g * above).sum((0, 2)).reshape((6, 1))
        dt = (g - g * above).sum((0, 2)).reshape((6, 1))
        return dx, dgamma, dbeta, dt


@row(
    "scale norm",
    lambda r: [r.normal(size=(40, 32)), np.array([5.0])],
    [
        ("- u * (g * u).sum(-1, keepdims=True)", ""),
        ("s / r", "1 / r"),
        ("(g * u).sum()", "(g * u).mean()"),
        ("u = x / r", "u = x"),
        ("s / r", "s / (r * r)"),
    ],
)
class ScaleNorm:
    def forward(x: Any, s: Any) -> Any:
        return s * x / m.sqrt((x * x).sum(-1, keepdims=True))

    def backward(x: Any, s: Any, y: Any, g: Any) -> Any:
        r = m.sqrt((x * x).sum(-1, keepdims=True))
        u = x / r
        dx = s / r * (g - u * (g * u).sum(-1, keepdims=True))
        return dx, (g * u).sum().reshape((1,))


# --------------------------------------------------------------------------- linear algebra
@row(
    "Householder reflections",
    normal((20, 8), (3, 8)),
    [
        ("k * (g @ v[i])[:, None]", "(g @ v[i])[:, None]"),
        ("2 / n", "1 / n"),
        ("+ (xs[i] * (g", "- (xs[i] * (g"),
        ("- 2 * (a * b).sum() * v[i] / n", "- (a * b).sum() * v[i] / n"),
        ("(2, 1, 0)", "(0, 1, 2)"),
    ],
)
class Householder:
    def forward(x: Any, v: Any) -> Any:
        for i in range(3):
            x = x - 2 / (v[i] * v[i]).sum() * (x @ v[i])[:, None] * v[i]
        return x

    def backward(x: Any, v: Any, y: Any, g: Any) -> Any:
        xs = [x]
        for i in range(2):
            xs.append(xs[i] - 2 / (v[i] * v[i]).sum() * (xs[i] @ v[i])[:, None] * v[i])
        dv = [0, 0, 0]
        for i in (2, 1, 0):
            n = (v[i] * v[i]).sum()
            k = 2 / n
            a, b = xs[i] @ v[i], g @ v[i]
            d = (a[:, None] * g).sum(0) + (xs[i] * (g @ v[i])[:, None]).sum(0)
            dv[i] = -k * (d - 2 * (a * b).sum() * v[i] / n)
            g = g - k * (g @ v[i])[:, None] * v[i]
        return g, m.stack(dv, 0)


@row(
    "Cayley transform of a skew matrix",
    lambda r: [r.normal(size=(10, 10)) * 0.3, r.normal(size=(6, 10))],
    [
        ("ds - ds.T", "ds"),
        ("g @ q.T", "g @ q"),
        ("(dq + ", "("),
        ("x.T @ g", "x.T @ g / 6"),
        ("inv.T @", "inv @"),
    ],
    halves=False,
)
class Cayley:
    def forward(a: Any, x: Any) -> Any:
        s = a - a.T
        eye = m.eye(10).astype(a.dtype)
        return x @ (m.linalg.inv(eye + s) @ (eye - s))

    def backward(a: Any, x: Any, y: Any, g: Any) -> Any:
        s = a - a.T
        eye = m.eye(10).astype(a.dtype)
        inv = m.linalg.inv(eye + s)
        q = inv @ (eye - s)
        dq = x.T @ g
        ds = -inv.T @ (dq + dq @ q.T)
        return ds - ds.T, g @ q.T


@row(
    "matrix exponential by Taylor's series",
    lambda r: [r.normal(size=(8, 8)) * 0.3],
    [
        ("p[j].T @ g @", "p[j] @ g @"),
        ("/ fact", ""),
        ("range(1, 7)", "range(1, 3)"),
        ("p[k - 1 - j].T", "p[j].T"),
        ("fact * k", "fact"),
    ],
)
class Expm:
    def forward(a: Any) -> Any:
        term = m.eye(8).astype(a.dtype)
        total = term
        for k in range(1, 7):
            term = term @ a / k
            total = total + term
        return total

    def backward(a: Any, y: Any, g: Any) -> Any:
        p = [m.eye(8).astype(a.dtype)]
        for _ in range(6):
            p.append(p[-1] @ a)
        d, fact = 0 * a, 1
        for k in range(1, 7):
            fact = fact * k
            for j in range(k):
                d = d + p[j].T @ g @ p[k - 1 - j].T / fact
        return d


@row(
    "low-rank adapter",
    normal((24, 20), (20, 16), (20, 4), (4, 16)),
    [
        ("0.5 * g @ b.T", "g @ b.T"),
        ("g @ w.T + ", ""),
        ("0.5 * (x @ a).T @ g", "(x @ a).T @ g"),
        ("x.T @ g,", "x.T @ g / 24,"),
        ("x.T @ h", "x.T @ h * 1.05"),
    ],
)
class Lora:
    def forward(x: Any, w: Any, a: Any, b: Any) -> Any:
        return x @ w + 0.5 * (x @ a) @ b

    def backward(x: Any, w: Any, a: Any, b: Any, y: Any, g: Any) -> Any:
        h = 0.5 * g @ b.T
        return g @ w.T + h @ a.T, x.T @ g, x.T @ h, 0.5 * (x @ a).T @ g


@row(
    "tensor in CP form",
    normal((8, 5), (9, 5), (10, 5)),
    [
        ('"ijk,jr,kr->ir", g, b, c', '"ijk,jr,kr->ir", g, b, 0 * c + 1'),
        ('"ijk,ir,kr->jr", g, a, c', '"ijk,ir,kr->jr", g, a, 0.5 * c'),
        ("t * g", "g"),
        ("1 - y * y", "1 + y * y"),
        ("g, a, b)", "g, a, b) / 8"),
    ],
)
class Cp:
    def forward(a: Any, b: Any, c: Any) -> Any:
        return m.tanh(m.einsum("ir,jr,kr->ijk", a, b, c))

    def backward(a: Any, b: Any, c: Any, y: Any, g: Any) -> Any:
        t = 1 - y * y
        g = t * g
        da = m.einsum("ijk,jr,kr->ir", g, b, c)
        db = m.einsum("ijk,ir,kr->jr", g, a, c)
        dc = m.einsum("ijk,ir,jr->kr", g, a, b)
        return da, db, dc


@row(
    "factorisation machine",
    lambda r: [r.normal(size=(30, 12)), r.normal(size=12), r.normal(size=(12, 5))],
    [
        ("x.T @ (g[:, None] * s) - ", "x.T @ (g[:, None] * s) + "),
        ("g[:, None] * w + ", ""),
        ("x * (v * v).sum(1)", "(v * v).sum(1)"),
        ("x.T @ g", "x.T @ g / 30"),
        ("s @ v.T", "2 * s @ v.T"),
    ],
)
class FactorisationMachine:
    def forward(x: Any, w: Any, v: Any) -> Any:
        s = x @ v
        return x @ w + 0.5 * ((s * s).sum(1) - ((x * x) @ (v * v)).sum(1))

    def backward(x: Any, w: Any, v: Any, y: Any, g: Any) -> Any:
        s = x @ v
        dx = g[:, None] * w + g[:, None] * (s @ v.T - x * (v * v).sum(1))
        dw = x.T @ g
        dv = x.T @ (g[:, None] * s) - v * ((x * x).T @ g)[:, None]
        return dx, dw, dv


@row(
    "cross network, two layers",
    lambda r: [r.normal(size=(20, 10)), r.normal(size=(2, 10)) * 0.5, r.normal(size=(2, 10))],
    [
        ("d0 + d * s", "d0"),
        ("e @ w[k : k + 1]", "0 * e @ w[k : k + 1]"),
        ("d.sum(0)", "d.mean(0)"),
        ("e.T @ xs[k]", "e.T @ xs[0]"),
        ("(d * x)", "(d * xs[k])"),
    ],
)
class CrossNetwork:
    def forward(x: Any, w: Any, b: Any) -> Any:
        h = x
        for k in range(2):
            h = x * (h @ w[k])[:, None] + b[k] + h
        return h

    def backward(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
        xs = [x, x * (x @ w[0])[:, None] + b[0] + x]
        d, d0, dw, db = g, 0 * x, [0, 0], [0, 0]
        for k in (1, 0):
            s = (xs[k] @ w[k])[:, None]
            e = (d * x).sum(1, keepdims=True)
            dw[k] = (e.T @ xs[k])[0]
            db[k] = d.sum(0)
            d0 = d0 + d * s
            d = d + e @ w[k : k + 1]
        return d0 + d, m.stack(dw, 0), m.stack(db, 0)


@row(
    "cosine addressing of a memory",
    lambda r: [r.normal(size=(6, 8)), r.normal(size=(14, 8)), r.uniform(1, 3, (6, 1))],
    [
        ("- (dp * p).sum(1, keepdims=True)", ""),
        ("- (dn * n).sum(1, keepdims=True) * n", ""),
        ("p.T @ g + ", ""),
        ("(ds * c).sum(1, keepdims=True)", "(ds * c).mean(1, keepdims=True)"),
        ("beta * ds", "ds"),
    ],
)
class CosineAddressing:
    def forward(k: Any, mem: Any, beta: Any) -> Any:
        u = k / m.sqrt((k * k).sum(1, keepdims=True))
        n = mem / m.sqrt((mem * mem).sum(1, keepdims=True))
        e = m.exp(beta * (u @ n.T))
        return (e / e.sum(1, keepdims=True)) @ mem

    def backward(k: Any, mem: Any, beta: Any, y: Any, g: Any) -> Any:
        ru, rn = m.sqrt((k * k).sum(1, keepdims=True)), m.sqrt((mem * mem).sum(1, keepdims=True))
        u, n = k / ru, mem / rn
        c = u @ n.T
        e = m.exp(beta * c)
        p = e / e.sum(1, keepdims=True)
        dp = g @ mem.T
        ds = p * (dp - (dp * p).sum(1, keepdims=True))
        dc = beta * ds
        du, dn = dc @ n, dc.T @ u
        dk = (du - (du * u).sum(1, keepdims=True) * u) / ru
        dmem = p.T @ g + (dn - (dn * n).sum(1, keepdims=True) * n) / rn
        return dk, dmem, (ds * c).sum(1, keepdims=True)
