"""Text that is no YAML: what its parsers say of it, in words that say what to do."""

from __future__ import annotations

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
    (("found character",), "a value cannot begin with {character}", "put the value in quotes"),
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


def report_syntax(error: yaml.MarkedYAMLError, text: SpecText) -> None:
    """Report a mistake of syntax at its place, with advice where it is one that is often made."""
    problem = f"{error.context or ''}: {error.problem or ''}"
    message, help = f"this is not valid YAML: {error.problem or error.context}", ""
    for phrases, meaning, advice in _SYNTAX:
        if any(phrase in problem for phrase in phrases):
            message, help = meaning, advice
            break
    line, column = place_of(error.problem_mark or error.context_mark)
    if "never closed" in message and error.context_mark:
        line, column = place_of(error.context_mark)
    elif line > len(text.lines) and error.context_mark:
        line, column = place_of(error.context_mark)
        message = "what begins here is not complete at the end of the file"
    elif "brackets" in message and error.context_mark and (opened := place_of(error.context_mark)[0]) < line:
        help += f" of the bracket opened in line {opened}"
    line = min(line, len(text.lines))
    source = text.lines[line - 1]
    text.report(line, column, 1, message.format(character=quote(source[column - 1 : column])), help)


def place_of(mark: Any) -> tuple[int, int]:
    """1-based line and column of a mark of PyYAML's."""
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
