"""Ways in which right backwards are broken, whatever the layer, and which of them rounding could hide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from everyday.definition import Gradients, Layer, Mutation

MUTANTS = 10
"""Of each layer."""


def on_gradient(change: Callable[[Any, Any], Any]) -> Callable[[int, float], Mutation]:
    """``change(gradient, size)`` of one input's gradient; `size` is how large a small mistake is."""

    def operator(which: int, size: float) -> Mutation:
        def mutate(gradients: Callable[..., Gradients]) -> Callable[..., Gradients]:
            def mutant(x: Any, y: Any, g: Any) -> Gradients:
                found = gradients(x, y, g)
                changed = [k for k, d in enumerate(found) if d is not None]
                k = changed[which % len(changed)]
                found[k] = np.array(change(np.array(found[k]), size), dtype=found[k].dtype)
                return found

            return mutant

        return mutate

    return operator


def on_arguments(change: Callable[..., tuple[Any, Any, Any]]) -> Callable[[int, float], Mutation]:
    """``change(inputs, outputs, cotangents)`` before the right backward sees them."""
    return lambda which, size: lambda gradients: lambda x, y, g: gradients(*change(list(x), list(y), list(g)))


def one_dead(d: Any, size: float) -> Any:
    """The element whose gradient is the median of those that are not 0."""
    alive = np.flatnonzero(d)
    if alive.size:
        order = np.argsort(np.abs(d.reshape(-1)[alive]), kind="stable")
        d.reshape(-1)[alive[order[alive.size // 2]]] = 0
    return d


def one_row(d: Any, size: float) -> Any:
    if d.ndim:
        d[d.shape[0] // 3] *= 1 + size
    return d


def transposed(d: Any, size: float) -> Any:
    return d.swapaxes(-1, -2) if d.ndim >= 2 and d.shape[-1] == d.shape[-2] else d


def real_part(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of real numbers on real and imaginary parts."""
    return lambda g: change(g.real) + 1j * change(g.imag) if g.dtype.kind == "c" else change(g)


def added(extra: Callable[[Any, Any], Any]) -> Callable[[int, float], Mutation]:
    """``extra(g, x)`` added to the gradient of the first input, if the output has its shape."""

    def operator(which: int, size: float) -> Mutation:
        def mutate(gradients: Callable[..., Gradients]) -> Callable[..., Gradients]:
            def mutant(x: Any, y: Any, g: Any) -> Gradients:
                found = gradients(x, y, g)
                if found[0] is not None and found[0].shape == g[0].shape and found[0].dtype == g[0].dtype:
                    found[0] = np.asarray(found[0] + extra(g[0], x[0]), dtype=found[0].dtype)
                return found

            return mutant

        return mutate

    return operator


def stale(x: list[Any], y: list[Any], g: list[Any]) -> tuple[Any, Any, Any]:
    """The first input is that of a call before."""
    return [x[0] * (1.01 if x[0].dtype.kind in "fc" else 1), *x[1:]], y, g


def swapped(x: list[Any], y: list[Any], g: list[Any]) -> tuple[Any, Any, Any]:
    """The first two saved inputs in the wrong order, where their shapes allow it."""
    same = len(x) > 1 and x[0].shape == x[1].shape and x[0].dtype == x[1].dtype
    return ([x[1], x[0], *x[2:]] if same else x), y, g


OPERATORS: dict[str, Callable[[int, float], Mutation]] = {
    "sign": on_gradient(lambda d, size: -d),
    "one wrong row": on_gradient(one_row),
    "stale input": on_arguments(stale),
    "one dead element": on_gradient(one_dead),
    "a factor near 1": on_gradient(lambda d, size: d * (1 + size)),
    "swapped inputs": on_arguments(swapped),
    "rolled": on_gradient(lambda d, size: np.roll(d, 1, -1) if d.ndim else d),
    "over N": on_gradient(lambda d, size: d / d.shape[-1] if d.ndim else d / 2),
    "first output alone": on_arguments(lambda x, y, g: (x, y, [g[0], *(0 * c for c in g[1:])])),
    "mean over the first axis": on_gradient(lambda d, size: d * 0 + d.mean(0) if d.ndim else d),
    "missing term": on_gradient(lambda d, size: d - d.mean(-1, keepdims=True) if d.ndim else d / 3),
    "transposed": on_gradient(transposed),
    "max(g, 0)": on_arguments(lambda x, y, g: (x, y, [real_part(lambda c: np.maximum(c, 0))(c) for c in g])),
    "output rounded": on_arguments(lambda x, y, g: (x, [np.round(v, 2) for v in y], g)),
    "zero": on_gradient(lambda d, size: 0 * d),
    "factor 2": on_gradient(lambda d, size: 2 * d),
    "clip(g)": on_arguments(lambda x, y, g: (x, y, [real_part(lambda c: np.clip(c, -1, 1))(c) for c in g])),
    "flipped": on_gradient(lambda d, size: np.flip(d, 0) if d.ndim else d),
    "plus a constant": on_gradient(lambda d, size: d + size * np.abs(d).max(initial=0)),
    "straight through": added(lambda g, x: g),
    "a tenth of g added": added(lambda g, x: g * 0.1),
    "conjugate": on_gradient(lambda d, size: d.conj()),
}
"""By name: a mutation for the number of an input and the size of a small mistake."""

OF_DEAD_GRADIENTS: dict[str, Callable[[int, float], Mutation]] = {
    "g subtracted": added(lambda g, x: -g),
    "g · x added": added(lambda g, x: g * x),
    "255 g added": added(lambda g, x: 255 * g),
    "g / 255 added": added(lambda g, x: g / 255),
    "|g| added": added(lambda g, x: np.abs(g)),
    "g added where x is large": added(lambda g, x: g * (np.abs(x) > 0.5)),
    "g added in one row": added(lambda g, x: np.concatenate([g[:1], 0 * g[1:]])),
    "the mean of g added": added(lambda g, x: 0 * g + g.mean(-1, keepdims=True)),
}
"""More for layers whose right gradient is 0, so that what changes a gradient by a factor changes nothing."""


def visible(layer: Layer, mutation: Mutation, inputs: Sequence[Any]) -> bool:
    """Whether rounding cannot hide a mutation.

    With uᵀF of the outputs rounded at random, its error is about ε‖u∘y‖; a central difference at its best step, h
    about ε^⅓ of the inputs, is then good to ε^⅔‖u∘y‖ (Nocedal & Wright, Numerical Optimization, 8.1). What the
    mutation changes along such a step must be four times as much.
    """
    outputs = layer.outputs(inputs)
    computed = np.float32 if layer.coarse else inputs[0].real.dtype
    precision = np.finfo(computed if computed in (np.float32, np.float64) else np.float64).eps ** (2 / 3)
    for seed in range(3):
        random = np.random.default_rng(seed)
        cotangents = [cotangent(random, y) for y in outputs]
        noise = np.sqrt(sum((np.abs(u * y) ** 2).sum() for u, y in zip(cotangents, outputs, strict=True)))
        right = layer.gradients(inputs, outputs, cotangents)
        found = mutation(layer.gradients)(inputs, outputs, cotangents)
        for a, b, x in zip(right, found, inputs, strict=True):
            if a is not None:
                change = np.linalg.norm((a - b).reshape(-1).astype(complex)) * np.sqrt(np.mean(np.abs(x) ** 2))
                if change > 4 * precision * noise:
                    return True
    return False


def cotangent(random: np.random.Generator, y: Any) -> Any:
    u = random.standard_normal(y.shape) + (1j * random.standard_normal(y.shape) if y.dtype.kind == "c" else 0)
    return np.asarray(u, dtype=y.dtype)


def mutants(layer: Layer, number: int, inputs: Sequence[Any]) -> Iterator[tuple[str, Mutation]]:
    """Ten visible mutations of a layer; its number in the list decides with which operator and input it begins."""
    size = 0.05 if layer.coarse else 1e-3
    names = list(OPERATORS)
    order = [*names[number % len(names) :], *names[: number % len(names)], *OF_DEAD_GRADIENTS]
    count = 0
    for turn, name in enumerate(order):
        mutation = (OPERATORS | OF_DEAD_GRADIENTS)[name](number + turn, size)
        if count < MUTANTS and visible(layer, mutation, inputs):
            count += 1
            yield name, mutation
