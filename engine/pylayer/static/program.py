"""Programs: blocks of operators on Variables."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pylayer.static.sizes import UnknownSize
from pylayer.static.values import show
from pylayer.static.variable import Shape, Variable
from pylayer.tape.location import user_location
from pylayer.tape.symbol import Parameter
from pylayer.tensor.tensor import Tensor

_program_ids = itertools.count()


class Operator:
    """A step of a program.

    An operator of a program. `inputs` are the Variables that a gradient may flow to, with None in
    place of a number; `outputs` are its results.
    """

    type = ""
    """The operator's name in a printed program."""

    def __init__(self, inputs: Sequence[Tensor | None] = ()) -> None:
        self.inputs = list(inputs)
        self.outputs: list[Variable] = []
        self.where = user_location()

    def tensors(self) -> list[Tensor]:
        """The Tensors and Variables that it reads, except in blocks inside it."""
        return [t for t in self.inputs if t is not None]

    def reads(self) -> Sequence[Any]:
        """The values that the operator needs in a run: those Tensors, or a call whose saved values
        a gradient reads.
        """
        return self.tensors()

    def blocks(self) -> list[tuple[str, Block]]:
        """The blocks that the operator runs, each with its role."""
        return []

    def expand(self) -> Iterator[Operator]:
        """The operators to differentiate in its place: itself, unless it is only a list of
        others.
        """
        yield self

    def differentiate(
        self, cotangents: Sequence[Tensor | None], wanted: Sequence[int]
    ) -> Sequence[Tensor]:
        """Record the computation of the gradients of the inputs at the positions `wanted`; returns
        these gradients.

        Args: cotangents: one per output, None for an output that is not involved.
        """
        raise NotImplementedError

    def compute(self, run: Any) -> Sequence[Any]:
        """The arrays of the outputs, computed from the values of an `Interpreter`; by default the
        values that the inner blocks assign to the outputs.
        """
        for _, block in self.blocks():
            run.run(block.ops)
        return [run.values[output] for output in self.outputs]

    def show_arguments(self) -> str:
        """The arguments as a printed program shows them."""
        return ", ".join(show(t) for t in self.inputs)

    def lines(self, indent: str) -> Iterator[str]:
        """The operator's line in a printed program, followed by those of its blocks."""
        outputs = ", ".join(output.declaration() for output in self.outputs)
        head = f"{indent}{outputs}{' = ' if outputs else ''}{self.type}({self.show_arguments()})"
        inner = self.blocks()
        if not inner:
            yield head
            return
        yield f"{head} {{"
        for role, block in inner:
            yield f"{indent}  {role}: block {block.idx} {{"
            yield from block.lines(indent + "    ")
            yield f"{indent}  }}"
        yield f"{indent}}}"


def expand_operators(ops: Iterable[Operator]) -> Iterator[Operator]:
    """The operators to differentiate in place of these."""
    return itertools.chain.from_iterable(op.expand() for op in ops)


class Block:
    """A list of operators. A list of operators. A block inside an operator can use the Variables of
    the blocks around it.

    Args:
        branch: whether it runs only sometimes, so that its Variables cannot be used outside.
        sees: blocks whose Variables it may use although they do not enclose it.
    """

    def __init__(
        self,
        program: Program,
        parent: Block | None = None,
        *,
        branch: bool = False,
        sees: Sequence[Block] = (),
    ) -> None:
        self.program = program
        self.parent = parent
        self.branch = branch
        self.sees = list(sees)
        self.ops: list[Operator] = []
        self.idx = len(program.blocks)
        program.blocks.append(self)

    def append(self, op: Operator) -> None:
        """Add an operator."""
        self.ops.append(op)
        self.program.version += 1

    def visible_blocks(self) -> Iterator[Block]:
        """The block, its enclosing blocks, and other blocks that it may read."""
        block: Block | None = self
        while block is not None:
            yield block
            for other in block.sees:
                yield from other.visible_blocks()
            block = block.parent

    def is_certain_to_run(self, visible: Collection[Block] = ()) -> bool:
        """Whether the block always runs: neither it nor an enclosing block is a branch, not
        counting those in `visible`.
        """
        runs = not self.branch or self in visible
        return runs and (self.parent is None or self.parent.is_certain_to_run(visible))

    def variable(self, name: str, shape: Shape, dtype: Any, stop_gradient: bool) -> Variable:
        """A new Variable with a name like `name`; unknown sizes without a Variable become those of
        the new one.
        """
        variable = Variable(self, self.program.unique(name), shape, dtype, stop_gradient)
        for axis, size in enumerate(variable._spec.shape):
            if isinstance(size, UnknownSize) and size.variable is None:
                size.variable, size.axis = variable, axis
        return variable

    def gradient_of(self, source: Any, stop_gradient: bool = False) -> Variable:
        """A new Variable for the gradient of a Tensor."""
        spec = source.array
        return self.variable(f"{source.name}@GRAD", tuple(spec.shape), spec.dtype, stop_gradient)

    @contextmanager
    def as_current(self) -> Iterator[Block]:
        """Append operations to this block within the ``with`` block."""
        before = self.program.current
        self.program.current = self
        try:
            yield self
        finally:
            self.program.current = before

    def lines(self, indent: str) -> Iterator[str]:
        """The lines of its operators in a printed program."""
        for op in self.ops:
            yield from op.lines(indent)

    @property
    def vars(self) -> dict[str, Variable]:
        """The block's Variables by name."""
        return {name: v for name, v in self.program.variables.items() if v.block is self}

    def var(self, name: str) -> Variable:
        """The Variable called `name`.

        Raises:
            ValueError: there is no such Variable.
        """
        return self.program.variable(name)

    def all_parameters(self) -> list[Tensor]:
        """The parameters that the program uses."""
        return self.program.all_parameters()


class Program:
    """A block of operators that an Executor runs; some operators hold further blocks.

    Operations are appended to the default main program, or to that of `program_guard`.
    """

    def __init__(self) -> None:
        self.number = next(_program_ids)
        self.blocks: list[Block] = []
        self.variables: dict[str, Variable] = {}
        self.version = 0
        """A number that grows with every operator."""
        self._name_counts: dict[str, int] = {}
        self.created_parameters: list[Tensor] = []
        """The parameters created for the program, used or not."""
        self.current = Block(self)

    def global_block(self) -> Block:
        """The outermost block."""
        return self.blocks[0]

    def current_block(self) -> Block:
        """The block to which operations are appended."""
        return self.current

    def block(self, index: int) -> Block:
        """Return the block with a number."""
        return self.blocks[index]

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    def unique(self, name: str) -> str:
        """Return `name`, numbered if it is already used."""
        if name not in self.variables:
            return name
        while True:
            self._name_counts[name] = self._name_counts.get(name, 0) + 1
            candidate = f"{name}_{self._name_counts[name]}"
            if candidate not in self.variables:
                return candidate

    def add_variable(self, variable: Variable) -> None:
        """Register a Variable under its name."""
        self.variables[variable.name] = variable

    def rename(self, variable: Variable, name: str) -> None:
        """Give a Variable a name like `name`."""
        del self.variables[variable.name]
        variable.__dict__["name"] = self.unique(name)
        self.variables[variable.name] = variable

    def variable(self, name: str) -> Variable:
        """The Variable called `name`.

        Raises:
            ValueError: there is no such Variable; the message lists similar names.
        """
        if name in self.variables:
            return self.variables[name]
        near = difflib.get_close_matches(name, self.variables, n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"The program has no Variable named {name!r}.{hint}")

    def tensor(self, name: str) -> Tensor:
        """The captured Tensor or the Variable called `name`. Raises ValueError if there is none."""
        named = [t for t in self.captured_tensors() if t.name == name]
        return named[0] if named else self.variable(name)

    def list_vars(self) -> Iterator[Variable]:
        """The program's Variables."""
        return iter(self.variables.values())

    def operators(self) -> Iterator[Operator]:
        """The operators of all blocks."""
        return itertools.chain.from_iterable(block.ops for block in self.blocks)

    def captured_tensors(self) -> list[Tensor]:
        """The Tensors with values that operators use: parameters and constants."""
        tensors = (
            t for op in self.operators() for t in op.tensors() if not isinstance(t, Variable)
        )
        return list(dict.fromkeys(tensors))

    def all_parameters(self) -> list[Tensor]:
        """The parameters that operators use."""
        return [t for t in self.captured_tensors() if isinstance(t, Parameter)]

    def persistables(self) -> list[Tensor]:
        """Values that outlive a run: parameters, and Tensors and Variables that were made
        persistable; the latest first.
        """
        tensors = [
            t
            for t in (*self.created_parameters, *self.captured_tensors(), *self.list_vars())
            if t.persistable
        ]
        return list(dict.fromkeys(tensors))[::-1]

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """The text that ``print`` shows."""
        return str(self)

    def __str__(self) -> str:
        lines = [f"Program {self.number}: {self.num_blocks} blocks {{"]
        lines += [
            f"  {variable.declaration()} = data()"
            for variable in self.variables.values()
            if variable.is_data
        ]
        for tensor in self.captured_tensors():
            kind = "parameter()" if isinstance(tensor, Parameter) else "constant()"
            lines.append(f"  {tensor.name} : {tensor.dtype.name}{list(tensor.shape)} = {kind}")
        return "\n".join([*lines, *self.global_block().lines("  "), "}"])

    def __repr__(self) -> str:
        return str(self)
