"""Rules of expectations: what can hold together, and at the inputs that a scenario has."""

from __future__ import annotations

from collections.abc import Iterator

from gradcheck.codes import CODES
from gradcheck.spec.code_rules import CodeRules
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.input_rules import input_shape, rank_sizes
from gradcheck.spec.model import Expect, Input, Regex, Scenario
from gradcheck.spec.value_rules import shape_of, suggest
from gradcheck.spec.violation import Underlined, Violation, below

_REMOVE = "remove one of the two"


def find_expect_mistakes(
    expect: Expect, scenario: Scenario, code: CodeRules
) -> Iterator[Violation]:
    """Yield what is wrong with an expectation of a scenario, below it."""
    yield from _impossible_checks(expect, scenario)
    yield from _conflicts(expect)
    yield from _mistaken_inputs(expect, scenario)
    if expect.differs is not None and expect.differs.code not in (None, *CODES):
        unknown = str(expect.differs.code)
        help = suggest(unknown, CODES, "'gradcheck explain' lists all codes")
        yield Violation(("differs", "code"), f"there is no diagnosis {quote(unknown)}", help)
    for expression in expect.values:
        for mistake in code.find_mistakes(expression, "the expression"):
            yield mistake._replace(path=("values", expression), mark="key")
    for section, expected in (("raises", expect.raises), ("warns", expect.warns)):
        if expected is None:
            continue
        if isinstance(expected.message, Regex):
            yield from below(
                (section, "message", "re"), code.find_pattern_mistakes(expected.message.re)
            )
        yield from below(
            (section, "type"), code.find_misspelt_class(section, expected.type, scenario)
        )


def checks_of(expect: Expect) -> dict[str, str]:
    """Return the keys that ask for gradients, as they are written."""
    checks = {
        "gradient": f"gradient: {expect.gradient}" if expect.gradient != "unchecked" else "",
        "grads": "grads" if expect.grads else "",
        "differs": "differs" if expect.differs is not None and expect.differs.written else "",
        "order": "order: 2" if expect.order == 2 else "",
        "precision": "precision: loose" if expect.precision == "loose" else "",
    }
    return {key: shown for key, shown in checks.items() if shown}


def _impossible_checks(expect: Expect, scenario: Scenario) -> Iterator[Violation]:
    """Yield checks of gradients where there is none to check."""
    if expect.raises is not None:
        why = "and 'raises' exclude each other"
        help = "remove one of the two: a run that ends with an exception has no gradient to check"
    elif scenario.script is not None:
        why = "needs a layer, this is a script"
        help = (
            "write the layer's code as 'layer', with 'inputs'; a script can check 'values: "
            "{x.grad: …}'"
        )
    elif not scenario.differentiable:
        why = "needs an input that has a gradient"
        help = (
            "give one a floating dtype and 'stop_gradient: false', or write 'gradient: unchecked'"
        )
    else:
        return
    for key, shown in checks_of(expect).items():
        if key != "grads" or expect.raises is not None or scenario.script is not None:
            yield Violation((key,), f"'{shown}' {why}", help, "key")


def _conflicts(expect: Expect) -> Iterator[Violation]:
    """Yield expectations that cannot hold together."""
    verdict, checks = expect.written_gradient, checks_of(expect)
    if expect.differs is not None and verdict not in (None, "differs"):
        message = f"'differs' tells how a gradient differs, 'gradient: {verdict}' says otherwise"
        yield Violation(
            ("differs",), message, "write 'gradient: differs', or remove one of the two", "key"
        )
    for key in ("order", "precision"):
        if verdict == "unchecked" and key in checks:
            message = f"'{checks[key]}' asks for a check, 'gradient: unchecked' for none"
            yield Violation((key,), message, _REMOVE, "key")
    if expect.cotangent is not None and "grads" not in expect.written:
        help = "add the gradients that belong to it, or remove it"
        yield Violation(("cotangent",), "'cotangent' is of no use without 'grads'", help, "key")


def _mistaken_inputs(expect: Expect, scenario: Scenario) -> Iterator[Violation]:
    """Yield inputs that the scenario has not, and gradients of another shape than the input's."""
    for name, value in expect.grads.items():
        if name not in scenario.inputs:
            yield from _unknown_input(("grads", name), name, scenario, "key")
            continue
        whole = _whole_shape(scenario.inputs[name], scenario)
        if value is not None and whole not in (None, shape_of(value)):
            shape, wanted = list(shape_of(value)), list(whole or ())
            message = f"grads: the gradient of {quote(name)} has shape {shape}, the input {wanted}"
            yield Violation(("grads", name), message, "a gradient has the shape of its input")
    for index, name in enumerate(expect.differs.inputs if expect.differs is not None else ()):
        if name not in scenario.inputs:
            yield from _unknown_input(("differs", "inputs", index), name, scenario, "value")


def _unknown_input(
    path: DataPath, name: str, scenario: Scenario, mark: Underlined
) -> Iterator[Violation]:
    """Yield that a scenario has no input of a name, if it has inputs."""
    known = scenario.inputs
    if known:
        help = suggest(name, known, f"the inputs are {listing(known, 'and')}")
        yield Violation(path, f"{path[0]}: there is no input {quote(name)}", help, mark)


def _whole_shape(input: Input, scenario: Scenario) -> tuple[int, ...] | None:
    """Return the shape of an input and its gradient, those of all ranks together; None where it is
    not one.
    """
    shape, sizes = input_shape(input), rank_sizes(scenario, input)
    if shape is None or not sizes or input.values is not None:
        return shape
    return (sizes[0], *shape) if len(sizes) == 1 else None
