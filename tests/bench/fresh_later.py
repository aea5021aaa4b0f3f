"""Small layers in NumPy that nobody has tuned a cause by: written after the checker, with expectations from calculus.

Each has two mistakes; the third text names the line of the forward whose share of the gradient is wrong, or, where a
whole branch is lost or the numbers cannot tell, every such line. A constant that one line alone explains (the 2 of a
square, the ln 10 of a logarithm, the length of a broadcast axis) belongs to that line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fresh_layers import Fresh, Mistake, normal

LATER: list[Fresh] = []


def row(name: str, inputs: Any, mistakes: Sequence[Mistake]) -> Callable[[type], type]:
    """Put the class's ``forward`` and ``backward`` into the list."""

    def put(layer: Any) -> Any:
        LATER.append(Fresh(name, layer.forward, layer.backward, inputs, mistakes))
        return layer

    return put


# --------------------------------------------------------------------------- signals
@row(
    "soft dynamic time warping",
    normal((7, 2), (6, 2)),
    [
        ("e[i - 1, j] += p[1]", "e[i - 1, j] = p[1]", "near = np.array"),
        ("2 * e[i + 1, j + 1] * diff", "e[i + 1, j + 1] * diff", "np.dot(diff, diff)"),
    ],
)
class SoftDtw:
    def forward(a: Any, b: Any) -> Any:
        cost = np.zeros((7, 6))
        for i in range(7):
            for j in range(6):
                diff = a[i] - b[j]
                cost[i, j] = np.dot(diff, diff)
        acc = np.full((8, 7), 1e8)
        acc[0, 0] = 0.0
        for i in range(1, 8):
            for j in range(1, 7):
                near = np.array([acc[i - 1, j - 1], acc[i - 1, j], acc[i, j - 1]])
                low = near.min()
                soft = low - 0.5 * np.log(np.exp((low - near) / 0.5).sum())
                acc[i, j] = cost[i - 1, j - 1] + soft
        return acc[7, 6]

    def backward(a: Any, b: Any, y: Any, g: Any) -> Any:
        acc = np.full((8, 7), 1e8)
        acc[0, 0] = 0.0
        share = np.zeros((8, 7, 3))
        for i in range(1, 8):
            for j in range(1, 7):
                near = np.array([acc[i - 1, j - 1], acc[i - 1, j], acc[i, j - 1]])
                k = np.exp((near.min() - near) / 0.5)
                acc[i, j] = ((a[i - 1] - b[j - 1]) ** 2).sum() + near.min() - 0.5 * np.log(k.sum())
                share[i, j] = k / k.sum()
        e = np.zeros((8, 7))
        e[7, 6] = g
        for i in range(7, 0, -1):
            for j in range(6, 0, -1):
                p = share[i, j] * e[i, j]
                e[i - 1, j - 1] += p[0]
                e[i - 1, j] += p[1]
                e[i, j - 1] += p[2]
        da, db = np.zeros_like(a), np.zeros_like(b)
        for i in range(7):
            for j in range(6):
                diff = a[i] - b[j]
                h = 2 * e[i + 1, j + 1] * diff
                da[i] += h
                db[j] -= h
        return da, db


@row(
    "overlap-add of windowed frames",
    lambda r: [r.normal(size=(9, 16)), r.uniform(0.5, 1, 16)],
    [
        ("h[at] * win", "h[at]", "frames[k] * win"),
        ("dnorm = -g * y / norm", "dnorm = 0 * g", "win**2|out / norm"),
    ],
)
class OverlapAdd:
    def forward(frames: Any, win: Any) -> Any:
        out, norm = np.zeros(80), np.zeros(80)
        for k in range(9):
            out[8 * k : 8 * k + 16] += frames[k] * win
            norm[8 * k : 8 * k + 16] += win**2
        return out / norm

    def backward(frames: Any, win: Any, y: Any, g: Any) -> Any:
        norm = np.zeros(80)
        for k in range(9):
            norm[8 * k : 8 * k + 16] += win**2
        h = g / norm
        dnorm = -g * y / norm
        dframes, dwin = np.zeros_like(frames), np.zeros_like(win)
        for k in range(9):
            at = slice(8 * k, 8 * k + 16)
            dframes[k] = h[at] * win
            dwin += h[at] * frames[k]
            dwin += 2 * win * dnorm[at]
        return dframes, dwin


@row(
    "harmonics of a swept oscillator",
    lambda r: [r.uniform(0.2, 1, 40), r.normal(size=3)],
    [
        ("np.cumsum(dphase[::-1])[::-1]", "np.cumsum(dphase)", "np.cumsum(f)"),
        ("k[:, None] * np.cos", "np.cos", "np.outer(k, phase)"),
    ],
)
class Oscillator:
    def forward(f: Any, amp: Any) -> Any:
        phase = 2 * np.pi / 16 * np.cumsum(f)
        k = np.arange(1, 4)
        angle = np.outer(k, phase)
        tone = np.sin(angle)
        return amp @ tone

    def backward(f: Any, amp: Any, y: Any, g: Any) -> Any:
        phase = 2 * np.pi / 16 * np.cumsum(f)
        k = np.arange(1, 4)
        angle = np.outer(k, phase)
        dtone = np.outer(amp, g)
        dphase = (k[:, None] * np.cos(angle) * dtone).sum(axis=0)
        df = 2 * np.pi / 16 * np.cumsum(dphase[::-1])[::-1]
        return df, np.sin(angle) @ g


@row(
    "comb filter with feedback",
    lambda r: [r.normal(size=(3, 30)), r.uniform(0.4, 0.8, 3)],
    [
        ("range(29, 3, -1)", "range(4, 30)", "a * z[:, t - 4]"),
        ("1 - y**2", "y * (1 - y)", "np.tanh"),
    ],
)
class Comb:
    def forward(x: Any, a: Any) -> Any:
        z = x.copy()
        for t in range(4, 30):
            z[:, t] += a * z[:, t - 4]
        return np.tanh(z)

    def backward(x: Any, a: Any, y: Any, g: Any) -> Any:
        z = np.arctanh(y)
        d = g * (1 - y**2)
        da = np.zeros_like(a)
        for t in range(29, 3, -1):
            da += d[:, t] * z[:, t - 4]
            d[:, t - 4] += a * d[:, t]
        return d, da


@row(
    "cepstra of a filter bank",
    lambda r: [r.uniform(0.2, 2, (6, 20)), r.uniform(0.1, 1, (20, 8))],
    [
        ("/ np.log(10)", "", "np.log10"),
        ("g.mean(axis=0)", "g.mean(axis=1, keepdims=True)", "cep.mean"),
    ],
)
class Cepstra:
    def forward(p: Any, bank: Any) -> Any:
        mel = p @ bank
        logs = np.log10(mel + 1e-6)
        basis = np.cos(np.pi / 8 * np.outer(np.arange(8) + 0.5, np.arange(5)))
        cep = logs @ basis
        return cep - cep.mean(axis=0)

    def backward(p: Any, bank: Any, y: Any, g: Any) -> Any:
        mel = p @ bank
        basis = np.cos(np.pi / 8 * np.outer(np.arange(8) + 0.5, np.arange(5)))
        d = g - g.mean(axis=0)
        dmel = d @ basis.T / (mel + 1e-6) / np.log(10)
        return dmel @ bank.T, p.T @ dmel


@row(
    "envelope of the analytic signal",
    normal((3, 32)),
    [
        ("g * z / y", "g * np.conj(z) / y", "np.abs(z)"),
        ("np.fft.fft(dz, axis=1) * h", "np.fft.fft(dz, axis=1)", "* h|np.abs(z)"),  # the real part alone: both say it
    ],
)
class Envelope:
    def forward(x: Any) -> Any:
        h = np.zeros(32)
        h[0] = h[16] = 1
        h[1:16] = 2
        spec = np.fft.fft(x, axis=1) * h
        z = np.fft.ifft(spec, axis=1)
        return np.abs(z)

    def backward(x: Any, y: Any, g: Any) -> Any:
        h = np.zeros(32)
        h[0] = h[16] = 1
        h[1:16] = 2
        z = np.fft.ifft(np.fft.fft(x, axis=1) * h, axis=1)
        dz = g * z / y
        return np.fft.ifft(np.fft.fft(dz, axis=1) * h, axis=1).real


# --------------------------------------------------------------------------- losses and ranking
@row(
    "focal loss with class weights",
    lambda r: [r.normal(size=(20, 5)), r.uniform(0.5, 2, 5), r.integers(0, 5, 20)],
    [
        ("2 * (1 - pt) * np.log(pt) - hard / pt", "-hard / pt", "(1 - pt) ** 2|w[t] * hard"),
        ("np.add.at(dw, t, -g / n * hard * np.log(pt))", "dw[t] += -g / n * hard * np.log(pt)", "w[t]"),
    ],
)
class Focal:
    def forward(z: Any, w: Any, t: Any) -> Any:
        n = len(t)
        e = np.exp(z - z.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        pt = p[np.arange(n), t]
        hard = (1 - pt) ** 2
        each = -w[t] * hard * np.log(pt)
        return each.mean()

    def backward(z: Any, w: Any, t: Any, y: Any, g: Any) -> Any:
        n = len(t)
        e = np.exp(z - z.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        pt = p[np.arange(n), t]
        hard = (1 - pt) ** 2
        dpt = g / n * w[t] * (2 * (1 - pt) * np.log(pt) - hard / pt)
        dz = -p * (dpt * pt)[:, None]
        dz[np.arange(n), t] += dpt * pt
        dw = np.zeros_like(w)
        np.add.at(dw, t, -g / n * hard * np.log(pt))
        return dz, dw, None


@row(
    "Lovasz hinge",
    lambda r: [r.normal(size=24) * 0.3, r.integers(0, 2, 24)],
    [
        ("derr[order] = dtop", "derr[:] = dtop[order]", "err[order]"),
        ("-sign * derr", "-derr", "z * sign"),
    ],
)
class Lovasz:
    def forward(z: Any, t: Any) -> Any:
        sign = 2.0 * t - 1
        err = 1 - z * sign
        order = np.argsort(-err)
        gt = t[order]
        inter = gt.sum() - np.cumsum(gt)
        union = gt.sum() + np.cumsum(1 - gt)
        jac = 1 - inter / union
        jac[1:] = jac[1:] - jac[:-1]
        top = err[order]
        return np.dot(np.maximum(top, 0), jac)

    def backward(z: Any, t: Any, y: Any, g: Any) -> Any:
        sign = 2.0 * t - 1
        err = 1 - z * sign
        order = np.argsort(-err)
        gt = t[order]
        jac = 1 - (gt.sum() - np.cumsum(gt)) / (gt.sum() + np.cumsum(1 - gt))
        jac[1:] = jac[1:] - jac[:-1]
        dtop = g * jac * (err[order] > 0)
        derr = np.zeros_like(err)
        derr[order] = dtop
        return -sign * derr, None


@row(
    "smooth ranks and discounted gain",
    lambda r: [r.normal(size=12), r.integers(0, 4, 12)],
    [
        ("h.sum(axis=0) - h.sum(axis=1)", "-h.sum(axis=1)", "s[None, :] - s[:, None]"),
        ("np.log(1 + rank) ** 2", "np.log(1 + rank)", "np.log2(1 + rank)"),
    ],
)
class ApproxNdcg:
    def forward(s: Any, rel: Any) -> Any:
        d = s[None, :] - s[:, None]
        above = 1 / (1 + np.exp(-d / 0.5))
        rank = 0.5 + above.sum(axis=1)
        gain = 2.0**rel - 1
        best = (np.sort(gain)[::-1] / np.log2(np.arange(12) + 2)).sum()
        found = gain / np.log2(1 + rank)
        return 1 - found.sum() / best

    def backward(s: Any, rel: Any, y: Any, g: Any) -> Any:
        d = s[None, :] - s[:, None]
        above = 1 / (1 + np.exp(-d / 0.5))
        rank = 0.5 + above.sum(axis=1)
        gain = 2.0**rel - 1
        best = (np.sort(gain)[::-1] / np.log2(np.arange(12) + 2)).sum()
        drank = g / best * gain * np.log(2) / ((1 + rank) * np.log(1 + rank) ** 2)
        h = drank[:, None] * above * (1 - above) / 0.5
        return h.sum(axis=0) - h.sum(axis=1), None


# --------------------------------------------------------------------------- attention and recurrences
@row(
    "attention with rotary positions",
    normal((10, 8), (10, 8), (10, 4)),
    [
        ("dq1 * c + dq2 * s, dq2 * c - dq1 * s", "dq1 * c - dq2 * s, dq2 * c + dq1 * s", "q1 * c - q2 * s"),
        ("ds.T @ qr", "ds @ qr", "qr @ kr.T"),
    ],
)
class Rotary:
    def forward(q: Any, k: Any, v: Any) -> Any:
        th = np.arange(10)[:, None] / 10 ** (np.arange(4) / 2)
        c, s = np.cos(th), np.sin(th)
        q1, q2, k1, k2 = q[:, :4], q[:, 4:], k[:, :4], k[:, 4:]
        qr = np.concatenate([q1 * c - q2 * s, q1 * s + q2 * c], axis=1)
        kr = np.concatenate([k1 * c - k2 * s, k1 * s + k2 * c], axis=1)
        score = qr @ kr.T / np.sqrt(8)
        score[np.triu_indices(10, 1)] = -1e9
        e = np.exp(score - score.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        return p @ v

    def backward(q: Any, k: Any, v: Any, y: Any, g: Any) -> Any:
        th = np.arange(10)[:, None] / 10 ** (np.arange(4) / 2)
        c, s = np.cos(th), np.sin(th)
        q1, q2, k1, k2 = q[:, :4], q[:, 4:], k[:, :4], k[:, 4:]
        qr = np.concatenate([q1 * c - q2 * s, q1 * s + q2 * c], axis=1)
        kr = np.concatenate([k1 * c - k2 * s, k1 * s + k2 * c], axis=1)
        score = qr @ kr.T / np.sqrt(8)
        score[np.triu_indices(10, 1)] = -1e9
        e = np.exp(score - score.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        dp = g @ v.T
        ds = p * (dp - (dp * p).sum(axis=1, keepdims=True)) / np.sqrt(8)
        dqr, dkr = ds @ kr, ds.T @ qr
        dq1, dq2, dk1, dk2 = dqr[:, :4], dqr[:, 4:], dkr[:, :4], dkr[:, 4:]
        dq = np.concatenate([dq1 * c + dq2 * s, dq2 * c - dq1 * s], axis=1)
        dk = np.concatenate([dk1 * c + dk2 * s, dk2 * c - dk1 * s], axis=1)
        return dq, dk, p.T @ g


@row(
    "LSTM with peepholes",
    lambda r: [r.normal(size=(7, 3)), r.normal(size=(3, 16)), r.normal(size=(4, 16)), r.normal(size=(2, 4))],
    [
        ("dc * f + di * p[0] + df * p[1]", "dc * f", "p[0] * c|p[1] * c"),
        ("np.outer(h0, dz)", "np.outer(h, dz)", "h @ u"),
    ],
)
class Peepholes:
    def forward(x: Any, w: Any, u: Any, p: Any) -> Any:
        h, c = np.zeros(4), np.zeros(4)
        hs = []
        for t in range(7):
            z = x[t] @ w + h @ u
            i = 1 / (1 + np.exp(-(z[:4] + p[0] * c)))
            f = 1 / (1 + np.exp(-(z[4:8] + p[1] * c)))
            n = np.tanh(z[8:12])
            o = 1 / (1 + np.exp(-z[12:]))
            c = f * c + i * n
            h = o * np.tanh(c)
            hs.append(h)
        return np.stack(hs)

    def backward(x: Any, w: Any, u: Any, p: Any, y: Any, g: Any) -> Any:
        h, c = np.zeros(4), np.zeros(4)
        cache = []
        for t in range(7):
            h0, c0 = h, c
            z = x[t] @ w + h0 @ u
            i = 1 / (1 + np.exp(-(z[:4] + p[0] * c0)))
            f = 1 / (1 + np.exp(-(z[4:8] + p[1] * c0)))
            n = np.tanh(z[8:12])
            o = 1 / (1 + np.exp(-z[12:]))
            c = f * c0 + i * n
            h = o * np.tanh(c)
            cache.append((h0, c0, i, f, n, o, c, h))
        dx, dw, du, dp = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), np.zeros_like(p)
        dh, dc = np.zeros(4), np.zeros(4)
        for t in reversed(range(7)):
            h0, c0, i, f, n, o, c, h = cache[t]
            dh = dh + g[t]
            do = dh * np.tanh(c) * o * (1 - o)
            dc = dc + dh * o * (1 - np.tanh(c) ** 2)
            di = dc * n * i * (1 - i)
            df = dc * c0 * f * (1 - f)
            dn = dc * i * (1 - n**2)
            dp[0] += di * c0
            dp[1] += df * c0
            dz = np.concatenate([di, df, dn, do])
            dx[t] = w @ dz
            dw += np.outer(x[t], dz)
            du += np.outer(h0, dz)
            dh = u @ dz
            dc = dc * f + di * p[0] + df * p[1]
        return dx, dw, du, dp


@row(
    "predators and prey by the midpoint rule",
    lambda r: [r.uniform(0.5, 2, (2, 5)), r.uniform(0.3, 1, 4)],
    [
        ("ca, cb = 0.2 * dam, 0.2 * dbm", "ca, cb = 0.4 * dam, 0.4 * dbm", "0.2 * fa|0.2 * fb|fa = |fb = "),
        ("eb * (k[2] * am - k[3])", "eb * (k[2] * bm - k[3])", "k[2] * am * bm"),
    ],
)
class Midpoint:
    def forward(s: Any, k: Any) -> Any:
        a, b = s[0], s[1]
        for _ in range(5):
            fa = k[0] * a - k[1] * a * b
            fb = k[2] * a * b - k[3] * b
            am = a + 0.2 * fa
            bm = b + 0.2 * fb
            a = a + 0.4 * (k[0] * am - k[1] * am * bm)
            b = b + 0.4 * (k[2] * am * bm - k[3] * bm)
        return np.stack([a, b])

    def backward(s: Any, k: Any, y: Any, g: Any) -> Any:
        a, b = s[0], s[1]
        path = []
        for _ in range(5):
            am = a + 0.2 * (k[0] * a - k[1] * a * b)
            bm = b + 0.2 * (k[2] * a * b - k[3] * b)
            path.append((a, b, am, bm))
            a = a + 0.4 * (k[0] * am - k[1] * am * bm)
            b = b + 0.4 * (k[2] * am * bm - k[3] * bm)
        da, db = g[0], g[1]
        dk = np.zeros(4)
        for a, b, am, bm in reversed(path):
            ea, eb = 0.4 * da, 0.4 * db
            dk += [(ea * am).sum(), -(ea * am * bm).sum(), (eb * am * bm).sum(), -(eb * bm).sum()]
            dam = ea * (k[0] - k[1] * bm) + eb * k[2] * bm
            dbm = -ea * k[1] * am + eb * (k[2] * am - k[3])
            ca, cb = 0.2 * dam, 0.2 * dbm
            dk += [(ca * a).sum(), -(ca * a * b).sum(), (cb * a * b).sum(), -(cb * b).sum()]
            da = da + dam + ca * (k[0] - k[1] * b) + cb * k[2] * b
            db = db + dbm - ca * k[1] * a + cb * (k[2] * a - k[3])
        return np.stack([da, db]), dk


# --------------------------------------------------------------------------- images and convolution
@row(
    "max unpooling to the saved positions",
    lambda r: [r.normal(size=(2, 8, 8)), r.uniform(0.5, 2, 2)],
    [
        ("h[c, i + a, j + b] * win[a, b]", "h[c, i, j] * win[a, b]", "scale[c] * win[a, b]"),
        ("g.mean(axis=(1, 2)", "g.sum(axis=(1, 2)", "out.mean"),
    ],
)
class Unpool:
    def forward(x: Any, scale: Any) -> Any:
        out = np.zeros_like(x)
        for c in range(2):
            for i in range(0, 8, 2):
                for j in range(0, 8, 2):
                    win = x[c, i : i + 2, j : j + 2]
                    a, b = np.unravel_index(np.argmax(win), (2, 2))
                    out[c, i + a, j + b] = scale[c] * win[a, b]
        return out - 0.5 * out.mean(axis=(1, 2), keepdims=True)

    def backward(x: Any, scale: Any, y: Any, g: Any) -> Any:
        h = g - 0.5 * g.mean(axis=(1, 2), keepdims=True)
        dx, dscale = np.zeros_like(x), np.zeros_like(scale)
        for c in range(2):
            for i in range(0, 8, 2):
                for j in range(0, 8, 2):
                    win = x[c, i : i + 2, j : j + 2]
                    a, b = np.unravel_index(np.argmax(win), (2, 2))
                    dx[c, i + a, j + b] = h[c, i + a, j + b] * scale[c]
                    dscale[c] += h[c, i + a, j + b] * win[a, b]
        return dx, dscale


@row(
    "transposed convolution in loops",
    normal((2, 3, 4, 4), (3, 2, 3, 3), (2,)),
    [
        ("dw[c] += (d", "dw[c] = (d", "* w[c]"),
        ("y > 0", "y < 0", "np.maximum(out"),
    ],
)
class TransposedConv:
    def forward(x: Any, w: Any, b: Any) -> Any:
        out = np.zeros((2, 2, 9, 9))
        for c in range(3):
            for i in range(4):
                for j in range(4):
                    out[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += x[:, c, i, j][:, None, None, None] * w[c]
        out += b[None, :, None, None]
        return np.maximum(out, 0.1 * out)

    def backward(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
        d = np.where(y > 0, g, 0.1 * g)
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        for c in range(3):
            for i in range(4):
                for j in range(4):
                    part = d[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
                    dx[:, c, i, j] = (part * w[c]).sum(axis=(1, 2, 3))
                    dw[c] += (d[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * x[:, c, i, j, None, None, None]).sum(0)
        return dx, dw, d.sum(axis=(0, 2, 3))


@row(
    "bilinear sampling of an image at points",
    lambda r: [r.normal(size=(7, 8)), r.uniform(0.1, 5.9, (15, 2))],
    [
        ("np.stack([da, db]", "np.stack([db, da]", "pts[:, 0], pts[:, 1]|a, b = r - r0"),
        ("(r0, c0 + 1), g * (1 - a) * b", "(r0, c0 + 1), g * a * b", "b * img[r0, c0 + 1]"),
    ],
)
class GridSample:
    def forward(img: Any, pts: Any) -> Any:
        r, c = pts[:, 0], pts[:, 1]
        r0, c0 = np.floor(r).astype(int), np.floor(c).astype(int)
        a, b = r - r0, c - c0
        top = (1 - b) * img[r0, c0] + b * img[r0, c0 + 1]
        bottom = (1 - b) * img[r0 + 1, c0] + b * img[r0 + 1, c0 + 1]
        return (1 - a) * top + a * bottom

    def backward(img: Any, pts: Any, y: Any, g: Any) -> Any:
        r, c = pts[:, 0], pts[:, 1]
        r0, c0 = np.floor(r).astype(int), np.floor(c).astype(int)
        a, b = r - r0, c - c0
        p, q, s, t = img[r0, c0], img[r0, c0 + 1], img[r0 + 1, c0], img[r0 + 1, c0 + 1]
        dimg = np.zeros_like(img)
        np.add.at(dimg, (r0, c0), g * (1 - a) * (1 - b))
        np.add.at(dimg, (r0, c0 + 1), g * (1 - a) * b)
        np.add.at(dimg, (r0 + 1, c0), g * a * (1 - b))
        np.add.at(dimg, (r0 + 1, c0 + 1), g * a * b)
        da = g * ((1 - b) * (s - p) + b * (t - q))
        db = g * ((1 - a) * (q - p) + a * (t - s))
        return dimg, np.stack([da, db], axis=1)


@row(
    "volume rendering along rays",
    lambda r: [r.uniform(0.1, 2, (6, 10)), r.uniform(0, 1, (6, 10, 3))],
    [
        ("after[:, k] = acc", "after[:, k] = acc + dw[:, k] * weight[:, k]", "np.cumprod|trans[:, :-1]"),
        ("weight[:, :, None] * g[:, None, :]", "weight[:, :, None] * np.ones(3)", "weight[:, :, None] * color"),
    ],
)
class Rays:
    def forward(sigma: Any, color: Any) -> Any:
        alpha = 1 - np.exp(-sigma * 0.3)
        trans = np.cumprod(1 - alpha, axis=1)
        before = np.concatenate([np.ones((6, 1)), trans[:, :-1]], axis=1)
        weight = alpha * before
        return (weight[:, :, None] * color).sum(axis=1)

    def backward(sigma: Any, color: Any, y: Any, g: Any) -> Any:
        alpha = 1 - np.exp(-sigma * 0.3)
        before = np.concatenate([np.ones((6, 1)), np.cumprod(1 - alpha, axis=1)[:, :-1]], axis=1)
        weight = alpha * before
        dcolor = weight[:, :, None] * g[:, None, :]
        dw = (color * g[:, None, :]).sum(axis=2)
        after, acc = np.zeros_like(dw), np.zeros(6)
        for k in range(9, -1, -1):
            after[:, k] = acc
            acc = acc + dw[:, k] * weight[:, k]
        dalpha = dw * before - after / (1 - alpha)
        return dalpha * 0.3 * (1 - alpha), dcolor


# --------------------------------------------------------------------------- normalisation and graphs
@row(
    "group norm, group by group",
    lambda r: [r.normal(size=(3, 6, 5)) + 0.5, r.uniform(0.5, 2, 6), r.normal(size=6)],
    [
        (" - dh.mean()", "", "part.mean()|(part - mu) / np.sqrt"),
        ("(g * hat)", "(g * x)", "hat * gamma"),
    ],
)
class GroupNorm:
    def forward(x: Any, gamma: Any, beta: Any) -> Any:
        hat = np.empty_like(x)
        for n in range(3):
            for k in range(0, 6, 2):
                part = x[n, k : k + 2]
                mu = part.mean()
                var = ((part - mu) ** 2).mean()
                hat[n, k : k + 2] = (part - mu) / np.sqrt(var + 1e-5)
        return hat * gamma[:, None] + beta[:, None]

    def backward(x: Any, gamma: Any, beta: Any, y: Any, g: Any) -> Any:
        d = g * gamma[:, None]
        dx, hat = np.empty_like(x), np.empty_like(x)
        for n in range(3):
            for k in range(0, 6, 2):
                part, dh = x[n, k : k + 2], d[n, k : k + 2]
                std = np.sqrt(part.var() + 1e-5)
                h = (part - part.mean()) / std
                hat[n, k : k + 2] = h
                dx[n, k : k + 2] = (dh - dh.mean() - h * (dh * h).mean()) / std
        return dx, (g * hat).sum(axis=(0, 2)), g.sum(axis=(0, 2))


@row(
    "edge convolution with the largest message",
    lambda r: [
        r.normal(size=(9, 3)),
        r.normal(size=(6, 5)),
        np.stack([(i + 1 + r.permutation(8)[:4]) % 9 for i in range(9)]),
    ],
    [
        ("dpair[:, :3].sum(axis=0)", "dpair[0, :3]", "np.tile(x[i]"),
        ("msg.argmax(axis=0)", "msg.argmin(axis=0)", "msg.max(axis=0)"),
    ],
)
class EdgeConv:
    def forward(x: Any, w: Any, nbr: Any) -> Any:
        out = np.zeros((9, 5))
        for i in range(9):
            diff = x[nbr[i]] - x[i]
            self = np.tile(x[i], (4, 1))
            pair = np.concatenate([self, diff], axis=1)
            msg = np.tanh(pair @ w)
            out[i] = msg.max(axis=0)
        return out

    def backward(x: Any, w: Any, nbr: Any, y: Any, g: Any) -> Any:
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        for i in range(9):
            pair = np.concatenate([np.tile(x[i], (4, 1)), x[nbr[i]] - x[i]], axis=1)
            msg = np.tanh(pair @ w)
            d = np.zeros_like(msg)
            best = msg.argmax(axis=0)
            d[best, np.arange(5)] = g[i] * (1 - msg[best, np.arange(5)] ** 2)
            dw += pair.T @ d
            dpair = d @ w.T
            dx[i] += dpair[:, :3].sum(axis=0)
            dx[i] -= dpair[:, 3:].sum(axis=0)
            np.add.at(dx, nbr[i], dpair[:, 3:])
        return dx, dw, None


@row(
    "softmax over the edges of a node",
    lambda r: [r.normal(size=16), r.normal(size=(16, 3)), r.permutation(np.arange(16) % 5)],
    [
        ("- avg[dst]", "", "np.add.at(z, dst, e)|z[dst]"),
        ("(g[dst] * v).sum(axis=1)", "(g[dst] * v).mean(axis=1)", "p[:, None] * v"),
    ],
)
class EdgeSoftmax:
    def forward(s: Any, v: Any, dst: Any) -> Any:
        top = np.full(5, -np.inf)
        np.maximum.at(top, dst, s)
        e = np.exp(s - top[dst])
        z = np.zeros(5)
        np.add.at(z, dst, e)
        p = e / z[dst]
        out = np.zeros((5, 3))
        np.add.at(out, dst, p[:, None] * v)
        return out

    def backward(s: Any, v: Any, dst: Any, y: Any, g: Any) -> Any:
        e = np.exp(s)
        p = e / np.bincount(dst, weights=e)[dst]
        dp = (g[dst] * v).sum(axis=1)
        avg = np.bincount(dst, weights=p * dp)
        ds = p * (dp - avg[dst])
        return ds, p[:, None] * g[dst], None


# --------------------------------------------------------------------------- physics, finite elements and solvers
@row(
    "bar of finite elements",
    lambda r: [r.uniform(0.5, 2, 6), r.normal(size=6)],
    [
        ("de -= np.diff(lam)", "de += np.diff(lam)", "stiff[n : n + 2, n : n + 2] +=|np.linalg.solve"),
        ("0.5 * g * strain**2", "g * strain**2", "0.5 * e * strain**2"),
    ],
)
class Bar:
    def forward(e: Any, f: Any) -> Any:
        stiff = np.zeros((7, 7))
        for n in range(6):
            stiff[n : n + 2, n : n + 2] += e[n] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        u = np.zeros(7)
        u[1:] = np.linalg.solve(stiff[1:, 1:], f)
        strain = u[1:] - u[:-1]
        return 0.5 * e * strain**2

    def backward(e: Any, f: Any, y: Any, g: Any) -> Any:
        stiff = np.zeros((7, 7))
        for n in range(6):
            stiff[n : n + 2, n : n + 2] += e[n] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        u, lam, du = np.zeros(7), np.zeros(7), np.zeros(7)
        u[1:] = np.linalg.solve(stiff[1:, 1:], f)
        strain = u[1:] - u[:-1]
        de = 0.5 * g * strain**2
        du[1:] += g * e * strain
        du[:-1] -= g * e * strain
        lam[1:] = np.linalg.solve(stiff[1:, 1:], du[1:])
        de -= np.diff(lam) * strain
        return de, lam[1:]


@row(
    "Burgers' equation, upwind",
    lambda r: [r.normal(size=20) * 0.5 + 0.2, np.array([0.15])],
    [
        ("np.roll(nu * g - pos * u, -1)", "np.roll(nu * g - pos * u, 1)", "np.roll(u, 1)"),
        ("(g * (right - 2 * u + left)).sum()", "(g * (right - 2 * u + left)).mean()", "nu * (right"),
    ],
)
class Burgers:
    def forward(u: Any, nu: Any) -> Any:
        for _ in range(4):
            left = np.roll(u, 1)
            right = np.roll(u, -1)
            flow = np.where(u > 0, u * (u - left), u * (right - u))
            u = u - 0.3 * flow + nu * (right - 2 * u + left)
        return u

    def backward(u: Any, nu: Any, y: Any, g: Any) -> Any:
        past = []
        for _ in range(4):
            past.append(u)
            left, right = np.roll(u, 1), np.roll(u, -1)
            u = u - 0.3 * np.where(u > 0, u * (u - left), u * (right - u)) + nu * (right - 2 * u + left)
        dnu = np.zeros(1)
        for u in past[::-1]:
            left, right = np.roll(u, 1), np.roll(u, -1)
            dnu += (g * (right - 2 * u + left)).sum()
            pos = np.where(u > 0, -0.3 * g, 0.0)
            neg = -0.3 * g - pos
            d = g - 2 * nu * g + pos * (2 * u - left) + neg * (right - 2 * u)
            d += np.roll(nu * g - pos * u, -1)
            d += np.roll(nu * g + neg * u, 1)
            g = d
        return g, dnu


@row(
    "Gauss-Seidel sweeps in place",
    normal((4, 4), (6,)),
    [
        ("d[i, j] = 0.0", "d[i, j] = d[i, j]", "u[i, j] = 0.25"),
        ("df * np.cos(f)", "df", "np.sin(f)"),
    ],
)
class GaussSeidel:
    def forward(f: Any, edge: Any) -> Any:
        src = np.sin(f)
        u = np.zeros((6, 6))
        u[0] = edge
        for _ in range(2):
            for i in range(1, 5):
                for j in range(1, 5):
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - src[i - 1, j - 1])
        return u[1:-1, 1:-1]

    def backward(f: Any, edge: Any, y: Any, g: Any) -> Any:
        d, df = np.zeros((6, 6)), np.zeros_like(f)
        d[1:-1, 1:-1] = g
        for _ in range(2):
            for i in range(4, 0, -1):
                for j in range(4, 0, -1):
                    h = 0.25 * d[i, j]
                    d[i, j] = 0.0
                    d[i - 1, j] += h
                    d[i + 1, j] += h
                    d[i, j - 1] += h
                    d[i, j + 1] += h
                    df[i - 1, j - 1] -= h
        return df * np.cos(f), d[0]


@row(
    "forward substitution",
    lambda r: [r.normal(size=(6, 6)) * 0.5 + 1.5 * np.eye(6), r.normal(size=(6, 3))],
    [
        ("dx[i] / low[i, i]", "dx[i] * low[i, i]", "/ low[i, i]"),
        ("np.outer(low[i, :i], db[i])", "np.outer(low[:i, i], db[i])", "low[i, :i] @ x[:i]"),
    ],
)
class ForwardSubstitution:
    def forward(low: Any, b: Any) -> Any:
        x = np.zeros_like(b)
        for i in range(6):
            known = low[i, :i] @ x[:i]
            x[i] = (b[i] - known) / low[i, i]
        return x

    def backward(low: Any, b: Any, y: Any, g: Any) -> Any:
        dx, db, dlow = g.copy(), np.zeros_like(b), np.zeros_like(low)
        for i in range(5, -1, -1):
            db[i] = dx[i] / low[i, i]
            dlow[i, i] = -(db[i] * y[i]).sum()
            dlow[i, :i] = -y[:i] @ db[i]
            dx[:i] -= np.outer(low[i, :i], db[i])
        return dlow, db


@row(
    "Kepler's equation by Newton's method",
    lambda r: [r.uniform(0.3, 2.8, 8), r.uniform(0.1, 0.6, 8)],
    [
        ("-g * np.cos(e)", "-np.cos(e)", "return 1 - ecc"),
        ("de / (1 - ecc * np.cos(e))", "de", "f = e - ecc|f / (1 - ecc"),
    ],
)
class Kepler:
    def forward(mean: Any, ecc: Any) -> Any:
        e = mean + ecc * np.sin(mean)
        for _ in range(8):
            f = e - ecc * np.sin(e) - mean
            e = e - f / (1 - ecc * np.cos(e))
        return 1 - ecc * np.cos(e)

    def backward(mean: Any, ecc: Any, y: Any, g: Any) -> Any:
        e = mean + ecc * np.sin(mean)
        for _ in range(8):
            e = e - (e - ecc * np.sin(e) - mean) / (1 - ecc * np.cos(e))
        de = g * ecc * np.sin(e)
        dmean = de / (1 - ecc * np.cos(e))
        return dmean, -g * np.cos(e) + dmean * np.sin(e)


# --------------------------------------------------------------------------- geometry, statistics and transport
@row(
    "distance from points to segments",
    lambda r: [r.normal(size=(12, 2)) * 1.5, r.normal(size=(12, 2)), r.normal(size=(12, 2))],
    [
        (" * ((t > 0) & (t < 1))", "", "np.clip"),
        ("-(g / y)[:, None]", "-g[:, None]", "np.linalg.norm"),
    ],
)
class SegmentDistance:
    def forward(p: Any, a: Any, b: Any) -> Any:
        ab = b - a
        t = ((p - a) * ab).sum(axis=1) / (ab * ab).sum(axis=1)
        t = np.clip(t, 0, 1)
        near = a + t[:, None] * ab
        return np.linalg.norm(p - near, axis=1)

    def backward(p: Any, a: Any, b: Any, y: Any, g: Any) -> Any:
        ab = b - a
        sq = (ab * ab).sum(axis=1)
        t = np.clip(((p - a) * ab).sum(axis=1) / sq, 0, 1)
        near = a + t[:, None] * ab
        dnear = -(g / y)[:, None] * (p - near)
        dt = (dnear * ab).sum(axis=1) * ((t > 0) & (t < 1))
        dnum, dsq = (dt / sq)[:, None], (-dt * t / sq)[:, None]
        dab = t[:, None] * dnear + dnum * (p - a) + 2 * dsq * ab
        return -dnear + dnum * ab, dnear - dnum * ab - dab, dab


@row(
    "roundness of a polygon",
    lambda r: [
        r.uniform(0.7, 1.5, (9, 1)) * np.stack([np.cos(np.arange(9) * 0.69), np.sin(np.arange(9) * 0.69)], axis=1)
    ],
    [
        ("np.roll(dq, 1, axis=0)", "np.roll(dq, -1, axis=0)", "np.roll(p"),
        ("-8 * np.pi", "-4 * np.pi", "around**2"),
    ],
)
class Roundness:
    def forward(p: Any) -> Any:
        q = np.roll(p, -1, axis=0)
        area = 0.5 * (p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum()
        edge = np.sqrt(((q - p) ** 2).sum(axis=1))
        around = edge.sum()
        return 4 * np.pi * area / around**2

    def backward(p: Any, y: Any, g: Any) -> Any:
        q = np.roll(p, -1, axis=0)
        area = 0.5 * (p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum()
        edge = np.sqrt(((q - p) ** 2).sum(axis=1))
        around = edge.sum()
        darea = 4 * np.pi * g / around**2
        daround = -8 * np.pi * g * area / around**3
        u = daround * (q - p) / edge[:, None]
        dp = 0.5 * darea * np.stack([q[:, 1], -q[:, 0]], axis=1) - u
        dq = 0.5 * darea * np.stack([-p[:, 1], p[:, 0]], axis=1) + u
        return dp + np.roll(dq, 1, axis=0)


@row(
    "concordance correlation",
    lambda r: [r.normal(size=(4, 15)), r.normal(size=(4, 15)) * 1.3 + 0.6],
    [
        ("2 * dden * u / 15", "2 * dden * u / 14", "(u**2).mean"),
        ("dden * v / 15 - shift", "dden * v / 15 + shift", "mx - mt"),
    ],
)
class Concordance:
    def forward(x: Any, t: Any) -> Any:
        mx = x.mean(axis=1, keepdims=True)
        mt = t.mean(axis=1, keepdims=True)
        u, v = x - mx, t - mt
        cov = (u * v).mean(axis=1)
        vx = (u**2).mean(axis=1)
        vt = (v**2).mean(axis=1)
        bias = (mx - mt)[:, 0]
        return 2 * cov / (vx + vt + bias**2)

    def backward(x: Any, t: Any, y: Any, g: Any) -> Any:
        mx, mt = x.mean(axis=1, keepdims=True), t.mean(axis=1, keepdims=True)
        u, v = x - mx, t - mt
        den = (u**2).mean(axis=1, keepdims=True) + (v**2).mean(axis=1, keepdims=True) + (mx - mt) ** 2
        dcov = 2 * g[:, None] / den
        dden = -(g * y)[:, None] / den
        shift = 2 * dden * (mx - mt) / 15
        dx = dcov * v / 15 + 2 * dden * u / 15 + shift
        dt = dcov * u / 15 + 2 * dden * v / 15 - shift
        return dx, dt


@row(
    "Sinkhorn's iterations, unrolled",
    lambda r: [r.uniform(0, 1, (5, 6))],
    [
        ("np.outer(dz, vs[n])", "np.outer(dz, vs[n + 1])", "/ (k @ v)"),
        ("-6 * dv * vs[n + 1] ** 2", "6 * dv * vs[n + 1] ** 2", "/ (k.T @ u)"),
    ],
)
class Sinkhorn:
    def forward(c: Any) -> Any:
        k = np.exp(-c / 0.3)
        v = np.ones(6)
        for _ in range(4):
            u = 1 / 5 / (k @ v)
            v = 1 / 6 / (k.T @ u)
        plan = u[:, None] * k * v
        return (plan * c).sum()

    def backward(c: Any, y: Any, g: Any) -> Any:
        k = np.exp(-c / 0.3)
        us, vs = [], [np.ones(6)]
        for _ in range(4):
            us.append(1 / 5 / (k @ vs[-1]))
            vs.append(1 / 6 / (k.T @ us[-1]))
        u, v = us[-1], vs[-1]
        dc = g * u[:, None] * k * v
        dk = g * c * u[:, None] * v
        du = (g * c * k * v).sum(axis=1)
        dv = (g * c * k * u[:, None]).sum(axis=0)
        for n in range(3, -1, -1):
            dq = -6 * dv * vs[n + 1] ** 2
            dk += np.outer(us[n], dq)
            du = du + k @ dq
            dz = -5 * du * us[n] ** 2
            dk += np.outer(dz, vs[n])
            dv = k.T @ dz
            du = np.zeros(5)
        return dc - dk * k / 0.3


@row(
    "price of a call by Black and Scholes",
    lambda r: [r.uniform(0.8, 1.4, 10), r.uniform(0.2, 0.6, 10)],
    [
        ("ds = g * n1 +", "ds = n1 +", "s * n1"),
        ("np.exp(-0.5 * d2**2)", "np.exp(-0.5 * d1**2)", "math.erf)(d2"),
    ],
)
class BlackScholes:
    def forward(s: Any, vol: Any) -> Any:
        root = np.sqrt(0.8)
        d1 = (np.log(s / 1.1) + (0.02 + 0.5 * vol**2) * 0.8) / (vol * root)
        d2 = d1 - vol * root
        n1 = 0.5 * (1 + np.vectorize(math.erf)(d1 / np.sqrt(2)))
        n2 = 0.5 * (1 + np.vectorize(math.erf)(d2 / np.sqrt(2)))
        return s * n1 - 1.1 * np.exp(-0.016) * n2

    def backward(s: Any, vol: Any, y: Any, g: Any) -> Any:
        root = np.sqrt(0.8)
        d1 = (np.log(s / 1.1) + (0.02 + 0.5 * vol**2) * 0.8) / (vol * root)
        d2 = d1 - vol * root
        n1 = 0.5 * (1 + np.vectorize(math.erf)(d1 / np.sqrt(2)))
        p1 = np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
        p2 = np.exp(-0.5 * d2**2) / np.sqrt(2 * np.pi)
        dd2 = -g * 1.1 * np.exp(-0.016) * p2
        dd1 = g * s * p1 + dd2
        ds = g * n1 + dd1 / (s * vol * root)
        dvol = -dd2 * root + dd1 * (vol * 0.8 - d1 * root) / (vol * root)
        return ds, dvol


@row(
    "plane rotations in place",
    normal((6, 4), (5,)),
    [
        ("c * dq - s * dp", "c * dq - s * d[k]", "c * a - s * b|s * a + c * b|y[k + 1].copy()"),
        (
            "z[k], z[k + 1] = c * p + s * q, c * q - s * p",
            "z[k], z[k + 1] = p, q",
            "c * a - s * b|s * a + c * b|np.cos(th[k])",
        ),
    ],
)
class Givens:
    def forward(x: Any, th: Any) -> Any:
        y = x.copy()
        for k in range(5):
            c, s = np.cos(th[k]), np.sin(th[k])
            a, b = y[k].copy(), y[k + 1].copy()
            y[k] = c * a - s * b
            y[k + 1] = s * a + c * b
        return y

    def backward(x: Any, th: Any, y: Any, g: Any) -> Any:
        d, z, dth = g.copy(), y.copy(), np.zeros_like(th)
        for k in range(4, -1, -1):
            c, s = np.cos(th[k]), np.sin(th[k])
            p, q = z[k].copy(), z[k + 1].copy()
            dp, dq = d[k].copy(), d[k + 1].copy()
            dth[k] = (dq * p - dp * q).sum()
            z[k], z[k + 1] = c * p + s * q, c * q - s * p
            d[k] = c * dp + s * dq
            d[k + 1] = c * dq - s * dp
        return d, dth
