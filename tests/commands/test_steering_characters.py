"""What was given on the command line and steers a terminal is shown as its escape, also in click's own messages."""

from __future__ import annotations

import unicodedata

import pytest

STEERS = ["\u202e", "\u2066", "\x1b[2J", "\x07", "\r", "\n", "\u200b", "\x9b1m"]
CALLS = [
    ("compare", "a", "b", "CHARACTERSc"),
    ("run", "--CHARACTERSopt"),
    ("-CHARACTERS",),
    ("run", "--jobsCHARACTERS", "3"),
    ("run", "--mode", "CHARACTERS"),
    ("explore", "own:Layer", "CHARACTERS=3"),
    ("noCHARACTERSsuch",),
]


@pytest.mark.parametrize("steering", STEERS)
@pytest.mark.parametrize("call", CALLS)
def test_nothing_that_is_given_steers_the_terminal(gradcheck, folder, call, steering):
    done = gradcheck(*(word.replace("CHARACTERS", steering) for word in call))
    assert done.code == 2
    lines = (done.out + done.err).splitlines()
    assert not [c for line in lines for c in line if unicodedata.category(c) in ("Cc", "Cf")]
    errors = [line for line in lines if line.startswith(("Error: ", "gradcheck: "))]
    assert lines[-1:] == errors  # nothing began a line of its own
