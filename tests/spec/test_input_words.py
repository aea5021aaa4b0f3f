"""Inputs in one word: the grammar of the command line."""

from __future__ import annotations

import pytest

from gradcheck.spec.input_words import InputWord, InputWordError, input_word, input_words

WORDS = {
    "x=3x4": InputWord("x", (3, 4)),
    "x=scalar": InputWord("x", ()),
    "x=2x3:float32": InputWord("x", (2, 3), "float32"),
    "x=5~0.1..3": InputWord("x", (5,), low=0.1, high=3.0),
    "x=5~-1..1e-3": InputWord("x", (5,), low=-1.0, high=1e-3),
    "x=5@0": InputWord("x", (5,), value=0.0),
    "x=5:float32@-2.5": InputWord("x", (5,), "float32", value=-2.5),
    "k=4:int64:below=5": InputWord("k", (4,), "int64", below=5),
    "k=4:below=5": InputWord("k", (4,), "int64", below=5),
    "m=5:bool": InputWord("m", (5,), "bool"),
    "x=5:stopped": InputWord("x", (5,), stopped=True),
    "b=5:replicated": InputWord("b", (5,), ranks="replicated"),
    "x=@data.npz#key": InputWord("x", file="data.npz", key="key"),
    "x=@some/where.npy": InputWord("x", file="some/where.npy"),
    "x=:float32@data.npy": InputWord("x", None, "float32", file="data.npy"),
}


@pytest.mark.parametrize("text", WORDS)
def test_a_word_says_what_an_input_is(text):
    assert input_word(text) == WORDS[text]


def test_letters_are_free_sizes_where_they_are_allowed():
    assert input_word("x=BxTx3", letters=True).sizes == ("B", "T", 3)
    assert input_word("x=BxTx3", letters=True).letters == ["B", "T"]


WRONG = {
    "x": "write NAME=",
    "x=": "what shape has it? Write x=3x4",
    "x=3,4": "'3,4' is no shape: write 3x4",
    "x=BxC": "B is a free size, which `gradcheck explore` draws",
    "x=3:float46": "did you mean float64",
    "x=3:stop": "did you mean stopped",
    "x=3~1": "'1' is no range: write ~LOW..HIGH",
    "x=3~2..1": "is no range",
    "x=3:int64~0..1": "a range is for floating numbers, not int64: write below=N",
    "x=3:float32:below=5": "below=N is for whole numbers, not float32",
    "x=3@data.txt": "write a number or an .npy or .npz file behind @",
    "x=@data.npz": "name the array of an .npz file behind #",
    "x=@data.npy#key": "holds one array: no #",
    "x=3@data.npy": "a file has its own",
    "x=3~0..1@2": "~LOW..HIGH and a value: write one of the two",
    "x=1x1x1x1x1x1x1x1x1": "9 axes are too many",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_word_that_describes_no_input_is_answered_exactly(text):
    with pytest.raises(InputWordError) as error:
        input_word(text)
    assert str(error.value).startswith(f"--input {text}: ")
    assert WRONG[text] in str(error.value)


def test_an_input_is_given_once():
    with pytest.raises(InputWordError, match="x=… is given twice"):
        input_words(["x=2", "x=3"])
