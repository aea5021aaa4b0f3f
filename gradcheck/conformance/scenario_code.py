"""A scenario as plain Paddle code, for exported tests and for programs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradcheck.case.case import Case
from gradcheck.spec.model import Expect, Scenario


def parameter_lines(case: Case) -> list[str]:
    """Return assignments of the parameters that the scenario's code reads as variables."""
    variables = case.variables.items()
    return [f"{name} = {value!r}" for name, value in variables if name != "dtype"]


def tensor_lines(case: Case) -> Iterator[str]:
    """Yield assignments of the inputs as Tensors, with the values of the case."""
    for name, array, dtype, stopped in input_arrays(case):
        values = array.tolist() if array.size else f"np.empty({[*array.shape]})"
        options = f"dtype={dtype!r}, stop_gradient={stopped}"
        yield f"{name} = paddle.to_tensor({values}, {options})"


def input_arrays(case: Case) -> Iterator[tuple[str, Any, str, bool]]:
    """Yield the inputs: name, values, dtype, and whether they have stop_gradient True."""
    from gradcheck.case.input_arrays import make_input  # here: it brings the engine along

    random = np.random.default_rng(case.seed)
    for name, written in case.scenario.inputs.items():
        spec = written.at(case.variables)
        array = make_input(spec, spec.dtype, random, Path(case.scenario.path).parent)
        yield name, array, spec.dtype, spec.stop_gradient


def layer_call(scenario: Scenario) -> str:
    """Return the call of a layer: that of the scenario, or ``apply`` of its last class."""
    classes = re.findall(r"^class (\w+)\(", str(scenario.layer), re.MULTILINE)
    return scenario.call or f"{classes[-1]}.apply({', '.join(scenario.inputs)})"


def expected_values(expect: Expect) -> list[tuple[str, Any]]:
    """Return the expressions that have an expected value, gradients of inputs among them."""
    expected: dict[str, Any] = {f"{name}.grad": gradient for name, gradient in expect.grads.items()}
    expected |= expect.values
    return [(" ".join(expression.split()), value) for expression, value in expected.items()]


def indent_lines(lines: Iterable[str]) -> list[str]:
    """Return lines indented by one level."""
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def as_lists(value: Any) -> Any:
    """Return nested tuples as lists."""
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value
