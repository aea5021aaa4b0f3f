"""The call that `gradcheck.check` gets, as a function of Tensors: its framework, and the Tensors
among its arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import (
    BACKENDS,
    FRAMEWORK_PACKAGES,
    Array,
    Backend,
    backend_of_packages,
    is_differentiable,
    load_backend,
)
from gradcheck.backends.bundled import BundledBackend
from gradcheck.backends.hips import is_primitive
from gradcheck.case.foreign_frameworks import refuse_array, refuse_layer
from gradcheck.case.function import Call, TensorFunction
from gradcheck.case.layer_signature import signature_of
from gradcheck.case.reachable import frameworks_of, reachable
from gradcheck.case.world import WorldDeclaration, without_marks
from gradcheck.case.world_call import FunctionOfWorld, WorldCall
from gradcheck.checking.precision import dtype_name
from gradcheck.spec.containers import fill_leaves, flat_names
from gradcheck.spec.literals import Placement

WorldOf = Callable[[Mapping[str, Placement]], WorldDeclaration]


def backend_of(function: Any, inputs: Sequence[Any], *, is_named: bool = False) -> Backend:
    """The framework of a call: an installed one that is imported, otherwise the bundled engine.

    The types of the inputs and of the function decide first (Tensors, a class of layers, a module);
    then the modules, classes and functions that the function's code refers to.

    Args:
        is_named: whether the user names the framework of a function that names none itself.

    Raises:
        TypeError: the framework of the function cannot be determined; ForeignFrameworkError: the
            framework has no backend.
    """
    imported = sorted((FRAMEWORK_PACKAGES - {"pylayer"}) & sys.modules.keys())
    if imported:
        values = (function, *flat_names("", list(inputs)).values())
        packages = frameworks_of(values) or frameworks_of(reachable(function))
        for name, row in BACKENDS.items():
            if not packages.isdisjoint({*row.packages}.intersection(imported)):
                return load_backend(name)
        if not (packages or is_named or function is None or is_primitive(function)):
            require_engine_only(imported)
    if not is_primitive(function):
        refuse_layer(function)
    return BundledBackend("numpy", "cpu", install=False)


def require_engine_only(packages: Iterable[str]) -> None:
    """Require that a function whose code names no framework, such as ``lambda x: x.tanh()``, can
    only call the engine's methods.

    Raises:
        TypeError: one of the imported packages has its own backend.
    """
    for package in packages:
        if backend_of_packages([package]):
            raise TypeError(
                "neither the function's code nor its inputs say which framework it calls, and "
                f"{package} is imported: pass Tensors of one (a command: -b {package}, or -b numpy "
                "for Paddle's); a function of NumPy arrays has its gradients in backward="
            )


def tensor_function(
    backend: Backend,
    function: Any,
    inputs: Sequence[Any],
    world: WorldOf | None = None,
    anew: Callable[[], Any] | None = None,
    keywords: Mapping[str, Any] = {},
) -> TensorFunction:
    """Make the function of Tensors that calls a layer or function on inputs; Tensors are named by
    its parameters.

    Args:
        keywords: further arguments by name; arrays among them are inputs as well.
        world: returns the declaration of the ranks, given the placement of the inputs; None without
            ranks.
        anew: imports the function for a rank, from modules of that rank; None if all ranks share
            one.

    Raises:
        NotCallableError: it is not a layer or function, a TypeError.
        TypeError: no input needs a gradient.
    """
    name = getattr(function, "__name__", repr(function))
    signature = signature_of(function, name, backend)
    names = signature.names_of(len(inputs))
    placements, arguments = dict[str, Placement](), dict(zip(names, inputs, strict=True))
    if twice := [name for name in keywords if name in arguments]:
        raise TypeError(f"kwargs: {twice[0]!r} is an argument as well")
    arguments |= keywords
    if world is not None:
        arguments = {
            name: without_marks(name, value, placements) for name, value in arguments.items()
        }
    for number, (name, value) in enumerate(arguments.items()):
        check_argument(backend, repr(name) if name in keywords else f"argument {number}", value)
    arrays, stopped = argument_arrays(backend, arguments)
    dtypes = {name: dtype_name(array.dtype) for name, array in arrays.items()}

    def call_of(function: Any) -> Call:
        apply: Callable[..., Any] = function.apply if signature.is_applied else function

        def call(tensors: Mapping[str, Any]) -> Any:
            # A loop, as each evaluation comes here: up to Python 3.11 a comprehension is a call.
            values: list[Any] = []
            for name, value in arguments.items():
                if name in tensors:
                    values.append(tensors[name])
                else:
                    values.append(fill_leaves(name, value, tensors, backend.map_leaves))
            by_name = dict(zip(keywords, values[len(names) :], strict=True))
            return apply(*values[: len(names)], **by_name)

        return call

    call = call_of(function)
    if world is None:
        return TensorFunction(backend, call, arrays, dtypes, stopped, function)
    of_world = WorldCall(backend, world(placements), lambda rank: call_of(anew()) if anew else call)
    world_function = FunctionOfWorld(backend, of_world, arrays, dtypes, stopped, function)
    world_function.sources = [call]
    return world_function


def argument_arrays(
    backend: Backend, arguments: Mapping[str, Any]
) -> tuple[dict[str, Array], list[str]]:
    """The Tensors and arrays among arguments, as arrays, and which of them need no gradient.

    Raises:
        TypeError: none needs one.
    """
    arrays, stopped = dict[str, Array](), list[str]()
    for variable, argument in arguments.items():
        for name, value in flat_names(variable, argument, backend.map_leaves).items():
            if isinstance(value, backend.tensor_type):
                array, is_stopped = backend.array(value), not backend.needs_gradient(value)
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
            "no input needs a gradient, so nothing can be checked: pass floating arrays, or "
            f"Tensors with {backend.words.takes_gradient}; plain numbers are passed on as they are"
        )
    return arrays, stopped


def check_argument(backend: Backend, called: str, value: Any) -> None:
    """Raise TypeError if an argument is meant as an array but is not one."""
    refuse_array(called, value, backend.packages)
    if not isinstance(value, (list, tuple)) or any(isinstance(item, dict) for item in value):
        return
    numbers = [*flat_names("", value).values()]
    is_numbers = all(isinstance(item, (int, float)) for item in numbers)
    if is_numbers and any(isinstance(item, float) for item in numbers):
        raise TypeError(
            f"{called} is a {type(value).__name__} of numbers, and gets no gradient: "
            "pass np.asarray(x, float)"
        )
