"""Regular expressions in a spec: compiled where they stand in the file, and only such as compile at once.

They are searched for while a case runs, within its time limit: how long a search takes is the case's own affair.
"""

from __future__ import annotations

import re

from gradcheck.spec.expectations import MAX_PATTERN
from gradcheck.spec.text import SpecText
from gradcheck.spec.tree import Node

MAX_GROUPS = 100
"""Parentheses in one pattern: `re` compiles by recursion, which at about 250 ends where a case has less stack."""
MAX_PATTERNS = 100_000
"""Characters of all patterns of a file: at most 2 s, at 20 ms for the slowest of 1,000 (``(?i)`` and many ranges)."""

# `re` makes a table of 64 kB for a range that ends beyond ASCII, and with (?i) looks at each character in it: a
# pattern of 1,000 characters takes 0.4 s, or a minute.
_WIDE_RANGE = re.compile(r"-(?:[^\x00-\x7f]|\\[uUN])")


def check_pattern(pattern: Node, text: SpecText) -> None:
    """Report a regular expression that is none, or would take long to compile."""
    if id(pattern) in text.patterns or not isinstance(pattern.value, str) or len(pattern.value) > MAX_PATTERN:
        return  # seen before through `extends`, or the model reports it
    source = pattern.value
    before = sum(text.patterns.values())
    if before > MAX_PATTERNS:
        return  # reported at the first that was too much
    text.patterns[id(pattern)] = len(source)
    message = help = ""
    if before + len(source) > MAX_PATTERNS:
        message = f"the regular expressions in this file are longer than {MAX_PATTERNS:,} characters together"
        help = "split the file by topic"
    elif source.count("(") > MAX_GROUPS:
        message, help = f"a regular expression with more than {MAX_GROUPS} groups", "look for less of the message"
    elif "[" in source and _WIDE_RANGE.search(source):
        message = "a range in a regular expression must end with an ASCII character"
        help = "write the characters one by one, such as [αβγ], or '.'"
    else:
        try:
            re.compile(source)
        except (re.error, OverflowError, RecursionError) as error:
            message = f"not a regular expression: {error}"
            help = "put a backslash before (, ), [, ], ., *, +, ? where they stand for themselves"
    if message:
        text.report(*pattern.place, message, help)
