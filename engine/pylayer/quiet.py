"""Kernels do not warn: NumPy's warnings of infinities and NaN are for those who call NumPy.

``np.errstate`` around each kernel would take 24 % of a chain of small operations. The state is a context variable since
NumPy 2: a copy of the context in which it is set once is entered at no measurable cost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import numpy as np

CONTEXTUAL = int(np.__version__.partition(".")[0]) >= 2


def _run_in_errstate(function: Callable[..., Any], *arguments: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*arguments)


def _runner() -> Callable[..., Any]:
    if not CONTEXTUAL:
        return _run_in_errstate
    context = copy_context()
    context.run(np.seterr, all="ignore")
    return context.run


class _Quiet(threading.local):
    """`run` calls a kernel. One per thread: a context is entered by one at a time, and a kernel calls no other."""

    def __init__(self) -> None:
        self.run = _runner()


quiet = _Quiet()

run_alone = _runner()
"""The same in a context that all threads share: a RuntimeError if another is in it. To find that of a thread takes 4 %
of a chain of small operations."""
