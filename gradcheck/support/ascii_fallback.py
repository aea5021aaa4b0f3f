"""Replacements for gradcheck's non-ASCII characters on terminals and in files that have only
ASCII.
"""

from __future__ import annotations

import codecs

SIGNS = {
    "·": "-", "±": "+-", "−": "-", "–": "-", "—": "-", "×": "x", "≤": "<=", "→": "->", "…": "...",
    "◀": "<", "▶": ">", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "“": '"',
    "”": '"', "‘": "'", "’": "'", "∂": "d", "Σ": "sum", "ᵀ": "^T", "η": "eta", "²": "^2",
    "½": "1/2",
}  # fmt: skip
"""A character in gradcheck's texts → its form in ASCII."""
IN_ASCII = {ord(sign): text for sign, text in SIGNS.items()}
HANDLER = "gradcheck"
"""The name of `in_ascii` among Python's error handlers, for ``errors=`` of a stream."""


def in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the text that a stream writes for characters that it cannot encode: their ASCII form,
    or an escape.
    """
    assert isinstance(error, UnicodeEncodeError)  # registered only for output streams
    text = error.object[error.start : error.end].translate(IN_ASCII)
    return text.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error(HANDLER, in_ascii)
