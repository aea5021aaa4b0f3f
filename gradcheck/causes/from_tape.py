"""The cause of a wrong gradient, with the line of the forward whose share of it is wrong."""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcheck.backends.base import Array, Spot, Step
from gradcheck.causes.edges import EXACT_TO, Cause, Edge, Mistake, Unexplained, summed
from gradcheck.causes.hypotheses import factor_text
from gradcheck.causes.lines import SourcePlace, source_place
from gradcheck.causes.search import SCREEN, found_causes
from gradcheck.checking.arrays import SMALLEST, wide
from gradcheck.checking.graph import Graph, Tape, dead_steps
from gradcheck.checking.precision import MOVES
from gradcheck.checking.problem import Reruns
from gradcheck.result import Diagnosis

LEAST_NUMBERS, LEAST_DIGITS = 3, 12
"""Independent numbers of a wrong gradient, and digits in all of them that are no rounding, below which it is not
explained: any share fits one number, and of a million pairs of candidates one fits 6 digits by chance."""

ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=(?!=)\s*")
"""The beginning of a line that gives values names."""

LONGEST_QUOTE = 40
"""Characters of an expression that a sentence quotes."""


def explain_from_tape(
    tape: Tape,
    reruns: Reruns | None,
    claims: Sequence[tuple[Sequence[Array | None], Sequence[Array | None]]],
    names: Sequence[str],
    rounding: Sequence[Array | None],
    walks: float = np.inf,
) -> list[Diagnosis]:
    """The mistakes that reproduce a wrong gradient, each with its line; none if no single one, or pair, does.

    Args:
        tape: the call, recorded with lines.
        reruns: the same call at other inputs.
        claims: what is claimed at the same point for three or more independent random draws: cotangents per output,
            and gradients per input; None counts as zero.
        names: of the inputs.
        rounding: per input, how far each element of claim and tape may be apart by rounding; None for not at all.
        walks: how many walks over the tape the search may take.
    """
    graph = Graph(tape.recording, dead_steps(tape, claims[0][0]))
    with np.errstate(all="ignore"):
        claim = wrong_of(graph, claims, rounding)
        finite = all(np.isfinite(e).all() for e in claim.errors)
        causes = found_causes(graph, reruns, claim, walks) if claim.wrong and finite and reruns is not None else []
    return [d for cause, alike in chosen(causes, claim.wrong) for d in said(tape, cause, alike, names)]


def wrong_of(
    graph: Graph,
    claims: Sequence[tuple[Sequence[Array | None], Sequence[Array | None]]],
    rounding: Sequence[Array | None],
) -> Unexplained:
    """What is claimed beside what the tape gives, and what of it is wrong."""
    cotangents, gradients = zip(*claims, strict=True)
    truth = [np.stack(rights) for rights in zip(*map(graph.gradient, cotangents), strict=True)]
    draws = min(len(claims), sum(np.size(u) for u in cotangents[0] if u is not None))
    claim = Unexplained(cotangents, [], [], [], [], [], [])
    for k, (right, given, round_off) in enumerate(zip(truth, zip(*gradients, strict=True), rounding, strict=True)):
        gradient = np.stack([0 * right[0] if g is None else wide(g) for g in given])
        bounds = 0 * abs(right[0]) if round_off is None else round_off
        error, rounded = gradient - right, float(bounds.max(initial=0))
        bar = rounded + EXACT_TO * float(abs(error).max(initial=0)) or SMALLEST["float64"]
        digits = float(np.log10(np.maximum(abs(error[:draws]) / bar, 1.0)).sum())
        wrong = error[:draws].size >= LEAST_NUMBERS and LEAST_DIGITS <= digits < np.inf
        if not wrong:  # rounding is not measured where both agree to many digits
            bar = rounded + EXACT_TO * float(abs(right).max(initial=0)) or SMALLEST["float64"]
        factor = np.vdot(right, error) / np.vdot(right, right)
        scaled = wrong and bool((abs(error - factor * right) <= SCREEN * abs(error).max()).all())
        claim.gradients.append(gradient)
        claim.errors.append(error[0])
        claim.bars.append(bar)
        claim.wrong.extend([k] * wrong)
        claim.scaled.extend([k] * scaled)
        one = parallel(error) and not parallel(right)  # a number per draw, such as one that is broadcast on the way
        claim.several.extend([k] * (not one and int((abs(error[0]) > bar).sum()) > 1))
    return claim


def parallel(draws: Array) -> bool:
    """Whether the rows of an array are one and the same but for a factor each."""
    rows = draws.reshape(len(draws), -1)
    longest = rows[abs(rows).sum(axis=1).argmax()]
    along = np.outer(rows @ longest.conj() / np.vdot(longest, longest), longest)
    return bool(abs(rows - along).max(initial=0.0) <= SCREEN * abs(rows).max(initial=0.0))


def chosen(causes: Sequence[Cause], wrong: Sequence[int]) -> Iterator[tuple[Cause, list[Cause]]]:
    """The fewest and simplest causes that explain the most inputs, each with those that say the same, itself too."""

    def same(cause: Cause) -> Any:
        return cause.explains, [(mistake.code, f"{factor:.6g}") for mistake, factor in cause.mistakes]

    left = set(wrong)
    while useful := [cause for cause in causes if cause.explains & left]:
        best = min(useful, key=lambda c: (-len(c.explains & left), c.spoils, *c.rank))
        yield best, [cause for cause in useful if same(cause) == same(best)]
        left -= best.explains


# --------------------------------------------------------------------------- in words
def said(tape: Tape, cause: Cause, alike: Sequence[Cause], names: Sequence[str]) -> Iterator[Diagnosis]:
    """A cause as reports print it; of a pair, both."""
    for k, (mistake, factor) in enumerate(cause.mistakes):
        edge, step = mistake.edge, mistake.edge.step
        place, *same = (source_place(c.mistakes[k][0].edge.step.spot) for c in (cause, *alike))
        code, says, detail = sentence(mistake, factor)
        says = says.format(
            out=name_of_value(tape, step.first, names),
            op=quoted_step(tape, step),
            own=name_of_value(tape, edge.number, names, step.spot),
            other=other_operand(tape, edge, names),
        )
        says = re.sub(r"#(\d+)", lambda m: name_of_value(tape, int(m[1]), names), says) + mistake.when
        lines = sorted({other.line for other in same if other.file == place.file} - {place.line})
        proof = [f"reproduces backward to {max(cause.residual, 1e-16):.0e}"]
        proof += [f"the same as line {', '.join(map(str, lines[:3]))}"] if lines else []
        detail += ", together with the next" * (mistake is not cause.mistakes[-1][0])
        yield Diagnosis(
            code=code,
            text=f"backward {says}",
            inputs=tuple(names[k] for k in sorted(cause.explains)),
            operation=step.name,
            detail=f"{detail} ({'; '.join(proof)})",
            **place.told,
        )


def sentence(mistake: Mistake, factor: float) -> tuple[str, str, str]:
    """Code, what backward does, and what to say below the line."""
    edge, times = mistake.edge, factor_text(factor, 1000).replace("-", "−")
    if mistake.ordinal is not None:
        rule = "its derivative as a whole" if edge.position == Edge.COMPOSED else f"the rule of {edge.step.name}"
        return mistake.code, mistake.says + f", times {times}" * (factor != 1), f"{rule} is wrong"
    several = edge.position >= 0 and not edge.alone and sum(e >= 0 for e in edge.step.edges) > 1
    through = "{own} in {out}" if several else "{out}"
    gradient = f"the gradient that flows through {through}"
    missing = f"ignores how the output depends on {through}, as if it were a constant"
    if edge.position == Edge.INCOMING:
        gradient = f"the incoming gradient of out[{edge.output}]"
        missing = f"does not use {gradient}"
    if factor == 0:
        return "GC117", missing, "its share of the gradient is missing: factor 0"
    if factor == -1:
        return "GC118", f"takes {gradient} with the wrong sign", "its share has the wrong sign"
    says, detail = f"takes {times} times {gradient}", f"its share is {times} times what it should be"
    if summed(edge) > 1 and any(abs(c * summed(edge) - 1) < SCREEN for c in (factor, 1 / factor)):
        return "GC112", says, f"{detail}: the number of elements there, as of a mean for a sum"
    return "GC118", says, detail


def name_of_value(tape: Tape, value: int, names: Sequence[str], within: Spot | None = None) -> str:
    """What the user's code calls a value: the name of an input, of a variable, or the expression.

    What the operation at `within` makes of its operand on the way, such as a transpose, goes by the operand.
    """
    if value < len(names):
        return names[value]
    step = tape.maker(value)
    if step is None or step.spot is None:
        return "a value on the way"
    if step.spot == within and len(step.edges) == 1:
        operand = name_of_value(tape, step.edges[0], names, within)
        if step.name in MOVES:
            return operand + ".T" * (step.name == "transpose")
        return f"{step.name}({operand})"
    place = source_place(step.spot)
    if composite(tape, step) and any(value in s.edges and s.spot == step.spot for s in tape.recording.steps):
        return quoted_step(tape, step)
    assigned = ASSIGNED.match(place.source)
    if assigned and place.column == assigned.end() and place.end_column >= len(place.source.split("#")[0].rstrip()):
        variables = [name.strip() for name in assigned[1].split(",")]
        if len(variables) == len(step.values):
            return variables[value - step.first]
    return quoted(place, step.name)


def other_operand(tape: Tape, edge: Edge, names: Sequence[str]) -> str:
    """What the user's code calls the other one of two operands: a constant as it is written, or its value."""
    others = [e for k, e in enumerate(edge.step.edges) if k != edge.position and e >= 0]
    if others:
        return name_of_value(tape, others[0], names, edge.step.spot)
    place, own = source_place(edge.step.spot), name_of_value(tape, edge.number, names).strip("`…")
    text = place.source[place.column : place.end_column]
    with contextlib.suppress(SyntaxError):  # of an expression over several lines
        node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.BinOp):
            sides = (ast.get_source_segment(text, side) or "" for side in (node.left, node.right))
            written = [side for side in sides if not side.startswith(own)]
            if len(written) == 1:
                return written[0] if re.fullmatch(r"-?[\w.]+", written[0]) else f"`{written[0]}`"
    constant = edge.other if edge.position >= 0 else None
    if constant is None or np.ndim(constant):
        return "a constant"
    return f"{float(np.real(constant)):.6g}".replace("-", "−")


def composite(tape: Tape, step: Step) -> bool:
    """Whether it is one of several operations that one call of the user's makes, such as those of a GELU."""
    steps = tape.recording.steps
    at = bisect_left(steps, step.first, key=lambda s: s.first)
    around = [itertools.takewhile(lambda s: s.spot == step.spot, part) for part in (steps[at:], steps[:at][::-1])]
    return step.spot is not None and len({s.name for s in itertools.chain(*around)}) > 1


def quoted_step(tape: Tape, step: Step) -> str:
    """The expression that an operation computes, or that it takes part in."""
    text = quoted(source_place(step.spot), step.name)
    return f"the {step.name} inside {text}" if composite(tape, step) else text


def quoted(place: SourcePlace, name: str) -> str:
    """An expression of the source, shortened if it is too long, or the name of the operation where it is not known."""
    text = place.source[place.column : place.end_column]
    whole = len(text) <= LONGEST_QUOTE and not text.endswith(("(", ","))
    return f"`{text if whole else text[:LONGEST_QUOTE] + '…'}`" if text else name
