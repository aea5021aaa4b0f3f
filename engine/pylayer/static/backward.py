"""Gradients of a program, as further operators of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pylayer.ops.creation import full_like
from pylayer.static.in_use import default_main_program
from pylayer.static.program import Operator
from pylayer.static.recorder import ProgramRecorder, assigned, check_static, current_block_for
from pylayer.static.update import Update
from pylayer.static.variable import Variable, current
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
    """The gradients of the sum of `targets`, each times its target gradient, with respect to `inputs`.

    They are Variables named ``X@GRAD``; None for an input that no target depends on, or whose stop_gradient is True
    (observed rule 71).

    Args:
        targets: a Variable or a list of them; so are `inputs`, which may be parameters too.
        target_gradients: per target its cotangent, of the target's shape, or None for ones.
        no_grad_set: Variables, or their names, through which no gradient flows.

    Raises:
        AssertionError: the mode is dynamic.
        TypeError: something is not a Variable.
        ValueError: the numbers or shapes of targets and their gradients differ, or a backward_fn breaks its rules.
    """
    check_static("paddle.static.gradients")
    targets, inputs, target_gradients = current(targets), current(inputs), current(target_gradients)
    ends, wanted = _as_list(targets, "targets"), _as_list(inputs, "inputs")
    given = (
        [None] * len(ends)
        if target_gradients is None
        else _as_list(target_gradients, "target_gradients", True)
    )
    if len(given) != len(ends):
        raise ValueError(
            f"gradients: {len(ends)} targets need as many target_gradients, but got {len(given)}."
        )
    for end, cotangent in zip(ends, given, strict=True):
        if cotangent is not None and not fits(cotangent, end):
            raise ValueError(
                f"gradients: a target gradient must have the shape of its target: {_described(cotangent)} is for "
                f"{_described(end)}."
            )
    current_block_for([*ends, *wanted, *given])
    seeds = [
        (end, cotangent)
        for end, cotangent in zip(ends, given, strict=True)
        if not end._stop_gradient
    ]
    found = pull_back(_operators_so_far(), seeds, wanted, _barred(no_grad_set))
    return [_named_gradient(tensor, found.get(tensor)) for tensor in wanted]


def append_backward(
    loss: Variable,
    parameter_list: Sequence[Any] | None = None,
    no_grad_set: Iterable[Any] | None = None,
    callbacks: Any = None,
    checkpoints: Any = None,
) -> list[tuple[Tensor, Variable | None]]:
    """The gradients of `loss` with respect to parameters, each with its parameter; None where there is none.

    Args:
        loss: of several elements it is their sum.
        parameter_list: the parameters, or other Tensors, or their names; by default whatever the program has that is
            persistable, as parameters are, the one made last first.

    Raises:
        TypeError: `loss` is not a Variable.
    """
    check_static("paddle.static.append_backward")
    if not isinstance(loss, Variable):
        raise TypeError(
            f"The loss of append_backward must be a Variable, but received {type(loss).__name__}."
        )
    program = default_main_program()
    parameters = [
        _by_name(p) for p in (program.persistables() if parameter_list is None else parameter_list)
    ]
    return list(zip(parameters, gradients([loss], parameters, None, no_grad_set), strict=True))


def _as_list(value: Any, what: str, none_allowed: bool = False) -> list[Any]:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, Tensor) and not (none_allowed and item is None):
            raise TypeError(
                f"The {what} of gradients must be Variables, but received {type(item).__name__}."
            )
    return items


def _described(tensor: Tensor) -> str:
    return (
        tensor.described() if isinstance(tensor, Variable) else f"a Tensor of shape {tensor.shape}"
    )


def _by_name(value: Any) -> Tensor:
    if not isinstance(value, str):
        return _as_list(current(value), "parameter_list")[0]  # type: ignore[no-any-return]
    program = default_main_program()
    named = [t for t in program.captured() if t.name == value]
    return named[0] if named else program.variable(value)


def _barred(no_grad_set: Iterable[Any] | None) -> set[Tensor]:
    return {_by_name(value) for value in no_grad_set or ()}


def _operators_so_far() -> list[Operator]:
    """The operators that run before the next one that is appended, those around first."""
    blocks = dict.fromkeys(default_main_program().current.around())
    return [op for block in reversed(blocks) for op in block.ops]


def fits(gradient: Tensor, tensor: Tensor) -> bool:
    """Whether two shapes may be the same: a size known only in the run fits any other."""
    one, other = gradient.array.shape, tensor.array.shape
    return len(one) == len(other) and all(
        m == n for m, n in zip(one, other, strict=True) if isinstance(m, int) and isinstance(n, int)
    )


def filled_like(tensor: Tensor, value: float) -> Variable:
    """A Variable of the shape and dtype of `tensor`, all elements `value`."""
    return ProgramRecorder().call(full_like, (tensor, value), {})  # type: ignore[no-any-return]


def pull_back(
    operators: Sequence[Operator],
    seeds: Sequence[tuple[Tensor, Tensor | None]],
    wanted: Sequence[Tensor],
    barred: set[Tensor] | None = None,
) -> dict[Tensor, Tensor]:
    """Record the cotangents of `wanted`, given those of the `seeds` (ones for None), through `operators`."""
    barred = barred or set()
    flat = [part for op in operators for part in op.expanded()]
    reach = {t for t in wanted if not t._stop_gradient}
    through: list[tuple[Operator, list[int]]] = []
    for op in flat:
        positions = [
            k
            for k, t in enumerate(op.inputs)
            if t is not None and not t._stop_gradient and t in reach
        ]
        if positions:
            through.append((op, positions))
            reach.update(out for out in op.outputs if not out._stop_gradient and out not in barred)
    sums = Sums({cotangent for _, cotangent in seeds if cotangent is not None})
    for target, cotangent in seeds:
        if target in reach:
            sums.add(target, filled_like(target, 1.0) if cotangent is None else cotangent)
    for op, positions in reversed(through):
        cotangents = [sums.total(out) for out in op.outputs]
        if all(cotangent is None for cotangent in cotangents):
            continue
        found = op.differentiated(cotangents, positions)
        for k in positions:
            tensor, gradient = op.inputs[k], found[k]
            if tensor is not None and gradient is not None and tensor not in barred:
                sums.add(tensor, gradient)
    return {t: total for t in wanted if t in reach and (total := sums.total(t)) is not None}


class Sums:
    """The cotangents of Tensors, each added up as its parts come in; the complete one is called ``X@GRAD``.

    Args:
        given: the cotangents that keep their names, being others'.
    """

    def __init__(self, given: set[Tensor]) -> None:
        self.given = given
        self.sums: dict[Tensor, Tensor] = {}
        self.added: set[Tensor] = set()

    def add(self, tensor: Tensor, part: Tensor) -> None:
        """One more part."""
        if tensor not in self.sums:
            self.sums[tensor] = part
            return
        parts = (self.sums[tensor], part)
        for one in parts:
            if (
                isinstance(one, Variable)
                and one.name.startswith(f"{tensor.name}@GRAD")
                and one not in self.given
            ):
                one.block.program.rename(one, f"{tensor.name}@PART")
        self.sums[tensor] = OPS["add"].function(*parts)
        self.added.add(tensor)

    def total(self, tensor: Tensor) -> Tensor | None:
        """The sum; None if there is no part."""
        total = self.sums.get(tensor)
        if tensor in self.added and isinstance(total, Variable):
            total.block.program.rename(total, f"{tensor.name}@GRAD")
            self.added.discard(tensor)
        return total


def _named_gradient(tensor: Tensor, gradient: Tensor | None) -> Variable | None:
    """The gradient as a Variable called ``X@GRAD``, with a number if there is one of that name from before."""
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
    return assigned(gradient, name)


def minimized(
    loss: Any, optimizer: Any, parameters: Sequence[Any] | None
) -> tuple[list[Operator], list[Any]]:
    """Record the gradients of `loss` and the optimizer's step; what ``optimizer.minimize(loss)`` does."""
    pairs = [
        (p, g)
        for p, g in append_backward(loss, parameters)
        if isinstance(p, Parameter) and g is not None
    ]
    return stepped(optimizer, pairs), pairs


def stepped(optimizer: Any, pairs: Sequence[Any]) -> list[Operator]:
    """Record the optimizer's step on parameters with their gradients."""
    update = Update(optimizer, pairs)
    default_main_program().current.append(update)
    return [update]


def needs_gradient(tensors: Iterable[Any]) -> bool:
    """Whether a gradient flows to one of `tensors`, and grad mode is on."""
    return grad_mode.get() and any(isinstance(t, Tensor) and not t._stop_gradient for t in tensors)
