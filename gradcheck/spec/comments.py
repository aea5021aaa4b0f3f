"""The comments of a spec file: where they stand, and what they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gradcheck.spec.tree import Node


class Comment(NamedTuple):
    """A comment, from its ``#`` on."""

    line: int
    column: int
    text: str
    alone: bool
    """Whether nothing else stands in its line."""


@dataclass
class About:
    """The comments about one key, or one entry of a list."""

    before: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    """At the end of its line; more than one only if its value had several lines."""
    after: list[str] = field(default_factory=list)


class _Place(NamedTuple):
    """Where a key with its value, or an entry of a list with its dash, begins; whether a comment there is about it."""

    line: int
    column: int
    node: Node
    in_line: bool


def find(lines: list[str], root: Node) -> list[Comment]:
    """The comments in `lines`, of which `root` is the tree, in order."""
    covered: dict[int, list[tuple[int, int]]] = {}
    code: set[int] = set()
    for node in _nodes(root):
        if node.style in ("|", ">"):
            code.update(_block(lines, node))
        elif node.kind == "scalar":
            for line in range(node.line, node.end_line + 1):
                start = node.column if line == node.line else 1
                end = node.end_column if line == node.end_line else len(lines[line - 1]) + 1
                covered.setdefault(line, []).append((start, end))
    found = []
    for line, text in enumerate(lines, start=1):
        if line in code:
            continue
        column = text.find("#") + 1
        while column:
            begins = column == 1 or text[column - 2] in " \t"
            if begins and not any(start <= column < end for start, end in covered.get(line, ())):
                found.append(Comment(line, column, text[column - 1 :].rstrip(), not text[: column - 1].strip()))
                break
            column = text.find("#", column) + 1
    return found


def attach(comments: list[Comment], lines: list[str], root: Node) -> dict[int, About]:
    """Identity of a key, or of an entry of a list → the comments about it. That of `root` has those behind all.

    A comment in a line of its own is about what follows; if it is indented deeper than that, about what it follows.
    """
    places = sorted(_places(root, lines), key=lambda one: (one.line, one.column))
    about: dict[int, About] = {}
    for comment in comments:
        before = [one for one in places if (one.line, one.column) < comment[:2]]
        here = [one for one in before if one.line == comment.line]
        following = next((one for one in places if one.line > comment.line), None)
        if here and not comment.alone:
            target = next((one for one in here if one.in_line), here[-1])
            about.setdefault(id(target.node), About()).behind.append(comment.text)
        elif following is not None and comment.column <= following.column:
            about.setdefault(id(following.node), About()).before.append(comment.text)
        else:
            deep = [one for one in before if comment.column > 1 and one.column <= comment.column]
            about.setdefault(id(deep[-1].node) if deep else id(root), About()).after.append(comment.text)
    return about


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for item in node.items:
        yield from _nodes(item)
    for key, value in node.entries.values():
        yield from _nodes(key)
        yield from _nodes(value)


def _places(node: Node, lines: list[str]) -> Iterator[_Place]:
    for item in node.items:
        before = lines[item.line - 1][: item.column - 1].rstrip()
        start = len(before) if before.endswith("-") else item.column
        yield _Place(item.line, start, item, _last_line(item) == item.line)
        yield from _places(item, lines)
    for key, value in node.entries.values():
        below = value.style in ("|", ">") or value.line > key.line
        yield _Place(key.line, key.column, key, below or _last_line(value) == key.line)
        yield from _places(value, lines)


def _last_line(node: Node) -> int:
    """The last line in which something of a value begins or, for text, ends."""
    if node.kind == "scalar":
        return node.end_line
    return max(node.line, *map(_last_line, [*node.items, *(value for _, value in node.entries.values())]), 0)


def _block(lines: list[str], node: Node) -> Iterator[int]:
    """The lines of a block of text: as many as its text has; of one that is folded, those as deep as the first."""
    first = node.line + 1
    if node.style == "|":
        yield from range(first, first + node.text.count("\n") + (not node.text.endswith("\n")))
        return
    depth = 0
    for line in range(first, len(lines) + 1):
        text = lines[line - 1]
        here = len(text) - len(text.lstrip(" "))
        depth = depth or (here if text.strip() else 0)
        if text.strip() and here < depth:
            return
        yield line
