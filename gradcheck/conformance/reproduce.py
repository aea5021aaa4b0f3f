"""Programs that show without gradcheck what a release does otherwise than a scenario asks.

A program ends well where the scenario's expectations hold. On a release that goes its own way it dies, raises, or
fails in an ``assert``.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import Behaviour, classify_deviation
from gradcheck.spec.model import BackendExpectation, Expect, Raises, Scenario
from gradcheck.support.user_error import UserError

HEADER = {
    "np": "import numpy as np",
    "paddle": "import paddle",
    "PyLayer": "from paddle.autograd import PyLayer",
}
"""What a scenario's code finds without importing it, and how a program does."""
MOST_WRITTEN = 40
"""Elements of an input that are written out; a larger one is drawn."""
COMMENT_WIDTH = 100


class NoProgramError(UserError):
    """There is no program for a scenario; the message says why."""


def write_program(case: Case) -> str:
    """Return the program of a scenario, for the parameters of the case.

    Raises:
        NoProgramError: nothing is known to be done otherwise, or only in other words, or the gradient check alone
            shows it.
    """
    scenario = case.scenario
    entries = [entry for entry in scenario.entries_of("paddle") if entry.observed is not None]
    if not entries:
        raise NoProgramError(f"{scenario.id}: every release does as documented, as far as is known")
    entries = [entry for entry in entries if is_visible(scenario.expect, entry)]
    if not entries:
        raise NoProgramError(f"{scenario.id}: releases raise there as well, only in other words")
    said = []
    for entry in entries:
        said += comment(f"Paddle {entry.versions or 'in every release'}: {entry.why}")
    title = scenario.title or scenario.id
    said += comment(f"Asked for: {title[0].lower()}{title[1:]}")
    code = "\n".join(program_lines(case, entries))
    needed = [
        line
        for name, line in HEADER.items()
        if re.search(rf"\b{name}\b", code) and line not in code
    ]
    return "\n".join([*said, *needed, "", code.strip("\n"), ""])


def is_visible(documented: Expect, entry: BackendExpectation) -> bool:
    """Whether what is observed can be told from what is documented other than by the words of a message."""
    observed, asked = entry.observed, documented.raises
    if (
        classify_deviation(documented, entry) is not Behaviour.OTHER_ERROR
        or observed is None
        or asked is None
    ):
        return True
    return observed.raises is not None and observed.raises.type != asked.type


def comment(text: str) -> list[str]:
    """A comment of a program, folded."""
    return textwrap.wrap(
        text, COMMENT_WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def program_lines(case: Case, entries: list[BackendExpectation]) -> Iterator[str]:
    """The lines of a program made from the scenario."""
    scenario, expect = case.scenario, case.scenario.expect
    in_world = scenario.world_at(case.parameters) is not None
    parameters = [
        f"{name} = {value!r}" for name, value in case.variables.items() if name != "dtype"
    ]
    if scenario.script is not None:
        prepared = scenario.layer.rstrip().split("\n") if isinstance(scenario.layer, str) else []
        body = [*parameters, *prepared, *scenario.script.rstrip().split("\n")]
    elif isinstance(scenario.layer, str) and "forward_fn" not in scenario.layer and not in_world:
        yield from [*parameters, *scenario.layer.rstrip().split("\n"), ""]
        yield from input_lines(case)
        body = list(apply_lines(scenario))
    else:
        raise NoProgramError(f"{scenario.id}: `gradcheck run {scenario.id}` alone shows it")
    checks = list(asserted(expect))
    ends = any(one.observed.crash or one.observed.raises for one in entries if one.observed)
    if not (checks or expect.raises or expect.warns or ends):
        raise NoProgramError(
            f"{scenario.id}: the gradient check alone shows it: `gradcheck run {scenario.id}`"
        )
    definitions = leading_definitions(body)
    yield from body[:definitions]
    body = body[definitions:]
    if expect.raises is not None:
        yield from caught(body, expect.raises)
    elif expect.warns is not None:
        yield from ["import warnings", "with warnings.catch_warnings(record=True) as given:"]
        yield from indented(["warnings.simplefilter('always')", *body])
        yield f"assert any(one.category.__name__ == {expect.warns.type!r} for one in given), 'no {expect.warns.type}'"
    else:
        yield from body
    yield from checks


def input_lines(case: Case) -> Iterator[str]:
    """The inputs as Tensors, with the values that the scenario has."""
    from gradcheck.case.layer import make_input  # here: it brings the engine along

    random = np.random.default_rng(case.seed)
    for name, written in case.scenario.inputs.items():
        spec = written.at(case.variables)
        dtype = spec.dtype
        array = make_input(spec, dtype, random, Path(case.scenario.path).parent)
        stopped = f"stop_gradient={spec.stop_gradient}"
        if 0 < array.size <= MOST_WRITTEN:
            digits = (
                np.round(np.asarray(array, np.float64), 3).tolist()
                if array.dtype.kind == "f"
                else array.tolist()
            )
            values = str(digits)
        else:
            values = f"np.random.default_rng(0).standard_normal({list(array.shape)})"
        yield f"{name} = paddle.to_tensor({values}, dtype={dtype!r}, {stopped})"


def apply_lines(scenario: Scenario) -> Iterator[str]:
    """The call of a layer, and backward from all its outputs."""
    classes = re.findall(r"^class (\w+)\(", str(scenario.layer), re.MULTILINE)
    arguments = ", ".join(scenario.inputs)
    yield f"out = {scenario.call or f'{classes[-1]}.apply({arguments})'}"
    yield "outs = out if isinstance(out, (list, tuple)) else [out]"
    start = (
        "None"
        if scenario.expect.cotangent is None
        else f"paddle.to_tensor({scenario.expect.cotangent})"
    )
    yield "ends = [one for one in outs if isinstance(one, paddle.Tensor) and not one.stop_gradient]"
    yield "if ends:"
    yield f"    paddle.autograd.backward(ends, [{start}] + [None] * (len(ends) - 1))"


def leading_definitions(lines: list[str]) -> int:
    """How many lines at the beginning import and define, and do nothing else."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)
    first = next(
        (one for one in ast.parse("\n".join(lines)).body if not isinstance(one, kinds)), None
    )
    return len(lines) if first is None else first.lineno - 1


def caught(body: list[str], asked: Raises) -> Iterator[str]:
    """A body that must raise."""
    yield "try:"
    yield from indented(body)
    yield f"except {asked.type}:"
    yield "    pass"
    yield "else:"
    yield f"    raise AssertionError('nothing was raised, where {asked.type} is asked for')"


def indented(lines: list[str]) -> list[str]:
    """Lines one level further in."""
    return [f"    {line}" if line else "" for line in lines]


def asserted(expect: Expect) -> Iterator[str]:
    """What must hold at the end."""
    for name, wanted in expect.grads.items():
        yield assertion(f"{name}.grad", wanted)
    for expression, expected in expect.values.items():
        yield assertion(" ".join(expression.split()), getattr(expected, "value", expected))


def assertion(expression: str, wanted: Any) -> str:
    """``assert`` that an expression has a value."""
    if wanted is None:
        return f"assert ({expression}) is None, {expression}"
    if isinstance(wanted, bool):
        return f"assert bool({expression}) is {wanted}"
    if isinstance(wanted, str):
        return f"assert str({expression}) == {wanted!r}, {expression}"
    if isinstance(wanted, (list, tuple)) and any(isinstance(one, str) for one in wanted):
        return f"assert [*{expression}] == {[*wanted]!r}, {expression}"
    listed = str(wanted).replace("(", "[").replace(",)", "]").replace(")", "]")
    there = f"{expression} is not None and " if expression.endswith(".grad") else ""
    return f"assert {there}np.allclose({expression}, {listed}), {expression}"
