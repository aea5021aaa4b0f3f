"""What counts as the expected value, and what is said when it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcheck.case.values import message_matches, mismatch
from gradcheck.spec.model import Regex


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (None, None),
        (True, True),
        (np.array(True), True),
        ("text", "text"),
        (3, 3),
        (np.float64(0.1) * 3, 0.3),
        (np.array([[1.0, 2.0]]), [[1.0, 2.0]]),
        (np.float32(2.7182817), 2.718281828),
        (np.array([np.nan, np.inf]), [float("nan"), float("inf")]),
        ([2, 3], [2, 3]),
        (np.array([], dtype=np.float64), []),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_equal(got: Any, expected: Any) -> None:
    assert mismatch(got, expected, None) == ""


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (None, 1.0, "got None"),
        (1.0, None, "expected None"),
        (1, True, "expected True, got 1"),
        (True, False, "expected False, got True"),
        ("a", "b", "expected 'b', got 'a'"),
        (np.array([1.0, 2.0]), [1.0, 2.5], "expected 2.5 at [1], got 2.0"),
        (np.array([1.0, 2.0]), 1.0, "expected 1.0, got [1.0, 2.0]"),
        ([3], 3, "expected 3, got [3]"),
        (3, [3], "expected [3], got 3"),
        (np.array([1.0, 2.0]), [1.0], "expected shape [1], got [2]: [1.0, 2.0]"),
        (np.float64(1.0) + 1e-9, 1.0, "1 of 1 differ"),
        (np.array([0.0, np.nan]), [0.0, 0.0], "got nan"),
        (0.0, 1e-300, "expected 1e-300"),
        (["a", "b"], ["a", "c"], "expected ['a', 'c'], got ['a', 'b']"),
        (np.array([1.0, 2.0]), (1.0, "a"), "expected (1.0, 'a'), got [1.0, 2.0]"),
        (np.array([1.0, 2.0]), [[1.0], [2.0, 3.0]], "expected [[1.0], [2.0, 3.0]], got ndarray"),
    ],
)
def test_different(got: Any, expected: Any, said: str) -> None:
    assert said in mismatch(got, expected, None)


def test_the_tolerance_is_relative_and_of_the_dtype() -> None:
    assert mismatch(np.float32(1e-20) * np.float32(1.000001), 1e-20, None) == ""
    assert mismatch(1.001, 1.0, 1e-2) == ""


def test_messages_match_by_substring_and_regular_expressions_only_where_asked() -> None:
    assert message_matches("a.c", "xa.cx")
    assert not message_matches("a.c", "abc")
    assert message_matches(Regex(re="a.c"), "xabcx")
