"""What pydantic finds wrong, said in plain English at its place in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gradcheck.spec import model
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.model import OPERATIONS
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node, describe
from gradcheck.support.suggest import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Key -> the model of what is under it, and what to call that; under `NAMED` keys, of what is under each name.
KINDS: dict[str, tuple[type[BaseModel], str]] = {
    "": (model.SpecFile, "a spec file"),
    "scenarios": (model.Scenario, "a scenario"),
    "cases": (model.Scenario, "a scenario"),
    "inputs": (model.Input, "an input"),
    "layout": (model.Aliased, "layout"),
    "explore": (model.Explore, "explore"),
    "outputs": (model.Output, "an output"),
    "backends": (model.BackendExpectation, "a backend's expectations"),
    "values": (model.Tolerance, "an expected value"),
    "defaults": (model.Defaults, "defaults"),
    "source": (model.Source, "source"),
    "expect": (model.Expect, "expect"),
    "observed": (model.Observed, "observed"),
    "policy": (model.Policy, "policy"),
    "raises": (model.Raises, "raises"),
    "warns": (model.Warns, "warns"),
    "calls": (model.Calls, "calls"),
    "differs": (model.Differs, "differs"),
    "message": (model.Regex, "message"),
    "xfail": (model.Xfail, "xfail"),
    "skip": (model.Skip, "skip"),
    "(ref)": (model.LayerRef, "layer"),
    "(op)": (model.LayerOp, "layer"),
}
Location = tuple[int | str, ...]
"""Where pydantic finds a mistake."""
NAMED = ("scenarios", "cases", "inputs", "backends", "values")
# What has keys that are often written a level too high -> how they are written where they belong.
_HOMES = {
    "(op)": "write 'layer: {{{}}}'",
    "(ref)": "write 'layer: {{{}}}'",
    "expect": "write 'expect: {{{}}}'",
    "inputs": "write 'inputs: {{x: {{{}}}}}'",
}
_WANTED = {
    "string_type": "text", "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "tuple_type": "a list", "list_type": "a list", "dict_type": "a mapping",
    "model_type": "a mapping", "model_attributes_type": "a mapping",
}  # fmt: skip
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
_PATTERNS = {
    "layers": "a name is kebab-case: small letters and digits, joined by single hyphens",
    "id": "an id is kebab-case: small letters and digits, joined by single hyphens",
    "rules": "a rule is kebab-case: small letters and digits, joined by single hyphens",
    "tags": "a tag is kebab-case: small letters and digits, joined by single hyphens",
    "ref": "write it as package.module:Class",
    "op": "write the name under paddle, such as tanh or nn.functional.relu",
    "url": "write an address that begins with https://",
    "type": "write the name of the exception's class, such as ValueError",
    "reason": "say why",
    "issue": "write an address that begins with https://",
    "crash": "write the name of a signal, such as SIGSEGV",
    "title": "write one line",
}
_UNIONS = {
    "layer": ("Python source, a layer's name, {ref: …} or {op: …}", "write 'layer: |' and the code on the lines below"),
    "outputs": ("{ranks: …}, or a list of these", "write {ranks: replicated}, or {ranks: split}"),
    "message": ("text or {re: …}", "put the text that the message must contain in quotes"),
}
_SPELLED = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_EXCEPTION = re.compile(r"\w*(Error|Exception|Warning)")
_WITH_UNIT = re.compile(r"([0-9]*\.?[0-9]+) ?(%|[a-z]{1,8})")
_NUMERIC = re.compile(r"[-+]?(\.?[0-9][0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?|0[xo][0-9a-fA-F]+)")


def report_errors(errors: Sequence[ErrorDetails], root: Node, text: SpecText) -> None:
    """Report each of pydantic's `errors` on `root`'s data, but for follow-ups of what is reported already."""
    keys: dict[tuple[str, Location], list[str]] = {}
    for error in errors:
        keys.setdefault((error["type"], error["loc"][:-1]), []).append(str(error["loc"][-1]))
    meant: dict[Location, set[str]] = {}  # by unknown keys
    for error in sorted(errors, key=lambda one: one["type"] == "missing"):
        kind, (*_, mapping, last) = error["type"], ("", *error["loc"])
        found = _find(root, error["loc"])
        if found is None:
            continue
        node, path, key = found
        if path[:1] == ["layers"] and len(path) > 1 and last != "[key]":
            continue  # the scenarios that use the layer say so, and there must be one
        if kind == "missing":
            if not node.incomplete and last not in meant.get(error["loc"][:-1], ()):
                _report_missing(node, str(last), path, text)
        elif kind == "extra_forbidden":
            unknown, lacking = (keys.get((one, error["loc"][:-1]), []) for one in (kind, "missing"))
            place = [mapping] if mapping in ("(ref)", "(op)") else path[:-1]
            key_meant = report_unknown_key(node, key, place, text, lacking if len(unknown) == 1 else [])
            meant.setdefault(error["loc"][:-1], set()).add(key_meant)
        elif last == "[key]" and kind == "literal_error":
            what = "backend" if "backends" in path else "axis" if "world" in path else "key"
            _report_choice(key or node, what, error, text)
        else:
            _report_value(key if key and last == "[key]" else node, path, error, text)


def report_unknown_key(
    node: Node, key: Node | None, path: Sequence[str | int], text: SpecText, lacking: Sequence[str] = ()
) -> str:
    """Report `key` (whose value is `node`) as unknown in the mapping at `path`, which lacks the keys `lacking`.

    Gives the key that was likely meant; empty for none.
    """
    place = key or node
    kind, noun = _kind(path)
    meant = text.near(place.text, known_keys(kind)) or (lacking[0] if len(lacking) == 1 else "")
    help = f"did you mean '{meant}'?" if meant else f"the keys of {noun} are {listing(known_keys(kind), 'and')}"
    home = next((name for name in _HOMES if place.text in known_keys(KINDS[name][0])), "")
    if home and not meant:
        written = node.text if node.kind == "scalar" and "\n" not in node.text else "…"
        help = _HOMES[home].format(f"{place.text}: {written}")
    text.report(place, f"unknown key {quote(place.text)} in {noun}", help)
    return meant


@cache
def known_keys(kind: type[BaseModel]) -> list[str]:
    """The keys that a file may give of a model."""
    return [field.alias or name for name, field in kind.model_fields.items() if name not in model.READER_FIELDS]


def _find(root: Node, loc: Location) -> tuple[Node, list[str | int], Node | None] | None:
    """The node that a pydantic location leads to, its path, and the key it stands under; None if unreadable.

    Steps that are no key or index (names of union members, ``[key]``, a missing key) are passed over.
    """
    node, path = root, list[str | int]()
    key: Node | None = None
    for step in loc:
        if isinstance(step, str) and step in node.entries:
            key, node = node.entries[step]
        elif isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        else:
            continue
        path.append(step)
        if node.kind == "unreadable":
            return None
    return node, path, key


def _kind(path: Sequence[str | int]) -> tuple[type[BaseModel], str]:
    """Model and noun of the mapping at `path`."""
    for at, keys in ((-3, ("backends",)), (-2, ("outputs", *NAMED))):
        if path[at : at + 1] and path[at] in keys and (at == -2 or isinstance(path[-1], int)):
            return KINDS[str(path[at])]
    return KINDS.get(str(path[-1]) if path else "", KINDS[""])


def _label(path: list[str | int]) -> str:
    """What a value is called: its key, with the index for an entry of a list (``shape[1]``)."""
    if path and path[-1] == "scenarios":
        return "scenarios"
    if len(path) > 1 and path[-2] in NAMED:
        noun = _kind(path)[1]
        return noun if isinstance(path[-1], int) else f"{noun.removeprefix('an ')} {quote(path[-1])}"
    if path[-2:-1] == ["layers"]:
        return "the name of a layer"
    if path and isinstance(path[-1], int):
        return f"{_label(path[:-1])}[{path[-1]}]"
    return str(path[-1]) if path else "the file"


def _report_missing(node: Node, key: str, path: list[str | int], text: SpecText) -> None:
    kind, noun = _kind(path)
    described = {field.alias or name: field.description or "" for name, field in kind.model_fields.items()}
    help = "begin the file with 'schema: gradcheck/v1'" if key == "schema" else f"add '{key}: …'. {described[key]}"
    text.report(node.start, f"{noun} needs the key '{key}'", help)


def _report_value(node: Node, path: list[str | int], error: ErrorDetails, text: SpecText) -> None:
    label, kind, context = _label(path), error["type"], error.get("ctx", {})
    field = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
    if kind == "literal_error":
        _report_choice(node, label, error, text)
        return
    field = "layers" if path[-2:-1] == ["layers"] else field
    message, help = f"{label}: {error['msg']}", ""
    if kind == "unknown_operation":
        message, help = f"unknown op {quote(node.text)}", _operation_help(node.text, text)
    elif kind in _WANTED:
        message, help = f"{label} must be {_WANTED[kind]}, not {describe(node)}", _help_for(node, kind, path)
    elif kind == "union_tag_not_found" and field in _UNIONS:
        wanted, help = _UNIONS[field]
        message = f"{label} must be {wanted}, not {describe(node)}"
    elif kind in _BOUNDS:
        word, bound = _BOUNDS[kind]
        message, help = f"{label} must be {word} {context[bound]:g}, not {node.text}", _described(path)
    elif kind == "string_pattern_mismatch":
        message, help = f"{label} {quote(node.text)} is not well formed", _PATTERNS.get(field, "")
        if not node.text.strip():
            message = f"{label} must not be empty"
        elif field == "ref" and (place := node.text.rpartition("."))[0]:
            help += f"; write '{place[0]}:{place[2]}'" if re.fullmatch(r"[\w.]+", node.text) else ""
        elif field in ("id", "tags") and (kebab := re.sub(r"[^a-z0-9]+", "-", node.text.lower()).strip("-")):
            help += f"; write '{kebab}'" if len(kebab) <= 60 else ""
    elif kind in ("string_too_short", "too_short"):
        message, help = f"{label} must not be empty", _described(path)
    elif kind == "string_too_long":
        message, help = f"{label} is longer than {context['max_length']} characters", "shorten it"
    elif kind == "too_long":
        what = "dimensions" if field == "shape" else "entries"
        message, help = f"{label} has {len(node.items)} {what}, at most {context['max_length']} are allowed", ""
    text.report(node, message, help)


def _operation_help(name: str, text: SpecText) -> str:
    """The operation that was likely meant: one of the same last name, or of nearly the same name."""
    by_last = {one.rpartition(".")[2]: one for one in sorted(OPERATIONS)}
    if near := nearest(name.rpartition(".")[2], by_last):
        return f"did you mean '{by_last[near]}'?"
    return "functions of Tensors in paddle, paddle.linalg and paddle.nn.functional can be named; write others as source"


def _report_choice(node: Node, label: str, error: ErrorDetails, text: SpecText) -> None:
    """Report a value that is none of a few; the choices are in pydantic's own words."""
    expected = error["ctx"]["expected"]
    choices = [one.strip("'") for one in re.split(", | or ", expected)]
    what = f"unknown {label} {quote(node.text)}" if isinstance(node.value, str) else f"{label} is {describe(node)}"
    if label == "schema":
        what = f"this is not a format that this version reads: {quote(node.text)}"
    help = text.suggest(node.text, choices) or f"write {listing(choices)}"
    if node.style and node.text in choices and "'" not in expected:
        help = "remove the quotes"
    text.report(node, what, help)


def _help_for(node: Node, kind: str, path: list[str | int]) -> str:
    """What to write instead of a value of the wrong kind."""
    value = node.text
    if kind == "bool_type" and value.lower() in _SPELLED:
        return f"write {_SPELLED[value.lower()]}"
    if kind in ("int_type", "float_type", "int_from_float"):
        return number_help(node)
    if kind == "string_type" and node.kind == "scalar" and value:
        return f'put it in quotes: "{value}"'
    if kind in ("tuple_type", "list_type") and path[-1:] == ["scenarios"]:
        return "begin each scenario with a dash: '- id: …'"
    if kind in ("tuple_type", "list_type") and node.style and value.startswith("["):
        return "remove the quotes"
    if kind in ("tuple_type", "list_type") and re.fullmatch(r"\d{1,9}(?: ?[x×*,] ?\d{1,9})+", value or ""):
        return f"write [{', '.join(re.findall(r'[0-9]+', value))}]"
    if kind in ("tuple_type", "list_type") and node.kind == "scalar" and value:
        return f"write [{value}]" if len(value) <= 40 and "\n" not in value else "write [a, b, …]"
    if kind in ("model_type", "model_attributes_type") and _kind(path)[0] is not model.SpecFile:
        keys = known_keys(_kind(path)[0])
        text = value if isinstance(node.value, str) and len(value) <= 40 and "\n" not in value else "…"
        inner = f"raises: {{type: {text}}}" if _EXCEPTION.fullmatch(text) and "raises" in keys else f"{keys[0]}: {text}"
        return f"write {{{inner}}}" + (f"; the keys are {listing(keys, 'and')}" if len(keys) > 1 else "")
    names = [name for item in node.items for name in item.entries]
    if kind == "dict_type" and 0 < len(names) == len(node.items):
        return f"write {listing((f'{name}: …' for name in names), 'and')} without the dash{'es' * (len(names) > 1)}"
    return _described(path)


def number_help(node: Node) -> str:
    """What to write where a number was expected and `node` stands."""
    value = node.text.strip()
    if isinstance(node.value, float) and node.value.is_integer():
        return f"write {int(node.value)}"
    if not isinstance(node.value, str) or len(value) > 40:
        return ""
    bare = value.lstrip("+-")
    if bare.lower() in ("inf", "infinity", "nan"):
        return f"write {'-' if value.startswith('-') else ''}.{bare.lower()[:3]}"
    if unit := _WITH_UNIT.fullmatch(value):
        return f"write {float(unit[1]) / 100:g}" if unit[2] == "%" else f"write {unit[1]}"
    if not _NUMERIC.fullmatch(value):
        return ""
    if node.style:
        return "remove the quotes"
    try:
        return f"write {int(value, 0) if bare[:2] in ('0x', '0o') else value.replace('_', '').lstrip('0') or 0}"
    except ValueError:
        return ""


def _described(path: list[str | int]) -> str:
    """The description that the model gives the key at the end of `path`."""
    names = [at for at, step in enumerate(path) if isinstance(step, str)]
    if not names:
        return ""
    field: Any = _kind(path[: names[-1]])[0].model_fields.get(str(path[names[-1]]))
    return field.description or "" if field else ""
