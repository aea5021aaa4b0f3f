"""Sizes that are known only while a program runs: the -1 in a shape."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pylayer.ops.creation import to_tensor
from pylayer.tape.symbol import Symbol
from pylayer.tensor.tensor import Tensor

_keys = itertools.count()


class SymbolicSize(Symbol):
    """An unknown size. An unknown size. It prints as -1 and equals -1; arithmetic on it gives sizes
    that are computed in the run.

    It is not an int: code that needs its value while the program is built raises instead of
    continuing with -1.
    """

    __slots__ = ()

    def value(self, size_of: Callable[[UnknownSize], int]) -> Any:
        """A function that computes the value from those of the unknown sizes that it depends on."""
        raise NotImplementedError

    def unknowns(self) -> Iterator[UnknownSize]:
        """The unknown sizes from which the size is computed."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "-1"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicSize) or (isinstance(other, int) and other == -1)

    def __hash__(self) -> int:
        return hash(-1)

    def unavailable(self, *_: Any) -> Any:
        """Raise, because the value is not known yet."""
        raise ValueError(
            f"{self.describe()} is known only while the program runs, but its value is needed to "
            "build it. Give the size in static.data, or use an operation that takes -1."
        )

    def __neg__(self) -> SymbolicSize:
        return ComputedSize(operator.neg, self)

    __index__ = __int__ = __float__ = __bool__ = unavailable
    __lt__ = __le__ = __gt__ = __ge__ = unavailable


class UnknownSize(SymbolicSize):
    """The size of a Variable along an axis."""

    __slots__ = ("axis", "key", "variable")

    def __init__(self) -> None:
        self.key = next(_keys)
        """A key that distinguishes the size from other unknown sizes, which all compare equal."""
        self.variable: Any = None
        """The Variable whose size this is, once there is one."""
        self.axis = 0

    def value(self, size_of: Callable[[UnknownSize], int]) -> Any:
        return size_of(self)

    def unknowns(self) -> Iterator[UnknownSize]:
        yield self

    def describe(self) -> str:
        if self.variable is None:
            return "a size"
        return f"the size of axis {self.axis} of {self.variable.describe()}"


class ComputedSize(SymbolicSize):
    """Arithmetic on sizes."""

    __slots__ = ("function", "operands")

    def __init__(self, function: Callable[..., Any], *operands: Any) -> None:
        self.function, self.operands = function, operands

    def value(self, size_of: Callable[[UnknownSize], int]) -> Any:
        return self.function(
            *(o.value(size_of) if isinstance(o, SymbolicSize) else o for o in self.operands)
        )

    def unknowns(self) -> Iterator[UnknownSize]:
        for operand in self.operands:
            if isinstance(operand, SymbolicSize):
                yield from operand.unknowns()

    def describe(self) -> str:
        return f"a number computed from {' and '.join(size.describe() for size in self.unknowns())}"


def may_be_equal(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two shapes may be the same: a size that is known only in the run may equal any
    other.
    """
    return len(first) == len(second) and all(
        m == n or isinstance(m, SymbolicSize) or isinstance(n, SymbolicSize)
        for m, n in zip(first, second, strict=True)
    )


def _computes(function: Callable[..., Any], reflected: bool) -> Callable[[SymbolicSize, Any], Any]:
    def compute(size: SymbolicSize, other: Any) -> Any:
        if isinstance(other, Tensor):
            number = to_tensor(size)
            return function(other, number) if reflected else function(number, other)
        if not isinstance(other, (int, float, SymbolicSize)):
            return NotImplemented
        return ComputedSize(function, *((other, size) if reflected else (size, other)))

    return compute


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    _function = getattr(operator, _name)
    setattr(SymbolicSize, f"__{_name}__", _computes(_function, reflected=False))
    setattr(SymbolicSize, f"__r{_name}__", _computes(_function, reflected=True))
