"""Twenty layers in Paddle's style, as users write them: each run forward and backward, its results to agree to 1e-12."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from programs.collected import PROGRAMS, Library, drawn, program

LAYERS: list[str] = []
"""The programs of this file that run a layer."""


def layer_program(function: Any) -> Any:
    """Put a program into the table, and among those that are held to 1e-12."""
    LAYERS.append(function.__name__)
    return program(function)


def trained(paddle: Library, function: Any, *inputs: Any) -> list[Any]:
    """What a function gives for leaves, and their gradients from cotangents that are all different."""
    out = function(*inputs)
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    for k, one in enumerate(outs):
        if not one.stop_gradient:
            weights = np.cos(np.arange(one.numel().item()) + k).reshape(one.shape)
            one.backward(paddle.to_tensor(weights.astype(str(one.dtype).partition(".")[2])), retain_graph=True)
    return [*(one.detach() for one in outs), *(x.grad for x in inputs)]


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


@layer_program
def a_chain_of_changes_in_place(paddle: Library) -> Any:
    class Swish(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, beta: float) -> Any:
            s = x.clone().scale_(beta)
            s.neg_().exp_().add_(paddle.ones([], s.dtype)).reciprocal_()
            ctx.beta = beta
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, s = ctx.saved_tensor()
            dx = s + ctx.beta * x * s * (1 - s)
            dx.multiply_(dy)
            return dx

    return trained(paddle, lambda x: Swish.apply(x, 1.5), drawn(paddle, 2, 3))


@layer_program
def a_layer_inside_a_layer(paddle: Library) -> Any:
    class Square(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return 2 * x * dy

    class Norm(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = Square.apply(x).sum().sqrt()
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, out = ctx.saved_tensor()
            return dy * x / out

    return trained(paddle, Norm.apply, drawn(paddle, 4))


@layer_program
def recomputed_in_backward(paddle: Library) -> Any:
    def block(x: Any, w: Any) -> Any:
        return paddle.tanh(paddle.matmul(x, w)) * x.sum(axis=-1, keepdim=True)

    class Recompute(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return block(x, w)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            inputs = [t.detach() for t in ctx.saved_tensor()]
            for t in inputs:
                t.stop_gradient = False
            with paddle.enable_grad():
                out = block(*inputs)
            paddle.autograd.backward([out], [dy])
            return tuple(t.grad for t in inputs)

    return trained(paddle, Recompute.apply, drawn(paddle, 2, 3), drawn(paddle, 3, 3, seed=1))


@layer_program
def in_mixed_precision_by_hand(paddle: Library) -> Any:
    class Half(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.dtype = x.dtype
            low, weight = x.astype("float32"), w.astype("float32")
            ctx.save_for_backward(low, weight)
            return (low * weight).cast(x.dtype)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            low, weight = ctx.saved_tensor()
            dy = dy.astype("float32")
            return (dy * weight).astype(ctx.dtype), (dy * low).astype(ctx.dtype)

    return trained(paddle, Half.apply, drawn(paddle, 3), drawn(paddle, 3, seed=1))


@layer_program
def a_convolution_over_shifts(paddle: Library) -> Any:
    class Conv(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            k, n = w.shape[0], x.shape[-1] - w.shape[0] + 1
            return sum(x[..., i : i + n] * w[i] for i in range(k))

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            k, n = w.shape[0], dy.shape[-1]
            dx = sum(
                paddle.nn.functional.pad(dy.unsqueeze(0), [i, k - 1 - i], data_format="NCL").squeeze(0) * w[i]
                for i in range(k)
            )
            dw = paddle.stack([(x[..., i : i + n] * dy).sum() for i in range(k)])
            return dx, dw

    return trained(paddle, Conv.apply, drawn(paddle, 2, 6), drawn(paddle, 3, seed=1))


@layer_program
def an_embedding_by_index(paddle: Library) -> Any:
    class Embed(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, table: Any, index: Any) -> Any:
            ctx.save_for_backward(index)
            ctx.rows = table.shape[0]
            return paddle.gather(table, index)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (index,) = ctx.saved_tensor()
            zeros = paddle.zeros([ctx.rows, dy.shape[-1]], dy.dtype)
            return paddle.scatter_nd_add(zeros, index.unsqueeze(-1), dy), None

    index = paddle.to_tensor([1, 3, 1])
    return trained(paddle, lambda table: Embed.apply(table, index), drawn(paddle, 4, 2))


@layer_program
def a_matrix_inverse(paddle: Library) -> Any:
    class Solve(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            a = a + 4 * paddle.eye(a.shape[-1], dtype=a.dtype)
            x = paddle.linalg.solve(a, b)
            ctx.save_for_backward(a, x)
            return x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            a, x = ctx.saved_tensor()
            db = paddle.linalg.solve(a.t(), dy)
            return -paddle.matmul(db, x, transpose_y=True), db

    return trained(paddle, Solve.apply, drawn(paddle, 3, 3), drawn(paddle, 3, 2, seed=1))


@layer_program
def a_modulus_of_complex_numbers(paddle: Library) -> Any:
    class Modulus(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, re: Any, im: Any) -> Any:
            z = paddle.complex(re, im)
            out = paddle.sqrt(paddle.real(z * paddle.conj(z)))
            ctx.save_for_backward(z, out)
            return out

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            z, out = ctx.saved_tensor()
            return dy * paddle.real(z) / out, dy * z.imag() / out

    return trained(paddle, Modulus.apply, drawn(paddle, 4), drawn(paddle, 4, seed=1))


@layer_program
def a_layer_in_a_model_with_its_parameter(paddle: Library) -> Any:
    class Scale(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return dy * w, (dy * x).sum(axis=0)

    class Model(paddle.nn.Layer):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = self.create_parameter(
                [3], dtype="float64", default_initializer=paddle.nn.initializer.Constant(1.5)
            )

        def forward(self, x: Any) -> Any:
            return Scale.apply(paddle.tanh(x), self.w)

    model, x = Model(), drawn(paddle, 2, 3)
    found = trained(paddle, model, x)
    return [*found, model.w.grad, [n for n, _ in model.named_parameters()]]


# --------------------------------------------------------------------------- with names that came later
@layer_program
def reductions_by_dim(paddle: Library) -> Any:
    class Centre(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x - x.mean(dim=-1, keepdim=True)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy - dy.mean(dim=-1, keepdim=True)

    return trained(paddle, lambda x: Centre.apply(x).sum(dim=0), drawn(paddle, 3, 2))


@layer_program
def casts_by_method_and_new_zeros(paddle: Library) -> Any:
    class Cast(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.float() * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return x.new_zeros(x.shape) + 2 * dy.astype(x.dtype)

    return trained(paddle, Cast.apply, drawn(paddle, 3))


@layer_program
def a_filter_by_fft(paddle: Library) -> Any:
    class Spectrum(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.fft.irfft(paddle.fft.rfft(x) * w, n=x.shape[-1])

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            return paddle.fft.irfft(paddle.fft.rfft(dy) * w, n=x.shape[-1]), None

    w = paddle.to_tensor([1.0, 0.5, 0.25], dtype="float64")
    return trained(paddle, lambda x: Spectrum.apply(x, w), drawn(paddle, 2, 4))


@layer_program
def a_convolution_with_its_own_backward(paddle: Library) -> Any:
    class Conv(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            return paddle.nn.functional.conv2d(x, w, padding=1)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            x, w = ctx.saved_tensor()
            dx = paddle.nn.functional.conv2d_transpose(dy, w, padding=1)
            dw = paddle.nn.functional.conv2d(x.transpose([1, 0, 2, 3]), dy.transpose([1, 0, 2, 3]), padding=1)
            return dx, dw.transpose([1, 0, 2, 3])

    return trained(paddle, Conv.apply, drawn(paddle, 2, 2, 4, 4), drawn(paddle, 3, 2, 3, 3, seed=1))


@layer_program
def a_recomputed_block(paddle: Library) -> Any:
    recompute = paddle.distributed.fleet.utils.recompute
    return trained(
        paddle,
        lambda x, w: recompute(lambda a, b: paddle.tanh(a @ b), x, w),
        drawn(paddle, 2, 3),
        drawn(paddle, 3, 3, seed=1),
    )


@layer_program
def a_layer_under_auto_cast(paddle: Library) -> Any:
    class Double(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * 2

    def run(x: Any) -> Any:
        with paddle.amp.auto_cast(enable=False):
            return Double.apply(x)

    return trained(paddle, run, drawn(paddle, 3))


assert len(LAYERS) >= 20
assert set(LAYERS) <= set(PROGRAMS)
