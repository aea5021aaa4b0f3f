"""Gradients of a program, recorded as further operators of the program."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from types import NoneType
from typing import Any

from pylayer.ops.creation import full_like
from pylayer.static.current_program import default_main_program
from pylayer.static.program import Operator, expand_operators
from pylayer.static.recorder import (
    ProgramRecorder,
    assign_variable,
    check_static,
    current_block_for,
)
from pylayer.static.sizes import may_be_equal
from pylayer.static.update import Update
from pylayer.static.variable import Variable, current, describe
from pylayer.tape.grad_mode import grad_mode
from pylayer.tape.symbol import Parameter
from pylayer.tape.vjp import OPS
from pylayer.tensor.tensor import Tensor


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Iterable[Any] | None = None,
) -> list[Variable | None]:
    """The gradients of the sum of `targets`, each times its target gradient, with respect to
    `inputs`.

    They are Variables named ``X@GRAD``; None for an input that no target depends on, or whose
    stop_gradient is True (observed rule 71).

    Args:
        targets: a Variable or a list of them; so are `inputs`, which may be parameters too.
        target_gradients: per target its cotangent, of the target's shape, or None for ones.
        no_grad_set: Variables, or their names, through which no gradient flows.

    Raises:
        AssertionError: the mode is dynamic.
        TypeError: a target or an input is not a Variable.
        ValueError: the numbers or shapes of targets and their gradients differ, or a backward_fn
            returns invalid gradients.
    """
    check_static("paddle.static.gradients")
    targets, inputs, target_gradients = current(targets), current(inputs), current(target_gradients)
    ends, wanted = _as_list(targets, "targets"), _as_list(inputs, "inputs")
    unset = [None] * len(ends)
    cotangents = _as_list(
        unset if target_gradients is None else target_gradients, "target_gradients"
    )
    if len(cotangents) != len(ends):
        raise ValueError(
            f"gradients: {len(ends)} targets need as many target_gradients, but got "
            f"{len(cotangents)}."
        )
    for end, cotangent in zip(ends, cotangents, strict=True):
        if cotangent is not None and not may_be_equal(cotangent.array.shape, end.array.shape):
            raise ValueError(
                "gradients: a target gradient must have the shape of its target: "
                f"{describe(cotangent)} is for {describe(end)}."
            )
    current_block_for([*ends, *wanted, *cotangents])
    seeds = [
        (end, cotangent)
        for end, cotangent in zip(ends, cotangents, strict=True)
        if not end._stop_gradient
    ]
    no_grad_targets = {_by_name(value) for value in no_grad_set or ()}
    totals = pull_back(_operators_so_far(), seeds, wanted, no_grad_targets)
    return [_named_gradient(tensor, totals.get(tensor)) for tensor in wanted]


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None,
    callbacks: Any = None,
    checkpoints: Any = None,
) -> list[tuple[Tensor, Variable | None]]:
    """The gradients of `loss` with respect to parameters, each with its parameter; None if there is
    no gradient.

    Args:
        loss: if it has several elements, their sum is differentiated.
        parameter_list: the parameters, or other Tensors, or their names; by default all persistable
            Tensors of the program, such as parameters, the latest first.

    Raises:
        TypeError: `loss` is not a Variable, or `parameter_list` is not a list, tuple or set.
    """
    check_static("paddle.static.append_backward")
    if not isinstance(loss, Variable):
        raise TypeError(
            f"The loss of append_backward must be a Variable, but received {type(loss).__name__}."
        )
    if not isinstance(parameter_list, (list, tuple, set, NoneType)):
        raise TypeError(
            "The parameter_list of append_backward must be a list, tuple or set, but received "
            f"{type(parameter_list).__name__}. Write [x] for one."
        )
    program = default_main_program()
    parameters = [
        _by_name(p) for p in (program.persistables() if parameter_list is None else parameter_list)
    ]
    return list(zip(parameters, gradients([loss], parameters, None, no_grad_set), strict=True))


def _as_list(value: Any, argument: str) -> list[Any]:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    allowed = (Tensor, type(None)) if argument == "target_gradients" else Tensor
    for item in items:
        if not isinstance(item, allowed):
            raise TypeError(
                f"The {argument} of gradients must be Variables, but received "
                f"{type(item).__name__}."
            )
    return items


def _by_name(value: Any) -> Tensor:
    if not isinstance(value, str):
        return _as_list(current(value), "parameter_list")[0]  # type: ignore[no-any-return]
    return default_main_program().tensor(value)


def _operators_so_far() -> list[Operator]:
    """The operators that run before the next appended one, outer blocks first."""
    blocks = dict.fromkeys(default_main_program().current.visible_blocks())
    return [op for block in reversed(blocks) for op in block.ops]


def filled_like(tensor: Tensor, value: float) -> Variable:
    """Create a Variable with the shape and dtype of `tensor` and every element equal to `value`."""
    return ProgramRecorder().call(full_like, (tensor, value), {})  # type: ignore[no-any-return]


def pull_back(
    operators: Iterable[Operator],
    seeds: Sequence[tuple[Tensor, Tensor | None]],
    wanted: Sequence[Tensor],
    no_grad_targets: Collection[Tensor] = (),
) -> dict[Tensor, Tensor]:
    """Record the cotangents of `wanted`, given the cotangents of `seeds` (ones for None), through
    `operators`.
    """
    reach = {t for t in wanted if not t._stop_gradient}
    through: list[tuple[Operator, list[int]]] = []
    for op in expand_operators(operators):
        positions = [k for k, t in enumerate(op.inputs) if t in reach]
        if positions:
            through.append((op, positions))
            reach.update(
                output
                for output in op.outputs
                if not output._stop_gradient and output not in no_grad_targets
            )
    sums = Sums({cotangent for _, cotangent in seeds if cotangent is not None})
    for target, cotangent in seeds:
        if target in reach:
            sums.add(target, filled_like(target, 1.0) if cotangent is None else cotangent)
    for op, positions in reversed(through):
        cotangents = [sums.total(output) for output in op.outputs]
        if any(cotangent is not None for cotangent in cotangents):
            gradients = op.differentiate(cotangents, positions)
            for k, gradient in zip(positions, gradients, strict=True):
                if op.inputs[k] not in no_grad_targets:
                    sums.add(op.inputs[k], gradient)
    totals = {t: sums.total(t) for t in wanted if t in reach}
    return {t: total for t, total in totals.items() if total is not None}


class Sums:
    """The cotangents of Tensors, each summed as its terms arrive; the complete one is named
    ``X@GRAD``.

    Args:
        seeds: cotangents from elsewhere, which keep their names.
    """

    def __init__(self, seeds: set[Tensor]) -> None:
        self.seeds = seeds
        self.sums: dict[Tensor, Tensor] = {}
        self.added: set[Tensor] = set()

    def add(self, tensor: Any, cotangent: Any) -> None:
        """Add a term."""
        if tensor not in self.sums:
            self.sums[tensor] = cotangent
            return
        terms = (self.sums[tensor], cotangent)
        for term in terms:
            if (
                isinstance(term, Variable)
                and term.name.startswith(f"{tensor.name}@GRAD")
                and term not in self.seeds
            ):
                term.block.program.rename(term, f"{tensor.name}@PART")
        self.sums[tensor] = OPS["add"].function(*terms)
        self.added.add(tensor)

    def total(self, tensor: Tensor) -> Tensor | None:
        """Return the sum, or None without terms."""
        total = self.sums.get(tensor)
        if tensor in self.added and isinstance(total, Variable):
            total.block.program.rename(total, f"{tensor.name}@GRAD")
            self.added.discard(tensor)
        return total


def _named_gradient(tensor: Tensor, gradient: Tensor | None) -> Variable | None:
    """Return the gradient as a Variable called ``X@GRAD``, numbered if an earlier one has that
    name.
    """
    if gradient is None:
        return None
    name = f"{tensor.name}@GRAD"
    program = default_main_program()
    if (
        isinstance(gradient, Variable)
        and gradient.block is program.current
        and gradient.name.startswith(name)
    ):
        return gradient
    return assign_variable(gradient, name)


def record_minimize(
    loss: Any, optimizer: Any, parameters: Sequence[Any] | None
) -> tuple[list[Operator], list[Any]]:
    """Record the gradients of `loss` and the optimizer's step; used by
    ``optimizer.minimize(loss)``.
    """
    pairs = [
        (p, g)
        for p, g in append_backward(loss, parameters)
        if isinstance(p, Parameter) and g is not None
    ]
    update = Update(optimizer, pairs)
    default_main_program().current.append(update)
    return [update], pairs


def needs_gradient(tensors: Iterable[Any]) -> bool:
    """Whether grad mode is on and a gradient flows to one of `tensors`."""
    return grad_mode.get() and any(isinstance(t, Tensor) and not t._stop_gradient for t in tensors)
