"""The list of what ``layer: {op: …}`` may name, made from the engine: ``python tests/engine/test_operations.py``."""

from __future__ import annotations

import functools
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


REMOVED = (
    "block_diag",
    "cartesian_prod",
    "combinations",
    "crop",
    "frexp",
    "gcd",
    "histogram_bin_edges",
    "lcm",
    "ldexp",
    "linalg.cholesky_inverse",
    "linalg.cond",
    "linalg.householder_product",
    "linalg.lstsq",
    "linalg.lu",
    "linalg.lu_solve",
    "linalg.lu_unpack",
    "linalg.matrix_rank",
    "multigammaln",
    "multiplex",
    "nextafter",
    "nn.functional.adaptive_log_softmax_with_loss",
    "nn.functional.affine_grid",
    "nn.functional.bilinear",
    "nn.functional.channel_shuffle",
    "nn.functional.ctc_loss",
    "nn.functional.dropout1d",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.grid_sample",
    "nn.functional.interpolate",
    "nn.functional.local_response_norm",
    "nn.functional.lp_pool1d",
    "nn.functional.lp_pool2d",
    "nn.functional.max_unpool1d",
    "nn.functional.max_unpool2d",
    "nn.functional.max_unpool3d",
    "nn.functional.maxout",
    "nn.functional.multi_label_margin_loss",
    "nn.functional.multi_label_soft_margin_loss",
    "nn.functional.multi_margin_loss",
    "nn.functional.npair_loss",
    "nn.functional.pdist",
    "nn.functional.temporal_shift",
    "nn.functional.thresholded_relu",
    "nn.functional.upsample",
    "nn.functional.zeropad2d",
    "pdist",
    "renorm",
    "unique_consecutive",
    "vander",
)
"""What the list has for Paddle alone: the engine's stand-ins say to run it there."""


def lines() -> list[str]:
    """The lines of the file."""
    return sorted([*operations(), *REMOVED])


def test_the_list_is_what_the_engine_has_and_what_only_paddle_has() -> None:
    assert FILE.read_text(encoding="utf-8").splitlines() == lines()


@pytest.mark.parametrize("name", REMOVED)
def test_what_only_paddle_has_is_unsupported(name: str) -> None:
    function = functools.reduce(getattr, name.split("."), facade)
    with pytest.raises(UnsupportedError, match="Install Paddle and run with -b paddle"):
        function(facade.ones([1, 2, 4, 4]))


def test_every_operation_of_the_table_that_the_facade_shows_is_on_the_list() -> None:
    """Of those that are differentiable: a gradient that could not be checked would be one that nobody sees."""
    from pylayer.tape.vjp import OPS

    listed = {name.rpartition(".")[2] for name in operations()}
    public = {name for found in MODULES.values() for name in vars(found)}
    assert {name for name, op in OPS.items() if op.differentiable and name in public} <= listed


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
