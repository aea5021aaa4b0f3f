"""An input in one word, as ``-i`` and `gradcheck.explore` take it: ``x=3x4:float32~0.1..3``.

    NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated|:partial][~LOW..HIGH][@NUMBER|@FILE[#KEY]]

A shape is sizes with ``x`` between them, ``scalar`` for none; a size is a number or, for `gradcheck
explore`, a capital letter, which is the same size in all inputs. The options after the shape may be
in any order, with ``@`` last. No character of a word needs quoting in a shell. A list of Tensors is
such words in brackets, without their names: ``xs=[2x3,2x3:float32]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from gradcheck.spec.containers import inside, variable
from gradcheck.spec.input_rules import find_limit_mistakes
from gradcheck.spec.literals import DType, Placement
from gradcheck.spec.messages import WORDS_OF_NUMPY
from gradcheck.spec.model import Input
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

FORM = "NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated][~LOW..HIGH][@NUMBER|@FILE[#KEY]]"
EXAMPLES = (
    "such as x=3x4, x=5~0.1..3, k=4:int64:below=5, m=5:bool, x=5@0, x=@data.npz#key or xs=[2x3,2x3]"
)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
USUAL_BELOW = 10
"""Whole numbers are drawn from 0 up to this number, which is excluded."""
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<word>.*)", re.DOTALL)
_WORD = re.compile(r"(?P<shape>[^:~@]*)(?P<options>(?:[:~][^:~@]*)*)(?:@(?P<given>.*))?", re.DOTALL)
_SHAPE = re.compile(r"\d+(?:x\d+)*")
_SHAPE_TO_DRAW = re.compile(r"(?:\d+|[A-Z])(?:x(?:\d+|[A-Z]))*")
_RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")
_FLAGS: dict[str, dict[str, Any]] = {
    **{dtype: {"dtype": dtype} for dtype in get_args(DType)},
    **{placement: {"ranks": placement} for placement in get_args(Placement)},
    "stopped": {"stop_gradient": True},
}


class InputWordError(UserError, ValueError):
    """A word that describes no input; the message says what to write."""


def inputs_of_words(texts: Iterable[str], letters: bool = False) -> dict[str, Input]:
    """Return the inputs that words describe, by name; those in a list as ``xs[0]``.

    `letters` says whether sizes may be letters. Raises InputWordError: a word does not have this
    form, or an input is given twice.
    """
    inputs: dict[str, Input] = {}
    for text in texts:
        if len(words := re.split(r"[\s,;]+(?:-i\s+|--input\s+)?(?=[A-Za-z_]\w*=)", text)) > 1:
            apart = " ".join(f"-i {word}" for word in words)
            raise InputWordError(f"--input {text}: write each input separately, as in {apart}")
        named = _NAMED.fullmatch(text)
        if named is None:
            raise InputWordError(f"--input {text}: write {FORM}, {EXAMPLES}")
        if named["name"] in map(variable, inputs):
            raise InputWordError(f"--input {named['name']}=… is given twice: remove one of the two")
        try:
            inputs |= _named_inputs(named["name"], named["word"], letters)
        except InputWordError as error:
            raise InputWordError(f"--input {text}: {error}") from None
    return inputs


def _named_inputs(name: str, word: str, letters: bool) -> Iterator[tuple[str, Input]]:
    """Yield the input of a word, or those of a list of words in brackets, with their names."""
    if not word.startswith("["):
        yield name, input_of_word(name, word, letters)
        return
    words = [item.strip() for item in word.removeprefix("[").removesuffix("]").split(",")]
    if not word.endswith("]") or not all(words) or all(item.isdecimal() for item in words):
        raise InputWordError(
            f"a list is written {name}=[2x3,2x3], one of vectors {name}=[2:float64,3:float64], "
            f"and a shape {name}={'x'.join(filter(str.isdecimal, words)) or '2x3'}"
        )
    for place, item in enumerate(words):
        yield inside(name, place), input_of_word(name, item, letters)


def input_of_word(name: str, word: str, letters: bool = False) -> Input:
    """Return the input that a word without its name describes. Raises InputWordError."""
    match = _WORD.fullmatch(word)
    assert match is not None  # any text fits
    fields: dict[str, Any] = {}
    for sign, option in re.findall(r"([:~])([^:~@]*)", match["options"]):
        more = _limits(option) if sign == "~" else _flag(option)
        if more.keys() & fields.keys():
            raise InputWordError(f"{sign}{option} repeats an option or contradicts one: remove one")
        fields |= more
    if match["given"] is not None:
        fields |= _parse_value(match["given"])
    fields.setdefault("dtype", "int64" if "below" in fields else "float64")
    if match["shape"]:
        fields["shape"] = _sizes(match["shape"], letters)
    return _input(fields)


def _input(fields: dict[str, Any]) -> Input:
    """Return an input from some fields of the model; ``value`` is the value of all elements.

    Raises InputWordError: they do not go together.
    """
    dtype, shape, value = fields["dtype"], fields.get("shape", ()), fields.pop("value", None)
    is_whole = not holds_floats(dtype)
    if value is not None and not all(isinstance(size, int) for size in shape):
        fields["range"] = (value, value)
    elif value is not None:
        fields.pop("shape", None)  # without one, it is a scalar
        fields["values"] = nested_tuple(int(value) if is_whole else value, shape)
    elif is_whole and fields.keys().isdisjoint(("from", "range")):
        fields.setdefault("below", 2 if dtype == "bool" else USUAL_BELOW)
    fields["dtype_written"] = dtype != "float64"
    try:
        input = Input.model_validate(fields, context=lambda scenario: ())
    except ValidationError as error:
        mistakes = [detail["msg"] for detail in error.errors()]
        raise InputWordError(f"{'; '.join(mistakes)}; write {FORM}, {EXAMPLES}") from None
    if input.shape is not None:
        for mistake in find_limit_mistakes(input, [dtype]):
            raise InputWordError(f"{mistake.message}; {mistake.help}")
    return input


def holds_floats(dtype: str) -> bool:
    """Whether a dtype holds floating or complex numbers."""
    return dtype.startswith(("float", "bfloat", "complex"))


def nested_tuple(value: float, shape: Sequence[int]) -> Any:
    """Return nested tuples of one number."""
    nested: Any = value
    for size in reversed(shape):
        nested = (nested,) * size
    return nested


def _sizes(shape: str, letters: bool) -> tuple[int | str, ...]:
    if shape == "scalar":
        return ()
    pattern = _SHAPE_TO_DRAW if letters else _SHAPE
    if not pattern.fullmatch(shape):
        size = r"(?:\d+|[A-Z]|[a-wyz])" if letters else r"\d+"
        sizes_apart = re.fullmatch(rf"[\[(]?{size}(?: *[xX×*, ] *{size})*,?[\])]?", shape)
        sizes = [each.upper() for each in re.findall(size, shape)] if sizes_apart else ["3", "4"]
        meant = "x".join(sizes)
        if shape.endswith((".npy", ".npz")):
            raise InputWordError(
                f"{shape!r} is not a shape: write @ before a file, as in @data.npy"
            )
        form = "sizes with x between them, such as 3x4, or scalar"
        if letters:
            form += "; capital letters are sizes that are drawn"
        elif _SHAPE_TO_DRAW.fullmatch(shape):
            form += "; only `gradcheck explore` takes capital letters, for sizes that it draws"
        elif not sizes_apart:
            form += "; a plain value is passed by --kwarg NAME=VALUE, or in --call"
        raise InputWordError(f"{shape!r} is not a shape: write {meant}: {form}")
    return tuple(int(size) if size.isdecimal() else size for size in shape.split("x"))


def is_shape(text: str) -> bool:
    """Whether a text is the shape of an input with sizes that are numbers."""
    return _SHAPE.fullmatch(text) is not None


def _flag(flag: str) -> dict[str, Any]:
    """Return the fields that an option after a colon sets."""
    if below := re.fullmatch(r"below=([1-9][0-9]{0,8})", flag):
        return {"below": int(below[1])}
    if len(flags := re.split("[,; ]+", flag)) > 1:
        raise InputWordError(f"{flag!r} is not one option; write :{':'.join(flags)}")
    if flag not in _FLAGS:
        known = [*_FLAGS, "below=N"]
        name = re.sub(r"dtype=|\w+\.", "", flag)  # torch.float32
        otherwise = f"write one of {', '.join(known)}; a range is written ~LOW..HIGH"
        help = hint(WORDS_OF_NUMPY.get(name, name), known, otherwise)
        raise InputWordError(f"unknown option {flag!r}; {help}")
    return _FLAGS[flag]


def _limits(text: str) -> dict[str, Any]:
    """Return the range after a ~."""
    ends = _RANGE.fullmatch(text)
    if ends is None or not float(ends[1]) < float(ends[2]):
        form = "~LOW..HIGH, LOW below HIGH, such as ~0.1..3"
        raise InputWordError(f"{text!r} is not a range: write {form}")
    return {"range": (float(ends[1]), float(ends[2]))}


def _parse_value(text: str) -> dict[str, Any]:
    """Return the value of all elements, or the file, after an @."""
    if re.fullmatch(NUMBER, text):
        return {"value": float(text)}
    file, _, key = text.partition("#")
    if not file.endswith((".npy", ".npz")):
        raise InputWordError(
            "write a number or an .npy or .npz file after @, such as @0 or @data.npz#key"
        )
    return {"from": file, "key": key or None}
