"""A call from Python as a function of Tensors: whose library it is, and which of its arguments are Tensors."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend, is_differentiable, load_backend, package_of
from gradcheck.backends.bundled import BundledBackend
from gradcheck.case.foreign_frameworks import refuse_array
from gradcheck.case.function import TensorFunction
from gradcheck.case.names_in_code import PADDLE_PACKAGES
from gradcheck.case.reachable import leaves_of, reachable
from gradcheck.case.world_call import Declared, FunctionOfWorld, WorldCall, without_marks
from gradcheck.spec.containers import filled, flat_names
from gradcheck.spec.literals import Stands

WorldOf = Callable[[Mapping[str, Stands]], Declared]


def backend_of(function: Any, inputs: Sequence[Any]) -> Backend:
    """The installed Paddle if the call is one of its, else the bundled engine.

    What the inputs and the function are decides first (Tensors, a PyLayer class, an ``nn.Layer``); then the modules,
    classes and functions that the function's code refers to.
    """
    installed = sys.modules.get("paddle")
    if isinstance(installed, ModuleType) and installed.__name__ == "paddle":
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
    elif isinstance(
        value, (MethodType, BuiltinFunctionType)
    ):  # of what it is bound to, as `apply` is to its layer
        found = {package_of(value), *libraries_of(value.__self__)}
    else:
        cls = value if inspect.isclass(value) else type(value)
        found = {package_of(base) for base in cls.__mro__}
    return found.intersection(PADDLE_PACKAGES)


def referred(function: Any) -> set[str]:
    """The libraries that the code of a function refers to, directly or through other functions and classes."""
    return {name for value in reachable(function) for name in libraries_of(value)}


def tensor_function(
    backend: Backend,
    function: Any,
    inputs: Sequence[Any],
    world: WorldOf | None = None,
    anew: Callable[[], Any] | None = None,
) -> TensorFunction:
    """The call of a layer or function on inputs, its Tensors under the names of its parameters.

    Args:
        world: makes what is declared of the ranks that it runs on, of what the inputs stand for; None for no ranks.
        anew: gives a rank the function, from modules of its own; None where all have the same.

    Raises:
        TypeError: that is no layer or function, or no input needs a gradient.
    """
    if not callable(function):
        raise TypeError(
            f"cannot check {function!r}: pass a PyLayer class, a function of Tensors, or 'package.module:name' of one"
        )
    if inspect.isclass(function) and issubclass(function, backend.paddle.nn.Layer):
        name = function.__name__
        raise TypeError(
            f"{name} is the class of an nn.Layer: pass an instance, such as check({name}(…), x)"
        )
    is_layer = inspect.isclass(function) and hasattr(function, "apply")
    names = parameter_names(
        function.forward if is_layer else function, len(inputs), skipped=1 if is_layer else 0
    )
    stands, given = dict[str, Stands](), dict(zip(names, inputs, strict=True))
    if world is not None:
        given = {name: without_marks(name, value, stands) for name, value in given.items()}
    for number, value in enumerate(given.values()):
        check_argument(number, value)
    arrays, dtypes, stopped = {}, {}, []
    for name, value in [
        one for variable, whole in given.items() for one in flat_names(variable, whole).items()
    ]:
        is_tensor = isinstance(value, backend.paddle.Tensor)
        if (
            is_tensor
            or isinstance(value, np.ndarray)
            or (isinstance(value, np.generic) and is_differentiable(value))
        ):
            array = backend.array(value) if is_tensor else np.asarray(value)
            if (
                value.stop_gradient if is_tensor else not is_differentiable(array)
            ):  # indices, masks have none either
                stopped.append(name)
            arrays[name], dtypes[name] = array.copy(), array.dtype.name
    if not any(name not in stopped and is_differentiable(array) for name, array in arrays.items()):
        raise TypeError(
            "no input needs a gradient, so there is none to check: pass floating arrays, or Tensors with "
            "stop_gradient=False; plain numbers are passed on as they are"
        )

    def called(function: Any) -> Callable[[dict[str, Any]], Any]:
        apply: Callable[..., Any] = function.apply if is_layer else function
        return lambda tensors: apply(
            *(filled(name, value, tensors) for name, value in given.items())
        )

    call = called(function)
    if world is not None:
        of_world = WorldCall(backend, world(stands), lambda rank: called(anew()) if anew else call)
        made: TensorFunction = FunctionOfWorld(backend, of_world, arrays, dtypes, stopped)
        made.sources = [call]
        made.subject = function
        return made
    made = TensorFunction(backend, call, arrays, dtypes, stopped)
    made.subject = function
    made.leaves_named = functools.partial(leaves_of, backend, function)
    return made


def check_argument(number: int, value: Any) -> None:
    """See that an argument is nothing that is meant as an array and is none. Raises TypeError."""
    refuse_array(f"argument {number}", value)
    kind = type(value)
    if (
        isinstance(value, (list, tuple))
        and value
        and all(isinstance(one, (int, float, list, tuple)) for one in value)
    ):
        numbers = flat_names("", value).values()
        if all(isinstance(one, (int, float)) for one in numbers) and any(
            isinstance(one, float) for one in numbers
        ):
            raise TypeError(
                f"argument {number} is a {kind.__name__} of numbers, which gets no gradient: pass np.asarray(x, float)"
            )


def parameter_names(function: Callable[..., Any], count: int, skipped: int = 0) -> list[str]:
    """The names of the first `count` parameters of a function after those `skipped`; made up beyond them."""
    try:
        parameters = list(
            inspect.signature(getattr(function, "forward", function)).parameters.values()
        )
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters[skipped:] if p.kind in kinds][:count]
    made_up = [f"x{k}" for k in range(len(names), count)]
    return names + [f"argument {name}" if name in names else name for name in made_up]
