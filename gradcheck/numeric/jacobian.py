"""Every entry of a Jacobian, in as few evaluations as its structure allows.

Where slice i of an output depends on slice i of an input alone, for every i (the batch axis of most layers, all axes of
an elementwise one), the slices are moved together: columns whose rows do not overlap share one perturbation (Curtis,
Powell and Reid 1974). Axes pair up only if neither the function, on random probes, nor the backward, in what it claims,
crosses them, so that a missing or surplus entry cannot hide. An n × n matrix product takes 2n perturbations instead of
2n².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gradcheck.numeric.derivative import Array, flat, module_of
from gradcheck.numeric.probe import ROUNDING, Entry, Point
from gradcheck.numeric.scan import Derivative

PROBES = 2
"""Random halves of an axis that are tried before it counts as paired."""
STRUCTURE_STEP = 2.0**-6


@dataclass
class Block:
    """The part of the Jacobian that belongs to one input and one output."""

    point: Point
    vjp: Callable[[Array], Array]
    """A cotangent of the output's shape to the gradient of the input."""
    number: int
    start: int
    """Where the output begins in the flat vector of all outputs."""
    shape: tuple[int, ...]
    """Of the output."""

    @property
    def input(self) -> Array:
        """The input at the point."""
        return self.point.inputs[self.number]

    def output(self, vector: Array) -> Array:
        """This output's part of a flat vector, in its shape."""
        return vector[self.start : self.start + math.prod(self.shape)].reshape(self.shape)

    def values(self, x: Array) -> Array:
        """The output with the input at `x`."""
        inputs = list(self.point.inputs)
        inputs[self.number] = x.astype(self.input.dtype)
        self.point.evaluations += 1
        return self.output(flat(self.point.function(inputs)))

    def along(self, direction: Array, like: Derivative | None) -> tuple[Array, Array]:
        """Value and bar of the output's derivative: as it was good along another direction, or by a whole scan."""
        part: list[Array | None] = [None] * len(self.point.inputs)
        part[self.number] = direction
        found = self.point.along(part) if like is None else self.point.as_along(part, like)
        return self.output(found.value), self.output(found.bar)


def paired_axes(block: Block, random: np.random.Generator) -> list[tuple[int, int]]:
    """The axes of input and output along which the block is diagonal."""
    x, xp = block.input, module_of(block.input)
    base, taken, pairs = block.values(x), set[int](), list[tuple[int, int]]()
    scale = block.point.scales[block.number]

    def independent(p: int, q: int) -> bool:
        for _ in range(PROBES):
            chosen = random.permutation(x.shape[p]) < (x.shape[p] + 1) // 2
            for mask in (chosen, ~chosen):
                inside = xp.asarray(mask)
                moves = inside.reshape([-1 if k == p else 1 for k in range(x.ndim)])
                signs = xp.asarray(random.uniform(0.5, 1, x.shape))
                after = block.values(x + STRUCTURE_STEP * scale * signs * moves)
                if not bool((xp.moveaxis(after, q, 0)[~inside] == xp.moveaxis(base, q, 0)[~inside]).all()):
                    return False
                cotangent = xp.asarray(random.uniform(0.5, 1, block.shape))
                cotangent = cotangent * inside.reshape([-1 if k == q else 1 for k in range(len(block.shape))])
                if bool((xp.moveaxis(block.vjp(cotangent), p, 0)[~inside] != 0).any()):
                    return False
        return True

    for p, n in enumerate(x.shape):
        for q, m in enumerate(block.shape):
            if n == m and n > 1 and q not in taken and independent(p, q):
                pairs.append((p, q))
                taken.add(q)
                break
    return pairs


def wrong_in_block(block: Block, pairs: list[tuple[int, int]], like: Derivative | None, rtol: float) -> Iterator[Entry]:
    """Every entry of the block on which backward and the numerical derivative disagree by more than the bar.

    Args:
        pairs: the paired axes, of input and output.
        like: the derivative along some direction, for a first look; colours that disagree then, or all without one,
            get a scan.
    """
    x, xp = block.input, module_of(block.input)
    scale = block.point.scales[block.number]
    common = [x.shape[p] for p, _ in pairs]
    free_in = [k for k in range(x.ndim) if k not in {p for p, _ in pairs}]
    free_out = [k for k in range(len(block.shape)) if k not in {q for _, q in pairs}]
    in_order, out_order = [*(p for p, _ in pairs), *free_in], [*(q for _, q in pairs), *free_out]
    batch, rows = math.prod(common), math.prod([block.shape[k] for k in free_out])
    columns = math.prod([x.shape[k] for k in free_in])

    def matrix(array: Array, order: list[int]) -> Array:
        return xp.transpose(array, order).reshape(batch, -1)

    def back(values: Array, shape: tuple[int, ...], order: list[int]) -> Array:
        moved = values.reshape([shape[k] for k in order])
        return xp.transpose(moved, np.argsort(order).tolist()) if order else moved

    analytic = xp.zeros((batch, rows, columns))
    for row in range(rows):
        one = xp.zeros((batch, rows))
        one[:, row] = 1
        analytic[:, row] = matrix(block.vjp(back(one, block.shape, out_order)), in_order)
    in_places = matrix(xp.arange(x.size).reshape(x.shape), in_order)
    out_places = matrix(xp.arange(math.prod(block.shape)).reshape(block.shape), out_order)
    for column in range(columns):
        one = xp.zeros((batch, columns))
        one[:, column] = 1
        direction = back(one, x.shape, in_order) * scale
        size = matrix(scale, in_order)[:, column, None]
        claimed = analytic[:, :, column]
        for first in (like, None) if like is not None else (None,):
            value, bar = (matrix(v, out_order) / size for v in block.along(direction, first))
            bar = bar + (ROUNDING + rtol) * xp.maximum(abs(value), abs(claimed))
            wrong = ~(abs(claimed - value) <= bar)
            if not bool(wrong.any()):
                break
        for b, row in zip(*(w.tolist() for w in xp.nonzero(wrong)), strict=True):
            yield Entry(
                input=block.number,
                index=int(in_places[b, column]),
                output=block.start + int(out_places[b, row]),
                analytic=float(claimed[b, row]),
                numeric=float(value[b, row]),
                bar=float(bar[b, row]),
            )
