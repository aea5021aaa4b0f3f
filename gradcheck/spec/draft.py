"""A scenario for a layer that is named, ``package.module:Layer``, from its signature, which is read and not run."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple, get_args

from gradcheck.spec.input_words import InputWord
from gradcheck.spec.literals import OutputStands
from gradcheck.spec.model import REFERENCE
from gradcheck.support.pyproject import roots
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

USUAL_SHAPE = "[2, 3]"
MOST_IMPORTS = 20
"""Modules, or classes, that are gone through from one to the next until a name or a method is found."""


class DraftError(UserError):
    """A layer or an input that cannot be understood; the message says what to write."""


class Signature(NamedTuple):
    """What a layer's source says about how it is called."""

    reference: str
    file: Path
    line: int
    is_class: bool
    arguments: Mapping[str, str | None]
    """The arguments of its forward, with their defaults as the source has them; None of one without."""

    @property
    def needed(self) -> list[str]:
        """The arguments without a default."""
        return [name for name, default in self.arguments.items() if default is None]

    def require(self, given: Iterable[str]) -> None:
        """See that the inputs `given` are those with which forward can be called as it stands.

        Raises:
            DraftError: there is no such argument, or one without a default is not given.
        """
        where = f"{self.file.name}:{self.line}"
        if unknown := [name for name in given if name not in self.arguments]:
            otherwise = f"it takes {', '.join(self.arguments) or 'nothing'}"
            near = hint(unknown[0], self.arguments, otherwise)
            raise DraftError(f"{where}: forward has no argument {unknown[0]!r}; {near}")
        if missing := [name for name in self.needed if name not in given]:
            wanted = " ".join(f"--input {name}=2x3" for name in missing)
            raise DraftError(
                f"{where}: forward takes {', '.join(self.needed)}: give the shapes of those that are Tensors "
                f"({wanted}), and with --call how it is called if others are not"
            )


class InWorld(NamedTuple):
    """The world that the command line gives; nothing but empty texts for none."""

    world: str = ""
    """A number of ranks, or ranks along axes: ``4``, ``mp=2,dp=2``."""
    outputs: str = ""
    """What the outputs stand for: ``replicated``, or a word for each: ``split,replicated``."""
    random: str = ""

    def lines(self) -> list[str]:
        """As a scenario has it. Raises DraftError: it is not of this form, or something is given without a world."""
        if not self.world:
            if self.outputs or self.random:
                option = "--outputs" if self.outputs else "--random"
                raise DraftError(f"{option} is for a world of ranks: say how many there are, such as --world 4")
            return []
        found = [f"    world: {self._world()}"]
        if self.outputs:
            words = self.outputs.split(",")
            if unknown := [word for word in words if word not in get_args(OutputStands)]:
                raise DraftError(f"--outputs {self.outputs}: {unknown[0]!r} is neither 'split' nor 'replicated'")
            written = ", ".join(f"{{ranks: {word}}}" for word in words)
            found.append(f"    outputs: {written if len(words) == 1 else f'[{written}]'}")
        return found + ([f"    random: {self.random}"] if self.random else [])

    def _world(self) -> str:
        if re.fullmatch(r"\d{1,9}", self.world):
            return str(int(self.world))
        pairs = [re.fullmatch(r"(\w+)=(\d{1,9})", part) for part in self.world.split(",")]
        degrees = {pair[1]: int(pair[2]) for pair in pairs if pair}
        if not all(pairs):
            raise DraftError(f"--world {self.world}: write a number of ranks, or ranks along axes, such as mp=2,dp=2")
        if len(degrees) < len(pairs):
            raise DraftError(f"--world {self.world}: an axis is given twice")
        return "{" + ", ".join(f"{axis}: {degree}" for axis, degree in degrees.items()) + "}"


# --------------------------------------------------------------------------- the layer
def signature_of(reference: str) -> Signature:
    """The signature of the layer or function that `reference` names, found from here or from the project's root.

    Raises:
        DraftError: there is no such file, or nothing of that name in it.
    """
    if not re.fullmatch(REFERENCE, reference) or reference.partition(":")[0].endswith(".py"):
        if reference.endswith((".yaml", ".yml")) or re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", reference):
            raise DraftError(f"{reference!r} names no layer: `gradcheck run {reference}` runs scenarios")
        raise DraftError(f"{reference!r} names no layer: write {_meant(reference)}")
    module, _, name = reference.partition(":")
    place, node = _looked_up(_module(module), name.split("."))
    function = node if isinstance(node, ast.FunctionDef) else _method(place, node, "forward")
    if function is None:
        raise DraftError(
            f"{place.file}:{node.lineno}: class {node.name} has no forward, nor a base of yours that has one"
        )
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    defaults = [None] * (len(given) - len(function.args.defaults)) + [*map(ast.unparse, function.args.defaults)]
    arguments = dict([*zip(given, defaults, strict=True)][node is not function :])  # a class's forward takes ctx first
    return Signature(reference, place.file, node.lineno, isinstance(node, ast.ClassDef), arguments)


class _Module(NamedTuple):
    """A module of the user's as it is written."""

    name: str
    file: Path
    tree: ast.Module

    @property
    def imported(self) -> dict[str, tuple[str, str]]:
        """By name, what its ``from … import …`` take: the module, and the name there."""
        above = self.name.split(".")
        found = dict[str, tuple[str, str]]()
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom):
                up = node.level - (self.file.name == "__init__.py")
                inside = above[: len(above) - up] if node.level else []
                module = ".".join([*inside, *filter(None, [node.module])])
                found |= {one.asname or one.name: (module, one.name) for one in node.names}
        return found


def _module(module: str) -> _Module:
    """The module of that name below a root. Raises DraftError if there is none, or it is no Python."""
    file = _file_of(module)
    if file is None:
        *above, last = module.split(".")
        beside = {one.stem for root in roots() for one in root.joinpath(*above).glob("*.py")}
        near = get_close_matches(last, sorted(beside), 1)
        meant = f"; did you mean {'.'.join([*above, *near])}?" if near else ""
        raise DraftError(f"there is no module {module} below {' or '.join(map(str, roots()))}{meant}")
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        raise DraftError(f"{file}:{error.lineno or 1}:{error.offset or 1}: {error.msg}: this is no Python") from None
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        raise DraftError(f"{file}: {error}") from None
    return _Module(module, file, tree)


def _file_of(module: str) -> Path | None:
    """The file of a module below a root."""
    below = Path(*module.split("."))
    files = [root / form for root in roots() for form in (below.with_suffix(".py"), below / "__init__.py")]
    return next((one for one in files if one.is_file()), None)


def _meant(text: str) -> str:
    """The reference that was likely meant by the name of a module or file, or by a path or a dot before the layer."""
    module = text.removeprefix("./").removesuffix(".py").replace(os.sep, ".").replace("/", ".")
    file = _file_of(module) if re.fullmatch(r"[\w.]+", module) else None
    if file and (names := re.findall(r"^(?:class|def) ([^\W_]\w*)", file.read_text("utf-8", "replace"), re.M)):
        return f"{module}:{names[0]}"
    place, _, name = text.removeprefix("./").rpartition(":" if ":" in text else ".")
    meant = f"{place.removesuffix('.py').replace('/', '.').replace(os.sep, '.')}:{name}"
    if re.fullmatch(REFERENCE, meant) and name != "py":
        return meant
    return "package.module:Layer, such as mypkg.layers:OwnTanh"


def _looked_up(place: _Module, names: Sequence[str], steps: int = 0) -> tuple[_Module, ast.ClassDef | ast.FunctionDef]:
    """What stands under `names`, one within the other, in a module, or where that takes the first of them from."""
    node: ast.Module | ast.ClassDef | ast.FunctionDef = place.tree
    for name in names:
        known = {one.name: one for one in node.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
        module, there = place.imported.get(name, ("", "")) if node is place.tree else ("", "")
        if name not in known and module and steps < MOST_IMPORTS and _file_of(module):
            return _looked_up(_module(module), [there, *names[1:]], steps + 1)
        if name not in known:
            there = f"there is {', '.join(known) or 'no class or function'}"
            raise DraftError(f"{place.file} has no {name!r} at its top; {hint(name, known, there)}")
        node = known[name]
    assert not isinstance(node, ast.Module)
    return place, node


def _method(place: _Module, node: ast.ClassDef, name: str, steps: int = 0) -> ast.FunctionDef | None:
    """A method of a class, or of one that it is derived from, as far as these are the user's; None if there is none."""
    own = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == name]
    if own:
        return own[-1]
    for base in (one.id for one in node.bases if isinstance(one, ast.Name) and steps < MOST_IMPORTS):
        with suppress(DraftError):  # of a library
            above, found = _looked_up(place, [base])
            method = _method(above, found, name, steps + 1) if isinstance(found, ast.ClassDef) else None
            if method is not None:
                return method
    return None


# --------------------------------------------------------------------------- the scenario
def draft(
    signature: Signature,
    words: Mapping[str, InputWord],
    *,
    call: str = "",
    order: int = 1,
    comments: bool = True,
    world: InWorld = InWorld(),  # noqa: B008 - it does not change
) -> str:
    """A spec file with one scenario for the layer.

    `words` are its inputs; with none, every argument without a default is an input of `USUAL_SHAPE`. With `comments`
    the file says what can be changed.
    """
    name = signature.reference.rpartition(":")[2].rpartition(".")[2]
    identity = identity_of(signature.reference)
    inputs = [*words.values()] or [InputWord(one) for one in signature.needed]
    of_world = world.lines()
    if not of_world and (marked := [one for one in inputs if one.ranks != "split"]):
        option = f"--input {marked[0].name}=…:{marked[0].ranks}"
        raise DraftError(f"{option} is for a world of ranks: say how many there are, such as --world 4")
    lines = [
        "schema: gradcheck/v1",
        "scenarios:",
        f"  - id: {identity}",
        *of_world[:1],
        f"    layer: {{ref: {signature.reference!r}}}",
    ]
    told = {name: value for name, value in signature.arguments.items() if name not in {one.name for one in inputs}}
    if call:
        lines.append(f"    call: {_quoted(call)}")
    elif comments and told:
        arguments = ", ".join([*(one.name for one in inputs), *(f"{key}={told[key] or '…'}" for key in told)])
        open_ones = [key for key, default in told.items() if default is None]
        needed = f"  # needed: say what {' and '.join(open_ones)} shall be" if open_ones else ""
        lines.append(f"    # call: {name}{'.apply' if signature.is_class else ''}({arguments}){needed}")
    lines.append("    inputs:")
    for one in inputs:
        note = "  # or values: [[…]], near: [0.0], range: [0.1, 3], stop_gradient: true" if comments else ""
        lines.append(f"      {one.name}: {{{written(one)}}}{note}")
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


def written(word: InputWord) -> str:
    """An input as a scenario has it, without the braces."""
    whole = word.dtype == "bool" or word.dtype.startswith(("int", "uint"))
    if word.file:
        parts = [f"from: {_quoted(word.file)}", *([f"key: {_quoted(word.key)}"] if word.key else [])]
    elif word.value is not None:
        parts = [f"values: {constant(int(word.value) if whole else word.value, word.shape)}"]
    else:
        parts = [f"shape: {USUAL_SHAPE if word.sizes is None else list(word.shape)}"]
        if word.low is not None:
            parts.append(f"range: [{word.low!r}, {word.high!r}]")
        elif word.below is not None or whole:
            parts.append(f"below: {word.below or (2 if word.dtype == 'bool' else 10)}")
    parts += [f"dtype: {word.dtype}"] if word.dtype != "float64" else []
    parts += ["stop_gradient: true"] if word.stopped else []
    parts += [f"ranks: {word.ranks}"] if word.ranks != "split" else []
    return ", ".join(parts)


def constant(value: float, shape: Sequence[int]) -> str:
    """Nested lists of one number."""
    text = str(value)
    for size in reversed(shape):
        text = f"[{', '.join([text] * size)}]"
    return text


def identity_of(reference: str) -> str:
    """The id of a scenario for a layer: its name in kebab-case."""
    name = reference.rpartition(":")[2].rpartition(".")[2]
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-") or "layer"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
