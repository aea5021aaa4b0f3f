"""YAML text to a tree of nodes with positions: the subset of YAML that specs use, everything else an error.

The tree is built from the parser's event stream, which needs no recursion: PyYAML's own composer dies on 30,000
nested brackets, resolves aliases (so a small file can become a huge one), keeps the last of duplicate keys and
reads ``1e-6``, ``no`` and ``017`` as YAML 1.1 did. Plain scalars are read by the core schema of YAML 1.2 (section
10.3.2), less octal and hexadecimal numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from gradcheck.spec.diagnostic import quote
from gradcheck.spec.text import Place, SpecText

MAX_DEPTH = 40
MAX_NODES = 50_000
MAX_DIGITS = 40

Scalar = str | int | float | bool | None
Kind = Literal["mapping", "sequence", "scalar", "unreadable"]

_MAX_TAB_REPAIRS = 20
_CONSTANTS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
_COMMA = re.compile(r"\s*[,}]")  # behind a key in brackets that has no value
_ENTRIES = re.compile(r"[^{}\[\]]*")
_SIGNIFICANT = re.compile(r"[-+]?[0.]*[1-9]")
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(slots=True, eq=False)
class Node:
    """A piece of the document; `line` and `column` are 1-based, the end is exclusive.

    `unreadable` stands for something that has been reported: whatever else it leads to is no mistake of its own.
    A mapping is `incomplete` if something of it was reported and left out: no key may be called missing then.
    """

    kind: Kind
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0
    value: Scalar = None
    text: str = ""
    style: str = ""
    """How a scalar is written: "" plain, ``'`` or ``"`` quoted, ``|`` or ``>`` a block."""
    entries: dict[str, tuple[Node, Node]] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)
    incomplete: bool = False
    begins: int = 0
    """Of a scenario that is one of several cases: the line of what they are cases of."""

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.line, self.column, max(1, self.end_column - self.column) if self.end_line == self.line else 1

    @property
    def start(self) -> Place:
        """Its first character."""
        return self.line, self.column, 1

    def at(self, key: str) -> Node:
        """A key that a mapping has."""
        return self.entries[key][0]

    def get(self, key: str) -> Node | None:
        """The value of `key` in a mapping; None if there is none."""
        entry = self.entries.get(key)
        return entry[1] if entry else None

    def put(self, key: str, value: Node) -> None:
        """Put a value in the place of that of a key."""
        self.entries[key] = (self.entries[key][0], value)

    def mapping(self, key: str) -> Node:
        """The mapping under `key`; an empty one if there is none or it is something else."""
        value = self.get(key)
        return value if value and value.kind == "mapping" else Node("mapping", self.line, self.column)

    def under(self, key: str) -> dict[str, tuple[Node, Node]]:
        """The entries of the mapping under `key`; none if there is none or it is something else."""
        return self.mapping(key).entries

    def listed(self, key: str) -> list[Node]:
        """What is listed under `key`; nothing if there is no list."""
        return self.entries[key][1].items if key in self.entries else []

    def string(self, key: str) -> str | None:
        """The text under `key`; None if there is none or it is something else."""
        value = self.get(key)
        return value.value if value and isinstance(value.value, str) else None

    def data(self) -> Any:
        """Plain Python values: dict, tuple, scalars; an unreadable node stands for itself."""
        if self.kind == "mapping":
            return {key: value.data() for key, (_, value) in self.entries.items()}
        if self.kind == "sequence":
            return tuple(item.data() for item in self.items)
        return self if self.kind == "unreadable" else self.value

    def scalars(self) -> Iterator[Node]:
        """Every node of nested lists that is not a list itself."""
        if self.kind != "sequence":
            yield self
        for item in self.items:
            yield from item.scalars()


def copy(node: Node, entries: Mapping[str, tuple[Node, Node]] | None = None, items: Iterable[Node] = ()) -> Node:
    """A node with collections of its own: those that are given, or else of the same nodes."""
    return Node(  # dataclasses.replace takes four times as long
        node.kind, node.line, node.column, node.end_line, node.end_column, node.value, node.text, node.style,
        dict(node.entries if entries is None else entries), list(items or node.items), node.incomplete, node.begins,
    )  # fmt: skip


class _StopReadingError(Exception):
    """Something after which the rest of the file is not looked at; it has been reported."""


def parse(text: SpecText) -> tuple[Node | None, bool]:
    """The document's root, None if there is none, and whether the file was read to its end.

    Mistakes are reported to `text`. Where the parser stops at one, the tree holds what comes before it.
    """
    loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for _ in range(_MAX_TAB_REPAIRS):
        builder = _Builder(text)
        before = len(text.found)
        try:
            builder.read(loader)
        except yaml.MarkedYAMLError as error:
            if text.repair_tab(*place_of(error.problem_mark or error.context_mark)):
                del text.found[before:-1]  # the repaired text is read again from its beginning
                continue
            if loader is not yaml.SafeLoader and "nesting depth" in str(error.problem):
                loader = yaml.SafeLoader  # libyaml looks ahead to a limit of its own (PyYAML 6.0.4); this does not
                del text.found[before:]
                continue
            report_syntax(error, text)
            return builder.root, False
        except _StopReadingError:
            pass
        text.nodes = builder.nodes
        return builder.root, not builder.open
    text.report((len(text.lines), 1, 1), "too many tabs to go on", "indent with spaces throughout the file")
    return None, False


class _Builder:
    def __init__(self, text: SpecText) -> None:
        self.text = text
        self.root: Node | None = None
        self.open: list[Node] = []
        self.keys: list[Node | None] = []  # per open collection: the key that waits for its value
        self.nodes = 0
        self.anchors: dict[str, tuple[int, int]] = {}
        self.used: set[str] = set()

    def read(self, loader: Any) -> None:
        """Build the tree of `text`. Raises yaml.MarkedYAMLError at a syntax error, _StopReadingError at a limit."""
        documents = 0
        for event in yaml.parse(self.text.content, Loader=loader):
            if isinstance(event, yaml.NodeEvent):
                self._node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.open.pop()
                self.keys.pop()
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if event.version or event.tags:
                    self._report(event, 1, "directives (%YAML, %TAG) are not allowed", "remove the line")
                if documents > 1:
                    self._report(event, 3, "a second document", "remove the '---': one file holds one document")
                    raise _StopReadingError
        for name, place in self.anchors.items():
            if name not in self.used:
                message = f"anchor {quote('&' + name)} has no effect"
                self.text.report((*place, len(name) + 1), message, "remove it")

    def _node(self, event: yaml.NodeEvent) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._report(event, 1, f"more than {MAX_NODES:,} values in one file", "split the file by topic")
            raise _StopReadingError
        node = Node("unreadable", *place_of(event.start_mark), *place_of(event.end_mark))
        if isinstance(event, yaml.AliasEvent):
            self._alias(event.anchor or "", node)
            self._add(node)
            return
        if event.anchor:
            self.anchors[event.anchor] = (node.line, node.column)
        if tag := getattr(event, "tag", None):
            help = "remove it: whether a value is text or a number follows from how it is written"
            self._report(event, 1, f"tag {quote(tag)} is not allowed", help)
        if isinstance(event, yaml.ScalarEvent):
            node.text, node.style = event.value, event.style or ""
            if not tag:
                self._scalar(node)
            self._add(node)
            return
        # A tag takes nothing from a mapping or a list: what is inside is checked all the same.
        node.kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
        self._add(node)
        self.open.append(node)
        self.keys.append(None)
        if len(self.open) > MAX_DEPTH:
            self._report(event, 1, f"nested more than {MAX_DEPTH} levels deep", "make the value flatter")
            raise _StopReadingError

    def _alias(self, name: str, node: Node) -> None:
        self.used.add(name)
        if self.keys and (key := self.keys[-1]) and _is_merge(key):
            return  # the merge key is the mistake
        where = f" (of line {self.anchors[name][0]})" if name in self.anchors else ""
        help = "write the value out, or take it from another scenario with 'extends: its-id'"
        self.text.report(node, f"alias {quote('*' + name)}{where} is not allowed", help)

    def _scalar(self, node: Node) -> None:
        message = help = ""
        node.value = plain = node.text
        if node.style:
            if node.style == '"' and _UNSAFE.search(plain):
                message = "the text holds a control character, written as an escape"
                help = "remove it, or use a block (|) and write the code's own escape"
        elif plain in _CONSTANTS:
            node.value = _CONSTANTS[plain]
        elif plain[0] in "+-.0123456789" and (_INT.fullmatch(plain) or _FLOAT.fullmatch(plain)):
            if len(plain) > MAX_DIGITS:
                message, help = f"a number of more than {MAX_DIGITS} characters", "write fewer digits"
            else:
                node.value = number = int(plain) if _INT.fullmatch(plain) else float(plain)
                if math.isinf(number):
                    message, help = f"{plain} is beyond float64", "write .inf if infinity is meant"
                elif number == 0 and _SIGNIFICANT.match(plain):
                    message, help = f"{plain} is 0 in float64", "write 0 if that is meant; the least is 5e-324"
        if message:
            self.text.report(node, message, help)
            node.value = None
        else:
            node.kind = "scalar"

    def _add(self, node: Node) -> None:
        if not self.open:
            self.root = self.root or node
            return
        parent, key = self.open[-1], self.keys[-1]
        if parent.kind == "sequence":
            parent.items.append(node)
            return
        self.keys[-1] = node if key is None else None
        if key is not None:
            self._add_entry(parent, key, node)

    def _add_entry(self, parent: Node, key: Node, value: Node) -> None:
        behind = self.text.lines[key.end_line - 1][key.end_column - 1 :] if not value.text else ""
        before = next(reversed(parent.entries.values()), (key, key))[1]
        if _COMMA.match(behind) and before.kind in ("scalar", "unreadable") and before.end_line == key.line:
            if before.kind == "scalar":  # a list without brackets: once, not for each of its entries
                written = _ENTRIES.match(self.text.lines[before.line - 1], before.column - 1)
                entries = [one.strip(" ()") for one in written[0].split(",")] if written else []
                help = f"a list stands in brackets: [{', '.join(one for one in entries if one and ':' not in one)}]"
                self.text.report(before, "a ',' ends this value", help)
            before.kind, parent.incomplete = "unreadable", True
        elif _is_merge(key):
            parent.incomplete = True
            self.text.report(key, "merge keys (<<) are not allowed", "use 'extends: id-of-another-scenario'")
        elif key.kind == "unreadable":
            parent.incomplete = True
        elif not isinstance(key.value, str) or key.kind != "scalar":
            parent.incomplete = True
            what = "a list or mapping" if key.kind != "scalar" else describe(key)
            help = "write a name" if key.kind != "scalar" or not key.text else f'put it in quotes: "{key.text}"'
            self.text.report(key, f"a key must be text, not {what}", help)
        elif key.value in parent.entries:
            message = f"duplicate key {quote(key.value)}, first given in line {parent.at(key.value).line}"
            self.text.report(key, message, "remove one of the two")
        else:
            parent.entries[key.value] = (key, value)

    def _report(self, event: yaml.Event, width: int, message: str, help: str) -> None:
        self.text.report((*place_of(event.start_mark), width), message, help)


def _is_merge(key: Node) -> bool:
    return key.kind == "scalar" and key.text == "<<" and not key.style


def describe(node: Node) -> str:
    """What a node holds, for a message: ``the string "1e-6"``, ``the number 3``, ``null``, ``a list``."""
    if node.kind != "scalar":
        return {"mapping": "a mapping", "sequence": "a list"}.get(node.kind, "this")
    if node.value is None:
        return "null" if node.text else "nothing"
    if isinstance(node.value, str):
        cut = quote(node.value.rstrip("\n"))[1:-1]
        return f'the string "{cut}"' if node.value else "an empty string"
    return f"{'the boolean' if isinstance(node.value, bool) else 'the number'} {node.text}"


# --------------------------------------------------------------------------- text that is no YAML
# What libyaml (first) or PyYAML's own parser (second) says -> what it means, what to do.
_SYNTAX = (
    (
        ("mapping values are not allowed",),
        "a ':' that makes a key where none can stand",
        "put text that contains ': ' in quotes; check the indentation of this line and the one above",
    ),
    (("found character", "an alias"), "a value cannot begin with {character}", "put the value in quotes"),
    (
        ("quoted scalar: found unexpected end", "quoted scalar: found unexpected document"),
        "this quote is never closed",
        "close it; inside single quotes write a quote as ''",
    ),
    (
        ("flow sequence", "flow mapping", "did not find expected node content", "expected the node content"),
        "the brackets do not close here as they should",
        "check for a missing ',' or closing bracket",
    ),
    (
        ("could not find expected ':'",),
        "this line is neither 'key: value' nor a list entry",
        "add the ':' after the key, or indent the line so that it belongs to the value above",
    ),
    (
        ("sequence entries are not allowed",),
        "a list entry ('- …') where none can stand",
        "begin the list on the next line, or write it as [a, b]",
    ),
    (("unknown escape",), "unknown escape in a double-quoted text", "use single quotes, or write \\\\ for a backslash"),
    (
        ("expected key", "'-' indicator", "expected <block end>", "document start"),
        "this line does not fit the block it stands in",
        "indent it like its neighbours: keys of one mapping and dashes of one list begin in the same column",
    ),
    (("comment or line break", "indentation indicators"), "text behind '|' or '>'", "begin it on the next line"),
)


_PYTHON = re.compile(r"\s*(class \w+.*:|def \w+\(.*|import \w.*|from \w+ import .*|@\w+)\s*$")


def report_syntax(error: yaml.MarkedYAMLError, text: SpecText) -> None:
    """Report a mistake of syntax at its place, with advice where it is one that is often made."""
    problem = f"{error.context or ''}: {error.problem or ''}"
    message, help = f"this is not valid YAML: {error.problem or error.context}", ""
    for phrases, meaning, advice in _SYNTAX:
        if any(phrase in problem for phrase in phrases):
            message, help = meaning, advice
            break
    line, column = place_of(error.problem_mark or error.context_mark)
    key = place_of(error.context_mark)
    if code := _code_without_a_block(text.lines, line):
        (line, column), message = code, "this is code, where keys or a list are expected"
        help = "begin it as a block: put a '|' behind the ':' of the line above"
    elif "never closed" in message or "neither" in message or "alias" in problem:
        line, column = key
    elif line > len(text.lines) and error.context_mark:
        line, column = key
        message = "what begins here is not complete at the end of the file"
    elif "brackets" in message and key[0] < line:
        help += f" of the bracket opened in line {key[0]}"
    line = min(line, len(text.lines))
    source = text.lines[line - 1]
    if "does not fit" in message and re.search(r": *(['\"].*['\"]|\[.*\]|\{.*\}) *$", source[: column - 1]):
        message, help = "something behind the end of a value", "put all of it in quotes"
        help += "; inside single quotes write a quote as ''" if "'" in source else ""
    elif "neither" in message and re.match(r"[\w-]+:\S", source[column - 1 :]):
        help = "put a space behind the ':'"
    text.report((line, column, 1), message.format(character=quote(source[column - 1 : column])), help)


def _code_without_a_block(lines: list[str], line: int) -> tuple[int, int] | None:
    """Where Python begins that stands below a key without a ``|``, if `line` is in such."""
    depth = len(lines[line - 1]) - len(lines[line - 1].lstrip()) if line <= len(lines) else 0
    for above in range(min(line, len(lines)) - 1, 0, -1):
        text = lines[above - 1]
        here = len(text) - len(text.lstrip())
        if text.strip() and here < depth:
            below = lines[above]
            if re.search(r":\s*$", text) and not _PYTHON.match(text) and _PYTHON.match(below):
                return above + 1, len(below) - len(below.lstrip()) + 1
            depth = here
    return None


def place_of(mark: Any) -> tuple[int, int]:
    """1-based line and column of a mark of PyYAML's."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
