"""Activations and gates."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class GeluTanh(PyLayer):
    @staticmethod
    def forward(ctx, x):
        c = x * x * x
        u = 0.7978845608 * (x + 0.044715 * c)
        t = paddle.tanh(u)
        ctx.save_for_backward(x, t)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensor()
        gt = 0.5 * x * g
        gu = gt * (1 - t * t)
        direct = 0.5 * (1 + t) * g
        return direct + gu * 0.7978845608 * (1 + 0.044715 * 3 * x * x)


GELU = Case(
    GeluTanh,
    lambda r: [r.standard_normal((4, 6))],
    (
        mistake(
            "the gate is a constant", "direct + gu * 0.7978845608 * (1 + 0.044715 * 3 * x * x)", "direct", "t u return"
        ),
        mistake("the direct share missing", "direct + gu", "gu", "return"),
        mistake("1 − t for 1 − t²", "1 - t * t", "1 - t", "t"),
        mistake("the cubic term is a constant", "(1 + 0.044715 * 3 * x * x)", "1", "c u"),
        mistake("3 of the cube forgotten", "0.044715 * 3 * x", "0.044715 * x", "c u"),
        mistake("½ forgotten on the direct way", "direct = 0.5 * (1 + t)", "direct = (1 + t)", "return"),
        mistake("scale of the argument forgotten", "gu * 0.7978845608 * (1", "gu * (1", "u t return"),
        mistake("sign of the gate's share", "direct + gu", "direct - gu", "t u return"),
    ),
)


class SwishBeta(PyLayer):
    @staticmethod
    def forward(ctx, x, beta):
        z = beta * x
        s = F.sigmoid(z)
        y = x * s
        ctx.save_for_backward(x, beta, s)
        return y

    @staticmethod
    def backward(ctx, g):
        x, beta, s = ctx.saved_tensor()
        gs = g * x
        gz = gs * s * (1 - s)
        gx = g * s + gz * beta
        gbeta = (gz * x).sum(0)
        return gx, gbeta


SWISH = Case(
    SwishBeta,
    lambda r: [r.standard_normal((5, 5)), 0.5 + r.random(5)],
    (
        mistake("the sigmoid is a constant for x", " + gz * beta", "", "z"),
        mistake("the direct share missing", "g * s + gz", "gz", "y"),
        mistake("beta forgotten", "gz * beta", "gz", "z"),
        mistake("sigmoid's own output forgotten", "gs * s * (1 - s)", "gs * (1 - s)", "s"),
        mistake("tanh's rule for sigmoid", "gs * s * (1 - s)", "gs * (1 - s * s)", "s"),
        mistake("x forgotten", "(gz * x).sum(0)", "gz.sum(0)", "z"),
        mistake("sum over the wrong axis", "(gz * x).sum(0)", "(gz * x).sum(1)", "z", "GC106"),
        mistake("mean for sum", "(gz * x).sum(0)", "(gz * x).mean(0)", "z"),
    ),
)


class GLU(PyLayer):
    @staticmethod
    def forward(ctx, x):
        a, b = paddle.split(x, 2, axis=-1)
        s = F.sigmoid(b)
        y = a * s
        ctx.save_for_backward(a, s)
        return y

    @staticmethod
    def backward(ctx, g):
        a, s = ctx.saved_tensor()
        ga = g * s
        gb = g * a * s * (1 - s)
        return paddle.concat([ga, gb], axis=-1)


GLU_CASE = Case(
    GLU,
    lambda r: [r.standard_normal((4, 10))],
    (
        mistake("sigmoid's own output forgotten", "g * a * s * (1 - s)", "g * a * (1 - s)", "s"),
        mistake("s for s (1 − s)", "g * a * s * (1 - s)", "g * a * s", "s"),
        mistake("a forgotten", "gb = g * a * s", "gb = g * s", "y"),
        mistake("gate forgotten", "ga = g * s", "ga = g", "y"),
        mistake("sign of the gate's share", "gb = g * a", "gb = -g * a", "y s a"),
        mistake("the gate is a constant", "[ga, gb]", "[ga, paddle.zeros_like(gb)]", "y s a"),
        mistake("output for input", "gb = g * a * s", "gb = g * a * s * s", "y"),
    ),
)


class FiLM(PyLayer):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        k = 1 + gamma
        u = x * k.unsqueeze(-1)
        v = u + beta.unsqueeze(-1)
        y = F.softplus(v)
        ctx.save_for_backward(x, k, v)
        return y

    @staticmethod
    def backward(ctx, g):
        x, k, v = ctx.saved_tensor()
        gv = g * F.sigmoid(v)
        gx = gv * k.unsqueeze(-1)
        ggamma = (gv * x).sum(-1)
        gbeta = gv.sum(-1)
        return gx, ggamma, gbeta


FILM = Case(
    FiLM,
    lambda r: [r.standard_normal((3, 4, 4)), r.standard_normal((3, 4)), r.standard_normal((3, 4))],
    (
        mistake("activation ignored", "gv = g * F.sigmoid(v)", "gv = g", "y"),
        mistake("scale forgotten", "gx = gv * k.unsqueeze(-1)", "gx = gv", "u"),
        mistake("x forgotten", "(gv * x).sum(-1)", "gv.sum(-1)", "u"),
        mistake("product for its operand", "(gv * x).sum(-1)", "(gv * x * k.unsqueeze(-1)).sum(-1)", "u"),
        mistake("mean for sum", "gbeta = gv.sum(-1)", "gbeta = gv.mean(-1)", "v"),
        mistake("sum over the wrong axis", "gbeta = gv.sum(-1)", "gbeta = gv.sum(1)", "v", "GC106"),
        mistake("sign for gamma", "ggamma = (gv", "ggamma = -(gv", "u k"),
    ),
)


class SinGate(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        a = w * x + b
        s = paddle.sin(a)
        c = paddle.cos(a)
        y = x * s
        ctx.save_for_backward(x, w, s, c)
        return y + 0.5 * c

    @staticmethod
    def backward(ctx, g):
        x, w, s, c = ctx.saved_tensor()
        gs = g * x
        gc = 0.5 * g
        ga = gs * c - gc * s
        gx = g * s + ga * w
        gw = (ga * x).sum(0)
        gb = ga.sum(0)
        return gx, gw, gb


SIN_GATE = Case(
    SinGate,
    lambda r: [r.standard_normal((5, 4)), r.standard_normal(4), r.standard_normal(4)],
    (
        mistake("the cosine is a constant", "gs * c - gc * s", "gs * c", "c return"),
        mistake("sign of the cosine's derivative", "gs * c - gc * s", "gs * c + gc * s", "c return"),
        mistake("½ forgotten", "gc = 0.5 * g", "gc = g", "return c"),
        mistake("sine for cosine", "gs * c - gc", "gs * s - gc", "s"),
        mistake("the direct share missing", "g * s + ga * w", "ga * w", "y"),
        mistake("w forgotten", "ga * w", "ga", "a"),
        mistake("x forgotten", "(ga * x).sum(0)", "ga.sum(0)", "a"),
        mistake("mean for sum", "gb = ga.sum(0)", "gb = ga.mean(0)", "a"),
    ),
)


class Mish(PyLayer):
    @staticmethod
    def forward(ctx, x):
        e = paddle.exp(x)
        l = paddle.log(1 + e)  # noqa: E741
        t = paddle.tanh(l)
        ctx.save_for_backward(x, e, t)
        return x * t

    @staticmethod
    def backward(ctx, g):
        x, e, t = ctx.saved_tensor()
        gt = g * x
        gl = gt * (1 - t * t)
        ge = gl / (1 + e)
        return g * t + ge * e


MISH = Case(
    Mish,
    lambda r: [r.standard_normal((4, 5))],
    (
        mistake("the gate is a constant", " + ge * e", "", "e l t return"),
        mistake("the direct share missing", "g * t + ge", "ge", "return"),
        mistake("1 − t for 1 − t²", "1 - t * t", "1 - t", "t"),
        mistake("own output forgotten", "ge * e", "ge", "e"),
        mistake("1/x of the logarithm forgotten", "gl / (1 + e)", "gl", "l"),
        mistake("1 left out in the logarithm", "gl / (1 + e)", "gl / e", "l e"),  # as if log and exp were both ignored
        mistake("sign of the gate's share", "g * t + ge", "g * t - ge", "e l t return"),
        mistake("x forgotten", "gt = g * x", "gt = g", "return"),
    ),
)

CASES = [GELU, SWISH, GLU_CASE, FILM, SIN_GATE, MISH]
