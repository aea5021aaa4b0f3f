"""The YAML reader: from text to plain data with the line and column of every value.

Specs use a subset of YAML: no aliases, anchors, tags, merge keys, directives or duplicate keys.
Plain scalars follow the core schema of YAML 1.2, without octal and hexadecimal numbers: ``1e-6`` is
a number, ``no`` and ``017`` are text. Depth and size are limited while the parser's events are
read, so no file can exhaust the stack or the memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from gradcheck.spec.data import Map, Seq, Span
from gradcheck.spec.diagnostic import describe, quote
from gradcheck.spec.syntax import TEMPLATE, report_syntax_error
from gradcheck.spec.text import SpecText, place_of

MAX_DEPTH = 40
MAX_NODES = 50_000

NULL_ALLOWED = frozenset({"values", "grads", "kwargs"})
"""Keys under which null is a value like any other."""

CONSTANTS: dict[str, float | bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_NO_VALUE = "give it a value, indented more if it is on the lines below, or remove the key"
INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,39})")
FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+")
NUMBER_BEGINS = re.compile(r"[-+]?\.?[0-9]")
JOINED = re.compile(r"([\w.]+)(?: ?=| ?[:=] ?([^:=].*)| ([^:= ]+|[\"'].*))")
"""A key and its value, or the start of its value, that are not separated by ``: ``."""
NOT_ZERO = re.compile(r"[-+]?[0.]*[1-9]")
CONTROL_CHARACTER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class StopReadingError(Exception):
    """Raised to stop reading the file, after the reason was reported."""


def parse(text: SpecText) -> Map:
    """Return the document of a file.

    Raises SpecError with everything that specs do not allow in YAML, up to the first syntax error.
    """
    value: Any = None
    try:
        value, mark = Composer(text).document()
        if not isinstance(value, Map):
            message = f"a spec file must be a mapping, not {describe(value)}"
            if value is None:
                message = "the file is empty"
            help = (
                "begin the file with 'schema: gradcheck/v1', and list scenarios under 'scenarios:'"
            )
            text.report(mark.place, message, help)
    except yaml.MarkedYAMLError as error:
        report_syntax_error(error, text)
    except StopReadingError:
        pass
    if text.mistakes:
        raise text.error()
    assert isinstance(value, Map)
    return value


class Composer:
    """Composes a document from the events of PyYAML's parser."""

    def __init__(self, text: SpecText) -> None:
        self.text = text
        self.nodes = 0
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[Any] = yaml.parse(text.content, Loader=loader)

    def document(self) -> tuple[Any, Span]:
        """Compose the only document of the file; None if there is none."""
        next(self.events)  # the stream begins
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            return None, Span(1, 1, 1, 1)
        if start.version or start.tags:
            self._report(start, "directives (%YAML, %TAG) are not allowed", "remove the line")
        value, mark = self._value(next(self.events), 1, null_allowed=False)
        next(self.events)  # the document ends
        after = next(self.events)
        if isinstance(after, yaml.DocumentStartEvent):
            self._report(
                after, "a second document", "remove the '---': one file holds one document"
            )
        return value, mark

    def _value(self, event: Any, depth: int, null_allowed: bool) -> tuple[Any, Span]:
        """Compose the value that begins with an event."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values in one file"
            self._stop(event, message, "split the file by topic")
        start, end = event.start_mark, event.end_mark
        mark = Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)
        self._refuse_references(event)
        if isinstance(event, yaml.ScalarEvent):
            mark.text, mark.style = event.value, event.style or ""
            return self._scalar(mark), mark
        if depth > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} levels deep", "make the value flatter")
        if isinstance(event, yaml.MappingStartEvent):
            if self.text.lines[mark.line - 1].startswith("{{", mark.column - 1):
                self._stop(event, *TEMPLATE)
            return self._mapping(mark, depth, null_allowed), mark
        return self._sequence(depth, null_allowed), mark

    def _refuse_references(self, event: Any) -> None:
        """Report an anchor, and stop at an alias or a tag."""
        if isinstance(event, yaml.AliasEvent):
            help = "write the value out, or take it from another scenario with 'extends: its-id'"
            help += "; put text that begins with * in quotes"
            self._stop(event, f"alias {quote('*' + str(event.anchor))} is not allowed", help)
        if event.anchor and getattr(event, "value", None) == "":
            self._stop(event, "a value cannot begin with '&'", "put the value in quotes")
        if event.anchor:
            self._report(event, f"anchor {quote('&' + event.anchor)} is not allowed", "remove it")
        if tag := getattr(event, "tag", None):
            help = "remove it: whether a value is text or a number follows from how it is written"
            if tag.startswith("!"):
                help = "write the value out, in quotes if it is text that begins with '!'; the "
                help += "layer of a module is {ref: pkg.mod:Class}"
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

    def _mapping(self, mark: Span, depth: int, null_allowed: bool) -> Map:
        """Compose a mapping up to its end."""
        mapping = Map(mark)
        last, is_second_entry = mark, False
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, key_mark = self._value(event, depth + 1, null_allowed)
            if key_mark.text == "<<" and not key_mark.style:
                help = "use 'extends: id-of-another-scenario'"
                self._stop(event, "merge keys (<<) are not allowed", help)
            allows_null = null_allowed or key_mark.text in NULL_ALLOWED
            value, value_mark = self._value(next(self.events), depth + 1, allows_null)
            is_entry = value is None and NUMBER_BEGINS.match(key_mark.text)
            if is_entry and last.text and last.line == key_mark.line:
                entries = f"{last.text}, {key_mark.text}".strip("()")
                help = f"a list is written in brackets, such as [{entries}]"
                if re.search(r"\w\(", last.text):
                    help = "write a word without arguments, or put text that contains ',' in quotes"
                self.text.report(last.place, "a ',' ends this value", help)
                raise StopReadingError
            before, last = last, value_mark
            if mistake := _entry_mistake(mapping, key, key_mark, value, null_allowed, before):
                if not is_second_entry:
                    self.text.report(key_mark.place, *mistake)
                is_second_entry |= key in [*mapping][:2]
                if key_mark.text.endswith("="):  # the parser then fails at the bracket after it
                    raise StopReadingError
            else:
                mapping.put(key, value, (key_mark, value_mark))
        return mapping

    def _scalar(self, mark: Span) -> Any:
        """Return the value of a scalar, and report one that cannot be represented."""
        text = mark.text
        if mark.style == '"' and CONTROL_CHARACTER.search(text):
            message = "the text holds a control character, written as an escape"
            help = "remove it, or use a block (|) and write the code's own escape"
            self.text.report(mark.place, message, help)
        if mark.style:
            return text
        if text in CONSTANTS:
            return CONSTANTS[text]
        is_integer = INTEGER.fullmatch(text)
        if not is_integer and not FLOAT.fullmatch(text):
            return text
        number = int(text) if is_integer else float(text)
        if math.isinf(number):
            help = "write .inf if infinity is intended"
            self.text.report(mark.place, f"{text} is beyond float64", help)
        elif number == 0 and NOT_ZERO.match(text):
            help = "write 0 if that is intended; the smallest number is 5e-324"
            self.text.report(mark.place, f"{text} is 0 in float64", help)
        return number

    def _report(self, event: Any, message: str, help: str) -> None:
        self.text.report((*place_of(event.start_mark), 1), message, help)

    def _stop(self, event: Any, message: str, help: str) -> None:
        self._report(event, message, help)
        raise StopReadingError


def _entry_mistake(
    mapping: Map, key: Any, mark: Span, value: Any, null_allowed: bool, before: Span
) -> tuple[str, str] | None:
    """Return why a key is not allowed in a mapping, and what to do; None if it is allowed.

    `before` is the position of the value before it.
    """
    if not isinstance(key, str):
        return f"a key must be text, not {describe(key)}", "write a name; put a number in quotes"
    if key in mapping:
        first = mapping.marks[key][0].line
        help = "rename or remove one of the two"
        if "id" in mapping:
            help += ", or begin another entry of the list with '- id: …'"
        elif key == "schema":
            help += ", or put what begins here into a separate file"
        return f"duplicate key {quote(key)}, first given in line {first}", help
    if value is None and key.count(")") > key.count("("):
        return "a ',' ends the text before", "put text that contains ',' in quotes"
    if value is None and not mark.style and (joined := JOINED.fullmatch(key)):
        return (
            "there is no ': ' between a key and its value",
            f"write {joined[1]}: {joined[2] or joined[3] or '…'}",
        )
    if value is None and not null_allowed:
        help = _NO_VALUE
        if before.text and before.line == mark.line:
            help += f"; a list is written as {quote(f'[{before.text}, {key}]')[1:-1]}"
        return f"{quote(key)} has no value", help
    return None
