"""Rules for expectations in a scenario: they must be possible with its code and its inputs."""

from __future__ import annotations

from collections.abc import Iterator

from gradcheck.spec.code_rules import PATTERN, find_misspelt_class, find_syntax_mistakes
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import quote, suggest
from gradcheck.spec.input_rules import rank_sizes
from gradcheck.spec.model import Expect, Input, Regex, Scenario
from gradcheck.spec.value_rules import shape_of
from gradcheck.spec.violation import Violation, below


def find_expect_mistakes(expect: Expect, scenario: Scenario) -> Iterator[Violation]:
    """Yield the mistakes of an expectation of a scenario."""
    yield from _find_impossible_checks(expect, scenario)
    yield from _find_mistaken_inputs(expect, scenario)
    for expression in expect.values:
        for mistake in find_syntax_mistakes(expression, "the expression"):
            yield mistake._replace(path=("values", expression), at_key=True)
    for section, expected in (("raises", expect.raises), ("warns", expect.warns)):
        if expected is None:
            continue
        if isinstance(expected.message, Regex):
            mistakes = find_syntax_mistakes(expected.message.re, PATTERN)
            yield from below((section, "message", "re"), mistakes)
        mistakes = find_misspelt_class(section, expected.type, scenario)
        yield from below((section, "type"), mistakes)


def _find_impossible_checks(expect: Expect, scenario: Scenario) -> Iterator[Violation]:
    """Yield violations for checks of gradients in scenarios that have no gradient to check."""
    checks = {*expect.checks}
    if expect.raises is not None:
        why, help = "and 'raises' exclude each other", "remove one: an exception ends the run"
    elif scenario.script is not None and scenario.layer is None:
        why = "needs a layer, this is a script"
        help = "write the code as 'layer', with 'inputs'; a script can check 'values: {x.grad: …}'"
    elif not scenario.differentiable:
        why = "needs an input that has a gradient"
        help = (
            "give one a floating dtype and 'stop_gradient: false', or write 'gradient: unchecked'"
        )
        checks.discard("grads")
        if not scenario.inputs:
            help = "list the layer's Tensors under 'inputs', such as 'inputs: {x: [2, 3]}'"
    elif expect.written_gradient == "unchecked":
        why, help = "asks for a check, 'gradient: unchecked' for none", "remove one of the two"
        checks.discard("grads")
    else:
        return
    for key in checks:
        yield Violation((key,), f"{quote(key)} {why}", help, at_key=True)


def _find_mistaken_inputs(expect: Expect, scenario: Scenario) -> Iterator[Violation]:
    """Yield violations for inputs that the scenario lacks, and gradients whose shape is not the
    input's.
    """
    inputs = scenario.inputs
    named: list[tuple[DataPath, str]] = [(("grads", name), name) for name in expect.grads]
    wrong = enumerate(expect.differs.inputs)
    named += [(("differs", "inputs", index), name) for index, name in wrong]
    for path, name in named:
        if name not in inputs and inputs:
            message = f"{path[0]}: there is no input {quote(name)}"
            yield Violation(path, message, suggest(name, inputs), at_key=True)
    for name in expect.grads.keys() & inputs.keys():
        value, input_shape = expect.grads[name], _whole_shape(inputs[name], scenario)
        if value is not None and input_shape not in (None, shape_of(value)):
            shape, wanted = list(shape_of(value)), list(input_shape or ())
            message = f"grads: the gradient of {quote(name)} has shape {shape}, the input {wanted}"
            yield Violation(("grads", name), message, "a gradient has the shape of its input")


def _whole_shape(input: Input, scenario: Scenario) -> tuple[int, ...] | None:
    """Return the shape of an input and its gradient over all ranks together; None if it varies over
    the matrix.
    """
    shape, sizes = input.known_shape, rank_sizes(scenario, input)
    if shape is None or not sizes or input.values is not None:
        return shape
    return (sizes[0], *shape) if len(sizes) == 1 else None
