"""Programs as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pylayer.static.operators import Operator
from pylayer.static.variable import Variable

if TYPE_CHECKING:
    from pylayer.static.program import Block, Program


def program_text(program: Program) -> str:
    """A line per operator, the blocks of an operator indented below it."""
    lines = [f"Program {program.number}: {program.num_blocks} blocks {{"]
    for variable in program.variables.values():
        if variable.is_data:
            lines.append(f"  {typed(variable)} = data()")
    for tensor in program.captured():
        lines.append(f"  {tensor.name} : {tensor.dtype.name}{list(tensor.shape)} = {kind_of(tensor)}")
    lines += block_lines(program.global_block(), "  ")
    return "\n".join([*lines, "}"])


def kind_of(tensor: object) -> str:
    """Whether a Tensor with values is a parameter or a constant."""
    return "parameter()" if type(tensor).__name__ == "Parameter" else "constant()"


def block_lines(block: Block, indent: str) -> Iterator[str]:
    """The lines of a block."""
    for op in block.ops:
        yield from operator_lines(op, indent)


def operator_lines(op: Operator, indent: str) -> Iterator[str]:
    """The line of an operator, and those of its blocks."""
    outs = ", ".join(map(typed, op.outputs))
    head = f"{indent}{outs}{' = ' if outs else ''}{op.type}({op.shown()})"
    inner = op.blocks()
    if not inner:
        yield head
        return
    yield f"{head} {{"
    for role, block in inner:
        yield f"{indent}  {role}: block {block.idx} {{"
        yield from block_lines(block, indent + "    ")
        yield f"{indent}  }}"
    yield f"{indent}}}"


def typed(variable: Variable) -> str:
    """A Variable with its dtype, shape and, if so, that gradients stop there."""
    shape = ", ".join(map(str, variable._spec.shape))
    stop = " stop_gradient" if variable._stop_gradient else ""
    return f"{variable.name} : {variable.dtype.name}[{shape}]{stop}"
