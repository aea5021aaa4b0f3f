"""YAML text to plain data that knows where everything is written.

Specs use a subset of YAML: no aliases, anchors, tags, merge keys, directives or duplicate keys.
Plain scalars follow the core schema of YAML 1.2, without octal and hexadecimal numbers: ``1e-6`` is
a number, ``no`` and ``017`` are text. Depth and size are limited while the parser's events are
read, so no file can exhaust the stack or the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gradcheck.spec.data import Plain
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.syntax import report_syntax_error
from gradcheck.spec.text import Place, SpecText, place_of

MAX_DEPTH = 40
MAX_NODES = 50_000
MAX_DIGITS = 40

NULL_ALLOWED = frozenset({"values", "grads"})
"""Keys below which null is a value like any other."""

CONSTANTS: dict[str, float | bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
NOT_ZERO = re.compile(r"[-+]?[0.]*[1-9]")
CONTROL_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
LIST_ENTRIES = re.compile(r"[^{}\[\]]*")


@dataclass(slots=True, eq=False)
class Span:
    """Where a key or value is written. Lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str = ""
    """The text of a scalar, without quotes."""
    style: str = ""
    """How a scalar is written: "" plain, ``'`` or ``"`` quoted, ``|`` or ``>`` a block."""

    @property
    def place(self) -> Place:
        """The place to underline."""
        one_line = self.end_line == self.line
        return self.line, self.column, max(1, self.end_column - self.column) if one_line else 1

    @property
    def start(self) -> Place:
        """The first character."""
        return self.line, self.column, 1

    @property
    def is_block(self) -> bool:
        """Whether the text is a block, below a ``|`` or ``>``."""
        return self.style in ("|", ">")

    @property
    def first_character(self) -> tuple[int, int]:
        """Line and column at which the text of a scalar begins; for a block, below its ``|``."""
        if self.is_block:
            return self.line + 1, 1
        return self.line, self.column + len(self.style)


class Map(dict[str, Any]):
    """A mapping of a document, with the marks of its keys and values."""

    def __init__(self, entries: Mapping[str, Any] | None = None) -> None:
        super().__init__(entries or {})
        self.marks: dict[str, tuple[Span, Span]] = {}
        if isinstance(entries, Map):
            self.marks.update(entries.marks)

    def put(self, key: str, value: Any, marks: tuple[Span, Span]) -> None:
        """Set the value of `key` and where both are written."""
        self[key] = value
        self.marks[key] = marks

    def take(self, key: str, source: Map) -> None:
        """Take the value of `key` and its marks from another mapping."""
        self.put(key, source[key], source.marks[key])

    def without(self, keys: Iterable[str]) -> Map:
        """Return a copy without some keys."""
        rest = Map()
        for key in self:
            if key not in keys:
                rest.take(key, self)
        return rest

    def union(self, other: Map) -> Map:
        """Return a copy with the entries of another mapping in addition, or in place of its own."""
        whole = Map(self)
        for key in other:
            whole.take(key, other)
        return whole

    def map(self, key: str) -> Map:
        """Return the mapping at `key`; an empty one if there is none."""
        value = self.get(key)
        return value if isinstance(value, Map) else Map()


class Seq(tuple[Any, ...]):
    """A list of a document, with the marks of its items."""

    marks: list[Span]

    def __new__(cls, items: Iterable[Any], marks: Iterable[Span]) -> Seq:
        """Make a list of items and their marks."""
        made = super().__new__(cls, items)
        made.marks = list(marks)
        return made


class StopReadingError(Exception):
    """The rest of the file is not read; the reason has been reported."""


def parse(text: SpecText) -> Map:
    """Return the document of a file.

    Raises SpecError with all that is not allowed in YAML of specs, up to the first syntax error.
    """
    composer = Composer(text)
    value, mark = None, None
    try:
        value, mark = composer.document()
    except yaml.MarkedYAMLError as error:
        report_syntax_error(error, text)
    except StopReadingError:
        pass
    if text.found:
        raise text.error()
    if not isinstance(value, Map):
        if value is None or mark is None:
            help = "begin it with 'schema: gradcheck/v1' and 'scenarios:'"
            text.report((1, 1, 1), "the file is empty", help)
        else:
            help = (
                "begin the file with 'schema: gradcheck/v1', and put the scenarios under "
                "'scenarios:'"
            )
            message = f"a spec file must be a mapping, not {describe(value, mark)}"
            text.report(mark.start, message, help)
        raise text.error()
    text.nodes = composer.nodes
    return value


class Composer:
    """Composes a document from the events of PyYAML's parser."""

    def __init__(self, text: SpecText) -> None:
        self.text = text
        self.nodes = 0
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[yaml.Event] = yaml.parse(text.content, Loader=loader)

    def document(self) -> tuple[Any, Span | None]:
        """Compose the only document of the file; None if there is none."""
        value, mark = None, None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._stop(
                        event, "a second document", "remove the '---': one file holds one document"
                    )
                if event.version or event.tags:
                    self._report(
                        event, "directives (%YAML, %TAG) are not allowed", "remove the line"
                    )
                value, mark = self._value(next(self.events), 1, null_allowed=False)
        return value, mark

    def _value(self, event: Any, depth: int, null_allowed: bool) -> tuple[Any, Span]:
        """Compose the value that begins with an event."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._stop(
                event, f"more than {MAX_NODES:,} values in one file", "split the file by topic"
            )
        mark = Span(*place_of(event.start_mark), *place_of(event.end_mark))
        self._refuse_references(event)

        if isinstance(event, yaml.ScalarEvent):
            mark.text = event.value
            mark.style = event.style or ""
            return self._scalar(mark), mark
        if depth > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} levels deep", "make the value flatter")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(depth, null_allowed), mark
        return self._sequence(depth, null_allowed), mark

    def _refuse_references(self, event: Any) -> None:
        """Report an anchor, and stop at an alias or a tag."""
        if isinstance(event, yaml.AliasEvent):
            help = "write the value out, or take it from another scenario with 'extends: its-id'"
            help += "; put text that begins with * in quotes"
            self._stop(event, f"alias {quote('*' + str(event.anchor))} is not allowed", help)
        if event.anchor:
            self._report(event, f"anchor {quote('&' + event.anchor)} is not allowed", "remove it")
        if tag := getattr(event, "tag", None):
            help = "remove it: whether a value is text or a number follows from how it is written"
            self._stop(event, f"tag {quote(tag)} is not allowed", help)

    def _sequence(self, depth: int, null_allowed: bool) -> Seq:
        """Compose a list up to its end."""
        items: list[Any] = []
        marks: list[Span] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            value, mark = self._value(event, depth + 1, null_allowed)
            items.append(value)
            marks.append(mark)
        return Seq(items, marks)

    def _mapping(self, depth: int, null_allowed: bool) -> Map:
        """Compose a mapping up to its end."""
        mapping = Map()
        before: Span | None = None
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, key_mark = self._value(event, depth + 1, null_allowed=True)
            if key_mark.text == "<<" and not key_mark.style:
                help = "use 'extends: id-of-another-scenario'"
                self._stop(event, "merge keys (<<) are not allowed", help)
            allowed = null_allowed or (isinstance(key, str) and key in NULL_ALLOWED)
            value, value_mark = self._value(next(self.events), depth + 1, allowed)
            if before is not None and self._is_list_without_brackets(before, key_mark, value_mark):
                self._report_list_without_brackets(before)
                raise StopReadingError
            before = None if isinstance(value, (Map, Seq)) else value_mark

            mistake = self._key_mistake(mapping, key, key_mark)
            if mistake is None and value is None and not allowed:
                null = "cannot be null" if value_mark.text else "has no value"
                mistake = f"{quote(key)} {null}", "give it a value, or remove the key"
            if mistake:
                self.text.report(key_mark.place, *mistake)
            else:
                mapping.put(key, value, (key_mark, value_mark))
        return mapping

    def _key_mistake(self, mapping: Map, key: Any, mark: Span) -> tuple[str, str] | None:
        """Return why a key cannot be taken, and what to do."""
        if isinstance(key, (Map, Seq)):
            return "a key must be text, not a list or mapping", "write a name"
        if not isinstance(key, str):
            help = f'put it in quotes: "{mark.text}"'
            return f"a key must be text, not {describe(key, mark)}", help
        if key in mapping:
            first = mapping.marks[key][0].line
            return (
                f"duplicate key {quote(key)}, first given in line {first}",
                "remove one of the two",
            )
        return None

    def _scalar(self, mark: Span) -> Any:
        """Return the value of a scalar, and report one that cannot be held."""
        text = mark.text
        if mark.style:
            if mark.style == '"' and CONTROL_CHARACTER.search(text):
                message = "the text holds a control character, written as an escape"
                help = "remove it, or use a block (|) and write the code's own escape"
                self.text.report(mark.place, message, help)
            return text
        if text in CONSTANTS:
            return CONSTANTS[text]
        is_integer = INTEGER.fullmatch(text)
        if not is_integer and not FLOAT.fullmatch(text):
            return Plain(text)
        if len(text) > MAX_DIGITS:
            message = f"a number of more than {MAX_DIGITS} characters"
            self.text.report(mark.place, message, "write fewer digits")
            return 0
        number = int(text) if is_integer else float(text)
        if math.isinf(number):
            self.text.report(
                mark.place, f"{text} is beyond float64", "write .inf if infinity is meant"
            )
        elif number == 0 and NOT_ZERO.match(text):
            help = "write 0 if that is meant; the least is 5e-324"
            self.text.report(mark.place, f"{text} is 0 in float64", help)
        return number

    def _is_list_without_brackets(self, before: Span, key: Span, value: Span) -> bool:
        """Whether a key without a value follows a scalar in braces: ``{shape: 2, 3}``."""
        behind = self.text.lines[key.end_line - 1][key.end_column - 1 :].lstrip()
        return not value.text and behind[:1] in (",", "}") and before.end_line == key.line

    def _report_list_without_brackets(self, before: Span) -> None:
        written = LIST_ENTRIES.match(self.text.lines[before.line - 1], before.column - 1)
        entries: list[str] = []
        for entry in written[0].split(",") if written else ():
            if ":" not in entry and entry.strip(" ()"):
                entries.append(entry.strip(" ()"))
        help = f"a list stands in brackets: [{', '.join(entries)}]"
        self.text.report(before.place, "a ',' ends this value", help)

    def _report(self, event: yaml.Event, message: str, help: str) -> None:
        self.text.report((*place_of(event.start_mark), 1), message, help)

    def _stop(self, event: yaml.Event, message: str, help: str) -> None:
        self._report(event, message, help)
        raise StopReadingError


def describe(value: Any, mark: Span) -> str:
    """Describe a value for a message: ``the string "1e-6"``, ``the number 3``, ``null``, ``a
    list``.
    """
    if isinstance(value, Map):
        return "a mapping"
    if isinstance(value, Seq):
        return "a list"
    if isinstance(value, str):
        shown = quote(value.rstrip("\n"))[1:-1]
        return f'the string "{shown}"' if value else "an empty string"
    if value is None:
        return "null" if mark.text else "nothing"
    kind = "the boolean" if isinstance(value, bool) else "the number"
    return f"{kind} {mark.text}"


def locate(root: Map, path: Iterable[int | str]) -> tuple[Any, Span, Span | None, list[int | str]]:
    """Return the value at a path, its mark, the mark of its key, and the steps that exist.

    Steps that are no key or index (union members of pydantic, missing keys) are skipped.
    """
    value: Any = root
    mark = Span(1, 1, 1, 1)
    key_mark: Span | None = None
    steps: list[int | str] = []
    for step in path:
        if isinstance(value, Map) and step in value.marks:
            key_mark, mark = value.marks[str(step)]
            value = value[str(step)]
        elif isinstance(value, Seq) and isinstance(step, int) and step < len(value):
            key_mark, mark, value = None, value.marks[step], value[step]
        else:
            continue
        steps.append(step)
    return value, mark, key_mark, steps
