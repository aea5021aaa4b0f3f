"""Leaving out casts to fewer digits, to compute a layer's formulas without its own rounding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

import numpy as np


class Casts(local):
    """The handling of casts in this thread. A ContextVar would not work, because kernels run in
    another context.
    """

    left_out: set[str] | None = None
    """Collects the names of dtypes whose casts were left out; None if all casts are made."""


casts = Casts()


@contextmanager
def casts_left_out(noted: set[str]) -> Iterator[None]:
    """Let casts to floating dtypes of fewer digits return plain copies in the ``with`` block, in
    this thread.

    Args:
        noted: collects the names of dtypes whose casts were left out.
    """
    before, casts.left_out = casts.left_out, noted
    try:
        yield
    finally:
        casts.left_out = before


def leaves_out(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a cast from one dtype to another is left out at present: if it is to fewer bytes."""
    noted = casts.left_out
    kinds = {"c"} if dtype.kind == "c" else {"f", "V"}  # V: bfloat16
    if noted is None or not {dtype.kind, wanted.kind} <= kinds or wanted.itemsize >= dtype.itemsize:
        return False
    noted.add(wanted.name)
    return True
