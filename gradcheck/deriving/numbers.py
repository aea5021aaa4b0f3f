"""Plain numbers that record where they come from: a size, an argument of forward, or arithmetic on
these.

A traced forward computes with them as with any number. The printed backward then has `x.shape[0]`
and `ctx.eps` where the trace has 3 and 1e-6.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """An argument of forward, by its name."""

    name: str


@dataclass(frozen=True)
class SizeOf:
    """The size of a value of the trace along an axis."""

    node: Any
    axis: int


@dataclass(frozen=True)
class Arithmetic:
    """The result of an operator on numbers, of which at least one has a source."""

    operator: str
    operands: tuple[Any, ...]


@dataclass(frozen=True)
class Called:
    """A number that a function returns; backward can call the function too, as `text`."""

    text: str


NumberSource = Argument | SizeOf | Arithmetic | Called


class SourcedInt(int):
    """An int with a source."""

    source: NumberSource

    def conjugate(self) -> SourcedInt:
        """Return the number itself; vjps conjugate their factors."""
        return self


class SourcedFloat(float):
    """A float with a source."""

    source: NumberSource

    def conjugate(self) -> SourcedFloat:
        """Return the number itself; vjps conjugate their factors."""
        return self


def is_number(value: Any) -> bool:
    """Whether a value is an int or a float, and not a bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def plain_number(value: Any) -> Any:
    """A number without its source; anything else unchanged."""
    if type(value) is SourcedInt:
        return int(value)
    return float(value) if type(value) is SourcedFloat else value


def source_of(value: Any) -> NumberSource | None:
    """The source of a number; None if it has none."""
    return value.source if isinstance(value, (SourcedInt, SourcedFloat)) else None


def has_source(value: Any, wanted: NumberSource) -> bool:
    """Whether a number, or any number in a sequence or slice, is computed from a source."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (list, tuple)):
        return any(has_source(item, wanted) for item in value)
    source = source_of(value)
    if isinstance(source, Arithmetic):
        return has_source(source.operands, wanted)
    return source == wanted


def with_source(value: Any, source: NumberSource) -> Any:
    """A number with a source; anything else, bools included, unchanged."""
    if not is_number(value):
        return value
    number = SourcedInt(value) if isinstance(value, int) else SourcedFloat(value)
    number.source = source
    return number


def sourced_operator(name: str, text: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
    """Make the method of an operator of two numbers, whose result has a source."""
    compute = getattr(operator, name)

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        left, right = (other, self) if is_reflected else (self, other)
        result = compute(plain_number(left), plain_number(right))
        return with_source(result, Arithmetic(text, (left, right)))

    return method


def negate(self: Any) -> Any:
    """Make the method of unary minus."""
    source = source_of(self)
    if isinstance(source, Arithmetic) and len(source.operands) == 1:
        return source.operands[0]
    return with_source(-plain_number(self), Arithmetic("-", (self,)))


OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "truediv": "/",
    "mod": "%",
    "pow": "**",
}
for _kind in (SourcedInt, SourcedFloat):
    _kind.__neg__ = negate  # type: ignore[method-assign]
    for _name, _text in OPERATORS.items():
        setattr(_kind, f"__{_name}__", sourced_operator(_name, _text, False))
        setattr(_kind, f"__r{_name}__", sourced_operator(_name, _text, True))


def factors_of(value: Any) -> list[Any]:
    """The factors of a number that is a product, such as a number of elements."""
    source = source_of(value)
    if not isinstance(source, Arithmetic) or source.operator != "*":
        return [] if source is None and value == 1 else [value]  # math.prod starts from 1
    return [factor for operand in source.operands for factor in factors_of(operand)]


def number_key(value: Any) -> Any:
    """A key that is equal for equal numbers of the same source."""
    source = source_of(value)
    if isinstance(source, Arithmetic):
        return (source.operator, *map(number_key, source.operands))
    return type(plain_number(value)).__name__, repr(plain_number(value)), source
