"""Every wrong entry of every Jacobian, for mode ``full``: by sums over columns or rows wherever these would show it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradcheck.causes.wrong_entries import claimed_diagonal, claimed_jacobians, columns, of_columns, rows_by_tape
from gradcheck.checking.arrays import EPS, Array, flat, module_of
from gradcheck.checking.decide import POWER
from gradcheck.checking.point import Entry
from gradcheck.checking.probe import ROUNDING, Probe, Prober, granted, tape_diff

MOST_JACOBIAN_ENTRIES = 2**25
"""Entries of a Jacobian that mode ``full`` computes at most."""


def all_wrong_entries(prober: Prober) -> list[Entry] | None:
    """Every wrong entry of every Jacobian, for mode ``full``; None where it is too large or complex."""
    point = prober.point
    if point.complex or sum(x.size for x in point.x) * point.outputs.size > MOST_JACOBIAN_ENTRIES:
        return None
    if point.witnessed:
        return list(rows_by_tape(prober, None, np.inf, rows_in_doubt(prober)))
    if not point.by_rows:
        return None
    probe, jacobians = prober.probe(by_rows=True, whole=True), claimed_jacobians(point)
    doubted = columns_in_doubt(prober, probe, jacobians)
    return [
        entry
        for number, (claimed, mask) in enumerate(zip(jacobians, doubted, strict=True))
        for entry in of_columns(prober, number, probe, claimed, *columns(prober, number, probe, mask))
    ]


def rows_in_doubt(prober: Prober) -> list[int]:
    """The rows of the Jacobian that have to be compared by themselves: all if backward differs from the tape for a
    random cotangent, else those with an entry so small beside others of its column that an error of half of its
    digits would not have shown there."""
    point = prober.point
    u, gradients = prober.claimed()
    found = tape_diff(point, u, gradients, None, prober.rtol)
    rows = range(u.size)
    if found.wrong is not None:
        return list(rows)
    if all(claimed_diagonal(prober, u, gradients, number) is not None for number in range(len(point.x))):
        return []  # each column is one entry
    bounds = flat([granted(point, c, t, prober.rtol) for c, t in zip(found.claimed, found.taped, strict=True)])
    bounds = np.fmax(bounds, flat(found.bounds)) if found.bounds else bounds
    terms = (u[k] * flat(point.by_tape(point.outputs.unit(k))) for k in rows)
    return [k for k, row in enumerate(terms) if bool(hidden_terms(row, bounds, EPS**0.5).any())]


def hidden_terms(terms: Array, bounds: Array, share: float) -> Array:
    """The terms of sums that are so small that an error of such a share of one is within the bound of its sum."""
    return (share * abs(terms) < bounds) & (terms != 0)


def columns_in_doubt(prober: Prober, probe: Probe, jacobians: Sequence[Array]) -> list[Array]:
    """The same without a tape, as a mask over the columns of each input: all if the differences along a direction are
    not those of backward, else those with an entry of which an error of `POWER` would not have shown in its row."""
    both, xp = probe.derivative.both, module_of(probe.cotangent)
    terms = [j * d.reshape(-1) for j, d in zip(jacobians, probe.direction, strict=True) if d is not None]
    bars = xp.where(probe.derivative.kinked, np.inf, both.bar)
    bars = bars + (ROUNDING + prober.rtol) * sum(abs(t).sum(axis=1) for t in terms)
    agree = bool((abs(sum(t.sum(axis=1) for t in terms) - both.value) <= bars).all())
    return [hidden_terms(t, bars[:, None], POWER).any(axis=0) | (not agree) for t in terms]
