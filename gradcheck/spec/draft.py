"""A scenario for a layer that is named, ``package.module:Layer``, from its signature, which is read
and not run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import resolve_name
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gradcheck.spec.diagnostic import listing
from gradcheck.spec.input_words import InputWord
from gradcheck.spec.model import REFERENCE
from gradcheck.support.pyproject import roots
from gradcheck.support.suggest import hint
from gradcheck.support.user_error import UserError

USUAL_SHAPE = (2, 3)
MOST_IMPORTS = 20
"""Modules, or classes, that are followed from one to the next until a name or method is found."""

Definition = ast.ClassDef | ast.FunctionDef


class DraftError(UserError):
    """A layer or an input that cannot be understood; the message says what to write."""


class Signature(NamedTuple):
    """A layer's signature, as its source has it."""

    reference: str
    file: Path
    line: int
    is_class: bool
    arguments: Mapping[str, str | None]
    """The arguments of its forward, with their defaults as the source has them; None for none."""
    packages: frozenset[str] = frozenset()
    """The top-level packages that its code uses."""

    @property
    def needed(self) -> list[str]:
        """The arguments without a default."""
        return [name for name, default in self.arguments.items() if default is None]

    def require(self, inputs: Iterable[str]) -> None:
        """Require that `inputs` are those with which forward can be called.

        Raises:
            DraftError: there is no such argument, or one without a default is not given.
        """
        where = f"{self.file.name}:{self.line}"
        for name in inputs:
            if name not in self.arguments:
                otherwise = f"it takes {', '.join(self.arguments) or 'nothing'}"
                near = hint(name, self.arguments, otherwise)
                raise DraftError(f"{where}: forward has no argument {name!r}; {near}")
        if missing := [name for name in self.needed if name not in inputs]:
            wanted = " ".join(f"--input {name}=2x3" for name in missing)
            raise DraftError(
                f"{where}: forward takes {', '.join(self.needed)}: give the shapes of those that "
                f"are Tensors ({wanted}), and with --call how it is called if others are not"
            )


class InWorld(NamedTuple):
    """The world that the command line gives; nothing but empty texts for none."""

    world: str = ""
    """A number of ranks, or ranks along axes: ``4``, ``mp=2,dp=2``."""
    outputs: str = ""
    """The outputs' placements: ``replicated``, or a word for each: ``split,replicated``."""
    random: str = ""

    def lines(self) -> list[str]:
        """Return the keys of a scenario, a line for each.

        Raises DraftError: it is not of this form, or something is given without a world.
        """
        if not self.world:
            for option in ("outputs", "random"):
                if getattr(self, option):
                    raise DraftError(f"--{option} {NEEDS_WORLD}")
        keys = {"world": self._ranks(), "outputs": self._outputs(), "random": self.random}
        return [f"    {key}: {_yaml(value)}" for key, value in keys.items() if getattr(self, key)]

    def _ranks(self) -> int | dict[str, int]:
        if re.fullmatch(r"\d{0,9}", self.world):
            return int(self.world or 0)
        pairs = re.findall(r"(\w+)=(\d{1,9})", self.world)
        degrees = {axis: int(degree) for axis, degree in pairs}
        if ",".join(map("=".join, pairs)) != self.world:
            raise DraftError(
                f"--world {self.world}: write a number of ranks, or ranks along axes, such as "
                "mp=2,dp=2"
            )
        if len(degrees) < len(pairs):
            raise DraftError(f"--world {self.world}: an axis is given twice")
        return degrees

    def _outputs(self) -> list[dict[str, str]]:
        return [{"ranks": word} for word in self.outputs.split(",")]


NEEDS_WORLD = "is for a world of ranks: say how many there are, such as --world 4"


# --------------------------------------------------------------------------- the layer
def signature_of(reference: str) -> Signature:
    """The signature of the layer or function that `reference` names, found from here or from the
    project's root.

    Raises:
        DraftError: there is no such file, or nothing of that name in it.
    """
    module_name, _, name = reference.partition(":")
    if not re.fullmatch(REFERENCE, reference) or module_name.endswith(".py"):
        raise DraftError(
            f"{reference!r} names no layer: write {_meant(reference)}; `gradcheck run {reference}` "
            "runs scenarios"
        )
    module, node = _find(_read_module(module_name), name)
    function = node if isinstance(node, ast.FunctionDef) else _forward_of(module, node)
    if function is None:
        where = f"{module.file}:{node.lineno}"
        raise DraftError(
            f"{where}: class {node.name} has no forward, nor a base of yours that has one"
        )
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    takes_context = isinstance(node, ast.ClassDef) and not _has_setup(module, node)
    defaults = map(ast.unparse, reversed(function.args.defaults))
    known = dict(zip(reversed(names), defaults, strict=False))
    if takes_context or "self" in names[:1]:
        names = names[1:]  # its forward takes ctx first
    arguments = {name: known.get(name) for name in names}
    return Signature(
        reference,
        module.file,
        node.lineno,
        isinstance(node, ast.ClassDef),
        arguments,
        frozenset(_packages_of(module, node, set())),
    )


@dataclass(frozen=True)
class _Module:
    """A module of the user's as it is written."""

    name: str
    file: Path
    tree: ast.Module

    @property
    def imported(self) -> dict[str, tuple[str, str]]:
        """By name, what its ``from … import …`` take: the module, and the name there."""
        is_package = self.file.name == "__init__.py"
        package = self.name if is_package else self.name.rpartition(".")[0]
        imported: dict[str, tuple[str, str]] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom):
                with suppress(ImportError):  # a package that is not there
                    module = resolve_name("." * node.level + (node.module or ""), package)
                    names = {alias.asname or alias.name: alias.name for alias in node.names}
                    imported |= {name: (module, there) for name, there in names.items()}
        return imported

    @property
    def packages(self) -> dict[str, str]:
        """By name, the top-level package that an import takes it from."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    package = alias.name.partition(".")[0]
                    found[alias.asname or package] = package
            elif isinstance(node, ast.ImportFrom) and not node.level:
                package = (node.module or "").partition(".")[0]
                found |= {alias.asname or alias.name: package for alias in node.names}
        return found


def _read_module(name: str) -> _Module:
    """The module of a name below a root. Raises DraftError if there is none, or it is no Python."""
    file = _file_of(name)
    if file is None:
        above = name.split(".")[:-1]
        beside = [file.stem for root in roots() for file in root.joinpath(*above).glob("*.py")]
        near = hint(name, [".".join([*above, name]) for name in beside], "name one of yours")
        raise DraftError(f"there is no module {name} below {listing(map(str, roots()))}; {near}")
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        where = f"{file}:{error.lineno or 1}:{error.offset or 1}"
        raise DraftError(f"{where}: {error.msg}: this is no Python") from None
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        raise DraftError(f"{file}: {error}") from None
    return _Module(name, file, tree)


def _file_of(module: str) -> Path | None:
    """The file of a module below a root."""
    below = Path(*module.split("."))
    files = [root / form for root in roots() for form in (f"{below}.py", below / "__init__.py")]
    return next((file for file in files if file.is_file()), None)


def _meant(text: str) -> str:
    """The reference that a module, a path, or a dot before the layer was likely meant for."""
    text = text.removeprefix("./").removesuffix(".py")
    module = text.replace("/", ".")
    if file := _file_of(module):
        source = file.read_text("utf-8", "replace")
        for name in re.findall(r"^(?:class|def) ([^\W_]\w*)", source, re.MULTILINE):
            return f"{module}:{name}"
    place, _, name = text.rpartition(":" if ":" in text else ".")
    meant = f"{place.removesuffix('.py').replace('/', '.')}:{name}"
    return meant if re.fullmatch(REFERENCE, meant) else "package.module:Layer"


def _find(module: _Module, name: str, steps: int = 0) -> tuple[_Module, Definition]:
    """The definition that a dotted name in a module stands for, or that it is imported from.

    Raises DraftError: there is none.
    """
    first, _, rest = name.partition(".")
    source, there = module.imported.get(first, (module.name, first))
    is_imported = first not in _definitions(module.tree) and source != module.name
    if is_imported and steps < MOST_IMPORTS and _file_of(source):
        return _find(_read_module(source), f"{there}.{rest}".rstrip("."), steps + 1)
    node: Definition | ast.Module = module.tree
    for part in name.split("."):
        known = _definitions(node)
        if part not in known:
            otherwise = f"there is {', '.join(known) or 'no class or function'}"
            near = hint(part, known, otherwise)
            raise DraftError(f"{module.file} has no {part!r} at its top; {near}")
        node = known[part]
    assert not isinstance(node, ast.Module)
    return module, node


def _definitions(node: Definition | ast.Module) -> dict[str, Definition]:
    """The classes and functions that a module or class defines, by name."""
    return {part.name: part for part in node.body if isinstance(part, Definition)}


def _forward_of(module: _Module, node: Definition, steps: int = 0) -> ast.FunctionDef | None:
    """The forward of a class, or of one that it is derived from, as far as these are the user's."""
    method = _definitions(node).get("forward")
    if isinstance(method, ast.FunctionDef):
        return method
    bases = node.bases if isinstance(node, ast.ClassDef) and steps < MOST_IMPORTS else []
    for base in bases:
        try:
            above = _find(module, ast.unparse(base))
        except DraftError:  # of a library
            continue
        if method := _forward_of(*above, steps + 1):
            return method
    return None


def _bases_of(module: _Module, node: Definition) -> Iterator[tuple[_Module, Definition]]:
    """The classes of the user's that a class is derived from directly."""
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        with suppress(DraftError):  # of a library
            yield _find(module, ast.unparse(base))


def _has_setup(module: _Module, node: Definition, steps: int = 0) -> bool:
    """Whether a class, or one that it is derived from, has a ``setup_context``: its forward takes
    no context then."""
    if "setup_context" in _definitions(node):
        return True
    above = _bases_of(module, node) if steps < MOST_IMPORTS else ()
    return any(_has_setup(*base, steps + 1) for base in above)


def _packages_of(module: _Module, node: Definition, seen: set[tuple[Path, int]]) -> Iterator[str]:
    """The packages that the names in a definition come from, also by other definitions of the
    user's."""
    if (module.file, node.lineno) in seen or len(seen) > MOST_IMPORTS:
        return
    seen.add((module.file, node.lineno))
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    packages = module.packages
    yield from (packages[name] for name in names if name in packages)
    for name in sorted(names):
        with suppress(DraftError):  # it is not the user's
            yield from _packages_of(*_find(module, name), seen)


# --------------------------------------------------------------------------- the scenario
def draft(
    signature: Signature,
    words: Mapping[str, InputWord],
    *,
    backward: str | None = None,
    call: str = "",
    world: InWorld = InWorld(),  # noqa: B008 - it does not change
) -> str:
    """A spec file with one scenario for the layer.

    `words` are its inputs; with none, every argument without a default is an input of
    `USUAL_SHAPE`. Comments say what can be changed.
    """
    inputs = [*words.values()] or [InputWord(name) for name in signature.needed]
    for word in inputs:
        if word.ranks != "split" and not world.world:
            raise DraftError(f"--input {word.name}=…:{word.ranks} {NEEDS_WORLD}")
    notes = [line for line in EXPECT_NOTES if not (world.world and "order" in line)]
    lines = [
        "schema: gradcheck/v1",
        "scenarios:",
        f"  - id: {identity_of(signature.reference)}",
        f"    layer: {_yaml(layer_of(signature, backward))}",
        f"    call: {_yaml(call)}" if call else _call_to_complete(signature, inputs),
        "    inputs:",
        *(f"      {word.name}: {_yaml(as_written(word))}{INPUT_NOTE}" for word in inputs),
        *world.lines(),
        *notes,
    ]
    return "\n".join(lines) + "\n"


INPUT_NOTE = "  # or values: [[…]], near: [0.0], range: [0.1, 3], stop_gradient: true"
EXPECT_NOTES = [
    "    # expect:",
    "    #   order: 2                       # the derivative of the gradient as well",
    "    #   gradient: straight-through     # or zero, differs: not meant as the derivative",
    "    # matrix: {dtype: [float32, float64]}",
]


def _call_to_complete(signature: Signature, inputs: list[InputWord]) -> str:
    """A comment with the call, and what it needs besides the inputs."""
    names = [word.name for word in inputs]
    others = {name: value for name, value in signature.arguments.items() if name not in names}
    applied = _name_of(signature.reference) + ".apply" * signature.is_class
    arguments = [*names, *(f"{name}={value or '…'}" for name, value in others.items())]
    needed = [name for name in signature.needed if name in others]
    note = f"  # needed: say what {' and '.join(needed)} shall be" if needed else ""
    return f"    # call: {applied}({', '.join(arguments)}){note}"


def as_written(word: InputWord) -> dict[str, Any]:
    """An input as a scenario has it."""
    whole = not word.is_floating
    written: dict[str, Any] = {"shape": [*word.shape] if word.sizes is not None else [*USUAL_SHAPE]}
    if word.file:
        written = {"from": word.file, "key": word.key}
    elif word.value is not None:
        written = {"values": constant(int(word.value) if whole else word.value, word.shape)}
    elif word.low is not None:
        written["range"] = [word.low, word.high]
    elif whole:
        written["below"] = word.below or (2 if word.dtype == "bool" else 10)
    usual = {"key": "", "dtype": "float64", "stop_gradient": False, "ranks": "split"}
    written |= {"dtype": word.dtype, "stop_gradient": word.stopped, "ranks": word.ranks}
    return {key: value for key, value in written.items() if value != usual.get(key)}


def layer_of(signature: Signature, backward: str | None) -> dict[str, str]:
    """A layer as a scenario has it, with its backward if it is a function of arrays.

    Raises:
        DraftError: `backward` names no function, or the layer is not a function.
    """
    if backward is None:
        return {"ref": signature.reference}
    gradient = signature_of(backward)
    for option, named in (("", signature), ("--backward ", gradient)):
        if named.is_class:
            raise DraftError(
                f"{option}{named.reference} is a class: --backward is for a function of NumPy "
                "arrays and the function of its gradients; check a class without it"
            )
    return {"ref": signature.reference, "backward": gradient.reference}


def constant(value: Any, shape: tuple[int, ...]) -> Any:
    """Nested lists of one number."""
    for size in reversed(shape):
        value = [value] * size
    return value


def identity_of(reference: str) -> str:
    """The id of a scenario for a layer: its name in kebab-case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", _name_of(reference)).lower()
    return re.sub(r"[^a-z0-9]+", "-", spaced).strip("-") or "layer"


def _name_of(reference: str) -> str:
    return reference.replace(":", ".").rpartition(".")[2]


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write lists that are the same one each in full."""
        return True


def _yaml(value: Any) -> str:
    """A value as it is written in one line."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=inf,
        allow_unicode=True,
    )  # fmt: skip
    return text.removesuffix("...\n").strip()
