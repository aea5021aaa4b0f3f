"""Syntax errors of YAML in plain English, with advice for common ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import yaml

from gradcheck.spec.diagnostic import quote
from gradcheck.spec.text import SpecText, place_of


class Hint(NamedTuple):
    """How an error of the parser is reported."""

    problem: str
    """Pattern of the message of libyaml or of PyYAML's own parser."""
    message: str
    help: str
    source: str = ""
    """Pattern that the source line must match: the parts before and after the position, joined by a
    NUL. If it has a group ``place``, that position is reported instead.
    """
    at_context: bool = False
    """Whether to report the start of the construct rather than the position where the parser gives
    up.
    """


TEMPLATE = ("a template is not filled in", "write the value itself")
"""Message and help for a placeholder that another tool should have replaced."""
UNFIT = "expected key|'-' indicator|expected <block end>|document start"
WORDINGS = (
    Hint(".", "a tab where YAML allows only spaces",
            "indent with spaces: set the editor to expand tabs", r"^[^#'\"]*\t|\0\t"),
    Hint("mapping values are not allowed", "a ':' that makes a key where none is allowed",
            "remove the ':' at the end, or put all of the text in quotes", r": .*\0:\s*$"),
    Hint("mapping values are not allowed|" + UNFIT, "a list entry ('- …') where none is allowed",
            "write the key of its list in the line above, such as 'scenarios:', or indent it like "
            "the other entries", r"^\s*(?P<place>-) [\w-]+\0:|^\s*\0- "),
    Hint("mapping values are not allowed", "a ':' that makes a key where none is allowed",
            "put text that contains ': ' in quotes; begin a key on the next line, indented more, "
            "or write {{key: value}}", r": .*\0:"),
    Hint("mapping values are not allowed", "a ':' that makes a key where none is allowed",
            "check the indentation of this line and the one above; put text that contains ': ' "
            "in quotes"),
    Hint("an alias|an anchor", "a value cannot begin with {character}",
            "put the value in quotes", at_context=True),
    Hint("found character", "a fence of Markdown where YAML is expected",
            "remove it, and the one at the end", r"^\s*\0```"),
    Hint("found character", "a value cannot begin with {character}", "put the value in quotes"),
    Hint("quoted scalar: found unexpected (end|document)", "this quote is never closed",
            "close it; inside single quotes write a quote as ''", at_context=True),
    Hint("unexpected ':'", "a ':' without a space after it", "put a space after the ':'"),
    Hint("flow sequence|flow mapping|expected (the )?node content", *TEMPLATE, r"\$\0\{\{"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "a ':' that makes a key where none is allowed",
            "put text that contains ':' in quotes", r": +[^,{}\[\]'\"]*\0:"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "a comment hides the end of this line",
            "write it on a line of its own", r"\0[{\[][^'\"]*\s(?P<place>#)", at_context=True),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "this quote ends the text", "inside single quotes write a quote as ''",
            r"'[^']*(?P<place>')\0\w"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "a bracket inside a value",
            "write a list as [2, 3], without a name and parentheses; put other text in quotes",
            r"[\w)]\(?\0[\[{]"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "two commas in a row", "remove one of the two", r",\s*\0,"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "the brackets do not close here as they should",
            "write the closing bracket that fits the one before it, or remove this one",
            r"\0[}\]]"),
    Hint("flow sequence|flow mapping|expected (the )?node content",
            "the brackets do not close here as they should",
            "check for a missing ',' or closing bracket of the bracket opened in line {context}"),
    Hint("could not find expected ':'", "this line is neither 'key: value' nor a list entry",
            "write ': ' in place of '='; indent code, so that it belongs to the key above",
            r"\0[\w-]+ *=", at_context=True),
    Hint("could not find expected ':'|" + UNFIT, "this line begins with a sign that is not a '-'",
            "begin an entry of a list with a '-' and a space", r"\0[^\w\s\"'{}\[\]&*!|>%@`#,?:-] "),
    Hint("could not find expected ':'", "this line is neither 'key: value' nor a list entry",
            "put a space after the ':'", r"\0[\w-]+:\S", at_context=True),
    Hint("could not find expected ':'", "this line is neither 'key: value' nor a list entry",
            "add the ':' after the key, or indent the line so that it belongs to the value above",
            at_context=True),
    Hint("sequence entries are not allowed", "a list entry ('- …') where none is allowed",
            "begin the list on the next line, or write it as [a, b]; put text in quotes"),
    Hint("mapping keys are not allowed", "a value cannot begin with {character}",
            "put the value in quotes"),
    Hint("unknown escape", "unknown escape in a double-quoted text",
            "use single quotes, or write \\\\ for a backslash"),
    Hint(UNFIT, "a bracket where none is allowed", "put a ':' and a space before the bracket",
            r"^\s*(?:- )?[\w.-]+ *(?P<place>[{\[]).*\0[}\]]"),
    Hint(UNFIT, "a closing bracket too many", "remove it", r"\0[}\]]"),
    Hint(UNFIT, "text after the end of a value",
            "begin it on a line of its own, without the ','",
            r": *(['\"].*['\"]|\[.*\]|\{.*\}) *\0,"),
    Hint(UNFIT, "something after the end of a value",
            "put all of it in quotes; inside single quotes write a quote as ''",
            r": *(['\"].*['\"]|\[.*\]|\{.*\}) *\0"),
    Hint(UNFIT, "this line does not fit the block it is in",
            "indent it like its neighbours: keys of one mapping and dashes of one list begin in "
            "the same column"),
    Hint("comment or line break|indentation indicators", "text after '|' or '>'",
            "begin it on the next line"),
    Hint("nesting depth", "nested more than 40 levels deep", "make the value flatter"),
)  # fmt: skip
"""Kinds of syntax errors; the first that matches is used."""

OPENS_VALUE = re.compile(r":\s*$")
OPENS_BLOCK = re.compile(r": +[|>][-+\d]*\s*(#.*)?$")
OPENS_QUOTE = re.compile(r"\s*(?:- )?[\w.-]+: +(?P<quote>[\"'])(?:(?!(?P=quote)).)*$")
PYTHON_LINE = re.compile(r"\s*(class \w+.*:|def \w+\(.*|import \w.*|from \w+ import .*|@\w+)\s*$")


def report_syntax_error(error: yaml.MarkedYAMLError, text: SpecText) -> None:
    """Report a syntax error at its position."""
    line, column = place_of(error.problem_mark or error.context_mark)
    start_line, start_column = place_of(error.context_mark)
    for find_place, message, help in LINES_ABOVE:
        if place := find_place(text.lines, line):
            text.report((*place, 1), message, help)
            return
    if line > len(text.lines):
        # The file ended inside a construct.
        line, column = start_line, start_column
    line = min(line, len(text.lines))

    problem = f"{error.context or ''}: {error.problem or ''}"
    if "flow" in problem and line > start_line and " #" not in text.lines[start_line - 1]:
        help = f"close it, or add the missing ',' at or before line {line}"
        text.report((start_line, start_column, 1), "this bracket is not closed", help)
        return
    for wording in WORDINGS:
        position = (line, column)
        if wording.at_context and start_line <= len(text.lines):
            position = (start_line, start_column)
        source = text.lines[position[0] - 1]
        split = f"{source[: position[1] - 1]}\0{source[position[1] - 1 :]}"
        match = re.search(wording.source, split)
        if match and re.search(wording.problem, problem):
            character = quote(source[position[1] - 1 : position[1]])
            message = wording.message.format(character=character)
            if match.lastgroup == "place":
                before = match.start("place")
                position = (position[0], before + (before < position[1]))
            text.report((*position, 1), message, wording.help.format(context=start_line))
            return
    text.report((line, column, 1), f"this is not valid YAML: {error.problem or error.context}")


def find_code_without_block(lines: list[str], line: int) -> tuple[int, int] | None:
    """Return the first line of the Python code around `line` that is below a key without a ``|``,
    if there is such code.
    """
    depth = indentation(lines[line - 1]) if line <= len(lines) else 0
    for above in range(min(line, len(lines)) - 1, 0, -1):
        text = lines[above - 1]
        if not text.strip() or indentation(text) >= depth:
            continue
        begins_here = OPENS_VALUE.search(text) and PYTHON_LINE.match(lines[above])
        if begins_here and not PYTHON_LINE.match(text):
            return above + 1, indentation(lines[above]) + 1
        depth = indentation(text)
    return None


def find_code_outside_block(lines: list[str], line: int) -> tuple[int, int] | None:
    """Return the first line of the code below the last ``|`` above `line`, if it is not indented
    more than the key of the ``|``.
    """
    for above in range(min(line, len(lines)) - 1, 0, -1):
        key = lines[above - 1]
        if OPENS_BLOCK.search(key):
            depth = indentation(lines[above])
            key_depth = len(key) - len(key.lstrip(" -"))
            is_outside = PYTHON_LINE.match(lines[above]) and depth <= key_depth
            return (above + 1, depth + 1) if is_outside else None
    return None


def find_open_quote(lines: list[str], line: int) -> tuple[int, int] | None:
    """Return the position of the last quote above a line that is not closed on its own line,
    provided that the next quote of the same kind is in the given line.
    """
    for above in range(min(line, len(lines)) - 1, 0, -1):
        if opened := OPENS_QUOTE.match(lines[above - 1]):
            quote = opened["quote"]
            is_next = quote in lines[line - 1] and quote not in "".join(lines[above : line - 1])
            return (above, opened.start("quote") + 1) if is_next else None
    return None


def find_comment_in_block(lines: list[str], line: int) -> tuple[int, int] | None:
    """Return the position of a comment directly above a line, if the comment ends a block because
    it is indented less than the block.
    """
    if not 2 < line <= len(lines) or not lines[line - 2].lstrip().startswith("#"):
        return None
    comment = indentation(lines[line - 2])
    least = min(indentation(lines[line - 3]), indentation(lines[line - 1]))
    for text in reversed(lines[: line - 2]):
        if OPENS_BLOCK.search(text) and indentation(text) < least:
            return (line - 1, comment + 1) if comment < least else None
        if text.strip():
            least = min(least, indentation(text))
    return None


def find_dash_without_space(lines: list[str], line: int) -> tuple[int, int] | None:
    """Return the position of the ``-`` of a list entry, on a line or the one above, if no space
    separates it from its key.
    """
    for number in (line, line - 1):
        text = lines[number - 1] if 0 < number <= len(lines) else ""
        if re.match(r"\s*-\w+:(\s|$)", text):
            return number, indentation(text) + 1
    return None


def indentation(line: str) -> int:
    """The number of blank characters before the text of a line."""
    return len(line) - len(line.lstrip())


def find_above(pattern: str) -> Callable[[list[str], int], tuple[int, int] | None]:
    """Return a function for the position of the group ``place`` of a pattern in the line above a
    line; the pattern may go on into the line itself.
    """

    def find_place(lines: list[str], line: int) -> tuple[int, int] | None:
        above = lines[line - 2 : line] if line > 1 else []
        match = re.match(pattern, "\n".join(above))
        return (line - 1, match.start("place") + 1) if match else None

    return find_place


LINES_ABOVE = (
    (
        find_code_without_block,
        "this is code, but keys or a list are expected",
        "begin it as a block: put a '|' after the ':' of the line above",
    ),
    (
        find_code_outside_block,
        "this code is outside the block above, as it is not indented more than its key",
        "indent all of the code more than the key",
    ),
    (
        find_comment_in_block,
        "this comment ends the text or code above, as it is indented less",
        "indent the comment like the lines around it",
    ),
    (find_open_quote, "this quote is never closed", "close it at the end of the text"),
    (
        find_above(r"\s*(?:- )?[\w-]+(?P<place>:)\w"),
        "a ':' without a space after it",
        "put a space after the ':'",
    ),
    (
        find_above(r"( *)- [\w-]+(?P<place> )[^\s:][^:\n]*\n\1 +[\w-]+:"),
        "a key without a ':' after it",
        "put a ':' before the space",
    ),
    (find_dash_without_space, "a '-' without a space after it", "put a space after the '-'"),
)
"""Mistakes that the parser notices on a later line: function for the position, message, help."""
