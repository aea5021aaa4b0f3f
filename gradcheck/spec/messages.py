"""What pydantic finds wrong, said in plain English at its place in the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel

from gradcheck.spec import model
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node, describe
from gradcheck.support.suggest import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Key -> the model of what is under it, and what to call that; under `NAMED` keys, of what is under each name.
KINDS: dict[str, tuple[type[BaseModel], str]] = {
    "": (model.SpecFile, "a spec file"), "scenarios": (model.Scenario, "a scenario"),
    "cases": (model.Scenario, "a scenario"), "inputs": (model.Input, "an input"),
    "outputs": (model.Output, "an output"), "backends": (model.BackendExpectation, "a backend's expectations"),
    "values": (model.Tolerance, "an expected value"), "defaults": (model.Defaults, "defaults"),
    "layout": (model.Aliased, "layout"), "explore": (model.Explore, "explore"), "source": (model.Source, "source"),
    "expect": (model.Expect, "expect"), "observed": (model.Observed, "observed"), "policy": (model.Policy, "policy"),
    "raises": (model.Raises, "raises"), "warns": (model.Warns, "warns"), "calls": (model.Calls, "calls"),
    "differs": (model.Differs, "differs"), "message": (model.Regex, "message"), "xfail": (model.Xfail, "xfail"),
    "skip": (model.Skip, "skip"), "(ref)": (model.LayerRef, "layer"), "(op)": (model.LayerOp, "layer"),
}  # fmt: skip
Location = tuple[int | str, ...]
"""Where pydantic finds a mistake."""
NAMED = ("scenarios", "cases", "inputs", "backends", "values")
# What has keys that are often written a level too high -> how they are written where they belong.
_HOMES = {
    "(op)": "write 'layer: {{{}}}'",
    "(ref)": "write 'layer: {{{}}}'",
    "expect": "write 'expect: {{{}}}'",
    "inputs": "write 'inputs: {{x: {{{}}}}}'",
    "backends": "write 'backends: {{numpy: {{{}}}}}'",
}
_WANTED = {
    "string_type": "text", "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "tuple_type": "a list", "list_type": "a list", "dict_type": "a mapping",
    "model_type": "a mapping", "model_attributes_type": "a mapping",
}  # fmt: skip
# What pydantic calls a mistake -> how it is said.
_MESSAGES = {
    **{kind: f"{{label}} must be {wanted}, not {{here}}" for kind, wanted in _WANTED.items()},
    "unknown_operation": "unknown op {quoted}",
    "greater_than": "{label} must be above {gt:g}, not {text}",
    "greater_than_equal": "{label} must be at least {ge:g}, not {text}",
    "less_than": "{label} must be below {lt:g}, not {text}",
    "less_than_equal": "{label} must be at most {le:g}, not {text}",
    "string_pattern_mismatch": "{label} {quoted} is not well formed",
    "string_too_short": "{label} must not be empty",
    "too_short": "{label} must not be empty",
    "string_too_long": "{label} is longer than {max_length} characters",
    "too_long": "{label} has {count} {parts}, at most {max_length} are allowed",
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
_SPELLED = {**dict.fromkeys(("yes", "on", "true"), "true"), **dict.fromkeys(("no", "off", "false"), "false")}
_EXCEPTION = re.compile(r"\w*(Error|Exception|Warning)")
_WITH_UNIT = re.compile(r"([0-9]*\.?[0-9]+) ?(%|[a-z]{1,8})")
_WORTH = {"%": 0.01, "ms": 0.001, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600}
"""What units are worth, times in seconds; others are left out."""
_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?"
_SEVERAL = re.compile(rf"{_NUMBER}(?: ?(?:[x×*,]|\.\.) ?{_NUMBER})+")
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
            if isinstance(last, int):  # of a list of so many
                if last == len(node.items):
                    text.report(node, f"{_label(path)} has too few numbers: {last}", description_of(path))
            elif not node.incomplete and last not in meant.get(error["loc"][:-1], ()):
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
    home = next((name for name in _HOMES if place.text in known_keys(KINDS[name][0])), "")
    near = "" if home else text.near(place.text, known_keys(kind)) or ""
    meant = near or (lacking[0] if len(lacking) == 1 else "")
    help = f"did you mean '{meant}'?" if meant else f"the keys of {noun} are {listing(known_keys(kind), 'and')}"
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
    help = (
        "begin the file with 'schema: gradcheck/v1'"
        if key == "schema"
        else f"add '{key}: …'. {description_of([*path, key])}"
    )
    text.report(node.start, f"{_kind(path)[1]} needs the key '{key}'", help)


def _report_value(node: Node, path: list[str | int], error: ErrorDetails, text: SpecText) -> None:
    label, kind = _label(path), error["type"]
    field = next((str(step) for step in reversed(path) if isinstance(step, str)), "")
    if kind == "literal_error":
        _report_choice(node, label, error, text)
    elif kind == "union_tag_not_found" and field in _UNIONS:
        wanted, help = _UNIONS[field]
        text.report(node, f"{label} must be {wanted}, not {describe(node)}", help)
    else:
        if kind == "string_pattern_mismatch" and not node.text.strip():
            kind = "string_too_short"
        message = _MESSAGES.get(kind, "{label}: {said}").format(
            label=label, here=describe(node), text=node.text, quoted=quote(node.text), count=len(node.items),
            parts="dimensions" if field == "shape" else "entries", said=error["msg"], **error.get("ctx", {}),
        )  # fmt: skip
        field = "layers" if path[-2:-1] == ["layers"] else field
        text.report(node, message, _help_for(node, error["type"], path, field))


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


def _help_for(node: Node, kind: str, path: list[str | int], field: str) -> str:
    """What to write instead of a value, which is that of the key `field` or in a list there."""
    value = node.text
    is_short = len(value) <= 40 and "\n" not in value
    match kind:
        case "unknown_operation":  # one of the same last name, or of nearly the same name
            by_last = {one.rpartition(".")[2]: one for one in sorted(model.OPERATIONS)}
            near = nearest(value.rpartition(".")[2], by_last)
            where = "functions of Tensors in paddle, paddle.linalg and paddle.nn.functional can be named"
            return f"did you mean '{by_last[near]}'?" if near else f"{where}; write others as source"
        case "string_pattern_mismatch":
            return _PATTERNS.get(field, "") + _well_formed(field, value)
        case "string_too_long":
            return "shorten it"
        case "bool_type" if value.lower() in _SPELLED:
            return f"write {_SPELLED[value.lower()]}"
        case "int_type" | "float_type" | "int_from_float":
            return number_help(node)
        case "string_type" if node.kind == "scalar" and value:
            return f'put it in quotes: "{value}"'
        case "tuple_type" | "list_type" if path[-1:] == ["scenarios"]:
            return "begin each scenario with a dash: '- id: …'"
        case "tuple_type" | "list_type" if node.style and value.startswith("["):
            return "remove the quotes"
        case "tuple_type" | "list_type" if _SEVERAL.fullmatch(value):
            return f"write {_listed(value)}"
        case "tuple_type" | "list_type" if node.kind == "scalar" and value:
            return f"write [{value}]" if is_short else "write [a, b, …]"
        case "model_type" | "model_attributes_type" if _kind(path)[0] is not model.SpecFile:
            keys, inner = (
                known_keys(_kind(path)[0]),
                _listed(value) if isinstance(node.value, str) and is_short else "…",
            )
            raises = "raises" in keys and _EXCEPTION.fullmatch(inner)
            written = f"raises: {{type: {inner}}}" if raises else f"{keys[0]}: {inner}"
            return f"write {{{written}}}" + (f"; the keys are {listing(keys, 'and')}" if len(keys) > 1 else "")
        case "dict_type" if names := [name for item in node.items for name in item.entries]:
            if len(names) == len(node.items):
                dashes = f"dash{'es' * (len(names) > 1)}"
                return f"write {listing((f'{name}: …' for name in names), 'and')} without the {dashes}"
    return description_of(path)


def description_of(path: list[str | int]) -> str:
    """The description that the model gives a key; empty for none."""
    names = [str(step) for step in path if isinstance(step, str)]
    before = path[: len(path) - path[::-1].index(names[-1]) - 1] if names else []
    field = _kind(before)[0].model_fields.get(names[-1]) if names else None
    return field.description or "" if field else ""


def _listed(value: str) -> str:
    """Several numbers as a list, such as a shape 3x4 or a range 0..1; other text as it is."""
    return f"[{', '.join(re.findall(_NUMBER, value))}]" if _SEVERAL.fullmatch(value) else value


def _well_formed(field: str, value: str) -> str:
    """What a reference, an id or a tag that is not well formed may be meant to be."""
    module, _, name = value.rpartition(".")
    if field == "ref" and module and re.fullmatch(r"[\w.]+", value):
        return f"; write '{module}:{name}'"
    kebab = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-") if field in ("id", "tags") else ""
    return f"; write '{kebab}'" if kebab and len(kebab) <= 60 else ""


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
        return f"write {float(unit[1]) * _WORTH.get(unit[2], 1):g}"
    if not _NUMERIC.fullmatch(value):
        return ""
    if node.style:
        return "remove the quotes"
    try:
        return f"write {int(value, 0) if bare[:2] in ('0x', '0o') else value.replace('_', '').lstrip('0') or 0}"
    except ValueError:
        return ""
