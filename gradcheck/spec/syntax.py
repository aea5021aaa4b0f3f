"""Syntax errors of YAML in plain English, with advice for common ones."""

from __future__ import annotations

import re
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
            "write it on a separate line", r"\0[{\[][^'\"]*\s(?P<place>#)", at_context=True),
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
            "indent code, so that it belongs to the key above; write ': ' in place of '='",
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
            "begin it on a separate line, without the ','",
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


OPENS_BLOCK = re.compile(r": +[|>][-+\d]*\s*(#.*)?$")


def report_syntax_error(error: yaml.MarkedYAMLError, text: SpecText) -> None:
    """Report a syntax error at its position."""
    line, column = place_of(error.problem_mark or error.context_mark)
    start_line, start_column = place_of(error.context_mark)
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


def indentation(line: str) -> int:
    """The number of blank characters before the text of a line."""
    return len(line) - len(line.lstrip())
