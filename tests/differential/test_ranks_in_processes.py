"""Worlds of ranks on a real Paddle: a process each."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed import gradcheck as command

import gradcheck
from gradcheck.result import Status

X = np.random.default_rng(0).standard_normal((3, 6, 2))


def layer(real: Any, forward: Any, backward: Any) -> Any:
    """A layer of these two functions."""
    return type(
        "Layer", (real.autograd.PyLayer,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def gathered(real: Any, x: Any) -> Any:
    parts: list[Any] = []
    real.distributed.all_gather(parts, x)
    return real.concat(parts, 0)


def summed_part(real: Any, x: Any) -> Any:
    part = real.zeros([x.shape[0] // 3, *x.shape[1:]], x.dtype)
    real.distributed.reduce_scatter(part, x)
    return part


def test_a_right_layer_passes_and_a_wrong_one_fails(real: Any) -> None:
    right = layer(real, lambda ctx, x: gathered(real, x), lambda ctx, g: summed_part(real, g))
    own = layer(real, lambda ctx, x: gathered(real, x), lambda ctx, g: real.split(g, 3, 0)[real.distributed.get_rank()])
    assert gradcheck.check(right, X, world=3).verdict is Status.PASS
    assert gradcheck.check(own, X, world=3, outputs="replicated").verdict is Status.PASS
    found = gradcheck.check(own, X, world=3)
    assert found.verdict is Status.FAIL
    assert "GC152" in [d.code for d in found.diagnosis]


def test_a_program_that_was_left_as_garbage_does_not_end_the_ranks(real: Any) -> None:
    program, run = real.static.Program(), real.static.Executor()
    real.enable_static()
    try:
        with real.static.program_guard(program):
            fetched = [real.static.data("x", [2]) * 2]
            run.run(program, feed={"x": np.ones(2, "float32")}, fetch_list=fetched)
    finally:
        real.disable_static()
    ring: list[Any] = [program, run, fetched]
    ring.append(ring)
    gc.disable()
    try:
        del program, run, fetched, ring
        collects = layer(real, lambda ctx, x: x * (1 + 0 * gc.collect()), lambda ctx, g: g * 1)
        assert gradcheck.check(collects, X, world=3).verdict is Status.PASS
    finally:
        gc.enable()


def test_what_a_backward_raises_keeps_its_type(real: Any) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None

    found = gradcheck.check(layer(real, lambda ctx, x: x * 1, backward), X, world=3)
    assert [d.code for d in found.diagnosis] == ["GC137"]
    assert "should be 1, but received 3" in found.diagnosis[0].text


def test_ranks_that_make_different_calls_in_backward_are_a_broken_contract(real: Any) -> None:
    def backward(ctx: Any, g: Any) -> Any:
        if real.distributed.get_rank():
            real.distributed.all_reduce(g)
        return g

    found = gradcheck.check(layer(real, lambda ctx, x: x * 1, backward), X, world=3)
    assert [d.code for d in found.diagnosis] == ["GC164"]


def test_a_rank_goes_on_where_an_answer_comes_that_it_does_not_wait_for(real: Any) -> None:
    """It raises between a call and its task's wait."""

    def forward(ctx: Any, x: Any) -> Any:
        real.distributed.all_reduce(x * 1, sync_op=False)
        raise ArithmeticError("between")

    for _ in range(2):
        with pytest.raises(ArithmeticError, match="between"):
            gradcheck.check(layer(real, forward, lambda ctx, g: g), X, world=3)


SPEC = """\
schema: gradcheck/v1
scenarios:
  - id: paddles-own
    world: 3
    layer: {ref: "paddle.distributed.fleet.layers.mpu.mp_ops:mp_allreduce_eager"}
    inputs: {x: {shape: [2]}}
    outputs: {ranks: replicated}
    call: mp_allreduce_eager.apply(x * 1, paddle.distributed.get_group(), True, True, 0, False)
  - id: raises
    world: 2
    layer: |
      class Raises(PyLayer):
          @staticmethod
          def forward(ctx, x):
              raise ArithmeticError("on purpose")
          @staticmethod
          def backward(ctx, g):
              return g
    inputs: {x: {shape: [2]}}
"""


def test_scenarios(real: Any, tmp_path: Path) -> None:
    (tmp_path / "ranks.grad.yaml").write_text(SPEC, encoding="utf-8")
    report = tmp_path / "report.json"
    command("run", ".", "-b", "paddle", "--allow-code", "-q", "--report", f"json:{report}", folder=tmp_path)
    results = {one["scenario"]: one for one in json.loads(report.read_text(encoding="utf-8"))["results"]}
    assert results["paddles-own"]["status"] == "PASS"
    assert results["raises"]["status"] == "ERROR"
    assert "ArithmeticError: on purpose" in results["raises"]["message"]
    assert "line 15 of the spec" in results["raises"]["message"]
