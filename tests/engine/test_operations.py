"""The list of what ``layer: {op: …}`` may name, made from the engine: ``python tests/engine/test_operations.py``."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

import pylayer.paddle as facade

FILE = Path(__file__).parents[2] / "gradcheck" / "spec" / "operations.txt"
MODULES = {"": facade, "linalg.": facade.linalg, "nn.functional.": facade.nn.functional}
"""Where the documents have functions of Tensors."""
DEFINED_IN = ("pylayer.fast_calls", "pylayer.op", "pylayer.ops.", "pylayer.nn.")
"""Where the engine defines operations. Devices, modes, dtypes, parameters and programs are elsewhere."""
NOT_THE_SAME_TWICE = (
    "pylayer.ops.random", "pylayer.nn.initializer", "dropout", "dropout2d", "dropout3d", "alpha_dropout", "rrelu",
    "gumbel_softmax", "rand_like", "randn_like", "empty", "empty_like", "fractional_max_pool2d",
    "fractional_max_pool3d", "increment",
)  # fmt: skip
"""Modules and names."""


def operations() -> list[str]:
    """The public functions that only compute: none that draws at random, works in place, or shows what memory held."""
    return sorted(
        f"{module}{name}"
        for module, found in MODULES.items()
        for name, value in vars(found).items()
        if isinstance(value, FunctionType)
        and value.__module__.startswith(DEFINED_IN)
        and not name.startswith("_")
        and not name.endswith("_")
        and not {name, value.__module__} & set(NOT_THE_SAME_TWICE)
    )


def test_the_list_is_what_the_engine_has() -> None:
    assert FILE.read_text(encoding="utf-8").split("\n") == [*operations(), ""]


def test_every_operation_of_the_table_that_the_facade_shows_is_on_the_list() -> None:
    """Of those that are differentiable: a gradient that could not be checked would be one that nobody sees."""
    from pylayer.vjp import OPS

    listed = {name.rpartition(".")[2] for name in operations()}
    public = {name for found in MODULES.values() for name in vars(found)}
    assert {name for name, op in OPS.items() if op.differentiable and name in public} <= listed


if __name__ == "__main__":
    FILE.write_text("\n".join(operations()) + "\n", encoding="utf-8")
