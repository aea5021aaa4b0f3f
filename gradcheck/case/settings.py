"""What a layer sets for a whole process is in force while the layer runs, not while gradcheck computes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def settings_of_its_own() -> Iterator[None]:
    """A block after which NumPy's handling of errors and the filters of warnings are as they were before it."""
    filters = list(warnings.filters)
    try:
        with np.errstate():
            yield
    finally:
        if list(warnings.filters) != filters:
            warnings.filters[:] = filters  # type: ignore[index]
            with warnings.catch_warnings():  # makes Python look at the filters anew
                pass
