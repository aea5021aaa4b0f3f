"""Words for mistakes in values, at their place in the file: our own for the commonest, otherwise
pydantic's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from gradcheck.spec import model
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.document import Map, Seq, Span, describe, locate
from gradcheck.spec.text import Place, SpecText
from gradcheck.spec.violation import MISTAKES, Violation
from gradcheck.support.suggest import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Key -> the model of what is under it, and what to call that; under `NAMED` keys, of what is under
# each name.
KINDS: dict[str, tuple[type[BaseModel], str]] = {
    "": (model.SpecFile, "a spec file"),
    "scenarios": (model.Scenario, "a scenario"),
    "cases": (model.Scenario, "a scenario"),
    "inputs": (model.Input, "an input"),
    "outputs": (model.Output, "an output"),
    "backends": (model.BackendExpectation, "a backend's expectations"),
    "values": (model.Tolerance, "an expected value"),
    "defaults": (model.Defaults, "defaults"),
    "layout": (model.Aliased, "layout"),
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
NAMED = ("scenarios", "cases", "inputs", "backends", "values")
# What has keys that are often written a level too high -> how they are written where they belong.
_HOMES = {
    "(op)": "write 'layer: {{{}}}'",
    "(ref)": "write 'layer: {{{}}}'",
    "expect": "write 'expect: {{{}}}'",
    "inputs": "write 'inputs: {{x: {{{}}}}}'",
    "backends": "write 'backends: {{numpy: {{{}}}}}'",
}
RESERVED = model.READER_FIELDS | {"from_"}
"""Names of fields that are no keys of the format."""
_REMOVED_KEYS = {
    "explore": "name the free sizes under 'sizes: {B: 2}', and run `gradcheck explore FILE ID`"
}
# What pydantic calls a mistake -> the words of this table.
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
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
    "union_tag_not_found": "{label} must be {choices}, not {here}",
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
    "layer": (
        "Python source, a layer's name, {ref: …} or {op: …}",
        "write 'layer: |' and the code on the lines below",
    ),
    "outputs": ("{ranks: …}, or a list of these", "write {ranks: replicated}, or {ranks: split}"),
    "message": ("text or {re: …}", "put the text that the message must contain in quotes"),
}
_SPELLED = {
    **dict.fromkeys(("yes", "on", "true"), "true"),
    **dict.fromkeys(("no", "off", "false"), "false"),
}
_EXCEPTION = re.compile(r"\w*(Error|Exception|Warning)")
_WITH_UNIT = re.compile(r"([0-9]*\.?[0-9]+) ?(%|[a-z]{1,8})")
_WORTH = {
    "%": 0.01,
    "ms": 0.001,
    "m": 60,
    "min": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
}
"""What units are worth, times in seconds; others are ignored."""
_NUMBER = r"-?\d{1,9}(?:\.\d{1,9})?"
_SEVERAL = re.compile(rf"{_NUMBER}(?: ?(?:[x×*,]|\.\.) ?{_NUMBER})+")
_NUMERIC = re.compile(r"[-+]?(\.?[0-9][0-9_]*\.?[0-9_]*([eE][-+]?[0-9]+)?)")
_BASED = re.compile(r"[-+]?0(x[0-9a-fA-F]{1,16}|o[0-7]{1,20})")
_NOT_FINITE = re.compile(r"([-+]?)(inf|nan)(inity)?", re.IGNORECASE)
_MOST_REPEATED = 40
"""Characters of a value that advice repeats."""


class InvalidValue(NamedTuple):
    """A mistake of pydantic's, and the value that it is about."""

    kind: str
    value: Any
    mark: Span
    steps: list[int | str]
    """Keys and indices that lead to the value."""
    field: str
    """The last key among them."""
    words: str
    """How pydantic words it."""
    context: dict[str, Any]

    @property
    def is_short_scalar(self) -> bool:
        """Whether advice can repeat the value."""
        return 0 < len(self.mark.text) <= _MOST_REPEATED and "\n" not in self.mark.text


def report_errors(error: ValidationError, root: Map, text: SpecText) -> None:
    """Report all that pydantic and the rules of the model find in the document of a file."""
    details = error.errors(include_url=False, include_input=False)
    keys: dict[tuple[str, DataPath], list[str]] = {}
    for detail in details:
        *above, last = detail["loc"]
        keys.setdefault((detail["type"], tuple(above)), []).append(str(last))
    for detail in details:
        location = detail["loc"]
        in_layers = location[:1] == ("layers",) and len(location) > 1
        if in_layers and location[-1] != "[key]":
            continue  # a scenario that uses the layer reports it, and there must be such a scenario
        if detail["type"] == MISTAKES:
            for mistake in detail["ctx"]["mistakes"]:
                report_mistake(mistake, location, root, text)
            continue
        unknown = keys.get(("extra_forbidden", location[:-1]), [])
        if detail["type"] == "extra_forbidden":
            # Only if one key is unknown, the one that is missing may be meant.
            lacking = keys.get(("missing", location[:-1]), []) if len(unknown) == 1 else []
            _report_extra(location, root, text, lacking)
        elif detail["type"] != "missing":
            _report_value(detail, root, text)
        elif not unknown:
            _report_missing(location, root, text)


def report_mistake(mistake: Violation, location: DataPath, root: Map, text: SpecText) -> None:
    """Report a mistake that a rule of the model finds in the value at a location."""
    value, mark, key_mark, steps = locate(root, (*location, *mistake.path))
    place, help = mark.place, mistake.help
    if mistake.mark == "key" and key_mark is not None:
        mark, place = key_mark, key_mark.place
    if mistake.mark == "start":
        place = mark.start
    if mistake.inside is not None:
        place = place_in_code(mark, text, *mistake.inside)
        if mark.style == ">" and not help:
            help = "write the code as a block: '|' and the code on the lines below"
    words = {"{label}": _label(steps), "{here}": describe(value, mark), "{text}": mark.text}
    message = mistake.message
    for key, word in words.items():
        message = message.replace(key, word)
    if "{number}" in help:
        otherwise = "write a plain number" if help != "{number}" else ""
        help = help.replace("{number}", number_help(value, mark) or otherwise)
    text.report(place, message, help)


def place_in_code(mark: Span, text: SpecText, line: int, column: int, width: int = 1) -> Place:
    """Return where in the file a line and column, from 1, of the text of a scalar are."""
    first, start = mark.first_character
    if mark.style == "|":
        in_code = mark.text.split("\n")
        in_file = text.lines[first + line - 2] if first + line - 2 < len(text.lines) else ""
        code = in_code[line - 1] if line <= len(in_code) else ""
        return first + line - 1, max(1, column) + max(0, len(in_file) - len(code)), width
    written = text.lines[mark.line - 1][start - 1 : start - 1 + len(mark.text)]
    if mark.end_line == mark.line and written == mark.text:
        return mark.line, start + max(1, column) - 1, width
    return (
        mark.line,
        mark.column,
        width,
    )  # escapes, or a text folded from several lines: columns no longer agree


# --------------------------------------------------------------------------- keys
def report_reserved_keys(mapping: Map, place: Sequence[int | str], text: SpecText) -> None:
    """Report keys of the mapping at a place that only the reader may give."""
    for key in mapping.marks.keys() & RESERVED:
        _report_unknown_key(mapping[key], mapping.marks[key], place, text)


def _report_unknown_key(
    value: Any,
    marks: tuple[Span, Span],
    place: Sequence[int | str],
    text: SpecText,
    lacking: Sequence[str] = (),
) -> None:
    """Report a key as unknown in the mapping at a place, which lacks some keys."""
    key_mark, mark = marks
    key = key_mark.text
    kind, noun = _kind(place)
    help = _REMOVED_KEYS.get(key, "")
    home = next((name for name in _HOMES if key in known_keys(KINDS[name][0])), "")
    meant = "" if home or help else text.suggest(key, known_keys(kind))
    if not meant and len(lacking) == 1:
        meant = lacking[0]
    if meant:
        help = f"did you mean '{meant}'?"
    elif home:
        is_block = isinstance(value, (Map, Seq)) or "\n" in mark.text
        help = _HOMES[home].format(f"{key}: {'…' if is_block else mark.text}")
    text.report(
        key_mark.place,
        f"unknown key {quote(key)} in {noun}",
        help or f"the keys of {noun} are {listing(known_keys(kind), 'and')}",
    )


def _report_extra(location: DataPath, root: Map, text: SpecText, lacking: Sequence[str]) -> None:
    """Report a key that the model at a location does not have."""
    value, mark, key_mark, steps = locate(root, location)
    is_layer = location[-2] in ("(ref)", "(op)") if len(location) > 1 else False
    place = location[-2:-1] if is_layer else steps[:-1]
    _report_unknown_key(value, (key_mark or mark, mark), place, text, lacking)


def _report_missing(location: DataPath, root: Map, text: SpecText) -> None:
    """Report a missing key, or that a list has too few entries."""
    value, mark, _, steps = locate(root, location)
    key = location[-1]
    if isinstance(key, int):
        if isinstance(value, Seq) and key == len(value):  # the first of those that are missing
            message = f"{_label(steps)} has too few numbers: {key}"
            text.report(mark.place, message, describe_key(steps))
        return
    help = f"add '{key}: …'. {describe_key([*steps, key])}"
    if key == "schema":
        help = "begin the file with 'schema: gradcheck/v1'"
    text.report(mark.start, f"{_kind(steps)[1]} needs the key '{key}'", help)


@cache
def known_keys(kind: type[BaseModel]) -> list[str]:
    """Return the keys that a file may give of a model."""
    return [
        field.alias or name
        for name, field in kind.model_fields.items()
        if name not in model.READER_FIELDS
    ]


def _kind(steps: Sequence[int | str]) -> tuple[type[BaseModel], str]:
    """Return model and noun of the mapping at a place."""
    last = steps[-1] if steps else ""
    if steps[-3:-2] == ["backends"] and isinstance(last, int):
        return KINDS["backends"]
    if len(steps) > 1 and steps[-2] in ("outputs", *NAMED):
        return KINDS[str(steps[-2])]
    return KINDS.get(str(last), KINDS[""])


def _label(steps: Sequence[int | str]) -> str:
    """Return what a value is called: its key, with the index of a list's entry (``shape[1]``)."""
    if not steps:
        return "the file"
    *above, last = steps
    is_element = above[-1:] == ["values"] and isinstance(last, int)
    if above and above[-1] in NAMED and not is_element:
        noun = _kind(steps)[1]
        return noun if isinstance(last, int) else f"{noun.removeprefix('an ')} {quote(last)}"
    if above[-1:] == ["layers"]:
        return "the name of a layer"
    return f"{_label(above)}[{last}]" if isinstance(last, int) else last


def describe_key(steps: Sequence[int | str]) -> str:
    """Return the description that the model gives a key; empty for none."""
    names = [index for index, step in enumerate(steps) if isinstance(step, str)]
    if not names:
        return ""
    name = str(steps[names[-1]])
    field = _kind(list(steps[: names[-1]]))[0].model_fields.get(name)
    return (field.description or "") if field else ""


# --------------------------------------------------------------------------- values
def _report_value(detail: ErrorDetails, root: Map, text: SpecText) -> None:
    """Report a value, or a key, that is not of the type, or not among those allowed."""
    value, mark, key_mark, steps = locate(root, detail["loc"])
    is_key = detail["loc"][-1] == "[key]"
    if is_key and key_mark is not None:
        mark = key_mark
    field = next((str(step) for step in reversed(steps) if isinstance(step, str)), "")
    context = detail.get("ctx", {})
    invalid = InvalidValue(detail["type"], value, mark, steps, field, detail["msg"], context)
    if invalid.kind == "literal_error":
        _report_choice(invalid, is_key, text)
        return
    kind = invalid.kind
    if kind == "string_pattern_mismatch" and not mark.text.strip():
        kind = "string_too_short"
    message = _MESSAGES.get(kind, "{label}: {words}").format(
        label=_label(invalid.steps),
        here=describe(value, mark),
        text=mark.text,
        quoted=quote(mark.text),
        count=len(value) if isinstance(value, Seq) else 1,
        parts="dimensions" if invalid.field == "shape" else "entries",
        choices=_UNIONS.get(invalid.field, ("something else",))[0],
        words=invalid.words,
        **invalid.context,
    )
    help = _ADVICE[invalid.kind](invalid) if invalid.kind in _ADVICE else ""
    text.report(mark.place, message, help or describe_key(invalid.steps))


def _report_choice(invalid: InvalidValue, is_key: bool, text: SpecText) -> None:
    """Report a value that is none of a few; pydantic lists these."""
    expected, mark = invalid.context["expected"], invalid.mark
    choices = [choice.strip("'") for choice in re.split(", | or ", expected)]
    label = _label(invalid.steps)
    if is_key:
        label = next(
            (
                noun
                for key, noun in (("backends", "backend"), ("world", "axis"))
                if key in invalid.steps
            ),
            "key",
        )
    if is_key or isinstance(invalid.value, str):
        message = f"unknown {label} {quote(mark.text)}"
    else:
        message = f"{label} is {describe(invalid.value, mark)}"
    if label == "schema":
        message = f"this is not a format that this version reads: {quote(mark.text)}"
    near = text.suggest(mark.text, choices)
    help = f"did you mean '{near}'?" if near else f"write {listing(choices)}"
    if mark.style and mark.text in choices and "'" not in expected:
        help = "remove the quotes"
    text.report(mark.place, message, help)


def _advise_operation(invalid: InvalidValue) -> str:
    """Suggest an operation of the same last name, or of nearly the same name."""
    by_last = {name.rpartition(".")[2]: name for name in sorted(model.OPERATIONS)}
    near = nearest(invalid.mark.text.rpartition(".")[2], by_last)
    if near:
        return f"did you mean '{by_last[near]}'?"
    where = "functions of Tensors in paddle, paddle.linalg and paddle.nn.functional can be named"
    return f"{where}; write others as source"


def _advise_pattern(invalid: InvalidValue) -> str:
    """Tell the form of a text, and write the value in it where that is clear."""
    field = "layers" if invalid.steps[-2:-1] == ["layers"] else invalid.field
    help, value = _PATTERNS.get(field, ""), invalid.mark.text
    module, _, name = value.rpartition(".")
    if field == "ref" and module and re.fullmatch(r"[\w.]+", value):
        return f"{help}; write '{module}:{name}'"
    kebab = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-") if field in ("id", "tags") else ""
    return f"{help}; write '{kebab}'" if 0 < len(kebab) <= 60 else help


def _advise_list(invalid: InvalidValue) -> str:
    """Write a value as a list."""
    value = invalid.mark.text
    if invalid.steps[-1:] == ["scenarios"]:
        return "begin each scenario with a dash: '- id: …'"
    if invalid.mark.style and value.startswith("["):
        return "remove the quotes"
    if _SEVERAL.fullmatch(value):
        return f"write {_as_list(value)}"
    if invalid.is_short_scalar:
        return f"write [{value}]"
    return "write [a, b, …]" if value else ""


def _advise_mapping(invalid: InvalidValue) -> str:
    """Write a value as a mapping with the first key of those that it can have."""
    kind = _kind(invalid.steps)[0]
    if kind is model.SpecFile:
        return ""
    keys = known_keys(kind)
    inner = (
        _as_list(invalid.mark.text)
        if invalid.is_short_scalar and isinstance(invalid.value, str)
        else "…"
    )
    written = f"{keys[0]}: {inner}"
    if "raises" in keys and _EXCEPTION.fullmatch(inner):
        written = f"raises: {{type: {inner}}}"
    others = f"; the keys are {listing(keys, 'and')}" if len(keys) > 1 else ""
    return f"write {{{written}}}{others}"


def _advise_names(invalid: InvalidValue) -> str:
    """Write a list of mappings of one key each as one mapping."""
    items = invalid.value if isinstance(invalid.value, Seq) else ()
    if not items or not all(isinstance(item, Map) and len(item) == 1 for item in items):
        return ""
    names = [f"{next(iter(item))}: …" for item in items]
    return f"write {listing(names, 'and')} without the dash{'es' * (len(names) > 1)}"


def _advise_boolean(invalid: InvalidValue) -> str:
    spelled = _SPELLED.get(invalid.mark.text.lower())
    return f"write {spelled}" if spelled else ""


def _advise_quotes(invalid: InvalidValue) -> str:
    return f'put it in quotes: "{invalid.mark.text}"' if invalid.mark.text else ""


def _advise_union(invalid: InvalidValue) -> str:
    return _UNIONS.get(invalid.field, ("", ""))[1]


def _advise_number(invalid: InvalidValue) -> str:
    return number_help(invalid.value, invalid.mark)


def _for_each(
    kinds: Iterable[str], advise: Callable[[InvalidValue], str]
) -> dict[str, Callable[[InvalidValue], str]]:
    return dict.fromkeys(kinds, advise)


_ADVICE: dict[str, Callable[[InvalidValue], str]] = {
    "unknown_operation": _advise_operation,
    "string_pattern_mismatch": _advise_pattern,
    "string_too_long": lambda invalid: "shorten it",
    "bool_type": _advise_boolean,
    "string_type": _advise_quotes,
    "dict_type": _advise_names,
    "union_tag_not_found": _advise_union,
    **_for_each(("int_type", "float_type", "int_from_float"), _advise_number),
    **_for_each(("tuple_type", "list_type"), _advise_list),
    **_for_each(("model_type", "model_attributes_type"), _advise_mapping),
}
"""What to write in place of a value, by pydantic's name of the mistake; the key's description
otherwise.
"""


def _as_list(value: str) -> str:
    """Write several numbers as a list, such as a shape 3x4 or a range 0..1; other text as it is."""
    return f"[{', '.join(re.findall(_NUMBER, value))}]" if _SEVERAL.fullmatch(value) else value


def number_help(value: Any, mark: Span) -> str:
    """Return what to write where a number was expected."""
    text = mark.text.strip()
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if not isinstance(value, str) or len(text) > _MOST_REPEATED:
        return ""
    for pattern, write in _NUMBER_FORMS:
        if match := pattern.fullmatch(text):
            is_quoted = bool(mark.style) and pattern is _NUMERIC
            return "remove the quotes" if is_quoted else f"write {write(match)}"
    return ""


_NUMBER_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], object]], ...] = (
    (_NOT_FINITE, lambda match: f"{match[1].strip('+')}.{match[2].lower()}"),
    (_WITH_UNIT, lambda match: f"{float(match[1]) * _WORTH.get(match[2], 1):g}"),
    (_NUMERIC, lambda match: match[0].replace("_", "").lstrip("0") or 0),
    (_BASED, lambda match: int(match[0], 0)),
)
"""How numbers of other notations are written."""
