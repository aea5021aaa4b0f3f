"""Halving: the single elements behind what a whole shows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.causes.wrong_entries import halved


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=6))))
def test_every_element_that_shows_is_found(case: tuple[int, set[int]]) -> None:
    size, wanted = case
    asked = []

    def shows(mask: np.ndarray) -> bool:
        asked.append(mask)
        return any(mask[i] for i in wanted)

    assert set(halved(np, size, shows, size)) == wanted
    assert len(asked) <= 1 + 2 * len(wanted) * size.bit_length()


@given(st.integers(1, 100), st.integers(1, 5))
def test_no_more_are_found_than_asked_for(size: int, most: int) -> None:
    assert list(halved(np, size, lambda mask: True, most)) == list(range(min(size, most)))


def test_what_only_some_together_show_is_not_pinned_to_one() -> None:
    assert list(halved(np, 8, lambda mask: bool(mask.sum() > 1), 8)) == []
