"""A scenario for a layer that is named, ``package.module:Layer``, from its signature, which is read and not run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, get_args

from gradcheck.case.naming import REFERENCE
from gradcheck.hint import hint
from gradcheck.reference import roots
from gradcheck.spec.world import OutputStands, Stands

_STANDS = "|".join(get_args(Stands))
_INPUT = re.compile(rf"([A-Za-z_]\w*)=(\d+(?:x\d+)*|scalar)(?::(?!{_STANDS})([a-z]+\d*))?(?::({_STANDS}))?")
USUAL_SHAPE = "[2, 3]"


class DraftError(ValueError):
    """A layer or an input that cannot be understood; the message says what to write."""


class Argument(NamedTuple):
    """An argument of a layer's forward."""

    name: str
    default: str | None
    """As the source has it; None if there is none."""


class Signature(NamedTuple):
    """What a layer's source says about how it is called."""

    reference: str
    file: Path
    line: int
    is_class: bool
    arguments: Sequence[Argument]

    @property
    def needed(self) -> list[str]:
        """The arguments without a default."""
        return [argument.name for argument in self.arguments if argument.default is None]

    def require(self, given: Iterable[str]) -> None:
        """See that the inputs `given` are those with which forward can be called as it stands.

        Raises:
            DraftError: there is no such argument, or one without a default is not given.
        """
        names, where = [argument.name for argument in self.arguments], f"{self.file.name}:{self.line}"
        if unknown := [name for name in given if name not in names]:
            otherwise = f"it takes {', '.join(names) or 'nothing'}"
            raise DraftError(f"{where}: forward has no argument {unknown[0]!r}; {hint(unknown[0], names, otherwise)}")
        if missing := [name for name in self.needed if name not in given]:
            wanted = " ".join(f"--input {name}=2x3" for name in missing)
            raise DraftError(
                f"{where}: forward takes {', '.join(self.needed)}: give the shapes of those that are Tensors "
                f"({wanted}), and with --call how it is called if others are not"
            )


class Shape(NamedTuple):
    """An input as the command line gives it: ``x=2x3``, ``x=2x3:float32``, or ``x=2x3:replicated`` in a world."""

    name: str
    sizes: tuple[int, ...]
    dtype: str
    ranks: str = ""


class InWorld(NamedTuple):
    """The world that the command line gives; nothing but empty texts for none."""

    world: str = ""
    """A number of ranks, or ranks along axes: ``4``, ``mp=2,dp=2``."""
    outputs: str = ""
    """What the outputs stand for: ``replicated``, or a word for each: ``split,replicated``."""
    random: str = ""

    def lines(self) -> list[str]:
        """As a scenario has it.

        Raises:
            DraftError: it is not of this form, or something is given without a world.
        """
        if not self.world:
            if self.outputs or self.random:
                option = "--outputs" if self.outputs else "--random"
                raise DraftError(f"{option} is for a world of ranks: say how many there are, such as --world 4")
            return []
        found = [f"    world: {self.written_world()}"]
        if self.outputs:
            words = self.outputs.split(",")
            if unknown := [word for word in words if word not in get_args(OutputStands)]:
                raise DraftError(f"--outputs {self.outputs}: {unknown[0]!r} is neither 'split' nor 'replicated'")
            written = [f"{{ranks: {word}}}" for word in words]
            found.append(f"    outputs: {written[0] if len(written) == 1 else '[' + ', '.join(written) + ']'}")
        if self.random:
            found.append(f"    random: {self.random}")
        return found

    def written_world(self) -> str:
        """The world, as a scenario has it. Raises DraftError."""
        if re.fullmatch(r"\d{1,9}", self.world):
            return str(int(self.world))
        pairs = [re.fullmatch(r"(\w+)=(\d{1,9})", part) for part in self.world.split(",")]
        if not all(pairs):
            raise DraftError(f"--world {self.world}: write a number of ranks, or ranks along axes, such as mp=2,dp=2")
        degrees = [(pair[1], int(pair[2])) for pair in pairs if pair]
        if len(dict(degrees)) < len(degrees):
            raise DraftError(f"--world {self.world}: an axis is given twice")
        return "{" + ", ".join(f"{axis}: {degree}" for axis, degree in degrees) + "}"


def shapes_of(texts: Iterable[str]) -> dict[str, Shape]:
    """The inputs that the command line gives, by name.

    Raises:
        DraftError: one is not of the form of `shape_of`, or is given twice.
    """
    shapes: dict[str, Shape] = {}
    for one in map(shape_of, texts):
        if one.name in shapes:
            raise DraftError(f"--input {one.name}=… is given twice: remove one of the two")
        shapes[one.name] = one
    return shapes


def shape_of(text: str) -> Shape:
    """The input that ``NAME=SIZES[:DTYPE][:RANKS]`` describes; ``scalar`` stands for no sizes.

    Raises:
        DraftError: it is not of this form.
    """
    match = _INPUT.fullmatch(text)
    if match is None:
        raise DraftError(
            f"--input {text}: write NAME=SIZES or NAME=SIZES:DTYPE, such as x=2x3 or x=2x3:float32; in a world also "
            f"what it stands for, such as x=2x3:replicated"
        )
    sizes = () if match[2] == "scalar" else tuple(map(int, match[2].split("x")))
    return Shape(match[1], sizes, match[3] or "float64", match[4] or "")


def signature_of(reference: str) -> Signature:
    """The signature of the layer or function that `reference` names, found from here or from the project's root.

    Raises:
        DraftError: there is no such file, or nothing of that name in it.
    """
    if not REFERENCE.fullmatch(reference) or reference.partition(":")[0].endswith(".py"):
        meant = meant_by(reference) or "package.module:Layer, such as mypkg.layers:OwnTanh"
        raise DraftError(f"{reference!r} names no layer: write {meant}")
    module, _, name = reference.partition(":")
    below = Path(*module.split("."))
    files = [root / form for root in roots() for form in (below.with_suffix(".py"), below / "__init__.py")]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        looked = " or ".join(map(str, roots()))
        beside = [(root / below.parent).glob("*.py") for root in roots()]
        near = get_close_matches(below.name, sorted({one.stem for files in beside for one in files}), 1)
        meant = f"; did you mean {'.'.join([*below.parts[:-1], *near])}?" if near else ""
        raise DraftError(f"there is no module {module} below {looked}{meant}")
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise DraftError(f"{file}:{error.lineno or 1}:{error.offset or 1}: {error.msg}: this is no Python") from None
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        raise DraftError(f"{file}: {error}") from None
    return _found(reference, file, tree, name.split("."))


def meant_by(text: str) -> str:
    """The reference that a path of a file, or a name with a dot for the colon, stands for; empty if none does."""
    place, _, name = text.removeprefix("./").rpartition(":" if ":" in text else ".")
    meant = f"{place.removesuffix('.py').replace('/', '.').replace(os.sep, '.')}:{name}"
    return meant if REFERENCE.fullmatch(meant) and name != "py" else ""


def _found(reference: str, file: Path, tree: ast.Module, names: Sequence[str]) -> Signature:
    """The signature of what stands under `names`, one within the other, in the module."""
    body: Sequence[ast.stmt] = tree.body
    node: ast.ClassDef | ast.FunctionDef | None = None
    for name in names:
        known = {one.name: one for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        if name not in known:
            there = f"there is {', '.join(known) or 'no class or function'}"
            raise DraftError(f"{file} has no {name!r} at its top; {hint(name, known, there)}")
        node = known[name]
        body = node.body
    assert node is not None
    function, skipped = node, 0
    if isinstance(node, ast.ClassDef):
        own = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "forward"]
        if not own:
            raise DraftError(f"{file}:{node.lineno}: class {node.name} has no forward of its own")
        function, skipped = own[0], 1  # ctx
    assert isinstance(function, ast.FunctionDef)
    return Signature(reference, file, node.lineno, isinstance(node, ast.ClassDef), arguments_of(function)[skipped:])


def arguments_of(function: ast.FunctionDef) -> list[Argument]:
    """The arguments that a function can be given by position."""
    names = [*function.args.posonlyargs, *function.args.args]
    defaults = [None] * (len(names) - len(function.args.defaults)) + [*map(ast.unparse, function.args.defaults)]
    return [Argument(one.arg, default) for one, default in zip(names, defaults, strict=True)]


def draft(
    signature: Signature,
    shapes: Mapping[str, Shape],
    *,
    call: str = "",
    order: int = 1,
    comments: bool = True,
    world: InWorld = InWorld(),  # noqa: B008 - it does not change
) -> str:
    """A spec file with one scenario for the layer.

    Raises:
        DraftError: what is said of a world cannot be understood, or there is none.

    `shapes` are its inputs; with none, every argument without a default is an input of `USUAL_SHAPE`. With `comments`
    the file says what can be changed.
    """
    name = signature.reference.rpartition(":")[2].rpartition(".")[2]
    identity = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-") or "layer"
    inputs = [*shapes.values()] or [Shape(one, (), "") for one in signature.needed]
    of_world = world.lines()
    if not of_world and (marked := [one for one in inputs if one.ranks]):
        option = f"--input {marked[0].name}=…:{marked[0].ranks}"
        raise DraftError(f"{option} is for a world of ranks: say how many there are, such as --world 4")
    lines = [
        "schema: gradcheck/v1",
        "scenarios:",
        f"  - id: {identity}",
        *of_world[:1],
        f"    layer: {{ref: {signature.reference!r}}}",
    ]
    told = [argument for argument in signature.arguments if argument.name not in {one.name for one in inputs}]
    if call:
        lines.append(f"    call: {_quoted(call)}")
    elif comments and told:
        arguments = ", ".join([*(one.name for one in inputs), *(f"{a.name}={a.default or '…'}" for a in told)])
        open_ones = [a.name for a in told if a.default is None]
        needed = f"  # needed: say what {' and '.join(open_ones)} shall be" if open_ones else ""
        lines.append(f"    # call: {name}{'.apply' if signature.is_class else ''}({arguments}){needed}")
    lines.append("    inputs:")
    for one in inputs:
        sizes = USUAL_SHAPE if not one.dtype else f"[{', '.join(map(str, one.sizes))}]"
        dtype = f", dtype: {one.dtype}" if one.dtype not in ("", "float64") else ""
        ranks = f", ranks: {one.ranks}" if one.ranks else ""
        note = "  # or values: [[…]], near: [0.0], init: uniform, stop_gradient: true" if comments else ""
        lines.append(f"      {one.name}: {{shape: {sizes}{dtype}{ranks}}}{note}")
    lines += of_world[1:]
    if order == 2:
        lines.append("    expect: {order: 2}")
    if comments:
        lines += [
            "    # expect:",
            *([] if of_world else ["    #   order: 2                       # the derivative of the gradient as well"]),
            "    #   gradient: straight-through     # or zero, differs: what is not meant as the derivative",
            "    # matrix: {dtype: [float32, float64]}",
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
