"""The list of what ``layer: {op: …}`` may name, made from the engine: ``python tests/engine/test_operations.py``."""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from types import FunctionType

import pytest

import pylayer.paddle as facade
from pylayer.tensor.invalid import UnsupportedError

FILE = Path(__file__).parents[2] / "gradcheck" / "spec" / "operations.txt"
MODULES = {"": facade, "linalg.": facade.linalg, "nn.functional.": facade.nn.functional}
"""Where the documents have functions of Tensors."""
DEFINED_IN = ("pylayer.fast", "pylayer.tape.op", "pylayer.ops.", "pylayer.nn.")
"""Where the engine defines operations. Devices, modes, dtypes, parameters and programs are elsewhere."""
NOT_THE_SAME_TWICE = (
    "pylayer.ops.random", "pylayer.nn.initializer", "dropout",
    "gumbel_softmax", "rand_like", "randn_like", "empty", "empty_like", "increment",
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


def described(name: str) -> str:
    """The line of an operation: its name, and the least and the most arguments."""
    function = functools.reduce(getattr, name.split("."), facade)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "name"]
    least = sum(p.default is p.empty for p in named)
    most = "*" if any(p.kind is p.VAR_POSITIONAL for p in parameters) else str(len(named))
    return f"{name} {least} {most}"


REMOVED = (
    "block_diag 1 1",
    "cartesian_prod 1 1",
    "combinations 1 3",
    "crop 1 3",
    "frexp 1 1",
    "gcd 2 2",
    "histogram_bin_edges 1 4",
    "lcm 2 2",
    "ldexp 2 2",
    "linalg.cholesky_inverse 1 2",
    "linalg.cond 1 2",
    "linalg.householder_product 2 2",
    "linalg.lstsq 2 4",
    "linalg.lu 1 3",
    "linalg.lu_solve 3 4",
    "linalg.lu_unpack 2 4",
    "linalg.matrix_rank 1 5",
    "multigammaln 2 2",
    "multiplex 2 2",
    "nextafter 2 2",
    "nn.functional.adaptive_log_softmax_with_loss 5 6",
    "nn.functional.affine_grid 2 3",
    "nn.functional.bilinear 3 4",
    "nn.functional.channel_shuffle 2 3",
    "nn.functional.ctc_loss 4 8",
    "nn.functional.dropout1d 1 4",
    "nn.functional.feature_alpha_dropout 1 3",
    "nn.functional.grid_sample 2 5",
    "nn.functional.interpolate 1 9",
    "nn.functional.local_response_norm 2 6",
    "nn.functional.lp_pool1d 3 7",
    "nn.functional.lp_pool2d 3 7",
    "nn.functional.max_unpool1d 3 7",
    "nn.functional.max_unpool2d 3 7",
    "nn.functional.max_unpool3d 3 7",
    "nn.functional.maxout 2 3",
    "nn.functional.multi_label_margin_loss 2 3",
    "nn.functional.multi_label_soft_margin_loss 2 4",
    "nn.functional.multi_margin_loss 2 6",
    "nn.functional.npair_loss 3 4",
    "nn.functional.pdist 1 2",
    "nn.functional.temporal_shift 2 4",
    "nn.functional.thresholded_relu 1 3",
    "nn.functional.upsample 1 7",
    "nn.functional.zeropad2d 2 3",
    "pdist 1 2",
    "renorm 4 4",
    "unique_consecutive 1 5",
    "vander 1 3",
)
"""What the list has for Paddle alone: the engine's stand-ins say to run it there."""


def lines() -> list[str]:
    """The lines of the file."""
    return sorted([*map(described, operations()), *REMOVED], key=lambda line: line.split()[0])


def test_the_list_is_what_the_engine_has_and_what_only_paddle_has() -> None:
    assert FILE.read_text(encoding="utf-8").splitlines() == lines()


@pytest.mark.parametrize("line", REMOVED)
def test_what_only_paddle_has_is_unsupported(line: str) -> None:
    function = functools.reduce(getattr, line.split()[0].split("."), facade)
    with pytest.raises(UnsupportedError, match="Install Paddle and run with -b paddle"):
        function(facade.ones([1, 2, 4, 4]))


@pytest.mark.parametrize("line", ["tanh 1 1", "add 2 2", "matmul 2 4", "sum 1 4", "concat 1 2", "einsum 1 *"])
def test_what_a_line_says(line: str) -> None:
    assert described(line.split()[0]) == line


def test_every_operation_of_the_table_that_the_facade_shows_is_on_the_list() -> None:
    """Of those that are differentiable: a gradient that could not be checked would be one that nobody sees."""
    from pylayer.tape.vjp import OPS

    listed = {name.rpartition(".")[2] for name in operations()}
    public = {name for found in MODULES.values() for name in vars(found)}
    assert {name for name, op in OPS.items() if op.differentiable and name in public} <= listed


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
