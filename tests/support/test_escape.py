"""What others wrote is shown as it stands, but for what steers a terminal, hides, overprints, or commands a runner."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.support.escape import MOST_MARKS, WithoutCommands, display_width, escape, is_mark, one_line, safe

STEERING = ["\x1b[2J", "\x07", "\u202e", "\x9b31m", "\r", "\u2028", "\ud800", "\u200b", "\u00ad", "\ufeff"]
# The blank ones of the Unicode Character Database (Default_Ignorable_Code_Point), and Braille without a dot.
BLANK = ["\u3164", "\u115f", "\u1160", "\uffa0", "\u2800", "\u034f", "\u17b4", "\ufe0f", "\U000e0100"]


@pytest.mark.parametrize("hostile", [*STEERING, *BLANK])
def test_what_steers_or_hides_is_shown_as_its_escape(hostile):
    shown = escape(f"a{hostile}b")
    assert hostile not in shown
    assert shown == f"a{''.join(c if c in '[2J31m' else ascii(c)[1:-1] for c in hostile)}b"


@pytest.mark.parametrize(
    "usual", ["plain", "grün", "日本 語", "e\u0301", "שָּׁ֑", "ệ".encode().decode(), "नि", "ที่", "◀ × ·", "😀"]
)
def test_what_people_write_stays_as_it_is(usual):
    assert escape(usual) == usual
    assert escape(unicodedata.normalize("NFD", usual)) == unicodedata.normalize("NFD", usual)


def test_marks_stacked_on_one_character_end():
    shown = escape("a" + "\u0336" * 50 + "b")
    assert sum(map(is_mark, shown)) == MOST_MARKS
    assert shown.endswith("\\u0336b")


def test_a_mark_with_nothing_below_it_does_not_reach_what_stands_before():
    assert safe("\u0301a\n\u20ddb") == "\\u0301a\n\\u20ddb"


@given(st.text())
def test_nothing_shown_can_steer_hide_or_overprint(text):
    for shown in (escape(text), one_line(text), *safe(text).split("\n")):
        assert shown.isprintable()
        assert not set(BLANK) & set(shown)
        assert not is_mark(shown[:1] or "a")
        assert escape(shown) == shown


@pytest.mark.parametrize(("text", "columns"), [("ab", 2), ("中a", 3), ("e\u0301", 1), ("नि", 2), ("a\u20dd", 1)])
def test_columns(text, columns):
    assert display_width(text) == columns


# ------------------------------------------------------------------------------------- workflow commands
def written(*pieces: str) -> str:
    """What reaches the log when `pieces` are written one after the other."""
    stream = io.StringIO()
    log = WithoutCommands(stream)
    for piece in pieces:
        log.write(piece)
    return stream.getvalue()


def is_command(line: str) -> bool:
    """As the runner of GitHub decides it (actions/runner, ActionCommand.cs: TryParseV2 and TryParse)."""
    return line.lstrip().startswith("::") or "##[" in line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::error file=a::b", ":\\x3aerror file=a::b"),
        ("  \t::add-mask::x", "  \t:\\x3aadd-mask::x"),
        ("a ##[add-mask]x", "a ##\\x5badd-mask]x"),
        ("FAIL a ::error::x", "FAIL a ::error::x"),
        ("x[::2] # a[0]", "x[::2] # a[0]"),
    ],
)
def test_no_line_is_a_command_and_the_others_stay_as_they_are(line, shown):
    assert written(f"{line}\n") == f"{shown}\n"


SIGNS = [":", "::", "#", "##", "[", "]", " ", "\n", "\r", "error", "a", "\x1b[1m"]


@given(st.lists(st.sampled_from(SIGNS), max_size=12))
def test_a_command_written_in_pieces_is_none_either(pieces):
    log = written(*pieces)
    assert not any(map(is_command, log.splitlines()))
    assert log == written("".join(pieces))


def test_the_stream_is_otherwise_the_one_it_was():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    log = WithoutCommands(stream)
    print("::warning::é", "b", file=log, flush=True)
    log.writelines(["##", "[x\n"])
    log.flush()
    assert log.encoding == "utf-8"
    assert stream.buffer.getvalue().decode() == ":\\x3awarning::é b\n##\\x5bx\n"
