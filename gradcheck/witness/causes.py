"""The cause of a wrong gradient, with the line of the forward whose share of it is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from gradcheck.backends.base import Array, Spot
from gradcheck.numeric.arrays import wide
from gradcheck.result import Diagnosis
from gradcheck.witness.edges import EXACT_TO, Cause, Claim, Edge
from gradcheck.witness.lines import NOWHERE, Place, place_of
from gradcheck.witness.search import SCREEN, found_causes
from gradcheck.witness.tape import Tape

LEAST_NUMBERS, LEAST_DIGITS = 3, 12
"""Independent numbers of a wrong gradient, and digits in all of them that are no rounding, below which it is not
explained: any share fits one number, and of a million pairs of candidates one fits 6 digits by chance."""

ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=(?!=)\s*")
"""The beginning of a line that gives values names."""

LONGEST = 40
"""Characters of an expression that a sentence quotes."""


def explain(
    tape: Tape,
    claims: Sequence[tuple[Sequence[Array | None], Sequence[Array | None]]],
    names: Sequence[str],
    rounding: Sequence[Array | None],
    walks: float = np.inf,
) -> list[Diagnosis]:
    """The mistakes that reproduce a wrong gradient, each with its line; none if no single one, or pair, does.

    Args:
        tape: the call, recorded with lines.
        claims: what is claimed at the same point for three or more independent random draws: cotangents per output,
            and gradients per input; None counts as zero.
        names: of the inputs.
        rounding: per input, how far each element of claim and tape may be apart by rounding; None for not at all.
        walks: how many walks over the tape the search may take.
    """
    cotangents = [draw for draw, _ in claims]
    truth = [tape.gradient(draw) for draw in cotangents]
    errors = [
        [-t if c is None else wide(c) - t for c, t in zip(claimed, right, strict=True)]
        for (_, claimed), right in zip(claims, truth, strict=True)
    ]
    bars = [0.0 if r is None else float(np.max(r, initial=0)) for r in rounding]
    largest = [max(float(abs(e[k]).max(initial=0)) for e in errors) for k in range(len(names))]
    if not all(np.isfinite(largest)):
        return []
    draws = min(len(cotangents), sum(np.size(u) for u in cotangents[0] if u is not None))
    wrong = []
    for k, (error, bar, size) in enumerate(zip(errors[0], bars, largest, strict=True)):
        digits = np.log10(np.maximum(abs(error) / (bar + EXACT_TO * size or 1.0), 1.0)).sum() * draws
        if error.size * draws >= LEAST_NUMBERS and digits >= LEAST_DIGITS:
            wrong.append(k)
    if not wrong:
        return []
    with np.errstate(all="ignore"):
        found = found_causes(tape, Claim(cotangents, errors, bars, wrong), walks)
    return [d for cause, alike in chosen(found, wrong) for d in said(tape, cause, alike, names)]


def chosen(causes: Sequence[Cause], wrong: Sequence[int]) -> list[tuple[Cause, list[Cause]]]:
    """The fewest and simplest causes that explain the most inputs, each with those that say the same."""
    left, found = set(wrong), []
    while useful := [cause for cause in causes if cause.explains & left]:
        best = min(useful, key=lambda c: (-len(c.explains & left), c.spoils, c.cost, c.place))
        same = (best.explains, best.mistake.code, best.factor)
        alike = [c for c in useful if (c.explains, c.mistake.code, c.factor) == same]
        found.append((best, alike))
        left -= best.explains
    return found


# --------------------------------------------------------------------------- in words
def said(tape: Tape, cause: Cause, alike: Sequence[Cause], names: Sequence[str]) -> list[Diagnosis]:
    """A cause as reports print it; of a pair, both."""
    step, edge = cause.step, cause.mistake.edge
    place = NOWHERE if step.spot is None else place_of(step.spot)
    code, says, detail = sentence(cause)
    says = says.format(
        out=called(tape, step.first, names),
        op=quoted(place, step.name),
        own=called(tape, edge.number, names, step.spot),
        other=other_operand(tape, edge, names),
    )
    says = re.sub(r"#(\d+)", lambda m: called(tape, int(m[1]), names), says)
    says += ", each time" * cause.each_time
    same = sorted({place_of(c.step.spot).line for c in alike if c.step.spot is not None} - {place.line})
    proof = [f"reproduces backward to {max(cause.residual, 1e-16):.0e}"]
    proof += [f"the same as line {', '.join(map(str, same[:3]))}"] if same else []
    found = Diagnosis(
        code=code,
        text=f"backward {says}",
        inputs=tuple(names[k] for k in sorted(cause.explains)),
        line=f"{place.file}:{place.line}" if place.line else "",
        source_line=place.source,
        column=place.column,
        end_column=place.end_column,
        operation=step.name,
        detail=f"{detail}{', together with the next' if cause.second else ''} ({'; '.join(proof)})",
    )
    if cause.second is None:
        return [found]
    second = replace(cause.second, explains=cause.explains, residual=cause.residual)
    return [found, *said(tape, second, (), names)]


def sentence(cause: Cause) -> tuple[str, str, str]:
    """Code, what backward does, and what to say below the line."""
    mistake, factor, edge = cause.mistake, cause.factor, cause.mistake.edge
    if mistake.ordinal is not None:
        times = "" if factor == 1 else f", times {number(factor)}"
        return mistake.code, mistake.says + times, f"the rule of {edge.step.name} is wrong"
    if edge.position == Edge.INCOMING:
        incoming = f"the incoming gradient of out[{edge.output}]"
        if factor == 0:
            return "GC117", f"does not use {incoming}", f"the share of out[{edge.output}] is missing: factor 0"
        times = "with the wrong sign" if factor == -1 else f"{number(factor)} times"
        return "GC118", f"takes {incoming} {times}", f"the share of out[{edge.output}] is taken {times}"
    several = edge.position >= 0 and sum(e >= 0 for e in edge.step.edges) > 1
    through = "{own} in {out}" if several else "{out}"
    if factor == 0:
        says = f"ignores how the output depends on {through}, as if it were a constant"
        return "GC117", says, "its share of the gradient is missing: factor 0"
    if factor == -1:
        return "GC118", f"has the wrong sign where the gradient flows through {through}", "its share has the wrong sign"
    lengths = {n for v in (edge.right, *edge.step.values) for n in (*v.shape, v.size) if n > 4}
    counted = any(abs(factor * n - 1) < SCREEN or abs(factor / n - 1) < SCREEN for n in lengths)
    detail = f"its share is {number(factor)} times what it should be"
    code, why = ("GC112", ": the number of elements there, as of a mean for a sum") if counted else ("GC118", "")
    return code, f"takes {number(factor)} times the gradient that flows through {through}", f"{detail}{why}"


def called(tape: Tape, value: int, names: Sequence[str], within: Spot | None = None) -> str:
    """What the user's code calls a value: the name of an input, of a variable, or the expression.

    A value that the operation at `within` makes of its operand on the way, such as a transpose, goes by the operand.
    """
    if value < len(names):
        return names[value]
    step = tape.maker(value)
    if step is None or step.spot is None:
        return "a value on the way"
    if step.spot == within and len(step.edges) == 1:
        return called(tape, step.edges[0], names, within) + "ᵀ" * (step.name == "transpose")
    place = place_of(step.spot)
    assigned = ASSIGNED.match(place.source)
    if assigned and place.column == assigned.end() and place.end_column >= len(place.source.split("#")[0].rstrip()):
        variables = [name.strip() for name in assigned[1].split(",")]
        if len(variables) == len(step.values):
            return variables[value - step.first]
    return quoted(place, step.name)


def other_operand(tape: Tape, edge: Edge, names: Sequence[str]) -> str:
    """What the user's code calls the other one of two operands."""
    others = [e for k, e in enumerate(edge.step.edges) if k != edge.position and e >= 0]
    if others:
        return called(tape, others[0], names, edge.step.spot)
    constant = edge.other if edge.position >= 0 else None
    return number(float(np.real(constant))) if constant is not None and not np.ndim(constant) else "that is constant"


def quoted(place: Place, name: str) -> str:
    """An expression of the source, or the name of the operation where it is not known or too long."""
    text = place.source[place.column : place.end_column]
    return f"`{text}`" if 0 < len(text) <= LONGEST else name


def number(c: float) -> str:
    """A factor in words: 2, 1/2, −6/5, 0.314159."""
    fraction = Fraction(c).limit_denominator(1000)
    near = abs(float(fraction) - c) <= 1e-9 * abs(c)
    return (str(fraction) if near else f"{c:.6g}").replace("-", "−")
