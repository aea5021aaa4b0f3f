"""Rules for inputs and the numbers in a spec: names, sizes (before anything is allocated), ranges, shapes."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator
from math import inf, isfinite, prod

from gradcheck.spec import model
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.literals import MAX_DIMENSIONS
from gradcheck.spec.messages import number_help
from gradcheck.spec.parts import INTEGER_RANGE, input_shape, shape_of, sizes_named, world_key
from gradcheck.spec.resolve import DRAWING
from gradcheck.spec.text import Remark, SpecText
from gradcheck.spec.tree import Node, describe

MAX_ELEMENTS = 2**27
MAX_ITEM_TOTAL = 2**30

# What is rounded to 0, and from where on to infinity: half the smallest number, and the largest with half a digit more
# (IEEE 754; bfloat16 has float32's exponents and 7 bits). The reader has seen to float64 itself.
_FLOATING_RANGE = {
    "float16": (2.0**-25, (2 - 2.0**-11) * 2.0**15), "bfloat16": (2.0**-134, (2 - 2.0**-8) * 2.0**127),
    "float32": (2.0**-150, (2 - 2.0**-24) * 2.0**127), "complex64": (2.0**-150, (2 - 2.0**-24) * 2.0**127),
}  # fmt: skip
# Names that layers and calls rely on.
_TAKEN = ("np", "numpy", "paddle", "PyLayer", "PyLayerContext")
# A key, what it is short for, and the keys that it therefore stands in place of.
_SHORT = (
    ("range", "init: uniform with low and high", ("init", "low", "high", "below")),
    ("below", "init: integers from 0", ("init", "low", "high")),
)
_MATRICES = ("positive-definite", "orthogonal")
_NOT_WHOLE = ("normal", "uniform", "linspace", "sorted", "distinct", "ties", *_MATRICES, "probabilities")
# Plain text that looks like a number or boolean of another notation (YAML 1.1, Python).
_DOUBTFUL = re.compile(
    r"yes|no|on|off|[-+]?(0[0-9_]+|0o[0-7_]+|0x[0-9a-f_]+|0b[01_]+|[0-9][0-9_]*_[0-9_.]*|[0-9]+(:[0-9]{2})+)"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|[-+]?(inf|infinity|nan)|none",
    re.IGNORECASE,
)


def check_name(key: Node, what: str, text: SpecText) -> None:
    """Report the name of an input or parameter that could not be a variable of the program."""
    name, reason = key.text, ""
    if not name.isidentifier():
        reason = "is not a Python name"
    elif unicodedata.normalize("NFKC", name) != name:
        reason = "is another name to Python, which normalizes it"
    elif keyword.iskeyword(name):
        reason = "is a Python keyword"
    elif name.startswith("__"):
        reason = "begins with two underscores"
    elif name in _TAKEN:
        reason = "stands for something else in the program"
    if reason:
        text.report(key, f"{quote(name)} cannot name {what}: it {reason}", "choose another name, such as x")


def check_input(name: str, input: Node, dtypes: list[str], matrix: Node, text: SpecText, ranks: int = 1) -> None:
    """Report what is wrong with one input, whose dtype is one of `dtypes`, and drawn for each of `ranks`."""
    for size in sizes_named(input):
        text.report_all(_parameter(size, matrix, text))
    text.report_all(_source(name, input))
    text.report_all(_short(name, input, dtypes))
    values, shape = input.get("values"), input.get("shape")
    if values:
        if check_numbers(values, "a value", text) is not None:
            text.report_all(_misfits(values, dtypes))
    elif shape:
        text.report_all(_too_large(name, shape, dtypes, matrix, ranks))
        text.report_all(_drawn(name, input, dtypes))


def check_aliases(scenario: Node, text: SpecText) -> None:
    """Report an input that shares the memory of none above it, and one in a world."""
    above: list[str] = []
    for name, (_, input) in scenario.under("inputs").items():
        target = input.mapping("layout").get("aliased")
        if target is None:
            above.append(name)
        elif target.text not in above:
            help = text.suggest(target.text, above) or (f"those above are {listing(above, 'and')}" if above else "")
            message = f"layout: there is no input {quote(target.text)} above, with memory of its own"
            text.report(target, message, help)
        elif world_key(scenario) is not None:
            text.report(input.at("layout"), "'aliased' is not done in a world", "remove it")


# --------------------------------------------------------------------------- where elements are from
def _source(name: str, input: Node) -> Iterator[Remark]:
    """An input with none or several of values, a file and a shape, or with a key that is of no use beside them."""
    given = [key for key in ("values", "from", "shape") if key in input.entries]
    source = given[0] if given else ""
    if len(given) > 1:
        help = f"remove {quote(given[1])}: {'values have one' if source == 'values' else 'the file has its elements'}"
        yield input.at(given[1]), f"input {quote(name)} has both {quote(given[1])} and {quote(source)}", help
    elif input.under("layout"):  # another input's memory
        for key in input.entries.keys() - {"layout", "stop_gradient"}:
            yield input.at(key), f"{quote(key)} is of no use beside 'aliased': the other input has it", "remove it"
    elif not given and not input.incomplete:
        help = "add 'shape: [2, 3]', or 'values' with the numbers"
        yield input.start, f"input {quote(name)} needs 'shape' or 'values'", help
    for key in DRAWING if source in ("values", "from") else ():
        if key in input.entries:
            help = f"remove it, or give a 'shape' in place of {quote(source)}"
            yield input.at(key), f"{quote(key)} is of no use with {quote(source)}", help
    file, has_key = input.get("from"), "key" in input.entries
    has_several = file is not None and file.text.endswith(".npz")
    if has_key and not has_several:
        yield input.at("key"), "'key' names an array in an .npz file: there is none", "remove it"
    if file is not None and has_several and not has_key:
        yield file, f"{file.text} may hold several arrays", "name one: key: x"


def _short(name: str, input: Node, dtypes: list[str]) -> Iterator[Remark]:
    """A range or a limit beside what it is short for, one that is empty, or that the dtype does not have."""
    for key, long, others in _SHORT:
        other = next((one for one in others if one in input.entries), "")
        if key in input.entries and other:
            message = f"{quote(key)} is short for {quote(long)}, and there is {quote(other)} as well"
            yield input.at(key), message, "remove one of the two"
    whole = [dtype for dtype in dtypes if dtype in INTEGER_RANGE]
    floating = [dtype for dtype in dtypes if dtype not in INTEGER_RANGE]
    if whole and "range" in input.entries:
        message = f"input {quote(name)} has dtype {whole[0]}, but a range gives no whole numbers"
        yield input.at("range"), message, "write 'below: 10', or 'init: integers' with low and high"
    if floating and "below" in input.entries:
        message = f"input {quote(name)} has dtype {floating[0]}: 'below' is for whole numbers"
        yield input.at("below"), message, "add 'dtype: int64', or write 'range: [0, 5]'"
    match [item.value for item in input.listed("range")]:
        case [int() | float() as low, int() | float() as high] if not -inf < low < high < inf:
            first, last = (item.text for item in input.listed("range"))
            message = f"range: {first} must be below {last}, and both finite"
            yield input.entries["range"][1], message, "write [low, high], such as [0.1, 3]"
    below = input.get("below")
    for dtype in whole if below else ():
        least, most = INTEGER_RANGE[dtype]
        if below and isinstance(below.value, int) and below.value - 1 > most:
            yield below, f"{dtype} holds {least} to {most}", "write a smaller number"


def _parameter(size: Node, matrix: Node, text: SpecText) -> Iterator[Remark]:
    """A size that is the name of no parameter, or of one that has other values than sizes."""
    if size.text not in matrix.entries:
        help = text.suggest(size.text, list(matrix.entries)) or f"write a number, or add 'sizes: {{{size.text}: 2}}'"
        yield size, f"shape: neither the matrix nor sizes has {quote(size.text)}", help
    for item in matrix.listed(size.text):
        if item.kind == "scalar" and (not isinstance(item.value, int) or item.value is True or item.value < 0):
            message = f"{quote(size.text)} is a size, which must be a whole number, not {describe(item)}"
            yield item, message, "write numbers from 0 on"


def _too_large(name: str, shape: Node, dtypes: list[str], matrix: Node, ranks: int) -> Iterator[Remark]:
    """A shape that would take too much memory at one of the points of the matrix."""
    lengths = []
    for size in shape.items:
        values = matrix.listed(size.text) if isinstance(size.value, str) and size.text in matrix.entries else [size]
        length = max((one.value for one in values if isinstance(one.value, int)), default=-1)
        if length < 0:
            return  # the model reports it
        lengths.append(length)
    count, bytes = ranks * prod(lengths), max(model.ITEM_BYTES.get(dtype, 1) for dtype in dtypes)
    message = ""
    if count > MAX_ELEMENTS:
        message = f"input {quote(name)} has {count:,} elements, at most {MAX_ELEMENTS:,} (2**27) are allowed"
    elif count * bytes > MAX_ITEM_TOTAL:
        message = f"input {quote(name)} takes {count * bytes / 2**30:.2f} GiB, at most 1 GiB is allowed"
    if message:
        yield shape, message, "use a smaller shape: an error in a gradient shows in a few elements"


def _drawn(name: str, input: Node, dtypes: list[str]) -> Iterator[Remark]:
    """A way to draw elements that does not fit the shape, the dtype or its limits."""
    init = input.string("init") or "normal"
    if "init" in input.entries and input.string("init") is None:
        return  # the model reports it
    place = input.get("init") or input
    limits = {key: input.entries[key] for key in ("low", "high") if key in input.entries}
    for key, (at, _) in limits.items() if init not in model.INIT_LIMITS else ():
        help = f"remove it, or write {listing(model.INIT_LIMITS)} as init"
        yield at, f"{quote(key)} is of no use with 'init: {init}'", help
    integers = [dtype for dtype in dtypes if dtype in INTEGER_RANGE]
    shape = input_shape(input)
    if init in (*_MATRICES, "one-hot", "probabilities") and shape is not None:
        if init == "positive-definite" and (len(shape) < 2 or shape[-1] != shape[-2]):
            message = f"'init: {init}' is for square matrices along the last two axes, not for shape {list(shape)}"
            yield place, message, "write a shape such as [3, 3]"
        elif len(shape) < (2 if init in _MATRICES else 1) or not shape[-1]:
            message = f"'init: {init}' needs {'two axes' if init in _MATRICES else 'rows'}, not shape {list(shape)}"
            yield place, message, "write a shape such as [3, 4]"
    if "below" in input.entries or "range" in input.entries:
        return
    if integers and init in _NOT_WHOLE:
        message = f"input {quote(name)} has dtype {integers[0]}, but 'init: {init}' gives no whole numbers"
        yield place, message, "write 'init: integers' with low and high"
    if init not in model.INIT_LIMITS:
        return
    low, high = model.INIT_LIMITS[init]
    for key, (_, value) in limits.items():
        number = value.value
        if isinstance(number, bool) or not isinstance(number, int | float):
            return  # the model reports it
        low, high = (number, high) if key == "low" else (low, number)
        if not isfinite(number) or (init == "integers" and number != int(number)):
            kind = "whole" if init == "integers" else "finite"
            yield value, f"{quote(key)} must be a {kind} number, not {value.text}", ""
            return
    at = next((key for key, _ in limits.values()), place)
    if not low < high:
        yield at, f"low ({low:g}) must be below high ({high:g})", f"'init: {init}' draws between the two"
    for dtype in integers if init == "integers" else ():
        least, most = INTEGER_RANGE[dtype]
        if low < least or high - 1 > most:
            message = f"{dtype} holds {least} to {most}, not all of {low:g} to {high - 1:g}"
            yield at, message, "change low and high: high itself is not drawn"


# --------------------------------------------------------------------------- numbers and values
def _misfits(values: Node, dtypes: list[str]) -> Iterator[Remark]:
    """The first number that one of `dtypes` cannot hold: for a floating one, that becomes 0 or infinity."""
    for dtype in dtypes:
        for item in values.scalars():
            if isinstance(item.value, int | float) and (help := _misfit(item.value, dtype)):
                yield item, f"{item.text} does not fit into {dtype}", help
                return


def _misfit(number: float, dtype: str) -> str:
    """What `dtype` holds, if `number` is not of that; else empty."""
    if dtype in INTEGER_RANGE:
        least, most = INTEGER_RANGE[dtype]
        fits = isinstance(number, int) and least <= number <= most
        return "" if fits else f"{dtype} holds whole numbers from {least} to {most}"
    low, high = _FLOATING_RANGE.get(dtype, (0, inf))
    size = abs(number)
    if low < size < high or size in (0, inf) or size != size:
        return ""
    return f"{dtype} would make it {'infinity' if size >= high else '0'}: it holds sizes of {low:.1g} to {high:.3g}"


def check_numbers(node: Node, what: str, text: SpecText) -> tuple[int, ...] | None:
    """The shape of a number or nested lists of numbers; None if it is something else, which is reported."""
    parts, shape = list(node.scalars()), shape_of(node)
    wrong: list[Remark] = [
        (one, f"{what} must be a number, not {describe(one)}", number_help(one))
        for one in parts
        if one.kind != "unreadable" and not isinstance(one.value, int | float)
    ]
    if not wrong and all(one.kind != "unreadable" for one in parts):
        wrong = [*_ragged(node, shape)][:1]
        if not wrong and len(shape) > MAX_DIMENSIONS:
            message = f"nested {len(shape)} lists deep, at most {MAX_DIMENSIONS} dimensions are allowed"
            wrong = [(node.start, message, "remove brackets")]
        if not wrong:
            return shape
    text.report_all(wrong)
    node.kind = "unreadable"
    return None


def _ragged(node: Node, shape: tuple[int, ...]) -> Iterator[Remark]:
    """The parts of `node` that have not the length or depth that `shape` asks for."""
    help = "give all rows the same length and depth"
    if (node.kind == "sequence") != bool(shape):
        neighbours = "lists" if shape else "numbers"
        yield node, f"{describe(node)} where its neighbours are {neighbours}: the rows are uneven", help
    elif shape and len(node.items) != shape[0]:
        yield node, f"a list of {len(node.items)} where its neighbours have {shape[0]}: the rows are uneven", help
    else:
        for item in node.items:
            yield from _ragged(item, shape[1:])


def check_value(node: Node, text: SpecText) -> None:
    """Report what is wrong with an expected value: ``{value: …, rtol: …}``, or null, text, numbers, nested lists."""
    if node.kind == "mapping":
        node = node.get("value") or node
        if node.kind == "mapping" and "value" not in node.entries:
            return  # the model reports it
    for item in list(node.scalars()):
        if item.kind == "mapping":
            help = "write null, true, a number, text, or lists of these; or {value: …, rtol: …} around them all"
            text.report(item, "an expected value cannot be a mapping", help)
        elif isinstance(item.value, str) and not item.style and len(item.text) <= 40 and _DOUBTFUL.fullmatch(item.text):
            words = {"none": "null", **dict.fromkeys(("yes", "on", "no", "off"), "true or false")}
            meant = words.get(item.text.lower())
            write = f"write {meant}" if meant else number_help(item) or "write a plain number"
            help = f'{write}, or "{item.text}" in quotes if text is meant'
            text.report(item, f"it is not clear what {item.text} means here", help)
        elif item.kind != "unreadable":
            continue
        node.kind = "unreadable"
