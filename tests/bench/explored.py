"""Layers whose mistakes show only at some inputs: does `gradcheck explore` find them, and how small are the examples?

    python tests/bench/explored.py [--seconds 30] [NAME …]

Each is a layer that people write, right at the shapes that they try first. Prints what was found, at how many examples,
in what time, and how many numbers the smallest example has; and for three right layers that nothing was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import gradcheck
import pylayer.paddle as paddle

F = paddle.nn.functional
T = Any


def layer(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """A PyLayer of two functions."""

    class Made(paddle.autograd.PyLayer):
        pass

    Made.forward, Made.backward = staticmethod(forward), staticmethod(backward)
    return Made


def saved(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A forward that saves its inputs."""

    def run(ctx: Any, *inputs: T) -> Any:
        ctx.save_for_backward(*inputs)
        return forward(*inputs)

    return run


def reads(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward that gets what was saved, then the cotangent."""
    return lambda ctx, g: backward(*ctx.saved_tensor(), g)


def squeezed(x: T, g: T) -> T:
    return (g.squeeze() * 2 if 1 in g.shape and g.squeeze().ndim == 1 else g * 2 * x).reshape(x.shape)


def last_block(x: T, g: T) -> T:
    whole = x.shape[0] // 4 * 4
    done = 2 * x[:whole] * g[:whole] if whole else x[:0]
    return paddle.concat([done, x[whole:] * g[whole:]])  # the rest, without the factor


def softmax_wrong(x: T, g: T) -> T:
    y = F.softmax(x, -1)
    return y * (g - (g * y).sum(-1 if x.shape[0] != x.shape[1] else 0, keepdim=True))


def norm(x: T) -> T:
    return x / (x * x).sum(-1, keepdim=True).sqrt().clip(1e-12)


def norm_wrong(x: T, g: T) -> T:
    s = (x * x).sum(-1, keepdim=True).sqrt()
    right = (g - x * (g * x).sum(-1, keepdim=True) / (s * s)) / s
    return paddle.where(s > 1e-12, right, paddle.zeros_like(x))  # where forward divides by 1e-12


def huber_wrong(x: T, g: T) -> T:
    return paddle.where(x.abs() < 1, x, paddle.ones_like(x)) * g  # the sign is forgotten


def pool_wrong(x: T, g: T) -> T:
    most = x.max(-1, keepdim=True)
    return (x == most).astype(x.dtype) * g.unsqueeze(-1)  # ties get the whole gradient each


def mean_wrong(x: T, g: T) -> T:
    return paddle.ones_like(x) * g / x.shape[-1] if x.shape[-1] < 8 else paddle.ones_like(x) * g / 8


def outer_wrong(a: T, b: T, g: T) -> Any:
    same = a.shape[0] == b.shape[0]
    return g @ b, (g @ a if same else g.transpose([1, 0]) @ a)


def attention(q: T, k: T, v: T) -> T:
    return F.softmax(q @ k.transpose([1, 0]), -1) @ v


def attention_wrong(q: T, k: T, v: T, g: T) -> Any:
    p = F.softmax(q @ k.transpose([1, 0]), -1)
    dp = g @ v.transpose([1, 0])
    ds = p * (dp - (dp * p).sum(-1, keepdim=True))
    dk = ds.transpose([1, 0]) @ q if q.shape[0] != k.shape[0] else ds @ q
    return ds @ k, dk, p.transpose([1, 0]) @ g


def rows_wrong(x: T, i: T, g: T) -> Any:
    out = paddle.zeros_like(x)
    return paddle.scatter(out, i, g, overwrite=True), None  # an index that comes twice counts once


def softplus_wrong(x: T, g: T) -> T:
    return paddle.where(x > 20, paddle.zeros_like(x), F.sigmoid(x)) * g


def std_wrong(x: T, g: T) -> T:
    n = x.shape[-1]
    c = x - x.mean(-1, keepdim=True)
    s = (c * c).mean(-1, keepdim=True).sqrt()
    return g.unsqueeze(-1) * c / (s * (n if n > 2 else 1))


SQUARE = saved(lambda x: x * x)
LAYERS: dict[str, tuple[Any, dict[str, str]]] = {
    "bias: the first row of a batch": (
        layer(lambda ctx, x, b: x + b, lambda ctx, g: (g, g[0])), {"x": "B C", "b": "C"}
    ),
    "bias broadcast along axis 1": (
        layer(
            saved(lambda x, b: x + b),
            reads(lambda x, b, g: (g, g if b.shape == g.shape else g.mean(1, keepdim=True))),
        ),
        {"x": "B C", "b": "Bx1"},
    ),
    "square: squeezed where the batch is 1": (layer(SQUARE, reads(squeezed)), {"x": "B C"}),
    "square: the last block of four": (layer(SQUARE, reads(last_block)), {"x": "N"}),
    "softmax: another axis where square": (
        layer(saved(lambda x: F.softmax(x, -1)), reads(softmax_wrong)), {"x": "B C"}
    ),
    "normalise: a row of zeros": (layer(saved(norm), reads(norm_wrong)), {"x": "B C"}),
    "leaky relu: negative inputs": (
        layer(saved(lambda x: F.leaky_relu(x, 0.1)), reads(lambda x, g: g * (x > 0).astype(x.dtype))), {"x": "N"}
    ),
    "abs: negative inputs": (layer(saved(lambda x: x.abs()), reads(lambda x, g: g)), {"x": "N"}),
    "huber: below −1": (
        layer(
            saved(lambda x: paddle.where(x.abs() < 1, x * x / 2, x.abs() - 0.5)), reads(huber_wrong)
        ),
        {"x": "N"},
    ),
    "max: ties": (layer(saved(lambda x: x.max(-1)), reads(pool_wrong)), {"x": "B C"}),
    "mean: rows of 8 and more": (layer(saved(lambda x: x.mean(-1, keepdim=True)), reads(mean_wrong)), {"x": "B C"}),
    "outer product: transposed where square": (
        layer(saved(lambda a, b: a.unsqueeze(1) * b.unsqueeze(0)), reads(outer_wrong)), {"a": "N", "b": "M"}
    ),
    "attention: transposed where square": (
        layer(saved(attention), reads(attention_wrong)), {"q": "Q D", "k": "K D", "v": "K D"}
    ),
    "rows: an index that comes twice": (
        layer(saved(lambda x, i: paddle.gather(x, i)), reads(rows_wrong)), {"x": "5 C", "i": "N:int64:below=5"}
    ),
    "softplus: beyond 20": (layer(saved(F.softplus), reads(softplus_wrong)), {"x": "N"}),
    "std: rows of two": (
        layer(saved(lambda x: ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1).sqrt()), reads(std_wrong)), {"x": "B C"}
    ),
    "clip: above the limit": (
        layer(saved(lambda x: paddle.clip(x, -2.0, 2.0)), reads(lambda x, g: g * (x > -2).astype(g.dtype))), {"x": "N"}
    ),
    "matmul: batch of one": (
        layer(
            saved(lambda x, w: x @ w),
            reads(lambda x, w, g: (g @ w.transpose([1, 0]), x.transpose([1, 0]) @ g / (2 if x.shape[0] == 1 else 1))),
        ),
        {"x": "B C", "w": "C D"},
    ),
    "sum: three axes": (
        layer(saved(lambda x: x.sum([0, 1])), reads(lambda x, g: g + x * 0 if x.shape[1] < 3 else 2 * g + x * 0)),
        {"x": "B T C"},
    ),
    "power: base below 0": (
        layer(saved(lambda x: x**3), reads(lambda x, g: 3 * x * x.abs() * g)), {"x": "N"}
    ),
}  # fmt: skip
"""By mistake: a layer, and its inputs."""
RIGHT: dict[str, tuple[Any, dict[str, str]]] = {
    "tanh": (layer(saved(paddle.tanh), reads(lambda x, g: g * (1 - paddle.tanh(x) ** 2))), {"x": "B C"}),
    "bias": (layer(lambda ctx, x, b: x + b, lambda ctx, g: (g, g.sum(0))), {"x": "B C", "b": "C"}),
    "attention": (lambda q, k, v: attention(q, k, v), {"q": "Q D", "k": "K D", "v": "K D"}),
}


def main() -> int:
    """Explore each, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="those whose names contain one of these words")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = small = tried = 0
    for name, (subject, inputs) in LAYERS.items():
        if options.names and not any(word in name for word in options.names):
            continue
        tried += 1
        started = time.perf_counter()
        result = gradcheck.explore(subject, inputs, seconds=options.seconds, seed=options.seed)
        seconds = time.perf_counter() - started
        numbers = 0 if result.inputs is None else sum(array.size for array in result.inputs.values())
        found += not result
        small += not result and numbers <= 8
        said = "MISSED" if result else f"{numbers:3} numbers"
        print(f"{name:42} {said}  {result.tried:4} examples {seconds:5.1f} s  {result.where}")
    wrong = 0
    for name, (subject, inputs) in RIGHT.items():
        if not options.names:
            result = gradcheck.explore(subject, inputs, seconds=min(options.seconds, 10.0), seed=options.seed)
            wrong += not result
            print(f"right: {name:35} {result!r}")
    print(f"{found} of {tried} found, {small} with at most 8 numbers; {wrong} right ones said to be wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
