"""The one edit of a user's backward that makes it right.

A candidate is called at one point against the traced gradients; one that agrees there is held
against others: other values, other sizes, other options. gradcheck itself then decides.
"""

from __future__ import annotations

import ast
import dis
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, islice
from textwrap import dedent
from types import CodeType
from typing import Any

import numpy as np

from gradcheck.deriving.agreement import KnownPoint, is_gradient_right, unrecorded
from gradcheck.deriving.call import LayerCall
from gradcheck.deriving.edits import TIERS, Edit, EditWords, edit_places, edits
from gradcheck.deriving.graph import Node, NotDerived, Traced
from gradcheck.deriving.points import (
    is_array,
    other_options,
    outputs_at,
    raw_array,
    resized,
)
from gradcheck.deriving.printing import Names, Printer
from gradcheck.deriving.program import Statements
from gradcheck.deriving.source import (
    SourceText,
    TextChange,
    part_of_file,
    reads_saved_in,
    returns_of,
    source_of_file,
)
from gradcheck.deriving.trace import Trace, attributes_of
from gradcheck.result import Fix

OTHER_VALUES = 2
OTHER_SIZES = 3
"""Points, beside the given one, at which an edit has to agree."""
MOST_EDITS = 600
"""Edits that are tried: measured on tests/bench/repairs.py, more find 1 % more."""

LayerPasses = Callable[[Any, LayerCall], bool]
"""Whether gradcheck passes a layer at the arguments of a call."""


class Repair:
    """The search for the one edit of a layer's backward.

    Args:
        call: a call of the layer at which it is wrong.
        passes: gradcheck's verdict on a changed layer.

    Raises:
        NotDerived: the gradients of forward, or the source of backward, are not known.
    """

    def __init__(self, call: LayerCall, passes: LayerPasses) -> None:
        self.call = call.at(call.in_dtype("float64"))
        self.layer, self.passes = call.subject, passes
        self.point = KnownPoint.of(self.call)
        self.backward = inspect.unwrap(self.layer.backward)
        if inspect.ismethod(self.backward):
            raise NotDerived("backward is a classmethod")
        code = self.backward.__code__
        file = source_of_file(code.co_filename)
        self.source, tree = part_of_file(file, code.co_firstlineno)
        function = tree.body[0]
        if not isinstance(function, ast.FunctionDef) or function.name != code.co_name:
            raise NotDerived("the source of backward is not known")
        function.decorator_list = []
        self.tree, self.function = tree, function
        closure = inspect.getclosurevars(self.backward).nonlocals
        self.scope = {**self.backward.__globals__, **closure}
        self.program = Statements(function, self.scope)
        self.require_same_code()
        self.is_straight = self.program.is_straight
        self.statements = {
            node: number
            for number, statement in enumerate(function.body)
            for node in ast.walk(statement)
        }
        """The statement of each expression, by its number."""
        self.wrong: int | None = None
        """The number of the gradient that is wrong, if it is one alone."""
        if self.is_straight:
            self.program.start(self.point.arguments())

    def require_same_code(self) -> None:
        """Raise NotDerived: the text of the file is not what runs."""
        if [*instructions_of(self.backward.__code__)] != [
            *instructions_of(self.compiled().__code__)
        ]:
            raise NotDerived("the source of backward is not what runs")

    def fix(self, most: int = MOST_EDITS) -> Fix | None:
        """The edit, or None: no edit makes the backward right, or it is right.

        Raises:
            NotDerived: an edit is right here, and forward runs at no other sizes.
        """
        with warnings.catch_warnings():  # of code that nobody wrote
            warnings.simplefilter("ignore")
            return self.first_fix(most)

    def first_fix(self, most: int) -> Fix | None:
        """The first edit that is right, of so many."""
        agreement = self.point.agreement(self.layer.backward)
        if all(agreement):
            return None
        wrong = [number for number, is_right in enumerate(agreement) if not is_right]
        if len(wrong) == 1 and len(self.returned()) == len(agreement):
            self.wrong = wrong[0]
        useless = self.useless_parts(agreement)
        found = islice(edits(self.function, self.words, useless), most)
        for edit in chain(found, self.whole_expressions()):
            expression = parsed(edit.text)
            if expression is None or not self.is_right_here(edit, expression):
                continue
            fix = self.tried(edit, expression)
            if fix is not None:
                return fix
        return None

    def is_right_here(self, edit: Edit, expression: ast.expr) -> bool:
        """Whether an edit makes the backward right at the first point."""
        with edited(edit, expression), unrecorded():
            try:
                if not self.is_straight:
                    return self.point.is_right(self.compiled())
                number = self.statements[edit.place.expression]
                is_return = number == len(self.function.body) - 1
                if is_return and self.wrong is not None:
                    value = self.program.value(self.returned()[self.wrong])
                    if not is_gradient_right(value, self.point.gradients[self.wrong]):
                        return False
                return all(self.point.agreement_of(self.program.returned(number)))
            except Exception:
                return False

    def tried(self, edit: Edit, expression: ast.expr) -> Fix | None:
        """The fix that an edit is, if it is right everywhere."""
        with edited(edit, expression):
            backward = self.compiled()
            if not self.is_right_elsewhere(backward):
                return None
            changed = type(self.layer.__name__, (self.layer,), {"backward": staticmethod(backward)})
            if not self.passes(changed, self.call):
                return None
            wanted = ast.dump(self.function)
        return written_fix(self.source, edit, expression, wanted)

    def compiled(self) -> Callable[..., Any]:
        """The backward as it is changed now."""
        scope = dict(self.scope)
        exec(compile(self.tree, "<edited backward>", "exec"), scope)
        return scope[self.function.name]  # type: ignore[no-any-return]

    # ----------------------------------------------------------------- where it has to be right
    @cached_property
    def other_points(self) -> list[KnownPoint]:
        """Points with other values, sizes and options.

        Raises:
            NotDerived: forward runs at no other sizes.
        """
        return [KnownPoint.of(call, seed) for seed, call in enumerate(self.other_calls(), 1)]

    def other_calls(self) -> Iterator[LayerCall]:
        """Calls with other values, sizes and options."""
        call, random = self.call, np.random.default_rng(1)
        for _ in range(OTHER_VALUES):
            moved = [
                resized(value, raw_array(value).shape, random) if has_floats(value) else value
                for value in call.args
            ]
            if outputs_at(call.subject, moved, call.kwargs) is not None:
                yield call.at(moved)
        others = list(islice(call.others(seed=2), OTHER_SIZES))
        if not others:
            raise NotDerived("forward runs at no other sizes")
        yield from others
        for position, value in enumerate(call.args):
            for option in other_options(value)[:1]:
                changed = [*call.args[:position], option, *call.args[position + 1 :]]
                if outputs_at(call.subject, changed, call.kwargs) is not None:
                    yield call.at(changed)

    def is_right_elsewhere(self, backward: Callable[..., Any]) -> bool:
        """Whether a backward is right at the other points."""
        return all(point.is_right(backward) for point in self.other_points)

    # ----------------------------------------------------------------- what edits are made of
    @cached_property
    def trace(self) -> Trace:
        """The trace of forward. Raises NotDerived: it cannot be traced."""
        return self.call.trace()

    @cached_property
    def words(self) -> EditWords:
        """The names that backward has, and the parts of a right one in these names."""
        stored = [
            node.id
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        cotangents = [argument.arg for argument in self.function.args.args[1:]]
        on_context = [f"ctx.{name}" for name in attributes_of(self.point.context)]
        return EditWords(list(dict.fromkeys([*stored, *cotangents, *on_context])), self.right_parts)

    def saved_names(self) -> dict[Node, str]:
        """The names by which backward reads what was saved."""
        names = reads_saved_in(self.function)
        values = [value.traced for value in self.trace.saved if isinstance(value, Traced)]
        if len(names) != len(self.trace.saved) or len(values) != len(names):
            return {}
        return dict(zip(values, names, strict=True))

    def printer(self) -> Printer:
        """A printer of a right backward in the names of the user's."""
        return Printer(Names(self.trace, self.saved_names()))

    def right_parts(self) -> list[str]:
        """The expressions of a right backward, the shortest first; none if it is not known."""
        texts: set[str] = set()
        try:
            nodes = self.trace.nodes
        except Exception:  # whatever forward raises of a Tensor of a trace
            return []
        for node in nodes:
            if node.flows and node.operation != "cotangent":
                with suppress(NotDerived):
                    texts |= subexpressions(expression_alone(self.printer(), node))
        return sorted(texts, key=lambda text: (len(text), text))

    def useless_parts(self, agreement: Sequence[bool]) -> list[ast.AST]:
        """The parts of backward that are not to be changed, where this is known."""
        returned = self.returned()
        if not self.is_straight or len(returned) != len(agreement) or not self.runs():
            return []
        pairs = zip(agreement, self.point.gradients, strict=True)
        is_right = [right and gradient is not None for right, gradient in pairs]
        needed = [k for k, gradient in enumerate(self.point.gradients) if gradient is not None]
        others = [returned[k] for k in range(len(returned)) if k not in needed]
        results = [returned[k] for k in needed]
        return [*others, *self.program.useless_parts(results, [is_right[k] for k in needed])]

    def runs(self) -> bool:
        """Whether backward runs as it is."""
        try:
            with unrecorded():
                self.program.returned(len(self.function.body) - 1)
        except Exception:
            return False
        return True

    def returned(self) -> list[ast.expr]:
        """The expressions that backward returns, if it returns at one place."""
        returns = returns_of(self.function)
        if len(returns) != 1 or returns[0].value is None:
            return []
        value = returns[0].value
        return list(value.elts) if isinstance(value, ast.Tuple) else [value]

    def whole_expressions(self) -> Iterator[Edit]:
        """The edit that writes out the one gradient that is wrong."""
        if self.wrong is None:
            return
        for place in edit_places(self.function, ()):
            if place.expression is self.returned()[self.wrong]:
                with suppress(Exception):  # as in `right_parts`
                    node = list(self.trace.gradients.values())[self.wrong]
                    if node is not None:
                        yield Edit(TIERS, place, expression_alone(self.printer(), node))


@contextmanager
def edited(edit: Edit, expression: ast.expr) -> Iterator[None]:
    """A block in which an edit is made."""
    old = edit.place.expression
    for node in ast.walk(expression):
        if isinstance(node, (ast.expr, ast.keyword)):
            ast.copy_location(node, old)
    edit.place.put(expression)
    try:
        yield
    finally:
        edit.place.put(old)


def has_floats(value: Any) -> bool:
    """Whether an argument is of floats."""
    return is_array(value) and raw_array(value).dtype.kind == "f"


def parsed(text: str) -> ast.expr | None:
    """The tree of an expression; None if it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def expression_alone(printer: Printer, node: Node) -> str:
    """A value as one expression. Raises NotDerived: it needs statements before it."""
    text = ast.unparse(printer.expression(node))
    if printer.lines:
        raise NotDerived("it needs several lines")
    return text


def subexpressions(text: str) -> set[str]:
    """An expression and the operations in it."""
    kinds = ast.BinOp, ast.Call, ast.UnaryOp
    return {ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


# --------------------------------------------------------------------------- the edit as text
def written_fix(source: SourceText, edit: Edit, expression: ast.expr, wanted: str) -> Fix | None:
    """The fix that an edit is, in the text of the file, with no more parentheses than needed."""
    old = edit.place.expression
    start, end = source.span(old)
    text = ast.unparse(expression)
    spans = [(start, end)]
    if source.text[start - 1] == "(" and source.text[end : end + 1] == ")":
        spans.insert(0, (start - 1, end + 1))  # parentheses that are not needed any more
    for start, end in spans:
        for new in (text, f"({text})"):
            changed = source.changed([TextChange(start, end, new)])
            if dump_of(changed) == wanted:
                return fix_in_text(source, start, end, new, changed)
    return None


def dump_of(text: str) -> str:
    """The tree of the text of a function, without its decorators, as text."""
    try:
        tree = ast.parse(dedent(text))
    except SyntaxError:
        return ""
    function: Any = tree.body[0]
    function.decorator_list = []
    return ast.dump(function)


def fix_in_text(source: SourceText, start: int, end: int, new: str, changed: str) -> Fix:
    """The change of some characters of a part of a file."""
    line, column = line_and_column(source.text, start)
    end_line, end_column = line_and_column(source.text, end)
    begin = changed.rfind("\n", 0, start) + 1
    finish = changed.find("\n", start + len(new))
    shown = " ".join(changed[begin : finish if finish >= 0 else None].split())
    return Fix(
        path=source.path,
        line=source.first_line + line,
        column=column,
        end_line=source.first_line + end_line,
        end_column=end_column,
        replacement=new,
        source_line=shown,
    )


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and the column of a place in a text, both from 0."""
    before = text[:offset]
    return before.count("\n"), offset - (before.rfind("\n") + 1)


SAME_INSTRUCTION = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_DEREF": "LOAD_GLOBAL"}
IGNORED_INSTRUCTIONS = {"PRECALL", "PUSH_NULL", "COPY_FREE_VARS", "NOP", "EXTENDED_ARG"}
JUMPS = {*dis.hasjrel, *dis.hasjabs}


def instructions_of(code: CodeType) -> Iterator[tuple[str, str]]:
    """The instructions of a function with the names and constants that they read.

    What depends on the code around the function is left out: a method of a module that the file
    imports, and a name of an enclosing function, are read by other instructions.
    """
    for step in dis.get_instructions(code):
        if step.opname in IGNORED_INSTRUCTIONS:
            continue
        argument = re.sub(r"NULL(\|self)? \+ | \+ NULL(\|self)?", "", step.argrepr)
        if step.opcode in JUMPS or isinstance(step.argval, CodeType):
            argument = ""
        yield SAME_INSTRUCTION.get(step.opname, step.opname), argument
