"""``extends`` and ``defaults`` worked out on the tree, so that what is taken over keeps its position."""

from __future__ import annotations

from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node

# Keys whose mappings are merged name by name; any other key replaces the inherited one.
_MERGED = frozenset({"inputs", "expect", "backends", "matrix", "calls"})
# A key of one's own -> inherited keys that it rules out, and which therefore fall away.
_REPLACES = {
    "layer": {"script"},
    "script": {"layer", "call", "inputs"},
    "raises": {"gradient", "differs", "grads", "cotangent", "order"},
    "gradient": {"raises", "differs"},
    "differs": {"raises", "gradient"},
    "grads": {"raises"},
    "order": {"raises"},
    "xfail": {"skip", "observed", "reason", "issue"},
    "skip": {"xfail", "observed", "reason", "issue"},
    "observed": {"xfail", "skip", "expect"},
    "shape": {"values"},
    "values": {"shape", "init", "low", "high", "near"},
}
_OWN = ("id", "extends")

MAX_CHAIN = 10
MAX_RESOLVED_NODES = 200_000


def resolve(root: Node, text: SpecText) -> Node:
    """`root` with each scenario complete: its own keys, those of the one it extends, the file's defaults.

    An unknown id and a circle in ``extends`` are reported; such a scenario is then taken as it stands.
    """
    scenarios = root.get("scenarios")
    if scenarios is None or scenarios.kind != "sequence":
        return root
    by_id: dict[str, Node] = {}
    for item in scenarios.items:
        if item.kind == "mapping" and (name := item.string("id")):
            by_id.setdefault(name, item)
    defaults = root.mapping("defaults")
    if root.incomplete:  # an id may stand in the part that was not read
        for item in scenarios.items:
            item.incomplete = item.incomplete or "extends" in item.entries
    items = [_with_defaults(_extended(item, by_id, text), defaults) for item in scenarios.items]
    sizes: dict[int, int] = {}
    # No scenario can be larger than the file, which makes the exact count unnecessary for most files.
    at_most = text.nodes * len(items)
    if at_most > MAX_RESOLVED_NODES and sum(_size(item, sizes) for item in items) > MAX_RESOLVED_NODES:
        message = f"'extends' and 'defaults' make this more than {MAX_RESOLVED_NODES:,} values"
        text.report(scenarios.line, scenarios.column, 1, message, "split the file by topic")
        items, scenarios.kind = [], "unreadable"
    resolved = _copy(root)
    complete = _copy(scenarios)
    complete.items = items
    resolved.entries["scenarios"] = (root.entries["scenarios"][0], complete)
    return resolved


def merge(inherited: Node, own: Node) -> Node:
    """The mapping `own` with what it lacks taken from `inherited`."""
    dropped = {key for mine in own.entries for key in _REPLACES.get(mine, ())}
    merged = _copy(own)
    merged.entries = {key: entry for key, entry in inherited.entries.items() if key not in dropped}
    merged.incomplete = inherited.incomplete or own.incomplete
    for key, (name, value) in own.entries.items():
        before = inherited.get(key) if key in _MERGED else None
        both = before is not None and before.kind == "mapping" and value.kind == "mapping"
        merged.entries[key] = (name, _merge_names(before, value, key) if before and both else value)
    return merged


def _merge_names(inherited: Node, own: Node, key: str) -> Node:
    """Merge two mappings of free names; what is under a backend's name is merged in turn."""
    if key in ("expect", "calls"):
        return merge(inherited, own)
    merged = _copy(own)
    merged.entries = dict(inherited.entries)
    for name, (at, value) in own.entries.items():
        before = inherited.get(name) if key == "backends" else None
        both = before is not None and before.kind == "mapping" and value.kind == "mapping"
        merged.entries[name] = (at, merge(before, value) if before and both else value)
    return merged


def _extended(item: Node, by_id: dict[str, Node], text: SpecText) -> Node:
    """`item` with the keys of the scenarios it extends."""
    chain = [item]
    while (entry := chain[-1].entries.get("extends")) and entry[1].kind == "scalar":
        target, name = entry[1], entry[1].value
        parent = by_id.get(name) if isinstance(name, str) else None
        if parent is None:
            if isinstance(name, str) and not chain[-1].incomplete:  # other types are the model's to report
                help = text.suggest(name, list(by_id)) or "name a scenario of this file"
                message = f"extends {quote(name)}, but this file has no scenario of that id"
                text.report(target.line, target.column, target.width, message, help)
            chain[-1].incomplete = True
            break
        if parent in chain:
            circle = chain[chain.index(parent) :]
            first = min(circle, key=lambda node: node.line).entries["extends"][1]
            names = [node.string("id") or "?" for node in sorted(circle, key=lambda node: node.line)]
            one = "it extends itself" if len(names) == 1 else f"{listing(names, 'and')} extend each other"
            help = "remove 'extends' from one of them" if len(names) > 1 else "remove 'extends'"
            text.report(first.line, first.column, first.width, f"extends goes in a circle: {one}", help)
            for node in chain:
                node.incomplete = True
            break
        if len(chain) == MAX_CHAIN:
            chain[-1].incomplete = True
            message = f"extends goes more than {MAX_CHAIN} scenarios deep"
            text.report(target.line, target.column, target.width, message, "extend the first of them directly")
            break
        chain.append(parent)
    result = chain.pop()
    while chain:
        own = chain.pop()
        base = _copy(result)
        base.entries = {key: entry for key, entry in result.entries.items() if key not in _OWN}
        result = merge(base, own)
    return result


def _with_defaults(item: Node, defaults: Node) -> Node:
    """`item` with the file's defaults, and each backend's expectations completed from the scenario's."""
    if item.kind != "mapping":
        return item
    item = _copy(item)
    for key in ("seed", "timeout", "rtol"):
        if key in defaults.entries:
            item.entries.setdefault(key, defaults.entries[key])
    for key in ("source", "tags", "backends"):
        if key not in defaults.entries:
            continue
        name, value = item.entries.setdefault(key, defaults.entries[key])
        inherited = defaults.entries[key][1]
        if value is inherited or value.kind != inherited.kind:
            continue
        whole = _copy(value)
        if key == "tags":
            known = {tag.value for tag in value.items}
            whole.items = [tag for tag in inherited.items if tag.value not in known] + value.items
        elif key == "backends" or "document" not in value.entries:
            # A scenario that names a document of its own has no use for the default's section or url.
            whole.entries = {**inherited.entries, **value.entries}
        item.entries[key] = (name, whole)
    _complete_backends(item)
    return item


def _complete_backends(item: Node) -> None:
    backends = _copy(item.mapping("backends"))
    expect = item.mapping("expect")
    for name, (at, value) in backends.entries.items():
        whole = _copy(value)
        if value.kind == "sequence":
            whole.items = [_completed(one, expect) for one in value.items]
        else:
            whole = _completed(value, expect)
        backends.entries[name] = (at, whole)
    if backends.entries:
        item.entries["backends"] = (item.entries["backends"][0], backends)


def _completed(entry: Node, expect: Node) -> Node:
    """A backend's entry, what it expects completed from the scenario's; what was `observed` is complete by itself."""
    whole = _copy(entry)
    special = entry.get("expect") if entry.kind == "mapping" else None
    if special and special.kind == "mapping":
        whole.entries["expect"] = (entry.entries["expect"][0], merge(expect, special))
    return whole


def _size(node: Node, known: dict[int, int]) -> int:
    """The number of nodes of a tree in which many share the same parts."""
    if id(node) not in known:
        children = [*node.items, *(value for _, value in node.entries.values())]
        known[id(node)] = 1 + sum(_size(child, known) for child in children)
    return known[id(node)]


def _copy(node: Node) -> Node:
    return Node(
        node.kind, node.line, node.column, node.end_line, node.end_column, node.value, node.text, node.style,
        dict(node.entries), list(node.items), node.incomplete,
    )  # fmt: skip
