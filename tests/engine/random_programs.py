"""Random programs over the engine's operations, and what they give: run as a script it writes that as bytes."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np

import pylayer.paddle as paddle

UNARY = ("tanh", "exp", "sin", "square", "abs", "neg", "sigmoid", "sqrt", "rsqrt", "log1p", "floor", "erf")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "atan2", "less_than")
DTYPES = ("float64", "float32", "int64")


class Halve(paddle.autograd.PyLayer):
    """Two outputs, of which one may take no part."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 0.5, x * x

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return first * 0.5 + second * 2 * x


def step(random: np.random.Generator, made: list[Any]) -> Any:
    """One more Tensor, of some that there are."""
    x, y = (made[int(random.integers(len(made)))] for _ in range(2))
    kind = random.integers(8)
    if kind == 0:
        return getattr(paddle, str(random.choice(UNARY)))(x)
    if kind == 1:
        return getattr(paddle, str(random.choice(BINARY)))(x, y)
    if kind == 2:
        return x * float(random.choice([0.5, -2.0, 3.0])) + (1 - y)
    if kind == 3:
        return x.sum(-1, keepdim=True) + y if x.ndim else x + y
    if kind == 4:
        return paddle.stack([x, y]).max(0) if x.shape == y.shape else x + y.mean()
    if kind == 5:
        first, second = paddle.split(paddle.concat([x.reshape([-1]), y.reshape([-1])]), [1, -1])
        return first.sum() + (second[0] if random.integers(2) else 0.0) + x
    if kind == 6:
        first, second = Halve.apply(x)
        return first if random.integers(2) else first + second
    hooked = x * 1.5
    if not hooked.stop_gradient:
        hooked.register_hook(lambda gradient: gradient * 0.5)
    return hooked


def program(seed: int) -> list[bytes]:
    """What a program of this seed gives, in bytes: values, gradients and second gradients, or the error's class."""
    random = np.random.default_rng(seed)
    shapes = [[(), (2,), (1, 3), (2, 3)][int(k)] for k in random.integers(0, 4, 3)]
    leaves = [
        paddle.to_tensor(random.uniform(0.2, 2, shape), str(random.choice(DTYPES, p=[0.6, 0.3, 0.1])))
        for shape in shapes
    ]
    for leaf in leaves:
        leaf.stop_gradient = leaf.dtype == paddle.int64 or bool(random.random() < 0.2)
    made, found = list(leaves), []
    for _ in range(int(random.integers(2, 12))):
        try:
            made.append(step(random, made))
        except Exception as error:
            found.append(type(error).__name__.encode())
    end = made[-1].sum() if random.integers(2) else made[-1]
    found += [one.numpy().tobytes() for one in made]
    wanted = [leaf for leaf in leaves if not leaf.stop_gradient]
    try:
        if random.integers(2):
            first = paddle.grad(end, wanted, create_graph=True, allow_unused=True)
            found += [b"" if g is None else g.numpy().tobytes() for g in first]
            end = sum(g.square().sum() for g in first if g is not None)
        end.backward(retain_graph=True)
        end.backward()
        found += [b"" if leaf.grad is None else leaf.grad.numpy().tobytes() for leaf in leaves]
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}".encode())
    return found


def digest(count: int) -> list[str]:
    """Per program what it gave, in short."""
    return [hashlib.sha256(b"|".join(program(seed))).hexdigest() for seed in range(count)]


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        print("\n".join(digest(int(sys.argv[1]))))
