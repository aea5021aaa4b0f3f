"""What scenarios take from elsewhere, worked out on the document, so that every value keeps its
mark.

A scenario takes keys from the scenario that it extends, from the one that it is a case of, and from
the file's layers and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gradcheck.spec.containers import inside
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.document import Map, Seq, Span, describe
from gradcheck.spec.literals import ELEMENT_TYPES
from gradcheck.spec.messages import report_reserved_keys
from gradcheck.spec.model import KEBAB
from gradcheck.spec.text import SpecText

_OF_WORLDS = {"world", "outputs", "random"}
_OF_INPUTS = {"inputs", "sizes"}
DRAWING = ("init", "low", "high", "near", "range", "below")
"""Keys of an input that say how elements are drawn."""
OF_INPUT = {
    "shape", "values", "from", "key", "dtype", "stop_gradient", "layout", "ranks", *DRAWING,
}  # fmt: skip
"""The keys of an input."""
# A key of one's own -> inherited keys that it rules out, and which therefore fall away.
_REPLACES = {
    "layer": {"script"},
    "script": {"layer", "call", *_OF_INPUTS, *_OF_WORLDS},
    "raises": {"gradient", "differs", "grads", "cotangent", "order"},
    "gradient": {"raises", "differs"},
    "differs": {"raises", "gradient"},
    "grads": {"raises"},
    "order": {"raises"},
    "xfail": {"skip", "observed", "reason", "policy", "issue"},
    "skip": {"xfail", "observed", "reason", "policy", "issue"},
    "reason": {"policy"},
    "policy": {"reason"},
    "observed": {"xfail", "skip", "expect"},
    "shape": {"values", "from", "key"},
    "values": {"shape", "from", "key", *DRAWING},
    "from": {"shape", "values", *DRAWING},
    "init": {"range", "below"},
    "range": {"init", "low", "high", "below"},
    "below": {"init", "low", "high", "range"},
}
# A program that is a case of a scenario runs behind the scenario's layer.
_REPLACES_IN_CASE = {**_REPLACES, "script": {"call", *_OF_INPUTS, *_OF_WORLDS}, "layer": set[str]()}
_OWN = ("id", "extends", "cases")
_DEFAULTS = ("seed", "timeout", "rtol", "source", "tags", "matrix", "backends")
_LAYER_NAME = re.compile(r"[\w.-]+")
_NAME = re.compile(KEBAB)
_CODE = ("layer", "script", "call")
_POSITION_DEPTH = 4
"""Depth of the positions that a scenario has: backends.paddle.expect.gradient."""

MAX_CHAIN = 10
MAX_RESOLVED_NODES = 200_000

ExpandedScenario = tuple[Any, Span, int]
"""What stands for a scenario, where it is written, and the line at which it or what it is a case of
begins.
"""


def resolve(root: Map, text: SpecText) -> Map:
    """Return the document with each scenario complete: its own keys, inherited ones and the file's
    defaults.

    A scenario with ``cases`` becomes one scenario for each. A scenario that takes from something
    that does not exist is reported and left out.
    """
    written = root.get("scenarios")
    resolved = Map(root)
    report_reserved_keys(root, (), text)
    resolved["path"] = text.path
    resolved.setdefault("defaults", {})  # otherwise pydantic builds a validator of Defaults alone
    if not isinstance(written, Seq):
        return resolved
    scenarios = list(_expand(written, text))
    _report_duplicates(scenarios, text)
    scenarios = _name_layers(scenarios, root, text)

    defaults = root.map("defaults")
    items: list[Any] = []
    for value, mark, begins in scenarios:
        items.append(_complete(value, mark, begins, defaults, text))
    sizes: dict[int, int] = {}
    # No scenario is larger than the file, which makes the exact count unnecessary for most files.
    at_most = text.nodes * len(items)
    if (
        at_most > MAX_RESOLVED_NODES
        and sum(_size(one, sizes) for one in items) > MAX_RESOLVED_NODES
    ):
        message = f"'extends' and 'defaults' make this more than {MAX_RESOLVED_NODES:,} values"
        text.report(root.marks["scenarios"][1].start, message, "split the file by topic")
        raise text.error()
    resolved["scenarios"] = Seq(items, [mark for _, mark, _ in scenarios])
    return resolved


def merge(inherited: Map, own: Map, replaces: Mapping[str, set[str]] = _REPLACES) -> Map:
    """Return the mapping `own` with what it lacks from `inherited`, except what `replaces` rules
    out.
    """
    dropped = {other for key in own for other in replaces.get(key, ())}
    merged = inherited.without(dropped)
    for key, value in own.items():
        merged.put(key, _merge_value(key, inherited.get(key), value), own.marks[key])
    return merged


def _merge_value(key: str, inherited: Any, value: Any) -> Any:
    """Return the value of a key, completed from the inherited one: name by name, or by `merge`."""
    if not isinstance(inherited, Map) or not isinstance(value, Map):
        return value
    if key in ("expect", "calls"):
        return merge(inherited, value)
    if key not in ("inputs", "matrix", "sizes", "backends"):
        return value
    union = inherited.union(value)
    if key == "backends":
        for name, own in value.items():
            union[name] = _merge_value("expect", inherited.get(name), own)
    return union


# --------------------------------------------------------------------------- extends and cases
def _expand(written: Seq, text: SpecText) -> Iterator[ExpandedScenario]:
    """Yield the scenarios of a file, with what they extend, and one for each of their cases."""
    by_id: dict[Any, Map] = {}
    for item in written:
        if isinstance(item, Map) and isinstance(item.get("id"), str):
            by_id.setdefault(item["id"], item)
    for item, mark in zip(written, written.marks, strict=True):
        whole = _extend(item, by_id, text) if isinstance(item, Map) else item
        if not isinstance(whole, Map) or "cases" not in item:
            if whole is not None:
                yield whole, mark, mark.line
            continue
        cases, cases_mark = item["cases"], item.marks["cases"][1]
        if not isinstance(cases, Seq):
            message = f"cases must be a list, not {describe(cases, cases_mark)}"
            text.report(
                cases_mark.place,
                message,
                "Several looks at the scenario, each in a list entry: '- {id: …, expect: …}'",
            )
        elif not cases:
            help = "add one: '- {id: …, expect: …}', or remove 'cases'"
            text.report(cases_mark.place, "cases must not be empty", help)
        else:
            shared = whole.without(("extends", "cases"))
            for own, own_mark in zip(cases, cases.marks, strict=True):
                if (case := _case(shared, own, own_mark, text)) is not None:
                    yield case, own_mark, mark.line


def _extend(
    item: Map, by_id: Mapping[Any, Map], text: SpecText, chain: tuple[Map, ...] = ()
) -> Map | None:
    """Return a scenario with the keys of those it extends; None if it cannot, which is reported.

    `chain` has the scenarios that extend it, one the next.
    """
    target = item.get("extends")
    if not isinstance(target, str):
        return item
    chain = (*chain, item)
    place = item.marks["extends"][1].place
    parent = by_id.get(target)
    if parent is None:
        near = text.suggest(target, by_id)
        help = f"did you mean '{near}'?" if near else "name a scenario of this file"
        message = f"extends {quote(target)}, but this file has no scenario of that id"
        text.report(place, message, help)
    elif any(parent is member for member in chain):
        _report_circle(chain, parent, text)
    elif len(chain) == MAX_CHAIN:
        message = f"extends goes more than {MAX_CHAIN} scenarios deep"
        text.report(place, message, "extend the first of them directly")
    else:
        whole = _extend(parent, by_id, text, chain)
        return None if whole is None else merge(whole.without(_OWN), item)
    return None


def _report_circle(chain: Sequence[Map], parent: Map, text: SpecText) -> None:
    """Report the scenarios of a chain that extend each other, at the first of them in the file."""
    start = next(index for index, member in enumerate(chain) if member is parent)
    circle = sorted(chain[start:], key=lambda member: member.marks["extends"][1].line)
    message, help = "it extends itself", "remove 'extends'"
    if len(circle) > 1:
        message = (
            f"{listing([str(member.get('id')) for member in circle], 'and')} extend each other"
        )
        help = "remove 'extends' from one of them"
    place = circle[0].marks["extends"][1].place
    text.report(place, f"extends goes in a circle: {message}", help)


def _case(shared: Map, own: Any, mark: Span, text: SpecText) -> Map | None:
    """Return a case as a scenario; None if it is not a mapping, which is reported."""
    if not isinstance(own, Map):
        message = f"a case must be a mapping, not {describe(own, mark)}"
        text.report(mark.place, message, "write {id: …, expect: …}")
        return None
    for key in ("extends", "cases"):
        if key in own:
            help = "write the case as a scenario, which can extend another"
            text.report(own.marks[key][0].place, f"a case has no {quote(key)}", help)
    case = merge(shared, own.without(("extends", "cases")), _REPLACES_IN_CASE)
    first, last = shared.get("id"), own.get("id")
    if first is not None and last is None:
        here = Span(mark.line, mark.column, 0, 0, str(first))
        case.put("id", first, (here, here))
    elif is_name(first) and is_name(last):
        case["id"] = f"{first}-{last}"
    return case


def is_name(value: Any) -> bool:
    """Whether a value is in kebab-case, as ids, tags and rules are."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _report_duplicates(scenarios: Iterable[ExpandedScenario], text: SpecText) -> None:
    """Report ids that an earlier scenario has."""
    lines: dict[str, int] = {}
    for value, _, _ in scenarios:
        id = value.get("id") if isinstance(value, Map) else None
        if not isinstance(id, str):
            continue
        mark = value.marks["id"][1]
        if id in lines:
            message = f"duplicate id {quote(id)}, first given in line {lines[id]}"
            text.report(mark.place, message, "rename one of the two")
        lines.setdefault(id, mark.line)


# --------------------------------------------------------------------------- layers
def _name_layers(
    scenarios: list[ExpandedScenario], root: Map, text: SpecText
) -> list[ExpandedScenario]:
    """Put the file's layers in the place of their names; a scenario with an unknown one is reported
    and left out.
    """
    layers, used, complete = root.map("layers"), set[str](), list[ExpandedScenario]()
    for scenario in scenarios:
        value = scenario[0]
        name = value.get("layer") if isinstance(value, Map) else None
        if not isinstance(name, str) or not _LAYER_NAME.fullmatch(name):
            complete.append(scenario)
            continue
        used.add(name)
        key_mark, mark = value.marks["layer"]
        if name in layers:
            named = Map(value)
            named.put("layer", layers[name], (key_mark, layers.marks[name][1]))
            complete.append((named, *scenario[1:]))
            continue
        near = text.suggest(name, layers)
        help = "write its source, or add it to 'layers:'"
        if layers:
            help = (
                f"did you mean '{near}'?"
                if near
                else f"the file's layers are {listing(layers, 'and')}"
            )
        text.report(mark.place, f"this file has no layer {quote(name)}", help)
    for name in layers.keys() - used if not text.found else ():
        help = "name it in a scenario, 'layer: …', or remove it"
        text.report(layers.marks[name][0].place, f"no scenario uses the layer {quote(name)}", help)
    return complete


# --------------------------------------------------------------------------- defaults
def _complete(value: Any, mark: Span, begins: int, defaults: Map, text: SpecText) -> Any:
    """Return a scenario with the file's defaults, and with what the reader adds to it."""
    if not isinstance(value, Map):
        return value
    report_reserved_keys(value, ("scenarios", 0), text)
    scenario = Map(value)
    for key in _DEFAULTS:
        if key in defaults and not (key == "matrix" and "script" in scenario):
            _take_default(scenario, key, defaults)
    _add_rules_to_tags(scenario)
    if backends := scenario.map("backends"):
        complete = Map(backends)
        for name, entry in backends.items():
            complete[name] = _complete_backend(entry, scenario.map("expect"))
        scenario["backends"] = complete
    if isinstance(scenario.get("inputs"), Map):
        scenario["inputs"] = _complete_inputs(scenario["inputs"], defaults, text)
    positions = dict(_positions(scenario))
    scenario.update(
        path=text.path, line=mark.line, column=mark.column, begins=begins, positions=positions
    )
    return scenario


def _take_default(scenario: Map, key: str, defaults: Map) -> None:
    """Give a scenario the default of a key, or what its own value lacks of it."""
    own, default = scenario.get(key), defaults[key]
    if key not in scenario:
        scenario.take(key, defaults)
    elif isinstance(own, Seq) and isinstance(default, Seq):
        scenario[key] = _join_tags(default, own, before=True)
    # A scenario that names a document of its own does not need the default's section or url.
    elif (
        isinstance(own, Map)
        and isinstance(default, Map)
        and not (key == "source" and "document" in own)
    ):
        scenario[key] = default.union(own)


def _join_tags(more: Seq, tags: Seq, before: bool = False) -> Seq:
    """Return tags with those of `more` that are not among them, before or behind them."""
    others = [(tag, mark) for tag, mark in zip(more, more.marks, strict=True) if tag not in tags]
    pairs = [*zip(tags, tags.marks, strict=True)]
    pairs = others + pairs if before else pairs + others
    return Seq([tag for tag, _ in pairs], [mark for _, mark in pairs])


def _add_rules_to_tags(scenario: Map) -> None:
    """Make the rules that a scenario cites tags of it."""
    rules = scenario.get("rules")
    if not isinstance(rules, Seq):
        return
    cited: dict[str, Span] = {}
    for rule, mark in zip(rules, rules.marks, strict=True):
        names = (
            {name: marks[0] for name, marks in rule.marks.items()}
            if isinstance(rule, Map)
            else {rule: mark}
        )
        cited |= {name: place for name, place in names.items() if is_name(name)}
    tags = scenario.get("tags", Seq((), ()))
    if isinstance(tags, Seq):
        place = scenario.marks.get("tags", scenario.marks["rules"])
        scenario.put("tags", _join_tags(Seq(cited, cited.values()), tags), place)


def _complete_backend(entry: Any, expect: Map) -> Any:
    """Complete what a backend, or each entry of a list, expects from the scenario's expectations.

    What was `observed` is complete by itself.
    """
    if isinstance(entry, Seq):
        return Seq([_complete_backend(one, expect) for one in entry], entry.marks)
    if not isinstance(entry, Map) or not isinstance(entry.get("expect"), Map):
        return entry
    whole = Map(entry)
    whole["expect"] = merge(expect, entry["expect"])
    return whole


# --------------------------------------------------------------------------- inputs
def _complete_inputs(inputs: Map, defaults: Map, text: SpecText) -> Map:
    """Return the inputs, each of a list or dict by itself, with the dtype that holds where none is
    written.
    """
    dtype = defaults.get("dtype")
    default = dtype if dtype in ELEMENT_TYPES else "float64"
    flat = Map()
    for name, value in inputs.items():
        for part_name, part, mark in _each(name, value, inputs.marks[name][1]):
            flat.put(
                part_name, _complete_input(part, mark, default, text), (inputs.marks[name][0], mark)
            )
    return flat


def _complete_input(value: Any, mark: Span, dtype: str, text: SpecText) -> Any:
    if isinstance(value, Seq):  # its shape alone
        shape = value
        value = Map()
        value.put("shape", shape, (mark, mark))
    if not isinstance(value, Map):
        return value
    report_reserved_keys(value, ("inputs", ""), text)
    complete = Map(value)
    complete.update(dtype_written="dtype" in value, layout_written="layout" in value)
    complete.setdefault("dtype", dtype)
    return complete


def _each(name: str, value: Any, mark: Span) -> Iterator[tuple[str, Any, Span]]:
    """Yield the inputs that an entry stands for: itself, or each in a list or dict of them."""
    if not is_several(value):
        yield name, value, mark
        return
    for place, part, part_mark in _parts(value):
        yield from _each(inside(name, place), part, part_mark)


def is_several(value: Any) -> bool:
    """Whether what stands for an input is a list or a dict of mappings, none of which an input
    would have.
    """
    if isinstance(value, Map) and value.keys() & OF_INPUT:
        return False
    parts = list(_parts(value))
    return bool(parts) and all(isinstance(part, Map) or is_several(part) for _, part, _ in parts)


def _parts(value: Any) -> Iterator[tuple[int | str, Any, Span]]:
    """Yield index or key, value and mark of what is in a list or mapping."""
    if isinstance(value, Seq):
        yield from ((index, part, value.marks[index]) for index, part in enumerate(value))
    elif isinstance(value, Map):
        yield from (
            (key, part, value.marks[key][1]) for key, part in value.items() if key in value.marks
        )


# --------------------------------------------------------------------------- positions and sizes
def _positions(
    value: Any, prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each key below a scenario with its place; the entries of a list for a backend by their
    numbers.
    """
    if not isinstance(value, Map):
        return
    for name, (key_mark, mark) in value.marks.items():
        here, below = prefix + name, value[name]
        is_code = mark.is_block or (name in _CODE and not isinstance(below, (Map, Seq)))
        yield here, mark.first_character if is_code else (key_mark.line, key_mark.column)
        if depth == _POSITION_DEPTH:
            continue
        yield from _positions(below, here + ".", depth + 1)
        if prefix == "backends." and isinstance(below, Seq):
            for index, item in enumerate(below):
                yield from _positions(item, f"{here}.{index}.", depth + 1)


def _size(value: Any, known: dict[int, int]) -> int:
    """Count the values in a document of which scenarios share parts."""
    if not isinstance(value, (Map, Seq)):
        return 1
    if id(value) not in known:
        known[id(value)] = 1 + sum(_size(part, known) for _, part, _ in _parts(value))
    return known[id(value)]
