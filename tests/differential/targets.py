"""Every public name of the facade, and how to get at it in either library."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

from described import Library

MODULES = (
    "", "amp", "autograd", "autograd.py_layer", "base", "base.core", "base.dygraph", "base.dygraph.base",
    "base.core.eager", "base.framework", "base.unique_name", "base.wrapped_decorator", "device", "distributed", "distributed.fleet.recompute", "distributed.fleet.utils", "fft",
    "framework", "geometric", "incubate", "incubate.autograd", "incubate.autograd.utils", "jit", "linalg", "nn", "nn.functional",
    "nn.initializer", "nn.utils", "optimizer", "regularizer", "special", "utils",
)  # fmt: skip
"""The facade's modules; static mode has a suite of its own."""


_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor".split()
OPERATORS: dict[str, Callable[..., Any]] = {
    **{f"__{n}__": getattr(operator, f"{n}_" if n in ("and", "or") else n) for n in _BINARY},
    **{f"__r{n}__": lambda x, y, n=n: OPERATORS[f"__{n}__"](y, x) for n in _BINARY},
    **{f"__{n}__": getattr(operator, n) for n in "eq ne lt le gt ge neg abs invert getitem setitem".split()},
}


def module(paddle: Library, name: str) -> Any:
    """A module of the library by its dotted name."""
    for part in filter(None, name.split(".")):
        paddle = getattr(paddle, part)
    return paddle


def public_names(paddle: Library, name: str) -> list[str]:
    """What a facade's module offers, submodules aside."""
    found = vars(module(paddle, name))
    own = {"annotations", "exported", "missing"}
    return [
        n for n, v in found.items() if not n.startswith("_") and n not in own and not isinstance(v, types.ModuleType)
    ]


def tensor_names(paddle: Library) -> list[str]:
    """The methods, properties and operators of Tensor."""
    ours = paddle.Tensor
    own = {"accumulate", "array", "conjugate", "is_same", "node"}  # the engine's, and what Paddle has in static mode
    special = {"__module__", "__annotations__", "__doc__", "__slots__", "__init__", "__dict__", "__weakref__"} | {
        "__array_priority__", "__array_ufunc__", "__static_attributes__", "__firstlineno__",
    }  # fmt: skip
    return [n for n in dir(ours) if not n.startswith("_") and n not in own] + [
        n for n in vars(ours) if n.startswith("__") and n.endswith("__") and n not in special
    ]


def function(paddle: Library, path: str) -> Callable[..., Any]:
    """The function at a dotted path; of Tensor's, one that looks the method up on its first argument."""
    name = path.rpartition(".")[2]
    if not path.startswith("Tensor."):
        return getattr(module(paddle, path.rpartition(".")[0]), name)  # type: ignore[no-any-return]

    if name in OPERATORS:
        return OPERATORS[name]

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(x if isinstance(x, paddle.Tensor) else paddle.Tensor, name)
        if not isinstance(x, paddle.Tensor):
            args = (x, *args)
        return found(*args, **kwargs) if callable(found) else found

    return method
