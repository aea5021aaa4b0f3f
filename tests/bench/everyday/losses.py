"""Softmaxes and losses, in NumPy and in Paddle operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from everyday.activations import in_numpy, in_paddle

import pylayer.paddle as paddle

F: Any = paddle.nn.functional


def np_softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def np_log_softmax(x: Any) -> Any:
    c = x - x.max(-1, keepdims=True)
    return c - np.log(np.exp(c).sum(-1, keepdims=True))


def np_softmax_vjp(x: Any, y: Any, g: Any) -> Any:
    return y * (g - (g * y).sum(-1, keepdims=True))


def np_log_softmax_vjp(x: Any, y: Any, g: Any) -> Any:
    return g - np.exp(y) * g.sum(-1, keepdims=True)


def np_cross_entropy(x: Any, labels: Any) -> Any:
    return -np_log_softmax(x)[np.arange(len(x)), labels].mean()


def np_cross_entropy_vjp(x: Any, labels: Any, y: Any, g: Any) -> Any:
    p = np_softmax(x)
    p[np.arange(len(x)), labels] -= 1
    return g * p / len(x), None


def np_focal(x: Any, t: Any) -> Any:
    p = 1 / (1 + np.exp(-x))
    q = np.where(t == 1, p, 1 - p)
    return -((1 - q) ** 2 * np.log(q)).sum(-1)


def np_focal_vjp(x: Any, t: Any, y: Any, g: Any) -> Any:
    p = 1 / (1 + np.exp(-x))
    q = np.where(t == 1, p, 1 - p)
    slope = 2 * (1 - q) * np.log(q) - (1 - q) ** 2 / q
    return g[..., None] * slope * q * (1 - q) * np.where(t == 1, 1, -1), None


def np_huber(x: Any, y: Any) -> Any:
    e = x - y
    return np.where(np.abs(e) < 1, 0.5 * e * e, np.abs(e) - 0.5).mean()


def np_huber_vjp(x: Any, t: Any, y: Any, g: Any) -> Any:
    d = g * np.clip(x - t, -1, 1) / x.size
    return d, -d


def np_kl(p: Any, q: Any) -> Any:
    a, b = np_log_softmax(p), np_log_softmax(q)
    return (np.exp(a) * (a - b)).sum(-1)


def np_kl_vjp(p: Any, q: Any, y: Any, g: Any) -> Any:
    a, b = np_log_softmax(p), np_log_softmax(q)
    g = g[:, None]
    return g * np.exp(a) * (a - b - y[:, None]), g * (np.exp(b) - np.exp(a))


def np_triplet(a: Any, p: Any, n: Any) -> Any:
    near, far = ((a - p) ** 2).sum(-1), ((a - n) ** 2).sum(-1)
    return np.maximum(near - far + 0.7, 0).mean()


def np_triplet_vjp(a: Any, p: Any, n: Any, y: Any, g: Any) -> Any:
    near, far = ((a - p) ** 2).sum(-1), ((a - n) ** 2).sum(-1)
    s = 2 * g * (near - far + 0.7 > 0)[:, None] / len(a)
    return s * (n - p), s * (p - a), s * (a - n)


def softmax(x: Any) -> Any:
    e = paddle.exp(x - x.max(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def softmax_vjp(x: Any, y: Any, g: Any) -> Any:
    return y * (g - (g * y).sum(-1, keepdim=True))


def softmax_float32(x: Any) -> Any:
    return F.softmax(x.astype("float32"), axis=-1).astype(x.dtype)


def softmax_float32_vjp(x: Any, y: Any, g: Any) -> Any:
    p, d = y.astype("float32"), g.astype("float32")
    return (p * (d - (d * p).sum(-1, keepdim=True))).astype(x.dtype)


def smoothed(x: Any, labels: Any) -> Any:
    t = F.one_hot(labels, 20).astype(x.dtype) * 0.9 + 0.1 / 20
    return -(t * F.log_softmax(x, axis=-1)).sum(-1).mean()


def smoothed_vjp(x: Any, labels: Any, y: Any, g: Any) -> Any:
    t = F.one_hot(labels, 20).astype(x.dtype) * 0.9 + 0.1 / 20
    return g * (F.softmax(x, axis=-1) - t) / x.shape[0], None


def bce(x: Any, t: Any) -> Any:
    zero = paddle.zeros_like(x)
    return (paddle.maximum(x, zero) - x * t + paddle.log1p(paddle.exp(-paddle.abs(x)))).mean()


def bce_vjp(x: Any, t: Any, y: Any, g: Any) -> Any:
    n = x.shape[0] * x.shape[1]
    return g * (F.sigmoid(x) - t) / n, -g * x / n


def focal(x: Any, labels: Any) -> Any:
    q = F.softmax(x, axis=-1).take_along_axis(labels.unsqueeze(-1), -1)
    return -((1 - q) ** 2 * paddle.log(q)).mean()


def focal_vjp(x: Any, labels: Any, y: Any, g: Any) -> Any:
    p = F.softmax(x, axis=-1)
    q = p.take_along_axis(labels.unsqueeze(-1), -1)
    dq = g * (2 * (1 - q) * paddle.log(q) - (1 - q) ** 2 / q) / x.shape[0]
    return dq * q * (F.one_hot(labels, x.shape[1]).astype(x.dtype) - p), None


def kl(a: Any, q: Any) -> Any:
    return (q * (paddle.log(q) - F.log_softmax(a, axis=-1))).sum(-1).mean()


def kl_vjp(a: Any, q: Any, y: Any, g: Any) -> Any:
    n = a.shape[0]
    logs = F.log_softmax(a, axis=-1)
    return g * (paddle.exp(logs) * q.sum(-1, keepdim=True) - q) / n, g * (paddle.log(q) + 1 - logs) / n


def contrastive(a: Any, b: Any) -> Any:
    s = a @ b.T / 0.5
    return (paddle.logsumexp(s, axis=-1) - paddle.diagonal(s)).mean()


def contrastive_vjp(a: Any, b: Any, y: Any, g: Any) -> Any:
    n = a.shape[0]
    d = g * (F.softmax(a @ b.T / 0.5, axis=-1) - paddle.eye(n, dtype=a.dtype)) / n / 0.5
    return d @ b, d.T @ a


def cosine_loss(a: Any, b: Any) -> Any:
    return (1 - (a * b).sum(-1) / (paddle.norm(a, axis=-1) * paddle.norm(b, axis=-1))).sum()


def cosine_loss_vjp(a: Any, b: Any, y: Any, g: Any) -> Any:
    m, n = paddle.norm(a, axis=-1, keepdim=True), paddle.norm(b, axis=-1, keepdim=True)
    c = (a * b).sum(-1, keepdim=True) / (m * n)
    return -g * (b / (m * n) - c * a / m**2), -g * (a / (m * n) - c * b / n**2)


def logits(r: Any) -> Any:
    return [3 * r.standard_normal((16, 50))]


def labelled(r: Any) -> Any:
    return [2 * r.standard_normal((16, 20)), r.integers(0, 20, 16)]


def pair(r: Any) -> Any:
    return [*r.standard_normal((2, 12, 16))]


LAYERS = [
    in_numpy("softmax", forward=np_softmax, backward=np_softmax_vjp, inputs=logits),
    in_numpy("log-softmax", forward=np_log_softmax, backward=np_log_softmax_vjp, inputs=logits),
    in_numpy("cross-entropy", forward=np_cross_entropy, backward=np_cross_entropy_vjp, inputs=labelled),
    in_numpy("focal loss, binary", forward=np_focal, backward=np_focal_vjp,
             inputs=lambda r: [r.standard_normal((16, 20)), r.integers(0, 2, (16, 20))]),
    in_numpy("huber loss", forward=np_huber, backward=np_huber_vjp, inputs=lambda r: [*r.standard_normal((2, 16, 20))]),
    in_numpy("KL of two softmaxes", forward=np_kl, backward=np_kl_vjp,
             inputs=lambda r: [*r.standard_normal((2, 16, 10))]),
    in_numpy("triplet loss", forward=np_triplet, backward=np_triplet_vjp,
             inputs=lambda r: [*r.standard_normal((3, 16, 8))]),
    in_paddle("softmax in operations", forward=softmax, backward=softmax_vjp, inputs=logits),
    in_paddle("softmax in float32", forward=softmax_float32, backward=softmax_float32_vjp, inputs=logits, coarse=True),
    in_paddle("log-softmax in operations", forward=lambda x: x - paddle.logsumexp(x, axis=-1, keepdim=True),
              backward=lambda x, y, g: g - paddle.exp(y) * g.sum(-1, keepdim=True), inputs=logits),
    in_paddle("label smoothing", forward=smoothed, backward=smoothed_vjp, inputs=labelled),
    in_paddle("binary cross-entropy", forward=bce, backward=bce_vjp,
              inputs=lambda r: [2 * r.standard_normal((16, 20)), r.uniform(0, 1, (16, 20))]),
    in_paddle("focal loss, softmax", forward=focal, backward=focal_vjp, inputs=labelled),
    in_paddle("KL to given shares", forward=kl, backward=kl_vjp,
              inputs=lambda r: [r.standard_normal((12, 10)), r.dirichlet(np.ones(10) * 3, 12)]),
    in_paddle("contrastive loss", forward=contrastive, backward=contrastive_vjp, inputs=pair),
    in_paddle("cosine loss", forward=cosine_loss, backward=cosine_loss_vjp, inputs=pair),
]  # fmt: skip
