"""The search for inputs at which a gradient is wrong: what is drawn, what is found, and how small it becomes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import gradcheck
from gradcheck.exploring.example_search import SearchSettings, search
from gradcheck.exploring.examples import KINDS_OF_VALUES, Recipe, build, letters_of
from gradcheck.result import Status
from gradcheck.strategies import parse_inputs
from pylayer.ops.creation import ones_like
from pylayer.ops.elementwise import tanh
from pylayer.paddle import nn
from pylayer.paddle.autograd import PyLayer


class LeakyRelu(PyLayer):
    """Wrong below 0, where it passes nothing on."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return nn.functional.leaky_relu(x, 0.1)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensor()
        return dy * (x > 0).astype(dy.dtype)


class Tanh(PyLayer):
    """Right."""

    @staticmethod
    def forward(ctx, x):
        y = tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensor()
        return dy * (ones_like(y) - y * y)


def test_a_mistake_that_shows_at_some_inputs_is_found_and_made_small():
    found = gradcheck.explore(LeakyRelu, {"x": "B C"}, seconds=20, examples=300)
    assert not found
    assert found.inputs["x"].size <= 2
    assert (found.inputs["x"] < 0).any()
    assert "gradient of x" in str(found)
    assert found.result.verdict is Status.FAIL


def test_the_same_seed_finds_the_same():
    first, again = (gradcheck.explore(LeakyRelu, {"x": "N"}, seconds=20, examples=300, seed=3) for _ in range(2))
    assert first.where == again.where
    np.testing.assert_array_equal(first.inputs["x"], again.inputs["x"])


def test_nothing_is_found_in_a_right_layer():
    found = gradcheck.explore(Tanh, {"x": "B C"}, seconds=20, examples=40)
    assert found
    assert found.inputs is None
    assert repr(found).startswith(f"nothing wrong in {found.tried} examples")


def test_no_example_begins_when_the_time_is_up_and_the_smallest_failure_so_far_is_kept():
    calls = []

    def slow(example):
        calls.append(time.monotonic())
        time.sleep(0.05)
        return Status.FAIL if example.recipe.sizes["N"] > 1 else Status.PASS, "wrong"

    began = time.monotonic()
    found = search(slow, parse_inputs({"x": "N"}), SearchSettings(0.3, 10_000, 0))
    assert found.smallest is not None
    assert max(calls) - began < 1.0


def test_what_a_layer_raises_is_told_and_is_no_failure():
    def check(example):
        return (Status.ERROR, "no rows") if example.recipe.sizes["B"] == 0 else (Status.PASS, "")

    found = search(check, parse_inputs({"x": "B C"}), SearchSettings(20, 200, 0))
    assert found.smallest is None
    assert list(found.reasons) == ["no rows"]


def test_letters_are_the_same_size_in_all_inputs():
    example = build(parse_inputs({"x": "B C", "w": "C D"}), Recipe({"B": 2, "C": 5, "D": 0}, "float32", seed=1))
    assert example.values["x"].shape == (2, 5)
    assert example.values["w"].shape == (5, 0)
    assert example.inputs["w"].dtype == "float32"


def test_large_sizes_are_halved_until_the_inputs_are_small_enough():
    example = build(parse_inputs({"x": "A B C"}), Recipe({"A": 33, "B": 33, "C": 33}, seed=1))
    assert 0 < example.values["x"].size <= 4096


@pytest.mark.parametrize("kind", KINDS_OF_VALUES)
@pytest.mark.parametrize("shape", ["", "B", "B C", "B 0"])
def test_every_kind_of_values_is_there_for_every_shape(kind, shape):
    words = parse_inputs({"x": shape})
    sizes = dict.fromkeys(letters_of(words), 3)
    values = build(words, Recipe(sizes, kinds={"x": kind}, seed=7)).values["x"]
    assert values.shape == tuple(3 if one.isalpha() else int(one) for one in shape.split())
    assert np.isfinite(values).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_subnormal_values_are_those_of_the_dtype(dtype):
    words = parse_inputs({"x": "B"})
    values = build(words, Recipe({"B": 33}, dtype, {"x": "subnormal"}, seed=7)).values["x"]
    smallest_normal = {"float64": 2.0**-1022, "float16": 2.0**-14}.get(dtype, 2.0**-126)
    assert (values != 0).all()
    assert (abs(values) < smallest_normal).all()
    assert (abs(values) > smallest_normal / 2**7).all()  # bfloat16 has 7 bits below


def test_whole_numbers_stay_below_their_limit_and_floating_ones_in_their_range():
    words = parse_inputs({"i": "50:int64:below=3", "p": "50~0.1..3", "c": "4@2"})
    values = build(words, Recipe({})).values
    assert set(np.unique(values["i"])) <= {0, 1, 2}
    assert 0.1 <= values["p"].min() <= values["p"].max() <= 3
    assert (values["c"] == 2).all()


@pytest.mark.parametrize("text", ["B c", "2 x", "B:float63", "B~3..1"])
def test_a_text_that_describes_no_input_is_refused(text):
    with pytest.raises(ValueError, match="x="):
        gradcheck.explore(Tanh, {"x": text})


def test_a_shape_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="x must be a text such as 'B T C'"):
        gradcheck.explore(Tanh, {"x": (2, 3)})


def test_a_failure_keeps_the_dtypes_that_were_asked_for():
    asked = SearchSettings(20, 50, 0, dtypes=("float32",))
    found = search(lambda example: (Status.FAIL, "wrong"), parse_inputs({"x": "B"}), asked)
    assert {example.recipe.dtype for example in found.failures} == {"float32"}
