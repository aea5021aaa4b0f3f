"""Rules of the format that take more than one field, or more than a type, to judge; checked on the tree."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import get_args

from gradcheck.codes import CODES
from gradcheck.spec import model
from gradcheck.spec.code import (
    check_call,
    check_default_call,
    check_exceptions,
    check_parameters,
    check_python,
    words_of,
)
from gradcheck.spec.containers import variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.input_rules import check_aliases, check_input, check_name, check_numbers, check_value
from gradcheck.spec.messages import known_keys, report_unknown_key
from gradcheck.spec.model import MOST_RANKS, Format, is_static
from gradcheck.spec.parts import (
    ELEMENT_TYPES,
    all_expectations,
    backend_entries,
    default_verdict,
    differentiable,
    dtypes_of,
    input_shape,
    is_size,
    parameters_of,
    ranks_of,
    world_key,
    world_sizes,
)
from gradcheck.spec.resolve import cited, is_name, is_several
from gradcheck.spec.subject import check_subject
from gradcheck.spec.text import Remark, SpecText
from gradcheck.spec.tree import Node, describe
from gradcheck.spec.versions import is_range, shared
from gradcheck.support.resources import bundled_specs

MAX_COMBINATIONS = 256
MAX_GROUPS = 100
"""Parentheses in one pattern: `re` compiles by recursion, which at about 250 ends where a case has less stack."""
MAX_PATTERNS = 100_000
"""Characters of all patterns of a file: at most 2 s, at 20 ms for the slowest of 1,000 (``(?i)`` and many ranges)."""

# Parameters of a matrix that hold for every input -> their values.
_OF_ALL_INPUTS = {"dtype": ELEMENT_TYPES, "layout": get_args(model.Layout)}
_NULL_ALLOWED = ("values", "grads")  # below these keys null is a value like any other
_RULE = re.compile(r"^ +- id: ([a-z0-9-]+)$", re.MULTILINE)  # of the catalogue
_CASE_NAME_PART = re.compile(r"[A-Za-z0-9._+-]+")
_OF_SCENARIOS = ["path", "line", "column", "begins", "positions"]
_RESERVED_IN_INPUTS = ["dtype_written", "layout_written", "from_"]
# Keys of an expectation that hold at the inputs that a scenario gives.
_HELD = ("grads", "values", "calls", "warns", "raises", "differs", "cotangent")
# Of a backend: a key, keys that it rules out, and what to do about it.
_APART = (
    ("skip", ("xfail", "observed"), "keep one: a case that is not run cannot fail"),
    ("xfail", ("observed",), "keep 'observed', which says in what way the case fails"),
    ("expect", ("observed",), "keep 'expect' if what it does is right, 'observed' if it is not"),
    ("reason", ("policy",), "keep 'policy', which has a reason of either side, if it is no mistake"),
)
# `re` makes a table of 64 kB for a range that ends beyond ASCII, and with (?i) looks at each character in it: a
# pattern of 1,000 characters takes 0.4 s, or a minute.
_WIDE_RANGE = re.compile(r"-(?:[^\x00-\x7f]|\\[uUN])")


# --------------------------------------------------------------------------- the tree as it is written
def prepare(root: Node, text: SpecText) -> None:
    """Report and take out, on the tree as written, what later stages would overlook: empty values, reserved keys."""
    _report_empty(root, text)
    _take_reserved(root, ["path"], [], text)
    for index, scenario in enumerate(root.listed("scenarios")):
        for one in (scenario, *scenario.listed("cases")):
            _take_reserved(one, _OF_SCENARIOS, ["scenarios", index], text)
            for name, (key, input) in one.under("inputs").items():
                _take_reserved(input, _RESERVED_IN_INPUTS, ["scenarios", index, "inputs", name], text)
                if input.kind == "sequence" and not is_several(input):
                    long = Node("mapping", input.line, input.column, input.end_line, input.end_column)
                    long.entries["shape"] = (input, input)
                    one.under("inputs")[name] = (key, long)


def _report_empty(node: Node, text: SpecText) -> None:
    for name, (key, value) in node.entries.items():
        if value.kind == "scalar" and value.value is None:
            message = f"{quote(name)} has no value" if not value.text else f"{quote(name)} cannot be null"
            text.report(key, message, "give it a value, or remove the key")
            value.kind = "unreadable"
        elif name not in _NULL_ALLOWED:
            _report_empty(value, text)
    for item in node.items:
        _report_empty(item, text)


def _take_reserved(node: Node, reserved: list[str], path: list[str | int], text: SpecText) -> None:
    for name in reserved:
        if entry := node.entries.pop(name, None):
            report_unknown_key(entry[1], entry[0], path, text)


# --------------------------------------------------------------------------- scenarios
def check_scenarios(root: Node, text: SpecText) -> None:
    """Report what is wrong with the scenarios of the resolved tree `root`, as far as the model alone cannot tell."""
    scenarios = root.get("scenarios")
    if scenarios and scenarios.kind == "sequence" and not scenarios.items:
        text.report(scenarios, "scenarios must not be empty", "add one: '- id: …' below 'scenarios:'")
    first: dict[str, Node] = {}
    for scenario in root.listed("scenarios"):
        if scenario.kind != "mapping":
            continue
        id = scenario.get("id")
        if id and isinstance(id.value, str) and (known := first.setdefault(id.value, id)) is not id:
            message = f"duplicate id {quote(id.value)}, first given in line {known.line}"
            text.report(id, message, "rename one of the two")
        _check_scenario(scenario, root.mapping("defaults"), text)


def check_subjects(root: Node, text: SpecText) -> None:
    """Report scenarios of a file without other mistakes that can check nothing."""
    for scenario in root.listed("scenarios"):
        check_subject(scenario, differentiable(scenario, root.mapping("defaults")), text)


def _check_scenario(scenario: Node, defaults: Node, text: SpecText) -> None:
    """Report what is wrong with one scenario. What has an unknown key may lack another because of that."""
    parts: list[tuple[Node, type[Format]]] = [(scenario, model.Scenario)]
    parts += [(input, model.Input) for _, input in scenario.under("inputs").values()]
    parts += [(one, model.BackendExpectation) for entries in backend_entries(scenario) for one in entries]
    for part, kind in parts:
        part.incomplete |= any(key not in known_keys(kind) for key in part.entries)
    if (written := scenario.get("inputs")) and written.kind != "mapping":
        scenario.incomplete = True
    _check_program(scenario, text)
    shapes: dict[str, tuple[int, ...] | None] = {}
    parameters = parameters_of(scenario)
    for name, (key, input) in scenario.under("inputs").items():
        check_name(key, "an input", text)
        if input.kind == "mapping":
            ranks = ranks_of(scenario, input)
            check_input(name, input, dtypes_of(scenario, input, defaults), parameters, text, max(ranks, default=1))
            shapes[name] = _whole_shape(input, ranks)
    for name, (key, values) in scenario.under("matrix").items():
        check_name(key, "a matrix parameter", text)
        if values.kind == "sequence":
            _check_matrix_values(name, values, text)
    _check_sizes(scenario, text)
    check_aliases(scenario, text)
    text.report_all(_names_that_stand_for_something_else(scenario, text))
    text.report_all(_world(scenario))
    for check in (_without_world, _in_world, _explored) if not scenario.incomplete else ():
        text.report_all(check(scenario))
    for value, entries in zip(scenario.under("backends").values(), backend_entries(scenario), strict=True):
        if value[1].kind == "sequence" and not value[1].items:
            message = "a backend's expectations must not be empty"
            text.report(value[1], message, "write what is different, or remove it")
        _check_versions(entries, text)
        for entry in entries:
            text.report_all(_of_a_backend(entry))
    code = functools.cache(functools.partial(words_of, scenario, text))  # few scenarios have use for them
    check_parameters(scenario, code, text)
    has_gradient = default_verdict(scenario, defaults) == "matches"
    for expect in all_expectations(scenario):
        if expect.kind == "mapping":
            text.report_all(_conflicts(expect, scenario, has_gradient))
            _check_expect(expect, scenario, shapes, text)
            check_exceptions(expect, code, text)


def _whole_shape(input: Node, ranks: list[int]) -> tuple[int, ...] | None:
    """The shape of an input and its gradient, those of all `ranks` together; None where it is not one."""
    shape = input_shape(input)
    if shape is None or not ranks or "values" in input.entries:
        return shape
    return (ranks[0], *shape) if len(ranks) == 1 else None


def _names_that_stand_for_something_else(scenario: Node, text: SpecText) -> Iterator[Remark]:
    """Tags that are words of a selection, and rules that the catalogue has not."""
    for tag in scenario.listed("tags"):
        if tag.value in ("and", "or", "not"):
            help = "choose another word: 'and', 'or' and 'not' join tags in a selection"
            yield tag, f"{quote(tag.text)} cannot be a tag", help
    for name in cited(scenario):
        if is_name(name) and name.text not in rule_ids():
            help = text.suggest(name.text, rule_ids()) or "see `gradcheck list rules`; words of your own are 'tags'"
            yield name, f"there is no rule {quote(name.text)}", help


@functools.cache
def rule_ids() -> list[str]:
    """The ids of the rule catalogue, which `gradcheck.matrix.catalogue` reads: to read all of it as YAML takes as long
    as all else of `validate`."""
    files = sorted((bundled_specs() / "rules").glob("*.yaml"))
    return [id for file in files for id in _RULE.findall(file.read_text(encoding="utf-8"))]


def _check_program(scenario: Node, text: SpecText) -> None:
    """A layer, a script, or a script behind the source of a layer, with code in it that is Python."""
    layer, script, call = scenario.get("layer"), scenario.get("script"), scenario.get("call")
    if layer and script and layer.kind == "mapping":
        help = "import the layer in the script, or remove the script to check the layer's gradient"
        text.report(scenario.at("script"), "a script beside a layer that has no source here", help)
    elif not layer and not script and not scenario.incomplete:
        help = "add 'layer: |' with the layer's code, or 'script: |' with a whole program"
        text.report(scenario.start, "a scenario needs 'layer' or 'script'", help)
    check_python(script, text, "the script")
    for useless in ("inputs", "call") if script and not (layer and layer.kind == "mapping") else ():
        if useless in scenario.entries:
            help = "remove it, or keep a 'layer' alone to check its gradient"
            text.report(scenario.at(useless), f"a script has no use for {quote(useless)}", help)
    if layer and isinstance(layer.value, str) and re.fullmatch(model.REFERENCE, layer.text):
        text.report(layer, "this is the name of a layer, and no Python source", f"write {{ref: '{layer.text}'}}")
        return
    code = check_python(layer, text, "the layer")
    if script:
        return
    if call:
        check_call(scenario, call, check_python(call, text, "call"), code, text)
    elif layer and code is not None and not scenario.incomplete:
        check_default_call(layer, code, text)


# --------------------------------------------------------------------------- its matrix and its sizes
def _check_matrix_values(name: str, values: Node, text: SpecText) -> None:
    """The values of one parameter: not none, each once, and such that case names can hold them."""
    if not values.items:
        text.report(values, f"matrix: {quote(name)} has no values", "list its values, or remove the parameter")
    seen: set[str] = set()
    for item in values.items:
        value, message, help = item.value, "", ""
        if item.kind == "unreadable":
            continue
        if item.kind != "scalar" or value is None:
            message = f"matrix: {quote(name)} takes text, numbers and booleans, not {describe(item)}"
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
            text.report(item, message, help)
            item.kind = "unreadable"
        seen.add(str(value))


def _check_sizes(scenario: Node, text: SpecText) -> None:
    """Report parameters and sizes whose names are taken, sizes that are no numbers, and too many combinations."""
    inputs, matrix = variables(scenario.under("inputs")), scenario.under("matrix")
    for name, (key, _) in matrix.items():
        if name in inputs:
            text.report(key, f"matrix parameter {quote(name)} has the name of an input", "rename one of the two")
    count = prod(len(values.items) for _, values in matrix.values() if values.items)
    if count > MAX_COMBINATIONS:
        message = f"the matrix has {count:,} combinations, at most {MAX_COMBINATIONS} are allowed"
        text.report(scenario.at("matrix"), message, "split the scenario")
    for name, (key, value) in scenario.under("sizes").items():
        check_name(key, "a size", text)
        if taken := "an input" if name in inputs else "a parameter of the matrix" if name in matrix else "":
            text.report(key, f"the size {quote(name)} has the name of {taken}", "remove one of the two")
        if value.kind == "sequence":
            message = f"the size {quote(name)} must be a whole number, not {describe(value)}"
            text.report(value, message, "for several, use 'matrix'")
            value.kind = "unreadable"


def _explored(scenario: Node) -> Iterator[Remark]:
    """Why a scenario whose inputs are to be drawn cannot be explored: the first reason."""
    if "explore" in scenario.entries:
        yield from ((scenario.at("explore"), *why) for why in itertools.islice(_unfit(scenario), 1))


def _unfit(scenario: Node) -> Iterator[tuple[str, str]]:
    if "script" in scenario.entries:
        yield "'explore' draws the inputs of a layer, this is a script", "write the code as 'layer', with 'inputs'"
    if world_key(scenario) is not None:
        yield "'explore' is not done in a world", "remove it, or give 'sizes' in its place"
    for expect in all_expectations(scenario):
        for key in _HELD:
            if key in expect.entries:
                message = f"{quote(key)} holds at certain inputs, and 'explore' draws them"
                yield message, "move it to a scenario with inputs of its own"
        if (said := expect.string("gradient")) in ("unchecked", "differs"):
            yield f"'gradient: {said}' leaves 'explore' nothing to look for", "remove one of the two"


# --------------------------------------------------------------------------- its world
def _world(scenario: Node) -> Iterator[Remark]:
    """A world that is given twice or too large, outputs that are none, and values that are not those of all ranks."""
    if "world" in scenario.entries:
        own = scenario.at("world")
        if "world" in (matrix := scenario.under("matrix")):
            message = f"both the matrix (line {matrix['world'][0].line}) and the scenario give a world"
            yield own, message, "keep one of the two"
        if (ranks := prod(world_sizes(scenario))) > MOST_RANKS:
            message = f"the world has {ranks:,} ranks, at most {MOST_RANKS} are allowed"
            yield scenario.entries["world"][1], message, "a mistake shows on 2, 3 or 4 ranks"
    outputs = scenario.get("outputs")
    if outputs is not None and outputs.kind == "sequence" and not outputs.items:
        yield outputs, "outputs must not be empty", "write {ranks: replicated} for all, or one for each"
    for name, (_, input) in scenario.under("inputs").items():
        values = input.get("values")
        if values is None or values.kind == "unreadable":
            continue
        has = f"{len(values.items)} entr{'y' if len(values.items) == 1 else 'ies'}"
        has = has if values.kind == "sequence" else "a number"
        for size in ranks_of(scenario, input):
            if values.kind != "sequence" or len(values.items) != size:
                message = (
                    f"input {quote(name)} is split over {size} rank{'s' * (size != 1)}, so its values have a first "
                    f"axis of that size, but here is {has}"
                )
                yield values, message, "list the values of each rank, or write 'ranks: replicated'"
                break


def _without_world(scenario: Node) -> Iterator[Remark]:
    """What a scenario without a world says of one."""
    said = [scenario.at(key) for key in ("outputs", "random") if key in scenario.entries]
    said += [input.at("ranks") for _, input in scenario.under("inputs").values() if "ranks" in input.entries]
    for key in said if world_key(scenario) is None else ():
        help = "say how many ranks there are, such as 'world: 4', or remove it"
        yield key, f"{quote(key.text)} is of no use without a world", help


def _in_world(scenario: Node) -> Iterator[Remark]:
    """What a scenario in a world asks for, and is not done there."""
    key, layer = world_key(scenario), scenario.get("layer")
    if key is None:
        return
    if "script" in scenario.entries:
        help = "write the program's layer as 'layer', with 'inputs', or remove the world"
        yield key, "a script does not run in a world: only a 'layer' does", help
    elif layer is not None and is_static(layer.value):
        help = "write the layer as a PyLayer, or remove the world"
        yield key, "a static layer (forward_fn) does not run in a world", help
    for expect in all_expectations(scenario):
        if (order := expect.get("order")) is not None and order.value == 2:
            help = "remove it: in a world the derivative alone is checked"
            yield expect.at("order"), "'order: 2' is not done in a world", help


# --------------------------------------------------------------------------- its backends
def _check_versions(entries: list[Node], text: SpecText) -> None:
    """Report ranges of versions that are none, and two entries of one backend that are about the same version."""
    ranges: list[tuple[Node, Node | None]] = []
    for entry in entries:
        range = entry.get("versions")
        if range is None or (isinstance(range.value, str) and is_range(range.value)):
            ranges.append((entry, range))
        elif isinstance(range.value, str):
            help = "write '>=3.0,<3.3' or '==3.0.0': comparisons of PEP 440, joined by commas"
            text.report(range, f"versions: {quote(range.text)} is no range of versions", help)
            range.kind = "unreadable"
    for (_, one), (entry, other) in itertools.combinations(ranges, 2):
        if common := shared(*(None if range is None else str(range.value) for range in (one, other))):
            limited = one is not None and other is not None
            help = "let one range end where another begins" if limited else "an entry without 'versions' is about all"
            text.report(other or entry, f"two entries are about version {common}", help)


def _of_a_backend(entry: Node) -> Iterator[Remark]:
    """What does not go together in what is said of a backend."""
    for key, others, help in _APART:
        for other in others:
            if key in entry.entries and other in entry.entries:
                yield entry.at(key), f"both {quote(other)} and {quote(key)} for one backend", help
    for key in ("reason", "policy", "issue"):
        if key in entry.entries and "observed" not in entry.entries and not entry.incomplete:
            yield entry.at(key), f"{quote(key)} is of no use without 'observed'", "xfail and skip have their own"
    observed = entry.get("observed")
    if observed is None or observed.kind != "mapping":
        return
    if entry.entries.keys().isdisjoint(["reason", "policy"]) and not entry.incomplete:
        yield entry.at("observed"), "'observed' needs a 'reason' beside it", "add 'reason: …': why, in one sentence"
    for key, node in (("observed", observed), ("crash", observed.get("crash"))):
        if node is not None and not node.entries and not node.items and node.kind in ("mapping", "sequence"):
            yield node, f"{key} must not be empty", "write what is seen"
    ends = [key for key in ("crash", "hang") if key in observed.entries]
    besides = [key for key in observed.entries if key not in ends] + ends[1:]
    if ends and besides:
        message = f"{quote(besides[0])} cannot be seen of a case that ends by {quote(ends[0])}"
        yield observed.at(besides[0]), message, "keep one of the two"
    hang = observed.get("hang")
    if hang is not None and hang.value is False:
        yield observed.at("hang"), "'hang: false' says nothing", "remove it"


# --------------------------------------------------------------------------- its expectations
def _check_expect(expect: Node, scenario: Node, shapes: Mapping[str, tuple[int, ...] | None], text: SpecText) -> None:
    """Report what is wrong with what is expected of inputs of such `shapes`, by itself."""
    grads, differs = expect.under("grads"), expect.mapping("differs")
    named = [("grads", key) for key, _ in grads.values()] + [("differs", one) for one in differs.listed("inputs")]
    for section, one in named if shapes and not scenario.incomplete else ():
        if isinstance(one.value, str) and one.value not in shapes:
            help = text.suggest(one.value, list(shapes)) or f"the inputs are {listing(shapes, 'and')}"
            text.report(one, f"{section}: there is no input {quote(one.value)}", help)
    for name, (_, value) in grads.items():
        shape = None if value.kind == "scalar" and value.value is None else check_numbers(value, "a gradient", text)
        if shape is not None and (input := shapes.get(name)) is not None and shape != input:
            message = f"grads: the gradient of {quote(name)} has shape {list(shape)}, the input {list(input)}"
            text.report(value, message, "a gradient has the shape of its input")
    code = differs.get("code")
    if code is not None and isinstance(code.value, str) and code.value not in CODES:
        help = text.suggest(code.value, list(CODES)) or "'gradcheck explain' lists all codes"
        text.report(code, f"there is no diagnosis {quote(code.value)}", help)
    if cotangent := expect.get("cotangent"):
        check_numbers(cotangent, "a cotangent", text)
    for key, value in expect.under("values").values():
        check_python(key, text, "the expression")
        check_value(value, text)
    for section in ("raises", "warns"):
        if pattern := expect.mapping(section).mapping("message").get("re"):
            _check_pattern(pattern, text)


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


def _check_pattern(pattern: Node, text: SpecText) -> None:
    """Report a regular expression that is none, or would take long to compile.

    It is searched for while a case runs, within its time limit: how long a search takes is the case's own affair.
    """
    source = pattern.value
    if id(pattern) in text.patterns or not isinstance(source, str) or len(source) > model.MAX_PATTERN:
        return  # seen before through `extends`, or the model reports it
    before = sum(text.patterns.values())
    if before > MAX_PATTERNS:
        return  # reported at the first that was too much
    text.patterns[id(pattern)] = len(source)
    if before + len(source) > MAX_PATTERNS:
        message = f"the regular expressions in this file are longer than {MAX_PATTERNS:,} characters together"
        text.report(pattern, message, "split the file by topic")
    elif source.count("(") > MAX_GROUPS:
        message = f"a regular expression with more than {MAX_GROUPS} groups"
        text.report(pattern, message, "look for less of the message")
    elif "[" in source and _WIDE_RANGE.search(source):
        message = "a range in a regular expression must end with an ASCII character"
        text.report(pattern, message, "write the characters one by one, such as [αβγ], or '.'")
    else:
        try:
            re.compile(source)
        except (re.error, OverflowError, RecursionError) as error:
            help = "put a backslash before (, ), [, ], ., *, +, ? where they stand for themselves"
            text.report(pattern, f"not a regular expression: {error}", help)
