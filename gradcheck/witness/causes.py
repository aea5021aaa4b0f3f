"""The cause of a wrong gradient, with the line of the forward whose share of it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcheck.result import Diagnosis
from gradcheck.witness.graph import Array, wide
from gradcheck.witness.lines import Place, place_of
from gradcheck.witness.search import EXACT_TO, Cause, Claim, found_causes
from gradcheck.witness.tape import Tape

Vjp = Callable[[Sequence[Array | None]], Sequence[Array | None]]

LEAST_NUMBERS = 3
"""Independent numbers of a wrong gradient below which it is not explained: any share fits one."""

ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*")
"""The beginning of a line that gives a value a name."""

LONGEST = 40
"""Characters of an expression that a sentence quotes."""


def explain(
    tape: Tape,
    vjp: Vjp,
    cotangents: Sequence[Sequence[Array | None]],
    names: Sequence[str],
    rounding: Sequence[Any],
) -> list[Diagnosis]:
    """The mistakes that reproduce a wrong gradient, each with its line; none if no single one, or pair, does.

    Args:
        tape: the call, recorded with lines.
        vjp: the claim at the same point: gradients per input for cotangents per output; None counts as zero.
        cotangents: three or more draws, random and independent.
        names: of the inputs.
        rounding: per input how far claim and tape may be apart by rounding: a number, or one per element.
    """
    errors, claims = [], []
    for draw in cotangents:
        claims.append([wide(g) if g is not None else None for g in vjp(draw)])
        errors.append([0 * t if c is None else c - t for c, t in zip(claims[-1], tape.gradient(draw), strict=True)])
    bars = [float(np.max(r, initial=0)) for r in rounding]
    largest = [max(float(abs(e[k]).max(initial=0)) for e in errors) for k in range(len(names))]
    outputs = sum(np.size(u) for u in cotangents[0] if u is not None)
    wrong = [
        k
        for k, size in enumerate(largest)
        if size > 10 * bars[k] and independent(errors[0][k].size, outputs, len(cotangents)) >= LEAST_NUMBERS
    ]
    if not wrong or not all(np.isfinite(largest)):
        return []
    claim = Claim(cotangents, errors, bars, wrong)
    return [
        said(tape, cause, alike, names)
        for cause, alike in chosen(found_causes(tape, tape.replays, claim, names), wrong)
    ]


def independent(elements: int, outputs: int, draws: int) -> int:
    """How many numbers of a gradient do not follow from one another."""
    return elements * min(outputs, draws)


def chosen(causes: Sequence[Cause], wrong: Sequence[int]) -> list[tuple[Cause, list[Cause]]]:
    """The fewest and simplest causes that explain the most inputs, each with those that say the same."""
    left, found = set(wrong), []
    while left:
        useful = [cause for cause in causes if cause.explains & left]
        if not useful:
            break
        best = min(useful, key=lambda c: (-len(c.explains & left), c.spoils, c.cost, c.step.first))
        alike = [c for c in useful if c is not best and c.explains == best.explains and c.code == best.code]
        found.append((best, alike))
        left -= best.explains
    return found


# --------------------------------------------------------------------------- in words
def said(tape: Tape, cause: Cause, alike: Sequence[Cause], names: Sequence[str]) -> Diagnosis:
    """A cause as reports print it."""
    step, place = cause.step, place_of(cause.step.spot) if cause.step.spot is not None else None
    own = called(tape, cause.number, names)
    code, says, share = (cause.code, cause.says, "") if cause.candidate is not None else scaled(tape, cause, names)
    others = [
        called(tape, e, names) if e >= 0 else "a constant" for k, e in enumerate(step.edges) if k != cause.position
    ]
    text = says.replace("{op}", quoted(place, step.name)).replace("{own}", own)
    text = re.sub(r"#(\d+)", lambda m: called(tape, int(m[1]), names), text.replace("{other}", (others or ["it"])[0]))
    lines = sorted(
        {
            p.line
            for c in alike
            if c.step.spot is not None and (p := place_of(c.step.spot)).line != (place.line if place else 0)
        }
    )
    same = f"; the same as line {', '.join(map(str, lines[:3]))}" if lines else ""
    factor = "" if cause.candidate is None or cause.factor == 1 else f"times {number(cause.factor)}; "
    return Diagnosis(
        code=code,
        text=f"backward {text}",
        inputs=tuple(names[k] for k in sorted(cause.explains)),
        line=f"{place.file}:{place.line}" if place else "",
        source_line=place.source if place else "",
        column=place.column if place else 0,
        end_column=place.end_column if place else 0,
        operation=step.name,
        detail=f"{share or step.name} ({factor}reproduces backward to {cause.residual:.0e}{same})",
    )


def scaled(tape: Tape, cause: Cause, names: Sequence[str]) -> tuple[str, str, str]:
    """Code, sentence and detail of a share that is multiplied by a factor."""
    c, output = cause.factor, called(tape, cause.step.first, names)
    through = (
        f"{output}" if cause.position is None or sum(e >= 0 for e in cause.step.edges) < 2 else f"{{own}} in {output}"
    )
    if c == 0:
        sentence = f"ignores how the output depends on {through}, as if it were a constant"
        return "GC117", sentence, "its share of the gradient is missing; factor 0"
    if c == -1:
        return (
            "GC118",
            f"has the wrong sign where the gradient flows through {through}",
            "its share has the wrong sign; factor −1",
        )
    sentence = f"takes {number(c)} times the gradient that flows through {through}"
    return "GC118", sentence, f"its share is {number(c)} times what it should be"


def called(tape: Tape, value: int, names: Sequence[str]) -> str:
    """What the user's code calls a value: the name of an input, of a variable, or the expression."""
    if value < len(names):
        return names[value]
    step = tape.maker(value)
    if step is None or step.spot is None:
        return "a value on the way"
    place = place_of(step.spot)
    assigned = ASSIGNED.match(place.source)
    if assigned and place.column == assigned.end() and place.end_column >= len(place.source.split("#")[0].rstrip()):
        return assigned[1]
    return quoted(place, step.name)


def quoted(place: Place | None, name: str) -> str:
    """An expression of the source, or the name of the operation where it is not known or too long."""
    text = place.source[place.column : place.end_column] if place else ""
    return f"`{text}`" if 0 < len(text) <= LONGEST else name


def number(c: float) -> str:
    """A factor in words: 2, ½ as 1/2, 1/16."""
    inverse = round(1 / c) if c else 0
    if c and abs(c) < 1 and abs(1 / c - inverse) < EXACT_TO * abs(inverse):
        return f"1/{inverse}" if inverse > 0 else f"−1/{-inverse}"
    return f"{c:.6g}".replace("-", "−")
