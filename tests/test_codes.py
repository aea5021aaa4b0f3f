"""The codes of diagnoses: every one that the package gives is explained."""

from __future__ import annotations

import re
from pathlib import Path

import gradcheck
from gradcheck.codes import CODES, explained

PACKAGE = Path(gradcheck.__file__).parent
USED = {code for path in PACKAGE.rglob("*.py") for code in re.findall(r"\bGC\d+\b", path.read_text(encoding="utf-8"))}


def test_every_code_in_the_package_is_explained():
    assert set(CODES) == USED


def test_an_explanation_has_a_cause_how_to_tell_it_a_fix_and_an_example():
    for code, row in CODES.items():
        assert all(row), code
        assert explained(code)[0] == f"{code}: {row.title}"


def test_an_explanation_is_of_no_framework_alone():
    for code, row in CODES.items():
        text = " ".join(row)
        assert not re.search(r"paddle\.|torch\.", text), code
        # a word of Paddle's has torch's beside it
        if "stop_gradient" in text:
            assert "torch" in text, code
        if "PyLayer" in text:
            assert "Function" in text, code
