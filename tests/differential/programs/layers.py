"""Layers in Paddle's style, as users write them: norms, losses, attention, several inputs and outputs."""

from __future__ import annotations

import math
from typing import Any

from programs.collected import Library, drawn, layer_program, trained


@layer_program
def a_tanh_that_saves_its_output(paddle: Library) -> Any:
    class Tanh(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, func1: Any, func2: Any = paddle.square) -> Any:
            ctx.func = func2
            y = func1(x)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (y,) = ctx.saved_tensor()
            return dy * (1 - ctx.func(y))

    return trained(paddle, lambda x: Tanh.apply(x, func1=paddle.tanh), drawn(paddle, 2, 3))


@layer_program
def a_linear_layer_with_a_bias(paddle: Library) -> Any:
    class Linear(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, b: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.matmul(x, w) + b

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return paddle.matmul(dy, w, transpose_y=True), x.T @ dy, dy.sum(axis=0)

    return trained(paddle, Linear.apply, drawn(paddle, 4, 3), drawn(paddle, 3, 2, seed=1), drawn(paddle, 2, seed=2))


@layer_program
def a_layer_norm(paddle: Library) -> Any:
    class LayerNorm(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any, epsilon: float = 1e-5) -> Any:
            mean = x.mean(axis=-1, keepdim=True)
            inv = paddle.rsqrt(((x - mean) ** 2).mean(axis=-1, keepdim=True) + epsilon)
            hat = (x - mean) * inv
            ctx.save_for_backward(hat, inv, weight)
            return hat * weight + bias

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            hat, inv, weight = ctx.saved_tensor()
            g = dy * weight
            dx = inv * (g - g.mean(axis=-1, keepdim=True) - hat * (g * hat).mean(axis=-1, keepdim=True))
            return dx, (dy * hat).sum(axis=0), dy.sum(axis=0)

    return trained(paddle, LayerNorm.apply, drawn(paddle, 3, 4), drawn(paddle, 4, seed=1), drawn(paddle, 4, seed=2))


@layer_program
def an_rms_norm_by_hand(paddle: Library) -> Any:
    class RMSNorm(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, eps: float) -> Any:
            r = paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
            ctx.save_for_backward(x, w, r)
            return x * r * w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w, r = ctx.saved_tensor()
            n = x * r
            g = dy * w
            return r * (g - n * paddle.mean(g * n, axis=-1, keepdim=True)), paddle.sum(dy * n, axis=[0, 1])

    return trained(paddle, lambda x, w: RMSNorm.apply(x, w, 1e-6), drawn(paddle, 2, 3, 4), drawn(paddle, 4, seed=1))


@layer_program
def a_softmax_cross_entropy(paddle: Library) -> Any:
    labels = paddle.to_tensor([2, 0, 1])

    class CrossEntropy(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, logits: Any, label: Any) -> Any:
            log_p = logits - paddle.logsumexp(logits, axis=-1, keepdim=True)
            ctx.save_for_backward(log_p, label)
            return -paddle.take_along_axis(log_p, label.unsqueeze(-1), axis=-1).mean()

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            log_p, label = ctx.saved_tensor()
            one_hot = paddle.nn.functional.one_hot(label, num_classes=log_p.shape[-1]).astype(log_p.dtype)
            return dy * (paddle.exp(log_p) - one_hot) / label.shape[0], None

    return trained(paddle, lambda x: CrossEntropy.apply(x, labels), drawn(paddle, 3, 4))


@layer_program
def a_straight_through_rounding(paddle: Library) -> Any:
    class Quantize(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, scale: float) -> Any:
            ctx.save_for_backward((x.abs() <= 1.0).astype(x.dtype))
            return paddle.clip(paddle.round(x * scale) / scale, -1.0, 1.0)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (mask,) = ctx.saved_tensor()
            return dy * mask

    return trained(paddle, lambda x: Quantize.apply(x, 8.0) * x, drawn(paddle, 5))


@layer_program
def a_gradient_reversal(paddle: Library) -> Any:
    class Reverse(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, alpha: float = 1.0) -> Any:
            ctx.alpha = alpha
            return x.reshape(x.shape) + 0 * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return -dy * ctx.alpha

    return trained(paddle, lambda x: Reverse.apply(paddle.sin(x), alpha=0.5), drawn(paddle, 2, 2))


@layer_program
def attention_by_einsum(paddle: Library) -> Any:
    class Attention(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
            scale = 1.0 / math.sqrt(q.shape[-1])
            p = paddle.nn.functional.softmax(paddle.einsum("bqd,bkd->bqk", q, k) * scale, axis=-1)
            ctx.scale = scale
            ctx.save_for_backward(q, k, v, p)
            return paddle.einsum("bqk,bkd->bqd", p, v)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            q, k, v, p = ctx.saved_tensor()
            dv = paddle.einsum("bqk,bqd->bkd", p, dy)
            dp = paddle.einsum("bqd,bkd->bqk", dy, v)
            ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * ctx.scale
            return paddle.einsum("bqk,bkd->bqd", ds, k), paddle.einsum("bqk,bqd->bkd", ds, q), dv

    return trained(paddle, Attention.apply, *(drawn(paddle, 2, 3, 4, seed=k) for k in range(3)))


@layer_program
def several_outputs_one_of_integers(paddle: Library) -> Any:
    class TopTwo(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, indices = paddle.topk(x, 2, axis=-1)
            ctx.save_for_backward(indices)
            ctx.mark_non_differentiable(indices)
            ctx.shape = x.shape
            return values, indices

        @staticmethod
        def backward(ctx: Any, dv: Any, di: Any) -> Any:
            (indices,) = ctx.saved_tensor()
            return paddle.put_along_axis(paddle.zeros(ctx.shape, dv.dtype), indices, dv, axis=-1)

    return trained(paddle, TopTwo.apply, drawn(paddle, 2, 5))


@layer_program
def a_list_of_inputs(paddle: Library) -> Any:
    class Mean(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, *xs: Any) -> Any:
            ctx.count = len(xs)
            return paddle.add_n(list(xs)) / len(xs)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return tuple(dy / ctx.count for _ in range(ctx.count))

    return trained(paddle, Mean.apply, *(drawn(paddle, 2, 2, seed=k) for k in range(3)))


@layer_program
def unused_outputs_without_materialized_gradients(paddle: Library) -> Any:
    class Both(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return paddle.sin(x), paddle.cos(x)

        @staticmethod
        def backward(ctx: Any, ds: Any, dc: Any) -> Any:
            (x,) = ctx.saved_tensor()
            assert dc is None
            return ds * paddle.cos(x)

    return trained(paddle, lambda x: Both.apply(x)[0], drawn(paddle, 3))
