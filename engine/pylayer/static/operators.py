"""The operators of a program: what each computes from, what it makes, and how it is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pylayer.static.in_use import default_main_program
from pylayer.static.program import Operator
from pylayer.static.values import show, tensors_in
from pylayer.static.variable import Variable
from pylayer.tape.autograd import grad
from pylayer.tape.vjp import Row
from pylayer.tensor.tensor import Tensor


class Call(Operator):
    """A call of an operation of the table."""

    def __init__(self, op: Row, arguments: list[Any], several: bool) -> None:
        given = list(arguments[0]) if op.many else [arguments[k] for k in op.positions]
        super().__init__(
            [t if op.differentiable and isinstance(t, Tensor) else None for t in given]
        )
        self.op = op
        self.arguments = arguments
        self.several = several
        """Whether the result is a list, be it of one output."""
        self.type = op.name.removesuffix("_")

    def tensors(self) -> list[Tensor]:
        return tensors_in(self.arguments)

    def shown(self) -> str:
        return ", ".join(
            show(value) if k == 0 else f"{name}={show(value)}"
            for k, (name, value) in enumerate(zip(self.op.arguments, self.arguments, strict=True))
        )

    def with_inputs(self, inputs: Sequence[Tensor], resolve: Callable[[Any], Any]) -> list[Any]:
        """The arguments in a run, with `inputs` in the places of the differentiable ones."""
        arguments = [resolve(value) for value in self.arguments]
        given = iter(inputs)
        if self.op.many:
            arguments[0] = [next(given) for _ in self.inputs]
        else:
            for position, own in zip(self.op.positions, self.inputs, strict=True):
                if own is not None:
                    arguments[position] = next(given)
        return arguments

    def on_tensors(self, inputs: Sequence[Tensor], resolve: Callable[[Any], Any]) -> list[Tensor]:
        """The outputs for `inputs`, computed and recorded at once as in dynamic mode: for derivatives of gradients."""
        out = self.op.apply(*self.with_inputs(inputs, resolve))
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def differentiated(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> list[Tensor | None]:
        return Gradient.recorded(self, cotangents, wanted)


class Gradient(Operator):
    """The vjp of a call, or of such a gradient in turn: run on arrays, whatever their sizes turn out to be."""

    def __init__(
        self, of: Call | Gradient, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> None:
        super().__init__([*of.inputs, *cotangents])
        self.of = of
        self.cotangents = list(cotangents)
        self.wanted = list(wanted)
        self.type = f"{of.type}_grad"

    @classmethod
    def recorded(
        cls, of: Call | Gradient, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> list[Tensor | None]:
        """Record the gradients of the inputs of `of` at the positions `wanted`."""
        block = default_main_program().current
        made = cls(of, cotangents, wanted)
        gradients: list[Tensor | None] = [None] * len(of.inputs)
        for k in wanted:
            source = of.inputs[k]
            assert source is not None
            spec = source.array
            out = block.variable(
                f"{source.name}@GRAD", tuple(spec.shape), spec.dtype, stop_gradient=False
            )
            made.outputs.append(out)
            gradients[k] = out
        block.append(made)
        return gradients

    def tensors(self) -> list[Tensor]:
        return [*self.of.tensors(), *(t for t in self.cotangents if t is not None)]

    def shown(self) -> str:
        return ", ".join([self.of.shown(), *(f"grad={show(t)}" for t in self.cotangents)])

    def on_tensors(self, inputs: Sequence[Tensor], resolve: Callable[[Any], Any]) -> list[Tensor]:
        """The gradients for `inputs`, recorded: for derivatives of a higher order."""
        count = sum(t is not None for t in self.of.inputs)
        own, given = list(inputs[:count]), iter(inputs[count:])
        by_position = iter(own)
        sources = [None if t is None else next(by_position) for t in self.of.inputs]
        pairs = [
            (out, next(given))
            for out, cotangent in zip(
                self.of.on_tensors(own, resolve), self.cotangents, strict=True
            )
            if cotangent is not None
        ]
        wanted = [source for k in self.wanted if (source := sources[k]) is not None]
        live = [(out, cotangent) for out, cotangent in pairs if not out.stop_gradient]
        found: list[Tensor | None] = [None] * len(wanted)
        if live:
            outs, starts = zip(*live, strict=True)
            found = grad(list(outs), wanted, list(starts), create_graph=True, allow_unused=True)
        return [t * 0 if g is None else g for t, g in zip(wanted, found, strict=True)]

    def differentiated(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> list[Tensor | None]:
        return Gradient.recorded(self, cotangents, wanted)


class FunctionCall(Operator):
    """A call of a function that makes a Tensor from sizes, numbers or random draws: no gradient flows through it."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, list(args), dict(kwargs)
        self.type = function.__name__.strip("_")

    def tensors(self) -> list[Tensor]:
        return tensors_in((self.args, self.kwargs))

    def shown(self) -> str:
        return ", ".join(
            [
                *map(show, self.args),
                *(f"{name}={show(value)}" for name, value in self.kwargs.items()),
            ]
        )


class Assign(Operator):
    """Gives a value a second name, such as that of an operator's output outside of its block.

    Args:
        like: a Tensor whose shape the value must have in the run, where building could not tell.
    """

    type = "assign"

    def __init__(self, source: Tensor, out: Variable, like: Tensor | None = None) -> None:
        super().__init__([source])
        self.outputs = [out]
        self.like = like

    def tensors(self) -> list[Tensor]:
        return [t for t in (*self.inputs, self.like) if t is not None]

    def differentiated(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> list[Tensor | None]:
        return [cotangents[0]]


class Detach(Assign):
    """The same value, to which no gradient flows back."""

    type = "detach"

    def __init__(self, source: Tensor, out: Variable) -> None:
        super().__init__(source, out)
        self.source = source
        self.inputs = []

    def tensors(self) -> list[Tensor]:
        return [self.source]

    def shown(self) -> str:
        return show(self.source)
