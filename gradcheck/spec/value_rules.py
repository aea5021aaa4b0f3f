"""Rules for single values: numbers, expected values, values of the matrix, names."""

from __future__ import annotations

import functools
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Sized
from math import inf, isfinite
from typing import Any, get_args

from pydantic_core import PydanticKnownError

from gradcheck.spec.containers import variable
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import describe, quote, suggest
from gradcheck.spec.literals import ELEMENT_TYPES, INTEGER_RANGE, MAX_DIMENSIONS, MOST_RANKS, Layout
from gradcheck.spec.violation import Violation, raise_mistakes
from gradcheck.support.resources import bundled_specs

# Bounds below which a number rounds to 0, and from which on it rounds to infinity: half the
# smallest number, and the largest with half a digit more (IEEE 754; bfloat16 has float32's
# exponents and 7 bits). The document reader checks float64 itself.
_FLOATING_RANGE = {
    "float16": (2.0**-25, (2 - 2.0**-11) * 2.0**15),
    "bfloat16": (2.0**-134, (2 - 2.0**-8) * 2.0**127),
    "float32": (2.0**-150, (2 - 2.0**-24) * 2.0**127),
    "complex64": (2.0**-150, (2 - 2.0**-24) * 2.0**127),
}
# Names that layers and calls rely on.
_TAKEN = ("np", "numpy", "paddle", "PyLayer", "PyLayerContext")
_CASE_NAME_PART = re.compile(r"[A-Za-z0-9._+-]+")
_RULE_ID = re.compile(r"^ +- id: ([a-z0-9-]+)$", re.MULTILINE)  # an id in the catalogue
# Parameters of a matrix that hold for every input -> their values.
_PARAMETERS: dict[str, Sequence[str]] = {"dtype": ELEMENT_TYPES, "layout": get_args(Layout)}


# --------------------------------------------------------------------------- numbers
def require_number(value: Any) -> Any:
    """Raise pydantic's error unless a value is a number or a boolean."""
    if not isinstance(value, (int, float)):
        raise PydanticKnownError("float_type")
    return value


def require_finite(value: Any) -> Any:
    """Raise pydantic's error unless a value is a finite number."""
    if not isfinite(require_number(value)):
        raise PydanticKnownError("finite_number")
    return value


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of nested lists, judged by the first entry of each list."""
    if not isinstance(value, tuple):
        return ()
    return (len(value), *shape_of(value[0])) if value else (0,)


def find_uneven_rows(value: Any) -> Iterator[Violation]:
    """Yield a violation for the first part of nested lists whose shape differs from its
    neighbours'.
    """
    shape = shape_of(value)
    for path, row in _parts(value):
        if shape_of(row) != shape[len(path) :]:
            message = f"the rows are uneven: {describe(row)} of shape {[*shape_of(row)]}, where "
            message += f"its neighbours have shape {[*shape[len(path) :]]}"
            yield Violation(path, message, "give all rows the same length and depth")
            return
    if len(shape) > MAX_DIMENSIONS:
        message = f"nested {len(shape)} lists deep, at most {MAX_DIMENSIONS} dimensions are allowed"
        yield Violation((), message, "remove brackets")


def _parts(value: Any, path: DataPath = ()) -> Iterator[tuple[DataPath, Any]]:
    """Yield the parts of nested lists, inner ones first, and the whole; each with its path."""
    for index, item in enumerate(value if isinstance(value, tuple) else ()):
        yield from _parts(item, (*path, index))
    yield path, value


def find_unfit_numbers(values: Any, dtypes: Iterable[str]) -> Iterator[Violation]:
    """Yield a violation for the first number that one of the dtypes cannot represent."""
    for dtype in dtypes:
        for path, number in _parts(values):
            if not isinstance(number, tuple) and (help := _why_unfit(number, dtype)):
                yield Violation(path, f"{number} does not fit into {dtype}", help)
                return


def _why_unfit(number: float, dtype: str) -> str:
    """Return the range of a dtype, as text, if a number is outside of it; otherwise ""."""
    if dtype in INTEGER_RANGE:
        least, most = INTEGER_RANGE[dtype]
        fits = isinstance(number, int) and least <= number <= most
        return "" if fits else f"{dtype} holds whole numbers from {least} to {most}"
    low, high = _FLOATING_RANGE.get(dtype, (0, inf))
    size = abs(number)
    if low < size < high or size in (0, inf) or size != size:
        return ""
    return f"as {dtype} it would be 0 or infinite: its range is {low:.1g} to {high:.3g}"


# --------------------------------------------------------------------------- other values
def refuse_mapping(value: Any) -> Any:
    """Raise an error if an expected value, or the value of a keyword argument, is a mapping."""
    if isinstance(value, dict):
        help = "write null, true, a number, text or lists of these; a Tensor is one of the "
        help += "'inputs', and a tolerance is {value: …, rtol: …} around a whole expected value"
        raise_mistakes([Violation((), "{label} cannot be a mapping", help)])
    return value


def require_scalar(value: Any) -> Any:
    """Raise a mistake unless a value is text, a number or a boolean."""
    if not isinstance(value, (str, int, float)):
        message = f"a matrix takes text, numbers and booleans, not {describe(value)}"
        help = "name each entry of a list: [N, 4] under inputs, and 'matrix: {N: [2, 3]}'"
        if isinstance(value, dict):
            help = "list the values of each parameter, such as 'matrix: {dtype: [float32]}'; for "
            help += "chosen combinations write a scenario, or one of 'cases', for each"
        raise_mistakes([Violation((), message, help)])
    return value


def find_empty(value: Sized) -> Iterator[Violation]:
    """Yield a violation if a list has no entries."""
    if not value:
        yield Violation((), "{label} must not be empty", "add an entry, or remove the key")


def find_matrix_mistakes(matrix: dict[str, tuple[Any, ...]]) -> Iterator[Violation]:
    """Yield violations for values that a parameter cannot have."""
    for name, values in matrix.items():
        for index, value in enumerate(values):
            shown, path = quote(str(value)), (name, index)
            if value not in _PARAMETERS.get(name, values):
                help = suggest(str(value), _PARAMETERS[name])
                yield Violation(path, f"unknown {name} {shown}", help)
            elif name == "world" and not (is_whole(value, 1) and value <= MOST_RANKS):
                help = f"write whole numbers from 1 to {MOST_RANKS}; axes are for 'world' itself"
                yield Violation(path, f"matrix: {shown} is not a number of ranks", help)
            elif not _CASE_NAME_PART.fullmatch(str(value)):
                help = "use letters, digits, '.', '_', '+' and '-' only; put a ',' between values"
                yield Violation(path, f"matrix: {shown} cannot be part of a case's name", help)
            elif str(value) in map(str, values[:index]):  # 1 and "1" would have the same name
                yield Violation(path, f"matrix: {shown} is given twice", "remove one of the two")


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least another."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


# --------------------------------------------------------------------------- names
def find_unusable_name(name: str) -> Iterator[Violation]:
    """Yield a violation if a name cannot be a variable of the program."""
    name = variable(name)
    is_usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
    if not is_usable or name in _TAKEN or unicodedata.normalize("NFKC", name) != name:
        meant = re.sub(r"\W", "_", name)
        shown = meant if meant != name and meant.isidentifier() else "x"
        help = f"choose a Python name, such as {shown}, not beginning with __; {', '.join(_TAKEN)} "
        yield Violation(
            (), f"{quote(name)} cannot name a variable", help + "are taken", at_key=True
        )


def find_selection_word(tag: str) -> Iterator[Violation]:
    """Yield a violation if a tag is a keyword of selections."""
    if tag in ("and", "or", "not"):
        help = "choose another word: 'and', 'or' and 'not' join tags in a selection"
        yield Violation((), f"{quote(tag)} cannot be a tag", help)


def find_unknown_rule(name: str) -> Iterator[Violation]:
    """Yield a violation if the catalogue does not have a rule."""
    if name not in rule_ids():
        otherwise = "`gradcheck list rules` lists them; your own words are 'tags'"
        help = suggest(name, rule_ids(), otherwise)
        yield Violation((), f"there is no rule {quote(name)}", help)


@functools.cache
def rule_ids() -> list[str]:
    """Return the ids of the rule catalogue, which `gradcheck.conformance.catalogue` reads.

    Only the ids are parsed: reading the catalogue as YAML would take as long as the rest of
    `validate`.
    """
    files = sorted((bundled_specs() / "rules").glob("*.yaml"))
    return [id for file in files for id in _RULE_ID.findall(file.read_text(encoding="utf-8"))]
