"""How a mistake is shown."""

from __future__ import annotations

import pytest

from gradcheck.spec.diagnostic import Diagnostic, SpecError
from gradcheck.support.escape import escape


def test_place_message_excerpt_caret_and_help():
    shown = Diagnostic("a.grad.yaml", 12, 5, 4, "unknown key 'inti'", "did you mean 'init'?", "    inti: 1").render()
    assert shown == (
        "a.grad.yaml:12:5: error: unknown key 'inti'\n"
        "   12 |     inti: 1\n"
        "      |     ^^^^\n"
        "      help: did you mean 'init'?"
    )


def test_a_mistake_of_the_whole_file_has_no_excerpt():
    assert Diagnostic("a.grad.yaml", 0, 0, 0, "there is no such file").render() == (
        "a.grad.yaml: error: there is no such file"
    )


def test_colour_only_when_asked_for():
    one = Diagnostic("a", 1, 1, 1, "m", "h", "x")
    assert "\x1b" not in one.render()
    assert "\x1b[31m" in one.render(color=True)


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x07", "\u202e", "\x9b31m", "\r", "\u2028", "\u3164"])
def test_nothing_of_the_file_reaches_the_terminal_raw(hostile):
    text = f"a{hostile}b"
    shown = Diagnostic(text, 1, 3, 1, text, text, text).render()
    assert hostile not in shown
    assert escape(text).isprintable()


@pytest.mark.parametrize(
    ("line", "column", "offset"),
    [("a: b", 4, 3), ("中文: b", 5, 6), ("\ta: b", 5, 4), ("\x1ba: b", 5, 7), ("e\u0301: b", 5, 3)],
)
def test_the_caret_stands_below_the_place_whatever_is_left_of_it(line, column, offset):
    caret = Diagnostic("a", 1, column, 1, "m", "", line).render().split("\n")[2]
    assert caret == "      | " + " " * offset + "^"


def test_a_long_line_is_cut_around_the_place():
    shown = Diagnostic("a", 1, 5001, 3, "m", "", "x" * 5000 + "bad" + "y" * 5000).render().split("\n")
    assert len(shown[1]) < 140
    start = shown[2].index("^")
    assert shown[1][start : start + 3] == "bad"


def test_a_spec_error_has_its_diagnostics_in_order():
    error = SpecError([Diagnostic("b", 1, 1, 1, "3"), Diagnostic("a", 2, 1, 1, "2"), Diagnostic("a", 1, 9, 1, "1")])
    assert [one.message for one in error.diagnostics] == ["1", "2", "3"]
    assert str(error).startswith("a:1:9: error: 1")
