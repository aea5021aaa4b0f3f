"""The differences of one entry at all steps, for a reader to see how the numerical value came about."""

from __future__ import annotations

from gradcheck.checking.differences import RATIO, USUAL, derivative_of
from gradcheck.checking.point import SUM_OF_OUTPUTS, Entry
from gradcheck.checking.probe import Prober
from gradcheck.result import StepScan


def steps_of(prober: Prober, entry: Entry) -> StepScan | None:
    """The scan of `entry`; None where it is none of the real Jacobian, or where nothing is seen."""
    point = prober.point
    if entry.output == SUM_OF_OUTPUTS or point.complex:
        return None
    scale = float(point.scales[entry.input].reshape(-1)[entry.index])
    direction = point.along_element(entry.input, entry.index, scale)
    line = point.line(direction, point.outputs.unit(entry.output))
    noise = prober.noise(line, whole=True)
    line.extend(USUAL)
    found = derivative_of(line, noise)
    value, bar = float(found.both.value[0]), float(found.both.bar[0])
    if not bar < float("inf") or bool(found.kinked[0]):
        return None
    rows = [(RATIO**k, *(float(sample.change[0]) for sample in line.samples[k])) for k in USUAL]
    named = point.named(entry)
    return StepScan(
        input=named.input,
        index=named.index,
        output=named.output,
        output_index=named.output_index,
        analytic=entry.analytic,
        steps=tuple(h * scale for h, _, _ in rows),
        differences=tuple((ahead - behind) / (2 * h * scale) for h, ahead, behind in rows),
        rounding=tuple(float(noise.reshape(-1)[0]) / (h * scale) for h, _, _ in rows),
        chosen=RATIO ** int(found.step[0]) * scale,
        value=value / scale,
        bar=bar / scale,
    )
