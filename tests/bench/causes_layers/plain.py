"""Layers written afterwards, half of them in NumPy, to see whether mistakes that nothing was tuned on are named."""

from __future__ import annotations

import numpy as np

import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class PseudoHuber(PyLayer):
    @staticmethod
    def forward(ctx, x, t):
        d = (x - t).numpy()
        p = np.sqrt(1 + (d / 0.5) ** 2)
        loss = 0.25 * (p - 1)
        ctx.save_for_backward(paddle.to_tensor(d), paddle.to_tensor(p))
        return paddle.to_tensor(loss.mean())

    @staticmethod
    def backward(ctx, g):
        d, p = ctx.saved_tensor()
        gx = g * d / p / d.size
        return gx, -gx


PSEUDO_HUBER = Case(
    PseudoHuber,
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3))],
    (
        mistake("mean as a sum", " / d.size", "", "return loss p"),
        mistake("the root forgotten", "g * d / p", "g * d", "p"),
        mistake("the target's sign", "gx, -gx", "gx, gx", "d"),
    ),
)


class SoftArgmax(PyLayer):
    @staticmethod
    def forward(ctx, x, places):
        a, q = x.numpy(), places.numpy()
        e = np.exp(2.0 * a)
        z = e.sum(-1, keepdims=True)
        s = e / z
        mean = (s * q).sum(-1)
        ctx.save_for_backward(paddle.to_tensor(s), places, paddle.to_tensor(mean))
        return paddle.to_tensor(mean)

    @staticmethod
    def backward(ctx, g):
        s, q, mean = ctx.saved_tensor()
        w = g.unsqueeze(-1) * s
        return 2.0 * w * (q - mean.unsqueeze(-1)), w.sum(0)


SOFT_ARGMAX = Case(
    SoftArgmax,
    lambda r: [r.standard_normal((3, 5)), r.standard_normal(5)],
    (
        mistake("the normaliser is a constant", "(q - mean.unsqueeze(-1))", "q", "z s"),
        mistake("temperature forgotten", "2.0 * w", "w", "e z s"),
        mistake("mean over the batch for the places", "w.sum(0)", "w.mean(0)", "mean"),
        mistake("normaliser's sign", "(q - mean.unsqueeze(-1))", "(q + mean.unsqueeze(-1))", "z s"),
    ),
)


class GroupScale(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        v, scale = x.numpy().reshape(3, 2, 4), w.numpy()
        c = v - v.mean(-1, keepdims=True)
        r = 1 / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-4)
        n = c * r
        ctx.save_for_backward(paddle.to_tensor(n), paddle.to_tensor(r), w)
        return paddle.to_tensor(n.reshape(3, 8) * scale)

    @staticmethod
    def backward(ctx, g):
        n, r, w = ctx.saved_tensor()
        d = (g * w).reshape([3, 2, 4])
        share = n * (d * n).mean(-1, keepdim=True)
        gx = r * (d - d.mean(-1, keepdim=True) - share)
        return gx.reshape([3, 8]), (g * n.reshape([3, 8])).sum(0)


GROUP_SCALE = Case(
    GroupScale,
    lambda r: [r.standard_normal((3, 8)), r.standard_normal(8)],
    (
        mistake("the mean is a constant", "d - d.mean(-1, keepdim=True) - share", "d - share", "c"),
        mistake("the variance is a constant", " - share)", ")", "r n"),
        mistake("the gain forgotten", "(g * w)", "g", "return"),
        mistake("sum for the mean in the variance", "(d * n).mean(-1", "(d * n).sum(-1", "r n"),
    ),
)


class Kernel(PyLayer):
    @staticmethod
    def forward(ctx, x, c):
        a, b = x.numpy(), c.numpy()
        d = a[:, None] - b[None]
        q = (d * d).sum(-1)
        k = np.exp(-0.3 * q)
        ctx.save_for_backward(paddle.to_tensor(d), paddle.to_tensor(k))
        return paddle.to_tensor(k)

    @staticmethod
    def backward(ctx, g):
        d, k = ctx.saved_tensor()
        gq = -0.3 * g * k
        gd = 2 * gq.unsqueeze(-1) * d
        return gd.sum(1), -gd.sum(0)


KERNEL = Case(
    Kernel,
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((5, 3))],
    (
        mistake("2 of the square forgotten", "2 * gq", "gq", "d q k"),
        mistake("the exponential's own value forgotten", "-0.3 * g * k", "-0.3 * g", "k"),
        mistake("the width forgotten", "-0.3 * g", "-g", "k q d"),
        mistake("mean over the centres", "gd.sum(1)", "gd.mean(1)", "d"),
    ),
)


class TanhForm(PyLayer):
    @staticmethod
    def forward(ctx, x, m, y):
        a, b, c = x.numpy(), m.numpy(), y.numpy()
        t = a @ b
        s = (t * c).sum(-1)
        o = np.tanh(s)
        ctx.save_for_backward(x, m, y, paddle.to_tensor(t), paddle.to_tensor(o))
        return paddle.to_tensor(o)

    @staticmethod
    def backward(ctx, g):
        x, m, y, t, o = ctx.saved_tensor()
        gs = (g * (1 - o * o)).unsqueeze(-1)
        gt = gs * y
        return gt @ m.t(), x.t() @ gt, gs * t


TANH_FORM = Case(
    TanhForm,
    lambda r: [r.standard_normal((4, 3)) / 2, r.standard_normal((3, 3)) / 2, r.standard_normal((4, 3)) / 2],
    (
        mistake("not transposed", "m.t()", "m", "t"),
        mistake("1 − o for 1 − o²", "1 - o * o", "1 - o", "o"),
        mistake("the product forgets y", "gt = gs * y", "gt = gs * paddle.ones_like(y)", "s"),
        mistake("y's gradient takes x for t", "gs * t", "gs * x", "s"),
    ),
)


class PowerNorm(PyLayer):
    @staticmethod
    def forward(ctx, x):
        a = x.numpy()
        p = np.sign(a) * np.sqrt(np.abs(a))
        s = (p * p).sum(-1, keepdims=True)
        y = p / np.sqrt(s)
        ctx.save_for_backward(paddle.to_tensor(p), paddle.to_tensor(s), paddle.to_tensor(y))
        return paddle.to_tensor(y)

    @staticmethod
    def backward(ctx, g):
        p, s, y = ctx.saved_tensor()
        gp = (g - y * (g * y).sum(-1, keepdim=True)) / paddle.sqrt(s)
        return 0.5 * gp / paddle.abs(p)


POWER_NORM = Case(
    PowerNorm,
    lambda r: [r.uniform(0.3, 2, (4, 5)) * r.choice([-1.0, 1.0], (4, 5))],
    (
        mistake("the norm is a constant", "(g - y * (g * y).sum(-1, keepdim=True))", "g", "s y"),
        mistake("½ of the root forgotten", "0.5 * gp", "gp", "p"),
        mistake("the norm's root forgotten", "paddle.sqrt(s)", "s", "y"),
        mistake("mean for the sum", "(g * y).sum(-1", "(g * y).mean(-1", "s y"),
    ),
)


class PairLoss(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        u, v = a.numpy(), b.numpy()
        s = (u * v).sum(-1) / 0.7
        loss = np.log1p(np.exp(-s))
        ctx.save_for_backward(a, b, paddle.to_tensor(s))
        return paddle.to_tensor(loss.mean())

    @staticmethod
    def backward(ctx, g):
        a, b, s = ctx.saved_tensor()
        gs = -g * paddle.nn.functional.sigmoid(-s) / s.shape[0]
        w = gs.unsqueeze(-1) / 0.7
        return w * b, w * a


PAIR_LOSS = Case(
    PairLoss,
    lambda r: [r.standard_normal((5, 3)), r.standard_normal((5, 3))],
    (
        mistake("sigmoid of s, not of −s", "sigmoid(-s)", "sigmoid(s)", "loss"),
        mistake("the temperature forgotten", " / 0.7", "", "s loss"),
        mistake("its own vector", "w * b, w * a", "w * a, w * b", "s"),
        mistake("mean as a sum", " / s.shape[0]", "", "return loss s"),
    ),
)


class MinMax(PyLayer):
    @staticmethod
    def forward(ctx, x):
        a = x.numpy()
        low = a.min(-1, keepdims=True)
        top = a.max(-1, keepdims=True)
        y = (a - low) / (top - low)
        ctx.save_for_backward(x, paddle.to_tensor(y), paddle.to_tensor(top - low))
        return paddle.to_tensor(y)

    @staticmethod
    def backward(ctx, g):
        x, y, span = ctx.saved_tensor()
        last = (y == 1).astype(x.dtype)
        first = (y == 0).astype(x.dtype)
        gt = -(g * y).sum(-1, keepdim=True)
        gl = -(g * (1 - y)).sum(-1, keepdim=True)
        return (g + gt * last + gl * first) / span


MIN_MAX = Case(
    MinMax,
    lambda r: [r.standard_normal((4, 5))],
    (
        mistake("the largest is a constant", " + gt * last", "", "top"),
        mistake("the smallest is a constant", " + gl * first", "", "low"),
        mistake("the span forgotten", " / span", "", "y"),
        mistake("the span does not hold the smallest", "(g * (1 - y))", "g", "y"),
    ),
)


class EarthMover(PyLayer):
    @staticmethod
    def forward(ctx, p, q):
        d = p - q
        c = paddle.cumsum(d, -1)
        loss = (c * c).sum(-1)
        ctx.save_for_backward(c)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        (c,) = ctx.saved_tensor()
        gc = 2 * c * g / c.shape[0]
        gd = paddle.flip(paddle.cumsum(paddle.flip(gc, [-1]), -1), [-1])
        return gd, -gd


EARTH_MOVER = Case(
    EarthMover,
    lambda r: [r.standard_normal((3, 5)), r.standard_normal((3, 5))],
    (
        mistake(
            "summed from the same end", "paddle.flip(paddle.cumsum(paddle.flip(gc, [-1]), -1), [-1])",
            "paddle.cumsum(gc, -1)", "c",
        ),
        mistake("2 of the square forgotten", "2 * c", "c", "c loss return d"),
        mistake("the mean over all entries", "c.shape[0]", "c.size", "return loss"),
        mistake("q's sign", "gd, -gd", "gd, gd", "d"),
    ),
)  # fmt: skip


class TimeMix(PyLayer):
    @staticmethod
    def forward(ctx, x, mu, w):
        before = paddle.concat([paddle.zeros_like(x[:1]), x[:-1]], 0)
        m = x * mu + before * (1 - mu)
        k = paddle.matmul(m, w)
        r = paddle.nn.functional.relu(k)
        ctx.save_for_backward(x, before, mu, w, m, r)
        return r * r

    @staticmethod
    def backward(ctx, g):
        x, before, mu, w, m, r = ctx.saved_tensor()
        gk = 2 * g * r
        gm = gk @ w.t()
        gb = gm * (1 - mu)
        late = paddle.concat([gb[1:], paddle.zeros_like(gb[:1])], 0)
        return gm * mu + late, (gm * (x - before)).sum(0), m.t() @ gk


TIME_MIX = Case(
    TimeMix,
    lambda r: [r.standard_normal((5, 4)), r.uniform(0.2, 0.8, 4), r.standard_normal((4, 3))],
    (
        mistake("the step before is a constant", "gm * mu + late", "gm * mu", "before m"),
        mistake("1 − μ is a constant", "(gm * (x - before))", "(gm * x)", "m"),
        mistake("2 of the square forgotten", "2 * g * r", "g * r", "return r"),
        mistake("x for the mix", "m.t() @ gk", "x.t() @ gk", "k"),
    ),
)


class Gain(PyLayer):
    @staticmethod
    def forward(ctx, x, z, p):
        k = p / (p + 0.5)
        e = z - x
        y = x + k * e
        ctx.save_for_backward(k, e, p)
        return y

    @staticmethod
    def backward(ctx, g):
        k, e, p = ctx.saved_tensor()
        gk = (g * e).sum(0)
        return g * (1 - k), g * k, gk * 0.5 / (p + 0.5) ** 2


GAIN = Case(
    Gain,
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3)), r.uniform(0.5, 2, 3)],
    (
        mistake("the correction is a constant for x", "g * (1 - k)", "g", "e y"),
        mistake("the denominator is a constant", "gk * 0.5 / (p + 0.5) ** 2", "gk / (p + 0.5)", "k"),
        mistake("mean over the batch", "(g * e).sum(0)", "(g * e).mean(0)", "y k"),
    ),
)

CASES = (
    PSEUDO_HUBER, SOFT_ARGMAX, GROUP_SCALE, KERNEL, TANH_FORM, POWER_NORM, PAIR_LOSS, MIN_MAX, EARTH_MOVER, TIME_MIX,
    GAIN,
)  # fmt: skip
