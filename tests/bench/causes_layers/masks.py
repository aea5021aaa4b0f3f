"""Clips, masks and cumulated sums."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class ClippedGate(PyLayer):
    @staticmethod
    def forward(ctx, x, v):
        z = 0.5 * x + 0.3
        c = paddle.clip(z, 0.0, 1.0)
        h = c * v
        ctx.save_for_backward(z, c, v)
        return h.sum(-1)

    @staticmethod
    def backward(ctx, g):
        z, c, v = ctx.saved_tensor()
        gh = g.unsqueeze(-1)
        gc = gh * v
        inside = ((z > 0) & (z < 1)).astype(g.dtype)
        gx = 0.5 * gc * inside
        gv = gh * c
        return gx, gv


CLIPPED = Case(
    ClippedGate,
    lambda r: [2 * r.standard_normal((5, 6)), r.standard_normal((5, 6))],
    (
        mistake("straight through the clip", "gc * inside", "gc", "c"),
        mistake("one end of the clip ignored", "((z > 0) & (z < 1))", "(z > 0)", "c"),
        mistake("slope forgotten", "0.5 * gc", "gc", "z c h"),
        mistake("value before the clip", "gv = gh * c", "gv = gh * z", "h"),
        mistake("v forgotten", "gc = gh * v", "gc = gh", "h"),
        mistake("sign", "gx = 0.5", "gx = -0.5", "z c h"),
        mistake("mask for value", "gv = gh * c", "gv = gh * inside", "h"),
    ),
)


class MaskedMean(PyLayer):
    @staticmethod
    def forward(ctx, x, keep, w):
        t = paddle.tanh(x)
        z = paddle.where(keep, t, 0.1 * x)
        n = keep.astype(x.dtype).sum(1)
        s = (z * w).sum(1)
        ctx.save_for_backward(t, z, keep, n, w)
        return s / n

    @staticmethod
    def backward(ctx, g):
        t, z, keep, n, w = ctx.saved_tensor()
        gs = (g / n).unsqueeze(-1)
        gz = gs * w
        gw = (gs * z).sum(0)
        kept = paddle.where(keep, gz * (1 - t * t), paddle.zeros_like(gz))
        dropped = paddle.where(keep, paddle.zeros_like(gz), 0.1 * gz)
        return kept + dropped, None, gw


def masked(r):
    keep = r.random((5, 5)) < 0.6
    keep[:, 0] = True
    return [r.standard_normal((5, 5)), keep, r.standard_normal(5)]


MASKED = Case(
    MaskedMean,
    masked,
    (
        mistake("one branch ignored", "kept + dropped", "kept", "z"),
        mistake("the other branch ignored", "kept + dropped", "dropped", "z t"),
        mistake("mean forgotten", "(g / n).unsqueeze", "g.unsqueeze", "return"),
        mistake("1 − t for 1 − t²", "1 - t * t", "1 - t", "t"),
        mistake("weights forgotten", "gz = gs * w", "gz = gs * paddle.ones_like(t)", "s"),
        mistake("sum over the wrong axis", "(gs * z).sum(0)", "(gs * z).sum(1)", "s", "GC106"),
        mistake("value before the mask", "gw = (gs * z)", "gw = (gs * t)", "s"),
        mistake(
            "mask of the tanh ignored",
            "paddle.where(keep, gz * (1 - t * t), paddle.zeros_like(gz))",
            "gz * (1 - t * t)",
            "z",
        ),
    ),
)


class CumsumGate(PyLayer):
    @staticmethod
    def forward(ctx, x, v):
        c = paddle.cumsum(x, 0)
        p = F.sigmoid(c)
        y = p * v
        ctx.save_for_backward(p, v)
        return y

    @staticmethod
    def backward(ctx, g):
        p, v = ctx.saved_tensor()
        gp = g * v
        gc = gp * p * (1 - p)
        gx = gc.flip([0]).cumsum(0).flip([0])
        return gx, g * p


CUMSUM = Case(
    CumsumGate,
    lambda r: [r.standard_normal((6, 3)), r.standard_normal((6, 3))],
    (
        mistake("cumulated from the wrong end", "gc.flip([0]).cumsum(0).flip([0])", "gc.cumsum(0)", "c"),
        mistake("straight through the cumsum", "gc.flip([0]).cumsum(0).flip([0])", "gc", "c"),
        mistake("1 − p for p (1 − p)", "gp * p * (1 - p)", "gp * (1 - p)", "p"),
        mistake("v forgotten", "gp = g * v", "gp = g", "y"),
        mistake("own for the other", "g * p\n", "g * v\n", "y"),
        mistake("sign", "gx = gc", "gx = -gc", "c p y"),
        mistake("p forgotten", "g * p\n", "g\n", "y"),
    ),
)

CASES = [CLIPPED, MASKED, CUMSUM]
