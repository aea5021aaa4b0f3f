"""Objectives and what serves them, as users of Paddle write them: losses, penalties, rounding, second derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from programs.collected import Library, constant, drawn, layer_program, leaf, trained


@layer_program
def focal_loss(paddle: Library) -> Any:
    F = paddle.nn.functional

    class Focal(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, logits: Any, labels: Any, gamma: Any = 2.0, ignore: int = -1) -> Any:
            valid = labels != ignore
            safe = paddle.where(valid, labels, paddle.zeros_like(labels))
            logp = F.log_softmax(logits, axis=-1)
            picked = paddle.take_along_axis(logp, safe.unsqueeze(-1), axis=-1).squeeze(-1)
            p = picked.exp()
            ctx.gamma = gamma
            ctx.save_for_backward(logp, safe, valid, p, picked)
            loss = -((1 - p) ** gamma) * picked
            ctx.count = valid.astype("float64").sum().clip(min=1.0)
            return paddle.where(valid, loss, paddle.zeros_like(loss)).sum() / ctx.count

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            logp, safe, valid, p, picked = ctx.saved_tensor()
            onehot = F.one_hot(safe, logp.shape[-1]).astype(logp.dtype)
            scale = ctx.gamma * (1 - p) ** (ctx.gamma - 1) * p * picked - (1 - p) ** ctx.gamma
            scale = paddle.where(valid, scale, paddle.full_like(scale, 0.0)) * dy / ctx.count
            return scale.unsqueeze(-1) * (onehot - logp.exp()), None

    labels = constant(paddle, [0, 2, -1, 1], "int64")
    return trained(paddle, lambda x: Focal.apply(x, labels, gamma=1.5), drawn(paddle, 4, 3))


@layer_program
def a_layer_with_its_own_second_derivative(paddle: Library) -> Any:
    class SineBackward(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, dy: Any, x: Any) -> Any:
            ctx.save_for_backward(dy, x)
            return dy * paddle.cos(x)

        @staticmethod
        def backward(ctx: Any, ddx: Any) -> Any:
            dy, x = ctx.saved_tensor()
            return ddx * paddle.cos(x), -ddx * dy * paddle.sin(x)

    class Sine(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return paddle.sin(x)

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensor()
            return SineBackward.apply(dy, x)

    x = drawn(paddle, 2, 3)
    y = Sine.apply(x * 2)
    (dx,) = paddle.grad((y * y).sum(), x, create_graph=True)
    (ddx,) = paddle.grad((dx**2).sum(), x, create_graph=True)
    ddx.sum().backward()
    return [y.detach(), dx.detach(), ddx.detach(), x.grad]


@layer_program
def gradient_penalty(paddle: Library) -> Any:
    paddle.seed(11)
    net = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.Tanh(), paddle.nn.Linear(4, 1))
    net.to(dtype="float64")
    for k, p in enumerate(net.parameters()):
        p.set_value(np.cos(np.arange(p.size) + k).reshape(p.shape))
    real, fake = drawn(paddle, 4, 3), drawn(paddle, 4, 3, seed=1)
    alpha = constant(paddle, [[0.1], [0.7], [0.4], [0.9]])
    mixed = (alpha * real + (1 - alpha) * fake).detach()
    mixed.stop_gradient = False
    score = net(mixed)
    (g,) = paddle.grad(score, mixed, grad_outputs=paddle.ones_like(score), create_graph=True, retain_graph=True)
    penalty = ((paddle.linalg.norm(g, p=2, axis=1) - 1.0) ** 2).mean()
    (net(real).mean() - net(fake).mean() + 10 * penalty).backward()
    return [penalty.detach(), real.grad, fake.grad, *(p.grad for p in net.parameters())]


@layer_program
def quantisation_with_learned_steps(paddle: Library) -> Any:
    class LSQ(paddle.autograd.PyLayer):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, step: Any, bits: int = 3) -> Any:
            low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
            scaled = x / step
            ctx.bounds = (low, high)
            ctx.save_for_backward(scaled, step)
            return paddle.clip(paddle.round(scaled), low, high) * step

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            scaled, step = ctx.saved_tensor()
            low, high = ctx.bounds
            below, above = (scaled < low).astype(dy.dtype), (scaled > high).astype(dy.dtype)
            inside = 1.0 - below - above
            dstep = below * low + above * high + inside * (scaled.round() - scaled)
            factor = 1.0 / math.sqrt(scaled.numel() * high)
            return dy * inside, (dy * dstep).sum().reshape(step.shape) * factor

    return trained(paddle, LSQ.apply, drawn(paddle, 4, 5), leaf(paddle, [0.3]))


@layer_program
def contrastive_loss_with_shared_negatives(paddle: Library) -> Any:
    F = paddle.nn.functional

    def run(a: Any, b: Any, temperature: Any) -> Any:
        a, b = (t * paddle.rsqrt((t * t).sum(-1, keepdim=True)) for t in (a, b))
        logits = paddle.matmul(a, b, transpose_y=True) * temperature.exp().clip(max=100)
        labels = paddle.arange(a.shape[0])
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels, label_smoothing=0.125)) / 2
        off = paddle.masked_select(logits, ~paddle.eye(a.shape[0]).astype("bool"))
        return loss, paddle.logsumexp(off), (logits.argmax(-1) == labels).astype("float64").mean()

    return trained(paddle, run, drawn(paddle, 4, 3), drawn(paddle, 4, 3, seed=1), leaf(paddle, 0.3))
