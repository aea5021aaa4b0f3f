"""Losses."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class CrossEntropy(PyLayer):
    @staticmethod
    def forward(ctx, x, label):
        z = x - x.max(-1, keepdim=True)
        lse = paddle.log(paddle.exp(z).sum(-1, keepdim=True))
        logp = z - lse
        nll = -paddle.take_along_axis(logp, label.unsqueeze(-1), -1)
        ctx.save_for_backward(logp, label)
        return nll.mean()

    @staticmethod
    def backward(ctx, g):
        logp, label = ctx.saved_tensor()
        n, classes = logp.shape
        p = paddle.exp(logp)
        hot = F.one_hot(label, classes).astype(p.dtype)
        return (p - hot) * g / n, None


CROSS_ENTROPY = Case(
    CrossEntropy,
    lambda r: [r.standard_normal((6, 5)), r.integers(0, 5, 6)],
    (
        mistake("mean over the batch forgotten", " * g / n", " * g", "return nll logp z"),
        mistake("mean over all entries", "* g / n", "* g / (n * classes)", "return nll logp z"),
        # In the next three the maximum's share, 0 in the right backward, is missing as well: its line is true too.
        mistake("the normaliser is a constant", "(p - hot)", "-hot", "lse logp z"),
        mistake("the label's own logit is a constant", "(p - hot)", "p", "logp z"),
        mistake("mean for sum in the normaliser", "(p - hot)", "(p / classes - hot)", "lse logp z"),
        mistake("sign", "(p - hot)", "(hot - p)", "return nll logp z"),
    ),
)


class LabelSmoothing(PyLayer):
    @staticmethod
    def forward(ctx, x, label):
        logp = F.log_softmax(x, axis=-1)
        hot = F.one_hot(label, x.shape[-1]).astype(x.dtype)
        hit = (logp * hot).sum(-1)
        even = logp.mean(-1)
        loss = -(0.9 * hit + 0.1 * even)
        ctx.save_for_backward(logp, hot)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        logp, hot = ctx.saved_tensor()
        n, classes = logp.shape
        u = -(0.9 * hot + 0.1 / classes) * g / n
        gx = u - paddle.exp(logp) * u.sum(-1, keepdim=True)
        return gx, None


LABEL_SMOOTHING = Case(
    LabelSmoothing,
    lambda r: [r.standard_normal((6, 5)), r.integers(0, 5, 6)],
    (
        mistake("sum for mean over the classes", "0.1 / classes", "0.1", "even loss"),
        mistake("smoothing forgotten", "(0.9 * hot + 0.1 / classes)", "(0.9 * hot)", "even loss"),
        mistake("sign of the smoothing", "+ 0.1 / classes", "- 0.1 / classes", "even loss"),
        mistake("softmax without its row sum", " - paddle.exp(logp) * u.sum(-1, keepdim=True)", "", "logp"),
        mistake("own output forgotten", "paddle.exp(logp) * u.sum", "u.sum", "logp"),
        mistake("mean for sum in the softmax", "u.sum(-1", "u.mean(-1", "logp"),
        mistake("mean over the batch forgotten", "* g / n", "* g", "return loss logp"),
    ),
)


class FocalLoss(PyLayer):
    @staticmethod
    def forward(ctx, x, hit):
        p = F.sigmoid(x)
        pt = paddle.where(hit, p, 1 - p)
        w = (1 - pt) ** 2
        loss = -w * paddle.log(pt)
        ctx.save_for_backward(hit, p, pt, w)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        hit, p, pt, w = ctx.saved_tensor()
        gl = g / p.shape[0]
        gw = -gl * paddle.log(pt)
        gpt = -gl * w / pt - gw * 2 * (1 - pt)
        gp = paddle.where(hit, gpt, -gpt)
        return gp * p * (1 - p), None


FOCAL = Case(
    FocalLoss,
    lambda r: [r.standard_normal(12), r.random(12) < 0.5],
    (
        mistake("the weight is a constant", " - gw * 2 * (1 - pt)", "", "w loss"),
        mistake("sign of the weight's share", "- gw * 2", "+ gw * 2", "w loss"),
        mistake("2 of the square forgotten", "- gw * 2 *", "- gw *", "w loss"),
        mistake("one branch ignored", "paddle.where(hit, gpt, -gpt)", "gpt", "pt"),
        mistake("the other branch is zero", "(hit, gpt, -gpt)", "(hit, gpt, paddle.zeros_like(gpt))", "pt"),
        mistake("1/x of the logarithm forgotten", "-gl * w / pt", "-gl * w", "loss"),
        mistake("own output forgotten", "gp * p * (1 - p)", "gp * (1 - p)", "p"),
        mistake("mean forgotten", "gl = g / p.shape[0]", "gl = g", "return loss pt p"),
    ),
)


class Huber(PyLayer):
    @staticmethod
    def forward(ctx, p, t):
        d = p - t
        a = paddle.abs(d)
        square = 0.5 * d * d
        linear = 0.7 * (a - 0.35)
        loss = paddle.where(a <= 0.7, square, linear)
        ctx.save_for_backward(d, a)
        return loss.mean()

    @staticmethod
    def backward(ctx, g):
        d, a = ctx.saved_tensor()
        outer = 0.7 * paddle.sign(d)
        gd = paddle.where(a <= 0.7, d, outer) * g / d.size
        return gd, -gd


HUBER = Case(
    Huber,
    lambda r: [r.standard_normal((4, 5)), r.standard_normal((4, 5))],
    (
        mistake("one branch ignored", "d, outer)", "d, paddle.zeros_like(d))", "a linear loss"),
        mistake("slope of the linear branch forgotten", "0.7 * paddle", "paddle", "linear a loss"),
        mistake("sign forgotten", "0.7 * paddle.sign(d)", "paddle.full_like(d, 0.7)", "a"),
        mistake("square on one side twice", "a <= 0.7, d, outer", "a <= 0.7, 2 * d, outer", "square loss"),
        mistake("sign of the target", "-gd", "gd", "d"),
        mistake("mean forgotten", " * g / d.size", " * g", "return loss d"),
        mistake("mean over the batch alone", "/ d.size", "/ d.shape[0]", "return loss d"),
    ),
)


class WeightedMSE(PyLayer):
    @staticmethod
    def forward(ctx, pred, target, w):
        d = pred - target
        e = d * d
        num = (w * e).sum()
        den = w.sum()
        loss = num / den
        ctx.save_for_backward(d, e, w, den, loss)
        return loss

    @staticmethod
    def backward(ctx, g):
        d, e, w, den, loss = ctx.saved_tensor()
        gn = g / den
        gden = -g * loss / den
        gd = gn * w * 2 * d
        gw = gn * e + gden
        return gd, -gd, gw


WEIGHTED_MSE = Case(
    WeightedMSE,
    lambda r: [r.standard_normal((4, 5)), r.standard_normal((4, 5)), 0.5 + r.random((4, 5))],
    (
        mistake("2 of the square forgotten", "w * 2 * d", "w * d", "e num d"),
        mistake("the denominator is a constant", "gn * e + gden", "gn * e", "den loss"),
        mistake("sign of the denominator's share", "gden = -g", "gden = g", "den loss"),
        mistake("weights forgotten", "gn * w * 2", "gn * 2", "num"),
        mistake("sign of the target", "-gd, gw", "gd, gw", "d"),
        mistake("d for d²", "gn * e + gden", "gn * d + gden", "num"),
        mistake("denominator forgotten", "gn = g / den", "gn = g", "loss num"),
    ),
)


class WeightedBCE(PyLayer):
    @staticmethod
    def forward(ctx, x, y, c):
        p = F.sigmoid(x)
        pos = c * y * paddle.log(p)
        neg = (1 - y) * paddle.log(1 - p)
        loss = -(pos + neg)
        ctx.save_for_backward(y, c, p)
        return loss.mean(0)

    @staticmethod
    def backward(ctx, g):
        y, c, p = ctx.saved_tensor()
        u = -g / p.shape[0]
        gp = u * (c * y / p - (1 - y) / (1 - p))
        gx = gp * p * (1 - p)
        gy = u * (c * paddle.log(p) - paddle.log(1 - p))
        gc = (u * y * paddle.log(p)).sum(0)
        return gx, gy, gc


WEIGHTED_BCE = Case(
    WeightedBCE,
    lambda r: [r.standard_normal((5, 5)), r.random((5, 5)), 0.5 + r.random(5)],
    (
        mistake("class weight forgotten", "c * y / p", "y / p", "pos"),
        mistake("the negative's share missing", " - (1 - y) / (1 - p)", "", "neg"),
        mistake("sign of the negative's share", "y / p - (1", "y / p + (1", "neg"),
        mistake("sum over the wrong axis", "paddle.log(p)).sum(0)", "paddle.log(p)).sum(1)", "pos", whole="GC106"),
        mistake("mean for sum over the batch", "paddle.log(p)).sum(0)", "paddle.log(p)).mean(0)", "pos"),
        mistake("own output forgotten", "gp * p * (1 - p)", "gp * (1 - p)", "p"),
        mistake("the target's share in 1 − y missing", " - paddle.log(1 - p))", ")", "neg"),
        mistake("mean forgotten", "u = -g / p.shape[0]", "u = -g", "return loss"),
    ),
)

CASES = [CROSS_ENTROPY, LABEL_SMOOTHING, FOCAL, HUBER, WEIGHTED_MSE, WEIGHTED_BCE]
