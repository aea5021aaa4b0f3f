"""Rules of single values: numbers, expected values, values of the matrix, names."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, get_args

from gradcheck.spec.data import DataPath, Plain
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.literals import ELEMENT_TYPES, INTEGER_RANGE, MAX_DIMENSIONS, MOST_RANKS, Layout
from gradcheck.spec.violation import Violation
from gradcheck.support.suggest import nearest

# What is rounded to 0, and from where on to infinity: half the smallest number, and the largest
# with half a digit more (IEEE 754; bfloat16 has float32's exponents and 7 bits). The document
# reader has seen to float64 itself.
_FLOATING_RANGE = {
    "float16": (2.0**-25, (2 - 2.0**-11) * 2.0**15),
    "bfloat16": (2.0**-134, (2 - 2.0**-8) * 2.0**127),
    "float32": (2.0**-150, (2 - 2.0**-24) * 2.0**127),
    "complex64": (2.0**-150, (2 - 2.0**-24) * 2.0**127),
}
# Names that layers and calls rely on.
_TAKEN = ("np", "numpy", "paddle", "PyLayer", "PyLayerContext")
# Plain text that looks like a number or boolean of another notation (YAML 1.1, Python).
_DOUBTFUL = re.compile(
    r"yes|no|on|off|[-+]?(0[0-9_]+|0o[0-7_]+|0x[0-9a-f_]+|0b[01_]+|[0-9][0-9_]*_[0-9_.]*|[0-9]+(:[0-9]{2})+)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|[-+]?(inf|infinity|nan)|none",
    re.IGNORECASE,
)
_CASE_NAME_PART = re.compile(r"[A-Za-z0-9._+-]+")
# Parameters of a matrix that hold for every input -> their values.
_OF_ALL_INPUTS: dict[str, tuple[str, ...]] = {"dtype": ELEMENT_TYPES, "layout": get_args(Layout)}


# --------------------------------------------------------------------------- nested lists
def flatten(value: Any, path: DataPath = ()) -> Iterator[tuple[DataPath, Any]]:
    """Yield what is in nested lists and is not a list, with its path."""
    if not isinstance(value, (list, tuple)):
        yield path, value
        return
    for index, item in enumerate(value):
        yield from flatten(item, (*path, index))


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of nested lists, by the first entry of each."""
    if not isinstance(value, (list, tuple)):
        return ()
    return (len(value), *(shape_of(value[0]) if value else ()))


def number_mistakes(value: Any) -> Iterator[Violation]:
    """Yield what is wrong with a number or nested lists of numbers."""
    wrong = [path for path, item in flatten(value) if not isinstance(item, (int, float))]
    for path in wrong:
        yield Violation(path, "{label} must be a number, not {here}", "{number}")
    if wrong:
        return
    shape = shape_of(value)
    uneven = next(_uneven_rows(value, shape, ()), None)
    if uneven is not None:
        yield uneven
    elif len(shape) > MAX_DIMENSIONS:
        message = f"nested {len(shape)} lists deep, at most {MAX_DIMENSIONS} dimensions are allowed"
        yield Violation((), message, "remove brackets", "start")


def _uneven_rows(value: Any, shape: tuple[int, ...], path: DataPath) -> Iterator[Violation]:
    """Yield the parts of a value that have not the length or depth that a shape asks for."""
    help = "give all rows the same length and depth"
    is_list = isinstance(value, (list, tuple))
    if is_list != bool(shape):
        neighbours = "lists" if shape else "numbers"
        yield Violation(
            path, f"{{here}} where its neighbours are {neighbours}: the rows are uneven", help
        )
    elif is_list and len(value) != shape[0]:
        message = (
            f"a list of {len(value)} where its neighbours have {shape[0]}: the rows are uneven"
        )
        yield Violation(path, message, help)
    elif is_list:
        for index, item in enumerate(value):
            yield from _uneven_rows(item, shape[1:], (*path, index))


def optional_number_mistakes(value: Any) -> Iterator[Violation]:
    """Yield what is wrong with a value that is null, a number, or nested lists of numbers."""
    if value is not None:
        yield from number_mistakes(value)


def unfit_numbers(values: Any, dtypes: Iterable[str]) -> Iterator[Violation]:
    """Yield the first number that one of some dtypes cannot hold."""
    for dtype in dtypes:
        for path, number in flatten(values):
            if help := _why_unfit(number, dtype):
                yield Violation(path, f"{{text}} does not fit into {dtype}", help)
                return


def _why_unfit(number: float, dtype: str) -> str:
    """Return what a dtype holds if it does not hold a number; otherwise ""."""
    if dtype in INTEGER_RANGE:
        least, most = INTEGER_RANGE[dtype]
        fits = isinstance(number, int) and least <= number <= most
        return "" if fits else f"{dtype} holds whole numbers from {least} to {most}"
    low, high = _FLOATING_RANGE.get(dtype, (0, inf))
    size = abs(number)
    if low < size < high or size in (0, inf) or size != size:
        return ""
    result = "infinity" if size >= high else "0"
    return f"{dtype} would make it {result}: it holds sizes of {low:.1g} to {high:.3g}"


# --------------------------------------------------------------------------- expected values
def expected_value_mistakes(value: Any) -> Iterator[Violation]:
    """Yield what is wrong with an expected value: one that is not clear, or a mapping in a list."""
    prefix: DataPath = ()
    if isinstance(value, dict):
        prefix, value = ("value",), value.get("value")
    for path, item in flatten(value, prefix):
        if isinstance(item, dict):
            help = (
                "write null, true, a number, text, or lists of these; or {value: …, rtol: …} "
                "around them all"
            )
            yield Violation(path, "an expected value cannot be a mapping", help)
        elif isinstance(item, Plain) and len(item) <= 40 and _DOUBTFUL.fullmatch(item):
            words = {"none": "null", **dict.fromkeys(("yes", "on", "no", "off"), "true or false")}
            meant = words.get(item.lower())
            write = f"write {meant}" if meant else "{number}"
            yield Violation(
                path,
                f"it is not clear what {item} means here",
                f'{write}, or "{item}" in quotes if text is meant',
            )


# --------------------------------------------------------------------------- the matrix
def matrix_mistakes(matrix: Any) -> Iterator[Violation]:
    """Yield parameters without values, and values that cannot be those of a parameter."""
    if not isinstance(matrix, dict):
        return
    for name, values in matrix.items():
        if not isinstance(values, (list, tuple)):
            continue
        if not values:
            help = "list its values, or remove the parameter"
            yield Violation((name,), f"matrix: {quote(name)} has no values", help)
        names: set[str] = set()
        for index, value in enumerate(values):
            if mistake := _matrix_value_mistake(name, value, names):
                yield Violation((name, index), *mistake)
            names.add(str(value))


def _matrix_value_mistake(name: str, value: Any, names: set[str]) -> tuple[str, str] | None:
    """Return what is wrong with a value of a parameter, after others of these names, and what to
    do.
    """
    if value is None or isinstance(value, (list, tuple, dict)):
        return f"matrix: {quote(name)} takes text, numbers and booleans, not {{here}}", ""
    shown = quote(str(value))
    if name in _OF_ALL_INPUTS and value not in _OF_ALL_INPUTS[name]:
        return f"unknown {name} {shown}", suggest(str(value), _OF_ALL_INPUTS[name])
    if name == "world" and not is_rank_count(value):
        help = (
            f"write whole numbers from 1 to {MOST_RANKS}; axes, as {{mp: 2}}, are for 'world' "
            "itself"
        )
        return f"matrix: {shown} is not a number of ranks", help
    if not _CASE_NAME_PART.fullmatch(str(value)):
        help = "use letters, digits, '.', '_', '+' and '-' only"
        return f"matrix: {shown} cannot be part of a case's name", help
    if str(value) in names:  # 1 and "1" would have the same name
        return f"matrix: {shown} is given twice", "remove one of the two"
    return None


def is_rank_count(value: Any) -> bool:
    """Whether a value is a number of ranks."""
    return isinstance(value, int) and value is not True and 1 <= value <= MOST_RANKS


# --------------------------------------------------------------------------- names
def name_mistakes(name: str, what: str) -> Iterator[Violation]:
    """Yield why a name cannot be a variable of the program."""
    reasons = {
        "is not a Python name": not name.isidentifier(),
        "is another name to Python, which normalizes it": unicodedata.normalize("NFKC", name)
        != name,
        "is a Python keyword": keyword.iskeyword(name),
        "begins with two underscores": name.startswith("__"),
        "stands for something else in the program": name in _TAKEN,
    }
    for reason, holds in reasons.items():
        if holds:
            message = f"{quote(name)} cannot name {what}: it {reason}"
            yield Violation((), message, "choose another name, such as x", "key")
            return


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return which of `known` was likely meant; otherwise another advice, or all of them."""
    names = list(known)
    near = nearest(name, names[:500])
    return f"did you mean '{near}'?" if near else otherwise or f"write {listing(names)}"
