"""Normalisations."""

from __future__ import annotations

import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class LayerNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        m = x.mean(-1, keepdim=True)
        c = x - m
        v = (c * c).mean(-1, keepdim=True)
        s = paddle.rsqrt(v + 1e-5)
        n = c * s
        ctx.save_for_backward(n, s, w)
        return n * w + b

    @staticmethod
    def backward(ctx, g):
        n, s, w = ctx.saved_tensor()
        h = g * w
        gx = s * (h - h.mean(-1, keepdim=True) - n * (h * n).mean(-1, keepdim=True))
        gw = (g * n).sum(0)
        gb = g.sum(0)
        return gx, gw, gb


LAYER_NORM = Case(
    LayerNorm,
    lambda r: [r.standard_normal((6, 16)), r.standard_normal(16), r.standard_normal(16)],
    (
        mistake("the mean is a constant", "h - h.mean(-1, keepdim=True) -", "h -", "m c"),
        mistake("the variance is a constant", " - n * (h * n).mean(-1, keepdim=True)", "", "v s n"),
        mistake("sign of the variance's share", "- n * (h * n)", "+ n * (h * n)", "v s n"),
        mistake("the variance's share twice", "- n * (h * n)", "- 2 * n * (h * n)", "v s n"),
        mistake("sum for mean in the variance's share", "(h * n).mean(", "(h * n).sum(", "v s n"),
        mistake("w forgotten", "h = g * w", "h = g", "return"),
        mistake("the weight's gradient without its operand", "(g * n).sum(0)", "g.sum(0)", "return"),
        mistake("mean for sum over the batch", "gb = g.sum(0)", "gb = g.mean(0)", "return"),
    ),
)


class RMSNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        ms = (x * x).mean(-1, keepdim=True)
        r = paddle.rsqrt(ms + 1e-6)
        n = x * r
        ctx.save_for_backward(x, w, r)
        return n * w

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensor()
        h = g * w
        gr = (h * x).sum(-1, keepdim=True)
        gms = -0.5 * r**3 * gr
        gx = h * r + gms * 2 * x / x.shape[-1]
        gw = (g * x * r).sum(0)
        return gx, gw


RMS_NORM = Case(
    RMSNorm,
    lambda r: [r.standard_normal((5, 12)), r.standard_normal(12)],
    (
        mistake("the root is a constant", "h * r + gms * 2 * x / x.shape[-1]", "h * r", "ms r n"),
        mistake("sign of the root's share", "-0.5 * r**3", "0.5 * r**3", "ms r n"),
        mistake("2 of the square forgotten", "gms * 2 * x", "gms * x", "ms r n"),
        mistake("1/N of the mean forgotten", "2 * x / x.shape[-1]", "2 * x", "ms r n"),
        mistake("power of the inverse root", "r**3", "r", "r"),
        mistake("r forgotten on the direct way", "gx = h * r", "gx = h", "n"),
        mistake("w forgotten", "h = g * w", "h = g", "return"),
        mistake("x for the normalised x", "(g * x * r).sum(0)", "(g * x).sum(0)", "return"),
    ),
)


class GroupNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        n, c, l = x.shape  # noqa: E741
        z = x.reshape([n, 2, c // 2 * l])
        m = z.mean(-1, keepdim=True)
        d = z - m
        v = (d * d).mean(-1, keepdim=True)
        s = paddle.rsqrt(v + 1e-5)
        u = d * s
        y = u.reshape([n, c, l])
        ctx.save_for_backward(y, s, w)
        return y * w.reshape([1, c, 1]) + b.reshape([1, c, 1])

    @staticmethod
    def backward(ctx, g):
        y, s, w = ctx.saved_tensor()
        n, c, l = y.shape  # noqa: E741
        h = (g * w.reshape([1, c, 1])).reshape([n, 2, c // 2 * l])
        k = y.reshape([n, 2, c // 2 * l])
        shift = h.mean(-1, keepdim=True)
        scale = (h * k).mean(-1, keepdim=True)
        gx = ((h - shift - k * scale) * s).reshape([n, c, l])
        return gx, (g * y).sum([0, 2]), g.sum([0, 2])


GROUP_NORM = Case(
    GroupNorm,
    lambda r: [r.standard_normal((3, 4, 5)), r.standard_normal(4), r.standard_normal(4)],
    (
        mistake("the mean is a constant", "h - shift - k", "h - k", "m d"),
        mistake("the variance is a constant", "h - shift - k * scale", "h - shift", "v s u"),
        mistake("sum for mean in the mean's share", "h.mean(-1", "h.sum(-1", "m d"),
        mistake("sum for mean in the variance's share", "(h * k).mean(-1", "(h * k).sum(-1", "v s u"),
        mistake("sign of the mean's share", "h - shift", "h + shift", "m d"),
        mistake("w forgotten", "(g * w.reshape([1, c, 1])).reshape(", "g.reshape(", "return"),
        mistake("the weight's gradient without its operand", "(g * y).sum([0, 2])", "g.sum([0, 2])", "return"),
        mistake("mean for sum", ", g.sum([0, 2])", ", g.mean([0, 2])", "return"),
    ),
)


class BatchNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean(0)
        d = x - mu
        var = (d**2).mean(0)
        std = paddle.sqrt(var + 1e-5)
        xhat = d / std
        ctx.save_for_backward(d, std, xhat, gamma)
        return gamma * xhat + beta

    @staticmethod
    def backward(ctx, g):
        d, std, xhat, gamma = ctx.saved_tensor()
        n = g.shape[0]
        dxhat = g * gamma
        dvar = (dxhat * d * -0.5 * std**-3).sum(0)
        dmu = -(dxhat / std).sum(0)
        dx = dxhat / std + dvar * 2 * d / n + dmu / n
        dgamma = (g * xhat).sum(0)
        dbeta = g.sum(0)
        return dx, dgamma, dbeta


BATCH_NORM = Case(
    BatchNorm,
    lambda r: [r.standard_normal((6, 6)), r.standard_normal(6), r.standard_normal(6)],
    (
        mistake("the mean is a constant", " + dmu / n", "", "mu d"),
        mistake("sign of the mean's share", "dmu = -(", "dmu = (", "mu d"),
        mistake("1/N of the mean forgotten", "dmu / n", "dmu", "mu d"),
        mistake("2 of the square forgotten", "dvar * 2 * d", "dvar * d", "var std xhat"),
        mistake("N − 1 for N in the variance", "2 * d / n", "2 * d / (n - 1)", "var std xhat"),
        mistake("gamma forgotten", "dxhat = g * gamma", "dxhat = g", "return"),
        mistake("d for the normalised x", "(g * xhat).sum(0)", "(g * d).sum(0)", "return"),
        mistake("sum over the wrong axis", "dbeta = g.sum(0)", "dbeta = g.sum(1)", "return", whole="GC106"),
    ),
)


class Standardise(PyLayer):
    @staticmethod
    def forward(ctx, x):
        n = x.shape[0]
        m = x.sum(0) / n
        d = x - m
        v = (d * d).sum(0) / (n - 1)
        s = paddle.sqrt(v)
        z = d / (s + 1e-3)
        ctx.save_for_backward(d, s, z)
        return z * z * z + z

    @staticmethod
    def backward(ctx, g):
        d, s, z = ctx.saved_tensor()
        n = g.shape[0]
        h = g * (3 * z * z + 1)
        gs = -(h * z).sum(0) / (s + 1e-3)
        gv = gs / (2 * s)
        gd = h / (s + 1e-3) + gv * 2 * d / (n - 1)
        return gd - gd.sum(0) / n


STANDARDISE = Case(
    Standardise,
    lambda r: [r.standard_normal((6, 4))],
    (
        mistake("N for N − 1", "/ (n - 1)", "/ n", "v s z"),
        mistake("the mean is a constant", "gd - gd.sum(0) / n", "gd", "m d"),
        mistake("the deviation is a constant", " + gv * 2 * d / (n - 1)", "", "v s z"),
        mistake("N − 1 for N in the mean", "gd.sum(0) / n", "gd.sum(0) / (n - 1)", "m d"),
        mistake("epsilon inside the root's rule", "gs / (2 * s)", "gs / (2 * (s + 1e-3))", "s"),
        mistake("epsilon left out", "gd = h / (s + 1e-3)", "gd = h / s", "z"),
        mistake("2 of the root forgotten", "gs / (2 * s)", "gs / s", "v s z"),
        mistake("sign of the deviation's share", "gs = -(", "gs = (", "v s z"),
        mistake("z² for 3 z²", "3 * z * z + 1", "z * z + 1", "return"),
    ),
)


class MomentNorm(PyLayer):
    @staticmethod
    def forward(ctx, x):
        m = x.mean(0)
        p = (x * x).mean(0)
        v = p - m * m
        s = paddle.rsqrt(v + 1e-5)
        ctx.save_for_backward(x, m, s)
        return (x - m) * s

    @staticmethod
    def backward(ctx, g):
        x, m, s = ctx.saved_tensor()
        gs = (g * (x - m)).sum(0)
        gv = -0.5 * gs * s**3
        gp = gv
        gm = -(g * s).sum(0) - 2 * m * gv
        return g * s + gm / x.shape[0] + 2 * x * gp / x.shape[0]


MOMENT_NORM = Case(
    MomentNorm,
    lambda r: [0.5 + r.standard_normal((7, 4))],
    (
        mistake("the square of the mean is a constant", " - 2 * m * gv", "", "v"),
        mistake("sign of the square of the mean", "- 2 * m", "+ 2 * m", "v"),
        mistake("the subtracted mean is a constant", "-(g * s).sum(0) - 2", "-2", "return"),
        mistake("the mean is a constant", " + gm / x.shape[0]", "", "m"),
        mistake("the second moment is a constant", " + 2 * x * gp / x.shape[0]", "", "p v"),
        mistake("2 of the second moment forgotten", "+ 2 * x", "+ x", "p v"),
        mistake("the variance's share twice", "-0.5 * gs", "-gs", "v s return"),
    ),
)

CASES = [LAYER_NORM, RMS_NORM, GROUP_NORM, BATCH_NORM, STANDARDISE, MOMENT_NORM]
