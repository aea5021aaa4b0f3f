"""A layer of a world of ranks gets a backward with collectives, which passes on worlds of two sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck import replicated
from gradcheck.deriving.derived import Derived
from gradcheck.result import Status

PyLayer: Any = paddle.autograd.PyLayer
dist: Any = paddle.distributed
RANKS = 3


def values(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(shape)


SPLIT = values(RANKS, 6, 2)
SAME = replicated(values(6, 2))
WEIGHTS = values(RANKS, 2, 4)


class Copy(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x.clone()


class Sum(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y


class SumLater(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        task = dist.all_reduce(y, sync_op=False)
        task.wait()
        return y


class Mean(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, op=dist.ReduceOp.AVG)
        return y


class Gather(PyLayer):
    @staticmethod
    def forward(ctx, x):
        parts = []
        dist.all_gather(parts, x)
        return paddle.concat(parts, 0)


class Scatter(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.empty([x.shape[0] // dist.get_world_size(), *x.shape[1:]], x.dtype)
        dist.reduce_scatter(y, x)
        return y


class Part(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return paddle.split(x, dist.get_world_size(), 0)[dist.get_rank()]


class Exchange(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.empty_like(x)
        dist.alltoall_single(out_tensor=y, in_tensor=x)
        return y


class FromRoot(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.broadcast(y, src=0)
        return y


class Linear(PyLayer):
    @staticmethod
    def forward(ctx, x, w):
        return paddle.matmul(x, w)


SENT = "paddle.distributed"
CASES: dict[str, tuple[Any, list[Any], str, str]] = {
    "what all ranks have, used by each": (
        Copy, [SAME], "split", f"dx2 = dx.clone()\n{SENT}.all_reduce(dx2)\nreturn dx2",
    ),
    "a sum that all have": (Sum, [SPLIT], "replicated", "return dy"),
    "a sum that counts on each rank": (Sum, [SPLIT], "split", f"dx = dy.clone()\n{SENT}.all_reduce(dx)\nreturn dx"),
    "a call that is waited for": (SumLater, [SPLIT], "replicated", "x, = ctx.saved_tensor()\nreturn 2 * dy * x"),
    "a mean": (Mean, [SPLIT], "replicated", f"return dy / {SENT}.get_world_size()"),
    "parts that all have": (
        Gather, [SPLIT], "replicated",
        f"dx = dy.reshape([{SENT}.get_world_size(), ctx.x_shape[0], dy.shape[1]])[{SENT}.get_rank()]\nreturn dx",
    ),
    "parts that count on each rank": (
        Gather, [SPLIT], "split",
        f"dx = paddle.zeros(ctx.x_shape, dtype=dy.dtype)\n{SENT}.reduce_scatter(dx, dy)\nreturn dx",
    ),
    "a part of a sum": (
        Scatter, [SPLIT], "split", f"dx = []\n{SENT}.all_gather(dx, dy)\ndx = paddle.concat(dx)\nreturn dx",
    ),
    "a part of what all have": (
        Part, [SAME], "split", f"dx = []\n{SENT}.all_gather(dx, dy)\ndx = paddle.concat(dx)\nreturn dx",
    ),
    "parts of all ranks": (
        Exchange, [SPLIT], "split",
        f"dx = paddle.zeros_like(dy)\n{SENT}.alltoall_single(out_tensor=dx, in_tensor=dy)\nreturn dx",
    ),
    "the Tensor of a root": (
        FromRoot, [SPLIT], "replicated", f"return dy if {SENT}.get_rank() == 0 else paddle.zeros_like(dy)",
    ),
    "columns of weights": (
        Linear, [SAME, WEIGHTS], "split",
        f"x, w = ctx.saved_tensor()\ndx = paddle.matmul(dy, w, transpose_y=True)\n{SENT}.all_reduce(dx)\n"
        "dw = paddle.matmul(x, dy, transpose_x=True)\nreturn dx, dw",
    ),
}  # fmt: skip


def derived_of(layer: Any, *inputs: Any, outputs: str = "split") -> Derived:
    return gradcheck.derive(layer, *inputs, world=RANKS, outputs=outputs)


@pytest.mark.parametrize("name", CASES)
def test_the_backward_has_the_collectives_that_are_due(name: str) -> None:
    layer, inputs, outputs, backward = CASES[name]
    derived = derived_of(layer, *inputs, outputs=outputs)
    assert derived.backward == backward, derived.refused
    assert any(f"on {RANKS} ranks" in place for place in derived.checked_at)
    assert any(f"on {RANKS + 1} ranks" in place or f"on {2 * RANKS} ranks" in place for place in derived.checked_at)


def test_the_code_passes_on_another_number_of_ranks() -> None:
    scope = {"paddle": paddle, "PyLayer": PyLayer, "dist": dist}
    code = derived_of(Scatter, SPLIT).code
    exec(code[code.index("class ") :], scope)
    assert gradcheck.check(scope["Scatter"], values(2, 4, 3), world=2).verdict is Status.PASS


# --------------------------------------------------------------------------- what is refused
class Ring(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = paddle.empty_like(x)
        rank, size = dist.get_rank(), dist.get_world_size()
        tasks = [dist.isend(x, (rank + 1) % size), dist.irecv(y, (rank - 1) % size)]
        for task in tasks:
            task.wait()
        return y


class Greatest(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, op=dist.ReduceOp.MAX)
        return y * x


class Branch(PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 2 if dist.get_rank() == RANKS - 1 else x * 3


class InGroup(PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y, group=dist.new_group([0, 1, 2]))
        return y


@pytest.mark.parametrize(
    ("layer", "outputs", "reason"),
    [
        (Ring, "split", "forward calls send or recv: its gradient is not derived"),
        (Greatest, "split", "the derived code did not pass"),
        (Branch, "split", "the derived code did not pass"),
        (InGroup, "split", "forward calls new_group: its gradient is not derived"),
        (Copy, "replicated", "an output is declared replicated, but each rank computes its own"),
    ],
)
def test_what_cannot_be_derived_is_refused(layer: Any, outputs: str, reason: str) -> None:
    assert reason in derived_of(layer, SPLIT, outputs=outputs).refused


def test_without_a_world_a_layer_that_uses_others_asks_for_one() -> None:
    assert gradcheck.derive(Sum, values(6, 2)).refused.endswith("give their number, as in world=4")
    with pytest.raises(TypeError, match="give world=4"):
        gradcheck.derive(Copy, SAME)
