"""A scenario's code: compiled so that errors point into the spec, run in a namespace of its own, its calls counted."""

from __future__ import annotations

import functools
import traceback
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any

from gradcheck.case.source_positions import frames_of, is_in

Namespace = dict[str, Any]

GRADIENT_FUNCTIONS = frozenset({"append_backward", "backward", "grad", "gradients"})
"""Paddle's public functions that take gradients."""
GRADIENT_MODULE = "pylayer.autograd"
"""Where the engine takes them, whatever its own functions are called."""
ENGINES = frozenset({"pylayer", "paddle"})


def run_source(source: str, path: str, first_line: int, namespace: Namespace) -> None:
    """Run `source`, which stands in the file `path` from `first_line` on, in `namespace`."""
    exec(compiled("\n" * (first_line - 1) + source, path, "exec"), namespace)


@functools.lru_cache(maxsize=8)
def compiled(source: str, path: str, mode: str) -> CodeType:
    """The code of a text; the ranks of a world run the same."""
    return compile(source, path, mode)


def compile_expression(expression: str, path: str, line: int) -> CodeType:
    """An expression that stands in the file `path` at `line`, ready for ``eval``."""
    return compiled("\n" * (line - 1) + expression.strip(), path, "eval")


def new_namespace(paddle: ModuleType) -> Namespace:
    """What a layer's code finds without importing it: paddle, PyLayer and np, as the documents write them."""
    import numpy as np

    return {"__name__": "__main__", "paddle": paddle, "PyLayer": paddle.autograd.PyLayer, "np": np}


def count_calls(layer: type, calls: Counter[str]) -> None:
    """Have `calls` count the forward and backward calls of every subclass of `layer` that others than gradcheck define
    from now on."""

    def count_subclass(cls: Any, **kwargs: Any) -> None:
        for name in ("forward", "backward") if not cls.__module__.startswith("gradcheck.") else ():
            if name in vars(cls):
                setattr(cls, name, counted(name, vars(cls)[name], calls))

    layer.__init_subclass__ = classmethod(count_subclass)  # type: ignore[assignment,arg-type]


def counted(name: str, method: Any, calls: Counter[str]) -> Any:
    """`method`, static, class or plain, counting its calls under `name`."""
    function: Callable[..., Any] = getattr(method, "__func__", method)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return function(*args, **kwargs)

    return type(method)(wrapper) if isinstance(method, (staticmethod, classmethod)) else wrapper


def raised_by_scenario(path: str, error: BaseException) -> bool:
    """Whether the code of the spec `path`, or the engine at its behest, raised the error: if not, we have a bug.

    What a rank in a process of its own raised brings the frames of that process along.
    """
    if hasattr(error, "frames_of_rank"):
        return True
    engine = any(package_of_frame(frame) in ENGINES for frame, _ in traceback.walk_tb(error.__traceback__))
    return engine or isinstance(error, ImportError) or is_in(frames_of(error), path)


def package_of_frame(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def phase_of(error: BaseException) -> str:
    """``backward`` if the error was raised while gradients were taken, else ``forward``."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        public = package_of_frame(frame) in ENGINES and frame.f_code.co_name in GRADIENT_FUNCTIONS
        if public or frame.f_globals.get("__name__") == GRADIENT_MODULE:
            return "backward"
    return "forward"
