"""Attention, recurrent cells and recurrences, in NumPy and in Paddle operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from everyday.activations import in_numpy, in_paddle, np_sigmoid
from everyday.losses import np_softmax

import pylayer.paddle as paddle

F: Any = paddle.nn.functional


def np_attention(q: Any, k: Any, v: Any) -> Any:
    return np_softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def np_attention_vjp(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
    scale = math.sqrt(q.shape[-1])
    p = np_softmax(q @ k.swapaxes(-1, -2) / scale)
    dp = g @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g


def attention(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(q @ k.transpose([0, 2, 1]) / math.sqrt(q.shape[-1]), axis=-1) @ v


def attention_vjp(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
    p = F.softmax(q @ k.transpose([0, 2, 1]) / math.sqrt(q.shape[-1]), axis=-1)
    dp = g @ v.transpose([0, 2, 1])
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.transpose([0, 2, 1]) @ q, p.transpose([0, 2, 1]) @ g


def causal_scores(q: Any, k: Any) -> Any:
    future = paddle.triu(paddle.ones([q.shape[0], q.shape[0]]), 1).astype("bool")
    return paddle.masked_fill(q @ k.T / math.sqrt(q.shape[-1]), future, -1e9)


def causal(q: Any, k: Any, v: Any) -> Any:
    return F.softmax(causal_scores(q, k), axis=-1) @ v


def causal_vjp(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
    p = F.softmax(causal_scores(q, k), axis=-1)
    dp = g @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.T @ q, p.T @ g


def np_lstm(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    i, f, o, n = np.split(x @ w + h @ u + b, 4, axis=1)
    new = np_sigmoid(f) * c + np_sigmoid(i) * np.tanh(n)
    return np_sigmoid(o) * np.tanh(new), new


def np_lstm_vjp(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any, y: Any, g: Any) -> Any:
    i, f, o, n = np.split(x @ w + h @ u + b, 4, axis=1)
    i, f, o, n, t = np_sigmoid(i), np_sigmoid(f), np_sigmoid(o), np.tanh(n), np.tanh(y[1])
    dc = g[1] + g[0] * o * (1 - t * t)
    parts = [dc * n * i * (1 - i), dc * c * f * (1 - f), g[0] * t * o * (1 - o), dc * i * (1 - n * n)]
    d = np.concatenate(parts, axis=1)
    return d @ w.T, d @ u.T, dc * f, x.T @ d, h.T @ d, d.sum(0)


def lstm(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    i, f, o, n = paddle.split(x @ w + h @ u + b, 4, axis=1)
    new = F.sigmoid(f) * c + F.sigmoid(i) * paddle.tanh(n)
    return F.sigmoid(o) * paddle.tanh(new), new


def lstm_vjp(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any, y: Any, g: Any) -> Any:
    i, f, o, n = paddle.split(x @ w + h @ u + b, 4, axis=1)
    i, f, o, n, t = F.sigmoid(i), F.sigmoid(f), F.sigmoid(o), paddle.tanh(n), paddle.tanh(y[1])
    dc = g[1] + g[0] * o * (1 - t * t)
    parts = [dc * n * i * (1 - i), dc * c * f * (1 - f), g[0] * t * o * (1 - o), dc * i * (1 - n * n)]
    d = paddle.concat(parts, axis=1)
    return d @ w.T, d @ u.T, dc * f, x.T @ d, h.T @ d, d.sum(0)


def np_gru(x: Any, h: Any, w: Any, u: Any) -> Any:
    k = h.shape[1]
    a, b = x @ w, h @ u
    r, z = np_sigmoid(a[:, :k] + b[:, :k]), np_sigmoid(a[:, k : 2 * k] + b[:, k : 2 * k])
    n = np.tanh(a[:, 2 * k :] + r * b[:, 2 * k :])
    return (1 - z) * n + z * h


def np_gru_vjp(x: Any, h: Any, w: Any, u: Any, y: Any, g: Any) -> Any:
    k = h.shape[1]
    a, b = x @ w, h @ u
    r, z = np_sigmoid(a[:, :k] + b[:, :k]), np_sigmoid(a[:, k : 2 * k] + b[:, k : 2 * k])
    n = np.tanh(a[:, 2 * k :] + r * b[:, 2 * k :])
    dn = g * (1 - z) * (1 - n * n)
    dr, dz = dn * b[:, 2 * k :] * r * (1 - r), g * (h - n) * z * (1 - z)
    da, db = np.concatenate([dr, dz, dn], 1), np.concatenate([dr, dz, dn * r], 1)
    return da @ w.T, db @ u.T + g * z, x.T @ da, h.T @ db


def gru(x: Any, h: Any, w: Any, u: Any) -> Any:
    ar, az, an = paddle.split(x @ w, 3, axis=1)
    br, bz, bn = paddle.split(h @ u, 3, axis=1)
    z = F.sigmoid(az + bz)
    n = paddle.tanh(an + F.sigmoid(ar + br) * bn)
    return n + z * (h - n)


def gru_vjp(x: Any, h: Any, w: Any, u: Any, y: Any, g: Any) -> Any:
    ar, az, an = paddle.split(x @ w, 3, axis=1)
    br, bz, bn = paddle.split(h @ u, 3, axis=1)
    r, z = F.sigmoid(ar + br), F.sigmoid(az + bz)
    n = paddle.tanh(an + r * bn)
    dn = g * (1 - z) * (1 - n * n)
    dr, dz = dn * bn * r * (1 - r), g * (h - n) * z * (1 - z)
    da, db = paddle.concat([dr, dz, dn], axis=1), paddle.concat([dr, dz, dn * r], axis=1)
    return da @ w.T, db @ u.T + g * z, x.T @ da, h.T @ db


def rotated(x: Any, sign: float, xp: Any) -> Any:
    half, length = x.shape[-1] // 2, x.shape[-2]
    angles = np.arange(length)[:, None] / 100 ** (np.arange(half) / half)
    c, s = np.cos(angles), sign * np.sin(angles)
    if xp is paddle:
        c, s = paddle.to_tensor(c).astype(x.dtype), paddle.to_tensor(s).astype(x.dtype)
        return paddle.concat([x[..., :half] * c - x[..., half:] * s, x[..., :half] * s + x[..., half:] * c], axis=-1)
    c, s = c.astype(x.dtype), s.astype(x.dtype)
    return np.concatenate([x[..., :half] * c - x[..., half:] * s, x[..., :half] * s + x[..., half:] * c], -1)


def np_scan(x: Any, a: Any) -> Any:
    y = np.empty_like(x)
    state = np.zeros_like(x[0])
    for t in range(len(x)):
        state = a[t] * state + x[t]
        y[t] = state
    return y


def np_scan_vjp(x: Any, a: Any, y: Any, g: Any) -> Any:
    dx, da = np.empty_like(x), np.zeros_like(a)
    carry = np.zeros_like(g[0])
    for t in reversed(range(len(x))):
        dx[t] = carry = g[t] + carry
        if t:
            da[t] = carry * y[t - 1]
        carry = carry * a[t]
    return dx, da


def moving_average(x: Any) -> Any:
    states = [x[0]]
    for t in range(1, x.shape[0]):
        states.append(0.9 * states[-1] + 0.1 * x[t])
    return paddle.stack(states)


def moving_average_vjp(x: Any, y: Any, g: Any) -> Any:
    gradients, carry = [], paddle.zeros_like(g[0])
    for t in reversed(range(1, x.shape[0])):
        carry = carry + g[t]
        gradients.append(0.1 * carry)
        carry = 0.9 * carry
    return paddle.stack([carry + g[0], *reversed(gradients)])


def rnn(x: Any, w: Any) -> Any:
    h = paddle.zeros_like(x[0])
    for t in range(x.shape[0]):
        h = paddle.tanh(h @ w + x[t])
    return h


def rnn_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    states = [paddle.zeros_like(x[0])]
    for t in range(x.shape[0]):
        states.append(paddle.tanh(states[-1] @ w + x[t]))
    dx, dw = [], paddle.zeros_like(w)
    for h, before in zip(states[:0:-1], states[-2::-1], strict=True):
        d = g * (1 - h * h)
        dx.append(d)
        dw = dw + before.T @ d
        g = d @ w.T
    return paddle.stack(dx[::-1]), dw


def heads(r: Any) -> Any:
    return [*r.standard_normal((3, 2, 10, 8))]


def cell(r: Any) -> Any:
    return [r.standard_normal((4, 8)), *(0.7 * r.standard_normal((2, 4, 8))), *(r.standard_normal((2, 8, 32)) / 3),
            0.1 * r.standard_normal(32)]  # fmt: skip


def gated(r: Any) -> Any:
    return [r.standard_normal((4, 8)), 0.7 * r.standard_normal((4, 8)), *(r.standard_normal((2, 8, 24)) / 3)]


LAYERS = [
    in_numpy("attention", forward=np_attention, backward=np_attention_vjp, inputs=heads),
    in_numpy("LSTM cell", forward=np_lstm, backward=np_lstm_vjp, inputs=cell),
    in_numpy("GRU cell", forward=np_gru, backward=np_gru_vjp, inputs=gated),
    in_numpy("rotary embedding", forward=lambda x: rotated(x, 1, np), backward=lambda x, y, g: rotated(g, -1, np),
             inputs=lambda r: [r.standard_normal((2, 16, 8))]),
    in_numpy("linear recurrence", forward=np_scan, backward=np_scan_vjp,
             inputs=lambda r: [r.standard_normal((20, 8)), r.uniform(0.3, 0.99, (20, 8))]),
    in_paddle("attention in operations", forward=attention, backward=attention_vjp, inputs=heads),
    in_paddle("causal attention", forward=causal, backward=causal_vjp,
              inputs=lambda r: [*r.standard_normal((3, 12, 8))]),
    in_paddle("LSTM cell in operations", forward=lstm, backward=lstm_vjp, inputs=cell),
    in_paddle("GRU cell in operations", forward=gru, backward=gru_vjp, inputs=gated),
    in_paddle("rotary embedding in operations", forward=lambda x: rotated(x, 1, paddle),
              backward=lambda x, y, g: rotated(g, -1, paddle), inputs=lambda r: [r.standard_normal((2, 16, 8))]),
    in_paddle("moving average", forward=moving_average, backward=moving_average_vjp,
              inputs=lambda r: [r.standard_normal((20, 12))]),
    in_paddle("recurrence of a tanh", forward=rnn, backward=rnn_vjp,
              inputs=lambda r: [r.standard_normal((6, 4, 8)), r.standard_normal((8, 8)) / 3]),
]  # fmt: skip
