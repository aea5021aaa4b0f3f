"""Rules of the format that take more than one field, or more than a type, to judge; checked on the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from math import prod
from typing import get_args

from gradcheck.codes import CODES
from gradcheck.spec import inputs, model
from gradcheck.spec.backend_rules import all_expectations, check_backends
from gradcheck.spec.citations import check_citations
from gradcheck.spec.code import check_default_call, check_python
from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.input_rules import (
    check_aliases,
    check_input,
    check_name,
    check_numbers,
    check_value,
    has_gradient,
    input_shape,
)
from gradcheck.spec.literals import DType
from gradcheck.spec.messages import report_unknown_key
from gradcheck.spec.names import check_call, check_exceptions, check_parameters, words_of
from gradcheck.spec.pattern import check_pattern
from gradcheck.spec.resolve import is_several
from gradcheck.spec.size_rules import check_explore, check_sizes, parameters_of
from gradcheck.spec.subject import check_subject
from gradcheck.spec.text import Remark, SpecText
from gradcheck.spec.tree import Node, describe
from gradcheck.spec.world import MOST_RANKS
from gradcheck.spec.world_rules import check_world, is_size, ranks_of

MAX_COMBINATIONS = 256

_DTYPES = get_args(DType)
# Parameters of a matrix that hold for every input -> their values.
_OF_ALL_INPUTS = {"dtype": _DTYPES, "layout": get_args(inputs.Layout)}
_NULL_ALLOWED = ("values", "grads")  # below these keys null is a value like any other
_CASE_NAME_PART = re.compile(r"[A-Za-z0-9._+-]+")
_OF_SCENARIOS = ["path", "line", "column", "begins", "positions"]
_RESERVED_IN_INPUTS = ["dtype_written", "layout_written", "from_"]
_OPERATORS = ("and", "or", "not")


def prepare(root: Node, text: SpecText) -> None:
    """Report and take out, on the tree as written, what later stages would overlook: empty values, reserved keys."""
    _report_empty(root, text)
    _take_reserved(root, ["path"], [], text)
    scenarios = root.get("scenarios")
    for index, scenario in enumerate(scenarios.items if scenarios else ()):
        cases = scenario.get("cases")
        for one in (scenario, *(cases.items if cases else ())):
            _take_reserved(one, _OF_SCENARIOS, ["scenarios", index], text)
            for name, (key, input) in one.mapping("inputs").entries.items():
                _take_reserved(input, _RESERVED_IN_INPUTS, ["scenarios", index, "inputs", name], text)
                if input.kind == "sequence" and not is_several(input):
                    long = Node("mapping", input.line, input.column, input.end_line, input.end_column)
                    long.entries["shape"] = (input, input)
                    one.mapping("inputs").entries[name] = (key, long)


def _report_empty(node: Node, text: SpecText) -> None:
    for name, (key, value) in node.entries.items():
        if value.kind == "scalar" and value.value is None:
            message = f"{quote(name)} has no value" if not value.text else f"{quote(name)} cannot be null"
            text.report(*key.place, message, "give it a value, or remove the key")
            value.kind = "unreadable"
        elif name not in _NULL_ALLOWED:
            _report_empty(value, text)
    for item in node.items:
        _report_empty(item, text)


def _take_reserved(node: Node, reserved: list[str], path: list[str | int], text: SpecText) -> None:
    for name in reserved:
        if entry := node.entries.pop(name, None):
            report_unknown_key(entry[1], entry[0], path, text)


def check_scenarios(root: Node, text: SpecText) -> None:
    """Report what is wrong with the scenarios of the resolved tree `root`, as far as the model alone cannot tell."""
    scenarios = root.get("scenarios")
    if scenarios and scenarios.kind == "sequence" and not scenarios.items:
        text.report(*scenarios.place, "scenarios must not be empty", "add one: '- id: …' below 'scenarios:'")
    first: dict[str, Node] = {}
    for scenario in scenarios.items if scenarios else ():
        if scenario.kind != "mapping":
            continue
        id = scenario.get("id")
        if id and isinstance(id.value, str) and (known := first.setdefault(id.value, id)) is not id:
            message = f"duplicate id {quote(id.value)}, first given in line {known.line}"
            text.report(*id.place, message, "rename one of the two")
        _check_scenario(scenario, root.mapping("defaults"), text)


def check_subjects(root: Node, text: SpecText) -> None:
    """Report scenarios of a file without other mistakes that can check nothing."""
    scenarios, defaults = root.get("scenarios"), root.mapping("defaults")
    for scenario in scenarios.items if scenarios else ():
        inputs = scenario.mapping("inputs").entries
        check_subject(scenario, {name for name in inputs if _takes_gradient(scenario, name, defaults)}, text)


def default_dtype(defaults: Node) -> str:
    """The dtype of inputs that give none."""
    dtype = defaults.string("dtype")
    return dtype if dtype and dtype in _DTYPES else "float64"


def default_verdict(scenario: Node, defaults: Node) -> str:
    """What the gradient check is expected to say where a scenario does not tell."""
    differentiable = any(_takes_gradient(scenario, name, defaults) for name in scenario.mapping("inputs").entries)
    is_layer = "layer" in scenario.entries and "script" not in scenario.entries
    return "matches" if differentiable and is_layer else "unchecked"


def _takes_gradient(scenario: Node, name: str, defaults: Node) -> bool:
    """Whether an input has a gradient, for one of its dtypes."""
    input = scenario.mapping("inputs").entries[name][1]
    return has_gradient(input, _dtypes(scenario, input, defaults))


def _dtypes(scenario: Node, input: Node, defaults: Node) -> list[str]:
    """The dtypes that an input takes over the matrix."""
    if own := input.string("dtype"):
        return [own]
    matrix = scenario.mapping("matrix").get("dtype")
    several = [item.value for item in matrix.items if isinstance(item.value, str)] if matrix else []
    return [one for one in several if one in _DTYPES] or [default_dtype(defaults)]


def _check_scenario(scenario: Node, defaults: Node, text: SpecText) -> None:
    inputs = scenario.get("inputs")
    if not set(scenario.entries) <= set(model.Scenario.model_fields) or (inputs and inputs.kind != "mapping"):
        scenario.incomplete = True  # what is written there in place of something has a message of its own
    _check_program(scenario, text)
    shapes: dict[str, tuple[int, ...] | None] = {}
    parameters = parameters_of(scenario)
    for name, (key, input) in scenario.mapping("inputs").entries.items():
        check_name(key, "an input", text)
        if input.kind == "mapping":
            ranks = ranks_of(scenario, input)
            check_input(name, input, _dtypes(scenario, input, defaults), parameters, text, max(ranks, default=1))
            shapes[name] = _whole_shape(input, ranks)
    for name, (_, values) in scenario.mapping("matrix").entries.items():
        _check_matrix_values(name, values, text)
    _check_matrix(scenario, text)
    check_sizes(scenario, text)
    check_explore(scenario, text)
    check_aliases(scenario, text)
    for tag in tags.items if (tags := scenario.get("tags")) else ():
        if tag.value in _OPERATORS:
            help = "choose another word: 'and', 'or' and 'not' join tags in a selection"
            text.report(*tag.place, f"{quote(tag.text)} cannot be a tag", help)
    check_world(scenario, text)
    check_backends(scenario, text)
    check_citations(scenario, text)
    code = cache(partial(words_of, scenario, text))  # few scenarios have use for them
    check_parameters(scenario, code, text)
    differentiable = default_verdict(scenario, defaults) == "matches"
    for expect in all_expectations(scenario):
        if expect.kind == "mapping":
            _check_expect(expect, scenario, shapes, differentiable, text)
            check_exceptions(expect, code, text)


def _whole_shape(input: Node, ranks: list[int]) -> tuple[int, ...] | None:
    """The shape of an input and its gradient, those of all `ranks` together; None where it is not one."""
    shape = input_shape(input)
    if shape is None or not ranks or "values" in input.entries:
        return shape
    return (ranks[0], *shape) if len(ranks) == 1 else None


def _check_program(scenario: Node, text: SpecText) -> None:
    """A layer, a script, or a script behind the source of a layer, with code in it that is Python."""
    layer, script, call = scenario.get("layer"), scenario.get("script"), scenario.get("call")
    if layer and script and layer.kind == "mapping":
        help = "import the layer in the script, or remove the script to check the layer's gradient"
        text.report(*scenario.at("script"), "a script beside a layer that has no source here", help)
    elif not layer and not script and not scenario.incomplete:
        help = "add 'layer: |' with the layer's code, or 'script: |' with a whole program"
        text.report(scenario.line, scenario.column, 1, "a scenario needs 'layer' or 'script'", help)
    if script:
        check_python(script, text, "the script", "exec")
    for useless in ("inputs", "call") if script and not (layer and layer.kind == "mapping") else ():
        if useless in scenario.entries:
            help = "remove it, or keep a 'layer' alone to check its gradient"
            text.report(*scenario.at(useless), f"a script has no use for {quote(useless)}", help)
    is_source = layer is not None and isinstance(layer.value, str)
    if layer is not None and is_source and re.fullmatch(model.REFERENCE, layer.text):
        text.report(*layer.place, "this is the name of a layer, and no Python source", f"write {{ref: '{layer.text}'}}")
        return
    code = check_python(layer, text, "the layer", "exec") if layer is not None and is_source else None
    if script:
        return
    if call:
        check_call(scenario, call, check_python(call, text, "call", "eval"), code, text)
    elif layer and code is not None and not scenario.incomplete:
        check_default_call(layer, code, text)


def _check_matrix_values(name: str, values: Node, text: SpecText) -> None:
    """The values of one parameter: not none, each once, and such that case names can hold them."""
    if values.kind != "sequence":
        return  # the model reports it
    if not values.items:
        text.report(*values.place, f"matrix: {quote(name)} has no values", "list its values, or remove the parameter")
    seen: set[str] = set()
    for item in values.items:
        value = item.value
        message = help = ""
        if item.kind == "unreadable":
            continue
        if item.kind != "scalar" or value is None:
            message, help = f"matrix: {quote(name)} takes text, numbers and booleans, not {describe(item)}", ""
        elif (known := _OF_ALL_INPUTS.get(name)) and value not in known:
            message = f"unknown {name} {quote(item.text)}"
            help = text.suggest(item.text, list(known)) or f"write {listing(known)}"
        elif name == "world" and not is_size(item):
            message = f"matrix: {quote(item.text)} is no number of ranks"
            help = f"write whole numbers from 1 to {MOST_RANKS}; axes, as {{mp: 2}}, are for 'world' itself"
        elif not _CASE_NAME_PART.fullmatch(str(value)):
            message = f"matrix: {quote(item.text)} cannot be part of a case's name"
            help = "use letters, digits, '.', '_', '+' and '-' only"
        elif str(value) in seen:  # 1 and "1" would have the same name
            message, help = f"matrix: {quote(item.text)} is given twice", "remove one of the two"
        if message:
            text.report(*item.place, message, help)
            item.kind = "unreadable"
        seen.add(str(value))


def _check_matrix(scenario: Node, text: SpecText) -> None:
    matrix = scenario.mapping("matrix")
    for name, (key, _) in matrix.entries.items():
        check_name(key, "a matrix parameter", text)
        if name in variables(scenario.mapping("inputs").entries):
            text.report(*key.place, f"matrix parameter {quote(name)} has the name of an input", "rename one of the two")
    count = prod(len(values.items) for _, values in matrix.entries.values() if values.items)
    if count > MAX_COMBINATIONS:
        message = f"the matrix has {count:,} combinations, at most {MAX_COMBINATIONS} are allowed"
        text.report(*scenario.at("matrix"), message, "split the scenario")


def _check_expect(
    expect: Node, scenario: Node, shapes: dict[str, tuple[int, ...] | None], differentiable: bool, text: SpecText
) -> None:
    text.report_all(_conflicts(expect, scenario, differentiable))
    grads, differs = expect.mapping("grads").entries, expect.mapping("differs")
    inputs = differs.get("inputs")
    named = [
        *(("grads", key) for key, _ in grads.values()),
        *(("differs", one) for one in (inputs.items if inputs else ())),
    ]
    for section, one in named if shapes and not scenario.incomplete else ():
        if isinstance(one.value, str) and one.value not in shapes:
            help = text.suggest(one.value, list(shapes)) or f"the inputs are {listing(shapes, 'and')}"
            text.report(*one.place, f"{section}: there is no input {quote(one.value)}", help)
    for name, (_, value) in grads.items():
        shape = None if value.kind == "scalar" and value.value is None else check_numbers(value, "a gradient", text)
        if shape is not None and (input := shapes.get(name)) is not None and shape != input:
            message = f"grads: the gradient of {quote(name)} has shape {list(shape)}, the input {list(input)}"
            text.report(*value.place, message, "a gradient has the shape of its input")
    code = differs.get("code")
    if code is not None and isinstance(code.value, str) and code.value not in CODES:
        help = text.suggest(code.value, list(CODES)) or "'gradcheck explain' lists all codes"
        text.report(*code.place, f"there is no diagnosis {quote(code.value)}", help)
    if cotangent := expect.get("cotangent"):
        check_numbers(cotangent, "a cotangent", text)
    for _, (key, value) in expect.mapping("values").entries.items():
        check_python(key, text, "the expression", "eval")
        check_value(value, text)
    for section in ("raises", "warns"):
        if pattern := expect.mapping(section).mapping("message").get("re"):
            check_pattern(pattern, text)


def _conflicts(expect: Node, scenario: Node, differentiable: bool) -> Iterator[Remark]:
    """Expectations that cannot hold together, or not for this scenario."""
    verdict = expect.string("gradient")
    asking = [
        (name, f"{name}: {value.text}" if value.kind == "scalar" else name)
        for name, (_, value) in expect.entries.items()
        if (name == "gradient" and verdict not in (None, "unchecked"))
        or (name in ("grads", "differs") and value.entries)
        or (name, value.value) in (("order", 2), ("precision", "loose"))
    ]
    why = ("", "")
    if "raises" in expect.entries:
        help = "remove one of the two: a run that ends with an exception has no gradient to check"
        why = ("and 'raises' exclude each other", help)
    elif ("script" in scenario.entries or "layer" not in scenario.entries) and not scenario.incomplete:
        help = "write the layer's code as 'layer', with 'inputs'; a script can check 'values: {x.grad: …}'"
        why = ("needs a layer, this is a script", help)
    elif not differentiable and not scenario.incomplete:
        help = "give one a floating dtype and 'stop_gradient: false', or write 'gradient: unchecked'"
        why = ("needs an input that has a gradient", help)
        asking = [(name, shown) for name, shown in asking if name != "grads"]
    yield from ((expect.at(name), f"'{shown}' {why[0]}", why[1]) for name, shown in asking if why[0])
    if "differs" in expect.entries and verdict not in (None, "differs"):
        message = f"'differs' tells how a gradient differs, 'gradient: {verdict}' says otherwise"
        yield expect.at("differs"), message, "write 'gradient: differs', or remove one of the two"
    for name, shown in asking:
        if name in ("order", "precision") and verdict == "unchecked":
            message = f"'{shown}' asks for a check, 'gradient: unchecked' for none"
            yield expect.at(name), message, "remove one of the two"
    if "cotangent" in expect.entries and "grads" not in expect.entries:
        help = "add the gradients that belong to it, or remove it"
        yield expect.at("cotangent"), "'cotangent' is of no use without 'grads'", help
