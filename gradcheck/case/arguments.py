"""A call from Python as a function of Tensors: its library, and the Tensors among its arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Backend, is_differentiable, load_backend, package_of
from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.foreign_frameworks import refuse_array
from gradcheck.case.function import Call, TensorFunction
from gradcheck.case.names_in_code import PADDLE_PACKAGES
from gradcheck.case.of_arrays import PLACES
from gradcheck.case.reachable import reachable, unused_name
from gradcheck.case.world import Declared, without_marks
from gradcheck.case.world_call import FunctionOfWorld, WorldCall
from gradcheck.spec.containers import filled, flat_names
from gradcheck.spec.literals import Placement

WorldOf = Callable[[Mapping[str, Placement]], Declared]


def backend_of(function: Any, inputs: Sequence[Any]) -> Backend:
    """The installed Paddle if the call is one of its, else the bundled engine.

    What the inputs and the function are decides first (Tensors, a PyLayer class, an ``nn.Layer``);
    then the modules, classes and functions that the function's code refers to.
    """
    if getattr(sys.modules.get("paddle"), "__name__", "") == "paddle":  # not the engine's facade
        own = {name for value in (function, *inputs) for name in libraries_of(value)}
        if "paddle" in (own or referred(function)):
            return load_backend("paddle")
    return BundledBackend("numpy", "cpu", install=False)


def libraries_of(value: Any) -> set[str]:
    """The libraries that a value is of, by itself or its classes."""
    if isinstance(value, ModuleType):
        found = {value.__name__.partition(".")[0]}
    elif isinstance(value, FunctionType):
        found = {package_of(value)}
    elif isinstance(value, (MethodType, BuiltinFunctionType)):
        # of what it is bound to, as `apply` is to its layer
        found = {package_of(value), *libraries_of(value.__self__)}
    else:
        cls = value if inspect.isclass(value) else type(value)
        found = {package_of(base) for base in cls.__mro__}
    return found.intersection(PADDLE_PACKAGES)


def referred(function: Any) -> set[str]:
    """The libraries that the code of a function refers to, also through functions and classes."""
    return {name for value in reachable(function) for name in libraries_of(value)}


def tensor_function(
    backend: Backend,
    function: Any,
    inputs: Sequence[Any],
    world: WorldOf | None = None,
    anew: Callable[[], Any] | None = None,
    keywords: Mapping[str, Any] = {},
) -> TensorFunction:
    """The call of a layer or function on inputs, its Tensors under the names of its parameters.

    Args:
        keywords: further arguments by name; arrays among them are inputs as well.
        world: makes what is declared of the ranks that it runs on, of what the inputs stand for;
            None for no ranks.
        anew: gives a rank the function, from modules of its own; None where all have the same.

    Raises:
        TypeError: that is no layer or function, or no input needs a gradient.
    """
    if not callable(function):
        raise TypeError(
            f"cannot check {function!r}: pass a PyLayer class, a function of Tensors, "
            "or 'package.module:name' of one"
        )
    is_class = inspect.isclass(function)
    if is_class and issubclass(function, backend.paddle.nn.Layer):
        name = function.__name__
        raise TypeError(
            f"{name} is the class of an nn.Layer: pass an instance, such as check({name}(…), x)"
        )
    is_layer = is_class and hasattr(function, "apply")
    names = parameter_names(function.forward if is_layer else function, len(inputs), int(is_layer))
    stands, given = dict[str, Placement](), dict(zip(names, inputs, strict=True))
    if twice := [name for name in keywords if name in given]:
        raise TypeError(f"kwargs: {twice[0]!r} is an argument as well")
    given |= keywords
    if world is not None:
        given = {name: without_marks(name, value, stands) for name, value in given.items()}
    for number, (name, value) in enumerate(given.items()):
        check_argument(repr(name) if name in keywords else f"argument {number}", value)
    arrays, stopped = argument_arrays(backend, given)
    dtypes = {name: array.dtype.name for name, array in arrays.items()}

    def call_of(function: Any) -> Call:
        apply: Callable[..., Any] = function.apply if is_layer else function

        def call(tensors: Mapping[str, Any]) -> Any:
            values = {name: filled(name, value, tensors) for name, value in given.items()}
            by_name = {name: values.pop(name) for name in keywords}
            return apply(*values.values(), **by_name)

        return call

    call = call_of(function)
    if world is None:
        return TensorFunction(backend, call, arrays, dtypes, stopped, function)
    of_world = WorldCall(backend, world(stands), lambda rank: call_of(anew()) if anew else call)
    made = FunctionOfWorld(backend, of_world, arrays, dtypes, stopped, function)
    made.sources = [call]
    return made


def argument_arrays(
    backend: Backend, given: Mapping[str, Any]
) -> tuple[dict[str, Array], list[str]]:
    """The Tensors and arrays among arguments, as arrays, and which of them need no gradient.

    Raises:
        TypeError: none needs one.
    """
    arrays, stopped = dict[str, Array](), list[str]()
    for variable, whole in given.items():
        for name, value in flat_names(variable, whole).items():
            if isinstance(value, backend.paddle.Tensor):
                array, is_stopped = backend.array(value), value.stop_gradient
            elif isinstance(value, np.ndarray) or (
                isinstance(value, np.generic) and is_differentiable(value)
            ):
                array = np.asarray(value)
                is_stopped = not is_differentiable(array)  # indices, masks
            else:
                continue
            arrays[name] = array.copy()
            if is_stopped:
                stopped.append(name)
    if not any(name not in stopped and is_differentiable(array) for name, array in arrays.items()):
        raise TypeError(
            "no input needs a gradient, so there is none to check: pass floating arrays, or "
            "Tensors with stop_gradient=False; plain numbers are passed on as they are"
        )
    return arrays, stopped


def check_argument(called: str, value: Any) -> None:
    """Raise TypeError if an argument is meant as an array and is none."""
    refuse_array(called, value)
    if not isinstance(value, (list, tuple)) or any(isinstance(item, dict) for item in value):
        return
    numbers = [*flat_names("", value).values()]
    is_numbers = all(isinstance(item, (int, float)) for item in numbers)
    if is_numbers and any(isinstance(item, float) for item in numbers):
        raise TypeError(
            f"{called} is a {type(value).__name__} of numbers, which gets no gradient: "
            "pass np.asarray(x, float)"
        )


def parameter_names(function: Callable[..., Any], count: int, skipped: int = 0) -> list[str]:
    """The names of the first `count` parameters after those `skipped`; made up beyond them."""
    names: list[str] = []
    with suppress(TypeError, ValueError):  # of a builtin nothing is known
        signature = inspect.signature(getattr(function, "forward", function))
        places = [p.name for p in signature.parameters.values() if p.kind in PLACES]
        names = places[skipped:][:count]
    for k in range(len(names), count):
        names.append(unused_name(f"x{k}", names))
    return names
