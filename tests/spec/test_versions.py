"""Ranges of versions, and what two of them share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.spec.versions import is_range, shared, within


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


VERSIONS = [f"{major}.{minor}.{patch}" for major in range(5) for minor in range(4) for patch in range(3)]
comparison = st.builds(
    "{}{}".format, st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "~="]), st.sampled_from(VERSIONS)
)
prefix = st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), st.sampled_from(["1", "1.2", "3.0"]))
ranges = st.lists(comparison | prefix, min_size=1, max_size=3).map(",".join) | st.none()


@given(ranges, ranges)
def test_two_ranges_share_a_version_whenever_any_release_is_in_both(one, other):
    common = shared(one, other)
    assert not common or (within(common, one) and within(common, other))
    if any(within(version, one) and within(version, other) for version in VERSIONS):
        assert common
