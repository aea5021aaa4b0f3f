"""One name, one thing: what two files of gradcheck define at their top level, or are called, means the same in both."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "gradcheck"

IMPLEMENTED = "the protocol, and the class that implements it"
PUBLIC = "the function of the Python interface, and the command that does the same on the command line"
FORMAT = "what is reported in a format: of a run, and of a matrix"
ACCEPTED = {
    "Recomputation": ("backends/recomputation checking/problem", IMPLEMENTED),
    "as_html": ("conformance/matrix_formats report/html", FORMAT),
    "as_json": ("conformance/matrix_formats report/record", FORMAT),
    "as_markdown": ("conformance/matrix_formats report/markdown", FORMAT),
    "check": ("api commands/check", PUBLIC),
    "derive": ("api commands/derive", PUBLIC),
    "explore": ("api commands/explore", PUBLIC),
    "main": ("__main__ commands/__init__ run/server", "where a program begins: there are three"),
}
"""Names that stand in several files, with these files and why that is right."""

Places = Mapping[str, set[str]]


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements define, also below ``if``, ``try`` and ``with``; not Python's own ``__names__``."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = (part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
            yield from (name.id for name in found if isinstance(name.ctx, ast.Store) and name.id[:2] != "__")
        else:
            for part in ("body", "orelse", "finalbody"):
                yield from defined(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from defined(handler.body)


def repeated(sources: Mapping[str, str]) -> Places:
    """The names that several files define, with the files; `sources` are their texts."""
    places: dict[str, set[str]] = defaultdict(set)
    for file, source in sources.items():
        for name in defined(ast.parse(source).body):
            places[name].add(file)
    return {name: files for name, files in places.items() if len(files) > 1}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    files = sorted(ROOT.rglob("*.py"))
    return {str(file.relative_to(ROOT).with_suffix("")): file.read_text(encoding="utf-8") for file in files}


def test_a_name_stands_for_one_thing(sources: dict[str, str]) -> None:
    accepted = {name: set(files.split()) for name, (files, _) in ACCEPTED.items()}
    assert repeated(sources) == accepted  # a row for what is no longer repeated is to go, too


def test_a_file_has_a_name_of_its_own(sources: dict[str, str]) -> None:
    stems = defaultdict(list)
    for file in sources:
        stems[Path(file).name].append(file)
    assert {stem: files for stem, files in stems.items() if len(files) > 1 and stem != "__init__"} == {}


def test_names_are_found_wherever_a_module_defines_them() -> None:
    one = (
        "A, (b, [c]) = 1, (2, [3])\nd: int = 4\nclass E:\n    f = 5\ndef g():\n    h = 6\nd.i = A[b] = 7\n__all__ = []"
    )
    two = (
        "try:\n    A = 1\nexcept E:\n    def b(): pass\nif c:\n    class d: pass\nelse:\n    async def g(): pass\nh = 1"
    )
    assert {*repeated({"one": one, "two": two})} == {"A", "b", "d", "g"}
