"""Rules for inputs and the numbers in a spec: names, sizes (before anything is allocated), ranges, shapes."""

from __future__ import annotations

import keyword
import re
import unicodedata
from math import inf, prod

from gradcheck.spec import inputs
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.literals import MAX_DIMENSIONS
from gradcheck.spec.messages import misspelt, number_help
from gradcheck.spec.resolve import DRAWING
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node, describe

MAX_ELEMENTS = 2**27
MAX_ITEM_TOTAL = 2**30


_INTEGER_RANGE = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint8": (0, 2**8 - 1), "bool": (0, 1),
}  # fmt: skip
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
        text.report(*key.place, f"{quote(name)} cannot name {what}: it {reason}", "choose another name, such as x")


def has_gradient(input: Node, dtypes: list[str]) -> bool:
    """Whether the input has a gradient for one of `dtypes`."""
    stopped = input.get("stop_gradient")
    return not (stopped and stopped.value is True) and any(dtype not in _INTEGER_RANGE for dtype in dtypes)


def input_shape(input: Node) -> tuple[int, ...] | None:
    """The shape an input will have; None where it has none that could be read."""
    if "values" in input.entries:
        return shape_of(input.entries["values"][1])
    if "from" in input.entries:
        return None
    shape = input.get("shape")
    lengths = tuple(item.value for item in shape.items if isinstance(item.value, int)) if shape else ()
    return lengths if shape and shape.kind == "sequence" and len(lengths) == len(shape.items) else None


def sizes_named(input: Node) -> list[Node]:
    """The sizes in an input's shape that are names of parameters."""
    shape = input.get("shape")
    return [one for one in shape.items if isinstance(one.value, str) and one.value.isidentifier()] if shape else []


def check_input(name: str, input: Node, dtypes: list[str], matrix: Node, text: SpecText, ranks: int = 1) -> None:
    """Report what is wrong with one input, whose dtype is one of `dtypes`, and drawn for each of `ranks`."""
    for size in sizes_named(input):
        _check_parameter(size, matrix, text)
    given = [key for key in ("values", "from", "shape") if key in input.entries]
    values, shape = input.get("values"), input.get("shape")
    source = given[0] if given else ""
    if len(given) > 1:
        help = f"remove {quote(given[1])}: {'values have one' if source == 'values' else 'the file has its elements'}"
        text.report(*input.at(given[1]), f"input {quote(name)} has both {quote(given[1])} and {quote(source)}", help)
    elif is_alias(input):
        for key in input.entries.keys() - {"layout", "stop_gradient"}:
            message = f"{quote(key)} is of no use beside 'aliased': the other input has it"
            text.report(*input.at(key), message, "remove it")
    elif not given and not input.incomplete and not misspelt(input, inputs.Input, ["shape", "values"]):
        help = "add 'shape: [2, 3]', or 'values' with the numbers"
        text.report(input.line, input.column, 1, f"input {quote(name)} needs 'shape' or 'values'", help)
    for key in DRAWING if source in ("values", "from") else ():
        if key in input.entries:
            help = f"remove it, or give a 'shape' in place of {quote(source)}"
            text.report(*input.at(key), f"{quote(key)} is of no use with {quote(source)}", help)
    _check_file(input, text)
    _check_short(name, input, dtypes, text)
    if values:
        if check_numbers(values, "a value", text) is not None:
            _check_fit(values, dtypes, text)
    elif shape:
        _check_size(name, shape, dtypes, matrix, text, ranks)
        _check_init(name, input, dtypes, text)


def is_alias(input: Node) -> bool:
    """Whether an input is another's memory."""
    return bool(input.mapping("layout").entries)


def check_aliases(scenario: Node, text: SpecText) -> None:
    """Report an input that shares the memory of none above it, and one in a world."""
    above: list[str] = []
    for name, (_, input) in scenario.mapping("inputs").entries.items():
        target = input.mapping("layout").get("aliased")
        if target is None:
            above.append(name)
        elif target.text not in above:
            help = text.suggest(target.text, above) or (f"those above are {listing(above, 'and')}" if above else "")
            message = f"layout: there is no input {quote(target.text)} above, with memory of its own"
            text.report(*target.place, message, help)
        elif "world" in scenario.entries or "world" in scenario.mapping("matrix").entries:
            text.report(*input.at("layout"), "'aliased' is not done in a world", "remove it")


def _check_file(input: Node, text: SpecText) -> None:
    """Report a key without an .npz file, or such a file without one."""
    file, has_key = input.get("from"), "key" in input.entries
    has_several = file is not None and file.text.endswith(".npz")
    if has_key and not has_several:
        text.report(*input.at("key"), "'key' names an array in an .npz file: there is none", "remove it")
    if file is not None and has_several and not has_key:
        text.report(*file.place, f"{file.text} may hold several arrays", "name one: key: x")


def _check_short(name: str, input: Node, dtypes: list[str], text: SpecText) -> None:
    """Report a range or a limit beside what it is short for, one that is empty, or that the dtype does not have."""
    for key, long, others in _SHORT:
        other = next((one for one in others if one in input.entries), "")
        if key in input.entries and other:
            message = f"{quote(key)} is short for {quote(long)}, and there is {quote(other)} as well"
            text.report(*input.at(key), message, "remove one of the two")
    whole = [dtype for dtype in dtypes if dtype in _INTEGER_RANGE]
    floating = [dtype for dtype in dtypes if dtype not in _INTEGER_RANGE]
    if whole and "range" in input.entries:
        message = f"input {quote(name)} has dtype {whole[0]}, but a range gives no whole numbers"
        text.report(*input.at("range"), message, "write 'below: 10', or 'init: integers' with low and high")
    if floating and "below" in input.entries:
        message = f"input {quote(name)} has dtype {floating[0]}: 'below' is for whole numbers"
        text.report(*input.at("below"), message, "add 'dtype: int64', or write 'range: [0, 5]'")
    if limits := input.get("range"):
        match [item.value for item in limits.items]:
            case [int() | float() as low, int() | float() as high] if not -inf < low < high < inf:
                message = f"range: {limits.items[0].text} must be below {limits.items[1].text}, and both finite"
                text.report(*limits.place, message, "write [low, high], such as [0.1, 3]")
    below = input.get("below")
    for dtype in whole if below else ():
        least, most = _INTEGER_RANGE[dtype]
        if below and isinstance(below.value, int) and below.value - 1 > most:
            text.report(*below.place, f"{dtype} holds {least} to {most}", "write a smaller number")


def _check_parameter(size: Node, matrix: Node, text: SpecText) -> None:
    """Report a size that is the name of no parameter, or of one that has other values than sizes."""
    values = matrix.get(size.text)
    if values is None:
        help = text.suggest(size.text, list(matrix.entries)) or f"write a number, or add 'sizes: {{{size.text}: 2}}'"
        text.report(*size.place, f"shape: neither the matrix nor sizes has {quote(size.text)}", help)
    for item in values.items if values else ():
        if item.kind == "scalar" and (not isinstance(item.value, int) or item.value is True or item.value < 0):
            message = f"{quote(size.text)} is a size, which must be a whole number, not {describe(item)}"
            text.report(*item.place, message, "write numbers from 0 on")


def _largest(size: Node, matrix: Node) -> object:
    values = matrix.get(size.text) if isinstance(size.value, str) else None
    sizes = [item.value for item in values.items if isinstance(item.value, int)] if values else []
    return max(sizes, default=None) if values else size.value


def _check_size(name: str, shape: Node, dtypes: list[str], matrix: Node, text: SpecText, ranks: int) -> None:
    lengths = [value for item in shape.items if isinstance(value := _largest(item, matrix), int)]
    if len(lengths) != len(shape.items) or any(length < 0 for length in lengths):
        return  # the model reports it
    count, size = ranks * prod(lengths), max(inputs.ITEM_BYTES.get(dtype, 1) for dtype in dtypes)
    message = ""
    if count > MAX_ELEMENTS:
        message = f"input {quote(name)} has {count:,} elements, at most {MAX_ELEMENTS:,} (2**27) are allowed"
    elif count * size > MAX_ITEM_TOTAL:
        message = f"input {quote(name)} takes {count * size / 2**30:.2f} GiB, at most 1 GiB is allowed"
    if message:
        text.report(*shape.place, message, "use a smaller shape: an error in a gradient shows in a few elements")


def _check_init(name: str, input: Node, dtypes: list[str], text: SpecText) -> None:
    init = input.string("init") or "normal"
    if "init" in input.entries and input.string("init") is None:
        return  # the model reports it
    place = input.entries["init"][1] if "init" in input.entries else input
    limits = {key: input.entries[key] for key in ("low", "high") if key in input.entries}
    for key, (at, _) in limits.items() if init not in inputs.INIT_LIMITS else ():
        with_limits = listing(inputs.INIT_LIMITS)
        message = f"{quote(key)} is of no use with 'init: {init}'"
        text.report(*at.place, message, f"remove it, or write {with_limits} as init")
    integers = [dtype for dtype in dtypes if dtype in _INTEGER_RANGE]
    lengths = input_shape(input)
    if init in (*_MATRICES, "one-hot", "probabilities") and lengths is not None:
        square = len(lengths) >= 2 and lengths[-1] == lengths[-2]
        if init == "positive-definite" and not square:
            message = f"'init: {init}' is for square matrices along the last two axes, not for shape {list(lengths)}"
            text.report(*place.place, message, "write a shape such as [3, 3]")
        elif len(lengths) < (2 if init in _MATRICES else 1) or not lengths[-1]:
            message = f"'init: {init}' needs {'two axes' if init in _MATRICES else 'rows'}, not shape {list(lengths)}"
            text.report(*place.place, message, "write a shape such as [3, 4]")
    if "below" in input.entries or "range" in input.entries:
        return
    if integers and init in _NOT_WHOLE:
        message = f"input {quote(name)} has dtype {integers[0]}, but 'init: {init}' gives no whole numbers"
        text.report(*place.place, message, "write 'init: integers' with low and high")
    if init not in inputs.INIT_LIMITS:
        return
    low, high = inputs.INIT_LIMITS[init]
    for key, (_, value) in limits.items():
        number = value.value
        if isinstance(number, bool) or not isinstance(number, int | float):
            return  # the model reports it
        low, high = (number, high) if key == "low" else (low, number)
        if number - number != 0 or (init == "integers" and number != int(number)):
            message = f"{quote(key)} must be a {'whole' if init == 'integers' else 'finite'} number, not {value.text}"
            text.report(*value.place, message, "")
            return
    at = next((key for key, _ in limits.values()), place)
    if not low < high:
        text.report(*at.place, f"low ({low:g}) must be below high ({high:g})", f"'init: {init}' draws between the two")
    for dtype in integers if init == "integers" else ():
        least, most = _INTEGER_RANGE[dtype]
        if low < least or high - 1 > most:
            message = f"{dtype} holds {least} to {most}, not all of {low:g} to {high - 1:g}"
            text.report(*at.place, message, "change low and high: high itself is not drawn")


def _check_fit(values: Node, dtypes: list[str], text: SpecText) -> None:
    """Report the first number that one of `dtypes` cannot hold: for a floating one, that becomes 0 or infinity."""
    for dtype in dtypes:
        for item in values.scalars():
            if not isinstance(item.value, int | float):
                continue
            if help := _misfit(item.value, dtype):
                text.report(*item.place, f"{item.text} does not fit into {dtype}", help)
                return


def _misfit(number: float, dtype: str) -> str:
    """What `dtype` holds, if `number` is not of that; else empty."""
    if dtype in _INTEGER_RANGE:
        least, most = _INTEGER_RANGE[dtype]
        fits = isinstance(number, int) and least <= number <= most
        return "" if fits else f"{dtype} holds whole numbers from {least} to {most}"
    low, high = _FLOATING_RANGE.get(dtype, (0, inf))
    size = abs(number)
    if low < size < high or size in (0, inf) or size != size:
        return ""
    return f"{dtype} would make it {'infinity' if size >= high else '0'}: it holds sizes of {low:.1g} to {high:.3g}"


def shape_of(node: Node) -> tuple[int, ...]:
    """The shape of nested lists, by the first entry of each."""
    return (len(node.items), *(shape_of(node.items[0]) if node.items else ())) if node.kind == "sequence" else ()


def check_numbers(node: Node, what: str, text: SpecText) -> tuple[int, ...] | None:
    """The shape of a number or nested lists of numbers; None if it is something else, which is reported."""
    wrong = None
    for item in node.scalars():
        if item.kind == "unreadable":
            wrong = item
        elif item.kind != "scalar" or not isinstance(item.value, int | float):
            wrong = item
            text.report(*item.place, f"{what} must be a number, not {describe(item)}", number_help(item))
    if wrong is None:
        wrong = _ragged(node, shape_of(node), text)
    if wrong is None and len(shape_of(node)) > MAX_DIMENSIONS:
        message = f"nested {len(shape_of(node))} lists deep, at most {MAX_DIMENSIONS} dimensions are allowed"
        text.report(node.line, node.column, 1, message, "remove brackets")
        wrong = node
    if wrong is None:
        return shape_of(node)
    node.kind = "unreadable"
    return None


def _ragged(node: Node, shape: tuple[int, ...], text: SpecText) -> Node | None:
    """The first part of `node` that has not the length or depth that `shape` asks for; it is reported."""
    if (node.kind == "sequence") != bool(shape):
        here = describe(node)
        message = f"{here} where its neighbours are {'lists' if shape else 'numbers'}: the rows are uneven"
    elif shape and len(node.items) != shape[0]:
        message = f"a list of {len(node.items)} where its neighbours have {shape[0]}: the rows are uneven"
    else:
        return next((bad for item in node.items if (bad := _ragged(item, shape[1:], text))), None)
    text.report(*node.place, message, "give all rows the same length and depth")
    return node


def _is_doubtful(item: Node) -> bool:
    plain = isinstance(item.value, str) and not item.style and len(item.text) <= 40
    return plain and _DOUBTFUL.fullmatch(item.text) is not None


def check_value(node: Node, text: SpecText) -> None:
    """Report what is wrong with an expected value: ``{value: …, rtol: …}``, or null, text, numbers, nested lists."""
    if node.kind == "mapping":
        node = node.get("value") or node
        if node.kind == "mapping" and "value" not in node.entries:
            return  # the model reports it
    for item in list(node.scalars()):
        if item.kind == "mapping":
            help = "write null, true, a number, text, or lists of these; or {value: …, rtol: …} around them all"
            text.report(*item.place, "an expected value cannot be a mapping", help)
        elif _is_doubtful(item):
            word = item.text.lower()
            if word == "none":
                help = f'write null, or "{item.text}" in quotes if text is meant'
            elif word in ("yes", "on", "no", "off"):
                help = f'write true or false, or "{item.text}" in quotes if text is meant'
            else:
                help = f'{number_help(item) or "write a plain number"}, or "{item.text}" in quotes if text is meant'
            text.report(*item.place, f"it is not clear what {item.text} means here", help)
        elif item.kind != "unreadable":
            continue
        node.kind = "unreadable"
