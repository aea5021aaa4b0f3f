"""Small layers as public repositories write them, with NumPy inside: loops, in-place writes, masks, fancy indices.

Each has two mistakes of which the cause should name a line of the forward, the third text of the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fresh_layers import Fresh, Mistake, normal

PUBLIC: list[Fresh] = []


def row(name: str, inputs: Any, mistakes: Sequence[Mistake]) -> Callable[[type], type]:
    """Put the class's ``forward`` and ``backward`` into the list."""

    def put(layer: Any) -> Any:
        PUBLIC.append(Fresh(name, layer.forward, layer.backward, inputs, mistakes))
        return layer

    return put


@row(
    "im2col with np.pad and loops",
    normal((2, 3, 7, 7), (4, 3, 3, 3)),
    [("dw[o] += (g[:", "dw[o] -= (g[:", "* w[o]"), ("g[:, o, i, j][:, None, None, None] * w[o]", "w[o]", "* w[o]")],
)
class PaddedConv:
    def forward(x: Any, w: Any) -> Any:
        xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        out = np.zeros((2, 4, 4, 4), dtype=x.dtype)
        for o in range(4):
            for i in range(4):
                for j in range(4):
                    patch = xp[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                    out[:, o, i, j] = (patch * w[o]).sum(axis=(1, 2, 3))
        return out

    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        xp = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        dx, dw = np.zeros_like(xp), np.zeros_like(w)
        for o in range(4):
            for i in range(4):
                for j in range(4):
                    at = np.s_[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                    dw[o] += (g[:, o, i, j][:, None, None, None] * xp[at]).sum(0)
                    dx[at] += g[:, o, i, j][:, None, None, None] * w[o]
        return dx[:, :, 1:-1, 1:-1], dw


@row(
    "scatter by np.add.at",
    lambda r: [r.normal(size=(30, 4)), r.integers(0, 8, 30)],
    [("2 * y", "y", "out**2"), ("[index] *", "[index[::-1]] *", "np.add.at")],
)
class ScatterAdd:
    def forward(x: Any, index: Any) -> Any:
        out = np.zeros((8, 4), dtype=x.dtype)
        np.add.at(out, index, np.sin(x))
        return out + 0.1 * out**2

    def backward(x: Any, index: Any, y: Any, g: Any) -> Any:
        s = np.zeros((8, 4), dtype=x.dtype)
        np.add.at(s, index, np.sin(x))
        y = s
        return (g * (1 + 0.1 * 2 * y))[index] * np.cos(x), None


@row(
    "softmax row by row, in place",
    normal((8, 12)),
    [("- (g[i] * y[i]).sum()", "", "row.sum()"), ("y[i] * (g", "(g", "np.exp(row)")],
)
class RowSoftmax:
    def forward(x: Any) -> Any:
        y = x.copy()
        for row in y:
            row -= row.max()
            row[:] = np.exp(row)
            row /= row.sum()
        return y

    def backward(x: Any, y: Any, g: Any) -> Any:
        dx = np.empty_like(x)
        for i in range(x.shape[0]):
            dx[i] = y[i] * (g[i] - (g[i] * y[i]).sum())
        return dx


@row(
    "sparse matrix in coordinates",
    lambda r: [r.normal(size=40), r.normal(size=12), r.integers(0, 10, 40), r.integers(0, 12, 40)],
    [("v * g[r]", "g[r]", "v * x[c]"), ("g[r] * x[c]", "g[r] * x[c] * 2", "v * x[c]")],
)
class Coo:
    def forward(v: Any, x: Any, r: Any, c: Any) -> Any:
        out = np.zeros(10, dtype=v.dtype)
        np.add.at(out, r, v * x[c])
        return np.tanh(out)

    def backward(v: Any, x: Any, r: Any, c: Any, y: Any, g: Any) -> Any:
        g = g * (1 - y * y)
        dx = np.zeros_like(x)
        np.add.at(dx, c, v * g[r])
        return g[r] * x[c], dx, None, None


@row(
    "segment sums by bincount",
    lambda r: [r.normal(size=50), r.integers(0, 7, 50)],
    [("2 * x", "x", "x * x"), ("/ n[seg]", "", "/ n")],
)
class Bincount:
    def forward(x: Any, seg: Any) -> Any:
        n = np.bincount(seg, minlength=7)
        return np.bincount(seg, weights=x * x, minlength=7) / n

    def backward(x: Any, seg: Any, y: Any, g: Any) -> Any:
        n = np.bincount(seg, minlength=7)
        return g[seg] * 2 * x / n[seg], None


@row(
    "moving window with sliding_window_view",
    normal((4, 30), (5,)),
    [('"nt,ntk->k", g', '"nt,ntk->k", 2 * g', "win @ k"), ("* k[i]", "* k[4 - i]", "win @ k")],
)
class Sliding:
    def forward(x: Any, k: Any) -> Any:
        win = np.lib.stride_tricks.sliding_window_view(x, 5, axis=1)
        return win @ k

    def backward(x: Any, k: Any, y: Any, g: Any) -> Any:
        win = np.lib.stride_tricks.sliding_window_view(x, 5, axis=1)
        dk = np.einsum("nt,ntk->k", g, win)
        dx = np.zeros_like(x)
        for i in range(5):
            dx[:, i : i + 26] += g * k[i]
        return dx, dk


@row(
    "convolution by np.convolve",
    normal((25,), (6,)),
    [("dx, dk", "-dx, dk", "np.convolve"), ("0.5 * np.convolve(g, x[::-1]", "np.convolve(g, x[::-1]", "np.convolve")],
)
class Convolve:
    def forward(x: Any, k: Any) -> Any:
        return np.convolve(x, k, mode="full") * 0.5

    def backward(x: Any, k: Any, y: Any, g: Any) -> Any:
        dx = 0.5 * np.convolve(g, k[::-1], mode="valid") * 1.0
        dk = 0.5 * np.convolve(g, x[::-1], mode="valid")
        return dx, dk


@row(
    "table look-up by np.searchsorted",
    lambda r: [r.uniform(0.05, 0.95, 60), r.normal(size=11)],
    [("* 10", "", "t * (v[i + 1]"), ("g * (1 - t)", "g * t", "t * (v[i + 1]")],
)
class Table:
    def forward(x: Any, v: Any) -> Any:
        grid = np.linspace(0, 1, 11)
        i = np.searchsorted(grid, x) - 1
        t = (x - grid[i]) * 10
        return v[i] + t * (v[i + 1] - v[i])

    def backward(x: Any, v: Any, y: Any, g: Any) -> Any:
        grid = np.linspace(0, 1, 11)
        i = np.searchsorted(grid, x) - 1
        t = (x - grid[i]) * 10
        dv = np.zeros_like(v)
        np.add.at(dv, i, g * (1 - t))
        np.add.at(dv, i + 1, g * t)
        return g * (v[i + 1] - v[i]) * 10, dv


@row(
    "masked assignment",
    normal((10, 15)),
    [("0.1 * g[low]", "g[low]", "0.1 * np.expm1"), ("y[high]", "x[high]", "np.sqrt")],
)
class MaskedWrites:
    def forward(x: Any) -> Any:
        y = np.empty_like(x)
        low, high = x < 0, x >= 0
        y[low] = 0.1 * np.expm1(x[low])
        y[high] = np.sqrt(1 + x[high])
        return y

    def backward(x: Any, y: Any, g: Any) -> Any:
        dx = np.zeros_like(g)
        low, high = x < 0, x >= 0
        dx[low] = 0.1 * g[low] * np.exp(x[low])
        dx[high] = 0.5 * g[high] / y[high]
        return dx


@row(
    "top k with np.argpartition",
    normal((6, 20)),
    [("2 * top", "top", "top**2"), ("g[:, None]", "-g[:, None]", "top**2")],
)
class TopK:
    def forward(x: Any) -> Any:
        idx = np.argpartition(-x, 4, axis=1)[:, :4]
        top = np.take_along_axis(x, idx, axis=1)
        return (top**2).sum(axis=1)

    def backward(x: Any, y: Any, g: Any) -> Any:
        idx = np.argpartition(-x, 4, axis=1)[:, :4]
        top = np.take_along_axis(x, idx, axis=1)
        dx = np.zeros_like(x)
        np.put_along_axis(dx, idx, g[:, None] * 2 * top, axis=1)
        return dx


@row(
    "rank loss over sorted pairs",
    lambda r: [r.normal(size=20), r.permutation(20)],
    [("-s", "s", "z[i] - z[j]"), ("/ 190", "", "/ 190")],
)
class RankPairs:
    def forward(x: Any, rank: Any) -> Any:
        order = np.argsort(rank)
        z = x[order]
        i, j = np.triu_indices(20, 1)
        d = z[i] - z[j]
        return np.log1p(np.exp(-d)).sum() / 190

    def backward(x: Any, rank: Any, y: Any, g: Any) -> Any:
        order = np.argsort(rank)
        z = x[order]
        i, j = np.triu_indices(20, 1)
        s = 1 / (1 + np.exp(z[i] - z[j])) / 190
        dz = np.zeros_like(z)
        np.add.at(dz, i, -s)
        np.add.at(dz, j, s)
        dx = np.zeros_like(x)
        dx[order] = g * dz
        return dx, None


@row(
    "CTC forward recursion in a loop",
    lambda r: [r.normal(size=(12, 5)), np.array([1, 2, 2, 4])],
    [
        ("p[t, lab[s]] += ", "p[t, 0] += ", "logp[t, lab[s]]"),
        ("p = total - p", "p = p - total", "logp[t, lab[s]]|x - np.log"),
    ],
)
class Alignment:
    def forward(x: Any, lab: Any) -> Any:
        logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
        a = np.full((12, 4), -np.inf)
        a[0, 0] = logp[0, lab[0]]
        for t in range(1, 12):
            for s in range(4):
                best = a[t - 1, s]
                if s > 0:
                    best = np.logaddexp(best, a[t - 1, s - 1])
                a[t, s] = best + logp[t, lab[s]]
        return -a[11, 3]

    def backward(x: Any, lab: Any, y: Any, g: Any) -> Any:
        logp = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
        a, b = np.full((12, 4), -np.inf), np.full((12, 4), -np.inf)
        a[0, 0] = logp[0, lab[0]]
        for t in range(1, 12):
            for s in range(4):
                best = a[t - 1, s]
                if s > 0:
                    best = np.logaddexp(best, a[t - 1, s - 1])
                a[t, s] = best + logp[t, lab[s]]
        b[11, 3] = 0
        for t in range(10, -1, -1):
            for s in range(4):
                after = b[t + 1, s] + logp[t + 1, lab[s]]
                if s < 3:
                    after = np.logaddexp(after, b[t + 1, s + 1] + logp[t + 1, lab[s + 1]])
                b[t, s] = after
        p = np.zeros_like(x)
        for t in range(12):
            for s in range(4):
                p[t, lab[s]] += np.exp(a[t, s] + b[t, s] - a[11, 3])
        total = np.exp(logp)
        p = total - p
        dx = p - 0
        return g * dx, None


@row(
    "pairwise distances with einsum",
    normal((10, 6), (8, 6)),
    [("2 * (", "(", "- 2 * np.einsum"), ("/ y[:, :, None]", "", "np.sqrt")],
)
class Pairwise:
    def forward(a: Any, b: Any) -> Any:
        sq = np.einsum("id,id->i", a, a)[:, None] + np.einsum("jd,jd->j", b, b)[None]
        d2 = sq - 2 * np.einsum("id,jd->ij", a, b)
        return np.sqrt(np.maximum(d2, 1e-12))

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        h = 0.5 * 2 * (g[:, :, None] * (a[:, None] - b[None]) / y[:, :, None])
        return h.sum(1), -h.sum(0)


@row(
    "fixed rotation by a QR, centred",
    normal((30, 5)),
    [("- xc.mean(0)", "", "mean(0)"), ("g @ w.T", "g @ w * 0.5", "xc @ w")],
)
class Rotation:
    def forward(x: Any) -> Any:
        w = np.linalg.qr(np.arange(25.0).reshape(5, 5) % 7 + np.eye(5))[0]
        xc = x - x.mean(0)
        return np.arctan(xc @ w)

    def backward(x: Any, y: Any, g: Any) -> Any:
        w = np.linalg.qr(np.arange(25.0).reshape(5, 5) % 7 + np.eye(5))[0]
        g = g * np.cos(y) ** 2
        xc = g @ w.T
        return xc - xc.mean(0)


@row(
    "log-determinant by slogdet, and a trace",
    lambda r: [r.normal(size=(6, 6)) * 0.2 + 2 * np.eye(6)],
    [("inv.T", "inv", "slogdet"), ("2 * a", "a", "np.trace")],
)
class Slogdet:
    def forward(a: Any) -> Any:
        _, ld = np.linalg.slogdet(a)
        return 0.5 * np.trace(a @ a.T) - ld

    def backward(a: Any, y: Any, g: Any) -> Any:
        inv = np.linalg.inv(a)
        return g * (0.5 * 2 * a - inv.T)


@row(
    "ridge regression by np.linalg.solve",
    normal((20, 5), (20,)),
    [("- np.outer(x @ v, y)", "", "x.T @ x"), ("x @ v", "2 * x @ v", "x.T @ t")],
)
class Ridge:
    def forward(x: Any, t: Any) -> Any:
        return np.linalg.solve(x.T @ x + 0.5 * np.eye(5), x.T @ t)

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        v = np.linalg.solve(x.T @ x + 0.5 * np.eye(5), g)
        r = t - x @ y
        return np.outer(r, v) - np.outer(x @ v, y), x @ v


@row(
    "low-pass in the frequency domain",
    normal((5, 32), (17,)),
    [("/ 32", "", "irfft"), ("dx, df", "-dx, df", "irfft")],
)
class LowPass:
    def forward(x: Any, f: Any) -> Any:
        return np.fft.irfft(np.fft.rfft(x, axis=1) * f, n=32, axis=1)

    def backward(x: Any, f: Any, y: Any, g: Any) -> Any:
        dx = np.fft.irfft(np.fft.rfft(g, axis=1) * f, n=32, axis=1)
        s = np.conj(np.fft.rfft(x, axis=1)) * np.fft.rfft(g, axis=1)
        twice = np.full(17, 2.0)
        twice[0] = twice[16] = 1
        df = (s.real * twice).sum(0) / 32
        return dx, df


@row(
    "cumulative returns and draw-down",
    lambda r: [r.normal(size=40) * 0.05],
    [("wealth[t]", "1", "np.maximum.accumulate"), ("np.cumsum(d[::-1])[::-1]", "np.cumsum(d)", "np.cumprod")],
)
class Drawdown:
    def forward(x: Any) -> Any:
        wealth = np.cumprod(1 + x)
        peak = np.maximum.accumulate(wealth)
        return (wealth / peak) ** 2

    def backward(x: Any, y: Any, g: Any) -> Any:
        wealth = np.cumprod(1 + x)
        peak = np.maximum.accumulate(wealth)
        r = wealth / peak
        dw = 2 * g * r / peak
        at = 0
        for t in range(40):
            if wealth[t] == peak[t]:
                at = t
            dw[at] -= 2 * g[t] * r[t] * wealth[t] / peak[t] ** 2
        d = dw * wealth
        return np.cumsum(d[::-1])[::-1] / (1 + x)


@row(
    "gelu with math.erf, vectorised",
    normal((6, 10)),
    [("+ x * pdf", "", "cdf"), ("0.3989422804014327", "0.5", "cdf")],
)
class ErfGelu:
    def forward(x: Any) -> Any:
        cdf = 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
        return x * cdf

    def backward(x: Any, y: Any, g: Any) -> Any:
        cdf = 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
        pdf = 0.3989422804014327 * np.exp(-0.5 * x * x)
        return g * (cdf + x * pdf)


@row(
    "Kalman filter in a loop of scalars",
    normal((30,), (2,)),
    [("dm = dm * (1 - k)", "dm = dm", "mu + k"), ("k * dm", "dm", "mu + k")],
)
class Kalman:
    def forward(z: Any, x0: Any) -> Any:
        mu, p = x0[0], 1.0
        out = []
        for t in range(len(z)):
            p = p + 0.1
            k = p / (p + 0.5)
            mu = mu + k * (z[t] - mu)
            p = (1 - k) * p
            out.append(mu * x0[1])
        return np.array(out)

    def backward(z: Any, x0: Any, y: Any, g: Any) -> Any:
        p, gains = 1.0, []
        for _ in range(len(z)):
            p = p + 0.1
            k = p / (p + 0.5)
            p = (1 - k) * p
            gains.append(k)
        dz, dm = np.zeros_like(z), 0.0
        for t in range(len(z) - 1, -1, -1):
            dm = dm + g[t] * x0[1]
            k = gains[t]
            dz[t] = k * dm
            dm = dm * (1 - k)
        return dz, np.array([dm, (g * y / x0[1]).sum()])


@row(
    "box areas and IoU",
    lambda r: [
        np.sort(r.uniform(0, 1, (12, 2, 2)), axis=1).reshape(12, 4) * [1, 1, 1.3, 1.3] + [0, 0, 0.2, 0.2],
        np.sort(r.uniform(0, 1, (12, 2, 2)), axis=1).reshape(12, 4) * [1, 1, 1.3, 1.3] + [0, 0, 0.2, 0.2],
    ],
    [
        ("di = g / u + g * inter / u**2", "di = g / u", "area_a + area_b"),
        ("ds = -g * inter", "ds = g * inter", "inter / "),
    ],
)
class IoU:
    def forward(a: Any, b: Any) -> Any:
        x1, y1 = np.maximum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])
        x2, y2 = np.minimum(a[:, 2], b[:, 2]), np.minimum(a[:, 3], b[:, 3])
        inter = np.clip(x2 - x1, 0, None) * np.clip(y2 - y1, 0, None)
        area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
        area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        return inter / (area_a + area_b - inter)

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        x1, y1 = np.maximum(a[:, 0], b[:, 0]), np.maximum(a[:, 1], b[:, 1])
        x2, y2 = np.minimum(a[:, 2], b[:, 2]), np.minimum(a[:, 3], b[:, 3])
        w, h = np.clip(x2 - x1, 0, None), np.clip(y2 - y1, 0, None)
        inter = w * h
        aw, ah, bw, bh = a[:, 2] - a[:, 0], a[:, 3] - a[:, 1], b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]
        u = aw * ah + bw * bh - inter
        di = g / u + g * inter / u**2
        ds = -g * inter / u**2
        dw, dh = di * h * (x2 > x1), di * w * (y2 > y1)
        da, db = np.zeros_like(a), np.zeros_like(b)
        for d, p, q in ((da, a, b), (db, b, a)):
            d[:, 0] -= dw * (p[:, 0] > q[:, 0])
            d[:, 1] -= dh * (p[:, 1] > q[:, 1])
            d[:, 2] += dw * (p[:, 2] < q[:, 2])
            d[:, 3] += dh * (p[:, 3] < q[:, 3])
        da += np.stack([-ds * ah, -ds * aw, ds * ah, ds * aw], axis=1)
        db += np.stack([-ds * bh, -ds * bw, ds * bh, ds * bw], axis=1)
        return da, db


@row(
    "position encoding and hstack",
    normal((12, 6), (3,)),
    [("- g[:, 9:] *", "+ g[:, 9:] *", "np.cos"), (".sum(axis=0)", ".mean(axis=0)", "np.outer")],
)
class Encoding:
    def forward(x: Any, f: Any) -> Any:
        phase = np.outer(x[:, 0], f)
        return np.hstack([x, np.sin(phase), np.cos(phase)])

    def backward(x: Any, f: Any, y: Any, g: Any) -> Any:
        phase = np.outer(x[:, 0], f)
        d = g[:, 6:9] * np.cos(phase) - g[:, 9:] * np.sin(phase)
        dx = g[:, :6].copy()
        dx[:, 0] += (d * f).sum(axis=1)
        return dx, (d * x[:, :1]).sum(axis=0)


@row(
    "kernel regression, list comprehension",
    normal((15, 2), (20, 2), (20,)),
    [("(v[j] - y[i])", "v[j]", "k.sum()"), ("-2 *", "2 *", "np.exp(-")],
)
class Nadaraya:
    def forward(x: Any, c: Any, v: Any) -> Any:
        out = []
        for xi in x:
            k = np.exp(-((xi - c) ** 2).sum(axis=1))
            out.append(np.dot(k, v) / k.sum())
        return np.array(out)

    def backward(x: Any, c: Any, v: Any, y: Any, g: Any) -> Any:
        dx, dc, dv = np.zeros_like(x), np.zeros_like(c), np.zeros_like(v)
        for i in range(len(x)):
            d = x[i] - c
            k = np.exp(-(d**2).sum(axis=1))
            w = k / k.sum()
            for j in range(len(c)):
                h = -2 * g[i] * w[j] * (v[j] - y[i]) * d[j]
                dx[i] += h
                dc[j] -= h
                dv[j] += g[i] * w[j]
        return dx, dc, dv


@row(
    "median absolute deviation",
    normal((9, 11)),
    [("dmad * s / 11", "dmad * s", "np.abs(x - med)"), ("h - 0", "h * 1.1", "- med")],
)
class Robust:
    def forward(x: Any) -> Any:
        med = np.median(x, axis=1, keepdims=True)
        mad = np.abs(x - med).mean(axis=1, keepdims=True)
        return (x - med) / mad

    def backward(x: Any, y: Any, g: Any) -> Any:
        med = np.median(x, axis=1, keepdims=True)
        mad = np.abs(x - med).mean(axis=1, keepdims=True)
        s = np.sign(x - med)
        dmad = -(g * y).sum(axis=1, keepdims=True) / mad
        h = g / mad + dmad * s / 11
        h = h - 0
        total = h.sum(axis=1, keepdims=True)
        at = np.argsort(x, axis=1)[:, 5:6]
        np.put_along_axis(h, at, np.take_along_axis(h, at, axis=1) - total, axis=1)
        return h


@row(
    "triplets by boolean mask",
    lambda r: [r.normal(size=(10, 5)), r.integers(0, 3, 10)],
    [("2 * ", "", "** 2"), ("n.sum()", "100", "n.sum()")],
)
class BatchTriplets:
    def forward(x: Any, t: Any) -> Any:
        same = t[:, None] == t[None, :]
        d = ((x[:, None] - x[None]) ** 2).sum(-1)
        near, n = d[same], ~same
        return near.sum() / same.sum() - np.log(d[n] + 1).sum() / n.sum()

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        same = t[:, None] == t[None, :]
        n = ~same
        d = ((x[:, None] - x[None]) ** 2).sum(-1)
        h = np.zeros_like(d)
        h[same] = 1 / same.sum()
        h[n] = -1 / (d[n] + 1) / n.sum()
        e = g * 2 * (h[:, :, None] * (x[:, None] - x[None]))
        return e.sum(1) - e.sum(0), None


@row(
    "bilinear up-sampling by np.repeat",
    normal((2, 3, 5, 5)),
    [("/ 4", "", "/ 4"), ("sum(axis=(3, 5))", "mean(axis=(3, 5))", "np.repeat")],
)
class Upsample:
    def forward(x: Any) -> Any:
        up = np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)
        return up**2 / 4

    def backward(x: Any, y: Any, g: Any) -> Any:
        up = np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)
        d = g * 2 * up / 4
        return d.reshape(2, 3, 5, 2, 5, 2).sum(axis=(3, 5))


@row(
    "max pool in four loops",
    normal((2, 2, 6, 6)),
    [("+= g[n, c, i, j]", "+= 1.0", "window.max()"), ("np.argmax", "np.argmin", "window.max()")],
)
class LoopPool:
    def forward(x: Any) -> Any:
        out = np.zeros((2, 2, 3, 3), dtype=x.dtype)
        for n in range(2):
            for c in range(2):
                for i in range(3):
                    for j in range(3):
                        window = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                        out[n, c, i, j] = window.max()
        return out

    def backward(x: Any, y: Any, g: Any) -> Any:
        dx = np.zeros_like(x)
        for n in range(2):
            for c in range(2):
                for i in range(3):
                    for j in range(3):
                        window = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                        a, b = np.unravel_index(np.argmax(window), window.shape)
                        dx[n, c, 2 * i + a, 2 * j + b] += g[n, c, i, j]
        return dx


@row(
    "spline coefficients by Thomas's algorithm",
    normal((14,)),
    [("* 0.25", "* 0.5", "b[0] * 0.25"), ("dd[i + 1]", "dd[i]", "d[i - 1]")],
)
class Thomas:
    def forward(b: Any) -> Any:
        n = len(b)
        c, d = np.zeros(n), np.zeros_like(b)
        d[0] = b[0] * 0.25
        c[0] = 0.25
        for i in range(1, n):
            k = 4 - c[i - 1]
            c[i] = 1 / k
            d[i] = (b[i] - d[i - 1]) / k
        x = d.copy()
        for i in range(n - 2, -1, -1):
            x[i] -= c[i] * x[i + 1]
        return x

    def backward(b: Any, y: Any, g: Any) -> Any:
        n = len(b)
        c = np.zeros(n)
        c[0] = 0.25
        for i in range(1, n):
            c[i] = 1 / (4 - c[i - 1])
        dx = g.copy()
        for i in range(n - 1):
            dx[i + 1] -= c[i] * dx[i]
        dd = dx.copy()
        for i in range(n - 2, -1, -1):
            dd[i] -= c[i + 1] * dd[i + 1]
        out = dd.copy()
        for i in range(1, n):
            out[i] = dd[i] * c[i]
        out[0] = dd[0] * 0.25
        return out


@row(
    "hinge loss of Crammer and Singer",
    lambda r: [r.normal(size=(15, 6)), r.integers(0, 6, 15)],
    [("-= (margin > 0).sum(axis=1)", "-= 1", "margin"), ("/ n", "", "/ n")],
)
class Hinge:
    def forward(s: Any, t: Any) -> Any:
        n = s.shape[0]
        margin = np.maximum(0, s - s[np.arange(n), t][:, None] + 1)
        margin[np.arange(n), t] = 0
        return margin.sum() / n

    def backward(s: Any, t: Any, y: Any, g: Any) -> Any:
        n = s.shape[0]
        margin = np.maximum(0, s - s[np.arange(n), t][:, None] + 1)
        margin[np.arange(n), t] = 0
        d = (margin > 0).astype(s.dtype)
        d[np.arange(n), t] -= (margin > 0).sum(axis=1)
        return g * d / n, None


@row(
    "batch norm as in course notes",
    normal((25, 8), (8,), (8,)),
    [
        ("* -0.5 * ivar**3", "* 0.5 * ivar**3", "np.sqrt(var"),
        ("dxmu1 + dxmu2", "dxmu1", "np.sqrt(var|xmu**2|var"),
    ],
)
class CourseBatchNorm:
    def forward(x: Any, gamma: Any, beta: Any) -> Any:
        mu = 1.0 / 25 * np.sum(x, axis=0)
        xmu = x - mu
        var = 1.0 / 25 * np.sum(xmu**2, axis=0)
        sqrtvar = np.sqrt(var + 1e-5)
        return gamma * (xmu / sqrtvar) + beta

    def backward(x: Any, gamma: Any, beta: Any, y: Any, g: Any) -> Any:
        xmu = x - x.mean(0)
        ivar = 1 / np.sqrt((xmu**2).mean(0) + 1e-5)
        dxhat = g * gamma
        divar = np.sum(dxhat * xmu, axis=0)
        dxmu1 = dxhat * ivar
        dvar = divar * -0.5 * ivar**3
        dxmu2 = 2 * xmu * dvar / 25
        dx1 = dxmu1 + dxmu2
        dmu = -np.sum(dx1, axis=0)
        return dx1 + dmu / 25, np.sum(g * xmu * ivar, axis=0), np.sum(g, axis=0)


@row(
    "embedding bag with offsets",
    lambda r: [r.normal(size=(20, 5)), r.integers(0, 20, 18), np.array([0, 4, 9, 13, 18])],
    [("/ (b - a)", "", "mean(axis=0)"), ("1 - y[k] ** 2", "1", "np.tanh")],
)
class EmbeddingBag:
    def forward(table: Any, idx: Any, offs: Any) -> Any:
        out = np.zeros((4, 5), dtype=table.dtype)
        for k in range(4):
            a, b = int(offs[k]), int(offs[k + 1])
            out[k] = table[idx[a:b]].mean(axis=0)
        return np.tanh(out)

    def backward(table: Any, idx: Any, offs: Any, y: Any, g: Any) -> Any:
        d = np.zeros_like(table)
        for k in range(4):
            a, b = int(offs[k]), int(offs[k + 1])
            for i in idx[a:b]:
                d[i] += g[k] * (1 - y[k] ** 2) / (b - a)
        return d, None, None


@row(
    "spectral rolloff by trapezoid",
    lambda r: [r.uniform(0.2, 2, (6, 21))],
    [("0.05 * w", "w", "np.trapezoid(x"), ("- y[:, None]", "", "np.trapezoid(x")],
)
class Centroid:
    def forward(x: Any) -> Any:
        f = np.linspace(0, 1, 21)
        area = np.trapezoid(x, dx=0.05, axis=1)
        return np.trapezoid(x * f, dx=0.05, axis=1) / area

    def backward(x: Any, y: Any, g: Any) -> Any:
        f = np.linspace(0, 1, 21)
        w = np.ones(21)
        w[0] = w[-1] = 0.5
        area = np.trapezoid(x, dx=0.05, axis=1)
        return (g / area)[:, None] * (0.05 * w * (f - y[:, None]))


@row(
    "roots summed by apply_along_axis",
    normal((7, 9)),
    [("* np.sign(r)", "", "np.abs(r)"), ("g[:, None] * ", "", "apply_along_axis")],
)
class AlongAxis:
    def forward(x: Any) -> Any:
        return np.apply_along_axis(lambda r: np.sqrt(np.abs(r)).sum(), 1, x)

    def backward(x: Any, y: Any, g: Any) -> Any:
        r = x
        return g[:, None] * (0.5 / np.sqrt(np.abs(x)) * np.sign(r))


@row(
    "homography of points",
    lambda r: [r.normal(size=(20, 2)), np.eye(3) + 0.05 * r.normal(size=(3, 3))],
    [("-(g * y).sum(axis=1)", "0 * (g * y).sum(axis=1)", "/ q[:, 2:]"), ("d.T @ ph", "(d.T @ ph).T", "ph @ h.T")],
)
class Homography:
    def forward(p: Any, h: Any) -> Any:
        ph = np.concatenate([p, np.ones((20, 1))], axis=1)
        q = ph @ h.T
        return q[:, :2] / q[:, 2:]

    def backward(p: Any, h: Any, y: Any, g: Any) -> Any:
        ph = np.concatenate([p, np.ones((20, 1))], axis=1)
        q = ph @ h.T
        d = np.zeros((20, 3))
        d[:, :2] = g / q[:, 2:]
        d[:, 2] = -(g * y).sum(axis=1) / q[:, 2]
        return (d @ h)[:, :2], d.T @ ph


@row(
    "hidden Markov forward, scaled",
    lambda r: [r.normal(size=(4, 4)), r.uniform(0.1, 1, (10, 4))],
    [("b = p @ (b", "b = p.T @ (b", "@ trans"), ("- p * (dp", "+ p * (dp", "sum(axis=1")],
)
class Hmm:
    def forward(w: Any, e: Any) -> Any:
        trans = np.exp(w) / np.exp(w).sum(axis=1, keepdims=True)
        a = np.full(4, 0.25) * e[0]
        loglik = 0.0
        for t in range(1, 10):
            c = a.sum()
            loglik += np.log(c)
            a = (a / c) @ trans * e[t]
        return np.array([loglik + np.log(a.sum())])

    def backward(w: Any, e: Any, y: Any, g: Any) -> Any:
        p = np.exp(w) / np.exp(w).sum(axis=1, keepdims=True)
        alpha = [np.full(4, 0.25) * e[0]]
        for t in range(1, 10):
            alpha.append(alpha[-1] / alpha[-1].sum() @ p * e[t])
        de, dp = np.zeros_like(e), np.zeros_like(w)
        b = np.ones(4) / alpha[-1].sum()
        for t in range(9, 0, -1):
            prev = alpha[t - 1] / alpha[t - 1].sum()
            de[t] = b * (prev @ p)
            dp += np.outer(prev, b * e[t])
            b = p @ (b * e[t]) / alpha[t - 1].sum()
        de[0] = b * 0.25
        dw = p * dp - p * (dp * p).sum(axis=1, keepdims=True)
        return g[0] * dw, g[0] * de


@row(
    "gradient magnitude of an image",
    normal((9, 9)),
    [("+= -gx", "+= gx", "im[1:-1, 2:] - im"), ("/ y", "", "np.hypot")],
)
class Sobel:
    def forward(im: Any) -> Any:
        dx = im[1:-1, 2:] - im[1:-1, :-2]
        dy = im[2:, 1:-1] - im[:-2, 1:-1]
        return np.hypot(dx, dy)

    def backward(im: Any, y: Any, g: Any) -> Any:
        dx = im[1:-1, 2:] - im[1:-1, :-2]
        dy = im[2:, 1:-1] - im[:-2, 1:-1]
        gx, gy = g * dx / y, g * dy / y
        d = np.zeros_like(im)
        d[1:-1, 2:] += gx
        d[1:-1, :-2] += -gx
        d[2:, 1:-1] += gy
        d[:-2, 1:-1] -= gy
        return d


@row(
    "contraction by tensordot",
    normal((5, 4, 3), (3, 4, 6)),
    [("t * g", "g", "np.tanh"), ("axes=([1], [2])", "axes=([1], [2])) * (2", "np.tensordot")],
)
class Tensordot:
    def forward(a: Any, b: Any) -> Any:
        return np.tanh(np.tensordot(a, b, axes=([2, 1], [0, 1])))

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        t = 1 - y * y
        h = t * g
        da = np.tensordot(h, b, axes=([1], [2]))
        return da.transpose(0, 2, 1), np.tensordot(a, h, axes=([0], [0])).transpose(1, 0, 2)


@row(
    "histogram with soft bins, broadcasting",
    lambda r: [r.uniform(0, 1, 40)],
    [("np.sign(d)", "1", "np.abs(d)"), ("/ 40", "", "mean(axis=0)")],
)
class SoftHistogram:
    def forward(x: Any) -> Any:
        d = x[:, None] - np.arange(0.05, 1.0, 0.1)
        w = np.maximum(0, 1 - 10 * np.abs(d))
        return w.mean(axis=0)

    def backward(x: Any, y: Any, g: Any) -> Any:
        d = x[:, None] - np.arange(0.05, 1.0, 0.1)
        inside = 10 * np.abs(d) < 1
        return (g * -10 * np.sign(d) * inside).sum(axis=1) / 40


@row(
    "winsorised by np.quantile",
    normal((41,)),
    [("g[inside]", "2 * g[inside]", "np.clip"), ("+= g[x > hi].sum()", "+= 0", "np.quantile")],
)
class Winsor:
    def forward(x: Any) -> Any:
        lo, hi = np.quantile(x, 0.25), np.quantile(x, 0.75)
        return np.clip(x, lo, hi)

    def backward(x: Any, y: Any, g: Any) -> Any:
        order = np.argsort(x)
        lo, hi = x[order[10]], x[order[30]]
        d = np.zeros_like(x)
        inside = (x >= lo) & (x <= hi)
        d[inside] = g[inside]
        d[order[10]] += g[x < lo].sum()
        d[order[30]] += g[x > hi].sum()
        return d


@row(
    "mixture by math functions and float()",
    lambda r: [r.normal(size=7), np.array([0.3])],
    [("(1 - w)", "w", "(1 - w)"), ("math.cos(v)", "math.sin(v)", "math.sin")],
)
class PlainFloats:
    def forward(x: Any, p: Any) -> Any:
        w = float(p[0])
        return np.array([w * math.sin(v) + (1 - w) * v * v for v in x.tolist()])

    def backward(x: Any, p: Any, y: Any, g: Any) -> Any:
        w = float(p[0])
        dx = np.array([w * math.cos(v) + (1 - w) * 2 * v for v in x.tolist()])
        dp = sum(gi * (math.sin(v) - v * v) for gi, v in zip(g, x.tolist(), strict=True))
        return g * dx, np.array([dp])


@row(
    "cosine annealed mixing, in-place operators",
    normal((6, 8), (8,)),
    [("h *= w", "h *= 1", "z *= w"), ("np.cos(z)", "np.sin(z)", "np.sin")],
)
class InPlace:
    def forward(x: Any, w: Any) -> Any:
        z = x.copy()
        z *= w
        z[1:] += 0.5 * z[:-1]
        np.sin(z, out=z)
        z -= z.mean()
        return z

    def backward(x: Any, w: Any, y: Any, g: Any) -> Any:
        z = x * w
        z[1:] += 0.5 * z[:-1].copy()
        h = (g - g.mean()) * np.cos(z)
        d = h.copy()
        d[:-1] += 0.5 * h[1:]
        h = d.copy()
        dw = (d * x).sum(axis=0)
        h *= w
        return h, dw
