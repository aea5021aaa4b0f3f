"""A wrong backward of a spectrum, whose values are complex on the way, is judged without a warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import gradcheck
from gradcheck.result import Status


def power(x: Any) -> Any:
    return (np.abs(np.fft.rfft(x)) ** 2).sum()


def without_the_highest_frequency_once(x: Any, g: Any) -> Any:
    """Of an even number of samples, the first and the last frequency occur once, the others twice."""
    weights = np.full(x.size // 2 + 1, 0.5)
    weights[0] = 1.0
    return x.size * g * np.fft.irfft(2 * weights * np.fft.rfft(x), x.size)


def test_it_is_wrong_where_the_number_of_samples_is_even() -> None:
    random = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        even = gradcheck.check(power, random.standard_normal(8), backward=without_the_highest_frequency_once)
        odd = gradcheck.check(power, random.standard_normal(7), backward=without_the_highest_frequency_once)
    assert (even.verdict, odd.verdict) == (Status.FAIL, Status.PASS)
    assert not [mark for mark in even.marks if "diagnosis stopped" in mark]
