"""Layers that reshape, slice, gather, join and contract, and reductions other than sum and mean."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class VarianceNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        mean = paddle.mean(x, axis=-1, keepdim=True)
        var = paddle.var(x, axis=-1, unbiased=False, keepdim=True)
        std = paddle.sqrt(var + 1e-2)
        y = (x - mean) / std
        ctx.save_for_backward(x, mean, std, y, w)
        return w * y

    @staticmethod
    def backward(ctx, g):
        x, mean, std, y, w = ctx.saved_tensor()
        n = x.shape[-1]
        gy = g * w
        gstd = -(gy * y / std).sum(-1, keepdim=True)
        gvar = 0.5 * gstd / std
        gmean = -(gy / std).sum(-1, keepdim=True)
        gx = gy / std + gmean / n + gvar * 2 * (x - mean) / n
        return gx, (g * y).sum(0)


VARIANCE_NORM = Case(
    VarianceNorm,
    lambda r: [r.standard_normal((4, 7)), r.standard_normal(7)],
    (
        mistake("the mean is a constant", " + gmean / n", "", "mean y"),
        mistake("the variance is a constant", " + gvar * 2 * (x - mean) / n", "", "var std y"),
        mistake("N − 1 for N in the variance", "(x - mean) / n", "(x - mean) / (n - 1)", "var std y"),
        mistake(
            "epsilon left out of the root", "0.5 * gstd / std", "0.5 * gstd / paddle.sqrt(std * std - 1e-2)", "std"
        ),
        mistake("½ of the root forgotten", "0.5 * gstd", "gstd", "var std y"),
        mistake("quotient without its own output", "(gy * y / std)", "(gy / std)", "y"),
        mistake("w forgotten", "gy = g * w", "gy = g", "return"),
    ),
)


class TwoHeads(PyLayer):
    @staticmethod
    def forward(ctx, x, wq, wk, wv):
        t, d = x.shape
        q = paddle.matmul(x, wq).reshape([t, 2, d // 2]).transpose([1, 0, 2])
        k = paddle.matmul(x, wk).reshape([t, 2, d // 2]).transpose([1, 0, 2])
        v = paddle.matmul(x, wv).reshape([t, 2, d // 2]).transpose([1, 0, 2])
        s = paddle.matmul(q, k.transpose([0, 2, 1])) / (d // 2) ** 0.5
        p = F.softmax(s, axis=-1)
        o = paddle.matmul(p, v)
        ctx.save_for_backward(x, wq, wk, wv, q, k, v, p)
        return o.transpose([1, 0, 2]).reshape([t, d])

    @staticmethod
    def backward(ctx, g):
        x, wq, wk, wv, q, k, v, p = ctx.saved_tensor()
        t, d = x.shape
        go = g.reshape([t, 2, d // 2]).transpose([1, 0, 2])
        gv = paddle.matmul(p.transpose([0, 2, 1]), go)
        gp = paddle.matmul(go, v.transpose([0, 2, 1]))
        gs = p * (gp - (p * gp).sum(-1, keepdim=True)) / (d // 2) ** 0.5
        gq = paddle.matmul(gs, k).transpose([1, 0, 2]).reshape([t, d])
        gk = paddle.matmul(gs.transpose([0, 2, 1]), q).transpose([1, 0, 2]).reshape([t, d])
        gv = gv.transpose([1, 0, 2]).reshape([t, d])
        gx = paddle.matmul(gq, wq.t()) + paddle.matmul(gk, wk.t()) + paddle.matmul(gv, wv.t())
        return gx, paddle.matmul(x.t(), gq), paddle.matmul(x.t(), gk), paddle.matmul(x.t(), gv)


TWO_HEADS = Case(
    TwoHeads,
    lambda r: [r.standard_normal((5, 6)), *(0.5 * r.standard_normal((6, 6)) for _ in range(3))],
    (
        mistake("softmax without its row sum", "(gp - (p * gp).sum(-1, keepdim=True))", "gp", "p"),
        mistake("scale forgotten", " / (d // 2) ** 0.5", "", "s p o"),
        mistake("transpose missing for the values", "p.transpose([0, 2, 1]), go", "p, go", "o"),
        mistake("transpose missing for the keys", "gs.transpose([0, 2, 1]), q", "gs, q", "s"),
        mistake("the keys' share of x missing", " + paddle.matmul(gk, wk.t())", "", "k"),
        mistake("transpose of the weight missing", "(gq, wq.t())", "(gq, wq)", "q"),
        mistake("other operand", "gq = paddle.matmul(gs, k)", "gq = paddle.matmul(gs, q)", "s"),
    ),
)


class EmbeddingBag(PyLayer):
    @staticmethod
    def forward(ctx, table, idx, w):
        rows = paddle.gather(table, idx.flatten())
        e = rows.reshape([*idx.shape, -1])
        b = (e * w).mean(1)
        y = paddle.tanh(b)
        ctx.save_for_backward(table, idx, e, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        table, idx, e, w, y = ctx.saved_tensor()
        gb = g * (1 - y * y) / idx.shape[1]
        ge = paddle.expand_as(gb.unsqueeze(1) * w, e)
        gw = (gb.unsqueeze(1) * e).sum([0, 1])
        rows = ge.reshape([-1, table.shape[1]])
        gt = paddle.scatter_nd_add(paddle.zeros_like(table), idx.reshape([-1, 1]), rows)
        return gt, None, gw


EMBEDDING_BAG = Case(
    EmbeddingBag,
    lambda r: [r.standard_normal((7, 4)), r.integers(0, 7, (5, 3)), r.standard_normal(4)],
    (
        mistake("1 − y for 1 − y²", "1 - y * y", "1 - y", "y"),
        mistake("sum for mean over the bag", " / idx.shape[1]", "", "b y"),
        mistake("w forgotten", "gb.unsqueeze(1) * w", "gb.unsqueeze(1)", "b"),
        mistake(
            "rows that occur twice are overwritten",
            "paddle.scatter_nd_add(paddle.zeros_like(table), idx.reshape([-1, 1]), rows)",
            "paddle.scatter(paddle.zeros_like(table), idx.flatten(), rows, overwrite=True)",
            "rows",
        ),
        mistake("mean for sum over the rows", "* e).sum([0, 1])", "* e).mean([0, 1])", "b"),
        mistake(
            "the weight's gradient without its operand", "* e).sum([0, 1])", "* paddle.ones_like(e)).sum([0, 1])", "b"
        ),
        mistake("activation ignored", "g * (1 - y * y)", "g", "y"),
    ),
)


class Convolution(PyLayer):
    @staticmethod
    def forward(ctx, x, k):
        p = F.pad(x, [1, 1])
        a = k[0] * p[:, :-2]
        b = k[1] * p[:, 1:-1]
        c = k[2] * p[:, 2:]
        y = a + b + c
        ctx.save_for_backward(p, k, y)
        return y * y

    @staticmethod
    def backward(ctx, g):
        p, k, y = ctx.saved_tensor()
        gy = 2 * y * g
        ga = F.pad(k[0] * gy, [0, 2])
        gb = F.pad(k[1] * gy, [1, 1])
        gc = F.pad(k[2] * gy, [2, 0])
        gp = ga + gb + gc
        gk = paddle.stack([(gy * p[:, :-2]).sum(), (gy * p[:, 1:-1]).sum(), (gy * p[:, 2:]).sum()])
        return gp[:, 1:-1], gk


CONVOLUTION = Case(
    Convolution,
    lambda r: [r.standard_normal((3, 8)), r.standard_normal(3)],
    (
        mistake("2 of the square forgotten", "gy = 2 * y * g", "gy = y * g", "return y"),
        mistake("square's operand forgotten", "gy = 2 * y * g", "gy = 2 * g", "return"),
        mistake("a tap's share missing", "ga + gb + gc", "ga + gb", "c"),
        mistake("sign of a tap", "ga + gb + gc", "ga - gb + gc", "b"),
        mistake("tap forgotten", "F.pad(k[2] * gy", "F.pad(gy", "c"),
        mistake("a tap shifted the wrong way", "gc = F.pad(k[2] * gy, [2, 0])", "gc = F.pad(k[2] * gy, [0, 2])", "c"),
        mistake("mean for sum in a tap's gradient", "(gy * p[:, :-2]).sum()", "(gy * p[:, :-2]).mean()", "a"),
        mistake("a tap's gradient at another place", "(gy * p[:, 2:]).sum()", "(gy * p[:, :-2]).sum()", "c"),
    ),
)


class GeometricPool(PyLayer):
    @staticmethod
    def forward(ctx, x, t):
        z = t * x
        m = paddle.logsumexp(z, axis=1)
        top = x.max(1)
        y = m / t
        ctx.save_for_backward(x, z, m, t)
        return y + 0.5 * top

    @staticmethod
    def backward(ctx, g):
        x, z, m, t = ctx.saved_tensor()
        gm = g / t
        gz = gm.unsqueeze(1) * paddle.exp(z - m.unsqueeze(1))
        hot = F.one_hot(x.argmax(1), x.shape[1]).astype(x.dtype)
        gx = gz * t + 0.5 * g.unsqueeze(1) * hot
        gt = ((gz * x).sum() - (g * m).sum() / t**2).reshape([1])
        return gx, gt


POOL = Case(
    GeometricPool,
    lambda r: [r.standard_normal((5, 6)), 1.5 + r.random(1)],
    (
        mistake("the largest value is a constant", " + 0.5 * g.unsqueeze(1) * hot", "", "top return"),
        mistake("½ forgotten", "0.5 * g.unsqueeze(1) * hot", "g.unsqueeze(1) * hot", "return top"),
        mistake("all entries for the largest", "g.unsqueeze(1) * hot", "g.unsqueeze(1) * paddle.ones_like(x)", "top"),
        mistake("softmax without its normaliser", "paddle.exp(z - m.unsqueeze(1))", "paddle.exp(z)", "m"),
        mistake("t forgotten", "gz * t + 0.5", "gz + 0.5", "z"),
        mistake("the divisor is a constant", " - (g * m).sum() / t**2", "", "y"),
        mistake("the factor is a constant", "(gz * x).sum() - (", "-(", "z"),
        mistake("power of the quotient", "/ t**2", "/ t", "y"),
    ),
)


class Residual(PyLayer):
    @staticmethod
    def forward(ctx, x, w, a):
        h = paddle.concat([x, x * x], axis=-1)
        u = paddle.einsum("bi,ij->bj", h, w)
        v = paddle.maximum(u, a)
        r = x + v
        ctx.save_for_backward(x, w, a, h, u)
        return r

    @staticmethod
    def backward(ctx, g):
        x, w, a, h, u = ctx.saved_tensor()
        above = (u > a).astype(g.dtype)
        gu = g * above
        gh = paddle.einsum("bj,ij->bi", gu, w)
        gw = paddle.einsum("bi,bj->ij", h, gu)
        ga = (g * (1 - above)).sum(0)
        first, second = paddle.split(gh, 2, axis=-1)
        return g + first + 2 * x * second, gw, ga


RESIDUAL = Case(
    Residual,
    lambda r: [r.standard_normal((5, 4)), 0.5 * r.standard_normal((8, 4)), 0.2 * r.standard_normal(4)],
    (
        mistake("the skip connection is forgotten", "g + first +", "first +", "r"),
        mistake("the branch is a constant", "g + first + 2 * x * second", "g + 0 * first", "h u"),
        mistake("the square is a constant", " + 2 * x * second", "", "h"),
        mistake("2 of the square forgotten", "2 * x * second", "x * second", "h"),
        mistake("straight through the maximum", "gu = g * above", "gu = g", "v"),
        mistake("the other side of the maximum", "(g * (1 - above)).sum(0)", "(g * above).sum(0)", "v"),
        mistake("all of the cotangent for the bound", "(g * (1 - above)).sum(0)", "g.sum(0)", "v"),
        mistake("mean for sum", "(g * (1 - above)).sum(0)", "(g * (1 - above)).mean(0)", "v"),
    ),
)

CASES = [VARIANCE_NORM, TWO_HEADS, EMBEDDING_BAG, CONVOLUTION, POOL, RESIDUAL]
