"""The house stands on its floors: what imports what has no circles, under TYPE_CHECKING and in functions included."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {"pylayer": ROOT / "engine", "gradcheck": ROOT}

Imports = dict[str, set[str]]


def modules(package: str) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    root = PACKAGES[package]
    found = (root / package).rglob("*.py")
    return {".".join(f.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): f for f in found}


def imported(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The modules among `known` that code imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in below if name in known)
            if any(name not in known for name in below):
                yield node.module


@functools.cache
def imports_of(package: str) -> Imports:
    """By module of a package, those of its own that it imports."""
    files = modules(package)
    return {name: {*imported(ast.parse(file.read_text()), set(files))} - {name} for name, file in files.items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    TopologicalSorter(imports_of(package)).prepare()  # raises CycleError with the circle


def room_of(module: str) -> str:
    """The room that a module lies in: a folder of the package, or a module beside the folders."""
    return ".".join(module.split(".")[:2])


def between_rooms(imports: Imports) -> Imports:
    """By room, the others that it imports from; the package itself is none: its names are those of its rooms."""
    rooms: Imports = {}
    for module, others in imports.items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, others))
    return {room: others - {room, "gradcheck"} for room, others in rooms.items() if room != "gradcheck"}


def test_rooms_of_the_harness_import_one_way() -> None:
    TopologicalSorter(between_rooms(imports_of("gradcheck"))).prepare()  # raises CycleError with the circle


def test_a_circle_between_rooms_is_found_where_there_is_none_between_modules() -> None:
    imports = {"p.a.one": {"p.b.one"}, "p.b.one": set(), "p.b.two": {"p.a.two", "p.b.one"}, "p.a.two": set()}
    TopologicalSorter(imports).prepare()
    with pytest.raises(CycleError):
        TopologicalSorter(between_rooms(imports)).prepare()


def test_a_circle_is_found() -> None:
    known = {"a", "a.b", "a.c"}
    assert {*imported(ast.parse("def f():\n    from a import b, x\n    import a.c"), known)} == {"a", "a.b", "a.c"}


ENGINE = modules("pylayer")


@pytest.mark.parametrize("name", ENGINE)
def test_no_module_of_the_engine_imports_another_inside_a_function(name: str) -> None:
    functions = (
        node
        for node in ast.walk(ast.parse(ENGINE[name].read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )
    assert [found for function in functions for found in imported(function, {*ENGINE})] == []
