"""`static_pylayer`: an operator of two blocks, one for the forward and one for the backward that
the user gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pylayer.layer.py_layer import PyLayer
from pylayer.static.backward import filled_like, needs_gradient
from pylayer.static.current_program import default_main_program
from pylayer.static.operators import Assign
from pylayer.static.program import Block, Operator
from pylayer.static.recorder import current_block_for, in_dynamic_mode
from pylayer.static.sizes import may_be_equal
from pylayer.static.structure import leaves, rebuild
from pylayer.static.values import tensors_in
from pylayer.static.variable import describe
from pylayer.tensor.tensor import Tensor
from pylayer.watch import layer_observers


class PyLayerCall(Operator):
    """The forward block of a `static_pylayer`. Its derivative is `backward_fn`, not the block's
    own.
    """

    type = "pylayer"

    def __init__(
        self, inputs: list[Tensor], forward: Block, backward_fn: Callable[..., Any] | None
    ) -> None:
        super().__init__(inputs)
        self.forward = forward
        self.backward_fn = backward_fn

    def blocks(self) -> list[tuple[str, Block]]:
        return [("forward", self.forward)]

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        """Trace `backward_fn`.

        Raises:
            ValueError: the number of returned gradients is not that of inputs, or one that is
                needed is None.
            AssertionError: a gradient has another dtype or shape than its input.
            Exception: whatever `backward_fn` raises, with a note.
        """
        assert self.backward_fn is not None
        program = default_main_program()
        full_cotangents = [
            filled_like(output, 0.0) if cotangent is None else cotangent
            for output, cotangent in zip(self.outputs, cotangents, strict=True)
        ]
        enclosing = program.current
        block = Block(program, enclosing, sees=[self.forward])
        for observer in layer_observers:
            observer.pulled_back(self.backward_fn)
        with block.as_current():
            try:
                returned = self.backward_fn(*full_cotangents)
            except Exception as error:
                error.add_note(f"in backward_fn of the static_pylayer at {self.where}")
                raise
            gradients = self.check_gradients(returned, wanted)
            gradient_op = PyLayerGradient(self, full_cotangents, block)
            stop = not needs_gradient(
                [*full_cotangents, *(t for op in block.ops for t in op.inputs)]
            )
            for k in wanted:
                output = enclosing.gradient_of(self.inputs[k], stop)
                block.append(Assign(gradients[k], output, like=self.inputs[k]))
                gradient_op.outputs.append(output)
        enclosing.append(gradient_op)
        return gradient_op.outputs

    def check_gradients(self, returned: Any, wanted: Sequence[int]) -> list[Any]:
        """Return `backward_fn`'s gradients, one per input; key phrases: observed rules 61, 62 and
        64.
        """
        gradients = leaves(returned)
        names = ", ".join(t.name for t in self.inputs if t is not None)
        place = f"static_pylayer at {self.where}"
        if len(gradients) != len(self.inputs):
            raise ValueError(
                "The number of input grads should be equal to the number of inputs, but got "
                f"{len(gradients)} and {len(self.inputs)}. backward_fn of the {place} must return "
                f"one gradient for each of: {names}."
            )
        for k, (gradient, source) in enumerate(zip(gradients, self.inputs, strict=True)):
            assert source is not None
            if gradient is None and k not in wanted:
                continue
            about = describe(source)
            if not isinstance(gradient, Tensor):
                raise ValueError(
                    f"backward_fn of the {place} returned "
                    f"{'None' if gradient is None else type(gradient).__name__} as "
                    f"gradient {k}, but it must be a Variable: a gradient is needed for {about}."
                )
            if gradient.dtype is not source.dtype:
                raise AssertionError(
                    f"dtype of inp_grad({gradient.dtype!r}) and fwd_input({source.dtype!r}) should "
                    f"be the same: gradient {k} of backward_fn of the {place}, for {about}. Cast "
                    "it with astype()."
                )
            if not may_be_equal(gradient.array.shape, source.array.shape):
                raise AssertionError(
                    f"shape of inp_grad({gradient.shape}) and fwd_input({source.shape}) should be "
                    f"the same: gradient {k} of backward_fn of the {place}, for {about}."
                )
        return gradients


class PyLayerGradient(Operator):
    """The backward block of a `static_pylayer`: a list of operators, which are differentiated one
    by one.
    """

    type = "pylayer_grad"

    def __init__(self, primal: PyLayerCall, cotangents: list[Tensor], backward: Block) -> None:
        super().__init__(list(cotangents))
        self.primal = primal
        self.backward = backward

    def blocks(self) -> list[tuple[str, Block]]:
        return [("backward", self.backward)]

    def expand(self) -> Iterator[Operator]:
        for op in self.backward.ops:
            yield from op.expand()


def call_as_layer(
    forward_fn: Callable[..., Any], inputs: Sequence[Any], backward_fn: Callable[..., Any] | None
) -> Any:
    """The results of a PyLayer made of both functions, nested as `forward_fn` returned them."""
    returned: Any = None

    class OfFunctions(PyLayer):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            nonlocal returned
            returned = forward_fn(*rebuild(list(inputs), values))
            return tuple(leaves(returned))

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            assert backward_fn is not None
            return tuple(leaves(backward_fn(*cotangents)))

    outputs = OfFunctions.apply(*leaves(list(inputs)))
    return rebuild(returned, outputs if isinstance(outputs, (list, tuple)) else [outputs])


eager_call: ContextVar[Callable[..., Any] | None] = ContextVar("eager_call", default=None)
"""The function that `static_pylayer` calls in dynamic mode; None if that mode is refused."""


@contextmanager
def running_eagerly(call: Callable[..., Any] = call_as_layer) -> Iterator[None]:
    """A block in which `static_pylayer` accepts Tensors in dynamic mode, so that the operations of
    its functions can be observed. `call` takes the arguments of `static_pylayer` and computes its
    results.
    """
    token = eager_call.set(call)
    try:
        yield
    finally:
        eager_call.reset(token)


def check_arguments(forward_fn: Any, inputs: Any, backward_fn: Any) -> None:
    """Check the types of `static_pylayer`'s arguments; `static_pylayer` documents the errors."""
    for role, function in (("forward_fn", forward_fn), ("backward_fn", backward_fn)):
        if not callable(function) and not (function is None and role == "backward_fn"):
            raise ValueError(f"`{role}` should be callable, but got {type(function).__name__}.")
    if not isinstance(inputs, list):  # observed rule 56
        raise AssertionError(
            f"inputs must be a list of Variables, but got {type(inputs).__name__}. Write [x] for "
            f"one."
        )


def static_pylayer(
    forward_fn: Callable[..., Any],
    inputs: Sequence[Any],
    backward_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return ``forward_fn(*inputs)``, with `backward_fn` as its derivative.

    Both are called while the program is built, and record a block each: `forward_fn` now,
    `backward_fn` whenever gradients are requested. Either may use Variables from outside; no
    gradient flows to those that `forward_fn` uses.

    Args:
        forward_fn: takes `inputs`; returns a Variable, or nested lists and tuples of them.
        inputs: Variables, also in nested lists; others are passed on as they are.
        backward_fn: takes the cotangent of each output, zeros for an unused one; returns a
            gradient for each input Variable, of its dtype and shape. Without it all inputs must
            have stop_gradient True.

    Returns:
        New Variables in the structure that `forward_fn` returned.

    Raises:
        AssertionError: the mode is dynamic; `inputs` is not a list; a gradient of `backward_fn` has
            another dtype or shape than its input.
        ValueError: a function is not callable, an input needs a gradient and there is no
            `backward_fn`; the number of gradients is not that of inputs.
    """
    if in_dynamic_mode() and (compute := eager_call.get()) is not None:
        return compute(forward_fn, inputs, backward_fn)
    if in_dynamic_mode():  # key phrase: observed rule 55
        raise AssertionError(
            "please use PyLayer instead of static_pylayer in dygraph mode. Call "
            "paddle.enable_static() to build a static program."
        )
    check_arguments(forward_fn, inputs, backward_fn)
    tensors = tensors_in(inputs)
    enclosing = current_block_for(tensors)
    flowing = [t for t in tensors if not t._stop_gradient]
    if backward_fn is None and flowing:  # key phrase: observed rule 58
        tensor = flowing[0]
        raise ValueError(
            "``stop_gradient`` attr of all inputs to ``forward_fn`` are expected to be True, when "
            f"``backward_fn == None``, but {tensor.name}.stop_gradient got False "
            f"({describe(tensor)}). Give a backward_fn, or set it to True."
        )
    block = Block(enclosing.program, enclosing)
    call = PyLayerCall(tensors, block, backward_fn)
    for observer in layer_observers if backward_fn is not None else ():
        observer.applied(backward_fn, None)
    with block.as_current():
        try:
            returned = forward_fn(*inputs)
        except Exception as error:
            error.add_note(f"in forward_fn of the static_pylayer at {call.where}")
            raise
        stop = not needs_gradient(tensors)
        outs = leaves(returned)
        stem = f"pylayer_{enclosing.program.version}.out"
        for k, result in enumerate(outs):
            if isinstance(result, Tensor):
                spec = result.array
                outs[k] = enclosing.variable(f"{stem}_{k}", tuple(spec.shape), spec.dtype, stop)
                block.append(Assign(result, outs[k]))
                call.outputs.append(outs[k])
    enclosing.append(call)
    return rebuild(returned, outs)
