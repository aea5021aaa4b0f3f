"""The canonical form of a spec file: `formatted` writes it, comments included.

Keys stand in the order of the model. A value stands on the line of its key if it has room there, else each of its
entries has a line of its own; text of several lines is a block. Scalars keep their values, not their quotes.
"""

from __future__ import annotations

import json
import re

from pydantic import BaseModel

from gradcheck.spec import model
from gradcheck.spec.comments import About, Comment, attach, find
from gradcheck.spec.input_rules import looks_doubtful
from gradcheck.spec.messages import KINDS, NAMED
from gradcheck.spec.text import decode
from gradcheck.spec.tree import Node, copy, is_text, parse

WIDTH = 160
"""Characters of a line that holds a mapping or a list."""

MOST_LINES = 3
"""Lines that such a value may take, before each of its entries has one of its own."""

_IN_LINES = ("scenarios", "cases", "layers")  # what is below these keys never shares their line
_FIRST = ("id", "extends")
# Text that YAML takes for nothing else, without quotes, in brackets or outside; and what a block can hold.
_PLAIN = re.compile(r"[\w(][^\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff,\[\]{}]*(?<![ :])")
_NOT_PLAIN = re.compile(r":[^\w/]|[ ]#")
_IN_BLOCK = re.compile(r"[\t\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")


class NotKeptError(Exception):
    """The text that was written does not say what the file says: a bug of ours; the file stays as it is."""


def formatted(raw: bytes, path: str) -> str:
    """The canonical form of the spec file `raw`, called `path`.

    Raises:
        SpecError: it is no YAML of the kind that specs are.
        NotKeptError: a value or a comment would be lost.
    """
    root, comments, lines = _read(raw, path)
    about = attach(comments, lines, root)
    written = "\n".join([*_Writer(about).block(root, 0), *about.get(id(root), About()).after]) + "\n"
    again, kept, _ = _read(written.encode(), path)
    if repr(again.data()) != repr(root.data()) or sorted(one.text for one in kept) != sorted(c.text for c in comments):
        raise NotKeptError(path)
    return written


def _read(raw: bytes, path: str) -> tuple[Node, list[Comment], list[str]]:
    text = decode(raw, path)
    root, _ = parse(text)
    text.fail_if_any()
    if root is None or root.kind != "mapping":
        text.report(1, 1, 1, "there is nothing to write", "begin it with 'schema: gradcheck/v1' and 'scenarios:'")
        text.fail_if_any()
    assert root is not None
    return ordered(root, model.SpecFile), find(text.lines, root), text.lines


def ordered(node: Node, kind: type[BaseModel] | None, each: type[BaseModel] | None = None) -> Node:
    """`node` with its keys in the order of the model `kind`; those of what it names, in the order of `each`."""
    result = copy(node)
    result.entries = {}
    result.items = [ordered(item, kind or each) for item in node.items]
    known = [field.alias or name for name, field in kind.model_fields.items()] if kind else []
    known = [*(name for name in _FIRST if name in known), *(name for name in known if name not in _FIRST)]
    names = sorted(node.entries, key=lambda name: known.index(name) if name in known else len(known))
    for name in names:
        key, value = node.entries[name]
        below = (None, KINDS[name][0]) if name in NAMED else (KINDS[name][0] if name in KINDS else None, None)
        result.entries[name] = (key, ordered(value, *((each, None) if kind is None else below)))
    return result


def scalar(node: Node) -> str:
    """A scalar on one line: what is no text as it was written, text without quotes where that is the same."""
    if not isinstance(node.value, str):
        return "null" if node.value is None else node.text
    text = node.value
    plain = _PLAIN.fullmatch(text) and not _NOT_PLAIN.search(text) and is_text(text) and not looks_doubtful(text)
    if plain:
        return text
    if not _IN_BLOCK.fullmatch(text) or "\n" in text:
        return json.dumps(text, ensure_ascii=False)
    return f'"{text}"' if not re.search(r'["\\]', text) else "'" + text.replace("'", "''") + "'"


class _Writer:
    def __init__(self, about: dict[int, About]) -> None:
        self.about = about

    def block(self, node: Node, depth: int) -> list[str]:
        """The lines of a mapping or a list with a line for each entry, indented by `depth`."""
        lines = []
        for name, (key, value) in node.entries.items():
            body = self.entry(f"{scalar(key)}:", value, depth, one_line=name not in _IN_LINES)
            lines += self.with_comments(key, body, depth)
        for item in node.items:
            lines += self.with_comments(item, self.item(item, depth), depth)
        return lines

    def entry(self, key: str, value: Node, depth: int, *, one_line: bool) -> list[str]:
        """A key with its value."""
        margin = " " * depth
        if text := _block_of(value):
            return [f"{margin}{key} {text[0]}", *(f"{margin}  {line}" if line else "" for line in text[1:])]
        parts = self.parts(value)
        lines = _filled(f"{margin}{key} ", parts, depth + 2)
        if parts and (one_line or not (value.entries or value.items)) and (len(lines) == 1 or _may_go_on(value, lines)):
            return lines
        return [f"{margin}{key}", *self.block(value, depth + 2)]

    def item(self, item: Node, depth: int) -> list[str]:
        """An entry of a list."""
        parts = self.parts(item)
        lines = _filled(f"{' ' * depth}- ", parts, depth + 4)
        if item.kind == "scalar" or (parts and (len(lines) == 1 or (depth > 2 and _may_go_on(item, lines)))):
            return self.entry("-", item, depth, one_line=True)
        lines = self.block(item, depth + 2)
        above = next(at for at, line in enumerate(lines) if not line.lstrip().startswith("#"))
        return [*lines[:above], f"{' ' * depth}- {lines[above].lstrip()}", *lines[above + 1 :]]

    def parts(self, node: Node) -> list[str]:
        """A value on one line, in parts between which it may go on in the next.

        Empty if it has no such form, for it holds text of several lines, or comments.
        """
        if node.kind == "scalar":
            return [] if _block_of(node) else [scalar(node)]
        found = []
        for key, value in [*node.entries.values(), *((None, item) for item in node.items)]:
            parts = self.parts(value)
            if not parts or id(key or value) in self.about:
                return []
            parts[0] = f"{scalar(key)}: {parts[0]}" if key else parts[0]
            found += [*parts[:-1], f"{parts[-1]}, "]
        first, last = "{}" if node.kind == "mapping" else "[]"
        if not found:
            return [first + last]
        found[0] = first + found[0]
        found[-1] = found[-1].removesuffix(", ") + last
        return found

    def with_comments(self, node: Node, lines: list[str], depth: int) -> list[str]:
        """The lines of an entry with the comments about it."""
        about = self.about.get(id(node))
        if about is None:
            return lines
        margin, behind = " " * depth, about.behind[:1]
        if lines[0].endswith(","):
            behind = []  # it would be about the part of the value in that line
        above = [*about.before, *about.behind[len(behind) :]]
        first = "  ".join([lines[0], *behind])
        return [*(margin + one for one in above), first, *lines[1:], *(margin + one for one in about.after)]


def _filled(start: str, parts: list[str], depth: int) -> list[str]:
    """As many of `parts` in each line as have room, the first behind `start`, the others indented by `depth`."""
    lines, line = [], start
    for at, part in enumerate(parts):
        if at and len(line) + len(part.rstrip()) > WIDTH:
            lines.append(line.rstrip())
            line = " " * depth
        line += part
    return [*lines, line]


def _may_go_on(node: Node, lines: list[str]) -> bool:
    """Whether a value may take several lines: not one with a list of mappings, each of which is to begin a line."""
    return len(lines) <= MOST_LINES and not _lists_mappings(node)


def _lists_mappings(node: Node) -> bool:
    below = [*node.items, *(value for _, value in node.entries.values())]
    return any(item.entries for item in node.items) or any(map(_lists_mappings, below))


def _block_of(node: Node) -> list[str]:
    """Text of several lines as a block: its head and its lines. Empty for other scalars, and what no block can hold."""
    text = node.value
    if not isinstance(text, str) or "\n" not in text or not text.strip() or not _IN_BLOCK.fullmatch(text):
        return []
    lines = text.removesuffix("\n").split("\n")
    indented = next(line for line in lines if line.strip()).startswith((" ", "\t")) or not lines[0].strip()
    kept = "" if text.endswith("\n") and lines[-1] else "+" if text.endswith("\n") else "-"
    return [f"|{'2' if indented else ''}{kept}", *lines]
