"""Thirty autograd Functions with right backwards, and five mistakes of each.

`MISTAKES` has, per Function, what is replaced in the source of its backward, by what, and a part of the line of the
forward whose derivative is wrong then; several, with | between them, where the mistake is the same on each, as a sign
along a chain. `INPUTS` has the arrays that each is checked at.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.autograd import Function


class Softplus(Function):
    @staticmethod
    def forward(ctx, x, beta):
        z = beta * x
        ctx.save_for_backward(z, beta, x)
        return torch.log1p(torch.exp(z)) / beta

    @staticmethod
    def backward(ctx, g):
        z, beta, x = ctx.saved_tensors
        s = torch.sigmoid(z)
        return g * s, g * (s * x / beta - torch.log1p(torch.exp(z)) / beta**2)


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(1.5 * x)
        y = x * s
        ctx.save_for_backward(x, s)
        return y

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s + g * x * 1.5 * s * (1 - s)


class TanhGelu(Function):
    @staticmethod
    def forward(ctx, x):
        u = 0.8 * (x + 0.04 * x**3)
        t = torch.tanh(u)
        ctx.save_for_backward(x, t)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        du = 0.8 * (1 + 0.12 * x**2)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du)


class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        sp = torch.log1p(torch.exp(x))
        t = torch.tanh(sp)
        ctx.save_for_backward(x, t)
        return x * t

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        return g * t + g * x * (1 - t * t) * torch.sigmoid(x)


class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        c = x - x.mean(-1, keepdim=True)
        r = torch.rsqrt((c * c).mean(-1, keepdim=True) + 1e-5)
        h = c * r
        ctx.save_for_backward(h, r, w)
        return h * w + b

    @staticmethod
    def backward(ctx, g):
        h, r, w = ctx.saved_tensors
        gh = g * w
        mean = gh.mean(-1, keepdim=True)
        along = (gh * h).mean(-1, keepdim=True)
        return r * (gh - mean - h * along), (g * h).sum(0), g.sum(0)


class RmsNorm(Function):
    @staticmethod
    def forward(ctx, x, w):
        ms = (x * x).mean(-1, keepdim=True)
        r = torch.rsqrt(ms + 1e-6)
        h = x * r
        ctx.save_for_backward(x, r, w)
        return h * w

    @staticmethod
    def backward(ctx, g):
        x, r, w = ctx.saved_tensors
        gh = g * w
        dot = (gh * x).mean(-1, keepdim=True)
        return gh * r - x * r**3 * dot, (g * x * r).sum(0)


class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.k = torch.arange(x.shape[0]) % x.shape[1]
        z = x - x.max(-1, keepdim=True)[0]
        e = torch.exp(z)
        p = e / e.sum(-1, keepdim=True)
        picked = p[torch.arange(x.shape[0]), ctx.k]
        ctx.save_for_backward(p)
        return -torch.log(picked).mean()

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        d = p.clone()
        d[torch.arange(p.shape[0]), ctx.k] -= 1
        return g * d / p.shape[0]


class SoftmaxTemperature(Function):
    @staticmethod
    def forward(ctx, x):
        z = x / 0.7
        y = torch.softmax(z, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        inner = (g * y).sum(-1, keepdim=True)
        return y * (g - inner) / 0.7


class Normalise(Function):
    @staticmethod
    def forward(ctx, x):
        n = torch.sqrt((x * x).sum(-1, keepdim=True))
        y = x / n
        ctx.save_for_backward(y, n)
        return y

    @staticmethod
    def backward(ctx, g):
        y, n = ctx.saved_tensors
        return (g - y * (g * y).sum(-1, keepdim=True)) / n


class Cosine(Function):
    @staticmethod
    def forward(ctx, a, b):
        na = torch.linalg.vector_norm(a, dim=-1)
        nb = torch.linalg.vector_norm(b, dim=-1)
        c = (a * b).sum(-1) / (na * nb)
        ctx.save_for_backward(a, b, na, nb, c)
        return c

    @staticmethod
    def backward(ctx, g):
        a, b, na, nb, c = (t if t.ndim == 2 else t[:, None] for t in ctx.saved_tensors)
        g = g[:, None]
        return g * (b / (na * nb) - c * a / na**2), g * (a / (na * nb) - c * b / nb**2)


class LinearTanh(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        z = x @ w.T + b
        y = torch.tanh(z)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        gz = g * (1 - y**2)
        return gz @ w, gz.T @ x, gz.sum(0)


class BilinearForm(Function):
    @staticmethod
    def forward(ctx, x, m, y):
        h = x @ m
        ctx.save_for_backward(x, m, y, h)
        return (h * y).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, m, y, h = ctx.saved_tensors
        gy = g[:, None] * y
        return gy @ m.T, x.T @ gy, g[:, None] * h


class Attention(Function):
    @staticmethod
    def forward(ctx, q, k, v):
        s = q @ k.T / 2.0
        p = torch.softmax(s, -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        gp = g @ v.T
        gs = p * (gp - (gp * p).sum(-1, keepdim=True)) / 2.0
        return gs @ k, gs.T @ q, p.T @ g


class Huber(Function):
    @staticmethod
    def forward(ctx, x, y):
        d = x - y
        a = d.abs()
        ctx.save_for_backward(d)
        loss = torch.where(a < 1.0, 0.5 * d * d, a - 0.5)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        gd = g * torch.where(d.abs() < 1.0, d, d.sign()) / d.numel()
        return gd, -gd


class Focal(Function):
    @staticmethod
    def forward(ctx, x):
        p = torch.sigmoid(x)
        m = (1 - p) ** 2
        ctx.save_for_backward(p)
        return -m * torch.log(p)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        dp = 2 * (1 - p) * torch.log(p) - (1 - p) ** 2 / p
        return g * dp * p * (1 - p)


class GaussianNll(Function):
    @staticmethod
    def forward(ctx, mu, logvar, y):
        d = y - mu
        inv = torch.exp(-logvar)
        ctx.save_for_backward(d, inv)
        return 0.5 * (logvar + d * d * inv)

    @staticmethod
    def backward(ctx, g):
        d, inv = ctx.saved_tensors
        gd = g * d * inv
        return -gd, 0.5 * g * (1 - d * d * inv), gd


class Glu(Function):
    @staticmethod
    def forward(ctx, x):
        a, b = x.chunk(2, -1)
        s = torch.sigmoid(b)
        ctx.save_for_backward(a, s)
        return a * s

    @staticmethod
    def backward(ctx, g):
        a, s = ctx.saved_tensors
        return torch.cat([g * s, g * a * s * (1 - s)], -1)


class Rotary(Function):
    @staticmethod
    def forward(ctx, x, angle):
        c, s = torch.cos(angle), torch.sin(angle)
        a, b = x.chunk(2, -1)
        ctx.save_for_backward(a, b, c, s)
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    @staticmethod
    def backward(ctx, g):
        a, b, c, s = ctx.saved_tensors
        u, v = g.chunk(2, -1)
        gx = torch.cat([u * c + v * s, v * c - u * s], -1)
        return gx, (u * (-a * s - b * c) + v * (a * c - b * s)).sum(0)


class Decay(Function):
    @staticmethod
    def forward(ctx, x, rate):
        w = torch.exp(-rate)
        s = torch.cumsum(x * w, -1)
        ctx.save_for_backward(x, w)
        return s * s

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        s = torch.cumsum(x * w, -1)
        gs = 2 * g * s
        back = gs.flip(-1).cumsum(-1).flip(-1)
        return back * w, -(back * x).sum(0) * w


class Distances(Function):
    @staticmethod
    def forward(ctx, a, b):
        d = a[:, None] - b[None]
        sq = (d * d).sum(-1)
        r = torch.sqrt(sq + 1e-3)
        ctx.save_for_backward(d, r)
        return r

    @staticmethod
    def backward(ctx, g):
        d, r = ctx.saved_tensors
        gd = (g / r)[..., None] * d
        return gd.sum(1), -gd.sum(0)


class Smooth(Function):
    @staticmethod
    def forward(ctx, x, k):
        u = x.unfold(-1, 3, 1)
        y = u @ k
        ctx.save_for_backward(u, k, y)
        return torch.sin(y)

    @staticmethod
    def backward(ctx, g):
        u, k, y = ctx.saved_tensors
        gy = g * torch.cos(y)
        n = y.shape[-1]
        gx = g.new_zeros(y.shape[0], n + 2)
        for j in range(3):
            gx[:, j : j + n] += gy * k[j]
        return gx, (gy[..., None] * u).sum((0, 1))


class Dice(Function):
    @staticmethod
    def forward(ctx, x, y):
        p = torch.sigmoid(x)
        top = 2 * (p * y).sum(-1)
        low = p.sum(-1) + y.sum(-1)
        ctx.save_for_backward(p, y, top, low)
        return 1 - top / low

    @staticmethod
    def backward(ctx, g):
        p, y, top, low = ctx.saved_tensors
        g = g[:, None]
        q = (top / low**2)[:, None]
        gp = -g * (2 * y / low[:, None] - q)
        return gp * p * (1 - p), -g * (2 * p / low[:, None] - q)


class Margin(Function):
    @staticmethod
    def forward(ctx, x):
        t = 0.9 * torch.tanh(x)
        a = torch.acos(t)
        y = torch.cos(a + 0.3)
        ctx.save_for_backward(t, a)
        return y

    @staticmethod
    def backward(ctx, g):
        t, a = ctx.saved_tensors
        ga = -g * torch.sin(a + 0.3)
        gt = -ga / torch.sqrt(1 - t * t)
        return gt * 0.9 * (1 - (t / 0.9) ** 2)


class Solve(Function):
    @staticmethod
    def forward(ctx, m, b):
        a = m @ m.T + 2 * torch.eye(m.shape[0], dtype=m.dtype)
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(m, a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        m, a, x = ctx.saved_tensors
        gb = torch.linalg.solve(a, g)
        ga = -torch.outer(gb, x)
        return (ga + ga.T) @ m, gb


class LogDet(Function):
    @staticmethod
    def forward(ctx, m):
        a = m @ m.T + torch.eye(m.shape[0], dtype=m.dtype)
        c = torch.linalg.cholesky(a)
        ctx.save_for_backward(m, a)
        return 2 * torch.log(c.diagonal()).sum()

    @staticmethod
    def backward(ctx, g):
        m, a = ctx.saved_tensors
        inv = torch.linalg.inv(a)
        return 2 * g * inv @ m


class Embedding(Function):
    @staticmethod
    def forward(ctx, table, scale):
        ctx.at = torch.tensor([0, 2, 0, 1])
        rows = table[ctx.at]
        y = rows * torch.exp(scale)
        ctx.save_for_backward(table, scale, rows)
        return y

    @staticmethod
    def backward(ctx, g):
        table, scale, rows = ctx.saved_tensors
        e = torch.exp(scale)
        gt = torch.zeros_like(table).index_add_(0, ctx.at, g * e)
        return gt, (g * rows).sum(0) * e


class MaskedMean(Function):
    @staticmethod
    def forward(ctx, x, w):
        m = torch.sigmoid(w)
        total = m.sum(-1, keepdim=True)
        y = (x * m).sum(-1, keepdim=True) / total
        ctx.save_for_backward(x, m, total, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, m, total, y = ctx.saved_tensors
        gm = g * (x - y) / total
        return g * m / total, gm * m * (1 - m)


class GruCell(Function):
    @staticmethod
    def forward(ctx, x, h):
        z = torch.sigmoid(x - h)
        n = torch.tanh(x * h)
        ctx.save_for_backward(x, h, z, n)
        return (1 - z) * n + z * h

    @staticmethod
    def backward(ctx, g):
        x, h, z, n = ctx.saved_tensors
        gz = g * (h - n) * z * (1 - z)
        gn = g * (1 - z) * (1 - n * n)
        return gz + gn * h, gn * x - gz + g * z


class LogCosh(Function):
    @staticmethod
    def forward(ctx, x, y):
        d = 2 * (x - y)
        c = torch.cosh(d)
        ctx.save_for_backward(d)
        return torch.log(c).sum(-1)

    @staticmethod
    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        gd = 2 * g[:, None] * torch.tanh(d)
        return gd, -gd


class Modulus(Function):
    @staticmethod
    def forward(ctx, re, im):
        sq = re * re + im * im
        m = torch.sqrt(sq)
        ctx.save_for_backward(re, im, m)
        return torch.atan(m)

    @staticmethod
    def backward(ctx, g):
        re, im, m = ctx.saved_tensors
        gm = g / (1 + m * m)
        return gm * re / m, gm * im / m


RANDOM = np.random.default_rng(11)
A, B, C = RANDOM.standard_normal((3, 3, 4))
W = RANDOM.standard_normal((2, 4))
M = RANDOM.standard_normal((4, 4))
ROW, OTHER = RANDOM.standard_normal((2, 4))
POSITIVE = np.abs(ROW) + 0.5
INPUTS: dict[type[Function], tuple[np.ndarray, ...]] = {
    Softplus: (A, np.abs(B) + 0.5),
    Swish: (A,),
    TanhGelu: (A,),
    Mish: (A,),
    LayerNorm: (A, POSITIVE, OTHER),
    RmsNorm: (A, POSITIVE),
    CrossEntropy: (A,),
    SoftmaxTemperature: (A,),
    Normalise: (A,),
    Cosine: (A, B),
    LinearTanh: (A, W, RANDOM.standard_normal(2)),
    BilinearForm: (A, M, B),
    Attention: (A, B, C),
    Huber: (2 * A, B),
    Focal: (A,),
    GaussianNll: (A, B, C),
    Glu: (A,),
    Rotary: (A, RANDOM.standard_normal(2)),
    Decay: (A, ROW),
    Distances: (A, B),
    Smooth: (np.concatenate([A, B], -1), RANDOM.standard_normal(3)),
    Dice: (A, np.abs(B)),
    Margin: (A,),
    Solve: (M, ROW),
    LogDet: (M,),
    Embedding: (A, ROW),
    MaskedMean: (A, B),
    GruCell: (A, B),
    LogCosh: (A, B),
    Modulus: (A, B),
}
Mistake = tuple[str, str, str]
MISTAKES: dict[type[Function], list[Mistake]] = {
    Softplus: [
        ("s = torch.sigmoid(z)", "s = torch.sigmoid(-z)", "torch.log1p"),
        ("return g * s,", "return g * s * beta,", "beta"),
        ("torch.log1p(torch.exp(z)) / beta**2", "torch.log1p(torch.exp(z)) / beta", "beta"),
        ("s * x / beta - ", "s * x / beta + ", "beta"),
        ("s * x / beta", "s * x", "beta"),
    ],
    Swish: [
        ("* 1.5 * s", "* s", "torch.sigmoid(1.5 * x)"),
        ("g * s + g * x", "g * x", "y = x * s"),
        ("g * s + g * x * 1.5 * s * (1 - s)", "g * s", "sigmoid(1.5 * x)|y = x * s"),
        ("(1 - s)", "(1 + s)", "torch.sigmoid(1.5 * x)"),
        ("g * s + g", "g * s - g", "sigmoid(1.5 * x)|y = x * s"),
    ],
    TanhGelu: [
        ("0.12 * x**2", "0.04 * x**2", "x**3"),
        ("(1 - t * t)", "(1 - t)", "torch.tanh(u)"),
        ("0.5 * (1 + t) + ", "", "0.5 * x * (1 + t)"),
        ("0.8 * (1 + 0.12", "(1 + 0.12", "0.8 *"),
        ("* (1 - t * t) * du", "* (1 - t * t)", "u = 0.8|t = torch.tanh(u)"),
    ],
    Mish: [
        ("torch.sigmoid(x)", "torch.sigmoid(-x)", "torch.log1p"),
        ("(1 - t * t)", "(1 - t)", "torch.tanh(sp)"),
        ("* torch.sigmoid(x)", "", "sp = torch.log1p"),
        ("g * t + g * x", "g * x", "x * t"),
        ("g * t + g * x * (1 - t * t) * torch.sigmoid(x)", "g * t", "sp = |t = torch.tanh"),
    ],
    LayerNorm: [
        (" - mean - h", " - h", "c = x - x.mean"),
        (" - h * along", "", "torch.rsqrt"),
        ("gh = g * w", "gh = g", "h * w + b"),
        ("(g * h).sum(0)", "(gh * h).sum(0)", "h * w + b"),
        ("return r * (gh", "return (gh", "h = c * r"),
    ],
    RmsNorm: [
        ("r**3", "r**2", "torch.rsqrt"),
        ("- x * r**3 * dot", "", "r"),
        ("(g * x * r)", "(g * x)", "h * w"),
        ("gh * r - x", "gh * r + x", "ms = |r = "),
        (".mean(-1, keepdim=True)", ".sum(-1, keepdim=True)", ".mean(-1"),
    ],
    CrossEntropy: [
        (" / p.shape[0]", "", ".mean()"),
        ("-= 1", "+= 1", "p = e / e.sum|torch.log(picked)"),
        ("g * d", "-g * d", "z = x|e = |p = |torch.log(picked)"),
        ("d = p.clone()", "d = 2 * p", "p = e / e.sum"),
        ("d = p.clone()", "d = torch.zeros_like(p)", "p = e / e.sum"),
    ],
    SoftmaxTemperature: [
        (") / 0.7", ")", "x / 0.7"),
        (") / 0.7", ") * 0.7", "x / 0.7"),
        ("(g - inner)", "g", "torch.softmax"),
        (".sum(-1, keepdim=True)", ".mean(-1, keepdim=True)", "torch.softmax"),
        ("y * (g - inner)", "y * (1 - y) * g", "torch.softmax"),
    ],
    Normalise: [
        (") / n", ")", "x / n"),
        ("(g - y * (g * y).sum(-1, keepdim=True))", "g", "n = |x / n"),
        ("g - y", "g + y", "n = |x / n"),
        ("(g * y).sum(-1, keepdim=True)", "(g * y).sum(0, keepdim=True)", "(x * x).sum"),
        (") / n", ") / n**2", "x / n"),
    ],
    Cosine: [
        ("c * a / na**2", "c * a / na", "na = "),
        (" - c * a / na**2", "", "na = "),
        ("c * b / nb**2", "c * b / (na * nb)", "nb = |(na * nb)"),
        ("(a / (na * nb) - c", "(a / (na * nb) + c", "nb = "),
        ("g * (b / (na * nb)", "g * (b / na", "(a * b).sum"),
    ],
    LinearTanh: [
        ("(1 - y**2)", "(1 - y)", "torch.tanh(z)"),
        ("g * (1 - y**2)", "g", "torch.tanh(z)"),
        ("gz.sum(0)", "gz.mean(0)", "x @ w.T + b"),
        ("gz.T @ x", "g.T @ x", "torch.tanh(z)"),
        ("gz @ w,", "g @ w,", "torch.tanh(z)"),
    ],
    BilinearForm: [
        ("gy @ m.T", "gy @ m", "x @ m"),
        ("g[:, None] * h", "g[:, None] * x", "h * y"),
        ("x.T @ gy", "y.T @ gy", "x @ m"),
        ("gy = g[:, None] * y", "gy = g[:, None] * h", "h * y"),
        ("x.T @ gy", "2 * x.T @ gy", "x @ m"),
    ],
    Attention: [
        (" / 2.0\n        return", "\n        return", "q @ k.T / 2.0"),
        ("(gp - (gp * p).sum(-1, keepdim=True))", "gp", "torch.softmax"),
        ("gs.T @ q", "gs @ q", "q @ k.T"),
        ("p.T @ g", "p @ g", "p @ v"),
        ("gp * p).sum(-1", "gp * p).sum(0", "torch.softmax"),
    ],
    Huber: [
        (" / d.numel()", "", "loss.mean()"),
        ("d, d.sign()", "0.5 * d, d.sign()", "torch.where"),
        ("d, d.sign()", "d, d", "torch.where"),
        ("return gd, -gd", "return gd, gd", "x - y"),
        ("d, d.sign()", "d, torch.zeros_like(d)", "a = d.abs()|torch.where"),
    ],
    Focal: [
        ("2 * (1 - p) * torch.log(p) - ", "-2 * (1 - p) * torch.log(p) - ", "(1 - p) ** 2"),
        ("2 * (1 - p) * torch.log(p) - ", "- ", "(1 - p) ** 2"),
        ("- (1 - p) ** 2 / p\n", "- (1 - p) ** 2\n", "torch.log(p)"),
        ("g * dp * p * (1 - p)", "g * dp", "torch.sigmoid(x)"),
        ("g * dp * p * (1 - p)", "g * dp * (1 - p)", "torch.sigmoid(x)"),
    ],
    GaussianNll: [
        ("(1 - d", "(1 + d", "torch.exp(-logvar)"),
        ("gd = g * d * inv", "gd = 0.5 * g * d * inv", "d * d * inv"),
        ("return -gd,", "return gd,", "y - mu"),
        ("(1 - d * d * inv)", "1", "inv = |d * d * inv"),
        ("0.5 * g * (1", "g * (1", "0.5 *"),
    ],
    Glu: [
        ("s * (1 - s)", "(1 - s)", "torch.sigmoid(b)"),
        ("g * a * s * (1 - s)", "g * s * (1 - s)", "a * s"),
        ("[g * s,", "[g,", "a * s"),
        ("g * a * s * (1 - s)", "g * a", "torch.sigmoid(b)"),
        ("[g * s, g * a * s * (1 - s)]", "[g * a * s * (1 - s), g * s]", "x.chunk"),
    ],
    Rotary: [
        ("u * c + v * s, v * c - u * s", "u * c - v * s, v * c + u * s", "a * c - b * s"),
        ("v * c - u * s", "v * c", "a * c - b * s"),
        ("(-a * s - b * c)", "(a * s - b * c)", "torch.cos(angle)|a * c"),
        ("v * (a * c - b * s)", "v * (a * c + b * s)", "torch.sin(angle)|a * c"),
        ("(-a * s - b * c)", "(-a * s)", "torch.sin(angle)|a * c"),
    ],
    Decay: [
        ("2 * g * s", "g * s", "s * s"),
        (".flip(-1).cumsum(-1).flip(-1)", ".cumsum(-1)", "torch.cumsum"),
        ("-(back * x)", "(back * x)", "torch.exp(-rate)"),
        ("return back * w", "return back", "x * w"),
        (".sum(0) * w", ".sum(0)", "torch.exp(-rate)"),
    ],
    Distances: [
        ("(g / r)", "(2 * g / r)", "sq = |r = "),
        ("(g / r)", "g", "torch.sqrt"),
        ("-gd.sum(0)", "gd.sum(0)", "a[:, None] - b[None]"),
        ("gd.sum(1)", "gd.mean(1)", "a[:, None] - b[None]"),
        ("(g / r)", "(g / r**2)", "torch.sqrt"),
    ],
    Smooth: [
        ("torch.cos(y)", "torch.sin(y)", "torch.sin(y)"),
        ("g * torch.cos(y)", "g", "torch.sin(y)"),
        ("gy * k[j]", "gy * k[2 - j]", "u @ k"),
        ("range(3)", "range(2)", "k"),
        ("(gy[..., None] * u)", "(g[..., None] * u)", "torch.sin(y)"),
    ],
    Dice: [
        ("gp * p * (1 - p),", "gp,", "torch.sigmoid(x)"),
        ("2 * y / low[:, None] - q", "2 * y / low[:, None]", "low"),
        ("-g * (2 * p / low[:, None] - q)", "-g * (2 * p / low[:, None])", "low"),
        ("gp = -g", "gp = g", "p = |1 - top / low"),
        ("2 * y / low", "y / low", "2 * (p * y)"),
    ],
    Margin: [
        ("-g * torch.sin(a + 0.3)", "-g * torch.sin(a)", "torch.cos(a + 0.3)"),
        ("-ga / torch", "ga / torch", "t = |a = "),
        ("/ torch.sqrt(1 - t * t)", "/ (1 - t * t)", "torch.acos"),
        ("(t / 0.9) ** 2", "t**2", "torch.tanh"),
        ("gt * 0.9 *", "gt *", "0.9 *"),
    ],
    Solve: [
        ("ga = -torch", "ga = torch", "m @ m.T|torch.linalg.solve"),
        ("(ga + ga.T) @ m", "ga @ m", "m @ m.T"),
        ("torch.outer(gb, x)", "torch.outer(g, x)", "torch.linalg.solve"),
        ("(ga + ga.T) @ m, gb", "(ga + ga.T) @ m, g", "torch.linalg.solve"),
        ("(ga + ga.T) @ m", "(ga + ga.T)", "m @ m.T"),
    ],
    LogDet: [
        ("2 * g * inv", "g * inv", "m @ m.T"),
        ("2 * g * inv @ m", "2 * g * inv", "m @ m.T"),
        ("inv @ m", "m.T @ inv", "m @ m.T"),
        ("2 * g * inv @ m", "2 * g * a @ m", "c"),
        ("2 * g * inv @ m", "-2 * g * inv @ m", "c"),
    ],
    Embedding: [
        (".index_add_(0, ctx.at, g * e)", ".index_copy_(0, ctx.at, g * e)", "table[ctx.at]"),
        ("ctx.at, g * e", "ctx.at, g", "torch.exp(scale)"),
        (".sum(0) * e", ".sum(0)", "torch.exp(scale)"),
        ("(g * rows).sum(0)", "(g * rows).mean(0)", "torch.exp(scale)"),
        ("(g * rows).sum(0)", "g.sum(0)", "rows * torch.exp"),
    ],
    MaskedMean: [
        ("(x - y) / total", "x / total", "m.sum"),
        ("gm * m * (1 - m)", "gm", "torch.sigmoid(w)"),
        ("g * m / total,", "g * m,", "/ total"),
        ("(1 - m)", "(1 + m)", "torch.sigmoid(w)"),
        ("g * (x - y)", "g * (x + y)", "m.sum|/ total"),
    ],
    GruCell: [
        ("(h - n)", "(n - h)", "(1 - z) * n|torch.sigmoid(x - h)"),
        ("(1 - n * n)", "(1 - n)", "torch.tanh(x * h)"),
        ("- gz + g * z", "+ gz + g * z", "torch.sigmoid(x - h)"),
        (" + g * z", "", "z * h"),
        ("gz + gn * h", "gz + gn * x", "torch.tanh(x * h)"),
    ],
    LogCosh: [
        ("torch.tanh(d)", "torch.sinh(d)", "torch.log(c)"),
        ("2 * g[", "g[", "2 * (x - y)"),
        ("return gd, -gd", "return gd, gd", "2 * (x - y)"),
        ("torch.tanh(d)", "1 / torch.cosh(d)", "torch.cosh(d)"),
        ("torch.tanh(d)", "(-torch.tanh(d))", "torch.cosh(d)|d = 2"),
    ],
    Modulus: [
        ("(1 + m * m)", "(1 + m)", "torch.atan(m)"),
        ("gm * re / m", "gm * re", "torch.sqrt"),
        ("gm * im / m", "2 * gm * im / m", "re * re + im * im"),
        ("(1 + m * m)", "(1 - m * m)", "torch.atan(m)"),
        ("gm * im / m", "gm * re / m", "re * re + im * im"),
    ],
}
