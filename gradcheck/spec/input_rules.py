"""Rules of inputs: where elements are from, how they are drawn, and sizes, before anything is
allocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite, prod
from typing import Any

from gradcheck.spec import model
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.literals import INTEGER_RANGE
from gradcheck.spec.model import Input, Scenario
from gradcheck.spec.resolve import DRAWING, OF_INPUT
from gradcheck.spec.value_rules import shape_of, suggest, unfit_numbers
from gradcheck.spec.violation import Exclusion, Underlined, Violation, below, find_excluded

MAX_ELEMENTS = 2**27
MAX_INPUT_BYTES = 2**30

_MATRICES = ("positive-definite", "orthogonal")
_STRUCTURED = (*_MATRICES, "one-hot", "probabilities")
_NOT_WHOLE = (
    "normal",
    "uniform",
    "linspace",
    "sorted",
    "distinct",
    "ties",
    *_MATRICES,
    "probabilities",
)
_BOTH = "input {name} has both {key!r} and {other!r}"
_SHORT = "{key!r} is short for 'init: %s', and there is {other!r} as well"
_UNUSED = "{key!r} is of no use with {other!r}"
_EXCLUSIONS = (
    Exclusion("shape", ("values",), _BOTH, "remove 'shape': values have one"),
    Exclusion("shape", ("from",), _BOTH, "remove 'shape': the file has its elements"),
    Exclusion("from", ("values",), _BOTH, "remove 'from': the values are the elements"),
    Exclusion(
        "range", ("init", "low", "high", "below"), _SHORT % "uniform with low and high",
        "remove one of the two",
    ),
    Exclusion(
        "below", ("init", "low", "high"), _SHORT % "integers from 0", "remove one of the two",
    ),
    *(
        Exclusion(key, ("values", "from"), _UNUSED, "remove it, or give a 'shape' in place of "
                                                    "{other!r}")
        for key in DRAWING
    ),
    *(
        Exclusion(key, ("aliased",), "{key!r} is of no use beside 'aliased': the other input has "
                                     "it", "remove it")
        for key in OF_INPUT - {"layout", "stop_gradient"}
    ),
)  # fmt: skip


def find_input_mistakes(name: str, scenario: Scenario) -> Iterator[Violation]:
    """Yield what is wrong with an input, below it."""
    input = scenario.inputs[name]
    dtypes = scenario.dtypes_of(input)
    written = input.written | ({"aliased"} if input.alias_of else set())
    yield from find_excluded(_EXCLUSIONS, written, name=quote(name))
    yield from _source_mistakes(name, input, written)
    yield from _dtype_mistakes(name, input, dtypes)
    if input.values is not None:
        yield from below(("values",), unfit_numbers(input.values, dtypes))
    elif input.shape is not None:
        yield from _shape_mistakes(name, scenario, input.shape)
        yield from _structure_mistakes(input)
        if "range" not in written and "below" not in written:
            yield from _limit_mistakes(name, input, dtypes)


def length_parameters(scenario: Scenario) -> dict[str, Sequence[Any]]:
    """Return the matrix, with the sizes among its parameters, each of one value."""
    parameters: dict[str, Sequence[Any]] = {name: (size,) for name, size in scenario.sizes.items()}
    return parameters | scenario.matrix


def input_shape(input: Input) -> tuple[int, ...] | None:
    """Return the shape an input has at every point of the matrix; None where it is not known."""
    if input.values is not None:
        return shape_of(input.values)
    lengths = tuple(size for size in input.shape or () if isinstance(size, int))
    return lengths if input.shape is not None and len(lengths) == len(input.shape) else None


def rank_sizes(scenario: Scenario, input: Input) -> list[int]:
    """Return the lengths of the leading axis of ranks that an input has over the matrix; none
    without one.
    """
    return scenario.world_sizes if input.ranks == "split" else []


# --------------------------------------------------------------------------- where elements are
# from
def _source_mistakes(name: str, input: Input, written: set[str]) -> Iterator[Violation]:
    """Yield what is missing or useless where an input says where its elements are from."""
    if written.isdisjoint(("values", "from", "shape", "aliased")):
        help = "add 'shape: [2, 3]', or 'values' with the numbers"
        yield Violation((), f"input {quote(name)} needs 'shape' or 'values'", help, "start")
    is_archive = input.from_ is not None and input.from_.endswith(".npz")
    if input.key is not None and not is_archive:
        yield Violation(
            ("key",), "'key' names an array in an .npz file: there is none", "remove it", "key"
        )
    if input.key is None and is_archive:
        yield Violation(("from",), f"{input.from_} may hold several arrays", "name one: key: x")


def _dtype_mistakes(name: str, input: Input, dtypes: list[str]) -> Iterator[Violation]:
    """Yield limits that one of the dtypes does not have."""
    whole = [dtype for dtype in dtypes if dtype in INTEGER_RANGE]
    floating = [dtype for dtype in dtypes if dtype not in INTEGER_RANGE]
    if input.range is not None:
        low, high = input.range
        if whole:
            message = (
                f"input {quote(name)} has dtype {whole[0]}, but a range gives no whole numbers"
            )
            help = "write 'below: 10', or 'init: integers' with low and high"
            yield Violation(("range",), message, help, "key")
        if not -inf < low < high < inf:
            message = f"range: {low:g} must be below {high:g}, and both finite"
            yield Violation(("range",), message, "write [low, high], such as [0.1, 3]")
    if input.below is not None and floating:
        message = f"input {quote(name)} has dtype {floating[0]}: 'below' is for whole numbers"
        yield Violation(("below",), message, "add 'dtype: int64', or write 'range: [0, 5]'", "key")
    for dtype in whole:
        least, most = INTEGER_RANGE[dtype]
        if input.below is not None and input.below - 1 > most:
            yield Violation(
                ("below",), f"{dtype} holds {least} to {most}", "write a smaller number"
            )


# --------------------------------------------------------------------------- shapes
def _shape_mistakes(
    name: str, scenario: Scenario, shape: Sequence[int | str]
) -> Iterator[Violation]:
    """Yield sizes without a parameter, and a shape that takes too much memory at a point of the
    matrix.
    """
    parameters = length_parameters(scenario)
    input = scenario.inputs[name]
    lengths: list[int] = []
    for index, size in enumerate(shape):
        if isinstance(size, int):
            lengths.append(size)
            continue
        if size not in parameters:
            otherwise = f"write a number, or add 'sizes: {{{size}: 2}}'"
            message = f"shape: neither the matrix nor sizes has {quote(size)}"
            yield Violation(("shape", index), message, suggest(size, parameters, otherwise))
        lengths += [max((one for one in parameters.get(size, ()) if is_length(one)), default=0)]

    count = max(rank_sizes(scenario, input), default=1) * prod(lengths)
    size_in_bytes = count * max(model.ITEM_BYTES[dtype] for dtype in scenario.dtypes_of(input))
    help = "use a smaller shape: an error in a gradient shows in a few elements"
    if count > MAX_ELEMENTS:
        message = (
            f"input {quote(name)} has {count:,} elements, at most {MAX_ELEMENTS:,} (2**27) are "
            "allowed"
        )
        yield Violation(("shape",), message, help)
    elif size_in_bytes > MAX_INPUT_BYTES:
        gigabytes = size_in_bytes / 2**30
        yield Violation(
            ("shape",),
            f"input {quote(name)} takes {gigabytes:.2f} GiB, at most 1 GiB is allowed",
            help,
        )


def is_length(value: Any) -> bool:
    """Whether a value of a parameter can be the length of a dimension."""
    return isinstance(value, int) and value is not True and value >= 0


def find_size_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield values of the matrix that shapes use as sizes and that are no lengths."""
    used = {size for input in scenario.inputs.values() for size in input.shape or ()}
    for name, values in scenario.matrix.items():
        for index, value in enumerate(values):
            if name in used and not is_length(value):
                message = f"{quote(name)} is a size, which must be a whole number, not {{here}}"
                yield Violation(("matrix", name, index), message, "write numbers from 0 on")


# --------------------------------------------------------------------------- how elements are drawn
def _structure_mistakes(input: Input) -> Iterator[Violation]:
    """Yield an init that is for other shapes."""
    shape, init = input_shape(input), input.init
    if shape is None or init not in _STRUCTURED:
        return
    is_square = len(shape) >= 2 and shape[-1] == shape[-2]
    if init == "positive-definite" and not is_square:
        message = (
            f"'init: {init}' is for square matrices along the last two axes, not for shape "
            f"{list(shape)}"
        )
        yield Violation(("init",), message, "write a shape such as [3, 3]")
    elif len(shape) < (2 if init in _MATRICES else 1) or not shape[-1]:
        needed = "two axes" if init in _MATRICES else "rows"
        message = f"'init: {init}' needs {needed}, not shape {list(shape)}"
        yield Violation(("init",), message, "write a shape such as [3, 4]")


def _limit_mistakes(name: str, input: Input, dtypes: list[str]) -> Iterator[Violation]:
    """Yield limits that an init or a dtype does not have."""
    init = input.init
    limits = {
        key: limit for key, limit in (("low", input.low), ("high", input.high)) if limit is not None
    }
    integers = [dtype for dtype in dtypes if dtype in INTEGER_RANGE]
    if integers and init in _NOT_WHOLE:
        message = (
            f"input {quote(name)} has dtype {integers[0]}, but 'init: {init}' gives no whole "
            "numbers"
        )
        yield Violation(("init",), message, "write 'init: integers' with low and high")
    if init not in model.INIT_LIMITS:
        for key in limits:
            message = f"{quote(key)} is of no use with 'init: {init}'"
            help = f"remove it, or write {listing(model.INIT_LIMITS)} as init"
            yield Violation((key,), message, help, "key")
        return

    for key, limit in limits.items():
        if not isfinite(limit) or (init == "integers" and limit != int(limit)):
            kind = "whole" if init == "integers" else "finite"
            yield Violation((key,), f"{quote(key)} must be a {kind} number, not {{text}}")
            return
    low, high = input.limits
    path = next(((key,) for key in limits), ("init",))
    mark: Underlined = "key" if limits else "value"
    if not low < high:
        message = f"low ({low:g}) must be below high ({high:g})"
        yield Violation(path, message, f"'init: {init}' draws between the two", mark)
    for dtype in integers if init == "integers" else ():
        least, most = INTEGER_RANGE[dtype]
        if low < least or high - 1 > most:
            message = f"{dtype} holds {least} to {most}, not all of {low:g} to {high - 1:g}"
            yield Violation(path, message, "change low and high: high itself is not drawn", mark)


# --------------------------------------------------------------------------- shared memory
def find_alias_mistakes(inputs: Mapping[str, Input], in_world: bool) -> Iterator[Violation]:
    """Yield inputs that share the memory of none above, or share memory in a world."""
    above: list[str] = []
    for name, input in inputs.items():
        target = input.alias_of
        if not target:
            above.append(name)
        elif target not in above:
            otherwise = f"those above are {listing(above, 'and')}" if above else "remove it"
            message = f"layout: there is no input {quote(target)} above, with memory of its own"
            help = suggest(target, above, otherwise)
            yield Violation(("inputs", name, "layout", "aliased"), message, help)
        elif in_world:
            message = "'aliased' is not supported with a world"
            yield Violation(("inputs", name, "layout"), message, "remove it", "key")
