"""Text that is no YAML: what its parsers say of it, in words that say what to do."""

from __future__ import annotations

import re
from typing import Any

import yaml

from gradcheck.spec.diagnostic import quote
from gradcheck.spec.text import SpecText

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
