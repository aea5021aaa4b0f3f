"""The comments of a YAML text, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml


class Comment(NamedTuple):
    """A comment, from its ``#`` on; line and column count from 0."""

    line: int
    column: int
    text: str
    alone: bool
    """Whether nothing else stands in its line."""


def pairs(node: yaml.Node) -> list[tuple[Any, yaml.Node]]:
    """The keys and values of a mapping; the entries of a list, with None for their keys; nothing for a scalar."""
    if isinstance(node, yaml.SequenceNode):
        return [(None, item) for item in node.value]
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def is_block(node: yaml.Node) -> bool:
    """Whether a scalar is a block of text (``|``, ``>``)."""
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def last_line(node: yaml.Node) -> int:
    """The last line of a value, blank lines behind a block of text included."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return max(last_line(value) for _, value in pairs(node))
    end: Any = node.end_mark
    return int(end.line) - (end.column == 0 and is_block(node))


def find_comments(lines: list[str], root: yaml.Node) -> dict[int, Comment]:
    """Line → the comment in it, for `lines`, of which `root` is the tree."""
    covered: dict[int, list[tuple[int, int]]] = {}
    for node in _scalars(root):
        start: Any = node.start_mark
        end: Any = node.end_mark
        for line in range(start.line + is_block(node), last_line(node) + 1):
            first = start.column if line == start.line else 0
            last = end.column if line == end.line else len(lines[line])
            covered.setdefault(line, []).append((first, last))
    found = {}
    for line, text in enumerate(lines):
        column = text.find("#")
        while column >= 0:
            if not any(start <= column < end for start, end in covered.get(line, ())):
                found[line] = Comment(line, column, text[column:].rstrip(" \t"), not text[:column].strip())
                break
            column = text.find("#", column + 1)
    return found


def _scalars(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    for key, value in pairs(node):
        yield from _scalars(key) if key else ()
        yield from _scalars(value)
