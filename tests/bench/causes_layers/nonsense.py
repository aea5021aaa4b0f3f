"""Backwards that are no derivative with a mistake, but smooth functions of what was saved: nothing explains them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pylayer.paddle as paddle
from pylayer.paddle.autograd import PyLayer

from .cases import Case


class ScalarChain(PyLayer):
    @staticmethod
    def forward(ctx, x):
        a = paddle.tanh(x)
        b = a * x + 0.5
        c = paddle.exp(-b)
        ctx.save_for_backward(x, a, c)
        return c * a

    @staticmethod
    def backward(ctx, g):
        x, a, c = ctx.saved_tensor()
        gb = -g * a * c
        ga = g * c + gb * x
        return ga * (1 - a * a) + gb * a


class ScalarPair(PyLayer):
    @staticmethod
    def forward(ctx, x, y):
        d = x - y
        q = paddle.sqrt(1 + d * d)
        r = x / q
        ctx.save_for_backward(d, q, r)
        return r * y, q

    @staticmethod
    def backward(ctx, g, gq):
        d, q, r = ctx.saved_tensor()
        x = r * q
        y = x - d
        gr = g * y
        gd = (gq - gr * r / q) * d / q
        return gr / q + gd, g * r - gd


class ScalarLoss(PyLayer):
    @staticmethod
    def forward(ctx, x):
        m = x.mean()
        q = ((x - m) ** 2).sum()
        loss = paddle.log(1 + q)
        ctx.save_for_backward(x, m, q)
        return loss

    @staticmethod
    def backward(ctx, g):
        x, m, q = ctx.saved_tensor()
        return 2 * g * (x - m) / (1 + q)


SCALARS = [
    Case(ScalarChain, lambda r: [np.asarray(r.standard_normal())], ()),
    Case(ScalarChain, lambda r: [r.standard_normal(1)], ()),
    Case(ScalarPair, lambda r: [np.asarray(r.standard_normal()), np.asarray(r.standard_normal())], ()),
    Case(ScalarLoss, lambda r: [r.standard_normal(3)], ()),
]


def nonsense(case: Case, arrays: Sequence[Any], seed: int) -> type:
    """The layer with a backward that is nonsense, linear in the cotangent: one of three kinds, by the seed.

    Each gradient is, of random numbers A: A · (a weighted sum of the cotangent) · sin(what was saved); or the cotangent
    times sin(a saved Tensor), where shapes allow; or the right gradient times 1 + A/2, entry by entry.
    """
    random = np.random.default_rng(seed)
    kind = seed % 3
    numbers = [random.uniform(0.2, 1.0, np.shape(a)) * random.choice([-1, 1], np.shape(a)) for a in arrays]
    phases = random.uniform(0.3, 1.2, len(arrays))

    def backward(ctx: Any, *cotangents: Any) -> Any:
        saved = [t for t in ctx.saved_tensor() if t.is_floating_point()]
        level = sum(paddle.sin(1.7 * t).mean() for t in saved)
        total = sum((g * paddle.cos(paddle.arange(g.size, dtype=g.dtype).reshape(g.shape))).sum() for g in cotangents)
        right = case.layer.backward(ctx, *cotangents)
        found = []
        for array, number, phase, exact in zip(
            arrays, numbers, phases, right if isinstance(right, tuple) else (right,), strict=True
        ):
            if np.asarray(array).dtype.kind != "f":
                found.append(None)
                continue
            factor = paddle.to_tensor(number.astype(np.asarray(array).dtype))
            alike = [t for t in saved if tuple(t.shape) == np.shape(array)]
            same = [g for g in cotangents if tuple(g.shape) == np.shape(array)]
            if kind == 2:
                found.append(exact * (1 + 0.5 * factor))
            elif kind == 1 and alike and same:
                found.append(same[0] * paddle.sin(1.3 * alike[0] + phase))
            else:
                found.append(factor * total * paddle.sin(level + phase))
        return tuple(found) if len(found) > 1 else found[0]

    return type(case.name, (case.layer,), {"backward": staticmethod(backward)})
