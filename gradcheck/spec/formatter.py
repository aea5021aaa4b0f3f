"""The format of a spec file: `formatted` mends its indentation, its spaces and its long lines, and nothing else.

Each level is indented by two columns more. Brackets that do not fit into a line are opened: each of their entries has
a line of its own, but a list of words or numbers goes on in the next. Long text goes on in the next line, and a comment
behind something long stands above it. All else stays as its author wrote it, brackets with comments within included.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from gradcheck.spec.text import decode
from gradcheck.spec.tree import parse

WIDTH = 110
"""Characters of a line."""

_DASHES = re.compile(r"[ -]*")
_COLON = re.compile(r"[ \t]*:")
_SIGNS = ("-", "?", ":")  # text in brackets only
_ODD = re.compile("[\u2028\u2029\ufeff\ufffe\uffff]")
# Where text may go on in the next line: at a single space that no escape makes, before what YAML takes for text there.
_GAP = re.compile(r"(?<=[^\s\\]) (?=[^\s#?:-])")


class NotKeptError(Exception):
    """The text that was written does not say what the file says: a bug of ours; the file stays as it is."""


def formatted(raw: bytes, path: str) -> bytes:
    """The spec file `raw`, called `path`, with its format mended.

    Raises:
        SpecError: it is no YAML of the kind that specs are.
        NotKeptError: a value or a comment would be lost.
    """
    data, layout = _read(raw, path)
    written = layout.text()
    if b"\r\n" in raw:
        written = written.replace("\n", "\r\n")
    result = (codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b"") + written.encode()
    data_now, layout_now = _read(result, path)
    if data_now != data or sorted(layout_now.comments.values()) != sorted(layout.comments.values()):
        raise NotKeptError(path)
    return result


def _read(raw: bytes, path: str) -> tuple[str, _Layout]:
    text = decode(raw, path)
    tree, _ = parse(text)
    if not text.found and (tree is None or tree.kind != "mapping"):
        text.report((1, 1, 1), "there is nothing to format", "begin it with 'schema: gradcheck/v1' and 'scenarios:'")
    if text.found or tree is None:
        raise text.error()
    root = yaml.compose(text.content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert root is not None
    return repr(tree.data()), _Layout(text.lines, root)


# --------------------------------------------------------------------------- questions about a node
def _pairs(node: yaml.Node) -> list[tuple[Any, yaml.Node]]:
    """The keys and values of a mapping; the entries of a list, with None for their keys; nothing for a scalar."""
    if isinstance(node, yaml.SequenceNode):
        return [(None, item) for item in node.value]
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _scalars(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    for pair in _pairs(node):
        for part in filter(None, pair):
            yield from _scalars(part)


def _is_block(node: yaml.Node) -> bool:
    """Whether a scalar is a block of text (``|``, ``>``)."""
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _last_line(node: yaml.Node) -> int:
    """The last line of a value, blank lines behind a block of text included."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return max(_last_line(value) for _, value in _pairs(node))
    return int(node.end_mark.line) - (node.end_mark.column == 0 and _is_block(node))


# --------------------------------------------------------------------------- the text
class _Entry(NamedTuple):
    """A key of a mapping with its value, or an entry of a list with its dash, outside of brackets."""

    line: int
    column: int
    depth: int
    """The column that it is to have."""
    key: Any
    value: yaml.Node
    last: int
    """The last line of what is taken with it: its own, if entries follow that are below it."""

    @property
    def shift(self) -> int:
        return self.depth - self.column


class _Layout:
    def __init__(self, lines: list[str], root: yaml.Node) -> None:
        self.lines = lines
        self.root = root
        self.comments = self._find_comments()
        """Line → the comment in it."""
        self.entries: dict[int, list[_Entry]] = {}
        """Line → the entries that begin in it."""
        start = root.start_mark
        if self._opens(root) and not lines[start.line][: start.column].strip():
            self._note(root, 0)
        else:
            self._add(_Entry(start.line, start.column, start.column, None, root, _last_line(root)))
        self.begins = sorted(self.entries)

    def _find_comments(self) -> dict[int, str]:
        covered: dict[int, list[range]] = {}
        for node in _scalars(self.root):
            start, end = node.start_mark, node.end_mark
            for line in range(start.line + _is_block(node), _last_line(node) + 1):
                first = start.column if line == start.line else 0
                last = end.column if line == end.line else len(self.lines[line])
                covered.setdefault(line, []).append(range(first, last))
        found = {}
        for line, text in enumerate(self.lines):
            signs = (at for at, sign in enumerate(text) if sign == "#") if "#" in text else ()
            column = next((at for at in signs if not any(at in part for part in covered.get(line, ()))), None)
            if column is not None:
                found[line] = text[column:].rstrip(" \t")
        return found

    def text(self) -> str:
        """The formatted text."""
        kept = self._end()
        result: list[str] = []
        above: list[_Entry] = []  # the entries that the line is in, outermost first
        line = 0
        while line < len(self.lines):
            here = self.entries.get(line)
            if here is None:
                result.append(self._between(line, above))
                line += 1
                continue
            for entry in here:
                while above and above[-1].column >= entry.column:
                    above.pop()
                above.append(entry)
            result += self._entry(here)
            line = here[-1].last + 1
        while not kept and result and not result[-1]:
            result.pop()
        return "\n".join(result) + "\n" * (not kept)

    def _end(self) -> bool:
        """Whether the line breaks at the end of the file are part of a text; one that lacks the last gets no other."""
        node = self.root
        while below := _pairs(node):
            node = below[-1][1]
        start, end = node.start_mark, node.end_mark
        if not _is_block(node) or end.line < len(self.lines) - 1:
            return False
        text = self.lines[start.line]
        header = re.match(r"[|>][0-9+-]*", text[start.column :])
        assert header is not None
        if end.column > 0 and node.value:
            changed = header[0].replace("+", "").replace("-", "") + "-"
            self.lines[start.line] = text[: start.column] + changed + text[start.column + len(header[0]) :]
            return False
        return "+" in header[0]

    def _opens(self, node: yaml.Node) -> bool:
        """Whether a value is a list or mapping without brackets, and with no key that is marked by a ``?``."""
        if not isinstance(node, yaml.CollectionNode) or node.flow_style:
            return False
        return all(key is None or self._is_simple(key) for key, _ in _pairs(node))

    def _is_simple(self, key: Any) -> bool:
        start, end = key.start_mark, key.end_mark
        before, behind = self.lines[start.line][: start.column], self.lines[end.line][end.column :]
        return _DASHES.fullmatch(before) is not None and _COLON.match(behind) is not None

    def _note(self, node: yaml.Node, depth: int) -> None:
        """Note the entries of a mapping or list without brackets that is to stand at the column `depth`."""
        start = node.start_mark
        for key, value in _pairs(node):
            line = (key or value).start_mark.line
            while key is None and not self._has_dash(line, start.column):
                line -= 1
            opens = self._opens(value)
            self._add(_Entry(line, start.column, depth, key, value, line if opens else max(line, _last_line(value))))
            if opens:
                self._note(value, depth + 2)

    def _add(self, entry: _Entry) -> None:
        self.entries.setdefault(entry.line, []).append(entry)

    def _has_dash(self, line: int, column: int) -> bool:
        text = self.lines[line]
        return text[column : column + 1] == "-" and _DASHES.fullmatch(text[:column]) is not None

    def _between(self, line: int, above: list[_Entry]) -> str:
        """A line between entries: a comment moves with what follows or, if it is deeper, with what it is in."""
        text = _stripped(self.lines[line])
        if not text.lstrip().startswith("#"):
            return text
        column = len(text) - len(text.lstrip())
        at = bisect_right(self.begins, line)
        following = self.entries[self.begins[at]][0] if at < len(self.begins) else None
        if following is not None and column <= following.column:
            return _shifted(text, following.shift)
        return _shifted(text, next((one.shift for one in reversed(above) if one.column <= column), 0))

    def _entry(self, here: list[_Entry]) -> list[str]:
        """The lines of the last of the entries that begin in one line; the others are dashes before it."""
        entry, value = here[-1], here[-1].value
        margin = " " * here[0].depth
        head = margin + "- " * (len(here) - 1)
        if value is self.root:
            head = self.lines[entry.line][: entry.column]
        first = _stripped(head + self.lines[entry.line][entry.column :])
        below = self.lines[entry.line + 1 : entry.last + 1]
        comment = self.comments.get(entry.line)
        apart = [first]
        if comment and len(first) > WIDTH:
            apart = [margin + comment, first.rstrip(" \t").removesuffix(comment).rstrip(" \t")]
        if _is_block(value):
            return [*apart, *self._block(entry, below)]
        if isinstance(value, yaml.CollectionNode) and not value.flow_style:
            return [*apart, *(_shifted(line, entry.shift) for line in below)]
        lines = [first, *(_shifted(_stripped(line), entry.shift) for line in below)]
        commented = any(line in self.comments for line in range(entry.line, entry.last))
        if commented or all(len(line) <= WIDTH for line in lines):
            return lines
        if not below and len(apart[-1]) <= WIDTH:
            return apart
        behind = self.comments.get(entry.last)
        return [*([margin + behind] if behind else []), *self._filled_again(entry, head)]

    def _block(self, entry: _Entry, lines: list[str]) -> list[str]:
        """The lines of a block of text, and those between it and its key, if any."""
        start = entry.value.start_mark
        between = start.line - entry.line
        header = self.lines[start.line][start.column :]
        if re.match(r"[|>][+-]?[0-9]", header):  # it says how deep the text is
            return [_shifted(line, entry.shift) for line in lines]
        text = lines[between:]
        column = next((len(line) - len(line.lstrip(" ")) for line in text if line.strip(" ")), 10**9)
        margin = " " * (entry.depth + 2)
        return [
            *(_shifted(_stripped(line), entry.shift) for line in lines[:between]),
            *(margin + line[column:] if line[column:] else "" for line in text),
        ]

    def _filled_again(self, entry: _Entry, head: str) -> list[str]:
        """The lines of an entry of which one is too long: brackets are opened, text goes on in the next line."""
        if entry.value is self.root:
            return self._opened(entry.value, 0)
        head += f"{self._source(entry.key)}:" if entry.key else "-"
        return self._body(head, entry.value, entry.depth)

    def _body(self, head: str, value: yaml.Node, depth: int) -> list[str]:
        """The lines of a key or a dash, `head`, with its value; it stands, or the last of its dashes, at `depth`."""
        if isinstance(value, yaml.ScalarNode):
            return _filled(head, _GAP.split(self._source(value)), depth + 2)
        line = self._in_line(value)
        if len(head) + 1 + len(line) <= WIDTH or not value.value:
            return [f"{head} {line}"]
        parts = [self._in_line(item) for item in value.value] if isinstance(value, yaml.SequenceNode) else [" "]
        if not any(" " in part for part in parts):
            return _filled(head, f"[{', '.join(parts)}]".split(" "), depth + 2)
        lines = self._opened(value, depth + 2)
        return [f"{head} {lines[0].lstrip()}", *lines[1:]] if head.endswith("-") else [head, *lines]

    def _opened(self, node: yaml.Node, depth: int) -> list[str]:
        """The lines of what was in brackets, without them, at the column `depth`."""
        margin, result = " " * depth, []
        for key, value in _pairs(node):
            result += self._body(f"{margin}{self._source(key)}:" if key else f"{margin}-", value, depth)
        return result

    def _in_line(self, node: yaml.Node) -> str:
        """A value on one line."""
        if isinstance(node, yaml.ScalarNode):
            return self._source(node)
        start, end = node.start_mark, node.end_mark
        if start.line == end.line:
            return str(self.lines[start.line][start.column : end.column])
        parts = [(f"{self._source(key)}: " if key else "") + self._in_line(value) for key, value in _pairs(node)]
        return f"{{{', '.join(parts)}}}" if isinstance(node, yaml.MappingNode) else f"[{', '.join(parts)}]"

    def _source(self, scalar: Any) -> str:
        """A text that is plain or in quotes, on one line, as its author wrote it if that is possible."""
        start, end = scalar.start_mark, scalar.end_mark
        lines = [*self.lines[start.line : end.line], self.lines[end.line][: end.column]]
        lines[0] = lines[0][start.column :]
        lines = [line.strip(" \t") for line in lines] if len(lines) > 1 else lines
        if any(not line or line.endswith("\\") for line in lines[:-1]) or lines[0] in _SIGNS:
            return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(scalar.value, ensure_ascii=False))
        return " ".join(lines)


def _filled(head: str, words: list[str], depth: int) -> list[str]:
    """As many of `words` in each line as have room, the first behind `head`, the others indented by `depth`."""
    lines = [head]
    for at, word in enumerate(words):
        fits = len(lines[-1]) + 1 + len(word) <= WIDTH
        if fits or (at == 0 and depth + len(word) > WIDTH):
            lines[-1] += f" {word}"
        else:
            lines.append(" " * depth + word)
    return [line.rstrip(" ") for line in lines]


def _stripped(line: str) -> str:
    """A line without the spaces at its end, unless a backslash makes the first of them a part of a text."""
    stripped = line.rstrip(" \t")
    return line if stripped.endswith("\\") else stripped


def _shifted(line: str, shift: int) -> str:
    """A line with its indentation changed."""
    if shift >= 0 or not line:
        return " " * shift + line if line else ""
    return line[min(-shift, len(line) - len(line.lstrip(" "))) :]
