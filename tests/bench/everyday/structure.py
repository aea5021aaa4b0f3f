"""Convolutions, pooling, gathering, sorting and other rearrangements, in NumPy and in Paddle operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from everyday.activations import in_numpy, in_paddle

import pylayer.paddle as paddle


def windows1(x: Any, k: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, k, axis=-1)


def np_conv1(x: Any, w: Any, b: Any) -> Any:
    return np.einsum("nclk,ock->nol", windows1(x, w.shape[-1]), w) + b[:, None]


def np_conv1_vjp(x: Any, w: Any, b: Any, y: Any, g: Any) -> Any:
    k = w.shape[-1]
    padded = np.pad(g, ((0, 0), (0, 0), (k - 1, k - 1)))
    dx = np.einsum("nolk,ock->ncl", windows1(padded, k), w[..., ::-1])
    return dx, np.einsum("nclk,nol->ock", windows1(x, k), g), g.sum((0, 2))


def columns(x: Any, k: int) -> Any:
    """Windows of (n, c, h, w) as (n, h', w', c·k·k), the im2col that everyone writes."""
    view = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    n, c, h, w = view.shape[:4]
    return view.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * k * k)


def np_conv2(x: Any, w: Any) -> Any:
    return (columns(x, 3) @ w.reshape(len(w), -1).T).transpose(0, 3, 1, 2)


def np_conv2_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    last = g.transpose(0, 2, 3, 1)
    dw = np.einsum("nhwo,nhwk->ok", last, columns(x, 3)).reshape(w.shape)
    spread = (last @ w.reshape(len(w), -1)).reshape(*last.shape[:3], x.shape[1], 3, 3)
    dx = np.zeros_like(x)
    h, wide = g.shape[2:]
    for i in range(3):
        for j in range(3):
            dx[:, :, i : i + h, j : j + wide] += spread[..., i, j].transpose(0, 3, 1, 2)
    return dx, dw


def np_tiles(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2)


def np_max_pool_vjp(x: Any, y: Any, g: Any) -> Any:
    mask = np_tiles(x) == y[:, :, :, None, :, None]
    return (mask * g[:, :, :, None, :, None]).reshape(x.shape)


def np_mean_pool_vjp(x: Any, y: Any, g: Any) -> Any:
    return np.repeat(np.repeat(g, 2, 2), 2, 3) / 4


def np_shuffle(x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


def np_shuffle_vjp(x: Any, y: Any, g: Any) -> Any:
    n, c, h, w = x.shape
    return g.reshape(n, c // 4, h, 2, w, 2).transpose(0, 1, 3, 5, 2, 4).reshape(x.shape)


def np_embedding_vjp(table: Any, ids: Any, y: Any, g: Any) -> Any:
    d = np.zeros_like(table)
    np.add.at(d, ids, g)
    return d, None


def np_sort_vjp(x: Any, y: Any, g: Any) -> Any:
    d = np.empty_like(x)
    np.put_along_axis(d, np.argsort(x, -1), g, -1)
    return d


def np_median_vjp(x: Any, y: Any, g: Any) -> Any:
    return g[:, None] * (x == y[:, None])


def np_interpolation(x: Any) -> Any:
    """Twice as many points along the last axis, linear between them."""
    return np.concatenate([np.stack([x[..., :-1], (x[..., :-1] + x[..., 1:]) / 2], -1).reshape(*x.shape[:-1], -1),
                           x[..., -1:]], -1)  # fmt: skip


def np_interpolation_vjp(x: Any, y: Any, g: Any) -> Any:
    d = g[..., ::2].copy()
    d[..., :-1] += g[..., 1::2] / 2
    d[..., 1:] += g[..., 1::2] / 2
    return d


def np_bilinear_sample(image: Any, at: Any) -> Any:
    i, j = np.floor(at).astype(int)
    a, b = at - np.floor(at)
    return ((1 - a) * (1 - b) * image[:, i, j] + (1 - a) * b * image[:, i, j + 1]
            + a * (1 - b) * image[:, i + 1, j] + a * b * image[:, i + 1, j + 1])  # fmt: skip


def np_bilinear_sample_vjp(image: Any, at: Any, y: Any, g: Any) -> Any:
    i, j = np.floor(at).astype(int)
    a, b = at - np.floor(at)
    d = np.zeros_like(image)
    for di, dj, weight in ((0, 0, (1 - a) * (1 - b)), (0, 1, (1 - a) * b), (1, 0, a * (1 - b)), (1, 1, a * b)):
        np.add.at(d, (slice(None), i + di, j + dj), g * weight)
    p, q, r, s = image[:, i, j], image[:, i, j + 1], image[:, i + 1, j], image[:, i + 1, j + 1]
    down, right = (1 - b) * (r - p) + b * (s - q), (1 - a) * (q - p) + a * (s - r)
    return d, np.stack([(g * down).sum(0), (g * right).sum(0)])


def top(x: Any) -> Any:
    return paddle.topk(x, 4, axis=-1)[0]


def top_vjp(x: Any, y: Any, g: Any) -> Any:
    return paddle.put_along_axis(paddle.zeros_like(x), paddle.topk(x, 4, axis=-1)[1], g, -1)


def sort_vjp(x: Any, y: Any, g: Any) -> Any:
    return paddle.put_along_axis(paddle.zeros_like(x), paddle.argsort(x, axis=-1), g, -1)


def masked_mean(x: Any, mask: Any) -> Any:
    m = mask.astype(x.dtype).unsqueeze(-1)
    return (x * m).sum(1) / m.sum(1)


def masked_mean_vjp(x: Any, mask: Any, y: Any, g: Any) -> Any:
    m = mask.astype(x.dtype).unsqueeze(-1)
    return (g / m.sum(1)).unsqueeze(1) * m, None


def max_pool(x: Any) -> Any:
    n, c, length = x.shape
    return x.reshape([n, c, length // 3, 3]).max(-1)


def max_pool_vjp(x: Any, y: Any, g: Any) -> Any:
    n, c, length = x.shape
    mask = x.reshape([n, c, length // 3, 3]) == y.unsqueeze(-1)
    return (mask.astype(g.dtype) * g.unsqueeze(-1)).reshape(x.shape)


def conv1(x: Any, w: Any) -> Any:
    length = x.shape[2] - 2
    taps = paddle.stack([x[:, :, k : k + length] for k in range(3)], axis=-1)
    return paddle.einsum("nclk,ock->nol", taps, w)


def conv1_vjp(x: Any, w: Any, y: Any, g: Any) -> Any:
    length = x.shape[2] - 2
    taps = paddle.stack([x[:, :, k : k + length] for k in range(3)], axis=-1)
    spread = paddle.einsum("nol,ock->nclk", g, w)
    dx = sum(paddle.nn.functional.pad(spread[..., k], [k, 2 - k]) for k in range(3))
    return dx, paddle.einsum("nclk,nol->ock", taps, g)


def image(r: Any) -> Any:
    return [r.standard_normal((2, 4, 8, 8))]


def inside(r: Any) -> Any:
    return [r.standard_normal((3, 6, 6)), r.integers(0, 5, (2, 30)) + r.uniform(0.1, 0.9, (2, 30))]


LAYERS = [
    in_numpy("convolution 1d", forward=np_conv1, backward=np_conv1_vjp,
             inputs=lambda r: [r.standard_normal((2, 4, 20)), r.standard_normal((6, 4, 3)) / 3, r.standard_normal(6)]),
    in_numpy("convolution 2d, im2col", forward=np_conv2, backward=np_conv2_vjp,
             inputs=lambda r: [r.standard_normal((2, 3, 8, 8)), r.standard_normal((4, 3, 3, 3)) / 5]),
    in_numpy("max pooling 2d", forward=lambda x: np_tiles(x).max((3, 5)), backward=np_max_pool_vjp, inputs=image),
    in_numpy("average pooling", forward=lambda x: np_tiles(x).mean((3, 5)), backward=np_mean_pool_vjp, inputs=image),
    in_numpy("pixel shuffle", forward=np_shuffle, backward=np_shuffle_vjp, inputs=image),
    in_numpy("embedding", forward=lambda table, ids: table[ids], backward=np_embedding_vjp,
             inputs=lambda r: [r.standard_normal((40, 16)), r.integers(0, 40, (4, 10))]),
    in_numpy("cumsum", forward=lambda x: np.cumsum(x, 1), inputs=lambda r: [r.standard_normal((8, 40))],
             backward=lambda x, y, g: np.cumsum(g[:, ::-1], 1)[:, ::-1]),
    in_numpy("sort", forward=lambda x: np.sort(x, -1), backward=np_sort_vjp,
             inputs=lambda r: [r.standard_normal((8, 30))]),
    in_numpy("median", forward=lambda x: np.median(x, -1), backward=np_median_vjp,
             inputs=lambda r: [r.standard_normal((12, 31))]),
    in_numpy("linear interpolation", forward=np_interpolation, backward=np_interpolation_vjp,
             inputs=lambda r: [r.standard_normal((3, 4, 16))]),
    in_numpy("bilinear sampling", forward=np_bilinear_sample, backward=np_bilinear_sample_vjp, inputs=inside),
    in_numpy("dropout with a given mask", forward=lambda x, m: x * m / 0.8, inputs=lambda r: [
        r.standard_normal((16, 32)), (r.uniform(size=(16, 32)) < 0.8).astype("int64")],
        backward=lambda x, m, y, g: (g * m / 0.8, None)),
    in_paddle("roll", forward=lambda x: paddle.roll(x, 3, axis=1), backward=lambda x, y, g: paddle.roll(g, -3, axis=1),
              inputs=lambda r: [r.standard_normal((6, 20))]),
    in_paddle("top 4", forward=top, backward=top_vjp, inputs=lambda r: [r.standard_normal((12, 30))]),
    in_paddle("sort in operations", forward=lambda x: paddle.sort(x, axis=-1), backward=sort_vjp,
              inputs=lambda r: [r.standard_normal((8, 30))]),
    in_paddle("masked mean", forward=masked_mean, backward=masked_mean_vjp, inputs=lambda r: [
        r.standard_normal((6, 10, 16)), (r.uniform(size=(6, 10)) < 0.6) | (np.arange(10) == 0)]),
    in_paddle("max pooling 1d", forward=max_pool, backward=max_pool_vjp,
              inputs=lambda r: [r.standard_normal((4, 6, 24))]),
    in_paddle("convolution 1d in operations", forward=conv1, backward=conv1_vjp,
              inputs=lambda r: [r.standard_normal((2, 4, 16)), r.standard_normal((5, 4, 3)) / 3]),
    in_paddle("reversed cumsum", forward=lambda x: paddle.flip(paddle.cumsum(paddle.flip(x, [0]), 0), [0]),
              backward=lambda x, y, g: paddle.cumsum(g, 0), inputs=lambda r: [r.standard_normal((30, 8))]),
]  # fmt: skip
