"""Programs that show, without gradcheck, how a release deviates from a scenario.

A program succeeds where the scenario's expectations hold. On a release that deviates it crashes,
raises, or fails an ``assert``.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from typing import Any

from gradcheck.case.case import Case
from gradcheck.conformance.behaviour import Behaviour, classify_deviation
from gradcheck.conformance.releases import deviations_of
from gradcheck.conformance.scenario_code import (
    as_lists,
    expected_values,
    indent_lines,
    layer_call,
    parameter_lines,
    tensor_lines,
)
from gradcheck.spec.model import BackendExpectation, Expect, Raises, Scenario
from gradcheck.support.resources import is_bundled
from gradcheck.support.user_error import UserError

HEADER = ["import numpy as np", "import paddle", "from paddle.autograd import PyLayer"]
"""Imports of the names that a scenario's code has without an import."""
COMMENT_WIDTH = 100


class NoProgramError(UserError):
    """A scenario has no program; the message says why."""


def write_program(case: Case) -> str:
    """Return the program of a scenario, for the parameters of the case.

    Raises:
        NoProgramError: no deviation is known, or only one in a message's words, or only the
            gradient check shows it.
    """
    scenario = case.scenario
    known = [pair for pair in known_deviations(scenario) if is_visible(scenario.expect, pair[0])]
    if not known:
        why = "every release does as documented, as far as is known, or raises with another message"
        raise NoProgramError(f"{scenario.id}: {why}")
    lines = []
    for entry, where in known:
        lines += comment(f"Paddle {where}: {entry.why}")
    title = scenario.title or scenario.id
    lines += comment(f"Required: {title[0].lower()}{title[1:]}")
    code = "\n".join(program_lines(case, [entry for entry, _ in known]))
    return "\n".join([*lines, *HEADER, "", code.strip("\n"), ""])


def known_deviations(scenario: Scenario) -> list[tuple[BackendExpectation, str]]:
    """Return the known deviations of Paddle, and the releases that have them, in words."""
    if not is_bundled(scenario.path):
        entries = scenario.entries_of("paddle")
        return [
            (entry, entry.versions or "in every release") for entry in entries if entry.observed
        ]
    releases: dict[str, list[str]] = {}
    first: dict[str, BackendExpectation] = {}
    for release, entry in deviations_of(scenario.id).items():
        if entry.observed is not None:
            key = entry.observed.model_dump_json()
            releases.setdefault(key, []).append(release)
            first.setdefault(key, entry)
    return [(entry, ", ".join(releases[key])) for key, entry in first.items()]


def is_visible(documented: Expect, entry: BackendExpectation) -> bool:
    """Whether the observed behaviour differs from the documented one in more than a message's
    words.
    """
    if classify_deviation(documented, entry) is not Behaviour.OTHER_ERROR:
        return True
    assert entry.observed is not None
    assert entry.observed.raises is not None
    assert documented.raises is not None
    return entry.observed.raises.type != documented.raises.type


def comment(text: str) -> list[str]:
    """A comment of a program, folded."""
    return textwrap.wrap(
        text, COMMENT_WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def program_lines(case: Case, entries: list[BackendExpectation]) -> Iterator[str]:
    """The lines of a program, made from the scenario."""
    scenario, expect = case.scenario, case.scenario.expect
    in_world = scenario.world_at(case.parameters) is not None
    parameters = parameter_lines(case)
    layer = scenario.layer.rstrip().split("\n") if isinstance(scenario.layer, str) else []
    if scenario.script is not None:
        body = [*parameters, *layer, *scenario.script.rstrip().split("\n")]
    elif layer and "forward_fn" not in str(scenario.layer) and not in_world:
        yield from [*parameters, *layer, ""]
        yield from tensor_lines(case)
        body = list(apply_lines(scenario))
    else:
        raise NoProgramError(f"{scenario.id}: `gradcheck run {scenario.id}` must show it")
    checks = [assertion(*expected) for expected in expected_values(expect)]
    observed = [entry.observed for entry in entries if entry.observed is not None]
    ends = [observation for observation in observed if observation.crash or observation.raises]
    if not (checks or expect.raises or expect.warns or ends):
        alone = f"only the gradient check shows it: `gradcheck run {scenario.id}`"
        raise NoProgramError(f"{scenario.id}: {alone}")
    definitions = leading_definitions(body)
    yield from body[:definitions]
    yield from expected_end(body[definitions:], expect)
    yield from checks


def expected_end(body: list[str], expect: Expect) -> Iterator[str]:
    """Code that must raise or warn as documented, or succeed."""
    if expect.raises is not None:
        yield from caught(body, expect.raises)
    elif expect.warns is not None:
        kind = expect.warns.type
        yield from ["import warnings", "with warnings.catch_warnings(record=True) as given:"]
        yield from indent_lines(["warnings.simplefilter('always')", *body])
        condition = f"any(one.category.__name__ == {kind!r} for one in given)"
        yield f"assert {condition}, 'no {kind}'"
    else:
        yield from body


def apply_lines(scenario: Scenario) -> Iterator[str]:
    """The call of a layer, and backward from all its outputs."""
    cotangent = scenario.expect.cotangent
    start = "None" if cotangent is None else f"paddle.to_tensor({cotangent})"
    yield f"out = {layer_call(scenario)}"
    yield "outs = out if isinstance(out, (list, tuple)) else [out]"
    yield "ends = [one for one in outs if isinstance(one, paddle.Tensor) and not one.stop_gradient]"
    yield "if ends:"
    yield f"    paddle.autograd.backward(ends, [{start}] + [None] * (len(ends) - 1))"


def leading_definitions(lines: list[str]) -> int:
    """The number of leading lines that contain only imports and definitions."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)
    for statement in ast.parse("\n".join(lines)).body:
        if not isinstance(statement, kinds):
            return statement.lineno - 1
    return len(lines)


def caught(body: list[str], exception: Raises) -> Iterator[str]:
    """Code that must raise."""
    yield "try:"
    yield from indent_lines(body)
    yield f"except {exception.type}:"
    yield "    pass"
    yield "else:"
    yield f"    raise AssertionError('nothing was raised, but {exception.type} is required')"


def assertion(expression: str, expected: Any) -> str:
    """An ``assert`` that an expression has a given value."""
    wanted = as_lists(getattr(expected, "value", expected))
    if wanted is None:
        return f"assert ({expression}) is None, {expression}"
    if isinstance(wanted, bool):
        return f"assert bool({expression}) is {wanted}"
    if isinstance(wanted, str):
        return f"assert str({expression}) == {wanted!r}, {expression}"
    if isinstance(wanted, list) and any(isinstance(element, str) for element in wanted):
        return f"assert [*{expression}] == {wanted}, {expression}"
    guard = f"{expression} is not None and " if expression.endswith(".grad") else ""
    return f"assert {guard}np.allclose({expression}, {wanted}), {expression}"
