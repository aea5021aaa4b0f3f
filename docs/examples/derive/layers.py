"""Ten layers with the backward that a person wrote, for docs/derive.md."""
# ruff: noqa: D101 - the page shows them without a word

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle.autograd import PyLayer

F: Any = paddle.nn.functional


class Swish(PyLayer):
    @staticmethod
    def forward(ctx, x, beta=1.5):
        s = F.sigmoid(beta * x)
        ctx.beta = beta
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, dy):
        x, s = ctx.saved_tensor()
        return dy * (s + ctx.beta * x * s * (1 - s))


class RMSNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-6):
        r = paddle.rsqrt((x * x).mean(axis=-1, keepdim=True) + eps)
        ctx.save_for_backward(x, r, weight)
        return x * r * weight

    @staticmethod
    def backward(ctx, dy):
        x, r, weight = ctx.saved_tensor()
        g = dy * weight
        dx = r * (g - x * r * r * (g * x).mean(axis=-1, keepdim=True))
        return dx, (dy * x * r).sum(axis=0)


class LayerNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, bias):
        mu = x.mean(axis=-1, keepdim=True)
        xc = x - mu
        rstd = paddle.rsqrt((xc * xc).mean(axis=-1, keepdim=True) + 1e-5)
        xhat = xc * rstd
        ctx.save_for_backward(xhat, rstd, weight)
        return xhat * weight + bias

    @staticmethod
    def backward(ctx, dy):
        xhat, rstd, weight = ctx.saved_tensor()
        g = dy * weight
        mean = g.mean(axis=-1, keepdim=True)
        dx = rstd * (g - mean - xhat * (g * xhat).mean(axis=-1, keepdim=True))
        return dx, (dy * xhat).sum(axis=0), dy.sum(axis=0)


class CrossEntropy(PyLayer):
    @staticmethod
    def forward(ctx, logits, target):
        logp = F.log_softmax(logits, axis=-1)
        ctx.save_for_backward(logp, target)
        return -(target * logp).sum(axis=-1).mean()

    @staticmethod
    def backward(ctx, dy):
        logp, target = ctx.saved_tensor()
        n = logp.shape[0]
        total = target.sum(axis=-1, keepdim=True)
        return dy * (paddle.exp(logp) * total - target) / n, -dy * logp / n


class Attention(PyLayer):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        p = F.softmax(paddle.matmul(q, k, transpose_y=True) * scale, axis=-1)
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, p)
        return paddle.matmul(p, v)

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensor()
        dp = paddle.matmul(do, v, transpose_y=True)
        ds = p * (dp - (dp * p).sum(axis=-1, keepdim=True)) * ctx.scale
        dq = paddle.matmul(ds, k)
        dk = paddle.matmul(ds, q, transpose_x=True)
        return dq, dk, paddle.matmul(p, do, transpose_x=True)


class LSTMCell(PyLayer):
    @staticmethod
    def forward(ctx, gates, c):
        gi, gf, gg, go = paddle.split(gates, 4, axis=-1)
        i, f, g, o = F.sigmoid(gi), F.sigmoid(gf), paddle.tanh(gg), F.sigmoid(go)
        c_new = f * c + i * g
        t = paddle.tanh(c_new)
        ctx.save_for_backward(i, f, g, o, c, t)
        return o * t, c_new

    @staticmethod
    def backward(ctx, dh, dc):
        i, f, g, o, c, t = ctx.saved_tensor()
        dc = dc + dh * o * (1 - t * t)
        parts = [dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g)]
        return paddle.concat([*parts, dh * t * o * (1 - o)], axis=-1), dc * f


class Linear(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w + b

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        return dy @ w.t(), x.t() @ dy, dy.sum(axis=0)


class PairwiseDistance(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        diff = x.unsqueeze(1) - y.unsqueeze(0)
        ctx.save_for_backward(diff)
        return (diff * diff).sum(axis=-1)

    @staticmethod
    def backward(ctx, g):
        (diff,) = ctx.saved_tensor()
        d = 2 * g.unsqueeze(-1) * diff
        return d.sum(axis=1), -d.sum(axis=0)


class Embedding(PyLayer):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return paddle.gather(table, ids)

    @staticmethod
    def backward(ctx, dy):
        (ids,) = ctx.saved_tensor()
        return F.one_hot(ids, ctx.rows).astype(dy.dtype).t() @ dy, None


class NumpyTanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.to_tensor(np.tanh(x.numpy()))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (1 - y * y)
