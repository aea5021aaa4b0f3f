"""Operations as data: a name, a forward on arrays, one vjp per differentiable input, and what the vjps read.

A vjp is written once. Its parameters say what it reads, and only that is kept for backward:

    g         the cotangent of the output (a list with one per output, if there are several)
    F         second, if at all: the other operations, for use inside the vjp
    out       the output
    x, y …    an argument of the forward by its name; `x_shape` keeps the shape alone, `x_dtype` the dtype
    i         for an operation on a list of Tensors: which of them the gradient is for

An ordinary backward runs it on raw arrays, with `F` giving the raw forwards. With ``create_graph`` the same function
runs on Tensors, with `F` giving the operations themselves, and is recorded: double backward to any order.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from types import ModuleType
from typing import Any

from pylayer.array import XP
from pylayer.dtype import DType, default_dtype, promote_types
from pylayer.graph import Output, grad_mode
from pylayer.op_node import OpNode, SeveralOutputs, parent_of, recorded
from pylayer.op_table import OPS, Function, Kernels, Vjp, picker, puller
from pylayer.symbol import Symbol, holds_symbol, recording
from pylayer.tensor import Tensor
from pylayer.watch import tell_computed, watching


class Op:
    """One row of the op table. What users call is the function that `unary`, `binary` or `op` makes of it.

    Args:
        name: Paddle's name of the operation.
        bind: given an array module, returns the forward on its arrays.
        arguments: the forward's argument names, in order.
        vjps: by input name; inputs without one get no gradient.
        many: the first argument is a list of Tensors, each of which the one vjp serves.
        floating: integer inputs are computed in the default floating dtype.
        promote: inputs of different dtypes are reconciled as in `reconciled`.
        inputs: the arguments that must be Tensors (or a number beside one), if not those with a vjp; else the first.
    """

    def __init__(
        self,
        name: str,
        bind: Callable[[ModuleType], Function],
        arguments: Sequence[str],
        vjps: dict[str, Function],
        *,
        many: bool = False,
        floating: bool = False,
        promote: bool = False,
        inputs: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.kernels = Kernels(bind)
        self.arguments = tuple(arguments)
        self.inputs = tuple(vjps or inputs) or self.arguments[:1]
        self.positions = tuple(self.arguments.index(name) for name in self.inputs)
        compiled = tuple(Vjp(vjp, self.arguments) for vjp in vjps.values())
        self.vjps: Iterable[Vjp] = repeat(compiled[0]) if many else compiled
        self.pull = puller(compiled)
        self.differentiable = bool(vjps)
        self.many = many
        self.floating = floating
        self.promote = promote
        self.function: Function = self.apply
        OPS[name] = self

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join(self.arguments)})>"

    def apply(self, *arguments: Any) -> Any:
        """The general call, all arguments given in order: compute, and record if an input needs a gradient.

        In static mode a call on a Variable is added to the program, not computed.

        Raises:
            ValueError: an input is not a Tensor, or the shapes do not fit.
            TypeError: the dtypes do not go together.
        """
        recorder = recording.get()
        if recorder is not None and holds_symbol(arguments):
            return recorder.operation(self, arguments)
        inputs, values = self.checked(list(arguments))
        raw = [unwrap(value) for value in values]
        array_type = type(next(t.array for t in inputs if isinstance(t, Tensor)))
        out = self.compute(self.kernels[array_type], raw)
        several = isinstance(out, (tuple, list))
        outs = [o if type(o) is array_type else XP[array_type].asarray(o) for o in (out if several else [out])]
        parents = [parent_of(t) for t in inputs] if self.differentiable and grad_mode.get() else []
        if not any(parent is not None for parent in parents):
            tensors = [Tensor(o) for o in outs]
            if watching:
                tell_computed(self, values, outs if several else outs[0])
        else:
            saved_out = outs if several else outs[0]
            saved = [
                vjp.pick(*raw, saved_out, i) if parent is not None else ()
                for i, (vjp, parent) in enumerate(zip(self.vjps, parents, strict=False))
            ]
            shapes = [t.array.shape if isinstance(t, Tensor) else () for t in inputs]
            kind = SeveralOutputs if several else OpNode
            node = kind(self, parents, saved, shapes, saved_out)
            tensors = [Tensor(o, Output(node, k) if several else node, False) for k, o in enumerate(outs)]
        return type(out)(tensors) if several else tensors[0]

    def checked(self, arguments: list[Any]) -> tuple[list[Any], list[Any]]:
        """The inputs that a gradient may flow to, dtypes reconciled, and all arguments with those in place."""
        inputs = list(arguments[0]) if self.many else [arguments[k] for k in self.positions]
        positions = [0] * len(inputs) if self.many else self.positions
        any_tensor = any(isinstance(value, Tensor) for value in inputs)
        for value, position in zip(inputs, positions, strict=True):
            if not isinstance(value, Tensor) and not (any_tensor and isinstance(value, (int, float, complex))):
                raise ValueError(  # key phrase: observed rule 77
                    f"(InvalidArgument) {self.name}(): argument '{self.arguments[position]}' (position {position}) "
                    f"must be Tensor, but got {type(value).__name__}. Convert it with paddle.to_tensor."
                )
        if not inputs:
            raise ValueError(f"(InvalidArgument) {self.name}(): needs at least one Tensor, but got an empty list.")
        if self.promote:
            inputs = reconciled(self.name, inputs)
        if self.floating:
            inputs = [as_floating(value) for value in inputs]
        if self.many:
            arguments[0] = inputs
        else:
            for position, value in zip(self.positions, inputs, strict=True):
                arguments[position] = value
        return inputs, arguments

    def compute(self, kernel: Function, raw: Sequence[Any]) -> Any:
        """The forward on raw arrays, with errors that name the operation and the shapes."""
        try:
            return kernel(*raw)
        except (ValueError, IndexError) as error:
            text = str(error).removeprefix("(InvalidArgument) ").removesuffix(".")
            if "broadcast" in text:
                text = "Broadcast dimension mismatch: the shapes do not broadcast together"
            shapes = [
                list(a.shape) for value in raw for a in (value if type(value) is list else [value]) if type(a) in XP
            ]
            raise type(error)(
                f"(InvalidArgument) {self.name}(): {text} (shapes {', '.join(map(str, shapes))})."
            ) from None


def unwrap(value: Any) -> Any:
    """The raw array of a Tensor, also inside lists, tuples and slices; anything else unchanged."""
    if isinstance(value, Tensor):
        return value.array
    if type(value) in (list, tuple):
        return type(value)(unwrap(v) for v in value)
    if type(value) is slice:
        return slice(unwrap(value.start), unwrap(value.stop), unwrap(value.step))
    return value


def as_floating(value: Any) -> Any:
    """An integer or bool Tensor cast to the default floating dtype; anything else unchanged."""
    if isinstance(value, Tensor) and value.array.dtype.kind in "iub":
        return OPS["cast"].apply(value, default_dtype())
    return value


def reconciled(name: str, inputs: Sequence[Any]) -> list[Any]:
    """The inputs of an elementwise operation in a common dtype (observed rule 76).

    Floating and complex Tensors go to the widest; a 0-d Tensor follows the others unless its kind is higher. A Python
    number follows the Tensor, except that a float takes an integer Tensor to the default floating dtype.

    Raises:
        TypeError: Tensors of different dtypes that are not all floating or complex.
    """
    # NumPy's float64 is a float, but an array would follow it; `item` makes it a Python number.
    inputs = [v.item() if hasattr(v, "dtype") and not isinstance(v, Tensor) else v for v in inputs]
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if len({t.dtype for t in tensors}) == 1:
        weak_float = any(isinstance(value, float) for value in inputs)
        return [as_floating(value) for value in inputs] if weak_float else list(inputs)
    common = common_dtype(name, {t.dtype for t in tensors if t.ndim}, {t.dtype for t in tensors if not t.ndim})
    return [OPS["cast"].apply(v, common) if isinstance(v, Tensor) and v.dtype is not common else v for v in inputs]


def common_dtype(name: str, shaped: set[DType], zero_d: set[DType]) -> DType:
    """The dtype in which an operation on Tensors of these dtypes, with and without dimensions, is computed.

    Raises:
        TypeError: the ones with dimensions differ, and are neither all floating nor is one complex.
    """
    if len(shaped) > 1 and not (all(d.is_floating for d in shaped) or any(d.is_complex for d in shaped)):
        found = ", ".join(sorted(d.name for d in shaped))
        raise TypeError(
            f"(InvalidType) {name}(): Type promotion only support calculations between floating-point numbers and "
            f"between complex and real numbers, but got {found}. Cast one with astype()."
        )
    highest = max((d.rank for d in shaped), default=-1)
    complexes = any(d.is_complex for d in shaped)
    return promote_types(shaped | {d for d in zero_d if d.rank > highest or complexes})


# --------------------------------------------------------------------------- making rows
def no_values(*arguments: Any) -> tuple[Any, ...]:
    """What an operation without vjps saves."""
    return ()


def unary(
    name: str, vjp: Function | None = None, forward: Callable[[ModuleType], Function] | None = None, **flags: Any
) -> Function:
    """An elementwise operation of one Tensor; the forward is the array module's function of that name unless given."""
    row = Op(name, forward or (lambda xp: getattr(xp, name)), ("x",), {"x": vjp} if vjp else {}, **flags)
    kernels, general, differentiable, floating = row.kernels, row.apply, row.differentiable, row.floating
    pick: Function = row.vjps[0].pick if vjp else no_values  # type: ignore[index]
    grad_enabled = grad_mode.get

    def call(x: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor:
            return general(x)  # type: ignore[no-any-return]
        array = x.array
        if floating and array.dtype.kind in "iub":
            return general(x)  # type: ignore[no-any-return]
        out = kernels[type(array)](array)
        if type(out) is not type(array):  # NumPy turns 0-d results into scalars
            out = XP[type(array)].asarray(out)
        if x._stop_gradient or not differentiable or not grad_enabled():
            if watching:
                tell_computed(row, (x,), out)
            return Tensor(out)
        return recorded(out, row, (x if x.node is None else x.node,), (pick(array, out, 0),))

    return as_function(call, row)


def binary(
    name: str,
    x: Function | None = None,
    y: Function | None = None,
    forward: Callable[[ModuleType], Function] | None = None,
    *,
    promote: bool = True,
    floating: bool = False,
    numbers: bool = False,
) -> Function:
    """An elementwise, broadcasting operation of two Tensors; `x` and `y` are the vjps.

    One of the two may be a number for the operator; for the function only with `numbers`.
    """
    row = Op(
        name,
        forward or (lambda xp: getattr(xp, name)),
        ("x", "y"),
        {"x": x, "y": y} if x and y else {},
        inputs=("x", "y"),
        promote=promote,
        floating=floating,
    )
    return as_function(fast_binary(row, row.apply if numbers else tensors_only(row)), row)


def tensors_only(row: Op) -> Function:
    """The general call of an operation of two, neither of which may be a number."""

    def general(x: Any, y: Any) -> Any:
        for position, value in enumerate((x, y)):
            if not isinstance(value, (Tensor, Symbol)):
                raise ValueError(  # key phrase: observed rule 77
                    f"(InvalidArgument) {row.name}(): argument '{row.arguments[position]}' (position {position}) must "
                    f"be Tensor, but got {type(value).__name__}. Convert it with paddle.to_tensor."
                )
        return row.apply(x, y)

    return general


def fast_binary(row: Op, general: Function) -> Function:
    """A call of an operation that `binary` made: the usual case at once, any other through `general`."""
    kernels, differentiable, floating = row.kernels, row.differentiable, row.floating
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] if differentiable else [no_values, no_values]
    pick = picker([vjp.picked for vjp in row.vjps], row.arguments) if differentiable else no_values
    grad_enabled = grad_mode.get

    def call(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
        if type(x) is not Tensor or type(y) is not Tensor:
            return general(x, y)  # type: ignore[no-any-return]
        a, b = x.array, y.array
        if a.dtype is not b.dtype or type(a) is not type(b) or (floating and a.dtype.kind in "iub"):
            return general(x, y)  # type: ignore[no-any-return]
        try:
            out = kernels[type(a)](a, b)
        except ValueError:
            return general(x, y)  # type: ignore[no-any-return] # which says what was wrong
        if type(out) is not type(a):
            out = XP[type(a)].asarray(out)
        if differentiable and grad_enabled():
            parent_x = None if x._stop_gradient else x if x.node is None else x.node
            parent_y = None if y._stop_gradient else y if y.node is None else y.node
            if parent_x is not None and parent_y is not None and a.shape == b.shape:
                return recorded(out, row, (parent_x, parent_y), pick(a, b, out, 0))
            if parent_x is not None or parent_y is not None:
                saved = (
                    () if parent_x is None else pick_x(a, b, out, 0),
                    () if parent_y is None else pick_y(a, b, out, 1),
                )
                return Tensor(out, OpNode(row, (parent_x, parent_y), saved, (a.shape, b.shape), out), False)
        if watching:
            tell_computed(row, (x, y), out)
        return Tensor(out)

    return call


def beside_number(row: Op, general: Function) -> Function:
    """A call of an operation of two, one of them a number: beside a real floating Tensor at once, else `general`."""
    kernels, differentiable = row.kernels, row.differentiable
    pick_x, pick_y = [vjp.pick for vjp in row.vjps] if differentiable else [no_values, no_values]
    grad_enabled = grad_mode.get

    def call(x: Any, y: Any) -> Tensor:
        tensor, number = (y, x) if type(y) is Tensor else (x, y)
        if type(tensor) is not Tensor or type(number) not in (float, int) or tensor.array.dtype.kind != "f":
            return general(x, y)  # type: ignore[no-any-return]
        array = tensor.array
        a, b = (array, number) if tensor is x else (number, array)
        out = kernels[type(array)](a, b)
        if type(out) is not type(array):
            out = XP[type(array)].asarray(out)
        if tensor._stop_gradient or not differentiable or not grad_enabled():
            if watching:
                tell_computed(row, (x, y), out)
            return Tensor(out)
        parent = tensor if tensor.node is None else tensor.node
        if tensor is x:
            node = OpNode(row, (parent, None), (pick_x(a, b, out, 0), ()), (array.shape, ()), out)
        else:
            node = OpNode(row, (None, parent), ((), pick_y(a, b, out, 1)), ((), array.shape), out)
        return Tensor(out, node, False)

    return call


def op(
    *, many: bool = False, floating: bool = False, promote: bool = False, inputs: Sequence[str] = (), **vjps: Function
) -> Callable[[Function], Function]:
    """Make an operation of a forward ``name(xp, x, …, axis=None)``; the keywords are the vjps by input name."""

    def make(forward: Function) -> Function:
        signature = inspect.signature(forward)
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        row = Op(
            forward.__name__.removesuffix("_"),
            lambda xp: functools.partial(forward, xp),
            tuple(signature.parameters),
            vjps,
            many=many,
            floating=floating,
            promote=promote,
            inputs=inputs,
        )
        defaults = {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
        arguments, apply, count = row.arguments, row.apply, len(row.arguments)
        positional = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values())
        least = count - len(defaults) if positional else count
        last = tuple(defaults.values()) if positional else ()

        def call(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and least <= len(args) <= count:
                return apply(*args, *last[len(args) - least :])
            kwargs.pop("name", None)
            bound = signature.bind(*args, **kwargs).arguments
            return apply(*[bound[n] if n in bound else defaults[n] for n in arguments])

        call.__doc__ = forward.__doc__
        call.__signature__ = signature  # type: ignore[attr-defined]
        return as_function(call, row)

    return make


def as_function(call: Function, row: Op) -> Function:
    """Give a public function its operation's name and make it the one that `F` offers on Tensors."""
    call.__name__ = call.__qualname__ = row.name
    call.op = row  # type: ignore[attr-defined]
    row.function = call
    return call
