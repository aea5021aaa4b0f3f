"""Inputs in one word: the grammar of the command line."""

from __future__ import annotations

import pytest

from gradcheck.spec.draft import written_input
from gradcheck.spec.input_words import InputWordError, inputs_of_words

WORDS = {
    "x=3x4": {"shape": [3, 4]},
    "x=scalar": {"shape": []},
    "x=2x3:float32": {"shape": [2, 3], "dtype": "float32"},
    "x=5~0.1..3": {"shape": [5], "range": [0.1, 3.0]},
    "x=5~-1..1e-3": {"shape": [5], "range": [-1.0, 1e-3]},
    "x=3@0": {"values": [0.0, 0.0, 0.0]},
    "x=@2": {"values": 2.0},
    "x=2:float32@-2.5": {"values": [-2.5, -2.5], "dtype": "float32"},
    "x=3:float32:below=5": {"shape": [3], "below": 5, "dtype": "float32"},
    "x=1x2:int64@7": {"values": [[7, 7]], "dtype": "int64"},
    "x=4:int64:below=5": {"shape": [4], "below": 5, "dtype": "int64"},
    "x=4:below=5": {"shape": [4], "below": 5, "dtype": "int64"},
    "x=4:int32": {"shape": [4], "below": 10, "dtype": "int32"},
    "x=5:bool": {"shape": [5], "below": 2, "dtype": "bool"},
    "x=5:stopped": {"shape": [5], "stop_gradient": True},
    "x=5:replicated": {"shape": [5], "ranks": "replicated"},
    "x=@data.npz#key": {"from": "data.npz", "key": "key"},
    "x=@some/where.npy": {"from": "some/where.npy"},
    "x=:float32@data.npy": {"from": "data.npy", "dtype": "float32"},
}


def written(text, letters=False):
    return {name: written_input(spec) for name, spec in inputs_of_words([text], letters).items()}


@pytest.mark.parametrize("text", WORDS)
def test_a_word_says_what_an_input_is(text):
    assert written(text) == {"x": WORDS[text]}


def test_what_follows_the_shape_may_stand_in_any_order():
    assert written("x=3x4~0.1..1:stopped:float32") == written("x=3x4:stopped:float32~0.1..1")
    assert written("x=3x4:float32~0.1..1:stopped") == written("x=3x4:stopped:float32~0.1..1")


def test_a_dtype_that_is_named_is_not_changed_by_a_matrix():
    assert inputs_of_words(["x=3:float32"])["x"].dtype_written
    assert not inputs_of_words(["x=3"])["x"].dtype_written


def test_a_list_is_several_inputs_in_brackets():
    assert written("xs=[2x3,4:below=5]") == {
        "xs[0]": {"shape": [2, 3]},
        "xs[1]": {"shape": [4], "below": 5, "dtype": "int64"},
    }


def test_letters_are_free_sizes_where_they_are_allowed():
    assert inputs_of_words(["x=BxTx3"], letters=True)["x"].shape == ("B", "T", 3)
    assert written("x=Bx2@1", letters=True) == {"x": {"shape": ["B", 2], "range": [1.0, 1.0]}}


WRONG = {
    "x": "write NAME=",
    "x=": "an input needs 'shape' or 'values'; write NAME=[SHAPE]",
    "x=3,4": "'3,4' is not a shape: write 3x4",
    "x=BxC": "only `gradcheck explore` takes capital letters",
    "x=3:float46": "did you mean float64",
    "x=3:stop": "did you mean stopped",
    "x=3~1": "'1' is not a range: write ~LOW..HIGH",
    "x=3~2..1": "is not a range",
    "x=3:int64~0..1": "has dtype int64, but 'range' gives no whole numbers; write 'below: 10'",
    "x=3@data.txt": "write a number or an .npy or .npz file after @",
    "x=@data.npz": "'key' names the array of an .npz file",
    "x=@data.npy#key": "'key' names the array of an .npz file",
    "x=3@data.npy": "'from' and 'shape' exclude each other",
    "x=3~0..1@2": "'values' and 'range' exclude each other",
    "x=[2x3": "a list is written x=[2x3,2x3]",
    "x=[2,,3]": "a list is written x=[2x3,2x3]",
    "x=[2:stop]": "did you mean stopped",
    "x=[2, 3]": "and a shape x=2x3",
    "x=[]": "a list is written x=[2x3,2x3]",
    "x=1x1x1x1x1x1x1x1x1": "at most 8 items",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_word_that_describes_no_input_is_answered_exactly(text):
    with pytest.raises(InputWordError) as error:
        inputs_of_words([text])
    assert str(error.value).startswith(f"--input {text}: ")
    assert WRONG[text] in str(error.value)


def test_an_input_is_given_once():
    with pytest.raises(InputWordError, match="x=… is given twice"):
        inputs_of_words(["x=2", "x=3"])
    with pytest.raises(InputWordError, match="x=… is given twice"):
        inputs_of_words(["x=[2x1,2]", "x=3"])
