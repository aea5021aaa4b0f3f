"""Our signs on a stream that has only ASCII."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import gradcheck
from gradcheck.support.ascii_fallback import HANDLER, SIGNS

REPORTS = Path(gradcheck.__file__).parent / "report"


def shown(text: str, encoding: str) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors=HANDLER)
    stream.write(text)
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_our_signs_are_written_in_ascii_and_the_rest_escaped() -> None:
    assert shown("2 ± 1e-12  ◀ worst … 日", "ascii") == "2 +- 1e-12  < worst ... \\u65e5"


def test_what_a_stream_has_it_shows() -> None:
    assert shown("2 ± 1 ◀", "utf-8") == "2 ± 1 ◀"
    assert shown("2 ± 1 ◀", "latin-1") == "2 ± 1 <"


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*.py")), ids=lambda path: path.name)
def test_every_sign_of_the_reports_has_its_letters(path: Path) -> None:
    strings = re.findall(r'"[^"\n]*"', path.read_text(encoding="utf-8"))
    used = {character for text in strings for character in text if not character.isascii()}
    assert used <= SIGNS.keys()
