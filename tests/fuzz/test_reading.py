"""A short run of the fuzzer: reading any file ends soon, in scenarios or in mistakes that can be shown."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.documents import document
from tests.fuzz.reading import check


@settings(deadline=5000)
@given(st.integers(0, 2**63))
def test_files_of_nearly_the_right_structure(seed):
    check(document(random.Random(seed)))


def test_the_inputs_are_neither_all_refused_nor_all_accepted():
    outcomes = [check(document(random.Random(seed))) for seed in range(300)]
    assert 30 < outcomes.count("accepted") < 270


def test_a_seed_always_gives_the_same_file():
    assert document(random.Random(5)) == document(random.Random(5))


@pytest.mark.parametrize("seed", [0, 1234])
def test_what_is_refused_is_refused_alike_each_time(seed):
    raw = document(random.Random(seed))
    assert check(raw) == check(raw)
