"""Layers over sequences as users of Paddle write them: positions, attention, recurrence, routing."""

from __future__ import annotations

import math
from typing import Any

from programs.collected import Library, drawn, layer_program, trained


@layer_program
def rotary_embeddings(paddle: Library) -> Any:
    class Rotary(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def rotate_half(x: Any) -> Any:
            first, second = paddle.chunk(x, 2, axis=-1)
            return paddle.concat([-second, first], axis=-1)

        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, base: float = 10000.0) -> Any:
            length, size = q.shape[1], q.shape[-1]
            frequencies = 1.0 / (base ** (paddle.arange(0, size, 2, dtype="float64") / size))
            angles = paddle.outer(paddle.arange(length, dtype="float64"), frequencies)
            angles = paddle.concat((angles, angles), axis=-1)
            cos, sin = angles.cos()[None, :, None, :], angles.sin()[None, :, None, :]
            ctx.save_for_backward(cos, sin)
            return q * cos + Rotary.rotate_half(q) * sin, k * cos + Rotary.rotate_half(k) * sin

        @staticmethod
        def backward(ctx: Any, dq: Any, dk: Any) -> Any:
            cos, sin = ctx.saved_tensor()
            return dq * cos - Rotary.rotate_half(dq * sin), dk * cos - Rotary.rotate_half(dk * sin)

    return trained(paddle, Rotary.apply, drawn(paddle, 2, 3, 2, 4), drawn(paddle, 2, 3, 2, 4, seed=1))


@layer_program
def an_lstm_step_with_its_own_backward(paddle: Library) -> Any:
    class Step(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
            gates = paddle.addmm(paddle.matmul(x, w) + b, h, u)
            i, f, g, o = paddle.split(gates, 4, axis=1)
            i, f, o = (paddle.nn.functional.sigmoid(t) for t in (i, f, o))
            g = paddle.tanh(g)
            new = f * c + i * g
            ctx.save_for_backward(x, h, c, w, u, i, f, g, o, new)
            ctx.set_materialize_grads(False)
            return o * new.tanh(), new

        @staticmethod
        def backward(ctx: Any, dh: Any, dc: Any) -> Any:
            x, h, c, w, u, i, f, g, o, new = ctx.saved_tensor()
            t = new.tanh()
            total = paddle.zeros_like(new) if dc is None else dc
            do = paddle.zeros_like(o)
            if dh is not None:
                total = total + dh * o * (1 - t.square())
                do = dh * t
            parts = [
                total * g * i * (1 - i), total * c * f * (1 - f), total * i * (1 - g**2), do * o * (1 - o),
            ]  # fmt: skip
            d = paddle.concat(parts, axis=1)
            return d @ w.T, d.matmul(u, transpose_y=True), total * f, x.t() @ d, h.t() @ d, d.sum(0)

    def run(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        for k in range(x.shape[0]):
            h, c = Step.apply(x[k], h, c, w, u, b)
        return h * 1, c[:, :1]

    shapes = [(3, 2, 3), (2, 2), (2, 2), (3, 8), (2, 8), (8,)]
    return trained(paddle, run, *(drawn(paddle, *shape, seed=k) for k, shape in enumerate(shapes)))


@layer_program
def attention_with_a_mask_in_place(paddle: Library) -> Any:
    class Attention(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:
            scale = 1 / math.sqrt(q.shape[-1])
            scores = paddle.bmm(q, k.transpose([0, 2, 1]))
            scores *= scale
            if causal:
                keep = paddle.tril(paddle.ones([q.shape[1], k.shape[1]], dtype="bool"))
                scores[:, ~keep] = float("-inf")
            scores -= scores.max(axis=-1, keepdim=True)
            scores.exp_()
            scores /= scores.sum(axis=-1, keepdim=True)
            ctx.save_for_backward(q, k, v, scores)
            ctx.scale = scale
            ctx.mark_non_differentiable(scores)
            return scores @ v, scores

        @staticmethod
        def backward(ctx: Any, dy: Any, _: Any) -> Any:
            q, k, v, p = ctx.saved_tensor()
            dv = p.transpose([0, 2, 1]) @ dy
            dp = dy @ v.transpose([0, 2, 1])
            ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
            return ds @ k, ds.transpose([0, 2, 1]) @ q, dv

    return trained(
        paddle, lambda q, k, v: Attention.apply(q, k, v, True),
        drawn(paddle, 2, 3, 4), drawn(paddle, 2, 3, 4, seed=1), drawn(paddle, 2, 3, 2, seed=2),
    )  # fmt: skip


@layer_program
def straight_through_top_k(paddle: Library) -> Any:
    class TopKGate(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, logits: Any, k: int) -> Any:
            probabilities = paddle.nn.functional.softmax(logits, axis=-1)
            values, indices = paddle.topk(probabilities, k, axis=-1)
            gate = paddle.zeros_like(logits)
            gate = paddle.put_along_axis(gate, indices, values / values.sum(-1, keepdim=True), axis=-1)
            ctx.save_for_backward(probabilities)
            ctx.mark_non_differentiable(indices)
            return gate, indices

        @staticmethod
        def backward(ctx: Any, dgate: Any, dindices: Any) -> Any:
            (p,) = ctx.saved_tensor()
            return p * (dgate - paddle.sum(dgate * p, axis=-1, keepdim=True))

    def run(x: Any, w: Any) -> Any:
        gate, chosen = TopKGate.apply(x @ w, 2)
        return paddle.einsum("be,bd->bed", gate, x).sum(axis=0), paddle.bincount(chosen.flatten(), minlength=4)

    return trained(paddle, run, drawn(paddle, 5, 3), drawn(paddle, 3, 4, seed=1))


@layer_program
def a_scan_in_one_layer(paddle: Library) -> Any:
    class Scan(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        """h_t = a_t h_{t−1} + b_t, backwards by the same recurrence from the end."""

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            states = paddle.empty_like(b)
            h = paddle.zeros([b.shape[0]], dtype=b.dtype)
            for t in range(b.shape[1]):
                h = a[:, t] * h + b[:, t]
                states[:, t] = h
            ctx.save_for_backward(a, states)
            return states

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            a, states = ctx.saved_tensor()
            da, db = paddle.zeros_like(a), paddle.zeros_like(a)
            g = paddle.zeros_like(a[:, 0])
            for t in reversed(range(a.shape[1])):
                g = g + dy[:, t]
                db[:, t] = g
                if t > 0:
                    da[:, t] = g * states[:, t - 1]
                g = g * a[:, t]
            return da, db

    return trained(paddle, Scan.apply, drawn(paddle, 2, 4), drawn(paddle, 2, 4, seed=1))
