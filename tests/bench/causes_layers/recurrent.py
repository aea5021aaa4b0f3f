"""Recurrent cells."""

from __future__ import annotations

import pylayer.paddle as paddle
import pylayer.paddle.nn.functional as F  # noqa: N812
from pylayer.paddle.autograd import PyLayer

from .cases import Case, mistake


class LSTMCell(PyLayer):
    @staticmethod
    def forward(ctx, x, h, c, W, U, b):
        z = paddle.matmul(x, W) + paddle.matmul(h, U) + b
        zi, zf, zo, zg = paddle.split(z, 4, axis=-1)
        i = F.sigmoid(zi)
        f = F.sigmoid(zf)
        o = F.sigmoid(zo)
        g = paddle.tanh(zg)
        c2 = f * c + i * g
        t = paddle.tanh(c2)
        ctx.save_for_backward(x, h, c, W, U, i, f, o, g, t)
        return o * t, c2

    @staticmethod
    def backward(ctx, dh, dc):
        x, h, c, W, U, i, f, o, g, t = ctx.saved_tensor()
        d2 = dc + dh * o * (1 - t * t)
        do = dh * t
        df = d2 * c
        di = d2 * g
        dg = d2 * i
        dz = paddle.concat([di * i * (1 - i), df * f * (1 - f), do * o * (1 - o), dg * (1 - g * g)], axis=-1)
        dx = paddle.matmul(dz, W, transpose_y=True)
        dhid = paddle.matmul(dz, U, transpose_y=True)
        dW = paddle.matmul(x, dz, transpose_x=True)
        dU = paddle.matmul(h, dz, transpose_x=True)
        return dx, dhid, d2 * f, dW, dU, dz.sum(0)


LSTM = Case(
    LSTMCell,
    lambda r: [
        *(r.standard_normal((4, 5)) for _ in range(3)),
        *(0.4 * r.standard_normal((5, 20)) for _ in range(2)),
        r.standard_normal(20),
    ],
    (
        mistake("1 − t for 1 − t²", "1 - t * t", "1 - t", "t"),
        mistake("the hidden state's share of the cell missing", "dc + dh * o * (1 - t * t)", "dc", "t return"),
        mistake("sigmoid's own output forgotten", "do * o * (1 - o)", "do * (1 - o)", "o"),
        mistake("o for o (1 − o)", "do * o * (1 - o)", "do * o", "o"),
        mistake("forget gate forgotten", "d2 * f, dW", "d2, dW", "c2"),
        mistake("other operand for the input gate", "di = d2 * g", "di = d2 * i", "c2"),
        mistake("1 − g for 1 − g²", "dg * (1 - g * g)", "dg * (1 - g)", "g"),
        mistake("x for h in the recurrent weight", "paddle.matmul(h, dz,", "paddle.matmul(x, dz,", "z"),
        mistake("mean for sum over the batch", "dz.sum(0)", "dz.mean(0)", "z"),
    ),
)


class GRUCell(PyLayer):
    @staticmethod
    def forward(ctx, x, h, W, U, V, S):
        a = paddle.matmul(x, W) + paddle.matmul(h, U)
        ar, az = paddle.split(a, 2, axis=-1)
        r = F.sigmoid(ar)
        z = F.sigmoid(az)
        m = r * h
        n = paddle.tanh(paddle.matmul(x, V) + paddle.matmul(m, S))
        ctx.save_for_backward(x, h, W, U, V, S, r, z, m, n)
        return (1 - z) * n + z * h

    @staticmethod
    def backward(ctx, g):
        x, h, W, U, V, S, r, z, m, n = ctx.saved_tensor()
        dn = g * (1 - z) * (1 - n * n)
        dz = g * (h - n)
        dm = paddle.matmul(dn, S, transpose_y=True)
        dr = dm * h
        da = paddle.concat([dr * r * (1 - r), dz * z * (1 - z)], axis=-1)
        dx = paddle.matmul(da, W, transpose_y=True) + paddle.matmul(dn, V, transpose_y=True)
        dh = g * z + dm * r + paddle.matmul(da, U, transpose_y=True)
        dW = paddle.matmul(x, da, transpose_x=True)
        dU = paddle.matmul(h, da, transpose_x=True)
        dV = paddle.matmul(x, dn, transpose_x=True)
        dS = paddle.matmul(m, dn, transpose_x=True)
        return dx, dh, dW, dU, dV, dS


GRU = Case(
    GRUCell,
    lambda r: [
        *(r.standard_normal((4, 5)) for _ in range(2)),
        *(0.5 * r.standard_normal((5, 10)) for _ in range(2)),
        *(0.5 * r.standard_normal((5, 5)) for _ in range(2)),
    ],
    (
        mistake("the state carried over is a constant", "dh = g * z + dm * r", "dh = dm * r", "return"),
        mistake("the reset state is a constant", "dh = g * z + dm * r", "dh = g * z", "m"),
        mistake("share of the gate in 1 − z missing", "dz = g * (h - n)", "dz = g * h", "return"),
        mistake("sign of the update gate", "g * (h - n)", "g * (n - h)", "return z ar"),
        mistake("1 − n for 1 − n²", "1 - n * n", "1 - n", "n"),
        mistake("sigmoid's own output forgotten", "dr * r * (1 - r)", "dr * (1 - r)", "r"),
        mistake("h for the reset state", "paddle.matmul(m, dn,", "paddle.matmul(h, dn,", "n"),
        mistake("transpose missing", "paddle.matmul(dn, S, transpose_y=True)", "paddle.matmul(dn, S)", "n"),
        mistake("1 − z forgotten", "g * (1 - z) * (1 - n", "g * (1 - n", "return"),
    ),
)

CASES = [LSTM, GRU]
