"""Normalisations, in NumPy and in Paddle operations, some with statistics in float32 whatever the input's dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from everyday.activations import in_numpy, in_paddle

import pylayer.paddle as paddle

EPS = 1e-5


def standardised(x: Any, axes: Any) -> tuple[Any, Any]:
    m, v = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    r = 1 / np.sqrt(v + EPS)
    return (x - m) * r, r


def standardised_vjp(h: Any, r: Any, d: Any, axes: Any) -> Any:
    return r * (d - d.mean(axes, keepdims=True) - h * (d * h).mean(axes, keepdims=True))


def np_layer_norm(x: Any, w: Any, b: Any) -> Any:
    return standardised(x, -1)[0] * w + b


def np_layer_norm_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    h, r = standardised(x, -1)
    return standardised_vjp(h, r, g * w, -1), (g * h).sum((0, 1)), g.sum((0, 1))


def np_batch_norm(x: Any, w: Any, b: Any) -> Any:
    return standardised(x, (0, 2, 3))[0] * w[:, None, None] + b[:, None, None]


def np_batch_norm_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    h, r = standardised(x, (0, 2, 3))
    return standardised_vjp(h, r, g * w[:, None, None], (0, 2, 3)), (g * h).sum((0, 2, 3)), g.sum((0, 2, 3))


def np_group_norm(x: Any) -> Any:
    return standardised(x.reshape(4, 2, -1), -1)[0].reshape(x.shape)


def np_group_norm_vjp(x: Any, y: Any, g: Any) -> Any:
    h, r = standardised(x.reshape(4, 2, -1), -1)
    return standardised_vjp(h, r, g.reshape(h.shape), -1).reshape(x.shape)


def np_l2(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-12)


def np_l2_vjp(x: Any, y: Any, g: Any) -> Any:
    return (g - y * (g * y).sum(-1, keepdims=True)) / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-12)


def np_rms_float32(x: Any, w: Any) -> Any:
    h = x.astype("float32")
    return w * (h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype)


def np_rms_float32_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    h, d = x.astype("float32"), (g * w).astype("float32")
    r = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)
    return (r * d - h * r**3 * (d * h).mean(-1, keepdims=True)).astype(x.dtype), (g * (h * r)).sum((0, 1))


def np_weight_norm(v: Any, s: Any) -> Any:
    return s[:, None] * v / np.linalg.norm(v, axis=1, keepdims=True)


def np_weight_norm_vjp(v: Any, s: Any, y: Any, g: Any) -> Any:
    n = np.linalg.norm(v, axis=1, keepdims=True)
    h = v / n
    inner = (g * h).sum(1, keepdims=True)
    return s[:, None] / n * (g - h * inner), inner[:, 0]


def rms_norm(x: Any, w: Any) -> Any:
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def rms_norm_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    r = paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    d = g * w
    return r * d - x * r**3 * (d * x).mean(-1, keepdim=True), (g * x * r).sum([0, 1])


def rms_norm_mixed(x: Any, w: Any) -> Any:
    h = x.astype("float32")
    r = paddle.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)
    return w * (h * r).astype(x.dtype)


def rms_norm_mixed_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    h, d = x.astype("float32"), (g * w).astype("float32")
    r = paddle.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)
    dx = r * d - h * r**3 * (d * h).mean(-1, keepdim=True)
    return dx.astype(x.dtype), (g * (h * r).astype(g.dtype)).sum([0, 1])


def statistics(x: Any, axes: Any) -> tuple[Any, Any]:
    c = x - x.mean(axes, keepdim=True)
    r = paddle.rsqrt((c * c).mean(axes, keepdim=True) + EPS)
    return c * r, r


def statistics_vjp(h: Any, r: Any, d: Any, axes: Any) -> Any:
    return r * (d - d.mean(axes, keepdim=True) - h * (d * h).mean(axes, keepdim=True))


def layer_norm_mixed(x: Any, w: Any, b: Any) -> Any:
    return statistics(x.astype("float32"), -1)[0].astype(x.dtype) * w + b


def layer_norm_mixed_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    h, r = statistics(x.astype("float32"), -1)
    dx = statistics_vjp(h, r, (g * w).astype("float32"), -1)
    return dx.astype(x.dtype), (g * h.astype(g.dtype)).sum(0), g.sum(0)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return statistics(x, -1)[0] * w + b


def layer_norm_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    h, r = statistics(x, -1)
    return statistics_vjp(h, r, g * w, -1), (g * h).sum(0), g.sum(0)


def instance_norm(x: Any, w: Any, b: Any) -> Any:
    return statistics(x, [2, 3])[0] * w.reshape([-1, 1, 1]) + b.reshape([-1, 1, 1])


def instance_norm_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    h, r = statistics(x, [2, 3])
    return statistics_vjp(h, r, g * w.reshape([-1, 1, 1]), [2, 3]), (g * h).sum([0, 2, 3]), g.sum([0, 2, 3])


def group_norm(x: Any) -> Any:
    return statistics(x.reshape([2, 4, -1]), -1)[0].reshape(x.shape)


def group_norm_vjp(x: Any, y: Any, g: Any) -> Any:
    h, r = statistics(x.reshape([2, 4, -1]), -1)
    return statistics_vjp(h, r, g.reshape([2, 4, -1]), -1).reshape(x.shape)


def l2(x: Any) -> Any:
    return x / paddle.sqrt((x * x).sum(-1, keepdim=True))


def l2_vjp(x: Any, y: Any, g: Any) -> Any:
    return (g - y * (g * y).sum(-1, keepdim=True)) / paddle.sqrt((x * x).sum(-1, keepdim=True))


def weight_norm(v: Any, s: Any) -> Any:
    return s.unsqueeze(1) * v / paddle.norm(v, axis=1, keepdim=True)


def weight_norm_vjp(v: Any, s: Any, y: Any, g: Any) -> Any:
    n = paddle.norm(v, axis=1, keepdim=True)
    h = v / n
    inner = (g * h).sum(1, keepdim=True)
    return s.unsqueeze(1) / n * (g - h * inner), inner.squeeze(1)


def tokens(r: Any) -> Any:
    return [2 * r.standard_normal((4, 12, 32)) + 0.5, 1 + 0.1 * r.standard_normal(32)]


def rows(r: Any) -> Any:
    return [1.5 * r.standard_normal((32, 48)) + 0.3, 1 + 0.1 * r.standard_normal(48), 0.1 * r.standard_normal(48)]


def images(r: Any) -> Any:
    return [r.standard_normal((4, 6, 5, 5)) + 0.2, r.uniform(0.5, 1.5, 6), 0.1 * r.standard_normal(6)]


def vectors(r: Any) -> Any:
    return [r.standard_normal((16, 24))]


def weights(r: Any) -> Any:
    return [r.standard_normal((16, 24)), r.uniform(0.5, 2, 16)]


LAYERS = [
    in_numpy("layer norm", forward=np_layer_norm, backward=np_layer_norm_vjp,
             inputs=lambda r: [*tokens(r), 0.1 * r.standard_normal(32)]),
    in_numpy("batch norm", forward=np_batch_norm, backward=np_batch_norm_vjp, inputs=images),
    in_numpy("group norm", forward=np_group_norm, backward=np_group_norm_vjp,
             inputs=lambda r: [r.standard_normal((4, 8, 16))]),
    in_numpy("l2 norm", forward=np_l2, backward=np_l2_vjp, inputs=vectors),
    in_numpy("rms norm in float32", forward=np_rms_float32, backward=np_rms_float32_vjp, inputs=tokens, coarse=True),
    in_numpy("weight norm", forward=np_weight_norm, backward=np_weight_norm_vjp, inputs=weights),
    in_paddle("rms norm in operations", forward=rms_norm, backward=rms_norm_vjp, inputs=tokens),
    in_paddle("rms norm, mixed precision", forward=rms_norm_mixed, backward=rms_norm_mixed_vjp, inputs=tokens,
              coarse=True),
    in_paddle("layer norm, mixed precision", forward=layer_norm_mixed, backward=layer_norm_mixed_vjp, inputs=rows,
              coarse=True),
    in_paddle("layer norm in operations", forward=layer_norm, backward=layer_norm_vjp, inputs=rows),
    in_paddle("instance norm", forward=instance_norm, backward=instance_norm_vjp, inputs=images),
    in_paddle("group norm in operations", forward=group_norm, backward=group_norm_vjp,
              inputs=lambda r: [r.standard_normal((2, 8, 20))]),
    in_paddle("l2 norm in operations", forward=l2, backward=l2_vjp, inputs=vectors),
    in_paddle("weight norm in operations", forward=weight_norm, backward=weight_norm_vjp, inputs=weights),
]  # fmt: skip
