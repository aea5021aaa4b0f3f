"""An input in one word, as the command line takes it: ``x=3x4:float32``, ``k=4:int64:below=5``,
``x=5~0.1..3``.

    NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated|:partial][~LOW..HIGH][@NUMBER|@FILE[#KEY]]

A shape is sizes with ``x`` between them, ``scalar`` for none; a size is a number or, for `gradcheck
explore`, a capital letter, the same for all inputs. Nothing in a word needs quoting in a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

from gradcheck.spec.literals import MAX_DIMENSIONS, DType, Stands
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

FORM = "NAME=[SHAPE][:DTYPE][:below=N][:stopped][:replicated][~LOW..HIGH][@NUMBER|@FILE[#KEY]]"
EXAMPLES = "such as x=3x4, x=5~0.1..3, k=4:int64:below=5, m=5:bool, x=5@0 or x=@data.npz#key"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = re.compile(
    r"(?P<name>[A-Za-z_]\w*)=(?P<shape>[^:~@]*)(?P<flags>[^~@]*)(~(?P<range>[^@]*))?(@(?P<given>.*))?",
    re.DOTALL,
)
_SHAPE = re.compile(r"(?:\d+|[A-Z])(?:x(?:\d+|[A-Z]))*")
_RANGE = re.compile(rf"({NUMBER})\.\.({NUMBER})")
_FLAGS: dict[str, dict[str, Any]] = {
    **{dtype: {"dtype": dtype} for dtype in get_args(DType)},
    **{stands: {"ranks": stands} for stands in get_args(Stands)},
    "stopped": {"stopped": True},
}


class InputWordError(UserError, ValueError):
    """A word that describes no input; the message says what to write."""


class InputWord(NamedTuple):
    """An input as a word describes it, such as ``x=3x4``."""

    name: str
    sizes: tuple[int | str, ...] | None = None
    """None if a file has them, or the word does not name them."""
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
    for text in texts:
        word = input_word(text, letters)
        if word.name in words:
            raise InputWordError(f"--input {word.name}=… is given twice: remove one of the two")
        words[word.name] = word
    return words


def input_word(text: str, letters: bool = False) -> InputWord:
    """The input that a word describes. Raises InputWordError: it describes none."""
    match = _WORD.fullmatch(text)
    if match is None:
        raise InputWordError(f"--input {text}: write {FORM}, {EXAMPLES}")
    try:
        fields: dict[str, Any] = {}
        for flag in match["flags"].split(":")[1:]:
            fields |= _flag(flag)
        if match["shape"]:
            fields["sizes"] = _sizes(match["shape"], letters)
        if match["range"] is not None:
            fields |= _limits(match["range"])
        if match["given"] is not None:
            fields |= _given(match["given"])
        word = InputWord(match["name"], **{"dtype": _usual_dtype(fields), **fields})
        _require_consistent(word)
    except InputWordError as error:
        raise InputWordError(f"--input {text}: {error}") from None
    return word


def _usual_dtype(fields: dict[str, Any]) -> str:
    return "int64" if "below" in fields else "float64"


def _sizes(shape: str, letters: bool) -> tuple[int | str, ...]:
    if shape == "scalar":
        return ()
    if not _SHAPE.fullmatch(shape):
        meant = "x".join(re.findall(r"\d+", shape)) or "3x4"
        raise InputWordError(
            f"{shape!r} is no shape: write {meant}: sizes with x between them, such as 3x4, or "
            "scalar; sizes that explore draws are capital letters"
        )
    sizes = tuple(int(size) if size.isdecimal() else size for size in shape.split("x"))
    if len(sizes) > MAX_DIMENSIONS:
        raise InputWordError(f"{len(sizes)} axes are too many: at most {MAX_DIMENSIONS}")
    for size in sizes:
        if isinstance(size, str) and not letters:
            raise InputWordError(
                f"{size} is a free size, which `gradcheck explore` draws: write a number here"
            )
    return sizes


def _flag(flag: str) -> dict[str, Any]:
    """Parse a part behind a colon."""
    if below := re.fullmatch(r"below=([1-9][0-9]{0,8})", flag):
        return {"below": int(below[1])}
    if flag not in _FLAGS:
        known = [*_FLAGS, "below=N"]
        help = hint(flag, known, f"write one of {', '.join(known)}")
        raise InputWordError(f"unknown option {flag!r}; {help}")
    return _FLAGS[flag]


def _limits(text: str) -> dict[str, Any]:
    """Parse the range behind a ~."""
    ends = _RANGE.fullmatch(text)
    if ends is None or not float(ends[1]) < float(ends[2]):
        raise InputWordError(f"{text!r} is no range: write ~LOW..HIGH, such as ~0.1..3")
    return {"low": float(ends[1]), "high": float(ends[2])}


def _given(text: str) -> dict[str, Any]:
    """Parse the values behind an @."""
    if re.fullmatch(NUMBER, text):
        return {"value": float(text)}
    file, _, key = text.partition("#")
    if not file.endswith((".npy", ".npz")):
        raise InputWordError(
            "write a number or an .npy or .npz file behind @, such as @0 or @data.npz#key"
        )
    if file.endswith(".npz") != bool(key):
        raise InputWordError(
            f"{file}: name the array of an .npz file behind #, such as @data.npz#key; an .npy file "
            "holds one array: no #"
        )
    return {"file": file, "key": key}


def _require_consistent(word: InputWord) -> None:
    """Raise InputWordError if what a word says does not go together."""
    given = {
        "~LOW..HIGH": word.low is not None,
        "below=N": word.below is not None,
        "a value": word.value is not None,
        "a file": bool(word.file),
    }
    sources = [source for source, is_given in given.items() if is_given]
    if len(sources) > 1:
        raise InputWordError(f"{' and '.join(sources)}: write one of the two")
    if (word.sizes is None) != bool(word.file):
        raise InputWordError(
            f"what shape has it? Write {word.name}=3x4, or {word.name}=scalar; a file has its own"
        )
    if word.low is not None and not word.is_floating:
        raise InputWordError(
            f"a range is for floating numbers, not {word.dtype}: write below=N for whole ones"
        )
    if word.below is not None and (word.is_floating or word.dtype == "bool"):
        raise InputWordError(f"below=N is for whole numbers, not {word.dtype}")
