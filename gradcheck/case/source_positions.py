"""Where in the user's own files something happened: in the spec, or in a module that the layer comes from."""

from __future__ import annotations

import functools
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from gradcheck.case.naming import is_file

Frame = tuple[str, int]
"""A file and a line of it."""

LIBRARIES = frozenset({"cupy", "decorator", "numpy", "paddle", "scipy"})
"""Installed packages in which nobody looks for a mistake in a layer; Paddle wrapped its functions by `decorator`."""
MOST_CALLS = 5
"""Calls that are shown of a chain, from the innermost."""


ROOTS = (
    *(
        Path(folder)
        for one in map(find_spec, ("gradcheck", "pylayer"))
        if one
        for folder in one.submodule_search_locations or ()
    ),
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)
"""The folders of gradcheck, the engine and Python's own library. Found at once: else every case would find them."""


@functools.cache
def is_users(file: str) -> bool:
    """Whether a file is the user's: none of gradcheck, the engine, Python's own library or `LIBRARIES`."""
    path = Path(file)
    if file.startswith("<"):
        return False
    for folder in ("site-packages", "dist-packages"):
        if folder in path.parts:
            below = path.parts[path.parts.index(folder) + 1 :]
            return Path(below[0]).stem not in LIBRARIES | {"gradcheck", "pylayer"} if below else True
    return not any(path.is_relative_to(root) for root in ROOTS)


def frames_of(error: BaseException) -> list[Frame]:
    """The frames that an error passed through, the outermost first; last those in the process of a rank."""
    here = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return [*here, *getattr(error, "frames_of_rank", ())]


def place_of_frames(frames: Iterable[Frame], spec: str) -> str:
    """The user's frames among `frames`, which come outermost first: ``line 3 of layers.py, called from line 7 of …``.

    Of the frames in the file `spec` only the innermost is told, if there is such a file. Empty if none is the user's.
    """
    own = [(file, line) for file, line in frames if (is_file(spec) if file == spec else is_users(file))]
    last = max((at for at, (file, _) in enumerate(own) if file == spec), default=0)
    chain = own[last:][::-1][:MOST_CALLS]
    return ", called from ".join(f"line {line} of {_shown(file, spec)}" for file, line in chain)


def _shown(file: str, spec: str) -> str:
    if file == spec:
        return "the spec"
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def with_place(what: str, error: BaseException, spec: str, otherwise: int = 0) -> str:
    """`what` an error says, and in parentheses where it came from; line `otherwise` of the spec if that is unknown."""
    unknown = f"line {otherwise} of the spec" if otherwise and is_file(spec) else ""
    where = place_of_frames(frames_of(error), spec) or unknown
    return f"{what} ({where})" if where else what


def is_in(frames: Sequence[Frame], spec: str) -> bool:
    """Whether a file of the user's is among `frames`."""
    return any(file == spec or is_users(file) for file, _ in frames)
