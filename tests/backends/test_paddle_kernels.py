"""Paddle's operators that communicate, by ranks: against what one process computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcheck
import pylayer.paddle as paddle
from gradcheck.backends.paddle_ranks import kernels, legacy_kernels
from gradcheck.result import Status
from pylayer.distributed.world import World

dist = paddle.distributed
N, ROWS, CLASSES = 3, 4, 2
LABELS = np.array([[0], [5], [-100], [3]])
draw = np.random.default_rng(0).standard_normal


def loss(logits: Any) -> Any:
    kernel = kernels(paddle)["c_softmax_with_cross_entropy"]
    return kernel(logits, paddle.to_tensor(LABELS), -100, 0, dist.get_rank(), dist.get_world_size())[1]


def whole_loss(logits: Any) -> Any:
    whole = paddle.concat(logits.unbind(0), -1)
    return paddle.nn.functional.cross_entropy(whole, paddle.to_tensor(LABELS), reduction="none", ignore_index=-100)


def test_the_loss_over_the_classes_of_all_ranks_is_that_of_one_process_and_has_its_gradient() -> None:
    logits = draw((N, ROWS, CLASSES))
    found = gradcheck.check(loss, logits, world=N, outputs="replicated")
    assert found.verdict is Status.PASS
    ranks = World(N).run(lambda rank: loss(paddle.to_tensor(logits[rank])).numpy())
    expected = whole_loss(paddle.to_tensor(logits)).numpy()
    assert all(np.allclose(one, expected, rtol=1e-14) for one in ranks)


@pytest.mark.parametrize("name", ["c_identity", "c_split", "c_concat"])
def test_an_older_operator_takes_names_and_values_in_turn(name: str) -> None:
    x = draw((2, 4))
    attributes = {"use_calc_stream": True, "ring_id": 0, "rank": 0, "nranks": 1}
    given = [one for pair in attributes.items() for one in pair]
    assert np.array_equal(legacy_kernels(paddle)[name](paddle.to_tensor(x), *given).numpy(), x)


def test_the_parts_of_all_ranks_are_joined_and_each_has_its_gradient() -> None:
    def joined(x: Any) -> Any:
        return kernels(paddle)["c_concat"](x, dist.get_rank(), N, 0, True, True)

    found = gradcheck.check(joined, draw((N, ROWS, CLASSES)), world=N, outputs="replicated")
    assert found.verdict is Status.PASS
