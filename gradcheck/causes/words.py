"""Text of the cause of a wrong gradient, with the line of the forward whose share is wrong."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import linecache
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from gradcheck.backends.base import Array, Spot
from gradcheck.backends.recording import Step
from gradcheck.causes.candidates import FORGETS, OF_WORLDS, Edge
from gradcheck.causes.search import SCREEN, Backward, Cause, CauseSearch, Mistake
from gradcheck.checking.point import Point
from gradcheck.checking.precision import MOVES
from gradcheck.checking.tape import Tape
from gradcheck.codes import is_cause
from gradcheck.result import Diagnosis, Fix

ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*=(?!=)\s*")
"""The beginning of a line that assigns names to values."""
BUFFER = re.compile(r"[A-Za-z_][\w.]*(?=\[)")
"""The name of the object that a line writes into."""

LONGEST_QUOTE = 40
"""The most characters of an expression that a sentence quotes."""

SIMPLE = 12
"""Fractions of numbers up to this count as simple factors."""


def explained_by_tape(
    point: Point,
    claims: Sequence[tuple[Array, Sequence[Array]]],
    rounding: Sequence[Array],
    walks: float,
) -> tuple[list[Diagnosis], Backward]:
    """Search for the mistakes that reproduce backward's gradients for some cotangents.

    Return each with its line, or nothing if no single mistake or pair does; and a backward that has
    only these mistakes. See `CauseSearch` for the arguments.
    """
    tape = point.record(point.inputs, lines=True)
    if tape is None:
        return [], point.by_tape
    with np.errstate(all="ignore"):
        search = CauseSearch(point, tape, claims, rounding, walks)
        chosen = list(search.choose())
    words = Words(tape, point.problem.names)
    diagnoses = [d for cause, alike in chosen for d in words.diagnoses(cause, alike)]
    return diagnoses, partial(search.gradients, [cause for cause, _ in chosen])


class Words:
    """The names in the user's code of the values and operations of a tape.

    Args:
        tape: recorded with lines.
        names: the names of its inputs.
    """

    def __init__(self, tape: Tape, names: Sequence[str]) -> None:
        self.tape, self.names, self.steps = tape, names, tape.recording.steps
        self.composite: set[Step] = set()
        """Operations that come in groups from one call in the user's code, such as those of a
        GELU.
        """
        for spot, group in itertools.groupby(self.steps, key=attrgetter("spot")):
            members = list(group)
            if spot is not None and len({step.name for step in members}) > 1:
                self.composite.update(members)

    def diagnoses(self, cause: Cause, alike: Sequence[Cause]) -> Iterator[Diagnosis]:
        """A cause as reports print it; for a pair, both. `alike` are equivalent causes."""
        for k, (mistake, factor) in enumerate(cause.mistakes):
            step = mistake.edge.step
            place = source_place(step.spot)
            operation = self.name_of_call(step)
            code, says, detail = sentence(mistake, factor, operation)
            called = {other.called for other in self.steps if other.spot == step.spot}
            if len(called) > 1 and not mistake.when and step.called:  # one of several calls
                call = source_place(step.called)
                detail += f", in the call at {Path(call.file).name}:{call.line}"
            detail += ", together with the next" * (k + 1 < len(cause.mistakes))
            proof = f"reproduces backward to {max(cause.residual, 1e-16):.0e}"
            places = {source_place(c.mistakes[k][0].edge.step.spot) for c in alike}
            lines = {other.line for other in places if other.file == place.file} - {place.line}
            if lines:
                proof += f"; the same as line {', '.join(map(str, sorted(lines)[:3]))}"
            yield Diagnosis(
                code=code,
                text=f"backward {self.fill_in(says, mistake.edge)}{mistake.when}",
                inputs=tuple(self.names[k] for k in sorted(cause.explains)),
                operation=operation,
                detail=f"{detail} ({proof})",
                **place.fields,
            )

    def fill_in(self, says: str, edge: Edge) -> str:
        """A sentence about an edge with the names of its values."""
        step = edge.step
        output = self.name(step.first)
        filled = says.format(
            out=output,
            op=output if of_world(step) else self.quote(step),
            own=self.name(edge.number, step.spot),
            other=self.other_operand(edge),
        )
        return re.sub(r"#(\d+)", lambda match: self.name(int(match[1])), filled)

    def name(self, value: int, within: Spot | None = None) -> str:
        """The name of an input or of a variable, or the expression.

        An intermediate value of the operation at `within`, such as a transpose, has the name of the
        operand.
        """
        if value < len(self.names):
            return self.names[value]
        step = self.tape.maker(value)
        assert step is not None
        if of_world(step):
            return self.name(max(step.edges))
        if step.spot is None:
            return "an intermediate value"
        if step.spot == within and len(step.edges) == 1:
            operand = self.name(step.edges[0], within)
            if step.name in MOVES:
                return operand + ".T" * (step.name == "transpose")
            return f"{step.name}({operand})"

        place = source_place(step.spot)
        buffer = BUFFER.match(place.text) if step.name == "setitem" else None
        if buffer:  # the whole buffer, not the part that was written last
            return buffer[0]
        same_call = (other for other in self.steps if other.spot == step.spot)
        if step in self.composite and any(value in other.edges for other in same_call):
            return self.quote(step)
        assigned = ASSIGNED.match(place.source)
        if assigned and place.column == assigned.end() and place.ends_line:
            variables = assigned[1].split(",")
            if len(variables) == len(step.values):
                return variables[value - step.first].strip()
        return place.quote(step.name)

    def other_operand(self, edge: Edge) -> str:
        """The other one of two operands: the constant as written, or the value's name."""
        for k, number in enumerate(edge.step.edges):
            if k != edge.position and number >= 0:
                return self.name(number, edge.step.spot)
        written = source_place(edge.step.spot).other_side(self.name(edge.number).strip("`…"))
        if written:
            return written if re.fullmatch(r"-?[\w.]+", written) else f"`{written}`"
        constant = edge.other
        if constant is None or np.ndim(constant):
            return "a constant"
        return f"{float(np.real(constant)):.6g}".replace("-", "−")

    def name_of_call(self, step: Step) -> str:
        """The function that the user calls for an operation: ``gather``, not ``getitem``."""
        if step in self.composite:
            return step.name
        return source_place(step.spot).called or step.name

    def quote(self, step: Step) -> str:
        """The expression that an operation computes, or that it takes part in."""
        text = source_place(step.spot).quote(step.name)
        return f"the {step.name} inside {text}" if step in self.composite else text


def of_world(step: Step) -> bool:
    """Whether an operation passes a world's inputs to its ranks, or collects their outputs; such
    operations have no line in the user's code.
    """
    return step.spot is None and step.name in {*OF_WORLDS, "stack"}


RULES = {
    Edge.COMPOSED: "its derivative as a whole is wrong",
    Edge.VALUE: "backward has another value here",
    Edge.OUTPUT: "its gradient is wrong",
    Edge.INCOMING: "its gradient is wrong",
    Edge.WHOLE: "here",
}
"""The text below the line of a mistake, by position of the edge."""


def sentence(mistake: Mistake, factor: float, called: str) -> tuple[str, str, str]:
    """The code, the mistake in words, and the text below the line; `called` is the operation."""
    edge, times = mistake.edge, factor_text(factor, 1000).replace("-", "−")
    if not mistake.scales:
        code, _, says, _ = mistake.candidate
        if factor != 1:
            forgets = says == FORGETS
            says = (
                f"multiplies by {times} in place of {{other}}"
                if forgets
                else f"{says}, times {times}"
            )
        rule = RULES.get(edge.position, f"the rule of {called} is wrong")
        return code, says, rule

    through = "{out}"
    if edge.position >= 0 and not edge.alone and sum(e >= 0 for e in edge.step.edges) > 1:
        through = "{own} in {out}"
    gradient = f"the gradient that flows through {through}"
    missing = f"ignores how the output depends on {through}, as if it were a constant"
    if edge.position == Edge.INCOMING:
        gradient = f"the incoming gradient of out[{edge.of_call[0]}]"
        missing = f"does not use {gradient}"
    if factor == 0:
        return "GC117", missing, "its share of the gradient is missing: factor 0"
    if factor == -1:
        return "GC118", f"takes {gradient} with the wrong sign", "its share has the wrong sign"
    says, detail = (
        f"takes {times} times {gradient}",
        f"its share is {times} times what it should be",
    )
    # With two elements, a gradient that is added twice looks the same.
    if edge.summed > 2 and any(abs(c * edge.summed - 1) < SCREEN for c in (factor, 1 / factor)):
        return "GC112", says, f"{detail}: the number of elements there, as if a mean were a sum"
    return "GC118", says, detail


def factor_text(value: float, simple: int = SIMPLE) -> str:
    """A factor as a person would write it: 2, 1/3, 0.1234."""
    fraction = Fraction(value).limit_denominator(simple)
    is_simple = abs(float(fraction) - value) <= 1e-9 * abs(value)
    return str(fraction) if is_simple else f"{value:.6g}"


def in_step_with(fix: Fix, wrong: Sequence[str], diagnosis: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The diagnoses to report with an edit of backward that makes the gradients of `wrong` inputs
    right.

    A cause that explains all of these shows the meaning of the edit in forward; a broken contract
    shows the error of the gradients. Otherwise one slip had several causes, or none: the edit is
    the cause.
    """
    causes = [d for d in diagnosis if is_cause(d.code)]
    explained = len(causes) == 1 and set(causes[0].inputs) >= set(wrong)
    if explained or len(causes) < len(diagnosis):
        return [*diagnosis]
    source = linecache.getline(fix.path, fix.line).rstrip("\n")
    end = fix.end_column if fix.end_line == fix.line else len(source)
    place = SourcePlace(fix.path, fix.line, fix.column, end, source)
    text = f"backward has {place.quote('this')} where `{fix.replacement}` is right"
    edit = Diagnosis(
        code="GC127", text=text, inputs=tuple(wrong), detail="this expression", **place.fields
    )
    return [edit]


# --------------------------------------------------------------------------- source lines
class SourcePlace(NamedTuple):
    """A span of source on one line; lines count from 1, columns from 0, the end is excluded."""

    file: str = ""
    """Empty if the operation does not come from user code."""
    line: int = 0
    column: int = 0
    end_column: int = 0
    source: str = ""
    """The line from the file; empty if the file cannot be read."""

    @property
    def text(self) -> str:
        return self.source[self.column : self.end_column]

    @property
    def ends_line(self) -> bool:
        """Whether only a comment follows."""
        return self.end_column >= len(self.source.split("#")[0].rstrip())

    @property
    def fields(self) -> dict[str, Any]:
        """The span as fields of a diagnosis."""
        line = f"{self.file}:{self.line}" if self.line else ""
        columns = {"column": self.column, "end_column": self.end_column}
        return {"line": line, "source_line": self.source, **columns}

    def quote(self, name: str) -> str:
        """The expression, shortened if it is too long, or a name if there is none."""
        text = self.text
        if not text:
            return name
        if len(text) > LONGEST_QUOTE or text.endswith(("(", ",")):
            text = f"{text[:LONGEST_QUOTE]}…"
        return f"`{text}`"

    @property
    def expression(self) -> ast.expr | None:
        """The expression, parsed; None for a part of one over several lines."""
        with contextlib.suppress(SyntaxError):
            return ast.parse(self.text, mode="eval").body
        return None

    @property
    def called(self) -> str:
        """The name of the function or method that the expression calls; empty if it is not a
        call.
        """
        function = getattr(self.expression, "func", None)
        return getattr(function, "attr", "") or getattr(function, "id", "")

    def other_side(self, operand: str) -> str:
        """The operand of a binary expression that does not begin with `operand`; empty if
        unclear.
        """
        node = self.expression
        if not isinstance(node, ast.BinOp):
            return ""
        sides = [ast.get_source_segment(self.text, n) or "" for n in (node.left, node.right)]
        other_sides = [side for side in sides if not side.startswith(operand)]
        return other_sides[0] if len(other_sides) == 1 else ""


def source_place(spot: Spot | None) -> SourcePlace:
    """The source span of an instruction. An expression over several lines ends with the first
    line.
    """
    return SourcePlace() if spot is None else place_in(spot[0].co_filename, *spot)


@functools.lru_cache(maxsize=4096)
def place_in(file: str, code: CodeType, offset: int) -> SourcePlace:
    """The source span of an instruction, cached by file, as equal code may be in another file."""
    positions = list(code.co_positions())
    line, end_line, column, end_column = positions[offset // 2]
    if line is None:
        return SourcePlace(file, code.co_firstlineno)
    source = linecache.getline(file, line).rstrip("\n")
    if column is None or end_column is None or not source:
        return SourcePlace(file, line, source=source)

    # The columns refer to the source as it was compiled. In a spec it is indented further; the
    # first instruction of the line shows by how much. Instructions of a function's entry have the
    # columns 0 to 0.
    shift = 0
    if not file.endswith(".py"):
        starts = [
            start
            for first_line, _, start, end in positions
            if first_line == line and start is not None and end
        ]
        shift = begins(source) - min(starts, default=column)
    encoded = source.encode()  # the columns count bytes
    start = len(encoded[: column + shift].decode(errors="ignore"))
    end = len(source)
    if end_line == line:
        end = len(encoded[: end_column + shift].decode(errors="ignore"))
    return SourcePlace(file, line, start, end, source)


def begins(source: str) -> int:
    """The column of the first token on a line, or of the body of a function whose definition is all
    on that line.
    """
    indent = len(source) - len(source.lstrip())
    try:
        (node,) = ast.parse(source.strip()).body
    except (SyntaxError, ValueError):  # a part of a statement, or several
        return indent
    return indent + (node.body[0].col_offset if isinstance(node, ast.FunctionDef) else 0)
