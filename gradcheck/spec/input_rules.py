"""Rules for inputs in a scenario: dtypes over the matrix, sizes (before memory is allocated),
ranges and layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from math import inf
from pathlib import Path
from typing import Any

from gradcheck.spec import model
from gradcheck.spec.data import DataPath
from gradcheck.spec.diagnostic import describe, listing, quote, suggest
from gradcheck.spec.literals import INTEGER_RANGE
from gradcheck.spec.model import Input, Scenario
from gradcheck.spec.value_rules import find_unfit_numbers, is_whole
from gradcheck.spec.violation import Violation, below

LIMITS = ("range", "below", "low", "high")
"""Keys that limit the elements that are drawn."""
MAX_ELEMENTS = 2**27
MAX_INPUT_BYTES = 2**30


def find_input_mistakes(name: str, scenario: Scenario) -> Iterator[Violation]:
    """Yield the mistakes of an input of a scenario."""
    input = scenario.inputs[name]
    if input.from_ is not None and not (Path(scenario.path).parent / input.from_).exists():
        help = f"name an .npy or .npz file below {Path(scenario.path).parent.absolute()}"
        yield Violation(("inputs", name, "from"), f"there is no file {quote(input.from_)}", help)
    if input.values is not None:
        mistakes = find_unfit_numbers(input.values, scenario.dtypes_of(input))
        yield from below(("inputs", name, "values"), mistakes)
    elif input.shape is not None:
        yield from _find_size_mistakes(name, scenario, input.shape)
        mistakes = find_limit_mistakes(input, scenario.dtypes_of(input))
        yield from below(("inputs", name), mistakes)


def length_parameters(scenario: Scenario) -> dict[str, Sequence[Any]]:
    """Return the matrix, with the scenario's sizes added as parameters of one value."""
    parameters: dict[str, Sequence[Any]] = {name: (size,) for name, size in scenario.sizes.items()}
    return parameters | scenario.matrix


def rank_sizes(scenario: Scenario, input: Input) -> list[int]:
    """Return the lengths, over the matrix, of an input's leading axis of ranks; empty without such
    an axis.
    """
    return scenario.world_sizes if input.ranks == "split" else []


# --------------------------------------------------------------------------- shapes
def find_unknown_sizes(scenario: Scenario) -> Iterator[Violation]:
    """Yield the first use of each size that is defined neither in matrix nor in sizes."""
    parameters, places = length_parameters(scenario), dict[str, DataPath]()
    for name, input in scenario.inputs.items():
        for index, size in enumerate(input.shape or ()):
            places.setdefault(str(size), ("inputs", name, "shape", index))
    unused = sorted(scenario.sizes.keys() - places.keys())
    unknown = [size for size in places if not (size in parameters or size.isdecimal())]
    free = [size for size in unknown if not iskeyword(size) and size not in model.ITEM_BYTES]
    entries = ", ".join(f"{size}: 2" for size in free)
    add = f"add '{entries}' to sizes" if scenario.sizes else f"add 'sizes: {{{entries}}}'"
    for size in unknown:
        help = suggest(size, parameters, f"write a number, or {add}")
        if iskeyword(size):
            help = "write a number, or a name"
        elif size in model.ITEM_BYTES:
            help = f"write {{shape: […], dtype: {size}}}"
        elif unused:
            help = f"rename {quote(unused[0])} in sizes, which no shape uses, or {add}"
        message = f"shape: neither the matrix nor sizes has {quote(size)}"
        yield Violation(places[size], message, help)


def _find_size_mistakes(
    name: str, scenario: Scenario, shape: Sequence[int | str]
) -> Iterator[Violation]:
    """Yield violations for parameters whose values are not sizes, and for a shape that needs too
    much memory at some point of the matrix.
    """
    parameters, input = length_parameters(scenario), scenario.inputs[name]
    count = max(rank_sizes(scenario, input), default=1)
    for size in shape:
        lengths: Sequence[Any] = parameters.get(size, ()) if isinstance(size, str) else (size,)
        for point, length in enumerate(lengths):
            if not is_whole(length, 0):
                message = f"{quote(str(size))} is a size, which must be a whole number, not "
                path = ("matrix", str(size), point)
                yield Violation(path, message + describe(length), "write whole numbers from 0 on")
        count *= max((length for length in lengths if is_whole(length, 0)), default=0)
    size_in_bytes = count * max(model.ITEM_BYTES[dtype] for dtype in scenario.dtypes_of(input))
    if count > MAX_ELEMENTS or size_in_bytes > MAX_INPUT_BYTES:
        message = f"input {quote(name)} has {count:,} elements in {size_in_bytes / 2**30:.2f} GiB"
        help = f"at most {MAX_ELEMENTS:,} (2**27) in 1 GiB are allowed: an error in a gradient "
        help += "also shows in a smaller shape, of a few elements"
        yield Violation(("inputs", name, "shape"), message, help)


# --------------------------------------------------------------------------- how elements are drawn
def find_limit_mistakes(input: Input, dtypes: Sequence[str]) -> Iterator[Violation]:
    """Yield a way to draw elements that a dtype does not allow, or limits without effect."""
    integer_dtypes = [dtype for dtype in dtypes if dtype in INTEGER_RANGE]
    key, *_ = [*(key for key in LIMITS if key in input.written), "init"]
    if input.drawn not in model.INIT_LIMITS and key != "init":
        help = f"remove it, or write {listing(model.INIT_LIMITS)} as init"
        message = f"{quote(key)} has no effect with 'init: {input.init}'"
        yield Violation((key,), message, help, at_key=True)
    elif integer_dtypes and input.drawn not in model.GIVES_WHOLE:
        message = (
            f"the input has dtype {integer_dtypes[0]}, but {quote(key)} gives no whole numbers"
        )
        help = "write 'below: 10', or 'init: integers' with low and high"
        help += "" if key == "init" else ", in its place"
        yield Violation((key,), message, help)
    elif input.drawn in model.INIT_LIMITS:
        yield from _find_wrong_limits(input, key, integer_dtypes)


def _find_wrong_limits(
    input: Input, key: str, integer_dtypes: Sequence[str]
) -> Iterator[Violation]:
    """Yield violations for limits that are not in order, or beyond one of `integer_dtypes`."""
    low, high = input.limits
    is_whole_drawn = input.drawn == "integers"
    is_above = low <= high - is_whole_drawn  # the upper limit is not drawn
    if is_whole_drawn and (low % 1 or high % 1):
        message = f"'init: integers' draws whole numbers, and {low:g} to {high:g} are its limits"
        yield Violation((key,), message, "write whole numbers, or 'range' for fractions")
    elif not (-inf < low and is_above and high < inf):
        message = f"low ({low:g}) must not be above high ({high:g})"
        if high == inf or low == -inf:
            message = f"the limits must be finite, not {low:g} and {high:g}"
        yield Violation((key,), message, "give two finite limits, the smaller one first")
    for dtype in integer_dtypes:
        least, most = INTEGER_RANGE[dtype]
        if low < least or high - 1 > most:
            message = f"{dtype} holds whole numbers from {least} to {most}, not all of those from "
            help = "change the limits: the upper limit is not drawn"
            yield Violation((key,), f"{message}{low:g} to {high - 1:g}", help)


# --------------------------------------------------------------------------- shared memory
def find_alias_mistakes(inputs: Mapping[str, Input], in_world: bool) -> Iterator[Violation]:
    """Yield violations for inputs that share the memory of an input that is not above them, or
    share memory in a world.
    """
    above: list[str] = []
    for name, input in inputs.items():
        if not input.alias_of:
            above.append(name)
        elif input.alias_of not in above:
            target = quote(input.alias_of)
            message = f"layout: no input above with separate memory is called {target}"
            help = suggest(input.alias_of, above, "name an input above it, or remove it")
            yield Violation(("inputs", name, "layout", "aliased"), message, help)
        elif in_world:
            message = "'aliased' is not supported with a world"
            yield Violation(("inputs", name, "layout"), message, "remove it", at_key=True)
