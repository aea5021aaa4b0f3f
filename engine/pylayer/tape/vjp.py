"""The op table: definitions of operations as data, the values that their vjps read, and `F`, the
operations that vjps call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from types import ModuleType
from typing import Any, NamedTuple

from pylayer.tensor.array import XP, ByArrayType

Function = Callable[..., Any]

OPS: dict[str, OpDef] = {}
"""The op table, by name."""


class _Ops:
    """`F`: operations by name, as `find` returns them. Raises AttributeError if no operation has
    that name.
    """

    def __init__(self, find: Callable[[OpDef], Function]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> Function:
        if name not in OPS:
            raise AttributeError(name)
        return self.__dict__.setdefault(name, self._find(OPS[name]))  # type: ignore[no-any-return]


raw_ops = ByArrayType(lambda array_type: _Ops(lambda op: op.kernels[array_type]))
"""`F` on raw arrays, by their type."""
recorded_ops = _Ops(lambda op: op.function)
"""`F` on Tensors."""


class Derivative(NamedTuple):
    """The derivative of an elementwise operation, in place of a vjp: a function of the same
    parameters without ``g``.
    """

    function: Function


Rule = Function | Derivative


class Vjp:
    """One input's vjp: ``rule(g, [F,] *pick(*arguments, out, i))``.

    For a `Derivative`, which `multiplies`, it is ``conj(rule(…)) * g``.
    """

    __slots__ = ("multiplies", "pick", "reads", "rule", "takes_ops")

    def __init__(self, rule: Rule, arguments: Sequence[str]) -> None:
        self.multiplies = isinstance(rule, Derivative)
        self.rule: Function = rule.function if isinstance(rule, Derivative) else rule
        names = self.rule.__code__.co_varnames[not self.multiplies : self.rule.__code__.co_argcount]
        self.takes_ops = names[:1] == ("F",)
        self.reads = names[self.takes_ops :]
        self.pick = picker(self.reads, arguments)

    @staticmethod
    def source(name: str, arguments: Sequence[str]) -> str:
        """The expression for a vjp's parameter `name`: an argument, ``out``, ``i``, or an
        argument's shape or dtype.
        """
        base, _, attribute = name.rpartition("_")
        return f"{base}.{attribute}" if name not in arguments and base in arguments else name


# Compiled source text picks in one call: with closures a chain of 1000 small operations took 11 %
# more.
def picker(reads: Iterable[str], arguments: Sequence[str]) -> Function:
    """A function from a forward's arguments, ``out`` and ``i`` to the values that vjps read under
    these names.
    """
    picked = "".join(f"{Vjp.source(name, arguments)}, " for name in reads)
    return eval(f"lambda {', '.join(dict.fromkeys((*arguments, 'out', 'i')))}: ({picked})")  # type: ignore[no-any-return]


class OpDef:
    """The definition of an operation, as a row of the op table; it is called by `apply`, or by the
    public function.

    Args:
        name: Paddle's name of the operation.
        bind: given an array module, returns the forward on its arrays.
        arguments: the forward's argument names, in order.
        vjps: by input name, or derivatives; inputs without one get no gradient.
        many: the first argument is a list of Tensors, with one vjp for all of them.
        floating: integer inputs are computed in the default floating dtype.
        promote: inputs of different dtypes are reconciled (see `reconciled`).
        inputs: the arguments that must be Tensors (or a number beside one), by default those with a
            vjp, or the first.
        view: the result may be a view with other strides. Any other result is put `in_order`.
        view_gradient: the gradient may be one, too.
    """

    apply: Function
    """The general call, with all arguments in order."""
    result: Function
    """Make the Tensor for a computed output, from the inputs, the arguments, their arrays and the
    output.
    """
    recorded: Function
    """Make the node of a call, from the targets of its gradients, the arguments and the output."""
    pull: Function
    """All vjps of an elementwise operation in one call; None if `pylayer.fast` is off."""

    def __init__(
        self,
        name: str,
        bind: Callable[[ModuleType], Function],
        arguments: Sequence[str],
        vjps: dict[str, Rule],
        *,
        many: bool = False,
        floating: bool = False,
        promote: bool = False,
        inputs: Sequence[str] = (),
        view: bool = False,
        view_gradient: bool = False,
    ) -> None:
        self.name = name
        self.kernels: ByArrayType = ByArrayType(lambda array_type: bind(XP[array_type]))
        self.arguments = tuple(arguments)
        self.inputs = tuple(vjps or inputs) or self.arguments[:1]
        self.positions = tuple(self.arguments.index(name) for name in self.inputs)
        compiled = tuple(Vjp(vjp, self.arguments) for vjp in vjps.values())
        self.vjps: Iterable[Vjp] = repeat(compiled[0]) if many else compiled
        self.reads = frozenset(name for vjp in compiled for name in vjp.reads)
        self.differentiable = bool(vjps)
        self.many = many
        self.floating = floating
        self.promote = promote
        self.view = view
        self.view_gradient = view_gradient
        self.function: Function = self.apply
        OPS[name] = self
