"""Errors for layers and arrays of another framework than the one in use.

A framework is recognised by the modules of classes and functions. None is imported.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Sequence
from types import MethodType
from typing import Any, NamedTuple

from gradcheck.backends.base import backend_of_packages
from gradcheck.case.reachable import modules_of
from gradcheck.spec.containers import flat_names


class Framework(NamedTuple):
    """A framework: its name, the prefixes of its module names, and code that converts its arrays
    and layers to NumPy.
    """

    name: str
    modules: tuple[str, ...]
    values: str
    """Code that converts its array x to a NumPy array."""
    recipe: str
    """Code that checks one of its functions of one array by ``backward=``; {call} stands for the
    call. Empty where a backend runs it.
    """

    @property
    def backend(self) -> str:
        """The backend that runs the framework's backwards; empty if there is none."""
        return backend_of_packages([module.rstrip(".") for module in self.modules])


WRITTEN_APART = "gradcheck.check(forward, x, backward=gradient)"
"""The check of two functions of NumPy arrays that call any framework: ``forward(x)`` and
``gradient(x, dy)``.
"""

HIPS = "gradcheck.check({call}, x, backward=lambda x, g: autograd.make_vjp({call})(x)[0](g))"
HIPS_MODULES = tuple(f"autograd.{n}." for n in ("tracer", "numpy", "scipy", "wrap_util", "extend"))
FRAMEWORKS = (
    Framework("PyTorch", ("torch.",), "x.detach().numpy()", ""),
    Framework("JAX", ("jax.", "jaxlib."), "np.asarray(x)", ""),
    Framework("HIPS autograd", HIPS_MODULES, "x._value", HIPS),
    Framework("TensorFlow", ("tensorflow.", "tf_keras.", "keras."), "x.numpy()", WRITTEN_APART),
    Framework("Chainer", ("chainer.",), "x.array", WRITTEN_APART),
    Framework("MyGrad", ("mygrad.",), "x.data", WRITTEN_APART),
    Framework("tinygrad", ("tinygrad.",), "x.numpy()", WRITTEN_APART),
    Framework("MLX", ("mlx.",), "np.array(x)", WRITTEN_APART),
)

REFUSAL = "gradcheck does not run the backwards of "
"""How a refusal begins."""


class ForeignFrameworkError(TypeError):
    """A layer of another framework was given; `recipe` is a line of code that can check it."""

    def __init__(self, message: str, recipe: str) -> None:
        super().__init__(f"{message}:\n    {recipe}")
        self.message, self.recipe = message, recipe


def framework_of(value: Any) -> Framework | None:
    """The framework that a class, a function or an object belongs to; None if it is not in the
    table.
    """
    return next(filter(None, map(framework_of_module, modules_of(value))), None)


def framework_of_module(module: str) -> Framework | None:
    """The framework that a module belongs to."""
    return next((f for f in FRAMEWORKS if f"{module}.".startswith(f.modules)), None)


def foreign_framework(value: Any, packages: Sequence[str] = ()) -> Framework | None:
    """The framework that a value belongs to; None if that framework is one of the given
    packages.
    """
    framework = framework_of(value)
    if framework is None or f"{next(iter(packages), '')}." in framework.modules:
        return None
    return framework


def refuse_layer(value: Any, packages: Sequence[str] = ()) -> None:
    """Raise if something to check belongs to another framework than some packages.

    Raises:
        ForeignFrameworkError: it is.
    """
    framework = foreign_framework(value, packages)
    if framework is None:
        return
    belongs = f"{object_name(value)} is of {framework.name}"
    if framework.backend:
        message = f"{REFUSAL}{framework.name} on another backend, and {belongs}: use its own"
        recipe = f"-b {framework.backend}; in a spec file, 'framework: {framework.backend}'"
    else:
        message = (
            f"{REFUSAL}{framework.name}, and {belongs}: check it as functions of NumPy arrays, "
            "such as"
        )
        recipe = framework.recipe.format(call=call_of(value))
    raise ForeignFrameworkError(message, recipe)


def refuse_array(name: str, value: Any, packages: Sequence[str] = ()) -> None:
    """Raise if an argument is an array of another framework than some packages.

    Raises:
        TypeError: the argument, or an array in it, is of another framework.
    """
    for item in flat_names("", value).values():
        framework = foreign_framework(item, packages)
        if framework is not None and hasattr(item, "shape"):
            kind = type(item)
            raise TypeError(
                f"{name} is a {kind.__module__}.{kind.__qualname__}, an array of {framework.name}: "
                f"pass its values, {framework.values}"
            )


def object_name(value: Any) -> str:
    """The name of a layer, or of its class."""
    if isinstance(value, functools.partial):
        return object_name(value.func)
    if isinstance(value, MethodType):
        return object_name(value.__self__)
    return str(getattr(value, "__name__", type(value).__name__))


def call_of(value: Any) -> str:
    """The code that calls a layer; ``layer`` if it has no name."""
    name = object_name(value)
    is_apply = isinstance(value, MethodType) and value.__name__ == "apply"
    if is_apply or (inspect.isclass(value) and hasattr(value, "apply")):
        return f"{name}.apply"
    module = str(getattr(value, "__module__", ""))
    if framework_of_module(module) and getattr(sys.modules.get(module), name, None) is value:
        return f"{module}.{name}"
    return name if hasattr(value, "__name__") and name.isidentifier() else "layer"
