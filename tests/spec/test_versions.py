"""Ranges of versions."""

from __future__ import annotations

import pytest

from gradcheck.spec.versions import is_range, within


@pytest.mark.parametrize("text", [">=3.0,<3.3", "==3.0.0", "==3.2.*", "~=3.1", "!=3.1.1", "<3", " >=3.0 , <4 "])
def test_ranges_are_those_of_pep_440(text):
    assert is_range(text)


@pytest.mark.parametrize("text", ["", " ", "3.0", "paddle>=3", ">=x", "===3.0", ">=3.0 <3.3"])
def test_nothing_else_is_a_range(text):
    assert not is_range(text)


@pytest.mark.parametrize(
    ("version", "text", "holds"),
    [
        ("3.0.0", ">=3.0,<3.3", True),
        ("3.3.0", ">=3.0,<3.3", False),
        ("3.2.2+cpu", ">=3.0,<3.3", True),
        ("3.3.0rc1", ">=3.2", True),
        ("2.6.2", None, True),
        ("", None, True),
        ("", "<3", False),
    ],
)
def test_a_version_is_within_a_range_or_not(version, text, holds):
    assert within(version, text) is holds
