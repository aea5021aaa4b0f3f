"""Interpretation of a program: its operators run one by one, and a value is dropped after its last
use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pylayer.static.program import Operator
from pylayer.static.sizes import UnknownSize
from pylayer.static.values import substitute
from pylayer.tensor.array import Array, as_array
from pylayer.tensor.tensor import Tensor


def uses(op: Operator) -> Iterator[Any]:
    """The Tensors that an operator, or a block inside it, reads or makes."""
    yield from op.outputs
    yield from op.reads()
    for _, block in op.blocks():
        for inner in block.ops:
            yield from uses(inner)


class Interpreter:
    """One run of a program: the arrays of its Tensors and Variables, and the nodes of calls whose
    gradients are computed, each kept as long as it is needed.
    """

    def __init__(self, array_type: type) -> None:
        self.array_type = array_type
        self.values: dict[Any, Array] = {}

    def run(self, ops: Iterable[Operator]) -> None:
        """Run operators; an error gets a note on where the failing operator was recorded."""
        for op in ops:
            try:
                outputs = op.compute(self)
            except Exception as error:
                if not op.blocks():
                    call = f"{op.type}({op.show_arguments()})"
                    error.add_note(f"in {call} of the program, recorded at {op.where}")
                raise
            for tensor, array in zip(op.outputs, outputs, strict=True):
                self.values[tensor] = as_array(array, self.array_type)

    def run_program(self, ops: Iterable[Operator], keep: Collection[Tensor]) -> None:
        """Run a program's operators, and drop each value after its last use, except `keep`."""
        last_use = {used: op for op in ops for used in uses(op)}
        unused: dict[Operator, list[Any]] = {}
        for used, op in last_use.items():
            unused.setdefault(op, []).append(used)
        for op in ops:
            self.run([op])
            for used in unused.get(op, ()):
                if used not in keep:
                    self.values.pop(used, None)

    def as_tensor(self, tensor: Tensor) -> Tensor:
        """The value of a Tensor or Variable, as a Tensor of dynamic mode."""
        return Tensor(self.values[tensor])

    def size(self, size: UnknownSize) -> int:
        """The value of an unknown size in this run."""
        assert size.variable is not None
        return int(self.values[size.variable].shape[size.axis])

    def arrays_in(self, value: Any) -> Any:
        """`value` with arrays in place of Tensors and Variables, and numbers in place of sizes."""
        return substitute(value, self.values.__getitem__, self.size)

    def tensors_in(self, value: Any) -> Any:
        """`value` with Tensors of dynamic mode in place of Variables, and numbers in place of
        sizes.
        """
        return substitute(value, self.as_tensor, self.size)
