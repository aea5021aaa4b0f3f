"""The first draw of slips.py: twenty layers, five mistakes in the backward of each."""

from __future__ import annotations

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle.autograd import PyLayer
from slips_rows import Row, rows_into

ROWS: list[Row] = []
row = rows_into(ROWS)


# --------------------------------------------------------------------------- norms
@row(
    lambda r: [r.standard_normal((3, 6)), r.uniform(0.5, 1.5, 6)],
    ("* wdy", "* wdy * weight", "return|x_hat|rstd"),
    ("x_hat * c1", "x_hat", "x_hat"),
    ("(dy * x_hat).sum(axis=0)", "(dy * x).sum(axis=0)", "return"),
    (".mean(axis=-1, keepdim=True)", ".sum(axis=-1, keepdim=True)", "mean"),
    ("rstd * (wdy", "(wdy", "rstd|x_hat"),
)
class RMSNormFused(PyLayer):
    @staticmethod
    def forward(ctx, x, weight, eps=1e-5):
        rstd = paddle.rsqrt(x.square().mean(axis=-1, keepdim=True) + eps)
        x_hat = x * rstd
        ctx.save_for_backward(x, weight, rstd)
        return x_hat * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensor()
        x_hat = x * rstd
        wdy = dy * weight
        c1 = (x_hat * wdy).mean(axis=-1, keepdim=True)
        dx = rstd * (wdy - x_hat * c1)
        return dx, (dy * x_hat).sum(axis=0)


@row(
    lambda r: [r.standard_normal((4, 5)), r.uniform(0.5, 1.5, 5), r.standard_normal(5)],
    ("- g_hat.mean(axis=-1, keepdim=True)", "", "mu|xc"),
    ("- x_hat * (g_hat * x_hat)", "+ x_hat * (g_hat * x_hat)", "var|std|x_hat"),
    ("g_hat = dy * gamma", "g_hat = dy", "return"),
    ("dy.sum(axis=0)", "dy.mean(axis=0)", "return"),
    ("/ std", "", "x_hat|std|xc"),
)
class LayerNormAffine(PyLayer):
    @staticmethod
    def forward(ctx, x, gamma, beta, epsilon=1e-5):
        mu = x.mean(axis=-1, keepdim=True)
        xc = x - mu
        var = (xc * xc).mean(axis=-1, keepdim=True)
        std = paddle.sqrt(var + epsilon)
        x_hat = xc / std
        ctx.save_for_backward(x_hat, std, gamma)
        return gamma * x_hat + beta

    @staticmethod
    def backward(ctx, dy):
        x_hat, std, gamma = ctx.saved_tensor()
        dgamma = (dy * x_hat).sum(axis=0)
        dbeta = dy.sum(axis=0)
        g_hat = dy * gamma
        dx = (g_hat - g_hat.mean(axis=-1, keepdim=True) - x_hat * (g_hat * x_hat).mean(axis=-1, keepdim=True)) / std
        return dx, dgamma, dbeta


@row(
    lambda r: [r.standard_normal((4, 6)), r.uniform(0.5, 2.0, 4)],
    ("g / norm.unsqueeze(-1)", "1 / norm.unsqueeze(-1)", "return|direction"),
    ("- direction * inner", "- v * inner", "direction|norm"),
    ("dg = (dw * direction).sum(axis=-1)", "dg = (dw * v).sum(axis=-1)", "return|direction"),
    ("inner = (dw * direction).sum(axis=-1, keepdim=True)", "inner = dw.sum(axis=-1, keepdim=True)", "direction|norm"),
    ("(dw - direction", "(dw + direction", "direction|norm"),
)
class WeightNorm(PyLayer):
    @staticmethod
    def forward(ctx, v, g):
        norm = paddle.sqrt((v * v).sum(axis=-1))
        direction = v / norm.unsqueeze(-1)
        ctx.save_for_backward(v, g, norm)
        return direction * g.unsqueeze(-1)

    @staticmethod
    def backward(ctx, dw):
        v, g, norm = ctx.saved_tensor()
        g = g.unsqueeze(-1)
        direction = v / norm.unsqueeze(-1)
        inner = (dw * direction).sum(axis=-1, keepdim=True)
        dv = g / norm.unsqueeze(-1) * (dw - direction * inner)
        dg = (dw * direction).sum(axis=-1)
        return dv, dg


# --------------------------------------------------------------------------- attention
@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3)), r.standard_normal((4, 5))],
    ("dp = do @ v.t()", "dp = do @ v.t() * scale", "return|p = |scores"),
    ("p * (dp - (p * dp).sum(axis=-1, keepdim=True))", "p * (dp - dp.sum(axis=-1, keepdim=True))", "softmax"),
    ("dk = ds.t() @ q * scale", "dk = ds @ q * scale", "scores"),
    ("dq = ds @ k * scale", "dq = ds @ k", "scores"),
    ("dv = p.t() @ do", "dv = p @ do", "return"),
)
class ScaledAttention(PyLayer):
    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        scores = q @ k.t() * scale
        p = F.softmax(scores, axis=-1)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return p @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensor()
        scale = ctx.scale
        dv = p.t() @ do
        dp = do @ v.t()
        ds = p * (dp - (p * dp).sum(axis=-1, keepdim=True))
        dq = ds @ k * scale
        dk = ds.t() @ q * scale
        return dq, dk, dv


@row(
    lambda r: [r.standard_normal((3, 8)), r.uniform(0, 6, (3, 4))],
    ("d1 * cos + d2 * sin", "d1 * cos - d2 * sin", "right = "),
    ("d2 * cos - d1 * sin", "d2 * cos + d1 * sin", "left = "),
    ("paddle.concat([dx1, dx2], axis=-1)", "paddle.concat([dx2, dx1], axis=-1)", "x1, x2|split|left|right|concat"),
    ("d1, d2 = paddle.split(dy, 2, axis=-1)", "d2, d1 = paddle.split(dy, 2, axis=-1)", "concat|left|right"),
    ("d2 * (x1 * cos - x2 * sin)", "d2 * (x1 * cos + x2 * sin)", "right|sin"),
)
class RotaryHalf(PyLayer):
    @staticmethod
    def forward(ctx, x, theta):
        cos, sin = paddle.cos(theta), paddle.sin(theta)
        x1, x2 = paddle.split(x, 2, axis=-1)
        left = x1 * cos - x2 * sin
        right = x2 * cos + x1 * sin
        ctx.save_for_backward(x, cos, sin)
        return paddle.concat([left, right], axis=-1)

    @staticmethod
    def backward(ctx, dy):
        x, cos, sin = ctx.saved_tensor()
        x1, x2 = paddle.split(x, 2, axis=-1)
        d1, d2 = paddle.split(dy, 2, axis=-1)
        dx1 = d1 * cos + d2 * sin
        dx2 = d2 * cos - d1 * sin
        dtheta = d2 * (x1 * cos - x2 * sin) - d1 * (x1 * sin + x2 * cos)
        return paddle.concat([dx1, dx2], axis=-1), dtheta


@row(
    lambda r: [r.standard_normal((2, 4, 3)), r.standard_normal((2, 4, 3)), r.standard_normal((2, 4, 2))],
    ("dk_f = v @ ds.transpose([0, 2, 1])", "dk_f = v @ ds.transpose([0, 2, 1]) * 2", "state|kf"),
    ("elu_grad(q)", "1", "qf"),
    ("dv = kf @ ds", "dv = kf @ ds * kf.sum(axis=-1, keepdim=True)", "state|return"),
    ("ds = qf.transpose([0, 2, 1]) @ dy", "ds = kf.transpose([0, 2, 1]) @ dy", "return|state"),
    (
        "paddle.where(t > 0, paddle.ones_like(t), paddle.exp(t))",
        "paddle.where(t > 0, paddle.ones_like(t), t)",
        "qf|kf|elu",
    ),
)
class LinearAttentionElu(PyLayer):
    @staticmethod
    def forward(ctx, q, k, v):
        qf = F.elu(q) + 1
        kf = F.elu(k) + 1
        state = kf.transpose([0, 2, 1]) @ v
        ctx.save_for_backward(q, k, v, qf, kf, state)
        return qf @ state

    @staticmethod
    def backward(ctx, dy):
        q, k, v, qf, kf, state = ctx.saved_tensor()

        def elu_grad(t):
            return paddle.where(t > 0, paddle.ones_like(t), paddle.exp(t))

        dq_f = dy @ state.transpose([0, 2, 1])
        ds = qf.transpose([0, 2, 1]) @ dy
        dk_f = v @ ds.transpose([0, 2, 1])
        dv = kf @ ds
        return dq_f * elu_grad(q), dk_f * elu_grad(k), dv


# --------------------------------------------------------------------------- losses
@row(
    lambda r: [r.standard_normal((5, 4)), paddle.to_tensor(r.integers(0, 4, 5))],
    ("/ logits.shape[0]", "", "mean"),
    ("target = onehot * (1 - ctx.smoothing) + ctx.smoothing / classes", "target = onehot", "target|return|loss"),
    ("p - target", "p - onehot", "target|return|loss"),
    ("p = F.softmax(logits, axis=-1)", "p = F.softmax(logits, axis=0)", "log_softmax"),
    ("dloss * (p - target)", "(p - target)", "return|loss|mean"),
)
class SmoothedCrossEntropy(PyLayer):
    @staticmethod
    def forward(ctx, logits, label, smoothing=0.1):
        classes = logits.shape[-1]
        logp = F.log_softmax(logits, axis=-1)
        target = F.one_hot(label, classes).astype(logits.dtype) * (1 - smoothing) + smoothing / classes
        ctx.smoothing = smoothing
        ctx.save_for_backward(logits, label)
        return -(target * logp).sum(axis=-1).mean()

    @staticmethod
    def backward(ctx, dloss):
        logits, label = ctx.saved_tensor()
        classes = logits.shape[-1]
        onehot = F.one_hot(label, classes).astype(logits.dtype)
        target = onehot * (1 - ctx.smoothing) + ctx.smoothing / classes
        p = F.softmax(logits, axis=-1)
        return dloss * (p - target) / logits.shape[0]


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3)), r.standard_normal((4, 3))],
    ("2 * (a - p)", "(a - p)", "dp"),
    ("- 2 * (a - n)", "+ 2 * (a - n)", "dn"),
    ("active * 2 * (a - n)", "2 * (a - n)", "relu|violation"),
    ("da = g * active * (2 * (a - p) - 2 * (a - n))", "da = g * active * (2 * (a - p))", "dn"),
    ("dpos = -g", "dpos = g", "dp"),
)
class TripletLoss(PyLayer):
    @staticmethod
    def forward(ctx, a, p, n, margin=0.5):
        dp = ((a - p) ** 2).sum(axis=-1, keepdim=True)
        dn = ((a - n) ** 2).sum(axis=-1, keepdim=True)
        violation = dp - dn + margin
        ctx.save_for_backward(a, p, n, violation)
        return F.relu(violation)

    @staticmethod
    def backward(ctx, g):
        a, p, n, violation = ctx.saved_tensor()
        active = (violation > 0).astype(a.dtype)
        da = g * active * (2 * (a - p) - 2 * (a - n))
        dpos = -g * active * 2 * (a - p)
        dneg = g * active * 2 * (a - n)
        return da, dpos, dneg


@row(
    lambda r: [r.standard_normal((6,)), paddle.to_tensor(np.array([0, 1, 0, 1, 1, 0]))],
    ("alpha * y * (1 - p) ** gamma", "y * (1 - p) ** gamma", "pos"),
    ("gamma * p * logp - (1 - p)", "gamma * logp - (1 - p)", "pos"),
    ("(1 - alpha) * (1 - y) * p**gamma", "(1 - alpha) * (1 - y) * p", "neg"),
    ("p - gamma * (1 - p) * logq", "p + gamma * (1 - p) * logq", "neg"),
    ("(dpos + dneg) * dy", "(dpos - dneg) * dy", "return|neg = "),
)
class FocalBinary(PyLayer):
    @staticmethod
    def forward(ctx, x, y, alpha=0.25, gamma=2.0):
        p = F.sigmoid(x)
        y = y.astype(x.dtype)
        pos = -alpha * y * (1 - p) ** gamma * paddle.log(p)
        neg = -(1 - alpha) * (1 - y) * p**gamma * paddle.log(1 - p)
        ctx.alpha, ctx.gamma = alpha, gamma
        ctx.save_for_backward(p, y)
        return pos + neg

    @staticmethod
    def backward(ctx, dy):
        p, y = ctx.saved_tensor()
        alpha, gamma = ctx.alpha, ctx.gamma
        logp, logq = paddle.log(p), paddle.log(1 - p)
        dpos = alpha * y * (1 - p) ** gamma * (gamma * p * logp - (1 - p))
        dneg = (1 - alpha) * (1 - y) * p**gamma * (p - gamma * (1 - p) * logq)
        return (dpos + dneg) * dy, None


@row(
    lambda r: [r.standard_normal((4, 5)), r.standard_normal((4, 5))],
    ("p * (logp - logq - kl)", "p * (logp - logq)", "kl|return|p = |logp"),
    ("q - p", "p - q", "logq|kl"),
    ("dq = g * (q - p)", "dq = (q - p)", "logq|kl"),
    ("p = paddle.exp(logp)", "p = logp", "p = "),
    ("dp = g * p", "dp = g * q", "p = |kl|logp"),
)
class KLDivergence(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        logp = F.log_softmax(a, axis=-1)
        logq = F.log_softmax(b, axis=-1)
        p = paddle.exp(logp)
        kl = (p * (logp - logq)).sum(axis=-1, keepdim=True)
        ctx.save_for_backward(logp, logq, kl)
        return kl

    @staticmethod
    def backward(ctx, g):
        logp, logq, kl = ctx.saved_tensor()
        p = paddle.exp(logp)
        q = paddle.exp(logq)
        dp = g * p * (logp - logq - kl)
        dq = g * (q - p)
        return dp, dq


# --------------------------------------------------------------------------- recurrences
@row(
    lambda r: [r.standard_normal((5, 3)), r.uniform(0.3, 0.9, 3)],
    ("a * carry + dy[t]", "carry + dy[t]", "h = "),
    ("da = da + carry * hs[t - 1]", "da = da + carry * hs[t]", "h = "),
    ("if t > 0:", "if t > 1:", "h = "),
    ("dx.append(carry)", "dx.append(carry * a)", "h = "),
    ("dx[::-1]", "dx", "h = |stack"),
)
class DecayScan(PyLayer):
    @staticmethod
    def forward(ctx, x, a):
        h = x[0]
        hs = [h]
        for t in range(1, x.shape[0]):
            h = a * h + x[t]
            hs.append(h)
        out = paddle.stack(hs)
        ctx.save_for_backward(a, out)
        return out

    @staticmethod
    def backward(ctx, dy):
        a, hs = ctx.saved_tensor()
        carry = paddle.zeros_like(dy[0])
        da = paddle.zeros_like(a)
        dx = []
        for t in reversed(range(dy.shape[0])):
            carry = a * carry + dy[t]
            dx.append(carry)
            if t > 0:
                da = da + carry * hs[t - 1]
        return paddle.stack(dx[::-1]), da


@row(
    lambda r: [
        r.standard_normal((2, 3)),
        r.standard_normal((2, 4)),
        r.standard_normal((3, 4)),
        r.standard_normal((4, 4)),
    ],
    ("dpre = dy * (1 - h * h)", "dpre = dy * (1 - h)", "tanh"),
    ("x.t() @ dpre", "x.t() @ dy", "pre|tanh"),
    ("state.t() @ dpre", "h.t() @ dpre", "pre"),
    ("dpre @ u.t()", "dpre @ u", "pre"),
    ("dx = dpre @ w.t()", "dx = dy @ w.t()", "pre|tanh"),
)
class ElmanCell(PyLayer):
    @staticmethod
    def forward(ctx, x, state, w, u):
        pre = x @ w + state @ u
        h = paddle.tanh(pre)
        ctx.save_for_backward(x, state, w, u, h)
        return h

    @staticmethod
    def backward(ctx, dy):
        x, state, w, u, h = ctx.saved_tensor()
        dpre = dy * (1 - h * h)
        dx = dpre @ w.t()
        dstate = dpre @ u.t()
        dw = x.t() @ dpre
        du = state.t() @ dpre
        return dx, dstate, dw, du


# --------------------------------------------------------------------------- NumPy inside
@row(
    lambda r: [r.standard_normal((3, 4)), r.standard_normal((4, 2)), r.standard_normal(2)],
    ("g * s * (1 - s)", "g * s * (1 + s)", "s = "),
    ("dz @ w.T", "dz @ w.T * 2", "z = "),
    ("dz.sum(axis=0)", "dz.sum(axis=1)[:2]", "z = "),
    ("x.T @ dz", "x.T @ g", "z = |s = "),
    ("g * s * (1 - s)", "g * (1 - s)", "s = "),
)
class DenseSigmoidNumpy(PyLayer):
    @staticmethod
    def forward(ctx, x, w, b):
        x, w, b = x.numpy(), w.numpy(), b.numpy()
        z = x @ w + b
        s = 1 / (1 + np.exp(-z))
        ctx.cache = x, w, s
        return paddle.to_tensor(s)

    @staticmethod
    def backward(ctx, grad):
        x, w, s = ctx.cache
        g = grad.numpy()
        dz = g * s * (1 - s)
        dx = dz @ w.T
        dw = x.T @ dz
        db = dz.sum(axis=0)
        return paddle.to_tensor(dx), paddle.to_tensor(dw), paddle.to_tensor(db)


@row(
    lambda r: [r.standard_normal((4, 3)), r.standard_normal((4, 3))],
    ("b / (na * nb)", "b / na", "cos = |dot|na|nb"),
    ("- cos * a / na**2", "- cos * a / na", "na|cos"),
    ("- cos * b / nb**2", "", "nb|cos"),
    ("db = g * (a", "db = g * (b", "dot|cos"),
    ("g = grad.numpy()[:, None]", "g = grad.numpy()[:1, None]", "cos|dot"),
)
class CosineNumpy(PyLayer):
    @staticmethod
    def forward(ctx, a, b):
        a, b = a.numpy(), b.numpy()
        dot = (a * b).sum(axis=1, keepdims=True)
        na = np.sqrt((a * a).sum(axis=1, keepdims=True))
        nb = np.sqrt((b * b).sum(axis=1, keepdims=True))
        cos = dot / (na * nb)
        ctx.cache = a, b, na, nb, cos
        return paddle.to_tensor(cos[:, 0])

    @staticmethod
    def backward(ctx, grad):
        a, b, na, nb, cos = ctx.cache
        g = grad.numpy()[:, None]
        da = g * (b / (na * nb) - cos * a / na**2)
        db = g * (a / (na * nb) - cos * b / nb**2)
        return paddle.to_tensor(da), paddle.to_tensor(db)


# --------------------------------------------------------------------------- two outputs, gates
@row(
    lambda r: [r.standard_normal((6, 3))],
    ("dmean / n", "dmean", "mean"),
    ("2 * xc * dvar / n", "xc * dvar / n", "var"),
    ("2 * xc * dvar / n", "2 * xc * dvar / (n - 1)", "var|xc = "),
    ("dmean / n + 2", "dmean / n - 2", "var|mean"),
    ("xc = x - mean", "xc = x", "var|xc"),
)
class MeanVar(PyLayer):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(axis=0)
        xc = x - mean
        var = (xc * xc).mean(axis=0)
        ctx.save_for_backward(x, mean)
        return mean, var

    @staticmethod
    def backward(ctx, dmean, dvar):
        x, mean = ctx.saved_tensor()
        n = x.shape[0]
        xc = x - mean
        return dmean / n + 2 * xc * dvar / n


@row(
    lambda r: [r.standard_normal((3, 4)), r.standard_normal((3, 4))],
    (
        "dgate = dh * up * sig * (1 + gate * (1 - sig))",
        "dgate = dh * up * sig * (1 - gate * (1 - sig))",
        "sig|act|gate",
    ),
    ("dup = dh * gate * sig", "dup = dh * sig", "return|act"),
    ("sig * (1 + gate * (1 - sig))", "sig * (1 + gate)", "sig|act"),
    ("dh * up * sig", "dh * sig", "return|act"),
    ("return dgate, dup", "return dup, dgate", "return"),
)
class SwiGLU(PyLayer):
    @staticmethod
    def forward(ctx, gate, up):
        sig = F.sigmoid(gate)
        act = gate * sig
        ctx.save_for_backward(gate, up, sig)
        return act * up

    @staticmethod
    def backward(ctx, dh):
        gate, up, sig = ctx.saved_tensor()
        dgate = dh * up * sig * (1 + gate * (1 - sig))
        dup = dh * gate * sig
        return dgate, dup


# --------------------------------------------------------------------------- quantisers
@row(
    lambda r: [3 * r.standard_normal((4, 5)), np.array([2.0])],
    ("inside * g", "g", "minimum|clip"),
    ("(above * g).sum()", "(above * g).mean()", "minimum|clip|upper"),
    ("- (below * g).sum()", "+ (below * g).sum()", "minimum|clip|minus|neg"),
    ("(x < -bound)", "(x < bound)", "minimum|clip|maximum|minimum"),
    ("inside = (paddle.abs(x) <= bound)", "inside = (x <= bound)", "minimum|clip|maximum|minimum"),
)
class LearnedClip(PyLayer):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.save_for_backward(x, bound)
        return paddle.minimum(paddle.maximum(x, -bound), bound)

    @staticmethod
    def backward(ctx, g):
        x, bound = ctx.saved_tensor()
        above = (x > bound).astype(x.dtype)
        below = (x < -bound).astype(x.dtype)
        inside = (paddle.abs(x) <= bound).astype(x.dtype)
        dx = inside * g
        dbound = (above * g).sum() - (below * g).sum()
        return dx, dbound.reshape([1])


@row(
    lambda r: [r.standard_normal((4, 3)), r.uniform(0.5, 2.0, 3)],
    ("dy * scale", "dy / scale", "return|shrunk"),
    ("(dy * shrunk).sum(axis=0)", "(dy * x).sum(axis=0)", "return|shrunk"),
    ("(x.abs() > ctx.lam)", "(x > ctx.lam)", "shrunk|relu|sign"),
    ("mask * dy * scale", "dy * scale", "shrunk|relu"),
    ("ctx.lam * paddle.sign(x)", "ctx.lam", "shrunk|return|sign"),
)
class SoftShrinkScale(PyLayer):
    @staticmethod
    def forward(ctx, x, scale, lam=0.4):
        shrunk = paddle.sign(x) * F.relu(paddle.abs(x) - lam)
        ctx.lam = lam
        ctx.save_for_backward(x, scale)
        return shrunk * scale

    @staticmethod
    def backward(ctx, dy):
        x, scale = ctx.saved_tensor()
        mask = (x.abs() > ctx.lam).astype(x.dtype)
        shrunk = mask * (x - ctx.lam * paddle.sign(x))
        dscale = (dy * shrunk).sum(axis=0)
        return mask * dy * scale, dscale


# --------------------------------------------------------------------------- products, keywords
@row(
    lambda r: [
        r.standard_normal((3, 6)),
        r.standard_normal((6, 5)),
        r.standard_normal((6, 2)),
        r.standard_normal((2, 5)),
    ],
    ("ctx.scaling * xa.t() @ dy", "xa.t() @ dy", "return|xa"),
    ("x.t() @ dxa", "x.t() @ dy @ b.t()", "xa|return"),
    ("dy @ w.t() + dxa @ a.t()", "dy @ w.t()", "xa"),
    ("dxa = ctx.scaling * dy @ b.t()", "dxa = dy @ b.t()", "return|xa"),
    ("+ dxa @ a.t()", "- dxa @ a.t()", "xa"),
)
class LoRALinear(PyLayer):
    @staticmethod
    def forward(ctx, x, w, a, b, scaling=0.5):
        xa = x @ a
        ctx.scaling = scaling
        ctx.save_for_backward(x, w, a, b, xa)
        return x @ w + scaling * (xa @ b)

    @staticmethod
    def backward(ctx, dy):
        x, w, a, b, xa = ctx.saved_tensor()
        dxa = ctx.scaling * dy @ b.t()
        dx = dy @ w.t() + dxa @ a.t()
        dw = x.t() @ dy
        da = x.t() @ dxa
        db = ctx.scaling * xa.t() @ dy
        return dx, dw, da, db


@row(
    lambda r: [r.standard_normal((5, 4)), paddle.to_tensor(np.array([0, 2, 1, 2, 0]))],
    ("dout[index]", "dout[index] * 2", "gather|scatter|matmul|return|onehot"),
    ("/ count[index].unsqueeze(-1)", "", "count|return|total"),
    ("count[index].unsqueeze(-1)", "count.sum()", "count|return|total"),
    ("dout[index]", "dout[index - 1]", "gather|total|onehot|return"),
    ("dout[index] / count[index].unsqueeze(-1)", "dout[index] / count[index].unsqueeze(-1) ** 2", "count|return|total"),
)
class SegmentMean(PyLayer):
    @staticmethod
    def forward(ctx, x, index):
        onehot = F.one_hot(index, 3).astype(x.dtype)
        count = onehot.sum(axis=0)
        total = onehot.t() @ x
        ctx.save_for_backward(index, count)
        return total / count.unsqueeze(-1)

    @staticmethod
    def backward(ctx, dout):
        index, count = ctx.saved_tensor()
        return dout[index] / count[index].unsqueeze(-1), None


@row(
    lambda r: [r.standard_normal((2, 3, 8)), r.standard_normal((3, 3))],
    ("w[:, j : j + 1]", "w[:, 2 - j : 3 - j]", "y = "),
    ("x[:, :, : length - j]", "x[:, :, j:]", "y = "),
    (".sum(axis=[0, 2])", ".mean(axis=[0, 2])", "y = "),
    ("F.pad(part * w[:, j : j + 1], [0, j])", "F.pad(part * w[:, j : j + 1], [j, 0])", "y = "),
    ("part = dy[:, :, j:]", "part = dy[:, :, : length - j]", "y = "),
)
class CausalTaps(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        length = x.shape[2]
        y = paddle.zeros_like(x)
        for j in range(3):
            y = y + F.pad(x[:, :, : length - j], [j, 0]) * w[:, j : j + 1]
        ctx.save_for_backward(x, w)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensor()
        length = x.shape[2]
        dx = paddle.zeros_like(x)
        dw = []
        for j in range(3):
            part = dy[:, :, j:]
            dx = dx + F.pad(part * w[:, j : j + 1], [0, j])
            dw.append((part * x[:, :, : length - j]).sum(axis=[0, 2]))
        return dx, paddle.stack(dw, axis=1)
