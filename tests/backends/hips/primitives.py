"""Primitives of HIPS autograd, each with right vjps, and vjps with mistakes.

A row of `PRIMITIVES` has the function, its right vjps, and by name the wrong ones, each with a part
of the line of the forward at which the mistake is; the inputs are those of `INPUTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import autograd.numpy as np
import numpy as plain
from autograd.extend import defvjp, primitive

RANDOM = plain.random.default_rng(4)
X, W, M = RANDOM.standard_normal((3, 4)), RANDOM.standard_normal(4), RANDOM.standard_normal((4, 5))
Vjp = Callable[..., Any]


class Row(NamedTuple):
    """A primitive before `defvjp`."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    right: tuple[Vjp | None, ...]
    wrong: dict[str, tuple[tuple[Vjp | None, ...], str]]


def tanh(x):
    e = np.exp(2 * x)
    return (e - 1) / (e + 1)


def logsumexp(x):
    top = x.max(axis=1, keepdims=True)
    total = plain.exp(x - top).sum(axis=1, keepdims=True)
    return (plain.log(total) + top)[:, 0]


def softmax(x):
    e = plain.exp(x - x.max(axis=-1, keepdims=True))
    total = e.sum(axis=-1, keepdims=True)
    return e / total


def softmax_vjp(ans, x):
    return lambda g: ans * (g - (g * ans).sum(axis=-1, keepdims=True))


def normalize(x, w):
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    unit = x / length
    return w * unit


def normalize_x(ans, x, w):
    def vjp(g):
        length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
        unit, d = x / length, g * w
        return (d - unit * np.sum(d * unit, axis=-1, keepdims=True)) / length

    return vjp


def normalize_w(ans, x, w):
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    return lambda g: np.sum(g * x / length, axis=0)


def linear(x, m, bias=0.0):
    product = x @ m
    return product + bias


def huber(x):
    size = plain.abs(x)
    inner = x * x / 2
    return plain.where(size < 1, inner, size - 0.5)


def huber_vjp(ans, x):
    return lambda g: g * plain.clip(x, -1, 1)


def gather(x, places):
    rows = x[places]
    return rows * rows


def gather_vjp(ans, x, places):
    def vjp(g):
        gradient = plain.zeros_like(x)
        plain.add.at(gradient, places, 2 * x[places] * g)
        return gradient

    return vjp


def gather_overwrites(ans, x, places):
    def vjp(g):
        gradient = plain.zeros_like(x)
        gradient[places] = 2 * x[places] * g
        return gradient

    return vjp


def square_modulus(z):
    return (z * plain.conj(z)).real


PRIMITIVES = {
    "tanh": Row(
        tanh, (X,), (lambda ans, x: lambda g: g * (1 - ans**2),),
        {
            "a sign": ((lambda ans, x: lambda g: g * (1 + ans**2),), "(e - 1) / (e + 1)"),
            "a factor": ((lambda ans, x: lambda g: 2 * g * (1 - ans**2),), ""),
        },
    ),
    "logsumexp": Row(
        logsumexp, (X,), (lambda ans, x: lambda g: g[:, None] * np.exp(x - ans[:, None]),),
        {"not normalized": ((lambda ans, x: lambda g: g[:, None] * np.exp(x),), "")},
    ),
    "softmax": Row(
        softmax, (X,), (softmax_vjp,),
        {
            "its sum ignored": ((lambda ans, x: lambda g: ans * g,), "e.sum"),
            "the cotangent not summed": (
                (lambda ans, x: lambda g: ans * (g - (g * ans).mean(axis=-1, keepdims=True)),), "",
            ),
        },
    ),
    "normalize": Row(
        normalize, (X, W), (normalize_x, normalize_w),
        {
            "a length taken as constant": (
                (
                    lambda ans, x, w: lambda g: g * w / np.sqrt(np.sum(x * x, axis=-1, keepdims=True)),
                    normalize_w,
                ),
                "length",
            ),
            "w without its vjp": ((normalize_x, None), ""),
        },
    ),
    "linear": Row(
        linear, (X, M), (
            lambda ans, x, m, bias=0.0: lambda g: g @ m.T,
            lambda ans, x, m, bias=0.0: lambda g: x.T @ g,
        ),
        {
            "half a matrix": (
                (
                    lambda ans, x, m, bias=0.0: lambda g: g @ m.T,
                    lambda ans, x, m, bias=0.0: lambda g: x.T @ g / 2,
                ),
                "x @ m",
            )
        },
    ),
    "huber": Row(
        huber, (2 * X,), (huber_vjp,),
        {"no linear part": ((lambda ans, x: lambda g: g * x,), "")},
    ),
    "gather": Row(
        gather, (X, plain.array([0, 2, 2])), (gather_vjp,),
        {"places overwritten": ((gather_overwrites,), "x[places]")},
    ),
    "square modulus": Row(
        square_modulus, (X + 1j * X[::-1],), (lambda ans, z: lambda g: 2 * g * plain.conj(z),),
        {"conjugated": ((lambda ans, z: lambda g: 2 * g * z,), "")},
    ),
}  # fmt: skip


def made(function: Callable[..., Any], vjps: tuple[Vjp | None, ...]) -> Any:
    """A primitive of its own with these vjps."""
    wrapped = primitive(function)
    defvjp(wrapped, *vjps)
    return wrapped
