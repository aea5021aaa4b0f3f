"""The second draw of slips.py: ten other layers, five mistakes in the backward of each."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle.autograd import PyLayer
from slips_rows import Row, rows_into

ROWS: list[Row] = []
row = rows_into(ROWS)


@row(
    lambda r: [r.standard_normal((2, 6, 4)), r.uniform(0.5, 1.5, 6)],
    ("(dxhat * xhat).mean(axis=-1, keepdim=True)", "(dxhat * xhat).mean(axis=1, keepdim=True)", "var|xhat|centred"),
    ("inv * (dxhat", "inv * (dy.reshape([2, 2, 12])", "return|xhat"),
    ("- dxhat.mean(axis=-1, keepdim=True)", "- dy.mean()", "mean|centred"),
    (".sum(axis=[0, 2])", ".sum(axis=0).mean(axis=1)", "return"),
    ("xhat * (dxhat * xhat)", "(dxhat * xhat)", "var|xhat"),
)
class GroupNormTwo(PyLayer):
    @staticmethod
    def forward(ctx, x, gamma):
        grouped = x.reshape([2, 2, 12])
        mean = grouped.mean(axis=-1, keepdim=True)
        centred = grouped - mean
        var = (centred * centred).mean(axis=-1, keepdim=True)
        inv = 1 / paddle.sqrt(var + 1e-5)
        xhat = centred * inv
        ctx.save_for_backward(xhat, inv, gamma)
        return xhat.reshape(x.shape) * gamma.reshape([1, 6, 1])

    @staticmethod
    def backward(ctx, dy):
        xhat, inv, gamma = ctx.saved_tensor()
        dgamma = (dy * xhat.reshape(dy.shape)).sum(axis=[0, 2])
        dxhat = (dy * gamma.reshape([1, 6, 1])).reshape([2, 2, 12])
        dx = inv * (dxhat - dxhat.mean(axis=-1, keepdim=True) - xhat * (dxhat * xhat).mean(axis=-1, keepdim=True))
        return dx.reshape(dy.shape), dgamma


@row(
    lambda r: [r.standard_normal((4, 5))],
    ("/ norm", "", "return|norm"),
    ("y * (y * dy)", "x * (y * dy)", "norm|return"),
    ("keepdim=True)) / norm", "keepdim=True)) / norm**2", "return"),
    (".sum(axis=-1, keepdim=True)", ".mean(axis=-1, keepdim=True)", "norm|square"),
    ("dy - y", "dy + y", "norm"),
)
class L2Normalise(PyLayer):
    @staticmethod
    def forward(ctx, x):
        norm = paddle.sqrt((x * x).sum(axis=-1, keepdim=True))
        ctx.save_for_backward(x, norm)
        return x / norm

    @staticmethod
    def backward(ctx, dy):
        x, norm = ctx.saved_tensor()
        y = x / norm
        return (dy - y * (y * dy).sum(axis=-1, keepdim=True)) / norm


@row(
    lambda r: [r.standard_normal((3, 4)), r.standard_normal((3, 4))],
    ("dpred * grad", "-dpred * grad", "diff"),
    ("diff / delta", "diff", "quadratic|where|loss"),
    ("paddle.sign(diff)", "diff", "linear|where|loss|abs"),
    ("paddle.abs(diff) < delta", "diff < delta", "where|loss|quadratic|linear|abs"),
    ("/ diff.size", "", "mean"),
)
class SmoothL1(PyLayer):
    @staticmethod
    def forward(ctx, pred, target, delta=0.7):
        diff = pred - target
        quadratic = 0.5 * diff * diff / delta
        linear = paddle.abs(diff) - 0.5 * delta
        loss = paddle.where(paddle.abs(diff) < delta, quadratic, linear)
        ctx.delta = delta
        ctx.save_for_backward(diff)
        return loss.mean()

    @staticmethod
    def backward(ctx, dloss):
        (diff,) = ctx.saved_tensor()
        delta = ctx.delta
        dpred = paddle.where(paddle.abs(diff) < delta, diff / delta, paddle.sign(diff))
        grad = dloss / diff.size
        return dpred * grad, -dpred * grad


@row(
    lambda r: [r.standard_normal((3, 5)), r.standard_normal((3, 5))],
    (" * q * (1 - q)", " * q", "q = "),
    ("(a - b)", "(b - a)", "return|q = "),
    ("g * q", "g * a", "return"),
    ("g * (1 - q)", "g * q", "return"),
    ("ctx.k * g * (a - b) * q * (1 - q)", "g * (a - b) * q * (1 - q)", "q = "),
)
class SigmoidBlend(PyLayer):
    @staticmethod
    def forward(ctx, a, b, mix=None, k=3.0):
        q = F.sigmoid(k * (a + b))
        ctx.k = k
        ctx.save_for_backward(a, b, q)
        return q * a + (1 - q) * b

    @staticmethod
    def backward(ctx, g):
        a, b, q = ctx.saved_tensor()
        dz = ctx.k * g * (a - b) * q * (1 - q)
        return g * q + dz, g * (1 - q) + dz


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((5, 3))],
    ("weight.sum(axis=1, keepdim=True) * a - ", "a - ", "d2|aa|return"),
    ("weight @ b", "weight @ b * 2", "d2|ab|return"),
    ("weight.t() @ a", "weight.t() @ a * 0", "d2|ab|return"),
    ("-ctx.gamma * g * k", "ctx.gamma * g * k", "return|k = |d2"),
    ("weight.sum(axis=0).unsqueeze(-1) * b", "weight.sum(axis=0).unsqueeze(-1)", "d2|bb|return"),
)
class RBFKernel(PyLayer):
    @staticmethod
    def forward(ctx, a, b, gamma=0.3):
        aa = (a * a).sum(axis=1, keepdim=True)
        bb = (b * b).sum(axis=1)
        d2 = aa + bb - 2 * (a @ b.t())
        k = paddle.exp(-gamma * d2)
        ctx.gamma = gamma
        ctx.save_for_backward(a, b, k)
        return k

    @staticmethod
    def backward(ctx, g):
        a, b, k = ctx.saved_tensor()
        weight = -ctx.gamma * g * k
        da = 2 * (weight.sum(axis=1, keepdim=True) * a - weight @ b)
        db = 2 * (weight.sum(axis=0).unsqueeze(-1) * b - weight.t() @ a)
        return da, db


@row(
    lambda r: [r.standard_normal((3, 4)), r.standard_normal((3, 4)), r.standard_normal((3, 4))],
    ("dh * (z_hat - h)", "dh * (h - z_hat)", "return|u = "),
    ("dh * (1 - u)", "dh * u", "return"),
    ("u * (1 - u)", "u * (1 + u)", "u = "),
    ("(1 - z_hat**2)", "(1 - z_hat)", "z_hat"),
    ("dh * u * (1", "dh * (1", "return|z_hat"),
)
class LeakyUpdate(PyLayer):
    @staticmethod
    def forward(ctx, h, gate, candidate):
        u = F.sigmoid(gate)
        z_hat = paddle.tanh(candidate)
        ctx.save_for_backward(h, u, z_hat)
        return (1 - u) * h + u * z_hat

    @staticmethod
    def backward(ctx, dh):
        h, u, z_hat = ctx.saved_tensor()
        dgate = dh * (z_hat - h) * u * (1 - u)
        dcandidate = dh * u * (1 - z_hat**2)
        return dh * (1 - u), dgate, dcandidate


@row(
    lambda r: [r.standard_normal((4, 6))],
    ("p[:, ::-1] * 0 + p", "p[:, ::-1] * 0 + x", "exp|p = |logsum"),
    ("g[:, None]", "g[:1, None]", "log|return"),
    (" * ctx.cache[2]", "", "exp|logsum|scaled"),
    ("p = e / e.sum(axis=1, keepdims=True)", "p = e", "log|sum"),
    ("p = e / e.sum(axis=1, keepdims=True)", "p = e / e.sum(axis=0, keepdims=True)", "log|sum"),
)
class LogSumExpNumpy(PyLayer):
    @staticmethod
    def forward(ctx, x):
        x, beta = x.numpy(), 1.7
        scaled = beta * x
        e = np.exp(scaled)
        ctx.cache = x, e, beta
        return paddle.to_tensor(np.log(e.sum(axis=1)))

    @staticmethod
    def backward(ctx, grad):
        x, e = ctx.cache[:2]
        g = grad.numpy()
        p = e / e.sum(axis=1, keepdims=True)
        p = p[:, ::-1] * 0 + p + 0 * x
        return paddle.to_tensor(g[:, None] * p * ctx.cache[2])


@row(
    lambda r: [r.standard_normal((5, 3)), r.standard_normal((3, 3))],
    ("dh = dpre @ w.T", "dh = dpre @ w", "pre|@"),
    ("hs[t] * hs[t]", "hs[t]", "tanh"),
    ("np.outer(hs[t - 1], dpre)", "np.outer(hs[t], dpre)", "pre|@"),
    ("dw += ", "dw = ", "pre|@"),
    ("dpre = (dy[t] + dh)", "dpre = dy[t]", "pre|@|h = |tanh"),
)
class TanhRecurrenceNumpy(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        x, w = x.numpy(), w.numpy()
        h = np.zeros(w.shape[0])
        hs = []
        for t in range(len(x)):
            h = np.tanh(h @ w + x[t])
            hs.append(h)
        ctx.cache = hs, w
        return paddle.to_tensor(np.stack(hs))

    @staticmethod
    def backward(ctx, grad):
        hs, w = ctx.cache
        dy = grad.numpy()
        dx, dw, dh = np.zeros_like(dy), np.zeros_like(w), np.zeros(w.shape[0])
        for t in reversed(range(len(dy))):
            dpre = (dy[t] + dh) * (1 - hs[t] * hs[t])
            dx[t] = dpre
            if t > 0:
                dw += np.outer(hs[t - 1], dpre)
            dh = dpre @ w.T
        return paddle.to_tensor(dx), paddle.to_tensor(dw)


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal(3)],
    ("dlow * 2 * x", "dlow * x", "low"),
    ("dhigh * w", "dhigh", "high"),
    ("(dhigh * x).sum(axis=0)", "(dlow * x).sum(axis=0)", "high"),
    ("dlow * 2 * x + dhigh * w", "dhigh * w", "low"),
    ("dlow * 2 * x + dhigh", "dlow * 2 * x - dhigh", "high"),
)
class TwoHeads(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        low = x * x
        high = x * w
        ctx.save_for_backward(x, w)
        return low, high

    @staticmethod
    def backward(ctx, dlow, dhigh):
        x, w = ctx.saved_tensor()
        dx = dlow * 2 * x + dhigh * w
        dw = (dhigh * x).sum(axis=0)
        return dx, dw


@row(
    lambda r: [3 * r.standard_normal((4, 5)), np.array([1.3])],
    ("dy / scale", "dy", "return|z = |tanh|x / "),
    ("- (dy * x).sum() / scale", "+ (dy * x).sum() / scale", "z = |x / |return|tanh"),
    ("(1 - t * t)", "(1 - t)", "tanh"),
    ("dz = dy * scale", "dz = dy", "return"),
    ("(g * t).sum()", "(g * t).mean()", "return"),
)
class ScaledTanhQuantiser(PyLayer):
    @staticmethod
    def forward(ctx, x, scale):
        z = x / scale
        t = paddle.tanh(z)
        ctx.save_for_backward(x, scale, t)
        return t * scale

    @staticmethod
    def backward(ctx, g):
        x, scale, t = ctx.saved_tensor()
        dy = g
        dz = dy * scale
        dz = dz * (1 - t * t)
        dy = dz
        dscale = (g * t).sum() - (dy * x).sum() / scale / scale
        return dy / scale, dscale.reshape([1])
