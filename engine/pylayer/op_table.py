"""What vjps are made of: the kernels of an operation, what a vjp reads, and the other operations it may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pylayer.array import XP

if TYPE_CHECKING:
    from pylayer.op import Op

Function = Callable[..., Any]

OPS: dict[str, Op] = {}
"""The op table, by name."""


class Kernels(dict[type, Function]):
    """Array type to the forward on arrays of that type, bound to their module on first use."""

    def __init__(self, bind: Callable[[ModuleType], Function]) -> None:
        super().__init__()
        self.bind = bind

    def __missing__(self, array_type: type) -> Function:
        kernel = self[array_type] = self.bind(XP[array_type])
        return kernel


class RawOps:
    """`F` on raw arrays of one type."""

    def __init__(self, array_type: type) -> None:
        self._array_type = array_type

    def __getattr__(self, name: str) -> Function:
        kernel = OPS[name].kernels[self._array_type]
        setattr(self, name, kernel)
        return kernel


class RecordedOps:
    """`F` on Tensors."""

    def __getattr__(self, name: str) -> Function:
        return OPS[name].function


class _RawOpsByType(dict[type, RawOps]):
    def __missing__(self, array_type: type) -> RawOps:
        ops = self[array_type] = RawOps(array_type)
        return ops


raw_ops = _RawOpsByType()
recorded_ops = RecordedOps()


class Vjp:
    """One input's vjp: ``function(g, [F,] *pick(*arguments, out, i))``."""

    __slots__ = ("function", "pick", "picked", "reads", "takes_ops")

    def __init__(self, function: Function, arguments: Sequence[str]) -> None:
        names = argument_names(function)[1:]
        self.function = function
        self.takes_ops = names[:1] == ("F",)
        self.reads = names[self.takes_ops :]
        sources = [self.source(name, arguments) for name in self.reads]
        self.picked = f"({''.join(s + ',' for s in sources)})"
        self.pick = picker([self.picked], arguments)

    @staticmethod
    def source(name: str, arguments: Sequence[str]) -> str:
        """The expression for what a vjp calls `name`: an argument, ``out``, ``i``, or an argument's shape or dtype."""
        base, _, attribute = name.rpartition("_")
        return f"{base}.{attribute}" if name not in arguments and base in arguments else name


def picker(picked: Sequence[str], arguments: Sequence[str]) -> Function:
    """The function of a forward's arguments, ``out`` and ``i`` that gives what vjps read."""
    return eval(f"lambda {', '.join((*arguments, 'out', 'i'))}: ({', '.join(picked)})")  # type: ignore[no-any-return]


def puller(vjps: Sequence[Vjp]) -> Function:
    """The function of a raw cotangent, parents and what the vjps have saved that gives each parent its cotangent."""
    calls = []
    for k, vjp in enumerate(vjps):
        values = [f"saved[{k}][{j}]" for j in range(len(vjp.reads))]
        call = f"vjp{k}({', '.join(['g', *(['raw_ops[type(g)]'] if vjp.takes_ops else []), *values])})"
        calls.append(f"(parents[{k}], {call})")
    names = {f"vjp{k}": vjp.function for k, vjp in enumerate(vjps)} | {"raw_ops": raw_ops}
    return eval(f"lambda g, parents, saved: ({''.join(c + ',' for c in calls)})", names)  # type: ignore[no-any-return]


def argument_names(function: Function) -> tuple[str, ...]:
    """The names of the positional parameters of a plain function."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]
