"""Operations as data: a name, a forward on arrays, one vjp per differentiable input, and the values
that vjps read.

A vjp is written once. Its parameters name the values that it reads, and only these are kept for
backward:

    g         the cotangent of the output (a list with one per output, if there are several)
    F an optional second parameter: the other operations, for use inside the vjp
    out       the output
    x, y …    an argument of the forward by its name; `x_shape` keeps only the shape, `x_dtype` the
    dtype i         for an operation on a list of Tensors: which of them the gradient is for

An ordinary backward runs it on raw arrays, with raw forwards in `F`. With ``create_graph``
the same function runs on Tensors, with the operations themselves in `F`, and is recorded, which
allows double backward to any order. For an elementwise operation, a `Derivative` may replace a vjp:
the cotangent is multiplied by it.
"""

from __future__ import annotations

import functools
import inspect
import re
import weakref
from collections.abc import Callable, Sequence
from types import ModuleType, NoneType
from typing import Any

from pylayer.fast import FLOAT32, FLOAT64, ON, fast_binary, fast_unary
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.graph import Output
from pylayer.tape.node import OpNode, SeveralOutputs, parent_of
from pylayer.tape.symbol import Symbol, is_of_a_program, recording
from pylayer.tape.vjp import Function, OpDef, Rule
from pylayer.tensor.array import XP, as_array, in_order, quietly, run_alone
from pylayer.tensor.invalid import as_floating, invalid, no_tensor, plain_number, reconciled
from pylayer.tensor.nested import leaves_in, mapped
from pylayer.tensor.tensor import Tensor
from pylayer.watch import NOBODY, watchers

Operation = Callable[..., Tensor]
"""The public function; like the forward, it returns a Tensor, a list or a tuple."""

AS_THEY_ARE = {bool, int, float, str, NoneType}
"""Types of arguments that kernels usually take unchanged."""
USUAL = AS_THEY_ARE | {Tensor}
FLOATS = {FLOAT64, FLOAT32}


class Op(OpDef):
    """The definition of an operation, which can be called. Users call the public function that
    `unary`, `binary` or `op` makes of it.
    """

    def apply(self, *arguments: Any) -> Any:
        """The general call, with all arguments in order: compute, and record if an input needs a
        gradient.

        In static mode a call on a Variable or a parameter is added to the program, not computed.

        Raises:
            ValueError: an input is not a Tensor, or the shapes do not match. TypeError: the dtypes
                cannot be combined.
        """
        recorder = recording.get()
        if recorder is not None and is_of_a_program(arguments):
            return recorder.operation(self, arguments)
        session = watchers.get().numpy
        if session is not None and not USUAL.issuperset(map(type, arguments)):
            arguments = session.from_numpy_hook(arguments, False)
        inputs, values, kind = self.checked(arguments)
        raw = [
            v.array if type(v) is Tensor else v if type(v) in AS_THEY_ARE else unwrap(v)
            for v in values
        ]
        out = compute(self, self.kernels[kind], raw)
        several = isinstance(out, (tuple, list))
        outs: list[Any] = list(out) if several else [out]
        for k, array in enumerate(outs):
            if type(array) is not kind or not (self.view or array.flags.c_contiguous):
                outs[k] = in_order(as_array(array, kind))
        return self.result(inputs, values, raw, type(out)(outs) if several else outs[0])

    def result(
        self, inputs: Sequence[Any], values: Sequence[Any], raw: Sequence[Any], out: Any
    ) -> Any:
        """The output as a Tensor, or outputs in a list or tuple, recorded if an input needs a
        gradient.

        Args:
            inputs: the Tensors that a gradient may flow to.
            values: all arguments.
            raw: all arguments, with arrays in place of Tensors.
        """
        parents = list(map(parent_of, inputs)) if self.differentiable and grad_mode.get() else []
        several, watching = isinstance(out, (tuple, list)), watchers.get()
        if parents.count(None) == len(parents):
            if watching is not NOBODY:
                watching.observer.computed(self, values, out)
            return type(out)(map(Tensor, out)) if several else Tensor(out)
        outs = list(out) if several else out
        node = self.recorded(parents, raw, outs)
        if not several:
            return Tensor(out, node, False)
        tensors = [Tensor(o, Output(node, k), False) for k, o in enumerate(outs)]
        if isinstance(node, SeveralOutputs) and type(out) is list:
            node.listed = [weakref.ref(tensor.node) for tensor in tensors]
        return type(out)(tensors)

    def recorded(self, parents: Sequence[Any], raw: Sequence[Any], out: Any) -> OpNode:
        """The node of a call on these arrays and other values, whose gradients go to `parents`."""
        shapes, saved = [], []
        rows = zip(self.vjps, parents, self.inputs_in(raw), strict=False)
        for i, (vjp, parent, value) in enumerate(rows):
            shapes.append(getattr(value, "shape", ()))
            saved.append(() if parent is None else vjp.pick(*raw, out, i))
        if isinstance(out, list):
            node: OpNode = SeveralOutputs(self, parents, saved, shapes, out)
        else:
            node = OpNode(self, parents, saved, shapes)
        if (watching := watchers.get()) is not NOBODY:
            watching.observer.made(node, raw, out)
        return node

    def inputs_in(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments that must be Tensors, or numbers if one of them is a Tensor."""
        if self.many:
            return list(arguments[0])
        return list(map(arguments.__getitem__, self.positions))

    def with_inputs(self, arguments: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The arguments, with those replaced for which a replacement is not None."""
        found = places = list(arguments)
        positions: Sequence[int] = self.positions
        if self.many:
            found[0] = places = list(found[0])
            positions = range(len(places))
        for position, value in zip(positions, inputs, strict=True):
            if value is not None:
                places[position] = value
        return found

    def checked(self, arguments: Sequence[Any]) -> tuple[list[Any], Sequence[Any], Any]:
        """The inputs to which a gradient may flow, in a common dtype; all arguments with these
        inputs; and the type of the arrays.
        """
        given = inputs = self.inputs_in(arguments)
        arrays = []
        for value in inputs:
            if isinstance(value, Tensor):
                arrays.append(value.array)
        if len(arrays) < len(inputs) or not inputs:
            self.check_numbers(inputs, (int, float, complex) if arrays else ())
        usual = arrays[0].dtype in FLOATS
        for array in arrays:
            usual = usual and array.dtype is arrays[0].dtype
        if self.promote and not usual:
            inputs = reconciled(self.name, inputs)
        if self.floating and not usual:
            inputs = list(map(as_floating, inputs))
        values = arguments if inputs is given else self.with_inputs(arguments, inputs)
        return inputs, values, type(arrays[0])

    def check_numbers(self, inputs: Sequence[Any], numbers: tuple[type, ...]) -> None:
        """Check that inputs are Tensors, or numbers of these types."""
        for k, value in enumerate(inputs):
            if not isinstance(value, (Tensor, *numbers)):
                position = self.positions[0 if self.many else k]
                raise no_tensor(self.name, self.arguments[position], position, value)
        if not inputs:
            raise invalid(f"{self.name}(): needs at least one Tensor, but got an empty list")


CORE_SIZES = re.compile(r"core dimension.*\(size (\d+) is different from (\d+)\)")
"""NumPy's message on matrices whose sizes do not fit, as those of a product."""


def compute(row: OpDef, kernel: Function, raw: Sequence[Any]) -> Any:
    """The forward on raw arrays, with errors that name the operation and the shapes."""
    try:
        try:
            return run_alone(kernel, *raw)
        except RuntimeError:
            return quietly(kernel, raw)
    except (ValueError, IndexError, OverflowError) as error:
        text = str(error).removeprefix("(InvalidArgument) ").removesuffix(".")
        if "broadcast" in text:
            text = "Broadcast dimension mismatch: the shapes do not broadcast together"
        elif sizes := CORE_SIZES.search(text):
            text = f"Dimension mismatch: the sizes {sizes[2]} and {sizes[1]} must be equal"
        shapes = ", ".join(str(list(a.shape)) for a in leaves_in(list(raw)) if type(a) in XP)
        kind = ValueError if isinstance(error, OverflowError) else type(error)
        raise kind(f"(InvalidArgument) {row.name}(): {text} (shapes {shapes}).") from None


def unwrap(value: Any) -> Any:
    """Convert a Tensor to its array and a number to a plain number, also inside lists, tuples and
    slices.
    """
    return mapped(value, lambda v: v.array if isinstance(v, Tensor) else plain_number(v))


# --------------------------------------------------------------------------- making rows
def unary(
    name: str,
    vjp: Rule | None = None,
    forward: Callable[[ModuleType], Function] | None = None,
    **flags: Any,
) -> Operation:
    """An elementwise operation of one Tensor; the forward is the array module's function of that
    name unless given.
    """
    row = Op(
        name, forward or (lambda xp: getattr(xp, name)), ("x",), {"x": vjp} if vjp else {}, **flags
    )

    def general(x: Tensor, name: str | None = None) -> Tensor:
        return row.apply(x)  # type: ignore[no-any-return]

    # with more values, a node would have to save a tuple
    return as_function(fast_unary(row, general) if ON and len(row.reads) < 2 else general, row)


def binary(
    name: str,
    x: Rule | None = None,
    y: Rule | None = None,
    forward: Callable[[ModuleType], Function] | None = None,
    *,
    promote: bool = True,
    numbers: bool = False,
    **flags: Any,
) -> Operation:
    """An elementwise, broadcasting operation of two Tensors; `x` and `y` are the vjps.

    The operator accepts a number for one of the two; the function does so only with `numbers`.
    """
    forward = forward or (lambda xp: getattr(xp, name))
    vjps = {"x": x, "y": y} if x and y else {}
    row = Op(name, forward, ("x", "y"), vjps, inputs=("x", "y"), promote=promote, **flags)

    def general(x: Any, y: Any, name: Any = None) -> Any:
        for position, value in enumerate(() if numbers else (x, y)):
            if not isinstance(value, (Tensor, Symbol)):
                raise no_tensor(row.name, row.arguments[position], position, value)
        return row.apply(x, y)

    return as_function(fast_binary(row, general) if ON else general, row)


def op(
    *,
    many: bool = False,
    floating: bool = False,
    promote: bool = False,
    inputs: Sequence[str] = (),
    view: bool = False,
    view_gradient: bool = False,
    **vjps: Rule,
) -> Callable[[Function], Operation]:
    """Make an operation of a forward ``name(xp, x, …, axis=None)``; the keywords are the vjps by
    input name.
    """

    def make(forward: Function) -> Operation:
        signature = inspect.signature(forward)
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
        name, arguments = forward.__name__.removesuffix("_"), tuple(signature.parameters)

        def bind(xp: ModuleType) -> Function:
            return functools.partial(forward, xp)

        row = Op(
            name,
            bind,
            arguments,
            vjps,
            many=many,
            floating=floating,
            promote=promote,
            inputs=inputs,
            view=view,
            view_gradient=view_gradient,
        )
        defaults = [p.default for p in signature.parameters.values() if p.default is not p.empty]
        by_name = dict(zip(reversed(arguments), reversed(defaults), strict=False))
        apply, count, least = row.apply, len(row.arguments), len(row.arguments) - len(defaults)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not kwargs and least <= len(args) <= count:
                return apply(*args, *defaults[len(args) - least :])
            kwargs.pop("name", None)
            rest, given = arguments[len(args) :], by_name | kwargs
            if len(args) > count or not kwargs.keys() <= set(rest) <= given.keys():
                try:
                    signature.bind(*args, **kwargs)
                except TypeError as error:
                    raise TypeError(f"{name}() {error}") from None
            return apply(*args, *[given[argument] for argument in rest])

        call.__doc__ = forward.__doc__
        call.__signature__ = signature  # type: ignore[attr-defined]
        return as_function(call, row)

    return make


def composed(name: str, function: Function, gives: str = "Tensor") -> Operation:
    """A function composed of operations, which give it its derivatives, under its name; `gives` is
    the return annotation for a lambda.
    """
    function.__name__ = function.__qualname__ = name
    function.__annotations__.setdefault("return", gives)
    return function


def as_function(call: Function, row: Op) -> Operation:
    """Give a public function its operation's name and make it the one that `F` offers on
    Tensors.
    """
    call.__name__ = call.__qualname__ = row.name
    call.op = row  # type: ignore[attr-defined]
    row.function = call
    return call
