"""Random numbers: repeatable by seed, apart from NumPy's global state, and distributed as they should be."""

from __future__ import annotations

import numpy as np
import pytest

import pylayer.paddle as paddle

DRAWS = [
    lambda: paddle.rand([3]),
    lambda: paddle.randn([3]),
    lambda: paddle.uniform([3], min=2.0, max=3.0),
    lambda: paddle.normal(1.0, 2.0, [3]),
    lambda: paddle.randint(0, 100, [3]),
    lambda: paddle.randperm(10),
    lambda: paddle.bernoulli(paddle.full([20], 0.5)),
    lambda: paddle.multinomial(paddle.ones([10]), 5),
    lambda: paddle.multinomial(paddle.ones([10]), 5, replacement=True),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_the_same_seed_gives_the_same_numbers(draw):
    paddle.seed(5)
    first, second = draw().tolist(), draw().tolist()
    paddle.seed(5)
    assert [draw().tolist(), draw().tolist()] == [first, second]
    assert first != second


def test_numpys_global_state_is_left_alone():
    np.random.seed(1)
    expected = np.random.random()
    np.random.seed(1)
    paddle.seed(3)
    paddle.randn([4])
    assert np.random.random() == expected


def test_a_call_with_a_seed_of_its_own_leaves_the_stream_alone():
    paddle.seed(1)
    expected = paddle.rand([2]).tolist()
    paddle.seed(1)
    own = paddle.uniform([2], seed=9).tolist()
    assert paddle.uniform([2], seed=9).tolist() == own
    assert paddle.rand([2]).tolist() == expected


@pytest.mark.parametrize(
    ("draw", "dtype", "shape"),
    [
        (lambda: paddle.randn([2, 3]), "float32", [2, 3]),
        (lambda: paddle.randn([2, 3], "float64"), "float64", [2, 3]),
        (lambda: paddle.uniform([2], "float64"), "float64", [2]),
        (lambda: paddle.normal(), "float32", [1]),
        (lambda: paddle.normal(paddle.zeros([3, 1], "float64"), paddle.ones([2])), "float64", [3, 2]),
        (lambda: paddle.randint(3), "int64", [1]),
        (lambda: paddle.randint(0, 3, [2], "int32"), "int32", [2]),
        (lambda: paddle.randint_like(paddle.zeros([4]), 5), "float32", [4]),
        (lambda: paddle.randperm(4), "int64", [4]),
        (lambda: paddle.bernoulli(paddle.ones([2], "float64")), "float64", [2]),
        (lambda: paddle.multinomial(paddle.ones([2, 5]), 3), "int64", [2, 3]),
    ],
)
def test_dtype_and_shape(draw, dtype, shape):
    made = draw()
    assert made.dtype.name == dtype
    assert made.shape == shape
    assert made.stop_gradient


def test_ranges_and_probabilities():
    paddle.seed(0)
    assert ((paddle.uniform([1000], min=2.0, max=3.0).numpy() - 2) // 1 == 0).all()
    assert set(paddle.randint(2, 5, [1000]).tolist()) == {2, 3, 4}
    assert sorted(paddle.randperm(10).tolist()) == list(range(10))
    assert paddle.bernoulli(paddle.to_tensor([0.0, 1.0])).tolist() == [0, 1]
    assert paddle.bernoulli(paddle.zeros([5]), p=1.0).tolist() == [1] * 5
    assert set(paddle.multinomial(paddle.to_tensor([0.0, 1.0, 0.0]), 20, replacement=True).tolist()) == {1}
    assert sorted(paddle.multinomial(paddle.to_tensor([0.0, 1.0, 1.0]), 2).tolist()) == [1, 2]


def test_moments_are_within_five_standard_errors():
    paddle.seed(0)
    count = 10_000
    values = paddle.normal(3.0, 2.0, [count]).numpy()
    assert abs(values.mean() - 3) < 5 * 2 / count**0.5
    assert abs(values.var() - 4) < 5 * 4 * (2 / count) ** 0.5


@pytest.mark.parametrize(
    ("wrong", "error", "phrase"),
    [
        (lambda: paddle.randn([2], "int32"), TypeError, "cannot be of dtype int32"),
        (lambda: paddle.randint(5, 2), ValueError, "low must be less than high"),
        (lambda: paddle.multinomial(paddle.to_tensor([0.0, 1.0]), 2), ValueError, "too few positive weights to draw 2"),
        (lambda: paddle.multinomial(paddle.to_tensor([-1.0, 1.0])), ValueError, "must not be negative"),
        (lambda: paddle.multinomial(paddle.to_tensor([0.0, 0.0])), ValueError, "not all zero"),
    ],
)
def test_errors_say_what_was_wrong(wrong, error, phrase):
    with pytest.raises(error, match=phrase):
        wrong()


@pytest.mark.parametrize(
    "draw", [paddle.rand, paddle.uniform, paddle.randn, lambda shape: paddle.bernoulli(paddle.full(shape, 0.5))]
)
def test_a_drawn_number_without_axes_can_be_written_to(draw):
    x = draw([])
    x.fill_(3.0)
    assert (x.shape, x.item()) == ([], 3.0)
