"""Similarities, divergences and norms of vectors."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class KLDivergence(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        logp = F.log_softmax(x, axis=-1)
        logq = F.log_softmax(y, axis=-1)
        p = paddle.exp(logp)
        k = p * (logp - logq)
        ctx.save_for_backward(logp, logq, p)
        return k.sum(-1)

    @staticmethod
    def backward(ctx, g):
        logp, logq, p = ctx.saved_tensor()
        q = paddle.exp(logq)
        gk = g.unsqueeze(-1)
        gp = gk * (logp - logq)
        glp = gp * p + gk * p
        glq = -gk * p
        gx = glp - p * glp.sum(-1, keepdim=True)
        gy = glq - q * glq.sum(-1, keepdim=True)
        return gx, gy


KL = Case(
    KLDivergence,
    lambda r: [r.standard_normal((5, 6)), r.standard_normal((5, 6))],
    (
        mistake("own output of exp forgotten", "gp * p + gk", "gp + gk", "p"),
        mistake("softmax without its row sum", " - p * glp.sum(-1, keepdim=True)", "", "logp"),
        mistake("softmax without its row sum for q", " - q * glq.sum(-1, keepdim=True)", "", "logq"),
        mistake("sign for q", "glq = -gk", "glq = gk", "logq k"),
        mistake("mean for sum in the softmax", "glp.sum(-1", "glp.mean(-1", "logp"),
        mistake("half of p's share", "gp * p + gk", "gp * p * 0.5 + gk", "p k logp"),
    ),
)


class CosineSimilarity(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        dot = (a * b).sum(-1, keepdim=True)
        na = paddle.sqrt((a * a).sum(-1, keepdim=True))
        nb = paddle.sqrt((b * b).sum(-1, keepdim=True))
        den = na * nb + 1e-3
        c = dot / den
        ctx.save_for_backward(a, b, na, nb, den, c)
        return c

    @staticmethod
    def backward(ctx, g):
        a, b, na, nb, den, c = ctx.saved_tensor()
        gdot = g / den
        gden = -g * c / den
        gna = gden * nb
        gnb = gden * na
        ga = gdot * b + gna * a / na
        gb = gdot * a + gnb * b / nb
        return ga, gb


COSINE = Case(
    CosineSimilarity,
    lambda r: [r.standard_normal((5, 6)), r.standard_normal((5, 6))],
    (
        mistake("the norm is a constant", " + gna * a / na", "", "na den"),
        mistake("sign of the norms' share", "gden = -g", "gden = g", "den c"),
        mistake("the root's rule forgotten", "gna * a / na", "gna * a", "na"),
        mistake("other operand", "gnb = gden * na", "gnb = gden * nb", "den"),
        mistake("own for the other", "gdot * b", "gdot * a", "dot"),
        mistake("denominator forgotten", "gdot = g / den", "gdot = g", "c"),
        mistake("epsilon left out", "gdot = g / den", "gdot = g / (na * nb)", "c"),
        mistake("2 of the square twice", "gnb * b / nb", "2 * gnb * b / nb", "nb den"),
    ),
)


class InfoNCE(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        sim = paddle.matmul(a, b, transpose_y=True) / 0.2
        logp = F.log_softmax(sim, axis=-1)
        pos = paddle.diagonal(logp)
        ctx.save_for_backward(a, b, logp)
        return -pos.mean()

    @staticmethod
    def backward(ctx, g):
        a, b, logp = ctx.saved_tensor()
        n = logp.shape[0]
        u = -paddle.eye(n, dtype=logp.dtype) * g / n
        gs = (u - paddle.exp(logp) * u.sum(-1, keepdim=True)) / 0.2
        ga = paddle.matmul(gs, b)
        gb = paddle.matmul(gs, a, transpose_x=True)
        return ga, gb


INFO_NCE = Case(
    InfoNCE,
    lambda r: [0.3 * r.standard_normal((6, 6)), 0.3 * r.standard_normal((6, 6))],
    (
        mistake("temperature forgotten", " / 0.2", "", "sim logp pos return"),
        mistake("transpose missing", "(gs, a, transpose_x=True)", "(gs, a)", "sim"),
        mistake("softmax without its row sum", " - paddle.exp(logp) * u.sum(-1, keepdim=True)", "", "logp"),
        mistake("other operand", "(gs, b)", "(gs, a)", "sim"),
        mistake("sign", "u = -paddle", "u = paddle", "return pos logp sim"),
        mistake("mean forgotten", " * g / n", " * g", "return pos logp sim"),
        mistake("transposed similarity", "(gs, b)", "(gs, b, transpose_y=True)", "sim"),
    ),
)


class RBFKernel(PyLayer):
    @staticmethod
    def forward(ctx, x, y, gamma):
        xx = (x * x).sum(1, keepdim=True)
        yy = (y * y).sum(1)
        xy = paddle.matmul(x, y, transpose_y=True)
        d = xx + yy - 2 * xy
        k = paddle.exp(-gamma * d)
        ctx.save_for_backward(x, y, gamma, d, k)
        return k

    @staticmethod
    def backward(ctx, g):
        x, y, gamma, d, k = ctx.saved_tensor()
        ge = g * k
        ggamma = -(ge * d).sum().reshape([1])
        gd = -gamma * ge
        gx = 2 * x * gd.sum(1, keepdim=True) - 2 * paddle.matmul(gd, y)
        gy = 2 * y * gd.sum(0).unsqueeze(-1) - 2 * paddle.matmul(gd, x, transpose_x=True)
        return gx, gy, ggamma


RBF = Case(
    RBFKernel,
    lambda r: [0.6 * r.standard_normal((5, 5)), 0.6 * r.standard_normal((5, 5)), 0.3 + r.random(1)],
    (
        mistake("own output forgotten", "ge = g * k", "ge = g", "k"),
        mistake("gamma forgotten", "gd = -gamma * ge", "gd = -ge", "k d"),
        mistake("the square's share missing", "2 * x * gd.sum(1, keepdim=True) - ", "-", "xx d"),
        mistake("2 of the product forgotten", "- 2 * paddle.matmul(gd, y)", "- paddle.matmul(gd, y)", "xy"),
        mistake("transpose missing", "(gd, x, transpose_x=True)", "(gd, x)", "xy"),
        mistake("sum over the wrong axis", "gd.sum(0).unsqueeze(-1)", "gd.sum(1).unsqueeze(-1)", "d"),
        mistake("sign for gamma", "-(ge * d)", "(ge * d)", "k"),
        mistake("sign of the product's share", "- 2 * paddle.matmul(gd, y)", "+ 2 * paddle.matmul(gd, y)", "xy"),
    ),
)


class L2Normalise(PyLayer):
    @staticmethod
    def forward(ctx, x, t):
        q = (x * x).sum(-1, keepdim=True)
        r = paddle.sqrt(q + 1e-12)
        y = x / r
        ctx.save_for_backward(y, r, t)
        return y * t

    @staticmethod
    def backward(ctx, g):
        y, r, t = ctx.saved_tensor()
        h = g * t
        inner = (h * y).sum(-1, keepdim=True)
        gx = (h - y * inner) / r
        gt = (g * y).sum(0)
        return gx, gt


L2_NORMALISE = Case(
    L2Normalise,
    lambda r: [r.standard_normal((5, 7)), r.standard_normal(7)],
    (
        mistake("the norm is a constant", "h - y * inner", "h", "q r y"),
        mistake("sign of the norm's share", "h - y", "h + y", "q r y"),
        mistake("mean for sum in the norm's share", "(h * y).sum(-1", "(h * y).mean(-1", "q r y"),
        mistake("1/r of the root forgotten", "h - y * inner", "h - y * r * inner", "r y"),
        mistake("t forgotten", "h = g * t", "h = g", "return"),
        mistake("x for the normalised x", "(g * y).sum(0)", "(g * y * r).sum(0)", "return"),
        mistake("the scale's gradient without its operand", "(g * y).sum(0)", "g.sum(0)", "return"),
    ),
)


class WeightNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, v, k):
        q = (v * v).sum(1, keepdim=True)
        r = paddle.sqrt(q)
        u = v / r
        w = k * u
        ctx.save_for_backward(x, u, r, k, w)
        return paddle.matmul(x, w, transpose_y=True)

    @staticmethod
    def backward(ctx, g):
        x, u, r, k, w = ctx.saved_tensor()
        gx = paddle.matmul(g, w)
        gw = paddle.matmul(g, x, transpose_x=True)
        gk = (gw * u).sum(1, keepdim=True)
        gu = gw * k
        gv = (gu - u * (gu * u).sum(1, keepdim=True)) / r
        return gx, gv, gk


WEIGHT_NORM = Case(
    WeightNorm,
    lambda r: [r.standard_normal((5, 5)), r.standard_normal((5, 5)), r.standard_normal((5, 1))],
    (
        mistake("the norm is a constant", "gu - u * (gu * u).sum(1, keepdim=True)", "gu", "q r u"),
        mistake("sign of the norm's share", "gu - u", "gu + u", "q r u"),
        mistake("the gain's gradient without its operand", "gk = (gw * u).sum", "gk = gw.sum", "w"),
        mistake("the gain forgotten", "gu = gw * k", "gu = gw", "w"),
        mistake("transpose missing", "paddle.matmul(g, w)", "paddle.matmul(g, w, transpose_y=True)", "return"),
        mistake("transposed weight gradient", "paddle.matmul(g, x, tr", "paddle.matmul(x, g, tr", "return"),
        mistake("mean for sum", "gk = (gw * u).sum", "gk = (gw * u).mean", "w"),
    ),
)

CASES = [KL, COSINE, INFO_NCE, RBF, L2_NORMALISE, WEIGHT_NORM]
