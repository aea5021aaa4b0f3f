"""The harness: reads scenarios, runs them, compares gradients with numerical ones, reports.

In Python: `check` gives the verdict on a layer or function, `assert_gradients` raises unless it is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gradcheck.api import GradientMismatch, assert_gradients, check

__all__ = ["GradientMismatch", "__version__", "assert_gradients", "check"]


def __getattr__(name: str) -> Any:  # the command line must not pay for NumPy and the engine
    if name in __all__:
        from gradcheck import api

        return getattr(api, name)
    raise AttributeError(f"module 'gradcheck' has no attribute {name!r}")
