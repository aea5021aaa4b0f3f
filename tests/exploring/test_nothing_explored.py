"""Where nothing was checked, `explore` is not true, and says why; its inputs stand apart from its options."""

from __future__ import annotations

import pytest

import gradcheck
from gradcheck import strategies

pytest.importorskip("hypothesis")


def double(x):
    return x * 2


def raises(x):
    raise ValueError("no such luck")


def raises_in_float64(x):
    if "float64" in str(x.dtype):
        raise ValueError("float32 alone")
    return x * 2


# --------------------------------------------------------------------------------------------- its truth
@pytest.mark.parametrize(
    ("layer", "inputs", "options", "said"),
    [
        (raises, {"x": "B C"}, {}, "ValueError: no such luck"),
        (raises, {"x": ""}, {}, "ValueError: no such luck"),
        (lambda x, w: x * w, {"x": "B C"}, {}, "TypeError"),
        (double, {"x": "B 0"}, {}, "no output has an element"),
        (double, {"x": "B:int64:below=3"}, {}, "no input needs a gradient"),
        (lambda x: 3, {"x": "B C"}, {}, "none of 4 examples had a verdict"),
        (double, {"x": "B C"}, {"seconds": 0}, "no example began within 0 s"),
    ],
)
def test_an_exploration_without_a_verdict_is_not_true_and_says_why(layer, inputs, options, said):
    found = gradcheck.explore(layer, inputs, **{"examples": 4, **options})
    assert not found
    assert (found.inputs, found.result, found.checked) == (None, None, 0)
    assert said in repr(found)
    assert "nothing wrong" not in repr(found)


def test_the_reasons_name_the_first_example_of_each():
    found = gradcheck.explore(raises, {"x": "B C"}, examples=4)
    assert list(found.reasons) == ["ValueError: no such luck"]
    assert found.reasons["ValueError: no such luck"].startswith("B = ")


@pytest.mark.parametrize(("layer", "all_checked"), [(double, True), (raises_in_float64, False)])
def test_an_exploration_with_some_verdicts_none_of_them_wrong_is_true(layer, all_checked):
    found = gradcheck.explore(layer, {"x": "3"}, examples=40, seconds=20)
    assert found
    assert found.checked > 0
    assert (found.checked == found.tried) == all_checked
    assert ("had no verdict" in repr(found)) != all_checked


# --------------------------------------------------------------------------------------------- its inputs
@pytest.mark.parametrize("name", ["seed", "seconds", "examples", "dtypes", "inputs", "layer_or_function", "self"])
def test_an_input_may_have_any_name(name):
    assert gradcheck.explore(double, {name: "B C"}, seconds=20, examples=5)


@pytest.mark.parametrize("name", ["seed", "seconds", "examples", "dtypes"])
def test_an_input_in_place_of_an_option_is_answered_with_the_dict(name):
    with pytest.raises(TypeError, match=rf"explore\(layer, {{'{name}': 'B C'"):
        gradcheck.explore(double, **{"x": "B C", name: "B C"})


def test_inputs_may_still_be_keywords():
    assert gradcheck.explore(lambda x, w: x * w, x="B C", w="C", seconds=20, examples=5)


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        ((), {}, "there are no inputs"),
        (({},), {}, "there are no inputs"),
        (("B C",), {}, "the inputs must be a dict"),
        ((), {"inputs": "B C"}, "the inputs must be a dict"),
        (({"x": "B"},), {"w": "C"}, "w is not an option"),
        (({"x": "B"},), {"exampels": 3}, "did you mean examples?"),
        (({"x": 3},), {}, "x must be a text such as 'B T C'"),
        (({"x": "B"},), {"seed": 1.5}, "seed must be a whole number"),
        (({"x": "B"},), {"seconds": None}, "seconds must be a number"),
        (({"x": "B"},), {"examples": 0}, "examples must be a whole number of at least 1"),
        (({"x": "B"},), {"dtypes": ["float31"]}, "each of dtypes must be 'float64'"),
    ],
)
def test_what_cannot_be_explored_is_refused_before_anything_is_drawn(args, options, said):
    with pytest.raises((TypeError, ValueError)) as refused:
        gradcheck.explore(raises, *args, **options)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [((), {"x": "B", "dtypes": "B"}, "inputs({'dtypes': 'B'"), ((), {}, "there are no inputs")],
)
def test_strategies_take_their_inputs_in_the_same_way(args, options, said):
    with pytest.raises(TypeError) as refused:
        strategies.inputs(*args, **options)
    assert said in str(refused.value)
    assert strategies.inputs({"dtypes": "B"}) is not None
