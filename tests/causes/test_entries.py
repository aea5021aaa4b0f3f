"""Halving: the single elements behind what a whole shows."""

from __future__ import annotations

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from gradcheck.causes.entries import find_by_halving


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=6))))
def test_every_element_that_shows_is_found(case: tuple[int, set[int]]) -> None:
    size, wanted = case
    asked = []

    def shows(places: range) -> bool:
        asked.append(places)
        return any(i in places for i in wanted)

    assert set(find_by_halving(range(size), shows)) == wanted
    assert len(asked) <= 1 + 2 * len(wanted) * size.bit_length()


@given(st.integers(1, 100), st.integers(1, 5))
def test_they_are_found_one_by_one(size: int, most: int) -> None:
    assert list(islice(find_by_halving(range(size), lambda places: True), most)) == list(range(min(size, most)))


def test_what_only_some_together_show_is_not_pinned_to_one() -> None:
    assert list(find_by_halving(range(8), lambda places: len(places) > 1)) == []
