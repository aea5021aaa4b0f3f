"""Messages for values and keys that the format does not allow, at their position in the file."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from gradcheck.spec import model
from gradcheck.spec.data import DataPath, Location, Map, Place, Seq, Span, locate
from gradcheck.spec.diagnostic import describe, listing, quote
from gradcheck.spec.text import SpecText
from gradcheck.spec.violation import MISTAKES, Violation

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

KeyPlaces = tuple[tuple[tuple[type[model.Format], ...], type[model.Format], str], ...]
_BLOCKS = (
    model.SpecFile, model.Defaults, model.Scenario, model.ScenarioCase, model.BackendExpectation,
    model.Expect, model.Input,
)  # fmt: skip
"""Objects whose keys are easily confused with those of objects inside or next to them."""
_BELOW_FILE = tuple(kind for kind in model.Format.by_name.values() if kind is not model.SpecFile)
_PLACES: KeyPlaces = (
    (
        (model.Skip, model.Xfail, model.Observed), model.BackendExpectation,
        "write '{0}: …' next to 'skip', 'xfail' or 'observed'",
    ),
    ((model.Defaults,), model.Scenario, "it belongs to a single scenario: write it there"),
    (_BELOW_FILE, model.Scenario, "it is a key of a scenario: write '{0}: …' next to 'id'"),
    (_BLOCKS, model.LayerOp, "write 'layer: {{{0}: …}}'"),
    (_BLOCKS, model.LayerRef, "write 'layer: {{{0}: …}}'"),
    (_BLOCKS, model.Expect, "write 'expect: {{{0}: …}}'"),
    ((model.Expect,), model.Raises, "write 'raises: {{type: ValueError, {0}: …}}'"),
    (_BLOCKS, model.Input, "write 'inputs: {{x: {{{0}: …}}}}'"),
    (_BLOCKS, model.BackendExpectation, "write 'backends: {{numpy: {{{0}: …}}}}'"),
)  # fmt: skip
"""Objects that have a key of another object, that object, and the right place of the key."""
_PLACES_UNLESS_MISSPELT: KeyPlaces = (
    ((model.SpecFile,), model.Scenario, "it is a key of a scenario: write '{0}: …' next to 'id'"),
    (_BELOW_FILE, model.SpecFile, "it is a key of the file: write '{0}: …' next to 'schema'"),
)
"""Like `_PLACES`, for keys that are more likely misspelt than misplaced, such as layers (layer)."""
_ADVICE_ON_KEYS = {
    "explore": "name the free sizes under 'sizes: {B: 2}', and run `gradcheck explore FILE ID`",
    "amp": "write the casts in the layer; an input's dtype is 'dtype: float16'",
    "device": "remove it: inputs are on the CPU; `-b cupy` runs Paddle's layers on a GPU",
    **dict.fromkeys(("imports", "import", "setup", "fixtures"), "write it in the code"),
    "ranks": "write 'inputs: {x: {ranks: …}}' or 'outputs: {ranks: …}'",
    "dtypes": "write 'matrix: {dtype: …}'",
    "argnums": "write 'stop_gradient: true' for the inputs that need no gradient",
    "args": "write 'inputs: …' for Tensors, and 'kwargs: …' for plain values",
    "strategy": "write only the 'matrix' in it, next to 'id'",
    "timeout-minutes": "its counterpart, timeout, is in seconds",
    "reruns": "remove it: `gradcheck run --reruns 2` repeats cases that fail",
    **dict.fromkeys(("if", "when", "skipif"), "write 'backends: {paddle: {skip: {reason: …}}}'"),
}
"""Keys for settings that belong elsewhere or on the command line → advice."""
_OTHER_TOOLS_KEYS = {
    # of a scenario
    **dict.fromkeys(("base", "parent", "inherit", "inherits"), "extends"),
    **dict.fromkeys(("marks", "markers"), "tags"),
    "code": "layer",
    **dict.fromkeys(("nproc_per_node", "nprocs", "num_ranks", "world_size"), "world"),
    **dict.fromkeys(("options", "parameters", "params"), "kwargs"),
    "description": "title", "name": "id", "parametrize": "matrix", "random_seed": "seed",
    "run": "script", "shapes": "inputs", "uses": "layer",
    "with": "kwargs",
    # of an input
    **dict.fromkeys(("dims", "size"), "shape"),
    **dict.fromkeys(("max", "mean", "min", "std"), "range"),
    **dict.fromkeys(("differentiable", "requires_grad", "trainable"), "stop_gradient"),
    "data": "values", "distribution": "init", "file": "from", "path": "from",
    # of expectations, and of the file
    **dict.fromkeys(("atol", "eps", "tol", "tolerance"), "rtol"),
    **dict.fromkeys(("second_order", "gradgrad"), "order"),
    "exception": "type", "grad": "gradient", "match": "message", "nondet_tol": "nondet",
    "version": "schema", "backend": "framework",
}  # fmt: skip
"""Keys of other tools → the key of this format, used if the mapping has it."""
# pydantic's name of a mistake -> its message, and what to do if it is always the same.
_MESSAGES = {
    "string_type": "{label} must be text, not {here}",
    "int_type": "{label} must be a whole number, not {here}",
    "float_type": "{label} must be a number, not {here}",
    "bool_type": "{label} must be true or false, not {here}",
    "tuple_type": "{label} must be a list, not {here}",
    "dict_type": "{label} must be a mapping, not {here}",
    "literal_error": "unknown {label} {quoted}",
    "greater_than": "{label} must be above {gt:g}, not {here}",
    "greater_than_equal": "{label} must be at least {ge:g}, not {here}",
    "less_than": "{label} must be below {lt:g}, not {here}",
    "less_than_equal": "{label} must be at most {le:g}, not {here}",
    "string_pattern_mismatch": "{label} {quoted} is malformed",
    "string_too_short": "{label} must not be empty",
    "too_short": "{label} must not be empty",
    "too_long": "{label} has {actual_length} entries, at most {max_length} are allowed",
    "missing": "{label} has too few entries",
    "layer": "{msg}, not {here}",
}
_ADVICE = {
    "bool_type": "write true or false",
    "layer": "write 'layer: |' and the code on the lines below",
}
_NOT_TEXT = "remove the '{}', which makes text of the lines below"
"""Advice on a ``|`` or ``>`` where a mapping or list is expected."""
WORDS_OF_NUMPY = {
    "double": "float64", "half": "float16", "single": "float32", "short": "int16", "long": "int64",
    "int": "int64", "fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16",
    "randn": "normal", "gaussian": "normal", "rand": "uniform", "random": "uniform",
    "randint": "integers", "arange": "linspace",
    **dict.fromkeys(("non-contiguous", "non_contiguous", "noncontiguous"), "strided"),
}  # fmt: skip
"""Names of dtypes and random functions in NumPy and torch → our names."""
_OTHER_FORMS = {
    "layout": "{aliased: x}",
    "gradient": "'grads: {x: …}' for its values",
    "dtype": "'matrix: {dtype: […]}' for several",
}
"""Keys of a word → what is written in place of a word, or of the key."""
_NOTHING = ("", "no", "none", "nil", "off", "yes", "on")
"""Words that mean no value, or the default."""
_MAY_BE_INFINITE = ("values", "grads", "cotangent", "near")
"""Keys whose numbers need not be finite."""
_FORMED = ("versions", "code", "issue", "url", "ref", "op", "type", "call")
"""Keys whose text cannot be a number, so that quotes would not help."""
_NUMBERS = re.compile(r"-?\d{1,9}(?:\.(?!\.)\d{0,9})?(?:e-?\d{1,3})?")
_SEVERAL = re.compile(rf"[\[(]?{_NUMBERS.pattern}(?: ?(?:[x×*,]|\.\.) ?{_NUMBERS.pattern})+[\])]?")
_LISTS_OF_NUMBERS = {
    "range": _SEVERAL,
    "near": re.compile(rf"{_NUMBERS.pattern}|{_SEVERAL.pattern}"),
}
"""Keys of lists of numbers → pattern of text that is meant as such a list."""


def report_errors(error: ValidationError, root: Map, text: SpecText) -> None:
    """Report all mistakes that pydantic and the rules of the model find in the document of a
    file.
    """
    for detail in error.errors(include_url=False):
        location = locate(root, detail["loc"])
        if detail["type"] == MISTAKES:
            for mistake in detail["ctx"]["mistakes"]:
                _report_mistake(mistake, detail["loc"], root, text)
        elif detail["type"] == "extra_forbidden":
            mapping: Map = locate(root, location.steps[:-1]).value
            beside = mapping.keys_beside(str(location.steps[-1]))
            _report_unknown_key(location, beside, text)
        elif detail["type"] == "missing" and isinstance(detail["loc"][-1], str):
            _report_missing_key(detail["loc"][-1], location, text)
        elif "class_name" in detail.get("ctx", {}):
            _report_no_mapping(model.Format.by_name[detail["ctx"]["class_name"]], location, text)
        else:
            _report_value(detail, location, text)


def _report_no_mapping(kind: type[model.Format], location: Location, text: SpecText) -> None:
    """Report a value in the place of an object of the format."""
    message = f"{kind.noun} must be a mapping, not {describe(location.value)}"
    help = f"write {_example(kind, location.value)}"
    if isinstance(location.value, Seq) and all(isinstance(v, Map) for v in location.value):
        help = "write its keys without brackets or '-'"
    step = str(location.steps[-1])
    if kind is model.Input and (step == "name" or step in kind.keys()):  # noqa: SIM118
        help = "give the input a name, as in 'inputs: {x: {shape: [2, 3]}}'"
    elif location.mark.is_block:
        help = _NOT_TEXT.format(location.mark.style)
    elif len(kind.keys()) > 1:
        help += f"; the keys are {listing(kind.keys(), 'and')}"
    text.report(location.mark.place, message, help)


def _example(kind: type[model.Format], value: object) -> str:
    """Return an example of an object that contains the text written in its place, if possible."""
    key = re.fullmatch(r"\{(\w+): [^:]*\}", kind.example)
    if type(value) is int and key is not None and key[1] == "shape":
        return f"{{shape: [{value}]}}"
    if not isinstance(value, str) or value.lower() in _NOTHING or key is None:
        return kind.example
    if value.endswith((".npy", ".npz")):
        return f"{{from: {value}}}"
    if key[1] == "shape":
        is_list = _SEVERAL.fullmatch(value) or re.fullmatch(r"\(?\w+(?:, ?\w+)+\)?", value)
        return f"{{shape: {as_list(value)}}}" if is_list else kind.example
    return yaml.safe_dump({key[1]: value}, default_flow_style=True, width=1000).strip()


def _report_mistake(mistake: Violation, path: DataPath, root: Map, text: SpecText) -> None:
    """Report a mistake that a rule of the model finds in the value at a path."""
    _, mark, key_mark, steps, *_ = locate(root, (*path, *mistake.path))
    if mistake.at_key or path[-1:] == ("[key]",):
        mark = key_mark
    place = mark.place
    if mistake.inside is not None:
        place = place_in_code(mark, text, *mistake.inside)
    text.report(place, mistake.message.replace("{label}", _label(steps)), mistake.help)


def place_in_code(mark: Span, text: SpecText, line: int, column: int, width: int = 1) -> Place:
    """Return the position in the file of a line and column (from 1) of a scalar's text."""
    first, start = mark.first_character
    if mark.style == "|":
        code = mark.text.split("\n")[line - 1 : line]
        in_file = text.lines[first + line - 2 : first + line - 1]
        indent = len("".join(in_file)) - len("".join(code))
        return first + line - 1, max(1, column) + max(0, indent), width
    written = text.lines[mark.line - 1][start - 1 : start - 1 + len(mark.text)]
    if mark.end_line == mark.line and written == mark.text:
        return mark.line, start + max(1, column) - 1, width
    # Escapes, or a text folded from several lines: columns no longer agree.
    return mark.line, mark.column, width


# --------------------------------------------------------------------------- keys
def _report_unknown_key(location: Location, beside: Collection[str], text: SpecText) -> None:
    """Report a key that the model does not have; `beside` are the keys of its mapping."""
    key, kind = str(location.steps[-1]), location.kind
    mistake: Violation = kind.unknown_key(key)
    help = _advise_key(key, kind, location.value, beside) or _find_place(key, kind, _PLACES)
    if not help:
        otherwise = _find_place(key, kind, _PLACES_UNLESS_MISSPELT) or mistake.help
        if kind is model.LayerOp:
            otherwise = f"write 'kwargs: {{{key}: …}}' next to 'layer'"
        known = [*kind.keys()]
        if kind is model.Scenario and "id" not in beside:  # then the key has to do with the name
            known = [name for name in known if name != "cases"]
            if isinstance(location.value, Map) and {*beside} == {key}:
                otherwise = f"write '- id: {key}', and its keys in the same column as 'id'"
        help = text.suggest(key, known, otherwise)
    text.report(location.key_mark.place, mistake.message, help)


def _advise_key(key: str, kind: type[model.Format], value: object, beside: Collection[str]) -> str:
    """Return advice on a key of another tool or a key without a ``:``; empty for other keys."""
    if re.match(r"[\w-]+ *[\[{]", key):
        return "put a ':' and a space before the bracket"
    if key in ("dtype", "layout") and isinstance(value, Seq):
        return f"write 'matrix: {{{key}: …}}'"
    ours = _OTHER_TOOLS_KEYS.get(key, "")
    if ours == "gradient" and isinstance(value, Map):
        ours = "grads"
    if ours not in kind.keys():  # noqa: SIM118 - of a class
        return _ADVICE_ON_KEYS.get(key, "")
    if ours in beside:
        return f"remove it: {quote(ours)} is already there"
    is_opposite = ours == "stop_gradient" and isinstance(value, bool)
    return f"write '{ours}: {describe(not value) if is_opposite else '…'}'. {kind.keys()[ours]}"


def _find_place(key: str, kind: type[model.Format], places: KeyPlaces) -> str:
    """Return the advice of the first entry in `places` that has a key; empty if none has it."""
    for kinds, owner, advice in places:
        if kind in kinds and key in owner.keys():  # noqa: SIM118 - of a class
            return advice.format(key)
    return ""


def _report_missing_key(key: str, location: Location, text: SpecText) -> None:
    """Report that a mapping lacks a key, unless a misspelt form of it is there."""
    kind: type[model.Format] = location.value.kind
    if {*location.value.marks} <= {*kind.keys()}:
        help = f"add '{key}: …'. {kind.keys()[key]}"
        if key == "id":
            help += " An entry's other keys begin without a '-'."
        text.report(location.mark.place, f"{kind.noun} needs the key '{key}'", help)


# --------------------------------------------------------------------------- values
def _report_value(detail: ErrorDetails, location: Location, text: SpecText) -> None:
    """Report a value, or a key, of the wrong type or not among the allowed ones."""
    kind, context = detail["type"], detail.get("ctx", {})
    value, mark, label = location.value, location.mark, _label(location.steps)
    if detail["loc"][-1] == "[key]":
        value, mark, label = detail["input"], location.key_mark, "key"
    message = _MESSAGES.get(kind, "{label}: {msg}").format(
        label=label,
        here=describe(value),
        quoted=quote(mark.text or describe(value)),
        msg=detail["msg"],
        **context,
    )
    if kind == "layer" and isinstance(value, Map) and value.marks:
        key, (mark, _) = next(iter(value.marks.items()))
        message = f"unknown key {quote(key)} in layer"
        otherwise = "write {op: …}, {ref: pkg.mod:Class}, 'layer: name' for one of 'layers', or "
        help = text.suggest(key, ("op", "ref"), otherwise + _ADVICE["layer"].partition(" ")[2])
    elif kind == "literal_error":
        if not mark.text:
            message = f"{label} must be one word, not {describe(value)}"
        choices = [choice.strip("'") for choice in re.split(", | or ", context["expected"])]
        choices += [form for key, form in _OTHER_FORMS.items() if key == location.key]
        word = re.sub(r"^fp?(?=\d)", "float", mark.text.rpartition(".")[2])
        help = text.suggest(WORDS_OF_NUMPY.get(word, word), choices)
    else:
        help = _ADVICE.get(kind) or _advise_form(kind, value, mark, context, location.key)
    described = location.kind.keys() if location.kind else {}
    if name := misplaced_key(location.steps):
        help = f"{quote(name)} is a key of an input: write it within the input's braces"
    text.report(mark.place, message, help or described.get(location.key, ""))


def misplaced_key(steps: DataPath) -> str:
    """Return the name of the input that a path leads to, if it is a key of an input; otherwise
    empty.
    """
    for section, name in pairwise(steps):
        if section == "inputs" and name in model.Input.keys():  # noqa: SIM118 - of a class
            return str(name)
    return ""


def _advise_form(
    kind: str, value: object, mark: Span, context: dict[str, object], key: str = ""
) -> str:
    """Return advice on how to write a value that has the wrong form."""
    if kind == "string_type":
        if not isinstance(value, (Map, Seq)):
            return "" if key in _FORMED else "put it in quotes"
        return f"write {value[0]}" if isinstance(value, Seq) and len(value) == 1 else ""
    if mark.is_block and kind in ("tuple_type", "dict_type"):
        return _NOT_TEXT.format(mark.style)
    if kind in ("int_type", "float_type"):
        return _advise_number(value, mark, key)
    if kind == "tuple_type":
        return _advise_list(value, mark.text, key)
    if context.get("pattern") == model.KEBAB:
        name = re.sub(r"[^a-z0-9]+", "-", mark.text.lower()).strip("-") or "own-layer"
        form = "a name is kebab-case: small letters and digits, joined by single hyphens"
        return f"{form}, such as '{name[:60]}'"
    if context.get("pattern") == model.REFERENCE:
        return _advise_reference(mark.text)
    return ""


def _advise_number(value: object, mark: Span, key: str) -> str:
    """Return advice on a value that has to be a number."""
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if re.fullmatch(r"-?\d+,\d+", mark.text):
        return f"write {mark.text.replace(',', '.')}"
    if _SEVERAL.fullmatch(mark.text):
        return f"write {as_list(mark.text)[1:-1]}"
    if mark.text.lower() in ("nan", "inf", "-inf") and key in _MAY_BE_INFINITE:
        return f"write {mark.text.lower().replace('nan', '.nan').replace('inf', '.inf')}"
    if mark.text.startswith("[") and mark.text.endswith("]"):
        return "remove the quotes"
    if number := re.match(rf"({_NUMBERS.pattern})\s*(?:#|//)", mark.text):
        return f"write {number[1]}; a comment begins with a space and a '#'"
    return "remove the quotes" if mark.style and _NUMBERS.fullmatch(mark.text) else ""


def _advise_list(value: object, text: str, key: str) -> str:
    """Return advice on the value of a key that must be a list; `text` is the scalar, if any."""
    if isinstance(value, Map) and key in ("scenarios", "cases"):
        return "begin each entry with '- id: …'"
    if key in ("tags", "rules") and text:
        names = re.findall("[a-z0-9]+(?:-[a-z0-9]+)*", text.lower())
        return f"write {yaml.safe_dump(names, default_flow_style=True).strip()}"
    form = _LISTS_OF_NUMBERS.get(key)
    if text and (form is None or form.fullmatch(text)):
        return f"write {as_list(text)}"
    return ""


def _advise_reference(text: str) -> str:
    """Return advice on text that has to be a reference to a layer."""
    form = "the module and the class, as pkg.mod:Class"
    if re.fullmatch(model.NAME, text):
        return f"write {form}; for one of the file's 'layers' write 'layer: {text}'"
    meant = as_reference(text)
    is_certain = ":" in text or meant.rpartition(":")[2][:1].isupper()
    return f"write {meant}: {form}" if meant and is_certain else f"write {form}"


def as_reference(text: str) -> str:
    """Rewrite a path, or the dotted name of a layer or method, as a reference to the layer; empty
    if it contains no module.
    """
    text = text.removeprefix("./").removesuffix(".py")
    text = re.sub(r"(\.[A-Z]\w*)\.(apply|forward|backward)$", r"\1", text)  # a layer's method
    place, _, name = text.rpartition(":" if ":" in text else ".")
    meant = f"{place.removesuffix('.py').replace('/', '.')}:{name}"
    return meant if re.fullmatch(model.REFERENCE, meant) else ""


def as_list(text: str) -> str:
    """Rewrite text with several numbers, such as a shape 3x4 or a range 0..1, as a list; put other
    text in a list.
    """
    sizes = re.split(r"[\s,*×]+(?:x\s+)?", text.strip("()[]"))
    entries = [text]
    if text in ("()", "[]", "scalar", "None") or _SEVERAL.fullmatch(text):
        entries = _NUMBERS.findall(text)
    elif all(re.fullmatch(r"\w+", size) for size in sizes):
        entries = sizes
    return quote(f"[{', '.join(entries)}]")[1:-1]


def _label(steps: DataPath) -> str:
    """Return the name of a value in messages: its key, with the index of a list's entry
    (``shape[1]``).
    """
    *above, last = steps or ("the file",)
    return f"{_label(tuple(above))}[{last}]" if isinstance(last, int) else last
