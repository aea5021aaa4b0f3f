"""The sentences of INCONCLUSIVE and KINK verdicts: every possible reason, with its text."""

from __future__ import annotations

from enum import Enum


class VerdictReason(Enum):
    """A reason; its value is the template of its sentence."""

    EDGE = (
        "the outputs are not finite at points next to the inputs, which lie at the edge of the "
        "function's domain: there is no derivative to compare with{raised}. Choose inputs inside "
        "of it"
    )
    NO_SLOPE = (
        "the operations' own derivatives give no usable slope at points next to the inputs, "
        "although the outputs are finite there{raised}: the slopes are not finite, or none of "
        "their digits is known. Choose other inputs"
    )
    NO_STEP = (
        "no two step sizes give the same derivative here{raised}: the function changes its shape "
        "within the smallest step (a step, a kink or a pole close by), or is noisier than any "
        "change. Choose other inputs"
    )
    UNSEEN = (
        "nothing was verified: the derivative here is below the rounding errors of the forward "
        "(saturated, flat or noisy){raised}. Choose inputs at which the outputs respond, or a "
        "forward that keeps more digits (expm1, log1p, float64)"
    )
    PIECES_UNRECORDED = (
        "pieces of the function meet at these inputs (a kink, a tie or a jump), and {unrecorded}, "
        "so it is unknown which gradients are right there: choose inputs next to "
        "them, or operations that can be recorded"
    )
    SEARCH = (
        "comparisons select the outputs (a search), so the outputs change in steps, which hide too "
        "much of the derivative: let the search run longer, or choose other inputs"
    )
    HIDDEN_KINK = (
        "backward gives {claim:.6g} where the differences give {value:.6g} ± {bar:.1g}, and a kink"
        " of {gap:.1g} would not have shown there: choose other inputs"
    )
    CONTRADICTION = (
        "the differences give {value:.6g} ± {bar:.1g} where backward gives {claim:.6g}, and the "
        "operations' own derivatives agree with backward{at_kink}: the function changes its shape "
        "within the smallest step, its forward is noisier than its operations explain, or an "
        "operation has a wrong derivative. Choose other inputs"
    )
    NOT_FINITE = "{place} is not finite here: {advice}"
    NOTHING = "nothing was checked: {why}"
    KINK = "not differentiable at {places}; the gradient lies between the one-sided derivatives"
    KINK_ALONG_DIRECTIONS = (
        "not differentiable at {places}; along random directions the gradient lies between the "
        "one-sided derivatives (too many pieces meet to compare every entry separately)"
    )
    JUMP = (
        "the function jumps at {places}; "
        "the gradient lies between the slopes of the pieces that meet there"
    )
    UNBOUNDED = "the slope grows without bound at {places}, as backward says"

    def sentence(self, **facts: object) -> str:
        """The sentence, with these facts filled in."""
        return self.value.format(**facts)
