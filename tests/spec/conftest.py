"""Spec files as text: ``accept`` reads one, ``mistakes`` lists what is wrong as ``line:column message``."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.spec.model import SpecFile
from gradcheck.spec.read import read_bytes

HEAD = """\
schema: gradcheck/v1
scenarios:
  - id: one
    title: One
    source: {document: d}
"""


def diagnostics_of(text: str) -> list[Diagnostic]:
    try:
        read_bytes(text.encode(), "t.grad.yaml")
    except SpecError as error:
        return error.diagnostics
    return []


@pytest.fixture
def accept() -> Callable[[str], SpecFile]:
    return lambda text: read_bytes(dedent(text).encode(), "t.grad.yaml")


@pytest.fixture
def diagnose() -> Callable[[str], list[Diagnostic]]:
    return diagnostics_of


@pytest.fixture
def mistakes() -> Callable[[str], list[str]]:
    return lambda text: [f"{one.line}:{one.column} {one.message}" for one in diagnostics_of(text)]


@pytest.fixture
def scenario_mistakes() -> Callable[[str], list[tuple[str, str]]]:
    """(message, help) for the keys of one scenario, from its sixth line on, indented by four."""

    def run(body: str) -> list[tuple[str, str]]:
        indented = "".join(f"    {line}\n" for line in dedent(body).strip("\n").split("\n"))
        return [(f"{one.line - 5}:{one.column - 4} {one.message}", one.help) for one in diagnostics_of(HEAD + indented)]

    return run
