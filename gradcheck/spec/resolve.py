"""``extends``, ``cases``, ``layers``, ``defaults``: completes scenarios; values keep their
positions.

A scenario takes keys from the scenario that it extends, from the one that it is a case of, and from
the file's layers and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gradcheck.spec.containers import inside
from gradcheck.spec.data import Map, Part, Seq
from gradcheck.spec.diagnostic import describe, listing, quote
from gradcheck.spec.literals import ELEMENT_TYPES
from gradcheck.spec.model import KEBAB, OPERATIONS, Input, Scenario
from gradcheck.spec.text import SpecText

_OF_LAYER = {"call", "inputs", "kwargs", "sizes", "world", "outputs", "random"}
_REASONS = {"reason", "policy", "issue"}
# A scenario's key -> inherited keys that it excludes, which are therefore dropped.
_REPLACES = {
    "layer": {"script"},
    "script": {"layer", *_OF_LAYER},
    "call": {"kwargs"},
    "kwargs": {"call"},
    "raises": {"gradient", "differs", "grads", "cotangent", "order"},
    "gradient": {"raises", "differs"},
    "differs": {"raises", "gradient"},
    "grads": {"raises"},
    "order": {"raises"},
    "xfail": {"skip", "observed", *_REASONS},
    "skip": {"xfail", "observed", *_REASONS},
    "reason": {"policy"},
    "policy": {"reason"},
    "observed": {"xfail", "skip", "expect"},
}
# A program that is a case of a scenario runs after the scenario's layer.
_REPLACES_IN_CASE = {**_REPLACES, "script": _OF_LAYER, "layer": set[str]()}
# Keys whose mappings are completed from inherited ones, name by name or by the rules above.
_JOINED = ("inputs", "kwargs", "matrix", "sizes")
_MERGED = ("expect", "calls", "backends", "numpy", "cupy", "paddle", "torch")
_OF_INPUT = ("shape", "values", "from")
_OWN = ("id", "extends", "cases")
_DEFAULTS = ("seed", "timeout", "rtol", "source", "tags", "matrix", "backends")
_LAYERS_FORM = "write each as 'name: layer', without the '-'"
_LAYER_HELP = (
    "write its source, {ref: pkg.mod:Class} for a class of a module, {op: …} for an operation of "
    "paddle, or add it to 'layers:'"
)
_LAYER_NAME = re.compile(r"[\w.-]+")
_NAME = re.compile(KEBAB)
_CODE = ("layer", "script", "call")

MOST_LAYERS_NAMED = 12
"""The maximum number of layers that a message lists."""
MAX_CHAIN = 10
MAX_RESOLVED_NODES = 200_000


class Expanded(NamedTuple):
    """A scenario with the keys that it inherits, or one of its cases."""

    value: Map
    begins: int
    """The first line of the scenario, or of the scenario that it is a case of."""


def resolve(root: Map, text: SpecText) -> Map:
    """Return the document with each scenario complete: its own keys, inherited ones and the file's
    defaults.

    A scenario with ``cases`` becomes one scenario for each. A scenario that inherits from something
    that does not exist is reported and left out.
    """
    resolved = root.copy()
    written = root.get("scenarios")
    if isinstance(written, Seq):
        defaults, layers = root.map("defaults"), root.map("layers")
        if isinstance(root.get("layers"), Seq):  # then no name of a layer is known
            text.report(
                root.marks["layers"][1].place, "layers must be a mapping, not a list", _LAYERS_FORM
            )
            raise text.error()
        scenarios = [*_name_layers(_expand(written, text), layers, text)]
        _report_duplicates(scenarios, text)
        items = [_complete(scenario, defaults, text) for scenario in scenarios]
        if written and not items:
            raise text.error()
        resolved["scenarios"] = Seq(items, [item.mark for item in items])
        if resolved["scenarios"].size > MAX_RESOLVED_NODES:
            message = f"'extends' and 'defaults' make this more than {MAX_RESOLVED_NODES:,} values"
            text.report(root.marks["scenarios"][1].place, message, "split the file by topic")
            raise text.error()
    return resolved


def _mappings(entries: Seq, text: SpecText) -> Iterator[Map]:
    """Yield the entries of a list that are mappings, and report others."""
    for part in entries.parts():
        if isinstance(part.value, Map):
            yield part.value
        else:
            message = f"a scenario must be a mapping, not {describe(part.value)}"
            text.report(part.mark.place, message, f"write {Scenario.example}")


def merge(inherited: Map, entry: Map, replaces: Mapping[str, set[str]] = _REPLACES) -> Map:
    """Return `entry`, completed from `inherited` except for keys that it excludes by `replaces`."""
    dropped = {other for key in entry for other in replaces.get(key, ())}
    merged = inherited.without(dropped).union(entry)
    merged.mark, merged.inherited = entry.mark, merged.keys() - entry.keys()
    for key, value in entry.items():
        before = inherited.get(key)
        if not isinstance(before, Map) or not isinstance(value, Map):
            continue
        if key in _JOINED:
            merged[key] = before.union(value)
        elif key in _MERGED:
            merged[key] = merge(before, value)
    return merged


# --------------------------------------------------------------------------- extends and cases
def _expand(written: Seq, text: SpecText) -> Iterator[Expanded]:
    """Yield the scenarios of a file with inherited keys, one for each of their cases."""
    items = [*_mappings(written, text)]
    by_id = {str(item["id"]): item for item in reversed(items) if "id" in item}
    for item in items:
        scenario = _extend(item, by_id, text)
        if scenario is None:
            continue
        cases = item.get("cases")
        if not isinstance(cases, Seq) or not cases:
            yield Expanded(scenario, item.mark.line)
            continue
        shared = scenario.without(("extends", "cases"))
        for case in _mappings(cases, text):
            yield Expanded(_case(shared, case, text), item.mark.line)


def _extend(
    item: Map, by_id: Mapping[str, Map], text: SpecText, chain: tuple[Map, ...] = ()
) -> Map | None:
    """Return a scenario with the keys of those it extends; None, after a report, if it cannot
    extend them.

    `chain` lists the scenarios that extend it, each extending the next.
    """
    target = item.get("extends")
    if not isinstance(target, str):
        return item
    chain = (*chain, item)
    parent = by_id.get(target)
    if parent is None:
        others = [id for id, other in by_id.items() if other is not item]
        help = text.suggest(target, others, "name a scenario of this file")
        message = f"extends {quote(target)}, but this file has no scenario of that id"
        text.report(item.marks["extends"][1].place, message, help)
        return None
    if len(chain) > MAX_CHAIN:
        first = min((member.marks["extends"][1] for member in chain), key=lambda mark: mark.line)
        message = f"extends goes in a circle, or more than {MAX_CHAIN} scenarios deep"
        text.report(first.place, message, "remove 'extends' from one of them")
        return None
    inherited = _extend(parent, by_id, text, chain)
    return None if inherited is None else merge(inherited.without(_OWN), item)


def _case(shared: Map, entry: Map, text: SpecText) -> Map:
    """Return a case as a scenario."""
    for key in entry.keys() & {"extends", "cases"}:
        help = "write the case as a scenario, which can extend another"
        text.report(entry.marks[key][0].place, f"a case has no {quote(key)}", help)
    case = merge(shared, entry.without(("extends", "cases")), _REPLACES_IN_CASE)
    first, last = shared.get("id"), entry.get("id")
    if is_name(first) and is_name(last):
        case["id"] = f"{first}-{last}"
    return case


def is_name(value: Any) -> bool:
    """Whether a value is in kebab-case, as ids, tags and rules are."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _report_duplicates(scenarios: list[Expanded], text: SpecText) -> None:
    """Report ids that an earlier scenario has."""
    first: dict[str, Expanded] = {}
    for scenario in scenarios:
        value = scenario.value
        if "id" not in value:
            continue
        id, mark = str(value["id"]), value.marks["id"][1]
        earlier = first.setdefault(id, scenario)
        if earlier is scenario:
            continue
        line, help = earlier.value.marks["id"][1].line, "rename or remove one of the two"
        if "id" in value.inherited and earlier.begins == scenario.begins:
            # Two cases without an id.
            mark, line, help = value.mark, earlier.value.mark.line, "add 'id: …' to the case"
        text.report(mark.place, f"duplicate id {quote(id)}, first given in line {line}", help)


# --------------------------------------------------------------------------- layers
def _name_layers(scenarios: Iterable[Expanded], layers: Map, text: SpecText) -> Iterator[Expanded]:
    """Yield scenarios with the names of the file's layers replaced by the layers.

    A scenario with an unknown name is reported and left out.
    """
    for scenario in scenarios:
        value = scenario.value
        name = value.get("layer")
        if not isinstance(name, str) or not _LAYER_NAME.fullmatch(name):
            yield scenario
        elif name in layers:
            named = value.copy()
            marks = value.marks["layer"][0], layers.marks[name][1]
            named.put("layer", layers[name], marks)
            yield scenario._replace(value=named)
        else:
            op_help = f"write {{op: {name}}}" if name in OPERATIONS else _LAYER_HELP
            if layers:
                op_help += f", or name one of 'layers': {listing([*layers][:MOST_LAYERS_NAMED])}"
            help = text.suggest(name, layers, op_help)
            place = value.marks["layer"][1].place
            text.report(place, f"this file has no layer {quote(name)}", help)


# --------------------------------------------------------------------------- defaults
def _complete(scenario: Expanded, defaults: Map, text: SpecText) -> Map:
    """Return a scenario with the file's defaults, and with the values that the reader adds."""
    value = scenario.value.copy()
    for key in _DEFAULTS:
        if key in defaults and not (key == "matrix" and "script" in value):
            _take_default(value, key, defaults)
    if backends := value.map("backends"):
        value["backends"] = complete = backends.copy()
        for name, entry in backends.items():
            complete[name] = _complete_backend(entry, value.map("expect"))
    _move_keys_out(value, text)
    if inputs := value.map("inputs"):
        value["inputs"] = _complete_inputs(inputs, defaults)
    positions = dict(_positions(value))
    value.update(
        path=text.path, line=value.mark.line, column=value.mark.column, begins=scenario.begins,
        positions=positions,
    )  # fmt: skip
    return value


def _take_default(scenario: Map, key: str, defaults: Map) -> None:
    """Give a scenario the default of a key, or complete its own value from it."""
    value = scenario.map(key)
    if key not in scenario:
        scenario.put(key, defaults[key], defaults.marks[key])
        scenario.inherited = {*scenario.inherited, key}
    # A scenario that names its own document does not need the default's section or url.
    elif value and not (key == "source" and "document" in value):
        scenario[key] = defaults.map(key).union(value)


def _complete_backend(entry: Any, expect: Map) -> Any:
    """Complete the expectations of a backend, or of each entry of a list, from the scenario's
    expectations.

    An entry `observed` is complete in itself.
    """
    if isinstance(entry, Seq):
        return Seq([_complete_backend(item, expect) for item in entry], entry.marks)
    if not isinstance(entry, Map) or not isinstance(entry.get("expect"), Map):
        return entry
    completed = entry.copy()
    completed["expect"] = merge(expect, entry["expect"])
    return completed


# --------------------------------------------------------------------------- inputs
def _move_keys_out(scenario: Map, text: SpecText) -> None:
    """Report keys of a scenario that are indented like its inputs, keywords or parameters, and move
    them to the scenario.
    """
    for section in _JOINED:
        for part in scenario.map(section).parts():
            name = str(part.step)
            if name in Scenario.keys() and not _is_entry(section, part.value):  # noqa: SIM118
                message = f"{quote(name)} is a key of a scenario, and does not belong to {section}"
                text.report(part.key_mark.place, message, f"indent it like '{section}'")
                scenario[section] = scenario[section].without((name,))
                scenario.put(name, part.value, (part.key_mark, part.mark))


def _is_entry(section: str, value: Any) -> bool:
    """Whether a value can be an entry of a section: an input, or a keyword, size or parameter."""
    if section == "inputs":
        is_written_out = isinstance(value, Map) and not value.keys().isdisjoint(_OF_INPUT)
        return is_written_out or isinstance(value, Seq) or _is_several(value)
    return isinstance(value, int) if section == "sizes" else not isinstance(value, Map)


def _complete_inputs(inputs: Map, defaults: Map) -> Map:
    """Return the inputs, with lists and dicts split into single inputs, and with the default dtype
    if none is written.
    """
    dtype = defaults.get("dtype")
    default = dtype if dtype in ELEMENT_TYPES else "float64"
    flat = Map(inputs.mark)
    for entry in inputs.parts():
        for name, tensor in _tensors(str(entry.step), entry):
            value = tensor.value
            if isinstance(value, Seq):  # only its shape
                value = Map(tensor.mark)
                value.put("shape", tensor.value, (tensor.mark, tensor.mark))
            if isinstance(value, Map):
                value = value.copy()
                value.update(dtype_written="dtype" in value, layout_written="layout" in value)
                value.setdefault("dtype", default)
            flat.put(name, value, (entry.key_mark, tensor.mark))
    return flat


def _tensors(name: str, entry: Part) -> Iterator[tuple[str, Part]]:
    """Yield the inputs of an entry: itself, or each in a list or dict of inputs."""
    if not _is_several(entry.value):
        yield name, entry
        return
    for part in entry.value.parts():
        yield from _tensors(inside(name, part.step), part)


def _is_several(value: Any) -> bool:
    """Whether a value is a list or dict of inputs: it contains mappings but no key of an input."""
    if not isinstance(value, (Map, Seq)) or value.size == 1:
        return False
    if isinstance(value, Map) and value.keys() & Input.keys():
        return False
    return any(isinstance(part, Map) or _is_several(part) for _, part, *_ in value.parts())


# --------------------------------------------------------------------------- positions
def _positions(value: Map | Seq, prefix: str = "") -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each key below a scenario with its position; entries of a backend's list are keyed by
    number.
    """
    for name, below, mark, key_mark in value.parts():
        path = f"{prefix}{name}"
        is_code = mark.is_block or (name in _CODE and isinstance(below, str))
        yield path, mark.first_character if is_code else (key_mark.line, key_mark.column)
        if isinstance(below, Map) or (isinstance(below, Seq) and prefix == "backends."):
            yield from _positions(below, f"{path}.")
