"""The search for a single edit of a user's backward that makes it right.

A candidate is compared with the traced gradients at one point; if it agrees, it is tried at points
with other values, sizes and options. Then gradcheck itself decides.
"""

from __future__ import annotations

import ast
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain, islice, takewhile
from typing import Any

import numpy as np

from gradcheck.backends.base import Array
from gradcheck.deriving.agreement import KnownPoint, known_points, wrong_entries
from gradcheck.deriving.call import LayerCall, grad_mode_as, is_array, raw_array
from gradcheck.deriving.dialects import NUMPY, Dialect, dialect_of
from gradcheck.deriving.edits import Edit, Texts, edits, places_in
from gradcheck.deriving.graph import Node, NotDerived
from gradcheck.deriving.printing import Printer, names_on_context, parse_expression
from gradcheck.deriving.source import (
    SourceText,
    TextChange,
    nested_statements,
    parsed_block,
    part_of_file,
    source_of_file,
    variable_names,
)
from gradcheck.deriving.steps import Steps, compiled_backward, gradients_in, replace_expression
from gradcheck.deriving.trace import Return, Trace, attributes_of, trace
from gradcheck.result import Fix
from pylayer.tensor.tensor import Tensor
from pylayer.watch.numpy_recording import Code

OTHER_VALUES = 2
OTHER_SIZES = 3
"""The number of points at which an edit must agree, in addition to the given one."""
MOST_RUNS = 200
"""The most runs of backward in a search, counted in statements: a check takes 20 runs or more
(tests/bench/derive_layers.py), so a search in vain costs at most about 10 checks. More find 1 %
more.
"""
SAME_VALUE = 1e-12
"""The share by which a variable of backward may differ from the value that it represents."""

MOVED = "0.7 - 1.3 * ({0}) * ({0})"
"""Another value for an expression, in which all entries change so that no later scale, sign or mean
undoes it.
"""

WrittenGradient = Callable[..., Any]


class Repair:
    """The search for a single edit of a backward.

    Args:
        call: a call of the layer or function at which backward is wrong.
        backward: of the layer; for a function of arrays, its hand-written gradients.
        passes: whether gradcheck passes with another backward.

    Raises:
        NotDerived: the gradients of forward, or the source of backward, are not known.
    """

    def __init__(
        self,
        call: LayerCall,
        backward: WrittenGradient,
        passes: Callable[[WrittenGradient], bool],
    ) -> None:
        self.call, self.passes = call.at(call.in_dtype("float64")), passes
        self.backward = inspect.unwrap(backward)
        if inspect.ismethod(self.backward):
            raise NotDerived("backward is a classmethod")
        self.forward_code = Code(call.numpy_sources)
        self.point = KnownPoint.of(self.call, self.forward_code)
        code = self.backward.__code__
        self.source, self.tree = part_of_file(source_of_file(code.co_filename), code.co_firstlineno)
        function = self.tree.body[0]
        if not isinstance(function, ast.FunctionDef) or function.name != code.co_name:
            raise NotDerived("the source of backward is not known")
        function.decorator_list = []
        self.function = function
        self.texts = Texts()
        self.scope = {
            **self.backward.__globals__,
            **inspect.getclosurevars(self.backward).nonlocals,
        }
        self.steps = Steps(function, self.scope, self.point, self.backward)
        if in_bytes(self.steps.gradients) != in_bytes(
            self.point.gradients_by(self.edited_backward())
        ):
            raise NotDerived("the source of backward differs from the code that runs")

    def fix(self, most: int = MOST_RUNS, deadline: float = math.inf) -> Fix | None:
        """The edit; None if backward is right already, or if none is found in `most` runs of
        backward and before a deadline, by `time.monotonic`.

        Raises:
            NotDerived: an edit is right here, but forward does not run at other sizes.
        """
        if not self.steps.wrong:
            return None
        with warnings.catch_warnings(action="ignore"):  # about code that nobody wrote
            most_statements = most * len(self.function.body)
            edits = takewhile(
                lambda edit: self.steps.statements_run < most_statements,
                chain.from_iterable(map(self.edits_of, self.places())),
            )
            candidates = chain(edits, self.whole_expressions())
            in_time = takewhile(lambda edit: time.monotonic() < deadline, candidates)
            fixes = map(self.try_edit, in_time)
            return next(filter(None, fixes), None)

    def try_edit(self, edit: Edit) -> Fix | None:
        """The fix for an edit, if it is right everywhere."""
        if not self.steps.is_right_with(edit.expression, edit.text):
            return None
        expression = parse_expression(edit.text)
        with replace_expression(edit.expression, expression):
            backward, wanted = self.edited_backward(), ast.dump(self.function)
        if not self.is_right_elsewhere(backward) or not self.passes(backward):
            return None
        return written_fix(self.source, edit.expression, expression, wanted)

    def edited_backward(self) -> WrittenGradient:
        """The backward with the current edit."""
        scope = dict(self.scope)
        exec(compiled_backward(self.tree), scope)
        return scope[self.function.name]  # type: ignore[no-any-return]

    # ---------------------------------------------------- points at which an edit must be right
    @cached_property
    def other_points(self) -> list[KnownPoint]:
        """Points with other values, sizes and options.

        Raises:
            NotDerived: forward does not run at other sizes.
        """
        sizes = self.points(self.call.others(seed=2), OTHER_SIZES)
        if not sizes:
            raise NotDerived("forward does not run at other sizes")
        points = self.points(self.call.with_other_values(OTHER_VALUES, seed=1), OTHER_VALUES)
        for calls in self.call.with_other_options().values():
            points += self.points(calls, 1)
        return points + sizes

    def points(self, calls: Iterable[LayerCall], most: int) -> list[KnownPoint]:
        """Points of the first calls at which forward runs."""
        return list(islice(known_points(calls, self.forward_code), most))

    def is_right_elsewhere(self, backward: WrittenGradient) -> bool:
        """Whether a backward is right at the other points."""
        return all(point.is_right(backward) for point in self.other_points)

    # ----------------------------------------------------------------- parts of edits
    @cached_property
    def names(self) -> list[str]:
        """The variables of backward, and the attributes of ctx."""
        code, context = self.backward.__code__, self.point.context
        local_names = (*code.co_varnames[code.co_argcount :], *code.co_cellvars)
        parameters = code.co_varnames[len(context) : code.co_argcount]
        attributes = chain.from_iterable(map(attributes_of, context))
        outside = [] if self.call.static is None else self.call.static.readable
        attribute_names = map("ctx.{}".format, attributes)
        return list(dict.fromkeys([*local_names, *parameters, *outside, *attribute_names]))

    @cached_property
    def trace(self) -> Trace:
        """The trace of forward at the first point. Raises NotDerived: it cannot be traced."""
        return trace(self.call)

    @cached_property
    def printers(self) -> list[Printer]:
        """Printers of a right backward in the user's variables: Tensors, and arrays."""
        frame = Return()
        with suppress(Exception), frame.of(self.backward.__code__), grad_mode_as(False):
            self.point.results(self.backward)
        if (played := self.call.played) is not None:
            variables = {n: a for n, v in frame.locals.items() if (a := played.array(v)) is not v}
            return [self.printer(dialect_of(self.call), variables)]
        values = dict(frame.locals)
        if self.call.static is not None:
            values = self.call.static.variables(self.call.args) | values
        tensors = {name: v.array for name, v in values.items() if isinstance(v, Tensor)}
        arrays = {name: v for name, v in frame.locals.items() if isinstance(v, np.ndarray)}
        return [
            self.printer(dialect, variables)
            for variables, dialect in ((tensors, dialect_of(self.call)), (arrays, NUMPY))
            if variables
        ]

    def printer(self, dialect: Dialect, arrays: Mapping[str, Any]) -> Printer:
        """A printer that reads some variables, and Tensors on ctx."""
        names = known_nodes(self.trace.nodes, arrays) | names_on_context(self.trace, dialect)
        return Printer(self.trace, dialect, names, is_fixed=True)

    @cached_property
    def parts(self) -> dict[str, None]:
        """The expressions of a right backward, the shortest first."""
        texts: set[str] = set()
        with suppress(Exception):  # whatever forward raises for a Tensor of a trace
            for printer in self.printers:
                for node in filter(lambda node: node.flows, self.trace.nodes):
                    texts |= subexpressions(text_alone(printer, node))
        return dict.fromkeys(sorted(texts, key=lambda text: (len(text), text)))

    def edits_of(self, places: Sequence[ast.expr]) -> Iterator[Edit]:
        """All edits of some expressions of backward."""
        return edits(places, self.texts, self.names, lambda: list(self.parts))

    def places(self) -> list[list[ast.expr]]:
        """The expressions that may be changed, starting with those on which no right gradient
        depends.

        Expressions on which a wrong entry does not depend are left out. Each value that backward
        assigns is changed once to see which gradients depend on it; a returned expression affects
        only its own gradient. If backward raises, the expressions that did not run come first.
        """
        places, returned = places_in(self.function), gradients_in(self.function)
        if self.steps.gradients is None:
            ran = [place for place in places if self.steps.steps_of[place].values is not None]
            return [[place for place in places if place not in ran], ran]
        gradients = [raw_gradient(value) for value in self.steps.gradients]
        wrong = self.steps.wrong
        useless, shared = set[ast.AST](), set[ast.AST]()
        if len(returned) == len(gradients):
            for k, value in enumerate(returned):
                if {*wrong} != {k}:
                    useless.update(ast.walk(value))
        for value in filter(places.__contains__, self.assigned_values()):
            moved = self.steps.gradients_with(value, MOVED.format(self.texts[value]))
            if moved is None:  # raises, for example for another number of elements
                continue
            changes = {k: wrong_entries(gradient, gradients[k]) for k, gradient in moved.items()}
            if not all(k in changes and reaches(changes[k], wrong[k]) for k in wrong):
                useless.update(ast.walk(value))
            elif any(changes[k].any() for k in changes.keys() - wrong.keys()):
                shared.update(ast.walk(value))
        first = [place for place in places if place not in useless | shared]
        return [first, [place for place in places if place in shared - useless]]

    def assigned_values(self) -> list[Any]:
        """The values that backward assigns to names."""
        kinds = ast.Assign, ast.AugAssign, ast.AnnAssign
        return [node.value for node in nested_statements(self.function) if isinstance(node, kinds)]

    def whole_expressions(self) -> Iterator[Edit]:
        """The edits that write out the only wrong gradient; none if several are wrong."""
        with suppress(Exception):  # as in `parts`
            (wrong,) = self.steps.wrong
            node: Any = self.trace.gradients[self.trace.gradient_slots[wrong]]
            for printer in self.printers:
                yield Edit(gradients_in(self.function)[wrong], text_alone(printer, node))


def raw_gradient(value: Any) -> Any:
    """The array of a gradient; None if there is none."""
    return np.asarray(raw_array(value)) if is_array(value) else None


def in_bytes(gradients: Sequence[Any] | None) -> list[bytes]:
    """Gradients in a form for exact comparison."""
    return [np.asarray(raw_gradient(value)).tobytes() for value in gradients or ()]


def reaches(changes: Array, wrong: Array) -> bool:
    """Whether all wrong entries of a gradient are among the changed ones."""
    changed = changes if wrong.shape else changes.any()
    return bool((changed >= wrong).all())


def known_nodes(nodes: Sequence[Node], arrays: Mapping[str, Any]) -> dict[Node, str]:
    """The names of variables, by the value of the trace that each holds."""
    return {
        node: name
        for name, array in arrays.items()
        for node in nodes
        if array.shape == node.shape and is_same_array(array, node.array)
    }


def is_same_array(array: Any, wanted: Any) -> bool:
    """Whether arrays are equal up to rounding."""
    return bool(np.allclose(array, wanted, rtol=SAME_VALUE, atol=0.0))


def text_alone(printer: Printer, node: Node) -> str:
    """A value as one expression; empty if there is none."""
    try:
        tree = printer.tree(node)
    except NotDerived:
        return ""
    return "" if variable_names(tree) & {*printer.variables.values()} else ast.unparse(tree)


def subexpressions(text: str) -> set[str]:
    """An expression and the operations in it."""
    kinds = ast.BinOp, ast.Call, ast.UnaryOp
    return {ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


# --------------------------------------------------------------------------- the edit as text
def written_fix(source: SourceText, old: ast.expr, expression: ast.expr, wanted: str) -> Fix | None:
    """The fix for an edit, as a change of the file's text, without needless parentheses."""
    start, end = source.span(old)
    text = ast.unparse(expression)
    spans = [(start, end)]
    if source.text[start - 1] == "(" and source.text[end : end + 1] == ")":
        spans.insert(0, (start - 1, end + 1))  # parentheses that are not needed any more
    for start, end in spans:
        for new in (text, f"({text})"):
            changed = source.apply_changes([TextChange(start, end, new)])
            if dump_of(changed) == wanted:
                return fix_in_text(source, start, end, new, changed)
    return None


def dump_of(text: str) -> str:
    """The syntax tree of a function's text, without its decorators, as text."""
    try:
        tree = parsed_block(text, 2)
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
    """The line and the column of a position in a text, both from 0."""
    before = text[:offset]
    return before.count("\n"), offset - (before.rfind("\n") + 1)
