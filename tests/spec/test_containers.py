"""Lists and dicts of Tensors as one input: each Tensor has a name of its own, as Python writes it."""

from __future__ import annotations

from collections import namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.spec.containers import fill_leaves, flat_names, in_variables, variables

NESTED = st.recursive(
    st.integers(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.from_regex("[a-z]{1,3}", fullmatch=True), inner, min_size=1)
    ),
    max_leaves=8,
)


@given(NESTED)
def test_what_is_made_flat_comes_together_again(value):
    parts = flat_names("x", value)
    assert in_variables(parts) == {"x": value}
    assert (
        fill_leaves("x", value, {name: -one for name, one in parts.items()})
        == in_variables({name: -one for name, one in parts.items()})["x"]
    )


def test_names_are_those_that_python_reads():
    value = {"a": [1, {"b": 2}]}
    assert all(eval(name, {"x": value}) == one for name, one in flat_names("x", value).items())


def test_a_container_stays_what_it_is():
    Pair = namedtuple("Pair", "left right")
    assert fill_leaves("p", Pair(1, (2, 3)), {"p[1][0]": 5}) == Pair(1, (5, 3))
    assert isinstance(fill_leaves("p", Pair(1, 2), {}), Pair)


def test_variables_are_named_once_in_order():
    assert variables(["x", "s[0]", "s[1]", "d['a'][0]", "y"]) == ["x", "s", "d", "y"]


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("x: [2, 3]", ["x"]),
        ("x: [{shape: [2]}, {shape: [3]}]", ["x[0]", "x[1]"]),
        ("x: {a: {shape: [2]}, b: [{shape: [3]}]}", ["x['a']", "x['b'][0]"]),
    ],
)
def test_each_tensor_in_a_spec_is_an_input(accept, written, names):
    spec = accept(
        f"schema: gradcheck/v1\nscenarios:\n  - id: a\n    layer: {{op: tanh}}\n    call: paddle.tanh(x)\n"
        f"    inputs: {{{written}}}\n    expect: {{gradient: unchecked}}\n"
    )
    assert list(spec.scenarios[0].inputs) == names
