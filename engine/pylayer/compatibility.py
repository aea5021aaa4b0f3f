"""Names that programs around layers import from Paddle's inner modules: what the process is, and modes to run in."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext as nullcontext
from importlib import import_module
from typing import Any

from pylayer.dtype import as_dtype
from pylayer.static import variable as static
from pylayer.static.recorder import disable_static, enable_static, in_dynamic_mode
from pylayer.tensor import Tensor


def dygraph_tracer() -> object | None:
    """What records operations in Paddle's dynamic mode: something there, None in static mode."""
    return dygraph_tracer if in_dynamic_mode() else None


@contextlib.contextmanager
def dygraph_guard(tracer: Any) -> Iterator[None]:
    """A block in dynamic mode, or for no tracer in static mode, whatever the mode around it."""
    before = dygraph_tracer()
    (disable_static if tracer else enable_static)()
    try:
        yield
    finally:
        (disable_static if before else enable_static)()


def guard(place: Any = None) -> contextlib.AbstractContextManager[None]:
    """A block in dynamic mode."""
    return dygraph_guard(dygraph_tracer)


static_guard = functools.partial(dygraph_guard, None)
"""A block in static mode."""


class _AnyVariable(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor if in_dynamic_mode() else static.Variable)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, static.Variable)


class Variable(static.Variable, metaclass=_AnyVariable):
    """What the mode computes with: Tensors are instances in dynamic mode, the Variables of programs in static mode."""


def grad_var_suffix() -> str:
    """What the names of gradients end in."""
    return "@GRAD"


def wrap_decorator(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator whose results keep the name and the signature of what is decorated."""

    @functools.wraps(decorator)
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        decorated = decorator(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return decorated(*args, **kwargs)

        return call

    return decorate


in_dygraph_mode = in_dynamic_or_pir_mode = enabled = in_dynamic_mode  # there is no new intermediate representation
enable_dygraph, disable_dygraph = disable_static, enable_static
_dygraph_guard, _dygraph_tracer = dygraph_guard, dygraph_tracer
convert_np_dtype_to_dtype_ = as_dtype
signature_safe_contextmanager = wrap_decorator(contextlib.contextmanager)

_flags: dict[str, Any] = {}


def set_flags(flags: dict[str, Any]) -> None:
    """Keep Paddle's flags, for `get_flags`: none changes what the engine does."""
    _flags.update(flags)


def get_flags(flags: Any) -> dict[str, Any]:
    """The flags that were set; None for others."""
    return {name: _flags.get(name) for name in ([flags] if isinstance(flags, str) else flags)}


_counts: dict[str, itertools.count[int]] = defaultdict(itertools.count)


def generate(key: str) -> str:
    """``key_0``, ``key_1`` …: a name not given before."""
    return f"{key}_{next(_counts[key])}"


@contextlib.contextmanager
def name_guard(new_generator: Any = None) -> Iterator[None]:
    """A block in which names are counted from the start."""
    before = dict(_counts)
    _counts.clear()
    try:
        yield
    finally:
        _counts.clear()
        _counts.update(before)


def try_import(module_name: str, err_msg: str | None = None) -> Any:
    """The module of that name.

    Raises:
        ImportError: there is none; with `err_msg` if given.
    """
    try:
        return import_module(module_name)
    except ImportError:
        raise ImportError(err_msg or f"Failed importing {module_name}. Install it first.") from None
