"""Layers of matrix products and broadcasts."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class LinearTanh(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        a = paddle.matmul(x, w)
        z = a + b
        y = paddle.tanh(z)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensor()
        gz = g * (1 - y * y)
        gx = paddle.matmul(gz, w, transpose_y=True)
        gw = paddle.matmul(x, gz, transpose_x=True)
        gb = gz.sum(0)
        return gx, gw, gb


LINEAR_TANH = Case(
    LinearTanh,
    lambda r: [r.standard_normal((5, 5)), 0.4 * r.standard_normal((5, 5)), r.standard_normal(5)],
    (
        mistake("1 − y for 1 − y²", "1 - y * y", "1 - y", "y"),
        mistake("activation ignored", "gz = g * (1 - y * y)", "gz = g", "y"),
        mistake("transpose missing", "(gz, w, transpose_y=True)", "(gz, w)", "a"),
        mistake("transpose missing for the weight", "(x, gz, transpose_x=True)", "(x, gz)", "a"),
        mistake("transposed weight gradient", "(x, gz, transpose_x=True)", "(gz, x, transpose_x=True)", "a", "GC103"),
        mistake("sum over the wrong axis", "gz.sum(0)", "gz.sum(1)", "z", "GC106"),
        mistake("mean for sum over the batch", "gz.sum(0)", "gz.mean(0)", "z"),
        mistake("one row for the sum", "gz.sum(0)", "gz[0]", "z", "GC106"),
    ),
)


class MLP(PyLayer):
    @staticmethod
    def forward(ctx, x, w1, b1, w2, b2):
        z = paddle.matmul(x, w1) + b1
        h = F.relu(z)
        o = paddle.matmul(h, w2)
        ctx.save_for_backward(x, w1, w2, z, h)
        return o + b2

    @staticmethod
    def backward(ctx, g):
        x, w1, w2, z, h = ctx.saved_tensor()
        gw2 = paddle.matmul(h, g, transpose_x=True)
        gh = paddle.matmul(g, w2, transpose_y=True)
        gz = gh * (z > 0).astype(g.dtype)
        gw1 = paddle.matmul(x, gz, transpose_x=True)
        gx = paddle.matmul(gz, w1, transpose_y=True)
        return gx, gw1, gz.sum(0), gw2, g.sum(0)


MLP_CASE = Case(
    MLP,
    lambda r: [
        r.standard_normal((6, 4)),
        r.standard_normal((4, 6)),
        r.standard_normal(6),
        r.standard_normal((6, 6)),
        r.standard_normal(6),
    ],
    (
        mistake("relu ignored", "gh * (z > 0).astype(g.dtype)", "gh", "h"),
        mistake("value for mask", "gh * (z > 0).astype(g.dtype)", "gh * h", "h"),
        mistake("mask of the other side", "(z > 0)", "(z < 0)", "h"),
        mistake("value before the activation", "paddle.matmul(h, g,", "paddle.matmul(z, g,", "o"),
        mistake("transpose missing", "(g, w2, transpose_y=True)", "(g, w2)", "o"),
        mistake("sum over the wrong axis", "g.sum(0)", "g.sum(1)", "return", "GC106"),
        mistake("mean for sum over the batch", "gz.sum(0)", "gz.mean(0)", "z"),
    ),
)


class Bilinear(PyLayer):
    @staticmethod
    def forward(ctx, x, a, y):
        t = paddle.matmul(x, a)
        s = (t * y).sum(-1)
        o = F.sigmoid(s)
        ctx.save_for_backward(x, a, y, t, o)
        return o

    @staticmethod
    def backward(ctx, g):
        x, a, y, t, o = ctx.saved_tensor()
        gs = (g * o * (1 - o)).unsqueeze(-1)
        gt = gs * y
        gy = gs * t
        gx = paddle.matmul(gt, a, transpose_y=True)
        ga = paddle.matmul(x, gt, transpose_x=True)
        return gx, ga, gy


BILINEAR = Case(
    Bilinear,
    lambda r: [r.standard_normal((5, 4)), 0.5 * r.standard_normal((4, 4)), r.standard_normal((5, 4))],
    (
        mistake("1 − o for o (1 − o)", "g * o * (1 - o)", "g * (1 - o)", "o"),
        mistake("1 − o² for o (1 − o)", "g * o * (1 - o)", "g * (1 - o * o)", "o"),
        mistake("other operand", "gt = gs * y", "gt = gs * t", "s"),
        mistake("input for its product", "gy = gs * t", "gy = gs * x", "s"),
        mistake("transpose missing", "(gt, a, transpose_y=True)", "(gt, a)", "t"),
        mistake("transposed weight gradient", "(x, gt, transpose_x=True)", "(gt, x, transpose_x=True)", "t", "GC103"),
        mistake("sign for y", "gy = gs * t", "gy = -gs * t", "s"),
    ),
)


class LowRankAdapter(PyLayer):
    @staticmethod
    def forward(ctx, x, w, a, b):
        base = paddle.matmul(x, w)
        low = paddle.matmul(x, a)
        up = paddle.matmul(low, b)
        ctx.save_for_backward(x, w, a, b, low)
        return base + 4.0 * up

    @staticmethod
    def backward(ctx, g):
        x, w, a, b, low = ctx.saved_tensor()
        gup = 4.0 * g
        glow = paddle.matmul(gup, b, transpose_y=True)
        gb = paddle.matmul(low, gup, transpose_x=True)
        ga = paddle.matmul(x, glow, transpose_x=True)
        gx = paddle.matmul(g, w, transpose_y=True) + paddle.matmul(glow, a, transpose_y=True)
        gw = paddle.matmul(x, g, transpose_x=True)
        return gx, gw, ga, gb


LOW_RANK = Case(
    LowRankAdapter,
    lambda r: [
        r.standard_normal((5, 5)),
        r.standard_normal((5, 5)),
        r.standard_normal((5, 2)),
        r.standard_normal((2, 5)),
    ],
    (
        mistake("scale of the adapter forgotten", "gup = 4.0 * g", "gup = g", "return up"),
        mistake("the adapter's share of x missing", " + paddle.matmul(glow, a, transpose_y=True)", "", "low"),
        mistake("the base's share of x missing", "paddle.matmul(g, w, transpose_y=True) + ", "", "base"),
        mistake("transpose missing", "(g, w, transpose_y=True)", "(g, w)", "base"),
        mistake("sign of the adapter's share", "+ paddle.matmul(glow", "- paddle.matmul(glow", "low"),
        mistake("scale twice for b", "(low, gup, transpose_x=True)", "(low, 4.0 * gup, transpose_x=True)", "up"),
        mistake("transposed weight gradient", "(x, g, transpose_x=True)", "(g, x, transpose_x=True)", "base", "GC103"),
    ),
)


class SwiGLU(PyLayer):
    @staticmethod
    def forward(ctx, x, w, v, o):
        a = paddle.matmul(x, w)
        b = paddle.matmul(x, v)
        s = F.sigmoid(a)
        u = a * s
        h = u * b
        ctx.save_for_backward(x, w, v, o, a, b, s, u, h)
        return paddle.matmul(h, o)

    @staticmethod
    def backward(ctx, g):
        x, w, v, o, a, b, s, u, h = ctx.saved_tensor()
        gh = paddle.matmul(g, o, transpose_y=True)
        go = paddle.matmul(h, g, transpose_x=True)
        gu = gh * b
        gb = gh * u
        ga = gu * s + gu * a * s * (1 - s)
        gx = paddle.matmul(ga, w, transpose_y=True) + paddle.matmul(gb, v, transpose_y=True)
        gw = paddle.matmul(x, ga, transpose_x=True)
        gv = paddle.matmul(x, gb, transpose_x=True)
        return gx, gw, gv, go


SWIGLU = Case(
    SwiGLU,
    lambda r: [
        r.standard_normal((4, 3)),
        r.standard_normal((3, 5)),
        r.standard_normal((3, 5)),
        r.standard_normal((5, 5)),
    ],
    (
        mistake("the gate is a constant", " + gu * a * s * (1 - s)", "", "s u"),
        mistake("the direct share missing", "gu * s + gu * a", "gu * a", "u"),
        mistake("sigmoid's own output forgotten", "a * s * (1 - s)", "a * (1 - s)", "s"),
        mistake("a forgotten", "gu * a * s * (1 - s)", "gu * s * (1 - s)", "u"),
        mistake("a for its swish", "gb = gh * u", "gb = gh * a", "h"),
        mistake("sigmoid for the swish", "gb = gh * u", "gb = gh * s", "h"),
        mistake("the linear branch ignored", " + paddle.matmul(gb, v, transpose_y=True)", "", "b"),
        mistake("transpose missing", "(g, o, transpose_y=True)", "(g, o)", "return"),
    ),
)


class OuterRational(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        p = x.unsqueeze(1) * y.unsqueeze(0)
        q = 1 + p * p
        r = p / q
        ctx.save_for_backward(x, y, p, q, r)
        return r

    @staticmethod
    def backward(ctx, g):
        x, y, p, q, r = ctx.saved_tensor()
        gq = -g * r / q
        gp = g / q + gq * 2 * p
        gx = (gp * y.unsqueeze(0)).sum(1)
        gy = (gp * x.unsqueeze(1)).sum(0)
        return gx, gy


OUTER = Case(
    OuterRational,
    lambda r: [r.standard_normal(5), r.standard_normal(5)],
    (
        mistake("the denominator is a constant", " + gq * 2 * p", "", "q r"),
        mistake("2 of the square forgotten", "gq * 2 * p", "gq * p", "q r"),
        mistake("sign of the denominator's share", "gq = -g", "gq = g", "q r"),
        mistake("power of the quotient", "gq = -g * r / q", "gq = -g * r", "r"),
        mistake(
            "sum over the wrong axis", "(gp * x.unsqueeze(1)).sum(0)", "(gp * x.unsqueeze(1)).sum(1)", "p", "GC106"
        ),
        mistake("y forgotten", "(gp * y.unsqueeze(0)).sum(1)", "gp.sum(1)", "p"),
        mistake("mean for sum", "(gp * y.unsqueeze(0)).sum(1)", "(gp * y.unsqueeze(0)).mean(1)", "p"),
    ),
)

CASES = [LINEAR_TANH, MLP_CASE, BILINEAR, LOW_RANK, SWIGLU, OUTER]
