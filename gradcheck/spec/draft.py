"""A scenario for a layer that is named, ``package.module:Layer``, from its signature, which is read and not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gradcheck.reference import roots

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_INPUT = re.compile(r"([A-Za-z_]\w*)=(\d+(?:x\d+)*|scalar)(?::([a-z]+\d*))?")
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


class Shape(NamedTuple):
    """An input as the command line gives it: ``x=2x3`` or ``x=2x3:float32``."""

    name: str
    sizes: tuple[int, ...]
    dtype: str


def shape_of(text: str) -> Shape:
    """The input that ``NAME=SIZES[:DTYPE]`` describes; ``scalar`` stands for no sizes.

    Raises:
        DraftError: it is not of this form.
    """
    match = _INPUT.fullmatch(text)
    if match is None:
        raise DraftError(f"--input {text}: write NAME=SIZES or NAME=SIZES:DTYPE, such as x=2x3 or x=2x3:float32")
    sizes = () if match[2] == "scalar" else tuple(map(int, match[2].split("x")))
    return Shape(match[1], sizes, match[3] or "float64")


def signature_of(reference: str) -> Signature:
    """The signature of the layer or function that `reference` names, found from here or from the project's root.

    Raises:
        DraftError: there is no such file, or nothing of that name in it.
    """
    if not _REFERENCE.fullmatch(reference):
        raise DraftError(f"{reference!r} names no layer: write package.module:Layer, such as mypkg.layers:OwnTanh")
    module, _, name = reference.partition(":")
    below = Path(*module.split("."))
    files = [root / form for root in roots() for form in (below.with_suffix(".py"), below / "__init__.py")]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        looked = " or ".join(map(str, roots()))
        raise DraftError(f"there is no module {module} below {looked}")
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError) as error:
        raise DraftError(f"{file}: {error}") from None
    return _found(reference, file, tree, name.split("."))


def _found(reference: str, file: Path, tree: ast.Module, names: Sequence[str]) -> Signature:
    """The signature of what stands under `names`, one within the other, in the module."""
    body: Sequence[ast.stmt] = tree.body
    node: ast.ClassDef | ast.FunctionDef | None = None
    for name in names:
        known = {one.name: one for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        if name not in known:
            there = ", ".join(known) or "no class or function"
            raise DraftError(f"{file} has no {name!r} at its top; there is {there}")
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
    signature: Signature, shapes: Mapping[str, Shape], *, call: str = "", order: int = 1, comments: bool = True
) -> str:
    """A spec file with one scenario for the layer.

    `shapes` are its inputs; with none, every argument without a default is an input of `USUAL_SHAPE`. With `comments`
    the file says what can be changed.
    """
    name = signature.reference.rpartition(":")[2].rpartition(".")[2]
    identity = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-") or "layer"
    inputs = [*shapes.values()] or [Shape(one, (), "") for one in signature.needed]
    lines = [
        "schema: gradcheck/v1",
        "scenarios:",
        f"  - id: {identity}",
        f"    layer: {{ref: {signature.reference!r}}}",
    ]
    told = [argument for argument in signature.arguments if argument.name not in {one.name for one in inputs}]
    if call:
        lines.append(f"    call: {_quoted(call)}")
    elif comments and told:
        arguments = ", ".join([*(one.name for one in inputs), *(f"{a.name}={a.default}" for a in told)])
        lines.append(f"    # call: {name}{'.apply' if signature.is_class else ''}({arguments})")
    lines.append("    inputs:")
    for one in inputs:
        sizes = USUAL_SHAPE if not one.dtype else f"[{', '.join(map(str, one.sizes))}]"
        dtype = f", dtype: {one.dtype}" if one.dtype not in ("", "float64") else ""
        note = "  # or values: [[…]], near: [0.0], init: uniform, stop_gradient: true" if comments else ""
        lines.append(f"      {one.name}: {{shape: {sizes}{dtype}}}{note}")
    if order == 2:
        lines.append("    expect: {order: 2}")
    if comments:
        lines += [
            "    # expect:",
            "    #   order: 2                       # the derivative of the gradient as well",
            "    #   gradient: straight-through     # or zero, differs: what is not meant as the derivative",
            "    # matrix: {dtype: [float32, float64]}",
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
