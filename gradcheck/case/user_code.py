"""The user's code: imported by name or compiled from a spec, and the source positions of its
errors.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from gradcheck.backends.base import FRAMEWORK_PACKAGES, Backend, Spot
from gradcheck.case.naming import is_file
from gradcheck.spec.literals import NAMES_OF_FRAMEWORKS
from gradcheck.spec.model import Input
from gradcheck.support.pyproject import roots
from gradcheck.support.suggest import hint, nearest
from gradcheck.support.user_error import UserError


class NoLayerError(UserError, ImportError):
    """There is no layer of that name, or it cannot be called this way; the message says what to
    do.
    """


def import_reference(reference: str, folder: Path | None = None) -> Any:
    """The object that ``package.module:name`` names, searched for in `roots`.

    Raises:
        NoLayerError: there is no such module or name, or the reference does not have this form.
    """
    return find_in_module(module_of_reference(reference, folder), reference)


def module_of_reference(reference: str, folder: Path | None = None) -> ModuleType:
    """The module of ``package.module:name``. Raises NoLayerError: there is none."""
    name = reference.partition(":")[0]
    if not all(reference.partition(":")):
        raise NoLayerError(
            f"{reference!r} is not a reference: write package.module:name, such as layers.mine:Tanh"
        )
    places = roots(folder)
    sys.path[:0] = [str(root) for root in places if str(root) not in sys.path]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # a module that this one imports
        near = meant_module(name, places)
        where = ", ".join(map(str, places))
        raise NoLayerError(f"there is no module {name} below {where}; {near}") from error
    except SyntaxError as error:
        place = f"{error.filename}:{error.lineno or 1}:{error.offset or 1}"
        raise NoLayerError(f"{place}: {error.msg}: this is not Python") from error


def meant_module(name: str, places: Sequence[Path]) -> str:
    """Return advice on a module that does not exist: the layer that the name probably means, a
    module in a package whose last name is the same, or a module with a similar name.
    """
    *package, last = name.split(".")
    for file in [root.joinpath(*package).with_suffix(".py") for root in places if package]:
        if file.is_file() and last in file.read_text("utf-8", "replace"):
            return f"did you mean {'.'.join(package)}:{last}?"
    modules = list[str]()
    for pattern in [f"{'*/' * depth}{last}.py" for depth in (0, 1, 2, 3)]:
        for root in places:
            modules += [dotted_name(file, root) for file in sorted(root.glob(pattern))]
    if found := [module for module in modules if re.fullmatch(r"[^\W\d]\w*(\.\w+)*", module)]:
        likeliest = min(found, key=lambda other: (not other.endswith(f".{name}"), len(other)))
        return f"did you mean {likeliest}?"
    beside = "/".join([*package, "*.py"])
    by_last = {file.stem: dotted_name(file, root) for root in places for file in root.glob(beside)}
    near = by_last.get(nearest(last, by_last))
    return f"did you mean {near}?" if near else "name one of your modules"


def dotted_name(file: Path, root: Path) -> str:
    """Return the dotted name of the module in a file; `root` is a folder of ``sys.path``."""
    return ".".join(file.relative_to(root).with_suffix("").parts)


def find_in_module(module: ModuleType, reference: str) -> Any:
    """The object that a reference names in its module. Raises NoLayerError: the module lacks the
    name.
    """
    name = reference.partition(":")[2]
    owner, _, method = name.rpartition(".")
    try:
        target = attrgetter(name)(module)
    except AttributeError as error:
        names = [known for known in dir(error.obj) if not known.startswith("_")]
        defined = [
            known for known in names if is_defined_in(module, getattr(error.obj, known, None))
        ]
        otherwise = f"there is {', '.join(defined)}" if defined else ""
        near = meant_in_package(module, name.rpartition(".")[2])
        near = near or hint(error.name or name, names, otherwise)
        raise NoLayerError(
            f"module {module.__name__!r} has no {name!r}" + (near and f"; {near}")
        ) from error
    layer = attrgetter(owner)(module) if method in ("forward", "backward") else None
    if inspect.isclass(layer) and hasattr(layer, "apply"):
        raise NoLayerError(
            f"{name} is a part of the layer {owner}: write {reference.removesuffix(f'.{method}')}"
        )
    return target


def meant_in_package(module: ModuleType, name: str) -> str:
    """Return advice naming the module of a package that defines a name; empty if none does."""
    for folder in getattr(module, "__path__", ()):
        for file in sorted(Path(folder).glob("*.py")):
            if re.search(rf"^(?:class|def) {name}\b", file.read_text("utf-8", "replace"), re.M):
                return f"did you mean {module.__name__}.{file.stem}:{name}?"
    return ""


def require_known(name: str, call: str, known: Iterable[str], module: str) -> None:
    """Raise NoLayerError if a call reads a name that is not `known`: neither an input nor a name
    in the layer's module.
    """
    known = list(known)
    if name in known:
        return
    package, _, last = module.rpartition(".")
    unqualified = re.sub(rf"\b(?:{re.escape(package)}\.)?{last}\.", "", call)
    meant = hint(name, known, "it may use the inputs, and the names of the layer's module")
    if name in module.split(".") and unqualified != call:
        meant = f"the names of the layer's module are written without it: {unqualified}"
    raise NoLayerError(f"call: there is no {name!r}; {meant}")


def is_defined_in(module: ModuleType, value: Any) -> bool:
    """Whether a value is a class or function that a module defines."""
    return callable(value) and getattr(value, "__module__", "") == module.__name__


under_way: set[str] = set()
"""The references that are being imported again."""


def import_anew(reference: str) -> Any:
    """The object of `import_reference` from freshly loaded modules, see `module_anew`."""
    return find_in_module(module_anew(reference), reference)


def module_anew(reference: str, folder: Path | None = None) -> ModuleType:
    """The module of `module_of_reference`, loaded again: module-level values of the user's code are
    as in a new process.

    Afterwards `sys.modules` is as it was.

    Raises:
        ImportError: also if a module waits for other ranks during its import, while they import it
            as well.
    """
    if under_way:
        raise ImportError(
            f"{reference} waits for other ranks during its import: wait in a function instead"
        )
    package, places = reference.partition(":")[0].partition(".")[0], roots(folder)
    project_modules = {
        name: module
        for name, module in sys.modules.items()
        if is_projects(name, module, package, places)
    }
    for name in project_modules:
        del sys.modules[name]
    under_way.add(reference)
    try:
        return module_of_reference(reference, folder)
    finally:
        under_way.clear()
        sys.modules.update(project_modules)


def is_projects(name: str, module: Any, package: str, places: Sequence[Path]) -> bool:
    """Whether a module belongs to a package, or is the user's: below one of some folders and not
    installed.
    """
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
    if name == "__main__" or not file or file.endswith((".so", ".pyd")) or not is_users(file):
        return False
    below = "-packages" not in file and any(Path(file).is_relative_to(place) for place in places)
    return below or name.partition(".")[0] == package


@contextmanager
def engine(*, always: bool = False) -> Iterator[None]:
    """A block in which ``import paddle`` gives the bundled engine, if no Paddle is installed; with
    `always`, unless one has been imported.

    Modules imported in the block keep the engine afterwards; ``import paddle`` itself is as before.
    """
    if "paddle" in sys.modules or (not always and find_spec("paddle") is not None):
        yield
        return
    import pylayer

    pylayer.install_paddle()
    try:
        yield
    finally:
        pylayer.uninstall_paddle()


Namespace = dict[str, Any]

GRADIENT_FUNCTIONS = frozenset({"append_backward", "backward", "grad", "gradients"})
"""The public functions of frameworks that take gradients."""
GRADIENT_MODULE = "pylayer.tape.autograd"
"""The attributes from which the engine reads these functions, under whichever name they are
called.
"""


@functools.lru_cache(maxsize=8)
def compile_text(source: str, path: str, line: int, mode: str) -> CodeType:
    """The compiled code of a text that is in the file `path` from `line` on; all ranks of a world
    run the same object.
    """
    return compile("\n" * (line - 1) + source, path, mode)


def run_source(source: str, path: str, first_line: int, namespace: Namespace) -> None:
    """Run `source`, which is in the file `path` from `first_line` on, in `namespace`."""
    exec(compile_text(source, path, first_line, "exec"), namespace)


def compile_expression(expression: str, path: str, line: int) -> CodeType:
    """An expression that is in the file `path` at `line`, compiled for ``eval``."""
    return compile_text(expression.strip(), path, line, "eval")


def new_namespace(backend: Backend) -> Namespace:
    """Names that a layer's code can use without importing them, as in the examples of the
    framework's documents: paddle, PyLayer and np.
    """
    import numpy as np

    return {"__name__": "__main__", **backend.names(), "np": np}


# ------------------------------ errors and their positions
def hint_of_framework(error: BaseException) -> str:
    """A hint if code reads a name of another framework than the file's; empty for any other
    error.
    """
    name = error.name if isinstance(error, NameError) else ""
    for framework, names in NAMES_OF_FRAMEWORKS.items():
        if name in names:
            return f"{name} is defined in files with 'framework: {framework}' at their top"
    return ""


NAMES_DTYPES = re.compile(r"dtype|float64|double|indices must be", re.IGNORECASE)
"""Words in which frameworks refuse the dtype of a Tensor."""


def hint_of_dtype(message: str, inputs: Mapping[str, Input]) -> str:
    """A hint if an error may be about the dtype of an input that has the default; otherwise
    empty.
    """
    is_default = (not each.dtype_written and each.dtype == "float64" for each in inputs.values())
    if not NAMES_DTYPES.search(message) or not any(is_default):
        return ""
    return (
        "an input is float64 unless its dtype is written, such as -i x=2x3:float32 or "
        "k=4:below=5, whole numbers (in a spec file, dtype: float32)"
    )


Frame = tuple[str, int]
"""A line of a file."""

LIBRARIES = FRAMEWORK_PACKAGES | {"cupy", "decorator", "numpy", "scipy"}
"""Installed packages whose frames are not reported as the place of a mistake; Paddle wraps its
functions by `decorator`.
"""
IMPORTING = "<frozen importlib"
"""The prefix of the file names of Python's import machinery."""
MOST_CALLS = 5
"""The most calls of a chain that are shown, from the innermost."""


ROOTS = (
    *(
        Path(folder)
        for spec in map(find_spec, ("gradcheck", "pylayer"))
        if spec
        for folder in spec.submodule_search_locations or ()
    ),
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")),
)
"""The folders of gradcheck, the engine and Python's own library. Computed once for all cases."""


@functools.cache
def is_users(file: str) -> bool:
    """Whether a file is the user's: not part of gradcheck, the engine, Python's own library or
    `LIBRARIES`.
    """
    path = Path(file)
    if file.startswith("<"):
        return False
    for folder in ("site-packages", "dist-packages"):
        if folder in path.parts:
            package = Path(path.parts[path.parts.index(folder) + 1]).stem
            return package not in LIBRARIES | {"gradcheck"}
    return not any(path.is_relative_to(root) for root in ROOTS)


def frames_of(error: BaseException) -> list[Frame]:
    """The frames that an error passed through, the outermost first; last those in the process of a
    rank, or the place of code that Python does not compile.
    """
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    if isinstance(error, SyntaxError):
        frames.append((str(error.filename), error.lineno or 1))
    return [*frames, *getattr(error, "frames_of_rank", ())]


def spot_of_error(error: BaseException) -> Spot | None:
    """The innermost instruction of the user's code that an error passed through."""
    spot, step = None, error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        spot = (code, step.tb_lasti) if is_users(code.co_filename) else spot
        step = step.tb_next
    return spot


def users_frames(frames: Iterable[Frame], spec: str) -> list[Frame]:
    """The user's frames among `frames`; `spec` is the file of the scenario."""
    return [
        (file, line) for file, line in frames if (is_file(spec) if file == spec else is_users(file))
    ]


def innermost_place(frames: Iterable[Frame], spec: str) -> str:
    """``file:line`` of the innermost of the user's frames; empty if there is none."""
    own_frames = users_frames(frames, spec)
    return f"{own_frames[-1][0]}:{own_frames[-1][1]}" if own_frames else ""


def place_of_frames(frames: Iterable[Frame], spec: str) -> str:
    """The user's frames among `frames` (outermost first) in words: ``line 3 of layers.py, called
    from line 7 of …``.

    Only the innermost of the frames in the file `spec` is reported, if that file exists. Empty if
    no frame is the user's.
    """
    own_frames = users_frames(frames, spec)
    last = max((index for index, (file, _) in enumerate(own_frames) if file == spec), default=0)
    working_folder = f"{Path.cwd()}{os.sep}"
    lines = [
        f"line {line} of {'the spec' if file == spec else file.removeprefix(working_folder)}"
        for file, line in own_frames[last:][::-1]
    ]
    return ", called from ".join(lines[:MOST_CALLS])


def with_place(message: str, error: BaseException, spec: str, otherwise: int = 0) -> str:
    """Return an error's `message`, followed by its source position in parentheses; line
    `otherwise` of the spec if the position is unknown.
    """
    unknown = f"line {otherwise} of the spec" if otherwise and is_file(spec) else ""
    where = place_of_frames(frames_of(error), spec) or unknown
    return f"{message} ({where})" if where else message


def raised_by_scenario(path: str, error: BaseException) -> bool:
    """Whether the code of the spec `path`, or the engine called by it, raised the error; otherwise
    it is a bug of gradcheck.

    An error of a rank in another process brings the frames of that process along. A module that
    Python cannot read or parse is the user's.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    importing = bool(frames) and frames[-1].f_code.co_filename.startswith(IMPORTING)
    if hasattr(error, "frames_of_rank") or isinstance(error, ImportError) or importing:
        return True
    engine = any(package_of_frame(frame) in FRAMEWORK_PACKAGES for frame in frames)
    return engine or any(file == path or is_users(file) for file, _ in frames_of(error))


def package_of_frame(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def phase_of(error: BaseException) -> str:
    """``backward`` if the error was raised while gradients were taken, otherwise ``forward``."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        public = (
            package_of_frame(frame) in FRAMEWORK_PACKAGES
            and frame.f_code.co_name in GRADIENT_FUNCTIONS
        )
        if public or frame.f_globals.get("__name__") == GRADIENT_MODULE:
            return "backward"
    return "forward"
