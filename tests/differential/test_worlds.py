"""Layers of several ranks on a real Paddle: a process per rank, the same verdicts as on the engine."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

import gradcheck
from gradcheck.result import Status

DRAW = np.random.default_rng(0).standard_normal


@pytest.fixture
def all_gather(real: Any) -> Any:
    """Makes a layer that gathers the ranks' rows, of what its backward returns."""
    dist = real.distributed

    def made(backward: Any) -> Any:
        class AllGather(real.autograd.PyLayer):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                parts: list[Any] = []
                dist.all_gather(parts, x)
                return real.concat(parts, 0)

            @staticmethod
            def backward(ctx: Any, dy: Any) -> Any:
                return backward(dy)

        return AllGather

    return made


def summed_rows(real: Any, dy: Any) -> Any:
    """The rank's rows of the sum of what all ranks get."""
    part = real.empty([dy.shape[0] // real.distributed.get_world_size(), *dy.shape[1:]], dy.dtype)
    real.distributed.reduce_scatter(part, dy)
    return part


def own_rows(real: Any, dy: Any) -> Any:
    """The rank's rows of what it gets itself."""
    return real.split(dy, real.distributed.get_world_size(), 0)[real.distributed.get_rank()]


@pytest.mark.parametrize("size", [2, 4])
def test_the_same_layer_is_right_and_wrong_as_on_the_engine(real: Any, all_gather: Any, size: int) -> None:
    x = DRAW((size, 2, 3))
    right = gradcheck.check(all_gather(lambda dy: summed_rows(real, dy)), x, world=size)
    assert right.verdict is Status.PASS, right
    wrong = gradcheck.check(all_gather(lambda dy: own_rows(real, dy)), x, world=size)
    assert wrong.verdict is Status.FAIL
    assert [d.code for d in wrong.diagnosis] == ["GC152"]
    assert "test_worlds.py" in wrong.diagnosis[0].line
    replicated = gradcheck.check(all_gather(lambda dy: own_rows(real, dy)), x, world=size, outputs="replicated")
    assert replicated.verdict is Status.PASS, replicated


def test_ranks_that_wait_for_each_other_are_seen_at_once_and_no_process_is_left(real: Any) -> None:
    class Half(real.autograd.PyLayer):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            if real.distributed.get_rank():
                real.distributed.all_reduce(dy)
            return dy

    began = time.monotonic()
    found = gradcheck.check(Half, DRAW((3, 2)), world=3)
    assert time.monotonic() - began < 20
    assert [d.code for d in found.diagnosis] == ["GC164"]
    assert "rank 0 has returned; ranks 1 and 2 wait in all_reduce" in found.diagnosis[0].text
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_rank_that_dies_or_raises_is_told(real: Any) -> None:
    here = os.getpid()

    def dies(x: Any) -> Any:
        if os.getpid() != here and real.distributed.get_rank() == 1:  # on the engine ranks are of this process
            os.abort()
        return x * 2

    def raises(x: Any) -> Any:
        if real.distributed.get_rank() == 1:
            raise KeyError("weights")
        real.distributed.barrier()
        return x * 2

    with pytest.raises(RuntimeError, match="the process of rank 1 died of SIGABRT"):
        gradcheck.check(dies, DRAW((2, 2)), world=2)
    with pytest.raises(KeyError, match="weights") as error:
        gradcheck.check(raises, DRAW((2, 2)), world=2)
    assert "on rank 1 of 2" in error.value.__notes__


def test_gradients_of_shapes_that_differ_between_ranks_are_a_broken_contract(real: Any) -> None:
    def backward(ctx: Any, dy: Any) -> Any:
        return dy if real.distributed.get_rank() else dy.sum()

    layer = type(
        "Layer",
        (real.autograd.PyLayer,),
        {"forward": staticmethod(lambda ctx, x: x * 1), "backward": staticmethod(backward)},
    )
    found = gradcheck.check(layer, DRAW((2, 3)), world=2)
    assert [d.code for d in found.diagnosis] == ["GC137"]
    assert "its shape is [] on rank 0 and [3] on rank 1" in found.diagnosis[0].text


def test_rows_go_to_experts_and_back(real: Any) -> None:
    """Each of two ranks has an expert, and rows for both."""
    from paddle.distributed.utils.moe_utils import global_gather, global_scatter

    def moe(x: Any, w: Any) -> Any:
        counts = real.to_tensor([1, 2])
        own = real.to_tensor([counts[real.distributed.get_rank()].item()] * 2)
        return global_gather(real.tanh(global_scatter(x, counts, own) * w), counts, own)

    assert gradcheck.check(moe, DRAW((2, 3, 2)), DRAW((2, 2)), world=2).verdict is Status.PASS
