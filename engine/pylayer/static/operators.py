"""The operators of a program: their inputs, their outputs, and how they are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pylayer.static.current_program import default_main_program
from pylayer.static.program import Operator
from pylayer.static.values import show, tensors_in
from pylayer.static.variable import Variable
from pylayer.tape.autograd import gradients_of
from pylayer.tape.grad_mode import grad_mode_set
from pylayer.tape.graph import Gradients
from pylayer.tape.op import Op, compute
from pylayer.tensor.array import as_array
from pylayer.tensor.tensor import Tensor


class Call(Operator):
    """A call of an operation of the op table."""

    def __init__(self, op: Op, arguments: list[Any], several: bool) -> None:
        inputs = op.inputs_in(arguments) if op.differentiable else []
        super().__init__([t if isinstance(t, Tensor) else None for t in inputs])
        self.op = op
        self.arguments = arguments
        self.several = several
        """Whether the result is a list, even with a single output."""
        self.wanted: set[int] = set()
        """Positions of the inputs whose gradient is computed somewhere: a run keeps the values that
        their vjps read.
        """
        self.type = op.name.removesuffix("_")

    def tensors(self) -> list[Tensor]:
        return tensors_in(self.arguments)

    def show_arguments(self) -> str:
        return ", ".join(
            show(value) if k == 0 else f"{name}={show(value)}"
            for k, (name, value) in enumerate(zip(self.op.arguments, self.arguments, strict=True))
        )

    def compute(self, run: Any) -> Sequence[Any]:
        arguments = run.arrays_in(self.arguments)
        result = compute(self.op, self.op.kernels[run.array_type], arguments)
        outputs = [as_array(o, run.array_type) for o in (result if self.several else [result])]
        if self.wanted:
            parents = [k if k in self.wanted else None for k in range(len(self.inputs))]
            value = outputs if self.several else outputs[0]
            run.values[self] = self.op.recorded(parents, arguments, value)
        return outputs

    def on_tensors(self, inputs: Sequence[Tensor], run: Any, create_graph: bool) -> list[Tensor]:
        """The outputs for `inputs`, recorded as in dynamic mode, so that their gradients can be
        taken.
        """
        arguments, remaining = run.tensors_in(self.arguments), iter(inputs)
        numbers = zip(self.op.inputs_in(arguments), self.inputs, strict=True)
        placed = [number if tensor is None else next(remaining) for number, tensor in numbers]
        result = self.op.apply(*self.op.with_inputs(arguments, placed))
        return list(result) if self.several else [result]

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        return Gradient.record(self, cotangents, wanted)


class Gradient(Operator):
    """The vjp of a call, or of another such gradient; it runs on arrays of any sizes."""

    def __init__(
        self, primal: Call | Gradient, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> None:
        super().__init__([*primal.inputs, *cotangents])
        self.primal = primal
        self.cotangents = list(cotangents)
        self.wanted = list(wanted)
        if isinstance(primal, Call):
            primal.wanted.update(wanted)
        self.type = f"{primal.type}_grad"

    @classmethod
    def record(
        cls, primal: Call | Gradient, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        """Record the gradients of the inputs of the operator `primal` at the positions `wanted`."""
        block = default_main_program().current
        operator = cls(primal, cotangents, wanted)
        operator.outputs = [block.gradient_of(primal.inputs[k]) for k in wanted]
        block.append(operator)
        return operator.outputs

    def tensors(self) -> list[Tensor]:
        return [*self.primal.tensors(), *(t for t in self.cotangents if t is not None)]

    def show_arguments(self) -> str:
        return ", ".join(
            [self.primal.show_arguments(), *(f"grad={show(t)}" for t in self.cotangents)]
        )

    def reads(self) -> Sequence[Any]:
        cotangents = [t for t in self.cotangents if t is not None]
        return [self.primal, *cotangents] if isinstance(self.primal, Call) else self.tensors()

    def compute(self, run: Any) -> Sequence[Any]:
        if isinstance(self.primal, Call):
            cotangents = [None if t is None else run.values[t] for t in self.cotangents]
            seed = cotangents if self.primal.several else cotangents[0]
            gradients = dict(run.values[self.primal].pullback(seed, False, Gradients()))
            return [gradients[k] for k in self.wanted]
        inputs = [
            Tensor(run.values[t], None, not t.dtype.is_differentiable)
            for t in self.inputs
            if t is not None
        ]
        with grad_mode_set(True):
            return [gradient.array for gradient in self.on_tensors(inputs, run, False)]

    def on_tensors(self, inputs: Sequence[Tensor], run: Any, create_graph: bool) -> list[Tensor]:
        """Return the gradients for `inputs`, as in dynamic mode; recorded with `create_graph`."""
        remaining = iter(inputs)
        sources = [None if t is None else next(remaining) for t in self.primal.inputs]
        primal_inputs = [source for source in sources if source is not None]
        outputs = zip(
            self.primal.on_tensors(primal_inputs, run, True), self.cotangents, strict=True
        )
        pairs = [
            (output, next(remaining)) for output, cotangent in outputs if cotangent is not None
        ]
        live = [(output, cotangent) for output, cotangent in pairs if not output.stop_gradient]
        wanted = [source for k in self.wanted if (source := sources[k]) is not None]
        gradients = gradients_of(
            [output for output, _ in live],
            wanted,
            [cotangent for _, cotangent in live],
            create_graph,
            allow_unused=True,
        )
        return [t * 0 if g is None else g for t, g in zip(wanted, gradients, strict=True)]

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        return Gradient.record(self, cotangents, wanted)


class FunctionCall(Operator):
    """A call of a function that makes a Tensor from sizes, numbers or random draws: no gradient
    flows through it.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, list(args), dict(kwargs)
        self.type = function.__name__.strip("_")

    def compute(self, run: Any) -> Sequence[Any]:
        args, kwargs = run.tensors_in((self.args, self.kwargs))
        return [self.function(*args, **kwargs).array]

    def tensors(self) -> list[Tensor]:
        return tensors_in((self.args, self.kwargs))

    def show_arguments(self) -> str:
        return ", ".join(
            [
                *map(show, self.args),
                *(f"{name}={show(value)}" for name, value in self.kwargs.items()),
            ]
        )


class Assign(Operator):
    """Gives a value a second name, such as that of an operator's output outside of its block.

    Args:
        like: a Tensor whose shape the value must have in the run, if it was not known when the
            program was built.
    """

    type = "assign"

    def __init__(self, source: Tensor, output: Variable, like: Tensor | None = None) -> None:
        super().__init__([source])
        self.outputs = [output]
        self.like = like

    def compute(self, run: Any) -> Sequence[Any]:
        value = run.values[self.tensors()[0]]
        if self.like is not None and value.shape != (shape := run.values[self.like].shape):
            raise AssertionError(
                f"shape of inp_grad({list(value.shape)}) and fwd_input({list(shape)}) should be "
                f"the same: the gradient that backward_fn returns for {self.like.name}."
            )
        return [value]

    def tensors(self) -> list[Tensor]:
        return [t for t in (*self.inputs, self.like) if t is not None]

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        return [t for t in cotangents if t is not None]


class Detach(Assign):
    """A copy of the value; no gradient flows back through it."""

    type = "detach"

    def __init__(self, source: Tensor, output: Variable) -> None:
        super().__init__(source, output)
        self.source = source
        self.inputs = []

    def tensors(self) -> list[Tensor]:
        return [self.source]

    def show_arguments(self) -> str:
        return show(self.source)
