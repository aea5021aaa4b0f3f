"""An operation's piece of its line is found in the file, also in an indented block."""

from __future__ import annotations

import dis
from pathlib import Path

import pytest

from gradcheck.causes.words import source_place

BLOCK = """
class Layer:
    def whole(ctx, x): return x * 2
    def below(ctx, x):
        y = -x; return x * 2
"""


@pytest.mark.parametrize("indent", [0, 6])
@pytest.mark.parametrize("name", ["whole", "below"])
def test_the_columns_of_a_product_are_its_own(name: str, indent: int, tmp_path: Path) -> None:
    path = tmp_path / "own.grad.yaml"
    path.write_text("".join(f"{' ' * indent}{line}\n" for line in BLOCK.splitlines()))
    names: dict[str, type] = {}
    exec(compile(BLOCK, str(path), "exec"), names)
    code = vars(names["Layer"])[name].__code__
    (offset,) = (step.offset for step in dis.get_instructions(code) if step.opname == "BINARY_OP")
    place = source_place((code, offset))
    assert place.source[place.column : place.end_column] == "x * 2"
    assert place.file == str(path)
