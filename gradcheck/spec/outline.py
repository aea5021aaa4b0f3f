"""What `gradcheck list` shows of a spec file, read without its model: a third of the time that `read` takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from gradcheck.spec.resolve import resolve
from gradcheck.spec.text import read_text
from gradcheck.spec.tree import Node, parse


class Outline(NamedTuple):
    """A scenario as far as it is listed; the fields are those of `model.Scenario`."""

    id: str
    title: str | None
    tags: tuple[str, ...]
    path: str
    line: int
    matrix: dict[str, tuple[Any, ...]]


def outlines(path: Path) -> list[Outline] | None:
    """The scenarios of a file, with ``extends``, ``cases`` and ``defaults`` worked out; None if that shows a mistake.

    Only what is listed is looked at: whether the rest is as it should be, `read` tells.

    Raises SpecError if the file cannot be read.
    """
    text = read_text(path, str(path))
    root, complete = parse(text)
    if root is None or not complete or root.kind != "mapping":
        return None
    scenarios = resolve(root, text).get("scenarios")
    if scenarios is None or text.found:
        return None
    found = [_outline(one, text.path) for one in scenarios.items]
    return None if None in found else [one for one in found if one is not None]


def _outline(scenario: Node, path: str) -> Outline | None:
    given = {key: value.data() for key, (_, value) in scenario.entries.items() if key in Outline._fields}
    match {"title": None, "tags": (), "matrix": {}} | given:
        case {"id": str(id), "title": str() | None as title, "tags": tuple(tags), "matrix": dict(matrix)}:
            if all(isinstance(tag, str) for tag in tags) and all(isinstance(one, tuple) for one in matrix.values()):
                return Outline(id, title, tags, path, scenario.line, matrix)
    return None
