"""The cause of a wrong gradient in words, with the line of the forward whose share of it is wrong."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import linecache
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Spot
from gradcheck.backends.bundled import Step
from gradcheck.causes.candidates import FORGETS, OF_WORLDS, Edge
from gradcheck.causes.search import SCREEN, Backward, Cause, CauseSearch, Mistake
from gradcheck.checking.point import Point
from gradcheck.checking.precision import MOVES
from gradcheck.checking.tape import Tape
from gradcheck.result import Diagnosis

ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=(?!=)\s*")
"""The beginning of a line that gives values names."""

LONGEST_QUOTE = 40
"""Characters of an expression that a sentence quotes."""

SIMPLE = 12
"""Factors that are fractions of numbers up to this are simple."""


def explained_by_tape(
    point: Point,
    claims: Sequence[tuple[Array, Sequence[Array]]],
    rounding: Sequence[Array],
    walks: float,
) -> tuple[list[Diagnosis], Backward]:
    """The mistakes that reproduce what backward gives for some cotangents, each with its line, none if no single one,
    or pair, does; and backward as it is with these alone. See `CauseSearch` for the arguments."""
    tape = point.recorded(point.inputs, lines=True)
    if tape is None:
        return [], point.by_tape
    with np.errstate(all="ignore"):
        search = CauseSearch(point, tape, claims, rounding, walks)
        chosen = list(search.chosen())
    told = [d for cause, alike in chosen for d in said(tape, cause, alike, point.problem.names)]
    return told, partial(search.gradients, [cause for cause, _ in chosen])


def said(
    tape: Tape, cause: Cause, alike: Sequence[Cause], names: Sequence[str]
) -> Iterator[Diagnosis]:
    """A cause as reports print it; of a pair, both."""
    for k, (mistake, factor) in enumerate(cause.mistakes):
        edge, step = mistake.edge, mistake.edge.step
        place, *same = (source_place(c.mistakes[k][0].edge.step.spot) for c in (cause, *alike))
        code, says, detail = sentence(mistake, factor)
        says = says.format(
            out=name_of_value(tape, step.first, names),
            op=name_of_value(tape, step.first, names)
            if of_world(step)
            else quoted_step(tape, step),
            own=name_of_value(tape, edge.number, names, step.spot),
            other=other_operand(tape, edge, names),
        )
        says = (
            re.sub(r"#(\d+)", lambda m: name_of_value(tape, int(m[1]), names), says) + mistake.when
        )
        lines = sorted({other.line for other in same if other.file == place.file} - {place.line})
        called = {other.called for other in tape.recording.steps if other.spot == step.spot}
        if (
            len(called) > 1 and not mistake.when and step.called
        ):  # a function that is called several times
            call = source_place(step.called)
            detail += f", in the call at {Path(call.file).name}:{call.line}"
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
    if not mistake.shared:
        rule = (
            "its derivative as a whole"
            if edge.position == Edge.COMPOSED
            else f"the rule of {edge.step.name}"
        )
        code, _, says, _ = mistake.candidate
        if factor != 1:
            says = (
                f"multiplies by {times} in place of {{other}}"
                if says == FORGETS
                else f"{says}, times {times}"
            )
        return code, says, f"{rule} is wrong"
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
    says, detail = (
        f"takes {times} times {gradient}",
        f"its share is {times} times what it should be",
    )
    if edge.summed > 1 and any(abs(c * edge.summed - 1) < SCREEN for c in (factor, 1 / factor)):
        return "GC112", says, f"{detail}: the number of elements there, as of a mean for a sum"
    return "GC118", says, detail


def name_of_value(tape: Tape, value: int, names: Sequence[str], within: Spot | None = None) -> str:
    """What the user's code calls a value: the name of an input, of a variable, or the expression.

    What the operation at `within` makes of its operand on the way, such as a transpose, goes by the operand.
    """
    if value < len(names):
        return names[value]
    step = tape.maker(value)
    if step is not None and of_world(step):
        return name_of_value(tape, next(e for e in step.edges if e >= 0), names)
    if step is None or step.spot is None:
        return "a value on the way"
    if step.spot == within and len(step.edges) == 1:
        operand = name_of_value(tape, step.edges[0], names, within)
        if step.name in MOVES:
            return operand + ".T" * (step.name == "transpose")
        return f"{step.name}({operand})"
    place = source_place(step.spot)
    if composite(tape, step) and any(
        value in s.edges and s.spot == step.spot for s in tape.recording.steps
    ):
        return quoted_step(tape, step)
    assigned = ASSIGNED.match(place.source)
    if (
        assigned
        and place.column == assigned.end()
        and place.end_column >= len(place.source.split("#")[0].rstrip())
    ):
        variables = [name.strip() for name in assigned[1].split(",")]
        if len(variables) == len(step.values):
            return variables[value - step.first]
    return quoted(place, step.name)


def of_world(step: Step) -> bool:
    """Whether a world gives its inputs to its ranks, or takes their outputs: on none of the user's lines."""
    return step.spot is None and step.name in {*OF_WORLDS, "stack"} and max(step.edges) >= 0


def other_operand(tape: Tape, edge: Edge, names: Sequence[str]) -> str:
    """What the user's code calls the other one of two operands: a constant as it is written, or its value."""
    others = [e for k, e in enumerate(edge.step.edges) if k != edge.position and e >= 0]
    if others:
        return name_of_value(tape, others[0], names, edge.step.spot)
    place, own = source_place(edge.step.spot), name_of_value(tape, edge.number, names).strip("`…")
    text = place.text
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
    around = [
        itertools.takewhile(lambda s: s.spot == step.spot, part)
        for part in (steps[at:], steps[:at][::-1])
    ]
    return step.spot is not None and len({s.name for s in itertools.chain(*around)}) > 1


def quoted_step(tape: Tape, step: Step) -> str:
    """The expression that an operation computes, or that it takes part in."""
    text = quoted(source_place(step.spot), step.name)
    return f"the {step.name} inside {text}" if composite(tape, step) else text


def quoted(place: SourcePlace, name: str) -> str:
    """An expression of the source, shortened if it is too long, or the name of the operation where it is not known."""
    whole = len(place.text) <= LONGEST_QUOTE and not place.text.endswith(("(", ","))
    return f"`{place.text if whole else place.text[:LONGEST_QUOTE] + '…'}`" if place.text else name


def factor_text(value: float, simple: int = SIMPLE) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    fraction = Fraction(value).limit_denominator(simple)
    return str(fraction) if abs(float(fraction) - value) <= 1e-9 * abs(value) else f"{value:.6g}"


# --------------------------------------------------------------------------- the line on which an operation stands
class SourcePlace(NamedTuple):
    """A piece of a line of source: its file, the line from 1, and the columns from 0, the last not included."""

    file: str = ""
    """Empty for an operation that no code of the user's stands behind."""
    line: int = 0
    column: int = 0
    end_column: int = 0
    source: str = ""
    """The line as it stands in the file; empty if that cannot be read."""

    @property
    def text(self) -> str:
        return self.source[self.column : self.end_column]

    @property
    def told(self) -> dict[str, Any]:
        """As the parts of a diagnosis."""
        line = f"{self.file}:{self.line}" if self.line else ""
        return {
            "line": line,
            "source_line": self.source,
            "column": self.column,
            "end_column": self.end_column,
        }


def source_place(spot: Spot | None) -> SourcePlace:
    """Where an instruction stands. An expression over several lines is cut at the end of its first."""
    return SourcePlace() if spot is None else place_in(spot[0].co_filename, *spot)


@functools.lru_cache(maxsize=4096)
def place_in(file: str, code: CodeType, offset: int) -> SourcePlace:
    """Where an instruction stands. The same code in another file is equal to it, so that the file is asked for too."""
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[offset // 2]
    if line is None:
        return SourcePlace(file, code.co_firstlineno)
    source = linecache.getline(file, line).rstrip("\n")
    if column is None or end_column is None or not source:
        return SourcePlace(file, line, source=source)
    # The columns are of the source as it was compiled, which in a spec is indented further; where the code begins on
    # the line tells by how much. They count bytes. What the interpreter does on entry stands at no column, 0 to 0.
    starts = (start for at, _, start, end in positions if at == line and start is not None and end)
    shift = begins(source) - min(starts, default=column) if not file.endswith(".py") else 0
    encoded = source.encode()
    start = len(encoded[: column + shift].decode(errors="ignore"))
    end = (
        len(encoded[: end_column + shift].decode(errors="ignore"))
        if end_line == line
        else len(source)
    )
    return SourcePlace(file, line, start, end, source)


def begins(source: str) -> int:
    """The column at which the code on a line begins: its first token, or the body of a function that is on it whole."""
    indent = len(source) - len(source.lstrip())
    try:
        (node,) = ast.parse(source.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement, or several
        return indent
    return indent + (node.body[0].col_offset if isinstance(node, ast.FunctionDef) else 0)
