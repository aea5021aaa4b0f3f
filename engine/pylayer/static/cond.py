"""`cond`: one of two blocks, chosen when the program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pylayer.ops.creation import to_tensor
from pylayer.static.backward import filled_like, pull_back
from pylayer.static.current_program import default_main_program
from pylayer.static.operators import Assign
from pylayer.static.program import Block, Operator, expand_operators
from pylayer.static.recorder import current_block_for, in_dynamic_mode
from pylayer.static.sizes import UnknownSize
from pylayer.static.structure import leaves, rebuild
from pylayer.static.variable import Shape, Variable
from pylayer.tape.grad_mode import grad_mode
from pylayer.tensor.nested import mapped
from pylayer.tensor.tensor import Tensor


class Conditional(Operator):
    """The operator that runs one of its two blocks, each of which ends with assignments to the
    outputs.

    Its inputs are the outside values that the blocks use.
    """

    type = "cond"

    def __init__(self, condition: Tensor, branches: Sequence[Block]) -> None:
        super().__init__()
        self.condition = condition
        self.branches = list(branches)

    def close(self) -> None:
        """Collect the inputs, once the blocks are complete."""
        ops = [op for block in self.branches for op in expand_operators(run_in(block))]
        produced = {output for op in ops for output in op.outputs}
        used = dict.fromkeys(t for op in ops for t in op.inputs if t is not None)
        self.inputs = [t for t in used if t not in produced]

    def tensors(self) -> list[Tensor]:
        return [self.condition, *super().tensors()]

    def show_arguments(self) -> str:
        return self.condition.name

    def compute(self, run: Any) -> Sequence[Any]:
        condition = run.values[self.condition].reshape(-1)[0].item()
        run.run(self.branches[0 if condition else 1].ops)
        return [run.values[output] for output in self.outputs]

    def blocks(self) -> list[tuple[str, Block]]:
        return list(zip(("true", "false"), self.branches, strict=True))

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        """Record a conditional on the same condition whose blocks are the gradients of this one's
        blocks.
        """
        enclosing = default_main_program().current
        sources: list[Any] = [self.inputs[k] for k in wanted]
        seeds = [
            (output, c) for output, c in zip(self.outputs, cotangents, strict=True) if c is not None
        ]
        conditional = Conditional(self.condition, [])
        conditional.outputs = [enclosing.gradient_of(source) for source in sources]
        for branch in self.branches:
            block = Block(enclosing.program, enclosing, branch=True, sees=[branch])
            with block.as_current():
                gradients = pull_back(run_in(branch), seeds, sources)
                for source, output in zip(sources, conditional.outputs, strict=True):
                    gradient = (
                        gradients[source] if source in gradients else filled_like(source, 0.0)
                    )
                    block.append(Assign(gradient, output))
            conditional.branches.append(block)
        conditional.close()
        enclosing.append(conditional)
        return conditional.outputs


def run_in(branch: Block) -> list[Operator]:
    """The operators of a branch; for the gradient of a branch, these follow those of the branch
    itself.
    """
    return [
        op
        for block in (*branch.sees, branch)
        for op in (block.ops if block is branch else run_in(block))
    ]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Any = None,
) -> Any:
    """Return `true_fn`'s result if `pred` is true in the run, otherwise `false_fn`'s.

    Both are called while the program is built. In dynamic mode, or for a condition that already has
    a value, only the chosen function is called.

    Args:
        pred: a bool of one element; while a program is built it may have several, of which the
            first counts, as in Paddle.
        true_fn, false_fn: without arguments; return Variables in the same nested lists and tuples,
            of the same dtypes, or None.

    Raises:
        TypeError: a function is not callable, or `pred` is not bool.
        ValueError: the structures, dtypes or numbers of dimensions differ.
    """
    functions = [nothing if function is None else function for function in (true_fn, false_fn)]
    for role, function in zip(("true_fn", "false_fn"), functions, strict=True):
        if not callable(function):
            raise TypeError(
                f"The {role} in cond must be callable, but received {type(function).__name__}."
            )
    if in_dynamic_mode() or not isinstance(pred, Variable):
        return functions[not bool(pred)]()
    if pred.dtype.name != "bool":
        raise TypeError(f"The pred of cond must be a bool, but it is {pred.describe()}.")
    enclosing = current_block_for(pred)
    conditional, returned = Conditional(pred, []), []
    for function in functions:
        block = Block(enclosing.program, enclosing, branch=True)
        conditional.branches.append(block)
        with block.as_current():
            returned.append(function())
    results = _merge_results(
        conditional, enclosing, name or f"cond_{enclosing.program.version}", returned
    )
    conditional.close()
    enclosing.append(conditional)
    return rebuild(returned[0], results)


def nothing() -> None:
    """The function in place of an omitted branch."""


def _merge_results(
    op: Conditional, enclosing: Block, stem: str, returned: Sequence[Any]
) -> list[Any]:
    """The outputs, one per pair of the branches' results."""
    first, second = leaves(returned[0]), leaves(returned[1])
    if _structure_of(returned[0]) != _structure_of(returned[1]):
        raise ValueError(
            f"true_fn and false_fn of the cond at {op.where} must return the same nest structure, "
            f"but they return {len(first)} and {len(second)} values in "
            f"{_structure_of(returned[0])} and {_structure_of(returned[1])}."
        )
    results: list[Any] = []
    for k, pair in enumerate(zip(first, second, strict=True)):
        if pair[0] is None and pair[1] is None:
            results.append(None)
            continue
        sides = [_as_tensor(block, value) for block, value in zip(op.branches, pair, strict=True)]
        true_side, false_side = sides
        if true_side.dtype is not false_side.dtype or true_side.ndim != false_side.ndim:
            raise ValueError(
                f"true_fn and false_fn of the cond at {op.where} must return values of the same "
                f"dtype and number of dimensions, but value {k} is {true_side.dtype.name} "
                f"{true_side.shape} and {false_side.dtype.name} {false_side.shape}."
            )
        stop = not grad_mode.get() or all(side._stop_gradient for side in sides)
        output = enclosing.variable(
            f"{stem}.out_{k}", _common_shape(true_side, false_side), true_side.array.dtype, stop
        )
        for block, side in zip(op.branches, sides, strict=True):
            block.append(Assign(side, output))
        op.outputs.append(output)
        results.append(output)
    return results


def _structure_of(value: Any) -> Any:
    """A nested structure with "*" in place of its values, for comparison and messages."""
    return mapped(value, lambda leaf: None if leaf is None else "*")


def _as_tensor(block: Block, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, (bool, int, float)):
        raise ValueError(
            f"a function of cond must return Variables or numbers, but got {type(value).__name__}."
        )
    with block.as_current():
        return to_tensor(value)


def _common_shape(first: Tensor, second: Tensor) -> Shape:
    """The shape on which both branches agree, with a new unknown size where they differ."""
    pairs = zip(first.array.shape, second.array.shape, strict=True)
    return tuple(
        m if m is n or (m == n and isinstance(m, int)) else UnknownSize() for m, n in pairs
    )
