"""Checking gradients from Python: a layer or function, its inputs, and what is wrong with its gradient."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradcheck.backends.base import Backend, load
from gradcheck.checker.gradient import Mode, check_gradient
from gradcheck.checker.outputs import is_differentiable
from gradcheck.report.text import gradient_lines
from gradcheck.result import GradientSummary, Status
from gradcheck.run.function import TensorFunction

MOST_LISTED = 10_000
"""Wrong entries that a result lists of one input."""


class GradientMismatch(AssertionError):  # noqa: N818 - it is what was found, not an error of the checker
    """A gradient is wrong, or could not be told; `result` says all there is to say."""

    def __init__(self, result: GradientSummary) -> None:
        super().__init__("\n".join([f"{result.verdict}: {result.headline()}", *gradient_lines(result)]))
        self.result = result


def check(
    layer_or_function: Any,
    *inputs: Any,
    order: int = 1,
    mode: Mode = "auto",
    seed: int = 0,
    rtol: float | None = None,
) -> GradientSummary:
    """The verdict on the gradients of a layer or function.

    Works on layers of the bundled engine (`pylayer`) and on those of an installed Paddle.

    Args:
        layer_or_function: a PyLayer class, whose `apply` is called, or any function of Tensors.
        inputs: its arguments in order. Arrays, and floats, become Tensors that need a gradient; Tensors keep their
            stop_gradient; anything else is passed on as it is.
        order: 2 to check the derivative of the gradient as well, if the first is right.
        mode: ``auto``, ``probe`` or ``full``; see `gradcheck.checker.gradient.check_gradient`.
        seed: of the random directions and cotangents; the same seed gives the same result.
        rtol: widens the error bars, relative to the derivative.

    Returns:
        Its `verdict` is PASS, FAIL, KINK or INCONCLUSIVE; `wrong` lists the wrong entries, `diagnosis` the causes.

    Raises:
        TypeError: no input needs a gradient, or `order` is neither 1 nor 2.
        Exception: whatever the layer raises.
    """
    if order not in (1, 2):
        raise TypeError(f"order must be 1 or 2, not {order!r}")
    backend = backend_of(layer_or_function, inputs)
    function = tensor_function(backend, layer_or_function, inputs)
    with np.errstate(all="ignore"):
        result = check_gradient(function.problem(), seed=seed, rtol=rtol, mode=mode, listed=MOST_LISTED)
        if order == 2 and result.verdict in (Status.PASS, Status.KINK):
            result = check_gradient(
                function.second_order(), seed=seed, rtol=rtol, mode=mode, listed=MOST_LISTED
            ).second()
    return result


def assert_gradients(layer_or_function: Any, *inputs: Any, **options: Any) -> GradientSummary:
    """As `check`, for tests.

    Raises:
        GradientMismatch: the verdict is FAIL or INCONCLUSIVE. The message is the panel that the command line shows.
    """
    result = check(layer_or_function, *inputs, **options)
    if result.verdict not in (Status.PASS, Status.KINK):
        raise GradientMismatch(result)
    return result


def backend_of(function: Any, inputs: Sequence[Any]) -> Backend:
    """The installed Paddle if the layer or an input is its, else the bundled engine."""
    classes = [*(function.__mro__ if inspect.isclass(function) else ()), *(type(value) for value in inputs)]
    modules = {cls.__module__.partition(".")[0] for cls in classes}
    installed = sys.modules.get("paddle")
    if "paddle" in modules and isinstance(installed, ModuleType) and not installed.__name__.startswith("pylayer"):
        return load("paddle")
    from gradcheck.backends.bundled import BundledBackend

    return BundledBackend("numpy", "cpu", install=False)


def tensor_function(backend: Backend, function: Any, inputs: Sequence[Any]) -> TensorFunction:
    """The call of a layer or function on inputs, its Tensors under the names of its parameters."""
    apply: Callable[..., Any] = function.apply if hasattr(function, "apply") else function
    names = parameter_names(function, len(inputs))
    arrays, dtypes, stopped = {}, {}, []
    for name, value in zip(names, inputs, strict=True):
        if isinstance(value, backend.paddle.Tensor):
            array = backend.array(value)
            if value.stop_gradient:
                stopped.append(name)
        elif isinstance(value, (np.ndarray, float, np.floating)):
            array = np.asarray(value)
        else:
            continue
        arrays[name], dtypes[name] = array.copy(), array.dtype.name
    if not any(name not in stopped and is_differentiable(array) for name, array in arrays.items()):
        raise TypeError(
            "no input needs a gradient, so there is none to check: pass floating arrays, or Tensors with "
            "stop_gradient=False"
        )

    def call(tensors: dict[str, Any]) -> Any:
        return apply(*(tensors.get(name, value) for name, value in zip(names, inputs, strict=True)))

    return TensorFunction(backend, call, arrays, dtypes, stopped)


def parameter_names(function: Any, count: int) -> list[str]:
    """The names of the first parameters of a function, or of a layer's forward after its ctx; made up beyond them."""
    made_up = [f"x{k}" for k in range(count)]
    try:
        parameters = list(inspect.signature(getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        return made_up
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters[1 if hasattr(function, "apply") else 0 :] if p.kind in kinds][:count]
    return names + made_up[len(names) :]
