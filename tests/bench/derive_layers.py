"""Layers as people write them: functions, and PyLayers with the backward that their author wrote.

Written after `gradcheck.deriving` was, and not changed for it. Each is registered with its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from paddle.autograd import PyLayer

F = paddle.nn.functional
RANDOM = np.random.default_rng(2026)
LAYERS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape)


def positive(*shape: int) -> Any:
    return RANDOM.uniform(0.3, 2.0, shape)


def integers(below: int, *shape: int) -> Any:
    return paddle.to_tensor(RANDOM.integers(0, below, shape))


def layer(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    def add(subject: Any) -> Any:
        LAYERS.append((subject, args, kwargs))
        return subject

    return add


# --------------------------------------------------------------------------- activations and gates
@layer(normal(4, 6))
class Swish(PyLayer):
    @staticmethod
    def forward(ctx, x, beta=1.5):
        sig = F.sigmoid(beta * x)
        ctx.beta = beta
        ctx.save_for_backward(x, sig)
        return x * sig

    @staticmethod
    def backward(ctx, dy):
        x, sig = ctx.saved_tensor()
        return dy * (sig + ctx.beta * x * sig * (1 - sig))


@layer(normal(3, 5))
class Mish(PyLayer):
    @staticmethod
    def forward(ctx, x):
        sp = F.softplus(x)
        t = paddle.tanh(sp)
        ctx.save_for_backward(x, t)
        return x * t

    @staticmethod
    def backward(ctx, grad):
        x, t = ctx.saved_tensor()
        return grad * t + grad * x * (1 - t * t) * F.sigmoid(x)


@layer(normal(4, 3))
class Elu(PyLayer):
    @staticmethod
    def forward(ctx, x, alpha=0.8):
        out = paddle.where(x > 0, x, alpha * (paddle.exp(x) - 1))
        ctx.save_for_backward(x, out)
        ctx.alpha = alpha
        return out

    @staticmethod
    def backward(ctx, dout):
        x, out = ctx.saved_tensor()
        return paddle.where(x > 0, dout, dout * (out + ctx.alpha))


@layer(normal(2, 3, 8))
class GEGLU(PyLayer):
    @staticmethod
    def forward(ctx, x):
        half = x.shape[-1] // 2
        a, b = x[..., :half], x[..., half:]
        phi = 0.5 * (1 + paddle.erf(b / 2**0.5))
        ctx.save_for_backward(a, b, phi)
        return a * b * phi

    @staticmethod
    def backward(ctx, dy):
        a, b, phi = ctx.saved_tensor()
        pdf = paddle.exp(-0.5 * b * b) * 0.3989422804014327
        return paddle.concat([dy * b * phi, dy * a * (phi + b * pdf)], axis=-1)


@layer(normal(3, 4), normal(4))
class PReLU(PyLayer):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)
        return paddle.maximum(x, paddle.zeros_like(x)) + slope * paddle.minimum(x, paddle.zeros_like(x))

    @staticmethod
    def backward(ctx, dy):
        x, slope = ctx.saved_tensor()
        pos = (x > 0).astype(x.dtype)
        dx = dy * (pos + slope * (1 - pos))
        dslope = (dy * x * (1 - pos)).sum(axis=0)
        return dx, dslope


@layer(normal(5, 3), normal(5, 3), normal(5, 3))
class HighwayGate(PyLayer):
    @staticmethod
    def forward(ctx, x, h, g):
        t = F.sigmoid(g)
        ctx.save_for_backward(x, h, t)
        return t * h + (1 - t) * x

    @staticmethod
    def backward(ctx, dy):
        x, h, t = ctx.saved_tensor()
        return dy * (1 - t), dy * t, dy * (h - x) * t * (1 - t)


# --------------------------------------------------------------------------- norms
@layer(normal(2, 3, 4), normal(4))
class RMSNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-5):
        inv = paddle.rsqrt(paddle.mean(x**2, axis=-1, keepdim=True) + eps)
        xn = x * inv
        ctx.save_for_backward(xn, inv, weight)
        return xn * weight

    @staticmethod
    def backward(ctx, dy):
        xn, inv, weight = ctx.saved_tensor()
        g = dy * weight
        dx = inv * (g - xn * paddle.mean(g * xn, axis=-1, keepdim=True))
        dw = (dy * xn).sum(axis=[0, 1])
        return dx, dw


@layer(normal(6, 4), normal(4), normal(4))
class BatchNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, gamma, beta):
        mu = x.mean(axis=0)
        xc = x - mu
        var = (xc**2).mean(axis=0)
        std = paddle.sqrt(var + 1e-5)
        xhat = xc / std
        ctx.save_for_backward(xhat, std, gamma)
        return gamma * xhat + beta

    @staticmethod
    def backward(ctx, dout):
        xhat, std, gamma = ctx.saved_tensor()
        dgamma = (dout * xhat).sum(axis=0)
        dbeta = dout.sum(axis=0)
        dxhat = dout * gamma
        dx = (dxhat - dxhat.mean(axis=0) - xhat * (dxhat * xhat).mean(axis=0)) / std
        return dx, dgamma, dbeta


@layer(normal(2, 6, 5))
class GroupNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, groups=3):
        n, c, t = x.shape
        g = x.reshape([n, groups, -1])
        mean = g.mean(axis=-1, keepdim=True)
        rstd = paddle.rsqrt(((g - mean) ** 2).mean(axis=-1, keepdim=True) + 1e-5)
        norm = (g - mean) * rstd
        ctx.save_for_backward(norm, rstd)
        ctx.shape = [n, c, t]
        return norm.reshape([n, c, t])

    @staticmethod
    def backward(ctx, dy):
        norm, rstd = ctx.saved_tensor()
        g = dy.reshape(norm.shape)
        dx = rstd * (g - g.mean(axis=-1, keepdim=True) - norm * (g * norm).mean(axis=-1, keepdim=True))
        return dx.reshape(ctx.shape)


@layer(normal(4, 5))
class L2Normalize(PyLayer):
    @staticmethod
    def forward(ctx, x, eps=1e-12):
        length = paddle.sqrt((x * x).sum(axis=1, keepdim=True) + eps)
        y = x / length
        ctx.save_for_backward(y, length)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, length = ctx.saved_tensor()
        return (dy - y * (dy * y).sum(axis=1, keepdim=True)) / length


@layer(normal(3, 4), normal(4, 5), normal(5))
def weight_norm_linear(x, v, g):
    norm = paddle.sqrt((v * v).sum(axis=0))
    w = v * (g / norm)
    return x @ w


@layer(normal(2, 3, 4), normal(2, 4))
def adaptive_norm(x, style):
    mean = x.mean(axis=1, keepdim=True)
    std = paddle.sqrt(((x - mean) ** 2).mean(axis=1, keepdim=True) + 1e-5)
    return (x - mean) / std * (1 + style.unsqueeze(1))


# --------------------------------------------------------------------------- attention
@layer(normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6))
class Attention(PyLayer):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        p = F.softmax(paddle.matmul(q, k, transpose_y=True) * scale, axis=-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return paddle.matmul(p, v)

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensor()
        dv = paddle.matmul(p, do, transpose_x=True)
        dp = paddle.matmul(do, v, transpose_y=True)
        ds = p * (dp - (dp * p).sum(axis=-1, keepdim=True)) * ctx.scale
        return paddle.matmul(ds, k), paddle.matmul(ds, q, transpose_x=True), dv


@layer(normal(4, 4), normal(4, 4), normal(4, 4))
def causal_attention(q, k, v):
    scores = q @ k.t() / q.shape[-1] ** 0.5
    mask = paddle.triu(paddle.ones_like(scores), 1)
    p = F.softmax(scores - 1e9 * mask, axis=-1)
    return p @ v


@layer(normal(2, 3, 8), normal(8, 8), heads=2)
def multi_head(x, w, heads=2):
    b, t, d = x.shape
    y = (x @ w).reshape([b, t, heads, d // heads]).transpose([0, 2, 1, 3])
    p = F.softmax(paddle.matmul(y, y.transpose([0, 1, 3, 2])), axis=-1)
    return paddle.matmul(p, y).transpose([0, 2, 1, 3]).reshape([b, t, d])


@layer(normal(3, 4, 5))
class LinearAttentionMap(PyLayer):
    @staticmethod
    def forward(ctx, x):
        phi = F.elu(x) + 1
        z = phi.sum(axis=1, keepdim=True)
        y = phi / z
        ctx.save_for_backward(x, y, z)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y, z = ctx.saved_tensor()
        dphi = (dy - (dy * y).sum(axis=1, keepdim=True)) / z
        return dphi * paddle.where(x > 0, paddle.ones_like(x), paddle.exp(x))


@layer(normal(2, 4, 6), normal(4, 3), normal(4, 3))
def rotary(x, cos, sin):
    a, b = paddle.split(x, 2, axis=-1)
    return paddle.concat([a * cos - b * sin, a * sin + b * cos], axis=-1)


@layer(normal(5, 5), normal(5))
class AlibiBias(PyLayer):
    @staticmethod
    def forward(ctx, scores, slope):
        n = scores.shape[-1]
        dist = (paddle.arange(n).unsqueeze(0) - paddle.arange(n).unsqueeze(1)).astype(scores.dtype)
        ctx.save_for_backward(dist)
        return scores + slope.unsqueeze(-1) * dist

    @staticmethod
    def backward(ctx, dy):
        (dist,) = ctx.saved_tensor()
        return dy, (dy * dist).sum(axis=-1)


# --------------------------------------------------------------------------- losses
@layer(normal(5, 4), integers(4, 5))
class SmoothedCrossEntropy(PyLayer):
    @staticmethod
    def forward(ctx, logits, label, eps=0.1):
        c = logits.shape[1]
        logp = F.log_softmax(logits, axis=-1)
        target = F.one_hot(label, c).astype(logits.dtype) * (1 - eps) + eps / c
        ctx.save_for_backward(logp, target)
        return -(target * logp).sum(axis=-1).mean()

    @staticmethod
    def backward(ctx, dloss):
        logp, target = ctx.saved_tensor()
        return dloss * (paddle.exp(logp) - target) / logp.shape[0], None


@layer(normal(4, 3), normal(4, 3))
class Huber(PyLayer):
    @staticmethod
    def forward(ctx, pred, target, delta=0.6):
        d = pred - target
        ctx.save_for_backward(d)
        ctx.delta = delta
        quad = paddle.clip(paddle.abs(d), 0, delta)
        return (0.5 * quad**2 + delta * (paddle.abs(d) - quad)).mean()

    @staticmethod
    def backward(ctx, dy):
        (d,) = ctx.saved_tensor()
        g = dy * paddle.clip(d, -ctx.delta, ctx.delta) / d.size
        return g, -g


@layer(normal(6), normal(6))
class FocalLoss(PyLayer):
    @staticmethod
    def forward(ctx, x, t, gamma=2.0):
        p = F.sigmoid(x)
        ctx.save_for_backward(p, t)
        ctx.gamma = gamma
        return -(t * (1 - p) ** gamma * paddle.log(p)).sum()

    @staticmethod
    def backward(ctx, dy):
        p, t = ctx.saved_tensor()
        w = (1 - p) ** ctx.gamma
        dx = dy * t * w * (ctx.gamma * p * paddle.log(p) - (1 - p))
        return dx, -dy * w * paddle.log(p)


@layer(normal(4, 5), normal(4, 5))
class KLDistill(PyLayer):
    @staticmethod
    def forward(ctx, student, teacher, T=2.0):
        ps, pt = F.softmax(student / T), F.softmax(teacher / T)
        ctx.T = T
        ctx.save_for_backward(ps, pt)
        return T * T * (pt * (paddle.log(pt) - paddle.log(ps))).sum(axis=-1).mean()

    @staticmethod
    def backward(ctx, dy):
        ps, pt = ctx.saved_tensor()
        n = ps.shape[0]
        ds = dy * ctx.T * (ps - pt) / n
        r = paddle.log(pt) - paddle.log(ps)
        dt = dy * ctx.T * pt * (r - (pt * r).sum(axis=-1, keepdim=True)) / n
        return ds, dt


@layer(positive(3, 4), positive(3, 4))
def dice_loss(p, t):
    inter = (p * t).sum(axis=1)
    union = p.sum(axis=1) + t.sum(axis=1)
    return (1 - (2 * inter + 1) / (union + 1)).mean()


@layer(normal(4, 3), normal(4, 3), normal(4, 3), margin=0.4)
def triplet(anchor, pos, neg, margin=1.0):
    dp = ((anchor - pos) ** 2).sum(axis=-1)
    dn = ((anchor - neg) ** 2).sum(axis=-1)
    return F.relu(dp - dn + margin).sum()


@layer(normal(5, 4), normal(5, 4))
def info_nce(a, b, temperature=0.2):
    a = a / paddle.norm(a, axis=-1, keepdim=True)
    b = b / paddle.norm(b, axis=-1, keepdim=True)
    logits = a @ b.t() / temperature
    logp = F.log_softmax(logits, axis=-1)
    return -paddle.diagonal(logp).mean()


@layer(normal(4, 6), normal(4, 6))
class CosineLoss(PyLayer):
    @staticmethod
    def forward(ctx, u, v):
        nu = paddle.sqrt((u * u).sum(axis=-1, keepdim=True))
        nv = paddle.sqrt((v * v).sum(axis=-1, keepdim=True))
        cos = (u * v).sum(axis=-1, keepdim=True) / (nu * nv)
        ctx.save_for_backward(u, v, nu, nv, cos)
        return (1 - cos).sum()

    @staticmethod
    def backward(ctx, dy):
        u, v, nu, nv, cos = ctx.saved_tensor()
        du = -dy * (v / (nu * nv) - cos * u / (nu * nu))
        dv = -dy * (u / (nu * nv) - cos * v / (nv * nv))
        return du, dv


# --------------------------------------------------------------------------- recurrences
@layer(normal(3, 4), normal(3, 5), normal(4, 5), normal(5, 5), normal(5))
class ElmanCell(PyLayer):
    @staticmethod
    def forward(ctx, x, h, w, u, b):
        h_new = paddle.tanh(x @ w + h @ u + b)
        ctx.save_for_backward(x, h, w, u, h_new)
        return h_new

    @staticmethod
    def backward(ctx, dh):
        x, h, w, u, h_new = ctx.saved_tensor()
        da = dh * (1 - h_new**2)
        return da @ w.t(), da @ u.t(), x.t() @ da, h.t() @ da, da.sum(axis=0)


@layer(normal(3, 6), normal(3, 2), normal(2, 6))
def gru_cell(gx, h, u):
    gh = h @ u
    rx, zx, nx = paddle.split(gx, 3, axis=-1)
    rh, zh, nh = paddle.split(gh, 3, axis=-1)
    r = F.sigmoid(rx + rh)
    z = F.sigmoid(zx + zh)
    n = paddle.tanh(nx + r * nh)
    return (1 - z) * n + z * h


@layer(normal(4, 8), normal(4, 2))
class LSTMCell(PyLayer):
    @staticmethod
    def forward(ctx, gates, c):
        i, f, g, o = paddle.chunk(gates, 4, axis=-1)
        i, f, o = F.sigmoid(i), F.sigmoid(f), F.sigmoid(o)
        g = paddle.tanh(g)
        c_new = f * c + i * g
        tc = paddle.tanh(c_new)
        ctx.save_for_backward(i, f, g, o, c, tc)
        return o * tc, c_new

    @staticmethod
    def backward(ctx, dh, dc):
        i, f, g, o, c, tc = ctx.saved_tensor()
        dc = dc + dh * o * (1 - tc * tc)
        di = dc * g * i * (1 - i)
        df = dc * c * f * (1 - f)
        dg = dc * i * (1 - g * g)
        do = dh * tc * o * (1 - o)
        return paddle.concat([di, df, dg, do], axis=-1), dc * f


@layer(normal(5, 3))
def moving_average(x, decay=0.9):
    y = x[0]
    ys = [y]
    for t in range(1, x.shape[0]):
        y = decay * y + (1 - decay) * x[t]
        ys.append(y)
    return paddle.stack(ys)


# --------------------------------------------------------------------------- quantisers, masks, indices
@layer(normal(4, 6), positive(6))
def fake_scale(x, scale):
    q = paddle.clip(x / scale, -1.0, 1.0)
    return q * scale


@layer(normal(4, 5), normal(4, 5))
class MaskedMean(PyLayer):
    @staticmethod
    def forward(ctx, x, mask):
        m = (mask > 0).astype(x.dtype)
        count = m.sum(axis=1, keepdim=True) + 1e-6
        ctx.save_for_backward(m, count)
        return (x * m).sum(axis=1, keepdim=True) / count

    @staticmethod
    def backward(ctx, dy):
        m, count = ctx.saved_tensor()
        return dy * m / count, paddle.zeros_like(m)


@layer(normal(6, 3), integers(6, 5))
class Embedding(PyLayer):
    @staticmethod
    def forward(ctx, table, ids):
        ctx.save_for_backward(ids)
        ctx.rows = table.shape[0]
        return paddle.gather(table, ids)

    @staticmethod
    def backward(ctx, dy):
        (ids,) = ctx.saved_tensor()
        return F.one_hot(ids, ctx.rows).astype(dy.dtype).t() @ dy, None


@layer(normal(4, 6))
def top2_gate(x):
    value, _ = paddle.topk(x, 2, axis=-1)
    return F.softmax(value, axis=-1)


@layer(normal(3, 7))
def soft_sort_pool(x):
    ordered = paddle.sort(x, axis=-1)
    return (ordered * ordered).mean(axis=-1)


@layer(normal(2, 3, 8))
def avg_pool_by_hand(x):
    b, c, t = x.shape
    return x.reshape([b, c, t // 2, 2]).mean(axis=-1)


# --------------------------------------------------------------------------- algebra
@layer(normal(3, 4), normal(4, 2), normal(2, 5), alpha=0.5)
class LoRA(PyLayer):
    @staticmethod
    def forward(ctx, x, a, b, alpha=1.0):
        h = x @ a
        ctx.alpha = alpha
        ctx.save_for_backward(x, a, b, h)
        return alpha * (h @ b)

    @staticmethod
    def backward(ctx, dy):
        x, a, b, h = ctx.saved_tensor()
        dh = ctx.alpha * dy @ b.t()
        return dh @ a.t(), x.t() @ dh, ctx.alpha * h.t() @ dy


@layer(normal(4, 3), normal(5, 3))
class PairwiseDistance(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        diff = x.unsqueeze(1) - y.unsqueeze(0)
        ctx.save_for_backward(diff)
        return (diff**2).sum(axis=-1)

    @staticmethod
    def backward(ctx, g):
        (diff,) = ctx.saved_tensor()
        d = 2 * g.unsqueeze(-1) * diff
        return d.sum(axis=1), -d.sum(axis=0)


@layer(normal(2, 4), normal(3, 4, 5), normal(2, 5))
def bilinear(x, w, y):
    return paddle.einsum("bi,kij,bj->bk", x, w, y)


# --------------------------------------------------------------------------- NumPy inside
@layer(normal(4, 5))
class NumpySoftplus(PyLayer):
    @staticmethod
    def forward(ctx, x):
        a = x.numpy()
        y = np.log1p(np.exp(a))
        ctx.save_for_backward(x)
        return paddle.to_tensor(y)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * F.sigmoid(x)


@layer(normal(3, 6), normal(6))
class NumpyNorm(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        a, g = x.numpy(), w.numpy()
        rms = np.sqrt((a * a).mean(-1, keepdims=True) + 1e-6)
        ctx.rms = paddle.to_tensor(rms)
        ctx.save_for_backward(x, w)
        return paddle.to_tensor(a / rms * g)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        g = dy * w
        dx = g / ctx.rms - x * (g * x).mean(axis=-1, keepdim=True) / ctx.rms**3
        return dx, (dy * x / ctx.rms).sum(axis=0)
