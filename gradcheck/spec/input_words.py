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
        found: dict[str, object] = {
            "name": name,
            "sizes": _sizes(shape, letters) if shape else None,
        }
        for flag in flags:
            found |= _flag(flag)
        if "below" in found:
            found.setdefault("dtype", "int64")
        if tilde:
            ends = _RANGE.fullmatch(limits)
            if ends is None or not float(ends[1]) < float(ends[2]):
                raise InputWordError(f"{limits!r} is no range: write ~LOW..HIGH, such as ~0.1..3")
            found |= {"low": float(ends[1]), "high": float(ends[2])}
        if at:
            found |= _given(given)
        word = InputWord(**found)  # type: ignore[arg-type]
        if problem := _problem(word, bool(tilde), bool(at)):
            raise InputWordError(problem)
    except InputWordError as error:
        raise InputWordError(f"--input {text}: {error}") from None
    return word


def _sizes(shape: str, letters: bool) -> tuple[int | str, ...]:
    if not _SHAPE.fullmatch(shape):
        listed = re.fullmatch(r"[\[(]?([0-9]+(?: ?, ?[0-9]+)*),?[\])]?", shape)
        meant = (
            re.sub(" ?, ?", "x", listed[1])
            if listed
            else "sizes with x between them, such as 3x4, or scalar"
        )
        also = "; free sizes are capital letters, such as BxT" if letters else ""
        raise InputWordError(f"{shape!r} is no shape: write {meant}{also}")
    sizes = (
        ()
        if shape == "scalar"
        else tuple(int(one) if one.isdigit() else one for one in shape.split("x"))
    )
    if not letters and (named := [one for one in sizes if isinstance(one, str)]):
        raise InputWordError(
            f"{named[0]} is a free size, which `gradcheck explore` draws: write a number here"
        )
    if len(sizes) > MAX_DIMENSIONS:
        raise InputWordError(f"{len(sizes)} axes are too many: at most {MAX_DIMENSIONS}")
    return sizes


def _flag(flag: str) -> dict[str, object]:
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
    what = (
        f"unknown dtype {flag!r}"
        if re.fullmatch(r"[a-z]+\d+", flag)
        else f"{flag!r} says nothing here"
    )
    raise InputWordError(f"{what}; {hint(flag, known, 'write one of ' + ', '.join(known))}")


def _given(given: str) -> dict[str, object]:
    """What stands behind an @."""
    if re.fullmatch(NUMBER, given):
        return {"value": float(given)}
    file, _, key = given.partition("#")
    if not file.endswith((".npy", ".npz")):
        raise InputWordError(
            "write a number or an .npy or .npz file behind @, such as @0 or @data.npz#key"
        )
    if file.endswith(".npz") != bool(key):
        what = (
            "names the array behind #, such as @data.npz#key"
            if file.endswith(".npz")
            else "holds one array: no #"
        )
        raise InputWordError(f"{file} {what}")
    return {"file": file, "key": key}


def _problem(word: InputWord, ranged: bool, given: bool) -> str:
    """Why what a word says does not go together; empty if it does."""
    whole, below = not word.is_floating, word.below is not None
    problems = {
        f"what shape has it? Write {word.name}=3x4, or {word.name}=scalar": word.sizes is None
        and not word.file,
        "the file has the shape: write nothing between = and @": word.sizes is not None
        and bool(word.file),
        "a range and a value: write one of the two": ranged and given,
        f"a range is for floating numbers, not {word.dtype}: write below=N for whole ones": ranged
        and whole,
        f"below=N is for whole numbers, not {word.dtype}": below
        and (not whole or word.dtype == "bool"),
        "below=N and a value: write one of the two": below and given,
    }
    return next((problem for problem, there in problems.items() if there), "")
