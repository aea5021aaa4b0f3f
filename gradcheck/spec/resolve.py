"""What scenarios take from elsewhere, worked out on the tree, so that it keeps its position.

That is: what they extend, what they are cases of, the file's layers and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gradcheck.spec.containers import inside
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node, copy, describe

_OF_WORLDS = {"world", "outputs", "random"}
_OF_INPUTS = {"inputs", "sizes", "explore"}
DRAWING = ("init", "low", "high", "near", "range", "below")
"""Keys of an input that say how elements are drawn."""
OF_INPUT = {"shape", "values", "from", "key", "dtype", "stop_gradient", "layout", "ranks", *DRAWING}
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
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

MAX_CHAIN = 10
MAX_RESOLVED_NODES = 200_000


def resolve(root: Node, text: SpecText) -> Node:
    """`root` with each scenario complete: its own keys, those of the one it extends, the file's defaults.

    A scenario with ``cases`` becomes one scenario for each, the name of a layer the layer of that name. Unknown ids
    and layers are reported, as is a circle in ``extends``; such a scenario is then taken as it stands.
    """
    scenarios = root.get("scenarios")
    if scenarios is None or scenarios.kind != "sequence":
        return root
    by_id: dict[str, Node] = {}
    for item in scenarios.items:
        item.incomplete |= root.incomplete and "extends" in item.entries  # the id may be in what was not read
        if item.kind == "mapping" and (name := item.string("id")):
            by_id.setdefault(name, item)
    looks = [look for item in scenarios.items for look in _cases(_extended(item, by_id, text), item, text)]
    _name_layers(looks, root, text)
    items = [_with_defaults(look, root.mapping("defaults")) for look in looks]
    sizes: dict[int, int] = {}
    # No scenario can be larger than the file, which makes the exact count unnecessary for most files.
    at_most = text.nodes * len(items)
    if at_most > MAX_RESOLVED_NODES and sum(_size(item, sizes) for item in items) > MAX_RESOLVED_NODES:
        message = f"'extends' and 'defaults' make this more than {MAX_RESOLVED_NODES:,} values"
        text.report(scenarios.start, message, "split the file by topic")
        items, scenarios.kind = [], "unreadable"
    resolved, complete = copy(root), copy(scenarios)
    complete.items = items
    resolved.put("scenarios", complete)
    return resolved


def merge(inherited: Node, own: Node, replaces: Mapping[str, set[str]] = _REPLACES) -> Node:
    """The mapping `own` with what it lacks taken from `inherited`, but for what `replaces` says that it rules out."""
    dropped = {key for mine in own.entries for key in replaces.get(mine, ())}
    merged = copy(own, {key: entry for key, entry in inherited.entries.items() if key not in dropped})
    merged.incomplete = inherited.incomplete or own.incomplete
    for key, (name, value) in own.entries.items():
        merged.entries[key] = (name, _merged(key, inherited.get(key), value))
    return merged


def _merged(key: str, before: Node | None, value: Node) -> Node:
    """The value of a key, a mapping completed from the inherited one: name by name, or by the rules of `merge`."""
    if before is None or before.kind != "mapping" or value.kind != "mapping":
        return value
    if key in ("expect", "calls"):
        return merge(before, value)
    if key in ("inputs", "matrix", "sizes"):
        return copy(value, before.entries | value.entries)
    if key == "backends":
        own = {name: (at, _merged("expect", before.get(name), one)) for name, (at, one) in value.entries.items()}
        return copy(value, before.entries | own)
    return value


def _extended(item: Node, by_id: Mapping[str, Node], text: SpecText) -> Node:
    """`item` with the keys of the scenarios it extends."""
    chain = [item]
    while (target := chain[-1].get("extends")) is not None and target.kind == "scalar":
        parent = by_id.get(target.value) if isinstance(target.value, str) else None
        if parent is not None and parent not in chain and len(chain) < MAX_CHAIN:
            chain.append(parent)
            continue
        if parent in chain:
            _report_circle(chain[chain.index(parent) :], text)
            for node in chain:
                node.incomplete = True
        elif parent is not None:
            message = f"extends goes more than {MAX_CHAIN} scenarios deep"
            text.report(target, message, "extend the first of them directly")
        elif isinstance(target.value, str) and not chain[-1].incomplete:  # other types are the model's to report
            help = text.suggest(target.value, list(by_id)) or "name a scenario of this file"
            message = f"extends {quote(target.value)}, but this file has no scenario of that id"
            text.report(target, message, help)
        chain[-1].incomplete = True
        break
    result = chain.pop()
    while chain:
        base = copy(result, {key: entry for key, entry in result.entries.items() if key not in _OWN})
        result = merge(base, chain.pop())
    return result


def _report_circle(circle: list[Node], text: SpecText) -> None:
    first, *others = circle = sorted(circle, key=lambda node: node.line)
    names = [node.string("id") or "?" for node in circle]
    one = f"{listing(names, 'and')} extend each other" if others else "it extends itself"
    help = "remove 'extends' from one of them" if others else "remove 'extends'"
    text.report(first.entries["extends"][1], f"extends goes in a circle: {one}", help)


def _cases(whole: Node, written: Node, text: SpecText) -> list[Node]:
    """The scenarios that `whole` stands for: itself, or one for each of the cases that are `written` in it."""
    cases = written.get("cases")
    if cases is None or cases.kind == "unreadable":
        return [whole]
    if cases.kind != "sequence" or not cases.items:
        if cases.kind == "sequence":  # what is no list is the model's to report
            text.report(cases, "cases must not be empty", "add one: '- {id: …, expect: …}', or remove 'cases'")
        whole.incomplete = True
        return [whole]
    shared = copy(whole, {key: entry for key, entry in whole.entries.items() if key not in ("extends", "cases")})
    return [_case(shared, one, text) for one in cases.items if one.kind != "unreadable"]


def _case(shared: Node, own: Node, text: SpecText) -> Node:
    if own.kind != "mapping":
        text.report(own, f"a case must be a mapping, not {describe(own)}", "write {id: …, expect: …}")
        return Node("unreadable", own.line, own.column)
    own = copy(own)
    for key in ("extends", "cases"):
        if key in own.entries:
            help = "write the case as a scenario, which can extend another"
            text.report(own.entries.pop(key)[0], f"a case has no {quote(key)}", help)
    case = merge(shared, own, _REPLACES_IN_CASE)
    case.begins = shared.line
    first, last = shared.get("id"), own.get("id")
    if first is not None and last is None:
        case.entries["id"] = (own, replace(first, line=own.line, column=own.column, end_line=0))
    elif first is not None and last is not None and is_name(first) and is_name(last):
        whole = f"{first.value}-{last.value}"
        case.put("id", replace(last, value=whole, text=whole))
    return case


def is_name(node: Node) -> bool:
    """Whether a value is in kebab-case, as ids, tags and rules are."""
    return isinstance(node.value, str) and _NAME.fullmatch(node.value) is not None


def _name_layers(scenarios: list[Node], root: Node, text: SpecText) -> None:
    """Put the layers that scenarios name in the place of the names."""
    layers, used = root.under("layers"), set[str]()
    for scenario in scenarios:
        layer = scenario.get("layer")
        if layer is None or not isinstance(layer.value, str) or not _LAYER_NAME.fullmatch(layer.value):
            continue
        used.add(layer.value)
        if layer.value in layers:
            scenario.put("layer", layers[layer.value][1])
            continue
        scenario.put("layer", Node("unreadable", layer.line, layer.column))
        if not root.incomplete:
            known = f"the file's layers are {listing(layers, 'and')}" if layers else ""
            help = text.suggest(layer.value, list(layers)) or known or "write its source, or add it to 'layers:'"
            text.report(layer, f"this file has no layer {quote(layer.value)}", help)
    for name, (key, _) in layers.items():
        if name not in used and not root.incomplete and not any(one.incomplete for one in scenarios):
            help = "name it in a scenario, 'layer: …', or remove it"
            text.report(key, f"no scenario uses the layer {quote(name)}", help)


def cited(scenario: Node) -> list[Node]:
    """The rules that a scenario cites: their names alone, or with the passage that is meant."""
    return [name for rule in scenario.listed("rules") for name in [key for key, _ in rule.entries.values()] or [rule]]


def _with_defaults(item: Node, defaults: Node) -> Node:
    """`item` with the file's defaults, and each backend's expectations completed from the scenario's.

    The rules that it cites become tags; each in a list or dict of inputs an input of its own.
    """
    if item.kind != "mapping":
        return item
    item = copy(item)
    for key in _DEFAULTS:
        if key not in defaults.entries or (key == "matrix" and "script" in item.entries):
            continue
        _, value = item.entries.setdefault(key, defaults.entries[key])
        inherited = defaults.entries[key][1]
        if value is inherited or value.kind != inherited.kind:
            continue
        if key == "tags":
            item.put(key, copy(value, items=_others(value, inherited.items) + value.items))
        # A scenario that names a document of its own has no use for the default's section or url.
        elif key != "source" or "document" not in value.entries:
            item.put(key, copy(value, inherited.entries | value.entries))
    if (rules := item.get("rules")) is not None and rules.kind == "sequence":
        at, tags = item.entries.get("tags", (item.at("rules"), Node("sequence", rules.line, rules.column)))
        if tags.kind == "sequence":
            item.entries["tags"] = at, copy(tags, items=tags.items + _others(tags, filter(is_name, cited(item))))
    if backends := item.under("backends"):
        entries = {name: (at, _completed(one, item.mapping("expect"))) for name, (at, one) in backends.items()}
        item.put("backends", copy(item.mapping("backends"), entries))
    if inputs := item.under("inputs"):
        flat = {key: entry for name, entry in inputs.items() for key, entry in _each(name, *entry)}
        item.put("inputs", copy(item.mapping("inputs"), flat))
    return item


def _others(tags: Node, more: Iterable[Node]) -> list[Node]:
    """Those of `more` tags that are not among some."""
    known = {tag.value for tag in tags.items}
    return [tag for tag in more if tag.value not in known]


def _each(name: str, key: Node, value: Node) -> Iterator[tuple[str, tuple[Node, Node]]]:
    """The inputs that an entry stands for: itself, or each in a list or dict of them."""
    if not is_several(value):
        yield name, (key, value)
        return
    parts: list[tuple[int | str, Node]] = [*enumerate(value.items)]
    for place, item in parts + [(word, item) for word, (_, item) in value.entries.items()]:
        yield from _each(inside(name, place), key, item)


def is_several(input: Node) -> bool:
    """Whether what stands for an input is a list or a dict of mappings, none of which an input would have."""
    parts = [*input.items, *(value for _, value in input.entries.values())]
    whole = all(part.kind == "mapping" or is_several(part) for part in parts)
    return bool(parts) and whole and not input.entries.keys() & OF_INPUT


def _completed(entry: Node, expect: Node) -> Node:
    """What is said of a backend, or a list of such, with what it expects completed from the scenario's.

    What was `observed` is complete by itself.
    """
    whole = copy(entry, items=[_completed(one, expect) for one in entry.items])
    if (special := entry.get("expect")) and special.kind == "mapping":
        whole.put("expect", merge(expect, special))
    return whole


def _size(node: Node, known: dict[int, int]) -> int:
    """The number of nodes of a tree in which many share the same parts."""
    if id(node) not in known:
        children = [*node.items, *(value for _, value in node.entries.values())]
        known[id(node)] = 1 + sum(_size(child, known) for child in children)
    return known[id(node)]
