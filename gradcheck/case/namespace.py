"""A scenario's code: compiled so that errors point into the spec, run in a namespace of its own, its calls counted."""

from __future__ import annotations

import ast
import functools
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

Namespace = dict[str, Any]

GRADIENT_FUNCTIONS = frozenset({"backward", "grad", "gradients", "append_backward"})
ENGINES = frozenset({"pylayer", "paddle"})


def run_source(source: str, path: str, first_line: int, namespace: Namespace) -> None:
    """Run `source`, which stands in the file `path` from `first_line` on, in `namespace`."""
    tree = ast.parse(source, filename=path)
    ast.increment_lineno(tree, first_line - 1)
    exec(compile(tree, path, "exec"), namespace)


def compile_expression(expression: str, path: str, line: int) -> CodeType:
    """An expression that stands in the file `path` at `line`, ready for ``eval``."""
    tree = ast.parse(expression.strip(), filename=path, mode="eval")
    ast.increment_lineno(tree, line - 1)
    return compile(tree, path, "eval")


def new_namespace(paddle: ModuleType) -> Namespace:
    """What a layer's code finds without importing it: paddle, PyLayer and np, as the documents write them."""
    import numpy as np

    return {"__name__": "__main__", "paddle": paddle, "PyLayer": paddle.autograd.PyLayer, "np": np}


def import_reference(reference: str, folder: Path) -> Any:
    """The object that ``package.module:name`` names, found from the spec's folder and the current directory too.

    Raises:
        ImportError: there is no such module or name.
    """
    sys.path[:0] = [str(folder), str(Path.cwd())]
    module_name, _, name = reference.partition(":")
    value: Any = import_module(module_name)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            raise ImportError(f"module {module_name!r} has no {name!r}") from error
    return value


def count_calls(layer: type, calls: Counter[str]) -> None:
    """Have `calls` count the forward and backward calls of every subclass of `layer` defined from now on."""

    def count_subclass(cls: Any, **kwargs: Any) -> None:
        for name in ("forward", "backward"):
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
    """Whether the code in the spec `path`, or the engine at its behest, raised the error:
    if not, it is a bug of ours."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, ImportError) or any(
        f.f_code.co_filename == path or package_of(f) in ENGINES for f in frames
    )


def package_of(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def phase_of(error: BaseException) -> str:
    """``backward`` if the error was raised while gradients were taken, else ``forward``."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if package_of(frame) in ENGINES and frame.f_code.co_name in GRADIENT_FUNCTIONS:
            return "backward"
    return "forward"


def line_in(path: str, error: BaseException) -> int:
    """The innermost line of the file `path` that the error passed through; 0 if it passed through none."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    return lines[-1] if lines else 0


def describe(error: BaseException) -> str:
    """The error in one line: its type and message, and its notes."""
    return " · ".join([f"{type(error).__name__}: {error}".strip(), *getattr(error, "__notes__", [])])
