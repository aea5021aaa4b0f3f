"""The canonical form of a spec file: `formatted` writes it, comments included.

Keys stand in the order of the model. A value stands on the line of its key if it has room there, else each of its
entries has a line of its own; text of several lines is a block. Scalars keep their values, not their quotes.
"""

from __future__ import annotations

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

_IN_LINES = ("scenarios", "cases", "layers")  # what is below these keys never shares their line
_FIRST = ("id", "extends")
# Text that YAML takes for nothing else, without quotes, in brackets or outside; and what a block can hold.
_PLAIN = re.compile(r"[\w(][^\x00-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff,\[\]{}]*(?<![ :])")
_NOT_PLAIN = re.compile(r":[ ]|[ ]#")
_IN_BLOCK = re.compile(r"[\t\n\x20-\x7e\xa1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")


class NotKeptError(Exception):
    """The text that was written does not say what the file says: a bug of ours; the file stays as it is."""


def formatted(raw: bytes, path: str) -> str:
    """The canonical form of the spec file `raw`, called `path`.

    Raises:
        SpecError: it is no YAML of the kind that specs are.
        NotKeptError: a value or a comment would be lost.
    """
    root, comments = _read(raw, path)
    about = attach(comments, root)
    written = "\n".join([*_Writer(about).block(root, 0), *about.get(id(root), About()).after]) + "\n"
    again, kept = _read(written.encode(), path)
    if repr(again.data()) != repr(root.data()) or sorted(one.text for one in kept) != sorted(c.text for c in comments):
        raise NotKeptError(path)
    return written


def _read(raw: bytes, path: str) -> tuple[Node, list[Comment]]:
    text = decode(raw, path)
    root, _ = parse(text)
    text.fail_if_any()
    if root is None or root.kind != "mapping":
        text.report(1, 1, 1, "there is nothing to write", "begin it with 'schema: gradcheck/v1' and 'scenarios:'")
        text.fail_if_any()
    assert root is not None
    comments = find(text.lines, root)
    return ordered(root, model.SpecFile), comments


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
        return json.dumps(text)
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
        if value.kind == "scalar":
            if text := _block_of(value):
                return [f"{margin}{key} {text[0]}", *(f"{margin}  {line}" if line else "" for line in text[1:])]
            return [f"{margin}{key} {scalar(value)}"]
        short = self.short(value)
        if short and ((len(margin) + len(key) + 1 + len(short) <= WIDTH and one_line) or short in ("{}", "[]")):
            return [f"{margin}{key} {short}"]
        return [f"{margin}{key}", *self.block(value, depth + 2)]

    def item(self, item: Node, depth: int) -> list[str]:
        """An entry of a list: of a list of scenarios, which have an id or more, over several lines."""
        if item.kind == "scalar":
            return self.entry("-", item, depth, one_line=True)
        short = self.short(item)
        if short and depth + 2 + len(short) <= WIDTH and not (depth == 2 and item.entries):
            return [f"{' ' * depth}- {short}"]
        lines = self.block(item, depth + 2)
        above = next(at for at, line in enumerate(lines) if not line.lstrip().startswith("#"))
        return [*lines[:above], f"{' ' * depth}- {lines[above].lstrip()}", *lines[above + 1 :]]

    def short(self, node: Node) -> str:
        """A value on one line; empty if it has none, for it holds text of several lines, or comments."""
        if node.kind == "scalar":
            return "" if _block_of(node) else scalar(node)
        parts = []
        for key, value in [*node.entries.values(), *((None, item) for item in node.items)]:
            text = self.short(value)
            if not text or id(key or value) in self.about:
                return ""
            parts.append(f"{scalar(key)}: {text}" if key else text)
        whole = ", ".join(parts)
        return f"{{{whole}}}" if node.kind == "mapping" else f"[{whole}]"

    def with_comments(self, node: Node, lines: list[str], depth: int) -> list[str]:
        """The lines of an entry with the comments about it."""
        about = self.about.get(id(node))
        if about is None:
            return lines
        first = [f"{lines[0]}  {about.behind[0]}", *lines[1:]] if about.behind else lines
        margin = " " * depth
        return [
            *(margin + one for one in (*about.before, *about.behind[1:])),
            *first,
            *(margin + one for one in about.after),
        ]


def _block_of(node: Node) -> list[str]:
    """Text of several lines as a block: its head and its lines. Empty for other scalars, and what no block can hold."""
    text = node.value
    if not isinstance(text, str) or "\n" not in text or not text.strip() or not _IN_BLOCK.fullmatch(text):
        return []
    lines = text.removesuffix("\n").split("\n")
    indented = next(line for line in lines if line.strip()).startswith((" ", "\t")) or not lines[0].strip()
    kept = "" if text.endswith("\n") and lines[-1] else "+" if text.endswith("\n") else "-"
    return [f"|{'2' if indented else ''}{kept}", *lines]
