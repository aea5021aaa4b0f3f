"""An input in one word, as the command line takes it: ``x=3x4:float32``, ``k=4:int64:below=5``, ``x=5~0.1..3``.

    NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated|:partial][~LOW..HIGH][@NUMBER|@FILE[#KEY]]

A shape is sizes with ``x`` between them, ``scalar`` for none; a size is a number or, for `gradcheck explore`, a capital
letter, the same for all inputs. Nothing in a word needs quoting in a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, get_args

from gradcheck.spec.literals import MAX_DIMENSIONS, DType, Stands
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

FORM = "NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated][~LOW..HIGH][@NUMBER|@FILE[#KEY]]"
EXAMPLES = "such as x=3x4, x=5~0.1..3, k=4:int64:below=5, m=5:bool, x=5@0 or x=@data.npz#key"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WHOLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_SHAPE = re.compile(r"(?:\d+|[A-Z])(?:x(?:\d+|[A-Z]))*|scalar")
_RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")


class InputWordError(UserError, ValueError):
    """A word that describes no input; the message says what to write."""


class InputWord(NamedTuple):
    """What a word says of an input."""

    name: str
    sizes: tuple[int | str, ...] | None = None
    """None where a file has them, or nothing is said."""
    dtype: str = "float64"
    below: int | None = None
    """Whole numbers from 0 up to this one, which is not among them."""
    stopped: bool = False
    ranks: Stands = "split"
    low: float | None = None
    high: float | None = None
    value: float | None = None
    """Of all elements."""
    file: str = ""
    key: str = ""
    """Of the array in an .npz file."""

    @property
    def letters(self) -> list[str]:
        """The free sizes."""
        return [size for size in self.sizes or () if isinstance(size, str)]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, all of them known."""
        return tuple(size for size in self.sizes or () if isinstance(size, int))

    @property
    def is_floating(self) -> bool:
        """Whether it holds floating or complex numbers."""
        return self.dtype.startswith(("float", "bfloat", "complex"))


def input_words(texts: Iterable[str], letters: bool = False) -> dict[str, InputWord]:
    """The inputs that the command line gives, by name.

    Args:
        letters: whether sizes may be letters.

    Raises:
        InputWordError: one is not of this form, or is given twice.
    """
    words: dict[str, InputWord] = {}
    for one in (input_word(text, letters) for text in texts):
        if one.name in words:
            raise InputWordError(f"--input {one.name}=… is given twice: remove one of the two")
        words[one.name] = one
    return words


def input_word(text: str, letters: bool = False) -> InputWord:
    """The input that a word describes. Raises InputWordError: it describes none."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise InputWordError(f"--input {text}: write {FORM}, {EXAMPLES}")
    name, rest = match.groups()
    rest, at, given = rest.partition("@")
    rest, tilde, limits = rest.partition("~")
    shape, *flags = rest.split(":")
    try:
        found: dict[str, object] = {"name": name, "sizes": sizes_of(shape, letters)}
        for flag in flags:
            found |= flag_of(flag)
        if tilde:
            found |= range_of(limits)
        if at:
            found |= given_of(given)
        word = InputWord(**found)  # type: ignore[arg-type]
        if "below" in found and "dtype" not in found:
            word = word._replace(dtype="int64")
        check_word(word, bool(tilde), bool(at))
    except InputWordError as error:
        raise InputWordError(f"--input {text}: {error}") from None
    return word


def sizes_of(shape: str, letters: bool) -> tuple[int | str, ...] | None:
    """The sizes of a shape; None of an empty one."""
    if not shape:
        return None
    if not _SHAPE.fullmatch(shape):
        listed = re.fullmatch(r"[\[(]?([0-9]+(?: ?, ?[0-9]+)*),?[\])]?", shape)
        meant = re.sub(" ?, ?", "x", listed[1]) if listed else "sizes with x between them, such as 3x4, or scalar"
        also = "; free sizes are capital letters, such as BxT" if letters else ""
        raise InputWordError(f"{shape!r} is no shape: write {meant}{also}")
    sizes = () if shape == "scalar" else tuple(int(one) if one.isdigit() else one for one in shape.split("x"))
    if not letters and (named := [one for one in sizes if isinstance(one, str)]):
        raise InputWordError(f"{named[0]} is a free size, which `gradcheck explore` draws: write a number here")
    if len(sizes) > MAX_DIMENSIONS:
        raise InputWordError(f"{len(sizes)} axes are too many: at most {MAX_DIMENSIONS}")
    return sizes


def flag_of(flag: str) -> dict[str, object]:
    """What a part behind a colon says."""
    if flag in get_args(DType):
        return {"dtype": flag}
    if flag in get_args(Stands):
        return {"ranks": flag}
    if flag == "stopped":
        return {"stopped": True}
    if (below := re.fullmatch(r"below=([0-9]{1,9})", flag)) and int(below[1]) > 0:
        return {"below": int(below[1])}
    known = [*get_args(DType), "below=N", "stopped", "replicated", "partial"]
    otherwise = f"write one of {', '.join(known)}"
    what = f"unknown dtype {flag!r}" if re.fullmatch(r"[a-z]+\d+", flag) else f"{flag!r} says nothing here"
    raise InputWordError(f"{what}; {hint(flag, known, otherwise)}")


def range_of(limits: str) -> dict[str, object]:
    """What stands behind a tilde."""
    match = _RANGE.fullmatch(limits)
    if match is None or not float(match[1]) < float(match[2]):
        raise InputWordError(f"{limits!r} is no range: write ~LOW..HIGH, such as ~0.1..3")
    return {"low": float(match[1]), "high": float(match[2])}


def given_of(given: str) -> dict[str, object]:
    """What stands behind an @."""
    if re.fullmatch(NUMBER, given):
        return {"value": float(given)}
    file, _, key = given.partition("#")
    if not file.endswith((".npy", ".npz")):
        raise InputWordError("write a number or an .npy or .npz file behind @, such as @0 or @data.npz#key")
    if file.endswith(".npz") != bool(key):
        what = "names the array behind #, such as @data.npz#key" if file.endswith(".npz") else "holds one array: no #"
        raise InputWordError(f"{file} {what}")
    return {"file": file, "key": key}


def check_word(word: InputWord, ranged: bool, given: bool) -> None:
    """See that what a word says goes together. Raises InputWordError."""
    whole, below = not word.is_floating, word.below is not None
    problems = {
        f"what shape has it? Write {word.name}=3x4, or {word.name}=scalar": word.sizes is None and not word.file,
        "the file has the shape: write nothing between = and @": word.sizes is not None and bool(word.file),
        "a range and a value: write one of the two": ranged and given,
        f"a range is for floating numbers, not {word.dtype}: write below=N for whole ones": ranged and whole,
        f"below=N is for whole numbers, not {word.dtype}": below and (not whole or word.dtype == "bool"),
        "below=N and a value: write one of the two": below and given,
    }
    if problem := next((problem for problem, there in problems.items() if there), ""):
        raise InputWordError(problem)
