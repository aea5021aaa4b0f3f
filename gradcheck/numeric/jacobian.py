"""Every entry of a Jacobian, in as few evaluations as its structure allows.

Where slice i of an output depends on slice i of an input alone, for every i (the batch axis of most layers, all axes of
an elementwise one), the slices are moved together: columns whose rows do not overlap share one perturbation (Curtis,
Powell and Reid 1974). Axes pair up only if neither the function, on random probes, nor the backward, in what it claims,
crosses them, so that a missing or surplus entry cannot hide. An n × n matrix product takes n perturbations, not n².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcheck.numeric.arrays import Array, module_of, only
from gradcheck.numeric.derivative import Interval, derivative_of, quick
from gradcheck.numeric.line import USUAL, Line, Scan
from gradcheck.numeric.noise import stairs

STRUCTURE_STEP = 2.0**-6
"""By which half of an input is moved to see which outputs change, relative to its scale: so large that what depends on
it changes by more than rounding."""
MOST_CONFIRMED = 8
"""Wrong columns that a whole scan confirms; then the quick look has proved itself for this function."""
AGREES = 2.0**-40
"""How well two exact gradients agree at least, relative to the row's largest entry beside which others may be cancelled
sums."""


@dataclass
class Block:
    """The part of the Jacobian that belongs to one input and one output; `vjp` and `taped` take a cotangent of the
    output's shape."""

    line: Callable[[Sequence[Array | None]], Line]
    x: Sequence[Array]
    scales: Sequence[Array]
    number: int
    start: int
    """Where the output begins among the flat outputs."""
    shape: tuple[int, ...]
    vjp: Callable[[Array], Array]
    """What is claimed."""
    taped: Callable[[Array], Array] | None
    """What the tape says, if it is heard."""
    stands_still: bool = False
    """Whether some column looked wrong at close steps, where the function stands still, and is right over the whole
    scan."""

    def along(self, direction: Array) -> Line:
        """The line along a direction of this input."""
        return self.line(only(self.number, direction, self.x))

    def output(self, vector: Array) -> Array:
        """This output's part of a flat vector, in its shape."""
        return vector[self.start : self.start + math.prod(self.shape)].reshape(self.shape)


@dataclass
class Entry:
    """One entry of the Jacobian: an element of an input, one of the flat outputs, both derivatives, and the bar."""

    input: int
    index: int
    output: int
    analytic: float
    numeric: float
    bar: float


def paired_axes(block: Block, random: np.random.Generator) -> list[tuple[int, int]]:
    """The axes of input and output along which the block is diagonal."""
    x, xp = block.x[block.number], module_of(block.x[block.number])
    taken, pairs = set[int](), list[tuple[int, int]]()
    scale = block.scales[block.number]

    def independent(p: int, q: int) -> bool:
        for chosen in halves(x.shape[p]):
            for mask in (chosen, ~chosen):
                inside = xp.asarray(mask)
                moves = inside.reshape([-1 if k == p else 1 for k in range(x.ndim)])
                signs = xp.asarray(random.uniform(0.5, 1, x.shape))
                change = block.output(block.along(scale * signs * moves).at(STRUCTURE_STEP).change)
                if not bool((xp.moveaxis(change, q, 0)[~inside] == 0).all()):
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


def halves(n: int) -> Iterator[np.ndarray[Any, Any]]:
    """Masks over n slices, by the bits of their numbers: of any two slices some mask holds one alone."""
    for bit in range((n - 1).bit_length()):
        yield (np.arange(n) >> bit) % 2 == 0


def wrong_in_block(block: Block, pairs: list[tuple[int, int]], noise: Array, rtol: float) -> Iterator[Entry]:
    """Every entry of the block on which backward and the differences disagree by more than the bar.

    These are not asked where the tape agrees on every entry, and the block has no more rows than columns.

    Args:
        pairs: the paired axes, of input and output.
        noise: of all outputs.
    """
    x, xp = block.x[block.number], module_of(block.x[block.number])
    scale = block.scales[block.number]
    free_in = [k for k in range(x.ndim) if k not in {p for p, _ in pairs}]
    free_out = [k for k in range(len(block.shape)) if k not in {q for _, q in pairs}]
    in_order, out_order = [*(p for p, _ in pairs), *free_in], [*(q for _, q in pairs), *free_out]
    batch, rows = math.prod(x.shape[p] for p, _ in pairs), math.prod(block.shape[k] for k in free_out)
    columns = math.prod(x.shape[k] for k in free_in)

    def matrix(array: Array, order: list[int]) -> Array:
        return xp.transpose(array, order).reshape(batch, -1)

    def back(values: Array, shape: tuple[int, ...], order: list[int]) -> Array:
        moved = values.reshape([shape[k] for k in order])
        return xp.transpose(moved, np.argsort(order).tolist()) if order else moved

    def by_rows(vjp: Callable[[Array], Array]) -> Array:
        found = xp.zeros((batch, rows, columns))
        for row in range(rows):
            one = xp.zeros((batch, rows))
            one[:, row] = 1
            found[:, row] = matrix(vjp(back(one, block.shape, out_order)), in_order)
        return found

    claimed = by_rows(block.vjp)
    if block.taped is not None and rows <= columns:
        taped = by_rows(block.taped)
        bars = AGREES * abs(taped).max(axis=2, keepdims=True) + rtol * xp.maximum(abs(taped), abs(claimed))
        if bool((abs(claimed - taped) <= bars).all()):
            return
    values, bars, wrong = xp.empty_like(claimed), xp.empty_like(claimed), xp.zeros(claimed.shape, bool)
    confirmed = 0
    for column in range(columns):
        one = xp.zeros((batch, columns))
        one[:, column] = 1
        line = block.along(back(one, x.shape, in_order) * scale)
        size = matrix(scale, in_order)[:, column, None]
        mine = claimed[:, :, column]
        for look in (quick, whole):
            found = look(line, noise)
            value, bar = (matrix(block.output(v), out_order) / size for v in (found.value, found.bar))
            bar = bar + rtol * xp.maximum(abs(value), abs(mine))
            apart = ~(abs(mine - value) <= bar)
            if not bool(apart.any()) or confirmed >= MOST_CONFIRMED:
                block.stands_still |= look is whole and bool(xp.isfinite(bar).all())
                break
        confirmed += bool(apart.any())
        values[:, :, column], bars[:, :, column], wrong[:, :, column] = value, bar, apart
    inputs = matrix(xp.arange(x.size).reshape(x.shape), in_order)
    outputs = matrix(xp.arange(math.prod(block.shape)).reshape(block.shape), out_order)
    for b, row, column in zip(*(w.tolist() for w in xp.nonzero(wrong)), strict=True):
        numbers = (float(v[b, row, column]) for v in (claimed, values, bars))
        yield Entry(block.number, int(inputs[b, column]), block.start + int(outputs[b, row]), *numbers)


def whole(line: Line, noise: Array) -> Interval:
    """The derivative by a scan over all usual steps, with the stairs that a single element shows; nothing is known at a
    kink."""
    xp, scan = module_of(noise), Scan(line)
    noise = xp.maximum(noise, stairs(scan))
    scan.extend(USUAL)
    found = derivative_of(scan, noise)
    return Interval(found.both.value, xp.where(found.kinked | found.unclear, xp.inf, found.both.bar))


def halved(xp: Any, size: int, shows: Callable[[Array], bool], most: int) -> Iterator[int]:
    """The single elements of a mask over `size` for which `shows` holds, found by halving; at most `most`."""
    stack = [(0, size)]
    found = 0
    while stack and found < most:
        start, stop = stack.pop()
        mask = xp.zeros(size)
        mask[start:stop] = 1
        if not shows(mask):
            continue
        if stop - start == 1:
            found += 1
            yield start
        else:
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]
