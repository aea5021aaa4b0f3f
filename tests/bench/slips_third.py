"""The third draw of slips.py: twenty further layers, five mistakes in each, written before the first run."""

from __future__ import annotations

import math

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle.autograd import PyLayer
from slips_rows import Row, rows_into

ROWS: list[Row] = []
row = rows_into(ROWS)
ROOT = math.sqrt(2 / math.pi)


# --------------------------------------------------------------------------- activations
@row(
    lambda r: [r.standard_normal((4, 5))],
    ("F.sigmoid(ctx.beta * x)", "F.sigmoid(x)", "soft = |z = "),
    ("F.sigmoid(ctx.beta * x)", "(1 - F.sigmoid(ctx.beta * x))", "soft = |z = "),
    ("dy * ctx.scale", "dy", "return|soft = |z = "),
    ("F.sigmoid(ctx.beta * x)", "F.sigmoid(ctx.beta * x) * ctx.beta", "return|soft = |z = "),
    ("return dy", "return -dy", "return|soft = |z = "),
)
class SoftplusBeta(PyLayer):
    @staticmethod
    def forward(ctx, x, beta=2.0, scale=1.5):
        z = beta * x
        soft = paddle.log(1 + paddle.exp(z))
        ctx.beta, ctx.scale = beta, scale
        ctx.save_for_backward(x)
        return scale * soft / beta

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * ctx.scale * F.sigmoid(ctx.beta * x)


@row(
    lambda r: [r.standard_normal((3, 6))],
    ("3 * ctx.a * x * x", "ctx.a * x * x", "inner"),
    ("1 - t * t", "1 - t", "t = "),
    ("0.5 * (1 + t)", "(1 + t)", "return"),
    ("0.5 * x * (1", "0.5 * (1", "return"),
    (" * ROOT", "", "inner = |t = "),
)
class TanhGelu(PyLayer):
    @staticmethod
    def forward(ctx, x, a=0.044715):
        inner = ROOT * (x + a * x**3)
        t = paddle.tanh(inner)
        ctx.a = a
        ctx.save_for_backward(x, t)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, dy):
        x, t = ctx.saved_tensor()
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * ctx.a * x * x)
        return dy * slope


@row(
    lambda r: [r.standard_normal((4, 3)), r.uniform(0.5, 2.0, 3), r.standard_normal(3), r.standard_normal(3)],
    ("paddle.sign(x)", "x", "down = "),
    ("(dy * x / down)", "(dy * x)", "up = |return"),
    ("-dy * up", "dy * up", "down = |return"),
    ("(down * down)", "down", "down = |return"),
    ("(dy / down).sum(axis=0)", "(dy / down).mean(axis=0)", "up = "),
)
class Rational(PyLayer):
    @staticmethod
    def forward(ctx, x, a, b, c):
        up = a * x + b
        down = 1 + paddle.abs(x) * c * c
        ctx.save_for_backward(x, a, c, up, down)
        return up / down

    @staticmethod
    def backward(ctx, dy):
        x, a, c, up, down = ctx.saved_tensor()
        ddown = -dy * up / (down * down)
        dx = dy * a / down + ddown * c * c * paddle.sign(x)
        da = (dy * x / down).sum(axis=0)
        db = (dy / down).sum(axis=0)
        dc = (ddown * paddle.abs(x) * 2 * c).sum(axis=0)
        return dx, da, db, dc


@row(
    lambda r: [r.standard_normal((4, 5))],
    ("n2 * (1 + n2)", "n2 * (1 - n2)", "n2 = |factor = |root = "),
    ("(dv * s).sum(axis=-1, keepdim=True)", "(dv * s).mean(axis=-1, keepdim=True)", "n2 = |factor = |root = |return"),
    ("dv * factor", "dv", "return"),
    (" + inner * slope * s", "", "n2 = |factor = |root = |return"),
    ("inner * slope * s", "inner * slope", "n2 = "),
)
class CapsuleSquash(PyLayer):
    @staticmethod
    def forward(ctx, s):
        n2 = (s * s).sum(axis=-1, keepdim=True)
        root = paddle.sqrt(n2)
        factor = root / (1 + n2)
        ctx.save_for_backward(s, n2, factor)
        return s * factor

    @staticmethod
    def backward(ctx, dv):
        s, n2, factor = ctx.saved_tensor()
        inner = (dv * s).sum(axis=-1, keepdim=True)
        slope = factor * (1 - n2) / (n2 * (1 + n2))
        return dv * factor + inner * slope * s


# --------------------------------------------------------------------------- losses
@row(
    lambda r: [r.standard_normal((3, 5))],
    ("(logp + h)", "(logp - h)", "logp"),
    ("-dh * p", "dh * p", "h = |logp"),
    (" / ctx.tau", "", "z = |logp"),
    ("* p * (", "* (", "p = |logp"),
    ("(logp + h)", "(logp + 1)", "logp"),
)
class EntropyOfSoftmax(PyLayer):
    @staticmethod
    def forward(ctx, x, tau=0.7):
        z = x / tau
        logp = z - paddle.logsumexp(z, axis=-1, keepdim=True)
        p = paddle.exp(logp)
        h = -(p * logp).sum(axis=-1)
        ctx.tau = tau
        ctx.save_for_backward(p, logp, h)
        return h

    @staticmethod
    def backward(ctx, dout):
        p, logp, h = ctx.saved_tensor()
        h = h.unsqueeze(-1)
        dh = dout.unsqueeze(-1)
        return -dh * p * (logp + h) / ctx.tau


@row(
    lambda r: [r.standard_normal((4, 3)), r.integers(0, 2, (4, 3)).astype(float), r.uniform(0.5, 2.0, 3)],
    ("(1 - labels) * s", "labels * s", "negative"),
    ("weight * labels * (s - 1)", "labels * (s - 1)", "positive"),
    (" / logits.size", "", "mean"),
    ("(-labels * F", "(labels * F", "positive"),
    ("(s - 1)", "s", "positive"),
)
class WeightedBinary(PyLayer):
    @staticmethod
    def forward(ctx, logits, labels, weight):
        positive = weight * labels * F.log_sigmoid(logits)
        negative = (1 - labels) * F.log_sigmoid(-logits)
        ctx.save_for_backward(logits, labels, weight)
        return -(positive + negative).mean()

    @staticmethod
    def backward(ctx, g):
        logits, labels, weight = ctx.saved_tensor()
        s = F.sigmoid(logits)
        g = g / logits.size
        dlogits = g * (weight * labels * (s - 1) + (1 - labels) * s)
        dlabels = g * (F.log_sigmoid(-logits) - weight * F.log_sigmoid(logits))
        dweight = g * (-labels * F.log_sigmoid(logits)).sum(axis=0)
        return dlogits, dlabels, dweight


@row(
    lambda r: [r.uniform(0.1, 0.9, (3, 6)), r.integers(0, 2, (3, 6)).astype(float)],
    ("ctx.a * (1 - t)", "ctx.a * t", "false_positive"),
    (" - ctx.b * t", "", "false_negative"),
    ("tp / total / total", "tp / total", "ratio = |total = "),
    ("-g.unsqueeze(-1)", "g.unsqueeze(-1)", "return|ratio"),
    ("t / total", "p / total", "tp = "),
)
class Tversky(PyLayer):
    @staticmethod
    def forward(ctx, p, t, a=0.3, b=0.7):
        tp = (p * t).sum(axis=-1, keepdim=True)
        false_positive = (p * (1 - t)).sum(axis=-1, keepdim=True)
        false_negative = ((1 - p) * t).sum(axis=-1, keepdim=True)
        total = tp + a * false_positive + b * false_negative
        ratio = tp / total
        ctx.a, ctx.b = a, b
        ctx.save_for_backward(p, t, tp, total)
        return 1 - ratio.squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        p, t, tp, total = ctx.saved_tensor()
        g = -g.unsqueeze(-1)
        dtotal = -g * (tp / total / total)
        dp = g * t / total + dtotal * (t + ctx.a * (1 - t) - ctx.b * t)
        dt = g * p / total + dtotal * (p - ctx.a * p + ctx.b * (1 - p))
        return dp, dt


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3))],
    ("(p - eye)", "(p + eye)", "pair|return"),
    (" / ctx.tau", "", "sim = |pair = |return"),
    ("dsim.t() @ a", "dsim @ a", "sim = "),
    (" / len(a)", "", "return"),
    ("axis=1", "axis=0", "return|sim = "),
)
class InfoNCE(PyLayer):
    @staticmethod
    def forward(ctx, a, b, tau=0.5):
        sim = a @ b.t() / tau
        pair = (a * b).sum(axis=1) / tau
        ctx.tau = tau
        ctx.save_for_backward(a, b, sim)
        return (paddle.logsumexp(sim, axis=1) - pair).mean()

    @staticmethod
    def backward(ctx, g):
        a, b, sim = ctx.saved_tensor()
        p = F.softmax(sim, axis=1)
        eye = paddle.eye(len(a), dtype=a.dtype)
        dsim = g * (p - eye) / ctx.tau / len(a)
        return dsim @ b, dsim.t() @ a


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3)), 0.3 * r.standard_normal((1, 3))],
    ("paddle.sign(d)", "d", "a = "),
    ("-dmu", "dmu", "d = "),
    ("1 - a", "a", "a = |b = |return"),
    (" / b", "", "a = "),
    (".sum(axis=0, keepdim=True)", ".mean(axis=0, keepdim=True)", "b = |return"),
)
class LaplaceLikelihood(PyLayer):
    @staticmethod
    def forward(ctx, y, mu, log_b):
        b = paddle.exp(log_b)
        d = y - mu
        a = paddle.abs(d) / b
        ctx.save_for_backward(d, b, a)
        return a + log_b + math.log(2.0)

    @staticmethod
    def backward(ctx, g):
        d, b, a = ctx.saved_tensor()
        dmu = g * paddle.sign(d) / b
        dlog_b = (g * (1 - a)).sum(axis=0, keepdim=True)
        return dmu, -dmu, dlog_b


# --------------------------------------------------------------------------- products and attention
@row(
    lambda r: [r.standard_normal((2, 4, 3)), r.standard_normal((3, 5)), r.standard_normal(5)],
    ("(1 - t * t)", "(1 + t * t)", "t = "),
    ("(a * da).sum(axis=1, keepdim=True)", "da.sum(axis=1, keepdim=True)", "softmax"),
    ("a.unsqueeze(-1) * dy.unsqueeze(1)", "dy.unsqueeze(1)", "return"),
    (" + dpre @ w.t()", "", "t = |score = "),
    ("dscore.unsqueeze(-1) * v", "dscore.unsqueeze(-1)", "score = "),
)
class AttentionPool(PyLayer):
    @staticmethod
    def forward(ctx, x, w, v):
        t = paddle.tanh(x @ w)
        score = t @ v
        a = F.softmax(score, axis=1)
        ctx.save_for_backward(x, w, v, t, a)
        return (a.unsqueeze(-1) * x).sum(axis=1)

    @staticmethod
    def backward(ctx, dy):
        x, w, v, t, a = ctx.saved_tensor()
        da = (x * dy.unsqueeze(1)).sum(axis=-1)
        dscore = a * (da - (a * da).sum(axis=1, keepdim=True))
        dv = (dscore.unsqueeze(-1) * t).sum(axis=[0, 1])
        dpre = dscore.unsqueeze(-1) * v * (1 - t * t)
        dw = (x.transpose([0, 2, 1]) @ dpre).sum(axis=0)
        dx = a.unsqueeze(-1) * dy.unsqueeze(1) + dpre @ w.t()
        return dx, dw, dv


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((3, 5)), r.standard_normal((5, 2))],
    ("2 * F.relu(pre)", "F.relu(pre)", "h = |r = "),
    ("x.t() @ dpre", "x.t() @ dh", "h = |r = "),
    ("h.t() @ dy", "pre.t() @ dy", "return|h = |r = "),
    ("2 * F.relu(pre)", "2 * pre", "r = |h = "),
    ("dpre @ w1.t()", "dh @ w1.t()", "h = |r = "),
)
class SquaredReluMLP(PyLayer):
    @staticmethod
    def forward(ctx, x, w1, w2):
        pre = x @ w1
        r = F.relu(pre)
        h = r * r
        ctx.save_for_backward(x, w1, w2, pre, h)
        return h @ w2

    @staticmethod
    def backward(ctx, dy):
        x, w1, w2, pre, h = ctx.saved_tensor()
        dh = dy @ w2.t()
        dpre = dh * 2 * F.relu(pre)
        return dpre @ w1.t(), x.t() @ dpre, h.t() @ dy


@row(
    lambda r: [r.standard_normal((5, 3)), r.standard_normal((5, 4)), r.standard_normal((3, 4))],
    ("g * (z @ w.t())", "z @ w.t()", "return|xw = "),
    ("g * (x @ w)", "x @ w", "return"),
    ("x.t() @ (g * z)", "x.t() @ z", "return|xw = "),
    ("g * (x @ w)", "-g * (x @ w)", "return"),
    ("x.t() @ (g * z)", "2 * x.t() @ (g * z)", "return|xw = "),
)
class Bilinear(PyLayer):
    @staticmethod
    def forward(ctx, x, z, w):
        xw = x @ w
        ctx.save_for_backward(x, z, w)
        return (xw * z).sum(axis=1)

    @staticmethod
    def backward(ctx, dy):
        x, z, w = ctx.saved_tensor()
        g = dy.unsqueeze(-1)
        return g * (z @ w.t()), g * (x @ w), x.t() @ (g * z)


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 2))],
    ("b @ dy.t() / len(a)", "b @ dy.t()", "outer"),
    ("a @ dy / len(a)", "a @ dy", "outer"),
    ("b @ dy.t() / len(a)", "b @ dy.t() / a.shape[1]", "outer"),
    ("a @ dy / len(a)", "-a @ dy / len(a)", "outer"),
    ("b @ dy.t() / len(a)", "dy.sum(axis=1) / len(a) + 0 * a", "outer"),
)
class OuterProductMean(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        outer = a.unsqueeze(2) * b.unsqueeze(1)
        ctx.save_for_backward(a, b)
        return outer.mean(axis=0)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensor()
        return b @ dy.t() / len(a), a @ dy / len(a)


@row(
    lambda r: [r.standard_normal((3, 6))],
    ("(positions - y.unsqueeze(-1))", "positions", "p = |y = "),
    ("ctx.sharp * dy", "dy", "p = |y = "),
    ("* p *", "*", "p = "),
    ("positions - y", "positions + y", "p = |y = "),
    ("dy.unsqueeze(-1)", "dy.mean()", "p = |y = "),
)
class SoftArgmax(PyLayer):
    @staticmethod
    def forward(ctx, x, sharp=2.0):
        p = F.softmax(sharp * x, axis=-1)
        positions = paddle.arange(x.shape[-1], dtype=x.dtype)
        y = (p * positions).sum(axis=-1)
        ctx.sharp = sharp
        ctx.save_for_backward(p, positions, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        p, positions, y = ctx.saved_tensor()
        dy = ctx.sharp * dy
        return (positions - y.unsqueeze(-1)) * p * dy.unsqueeze(-1)


# --------------------------------------------------------------------------- pooling, windows, recurrences
@row(
    lambda r: [r.uniform(0.3, 2.0, (3, 4, 2))],
    (" / x.shape[1] / x", " / x.shape[1]", "logs = "),
    (" * y.unsqueeze(1)", "", "y = "),
    ("x.shape[1]", "x.shape[2]", "y = "),
    (" / x.shape[1] / x", " / x.shape[1] / x / x", "logs = "),
    (" / x.shape[1] / x", " / x", "y = "),
)
class GeometricPool(PyLayer):
    @staticmethod
    def forward(ctx, x):
        logs = paddle.log(x)
        y = paddle.exp(logs.mean(axis=1))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensor()
        return dy.unsqueeze(1) * y.unsqueeze(1) / x.shape[1] / x


@row(
    lambda r: [r.standard_normal((3, 6)), r.uniform(0.2, 0.8, (5,))],
    ("(x[:, 1:] - x[:, :-1])", "(x[:, :-1] - x[:, 1:])", "return|left, right"),
    ("dx[:, 1:] += dy * t", "dx[:, :-1] += dy * t", "return|left, right"),
    ("dy * (1 - t)", "dy * t", "return|left, right"),
    (".sum(axis=0)", ".mean(axis=0)", "return"),
    ("dx[:, 1:] += dy * t", "dx[:, 1:] += dy", "return|left, right"),
)
class Interpolate(PyLayer):
    @staticmethod
    def forward(ctx, x, t):
        x, t = x.numpy(), t.numpy()
        left, right = x[:, :-1], x[:, 1:]
        ctx.cache = x, t
        return paddle.to_tensor((1 - t) * left + t * right)

    @staticmethod
    def backward(ctx, grad):
        x, t = ctx.cache
        dy = grad.numpy()
        dx = np.zeros_like(x)
        dx[:, :-1] += dy * (1 - t)
        dx[:, 1:] += dy * t
        dt = (dy * (x[:, 1:] - x[:, :-1])).sum(axis=0)
        return paddle.to_tensor(dx), paddle.to_tensor(dt)


@row(
    lambda r: [r.standard_normal((6, 3)), np.array([0.5, -0.3])],
    ("dys[t - 2] += a[1] * g", "dys[t - 2] += a[0] * g", "a[1] * ys"),
    ("da[1] += (g * ys[t - 2]).sum()", "da[1] += (g * ys[t - 1]).sum()", "a[1] * ys"),
    ("dys[t - 1] += a[0] * g", "dys[t - 1] = a[0] * g", "value|return"),
    ("da[0] += (g * ys[t - 1]).sum()", "da[0] = (g * ys[t - 1]).sum()", "a[0] * ys"),
    ("dys[t - 1] += a[0] * g", "pass", "a[0] * ys"),
)
class TwoTaps(PyLayer):
    @staticmethod
    def forward(ctx, x, a):
        x, a = x.numpy(), a.numpy()
        ys = []
        for t in range(len(x)):
            value = x[t]
            if t > 0:
                value = value + a[0] * ys[t - 1]
            if t > 1:
                value = value + a[1] * ys[t - 2]
            ys.append(value)
        ctx.cache = a, ys
        return paddle.to_tensor(np.stack(ys))

    @staticmethod
    def backward(ctx, grad):
        a, ys = ctx.cache
        dys, da = grad.numpy().copy(), np.zeros_like(a)
        dx = np.zeros_like(dys)
        for t in reversed(range(len(ys))):
            g = dx[t] = dys[t]
            if t > 0:
                da[0] += (g * ys[t - 1]).sum()
                dys[t - 1] += a[0] * g
            if t > 1:
                da[1] += (g * ys[t - 2]).sum()
                dys[t - 2] += a[1] * g
        return paddle.to_tensor(dx), paddle.to_tensor(da)


@row(
    lambda r: [r.standard_normal((3, 6, 2))],
    ("* ctx.gain / ctx.width", "* ctx.gain", "parts = |return"),
    ("* ctx.gain / ctx.width", "/ ctx.width", "parts = |return"),
    ("dy.unsqueeze(2)", "dy.unsqueeze(2).flip([1])", "parts = |return"),
    ("* ctx.gain / ctx.width", "* ctx.gain * ctx.gain / ctx.width", "parts = |return"),
    ("return whole", "return -whole", "parts = |return"),
)
class AveragePool(PyLayer):
    @staticmethod
    def forward(ctx, x, width=3, gain=0.9):
        b, n, c = x.shape
        parts = x.reshape([b, n // width, width, c])
        ctx.width, ctx.gain = width, gain
        ctx.shape = x.shape
        return gain * parts.mean(axis=2)

    @staticmethod
    def backward(ctx, dy):
        b, n, c = ctx.shape
        whole = dy.unsqueeze(2).expand([b, n // ctx.width, ctx.width, c])
        return whole.reshape([b, n, c]) * ctx.gain / ctx.width


@row(
    lambda r: [r.standard_normal(7), r.standard_normal(3)],
    ("dx[j : j + n] += g * k[j]", "dx[j : j + n] += g * k[-1 - j]", "out = out"),
    ("dk[j] = g @ x[j : j + n]", "dk[j] = g @ x[:n]", "out = out"),
    ("dk[j] = g @ x[j : j + n]", "dk[j] = g.sum()", "out = out"),
    ("dx[j : j + n] += g * k[j]", "dx[j : j + n] = g * k[j]", "out = out"),
    ("dx[j : j + n] += g * k[j]", "dx[:n] += g * k[j]", "out = out"),
)
class Correlate(PyLayer):
    @staticmethod
    def forward(ctx, x, k):
        x, k = x.numpy(), k.numpy()
        n = len(x) - len(k) + 1
        out = np.zeros(n)
        for j in range(len(k)):
            out = out + x[j : j + n] * k[j]
        ctx.cache = x, k
        return paddle.to_tensor(out)

    @staticmethod
    def backward(ctx, grad):
        (x, k), g = ctx.cache, grad.numpy()
        n = len(g)
        dx, dk = np.zeros_like(x), np.zeros_like(k)
        for j in range(len(k)):
            dx[j : j + n] += g * k[j]
            dk[j] = g @ x[j : j + n]
        return paddle.to_tensor(dx), paddle.to_tensor(dk)


@row(
    lambda r: [r.standard_normal((5, 3))],
    (" - g.mean(axis=0)", "", "centred = "),
    ("/ (len(g) - 1)", "/ len(g)", "var = |std = "),
    ("(g * z).sum(axis=0)", "(g * z).sum()", "var = |std = |z = "),
    ("/ std", "/ std / std", "z = |centred = |return"),
    ("z * (g * z)", "z * g", "var = |std = |z = "),
)
class Standardise(PyLayer):
    @staticmethod
    def forward(ctx, x):
        x = x.numpy()
        centred = x - x.mean(axis=0)
        var = (centred * centred).sum(axis=0) / (len(x) - 1)
        std = np.sqrt(var)
        z = centred / std
        ctx.cache = z, std
        return paddle.to_tensor(z)

    @staticmethod
    def backward(ctx, grad):
        z, std = ctx.cache
        g = grad.numpy()
        dx = (g - g.mean(axis=0) - z * (g * z).sum(axis=0) / (len(g) - 1)) / std
        return paddle.to_tensor(dx)
