"""The documents' scenarios as plain pytest files, which need Paddle and no gradcheck.

A scenario at a point of its matrix is a test. A recorded deviation is an ``xfail`` with its reason;
one that kills the process or does not end is not run. Gradients are compared with central
differences at the scenario's inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gradcheck.case.case import Case
from gradcheck.conformance.releases import ReleaseFile
from gradcheck.conformance.scenario_code import (
    as_lists,
    expected_values,
    indent_lines,
    input_arrays,
    layer_call,
    parameter_lines,
    tensor_lines,
)
from gradcheck.report.page import templates
from gradcheck.spec.model import NO_DEVIATION, Expect, Scenario, is_static

IMPORTS = """\
import helpers
import numpy as np
import paddle
import pytest
from paddle.autograd import PyLayer
"""
_KNOWN_IMPORTS = frozenset(
    {"import paddle", "import numpy as np", "from paddle.autograd import PyLayer"}
)
"""Lines of a scenario's code that a test file already has at its top. Inside a function, such a
line would make the name local, so that code before it could not use it.
"""
NOT_EXPORTED = {"bfloat16", "float16"}
"""Dtypes that are too coarse for central differences."""


def export_files(cases: Iterable[Case], release: ReleaseFile) -> dict[str, str]:
    """Return the test files for some cases, and the two files that they share, by name.

    `release` is the record of the release on which they will run.
    """
    tests: dict[str, list[str]] = {}
    for case in cases:
        if case.parameters.get("dtype") not in NOT_EXPORTED:
            topic = Path(case.scenario.path).name.partition(".")[0].replace("-", "_")
            tests.setdefault(f"test_{topic}.py", []).append(write_test(case, release))
    plain = templates("gradcheck.conformance", escaped=False)
    files = {
        name: plain.get_template(f"{name}.jinja").render() + "\n"
        for name in ("helpers.py", "conftest.py")
    }
    for name, written in tests.items():
        topic = name.removeprefix("test_").removesuffix(".py")
        about = f'"""Scenarios of Paddle\'s documents: {topic}, for Paddle {release.release}."""'
        files[name] = "\n\n\n".join([f"{about}\n\n{IMPORTS.strip()}", *written]) + "\n"
    return files


def write_test(case: Case, release: ReleaseFile) -> str:
    """Return the test function of a case."""
    scenario, expect = case.scenario, case.scenario.expect
    name = re.sub(r"\W", "_", "_".join([scenario.id, *map(str, case.parameters.values())]))
    fixture = "layer_calls" if expect.calls.counted else ""
    lines = [*mark_lines(scenario, release), f"def test_{name}({fixture}):"]
    body = [f'"""{(scenario.title or scenario.id).replace(chr(92), "")}."""', *body_lines(case)]
    return "\n".join([*lines, *indent_lines(body)])


def mark_lines(scenario: Scenario, release: ReleaseFile) -> Iterator[str]:
    """Yield the mark of a scenario that the release deviates from."""
    entry = release.deviates.get(scenario.id, NO_DEVIATION)
    if entry.skip is not None:
        yield f"@pytest.mark.skip(reason={entry.skip.reason!r})"
    elif entry.observed is not None:
        ends = bool(entry.observed.crash or entry.observed.hang)
        yield f"@pytest.mark.xfail({'run=False' if ends else 'strict=True'}, reason={entry.why!r})"


def body_lines(case: Case) -> Iterator[str]:
    """Yield the body of a test."""
    scenario, expect = case.scenario, case.scenario.expect
    yield from parameter_lines(case)
    if scenario.script is not None:
        source = scenario.layer if isinstance(scenario.layer, str) else ""
        yield from expecting(expect, code_lines(f"{source}\n{scenario.script}"))
    else:
        yield from static_lines(case) if is_static(scenario.layer) else layer_lines(case)
    for expression, expected in expected_values(expect):
        yield f"assert helpers.same({expression}, {python_literal(expected)})"
    for function, number in expect.calls.counted.items():
        yield f"assert layer_calls.{function} == {number}"
    if expect.gradient in ("matches", "differs"):
        yield f"assert {'not ' if expect.gradient == 'differs' else ''}{gradient_check(scenario)}"


def gradient_check(scenario: Scenario) -> str:
    """Return an expression that is true if backward gives the derivative of forward."""
    if is_static(scenario.layer):
        return "helpers.program_is_the_gradient(functions, inputs)"
    return "helpers.is_the_gradient(call, inputs)"


def layer_lines(case: Case) -> Iterator[str]:
    """Yield the call of a layer in user code."""
    scenario, expect = case.scenario, case.scenario.expect
    yield from code_lines(str(scenario.layer))
    yield from tensor_lines(case)
    names = ", ".join(scenario.inputs)
    yield f"inputs = dict({', '.join(f'{name}={name}' for name in scenario.inputs)})"
    yield f"call = lambda {names}: {layer_call(scenario)}"
    start = "" if expect.cotangent is None else f", {python_literal(expect.cotangent)}"
    yield from expecting(expect, [f"out = helpers.run(call, inputs{start})"])


def static_lines(case: Case) -> Iterator[str]:
    """Yield a static layer's functions, which may use its Variables, and its inputs as arrays."""
    yield f"def functions({', '.join(case.scenario.inputs)}):"
    yield from indent_lines(code_lines(str(case.scenario.layer)))
    yield "    return forward_fn, backward_fn"
    yield "inputs = {"
    for name, array, dtype, _ in input_arrays(case):
        yield f"    {name!r}: np.array({array.tolist()!r}, {dtype!r}),"
    yield "}"


def code_lines(source: str) -> list[str]:
    """Return the lines of a scenario's code without the imports that the file has at its top."""
    lines = [line for line in source.split("\n") if line.rstrip() not in _KNOWN_IMPORTS]
    return "\n".join(lines).strip("\n").split("\n")


def expecting(expect: Expect, body: Sequence[str]) -> Iterator[str]:
    """Yield code that must raise or warn as expected, or succeed."""
    exception = expect.raises or expect.warns
    if exception is None:
        yield from body
        return
    function = "raises" if expect.raises else "warns"
    yield f"with pytest.{function}({exception.type}):"
    yield from indent_lines(body)


def python_literal(expected: Any) -> str:
    """Return an expected value as Python source, with its tolerance if it has one."""
    rtol = getattr(expected, "rtol", None)
    text = repr(as_lists(getattr(expected, "value", expected)))
    text = re.sub(r"\b(nan|inf)\b", r"np.\1", text) if "'" not in text else text
    return f"{text}, rtol={rtol}" if rtol is not None else text
