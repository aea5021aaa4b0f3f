"""Recording NumPy code: the interface.

    with recording_numpy(Code([layer])) as session:
        out = layer.apply(x)
    session.leaks

In the block ``Tensor.numpy()`` and ``np.asarray(tensor)`` give arrays that stand for the Tensor. What NumPy does to
them is done by operations of the engine, which any watch in force sees; ``paddle.to_tensor`` takes them back. Values
that go where that cannot be seen are leaks: `session.leaks` has the file, the line and what took them, and the watch is
told of each (`Watch.left`). The block changes nothing of NumPy: code reachable from the functions that are given sees
stand-ins for NumPy's modules and functions until the block ends. Only the thread that entered it is recorded.

A cast to a dtype of fewer digits (``x.astype("float32")``) is the engine's operation `cast`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pylayer.ops.creation import to_tensor
from pylayer.tensor import Tensor
from pylayer.watch import exchanged_by
from pylayer.watch.numpy_array import Session
from pylayer.watch.numpy_proxy import Code, stand_ins
from pylayer.watch.scipy_rules import LINALG

assert LINALG  # its rules, and those of NumPy, are in the tables


@contextmanager
def recording_numpy(code: Code, exact: bool = True) -> Iterator[Session]:
    """Record the NumPy code of a call made in the block, in this thread.

    Args:
        code: what is called.
        exact: nothing changes the values that operations give, so a rule whose result is not NumPy's is not believed.
    """
    session = Session(code.holds, exact)
    with stand_ins(code), exchanged_by(session):
        try:
            yield session
        finally:
            session.open = False


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy arrays as one of Tensors: it gets their values, and what it returns becomes Tensors."""

    @functools.wraps(function)
    def call(*tensors: Any, **options: Any) -> Any:
        found = function(*(t.numpy() if isinstance(t, Tensor) else t for t in tensors), **options)
        return as_tensors(found)

    return call


def as_tensors(value: Any) -> Any:
    """Arrays, in lists and tuples as well, as Tensors."""
    if isinstance(value, (list, tuple)) and any(np.ndim(v) or hasattr(v, "dtype") for v in value):
        return tuple(as_tensors(v) for v in value)
    return value if value is None or isinstance(value, Tensor) else to_tensor(value)
