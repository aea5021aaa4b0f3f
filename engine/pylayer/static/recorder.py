"""Recording of operations in static mode, and the switches between the modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pylayer.static.current_program import default_main_program
from pylayer.static.infer import OutputSpec, explain_error, infer_call, infer_operation
from pylayer.static.operators import Assign, Call, Detach, FunctionCall
from pylayer.static.program import Block, Operator
from pylayer.static.values import tensors_in
from pylayer.static.variable import Variable, current
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.symbol import recording
from pylayer.tensor.invalid import UnsupportedError
from pylayer.tensor.tensor import Tensor


class ProgramRecorder:
    """Appends calls to the current block of the default main program."""

    def operation(self, op: Any, arguments: Sequence[Any]) -> Any:
        """Record an operation of the table.

        Raises:
            ValueError: the shapes do not match, or a Variable is not available here. TypeError: the
                dtypes cannot be combined.
        """
        arguments = current(arguments)
        block = current_block_for(arguments)
        try:
            _, values, _ = op.checked(arguments)
        except (ValueError, TypeError) as error:
            raise explain_error(error, arguments) from None
        kind, specs = infer_operation(op, values)
        call = Call(op, values, kind is not None)
        needed = grad_mode.get() and not all(t._stop_gradient for t in tensors_in(values))
        outputs = record(block, call, op.name, specs, stop_gradient=not needed)
        # The gradient of a number that no gradient flows through may be requested, as in Paddle.
        if not op.differentiable:
            for output in outputs:
                output._stop_gradient |= output.dtype.name == "bool"
        return outputs[0] if kind is None else kind(outputs)

    def call(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        repeatable: bool = True,
    ) -> Any:
        """Record the call of a function that makes one Tensor."""
        args, kwargs = current(args), current(kwargs)
        block = current_block_for((args, kwargs))
        spec, stop_gradient = infer_call(function, args, kwargs)
        if not repeatable:
            spec = spec._replace(value=None)
        return record(
            block,
            FunctionCall(function, args, kwargs),
            function.__name__,
            [spec],
            stop_gradient=stop_gradient,
        )[0]

    def detach(self, value: Any) -> Variable:
        """A Variable with the value of another, with stop_gradient True, through which no gradient
        flows.
        """
        return assign_variable(current(value), kind=Detach)

    def replace(self, old: Any, new: Variable) -> Variable:
        """Let `new` replace the Variable `old` from now on.

        Raises:
            UnsupportedError: `old` belongs to an enclosing block, and other branches would not get
                the change.
        """
        old = old.current()
        if old.block is not new.block:
            raise UnsupportedError(
                "paddle.Tensor.__setitem__ of a Variable from outside, in a branch of static mode"
            )
        old.replacement = new
        return new


def record(
    block: Block, op: Operator, name: str, specs: Sequence[OutputSpec], *, stop_gradient: bool
) -> list[Variable]:
    """Append `op`, with outputs made from `specs`."""
    stem = f"{name.removesuffix('_')}_{block.program.version}.tmp"
    for k, spec in enumerate(specs):
        op.outputs.append(block.variable(f"{stem}_{k}", spec.shape, spec.dtype, stop_gradient))
        op.outputs[k].constant = spec.value
    block.append(op)
    return op.outputs


def assign_variable(
    value: Tensor, name: str | None = None, kind: type[Assign] = Assign
) -> Variable:
    """A new Variable of the current block with the value of another, or of a Tensor."""
    block = current_block_for(value)
    spec = value.array
    stem = name or f"{kind.type}_{block.program.version}.tmp_0"
    output = block.variable(
        stem, tuple(spec.shape), spec.dtype, value._stop_gradient or kind is Detach
    )
    block.append(kind(value, output))
    return output


def current_block_for(value: Any) -> Block:
    """The block to which an operation on `value` is appended.

    Raises:
        ValueError: a Variable in it belongs to another program, or to a branch that may not have
            run; a Tensor has a graph of dynamic mode.
    """
    block = default_main_program().current
    for tensor in tensors_in(value):
        if isinstance(tensor, Variable):
            check_visible(tensor, block)
        elif tensor.node is not None and not tensor._stop_gradient:
            raise ValueError(
                f"{tensor.name}, a Tensor of shape {tensor.shape}, was computed in dynamic mode "
                "from Tensors that need a gradient, to which none would flow from a program. "
                "Compute it in the program, or detach() it."
            )
    return block


def check_visible(variable: Variable, block: Block) -> None:
    """Check that `variable` has a value when `block` runs."""
    if variable.block.program is not block.program:
        raise ValueError(
            f"{variable.describe()} belongs to another Program than the one that operations are "
            "appended to. Use it under the program_guard of its own Program."
        )
    if not variable.block.is_certain_to_run(list(block.visible_blocks())):
        raise ValueError(
            f"{variable.describe()} was made in a branch of cond and cannot be used outside, "
            "where the branch may not have run. Return it from the branch."
        )


# --------------------------------------------------------------------------- the mode
def enable_static() -> None:
    """Switch to static mode: operations on Variables are recorded in programs."""
    recording.set(ProgramRecorder())


def disable_static(place: Any = None) -> None:
    """Switch to dynamic mode, in which operations compute immediately."""
    recording.set(None)


def in_dynamic_mode() -> bool:
    """Whether the mode is dynamic."""
    return recording.get() is None


def check_static(path: str) -> None:
    """Check that the mode is static. Raises AssertionError if it is dynamic.

    Raises:
        AssertionError: it is dynamic.
    """
    if in_dynamic_mode():
        name = path.rpartition(".")[2]
        raise AssertionError(
            f"'{name}()' is only supported in static graph mode. Call paddle.enable_static() first."
        )
