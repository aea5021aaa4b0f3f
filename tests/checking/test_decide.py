"""The decision on one look, row by row of the table, and what holds for every look."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcheck.checking.probe import BackwardEstimate, DifferenceEstimate, Ruling, TapeEstimate, decide

NOT_HEARD = None
SHARP = DifferenceEstimate(2.0, 1e-6, 2.0, gap=1e-6)
"""Differences with power, of a derivative of 2."""
COARSE = DifferenceEstimate(2.0, 0.5, 2.0, gap=0.5)
"""Differences that give about 2, but would not show an error of 1 %."""
FAINT = DifferenceEstimate(0.0, 1e3, 2.0, gap=1e3)
NOTHING = DifferenceEstimate(0.0, math.inf, 0.0)
KINK = DifferenceEstimate(0.5, 1e-6, 1.0, gap=1.0)
"""Differences beside which a kink of 1 would not show."""


def claim(value: float) -> BackwardEstimate:
    return BackwardEstimate(value, abs(value))


def agrees(value: float) -> TapeEstimate:
    return TapeEstimate(value, rejects=False)


def rejects(value: float) -> TapeEstimate:
    """A tape that says this, and that the claim is something else in some entry."""
    return TapeEstimate(value, rejects=True)


def unsure(value: float, bar: float) -> TapeEstimate:
    """A tape that says this, with so much rounding, within which the claim agrees."""
    return TapeEstimate(value, rejects=False, bar=bar)


TABLE: list[tuple[str, BackwardEstimate, DifferenceEstimate, TapeEstimate | None, Ruling]] = [
    ("inside, with power; agrees", claim(2.0), SHARP, agrees(2.0), Ruling.PASS),
    ("inside, with power; not heard", claim(2.0), SHARP, NOT_HEARD, Ruling.PASS),
    ("the tape inside; rejects", claim(3.0), SHARP, rejects(2.0), Ruling.FAIL),
    ("the tape inside, with little power; rejects", claim(3.0), COARSE, rejects(2.0), Ruling.FAIL),
    ("both inside, with little power; rejects", claim(2.1), COARSE, rejects(2.0), Ruling.FAIL),
    ("both inside, an entry that the sum hides; rejects", claim(2.0), SHARP, rejects(2.0), Ruling.FAIL),
    ("outside, with power; rejects", claim(3.0), SHARP, rejects(2.0), Ruling.FAIL),
    ("outside, with power, the tape too; rejects", claim(3.0), SHARP, rejects(5.0), Ruling.FAIL),
    ("outside, with power; not heard", claim(3.0), SHARP, NOT_HEARD, Ruling.FAIL),
    ("outside, with power; agrees", claim(3.0), SHARP, agrees(3.0), Ruling.CONTRADICTION),
    ("outside, with power, the tape inside; cannot reject", claim(3.0), SHARP, agrees(2.0), Ruling.FAIL),
    ("outside, with power, the tape unsure; cannot reject", claim(3.0), SHARP, unsure(2.5, 1.0), Ruling.FAIL),
    ("no power; agrees", claim(2.0), FAINT, agrees(2.0), Ruling.BY_TAPE),
    ("little power, inside; agrees", claim(2.1), COARSE, agrees(2.1), Ruling.BY_TAPE),
    ("little power, a little outside; agrees", claim(3.1), COARSE, agrees(3.1), Ruling.BY_TAPE),
    ("nothing known; agrees", claim(2.0), NOTHING, agrees(2.0), Ruling.BY_TAPE),
    ("no power; not heard", claim(2.0), FAINT, NOT_HEARD, Ruling.UNSEEN),
    ("little power, inside; not heard", claim(2.1), COARSE, NOT_HEARD, Ruling.UNSEEN),
    ("nothing known; not heard", claim(2.0), NOTHING, NOT_HEARD, Ruling.UNSEEN),
    # a tape that the differences exclude is no witness against a claim that they hold
    ("inside, with power, the tape outside; rejects", claim(2.0), SHARP, rejects(5.0), Ruling.PASS),
    ("nothing known; rejects", claim(3.0), NOTHING, rejects(2.0), Ruling.FAIL),
    # a kink that would not show
    ("off by less than the sides; not heard", claim(0.2), KINK, NOT_HEARD, Ruling.UNSEEN),
    ("off by less than the sides; agrees", claim(0.2), KINK, agrees(0.2), Ruling.BY_TAPE),
    ("off by more than the sides; not heard", claim(1.6), KINK, NOT_HEARD, Ruling.FAIL),
    # what is off by many bars has shown, whatever the power
    ("far outside, with little power; not heard", claim(50.0), COARSE, NOT_HEARD, Ruling.FAIL),
    ("far outside, with little power; agrees", claim(50.0), COARSE, agrees(50.0), Ruling.CONTRADICTION),
    ("a little outside, with little power; not heard", claim(3.1), COARSE, NOT_HEARD, Ruling.UNSEEN),
    # what is not a number
    ("NaN, with power; not heard", BackwardEstimate(math.nan, math.nan), SHARP, NOT_HEARD, Ruling.FAIL),
    ("inf, with power; not heard", BackwardEstimate(math.inf, math.inf), SHARP, NOT_HEARD, Ruling.FAIL),
    ("inf, with power; rejects", BackwardEstimate(math.inf, math.inf), SHARP, rejects(2.0), Ruling.FAIL),
    ("inside, with power; NaN", claim(2.0), SHARP, rejects(math.nan), Ruling.PASS),
    ("outside, with power; NaN", claim(3.0), SHARP, agrees(math.nan), Ruling.FAIL),
    ("no power; NaN", claim(2.0), FAINT, agrees(math.inf), Ruling.UNSEEN),
]  # fmt: skip
"""The differences; the tape. The claim, what both say, and what follows."""


@pytest.mark.clause(id="V12")
@pytest.mark.parametrize(("said", "heard", "seen", "decision"), [
    pytest.param(said, heard, seen, decision, id=name) for name, said, seen, heard, decision in TABLE
])  # fmt: skip
def test_the_table(
    said: BackwardEstimate, seen: DifferenceEstimate, heard: TapeEstimate | None, decision: Ruling
) -> None:
    assert decide(said, seen, heard) is decision


def test_a_stationary_point_is_seen_beside_the_slopes_nearby() -> None:
    zero = DifferenceEstimate(0.0, 1e-6, 1.0, gap=1e-6)
    assert decide(claim(0.0), zero, NOT_HEARD) is Ruling.PASS
    assert decide(claim(0.1), zero, NOT_HEARD) is Ruling.FAIL
    assert decide(claim(0.0), replace(zero, scale=0.0), NOT_HEARD) is Ruling.UNSEEN


# --------------------------------------------------------------------------- what holds for every look
Look = tuple[BackwardEstimate, DifferenceEstimate, TapeEstimate | None]
SIZES = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def looks(draw: st.DrawFn) -> Look:
    value, said = draw(SIZES), draw(SIZES)
    bar = draw(st.one_of(st.floats(0, 1e7), st.just(0.0), st.just(math.inf)))
    gap = draw(st.one_of(st.floats(0, 1e6), st.just(0.0), st.just(math.inf)))
    size = abs(said) * draw(st.floats(1, 10))
    heard = draw(
        st.one_of(st.none(), st.builds(TapeEstimate, st.one_of(SIZES, st.just(value), st.just(said)), st.booleans()))
    )
    seen = DifferenceEstimate(value, bar, draw(st.floats(0, 1e6)), gap)
    return BackwardEstimate(draw(st.sampled_from([said, value])), size), seen, heard


@given(looks())
def test_what_the_differences_say_never_fails_but_by_the_tape(
    look: Look,
) -> None:
    said, seen, heard = look
    found = decide(replace(said, value=seen.value), seen, heard)
    assert found is not Ruling.CONTRADICTION
    assert found is not Ruling.FAIL or (heard is not None and heard.rejects)


@given(looks())
def test_where_nothing_is_known_only_the_tape_decides(
    look: Look,
) -> None:
    said, seen, heard = look
    found = decide(said, replace(seen, bar=math.inf), heard)
    if heard is None or not math.isfinite(heard.value):
        assert found is Ruling.UNSEEN
    else:
        assert found is (Ruling.FAIL if heard.rejects else Ruling.BY_TAPE)


@given(looks(), st.floats(-1, 1))
def test_a_claim_within_the_bar_never_fails_but_by_the_tape(look: Look, share: float) -> None:
    said, seen, heard = look
    said = replace(said, value=seen.value + share * min(seen.bar, 1e9))
    if seen.holds(said.value) and decide(said, seen, heard) is Ruling.FAIL:
        assert heard is not None
        assert heard.rejects
        assert not seen.excludes(heard.value)


@given(looks())
def test_a_claim_that_the_tape_agrees_with_never_fails(
    look: Look,
) -> None:
    said, seen, _ = look
    assert decide(said, seen, agrees(said.value)) in (Ruling.PASS, Ruling.BY_TAPE, Ruling.CONTRADICTION)


@given(looks())
def test_a_claim_that_is_not_held_never_passes_by_the_differences(
    look: Look,
) -> None:
    said, seen, heard = look
    if decide(said, seen, heard) is Ruling.PASS:
        assert seen.holds(said.value)


@given(looks(), st.floats(1, 1e6))
def test_a_wider_bar_fails_nothing_more(look: Look, factor: float) -> None:
    said, seen, _ = look
    wide = replace(seen, bar=seen.bar * factor)
    assert decide(said, wide, NOT_HEARD) is not Ruling.FAIL or decide(said, seen, NOT_HEARD) is Ruling.FAIL


@given(looks(), st.floats(0, 1e6))
def test_what_is_allowed_beside_the_bar_fails_nothing_more_and_is_no_lack_of_power(look: Look, allowed: float) -> None:
    said, seen, _ = look
    before, after = (decide(said, s, NOT_HEARD) for s in (seen, replace(seen, allowed=allowed)))
    assert after is not Ruling.FAIL or before is Ruling.FAIL
    assert before is not Ruling.PASS or after is Ruling.PASS


@given(looks(), st.integers(-40, 40), st.sampled_from([1, -1]))
def test_units_and_signs_do_not_matter(look: Look, exponent: int, sign: int) -> None:
    said, seen, heard = look
    size = 2.0**exponent
    other = decide(
        BackwardEstimate(sign * size * said.value, size * said.size),
        DifferenceEstimate(sign * size * seen.value, size * seen.bar, size * seen.scale, size * seen.gap),
        None if heard is None else replace(heard, value=sign * size * heard.value),
    )
    assert other is decide(said, seen, heard)
