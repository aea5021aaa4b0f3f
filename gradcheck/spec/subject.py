"""What a scenario with a layer checks: that there is something, and that it can be, as far as its
code shows.

What is reported here would end in an ERROR, in an INCONCLUSIVE, or, worse, in a PASS of a run that
has checked nothing. These rules apply to scenarios without other mistakes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from math import inf

from gradcheck.spec.code_rules import CodeRules
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.input_rules import input_shape
from gradcheck.spec.model import OPERATIONS, Expect, LayerOp, LayerRef, Scenario
from gradcheck.spec.python import layer_classes, nodes, read_and_bound, static_forward
from gradcheck.spec.violation import Violation
from gradcheck.support.syntax_tree import last_name

HOLDING = ("values", "raises", "warns", "calls", "grads")
"""Keys of an expectation that something is compared with, beside the gradient check."""


def find_subject_mistakes(scenario: Scenario, code: CodeRules) -> Iterator[Violation]:
    """Yield the first reason why nothing can be checked of a layer that is run by itself."""
    if scenario.layer is None or scenario.script is not None:
        return
    subject = _Subject(scenario, code)
    reasons = (subject.arguments, subject.missing_methods, subject.unused, subject.nothing_asked)
    for find_mistakes in reasons:
        for mistake in find_mistakes():
            yield mistake
            return


class _Subject:
    """A scenario with a layer; the public methods find reasons of one kind each."""

    def __init__(self, scenario: Scenario, code: CodeRules) -> None:
        self.scenario, self.code = scenario, code
        self.inputs, self.differentiable = scenario.inputs, scenario.differentiable
        self.must_raise = scenario.expect.raises is not None
        source = scenario.layer if isinstance(scenario.layer, str) else None
        layer = code.find_code(source, "the layer")
        self.call = code.find_code(scenario.call, "call")
        tree = layer.tree if layer is not None else None
        self.tree = tree if isinstance(tree, ast.Module) else ast.Module([], [])
        self.defined = _bound_names(self.tree.body)

    @property
    def asks_for_gradients(self) -> bool:
        """Whether gradients are taken and looked at: by the check, or compared with numbers."""
        expect = self.scenario.expect
        is_checked = expect.written_gradient != "unchecked" and bool(self.differentiable)
        return not self.must_raise and (is_checked or bool(expect.grads))

    @cached_property
    def applied(self) -> list[ast.ClassDef]:
        """The PyLayers of the source that are applied: those that the call names, or the last."""
        layers = layer_classes(self.tree)
        if self.call is not None:
            return [layers[name] for name in read_and_bound(self.call.tree)[0] if name in layers]
        return [] if "forward_fn" in self.defined else list(layers.values())[-1:]

    @property
    def forward_fn(self) -> ast.FunctionDef | None:
        """The forward of a static layer that is applied to the inputs."""
        return static_forward(self.tree) if self.call is None else None

    def arguments(self) -> Iterator[Violation]:
        """Yield that a layer which is called with all inputs in order takes more, or fewer."""
        if self.call is not None or self.must_raise:
            return
        layer, count = self.scenario.layer, len(variables(self.inputs))
        forward = self.forward_fn or self._forward_method()
        inside = None
        if isinstance(layer, LayerOp):
            what, (least, most) = f"'{layer.op}'", OPERATIONS.get(layer.op, (0, inf))
        elif forward is not None:
            what = (
                "forward_fn" if forward is self.forward_fn else f"forward of {self.applied[0].name}"
            )
            (least, most), inside = _argument_range(forward), _place_of(forward)
        else:
            return
        if least <= count <= most:
            return
        takes = f"at least {least}" if count < least else f"at most {most:g}"
        takes = f"{least:g}" if least == most else takes
        inputs = "there is 1 input" if count == 1 else f"there are {count or 'no'} inputs"
        message = f"{what} takes {takes} argument{'s' * (takes != '1')}, but {inputs}"
        help = "list them under 'inputs', in order, or say what to run with 'call: …'"
        yield Violation(("layer",), message, help, inside=inside)

    def missing_methods(self) -> Iterator[Violation]:
        """Yield a layer whose gradient is asked for, and that has no backward; or one without a
        forward.
        """
        if self.must_raise:
            return
        help = "add it, or write 'gradient: unchecked', with what must hold in its place"
        for cls in self.applied:
            if self._lacks(cls, "forward"):
                how = "add it: a staticmethod that takes ctx, then the inputs"
                yield Violation(
                    ("layer",), f"{cls.name} has no forward", how, inside=_place_of(cls)
                )
            if self.asks_for_gradients and self._lacks(cls, "backward"):
                message = f"{cls.name} has no backward, and its gradient is asked for"
                yield Violation(("layer",), message, help, inside=_place_of(cls))
        if self.forward_fn and self.asks_for_gradients and "backward_fn" not in self.defined:
            message = "there is no backward_fn, and the gradient of forward_fn is asked for"
            yield Violation(("layer",), message, help, inside=_place_of(self.forward_fn))

    def unused(self) -> Iterator[Violation]:
        """Yield a call that leaves out the layer, and inputs that nothing uses."""
        if self.call is None:
            return
        named = self._layer_names()
        if "*" not in named and named.isdisjoint(self.call.words):
            help = (
                f"apply what the layer defines: {listing(sorted(named))}"
                if named
                else "the layer defines nothing"
            )
            yield Violation(("call",), "call: the layer takes no part in it", help)
        called = {
            call.func.id
            for call in _calls_with_arguments(self.call.tree)
            if isinstance(call.func, ast.Name)
        }
        for cls in self.applied:
            if cls.name in called and not self.must_raise:
                yield Violation(
                    ("call",),
                    f"call: {cls.name} is applied, not called",
                    f"write {cls.name}.apply(…)",
                )
        is_reference = isinstance(self.scenario.layer, LayerRef)
        words = self.call.words if is_reference else self.code.find_words(self.scenario)
        for name in self.inputs:
            if words is not None and variable(name) not in words:
                message = f"nothing uses the input {quote(variable(name))}"
                yield Violation(
                    ("inputs", name), message, "name it in the call, or remove it", "key"
                )

    def nothing_asked(self) -> Iterator[Violation]:
        """Yield that gradients are of Tensors without an element, or that nothing is expected."""
        shapes = [input_shape(self.inputs[name]) for name in self.differentiable]
        if (
            shapes
            and self.asks_for_gradients
            and all(shape is not None and 0 in shape for shape in shapes)
        ):
            help = "give one a larger shape, or write 'gradient: unchecked'"
            message = "no input that takes a gradient has an element"
            yield Violation(("inputs", min(self.differentiable)), message, help, "key")
        if not self.differentiable and not any(
            _holds_something(expect) for _, expect in self.scenario.expectations()
        ):
            message = (
                "this would check nothing: no input takes a gradient, and nothing else is expected"
            )
            help = (
                "give an input a floating dtype and no 'stop_gradient: true'; say in 'expect' "
                "what must hold; or write "
                "'gradient: unchecked' if it has but to run"
            )
            yield Violation(("id",), message, help)

    def _layer_names(self) -> set[str]:
        """The names by which a call can use the layer."""
        layer = self.scenario.layer
        if isinstance(layer, LayerOp):
            return {layer.op.rpartition(".")[2]}
        if isinstance(layer, LayerRef):
            return {layer.ref.replace(":", ".").rpartition(".")[2]}
        return self.defined - set(variables(self.inputs))

    def _forward_method(self) -> ast.FunctionDef | None:
        """The forward of the class that is applied, where the source shows it."""
        for cls in self.applied[:1]:
            methods = [
                node
                for node in cls.body
                if isinstance(node, ast.FunctionDef) and node.name == "forward"
            ]
            if len(methods) == 1 and not cls.decorator_list:
                return methods[0]
        return None

    def _lacks(self, cls: ast.ClassDef, method: str) -> bool:
        """Whether neither a class nor those of the source that it is derived from have a method,
        for certain.
        """
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        family = [cls]
        for member in family:  # which grows
            bases = {last_name(base) for base in member.bases} - {"PyLayer"}
            if member.decorator_list or member.keywords or not bases <= set(classes):
                return False  # it may get methods from elsewhere
            family += [classes[base] for base in bases if classes[base] not in family]
        is_defined = any(method in _bound_names(member.body) for member in family)
        return not is_defined and not any(_may_set(node, method) for node in nodes(self.tree))


def _holds_something(expect: Expect) -> bool:
    """Whether something must hold besides that the case runs."""
    sections = [getattr(expect, key) for key in HOLDING]
    is_calls = expect.calls is not None and bool(expect.calls.written)
    sections[HOLDING.index("calls")] = is_calls
    return expect.written_gradient is not None or any(sections)


def _place_of(statement: ast.stmt) -> tuple[int, int, int]:
    return statement.lineno, statement.col_offset + 1, 1


def _calls_with_arguments(tree: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (node.args or node.keywords)
    ]


def _bound_names(body: list[ast.stmt]) -> set[str]:
    """The names that a module or class with this body binds; ``*`` among them if there may be
    others.
    """
    names: set[str] = set()
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        waiting += ast.iter_child_nodes(node)
    return names


def _may_set(node: ast.AST, name: str) -> bool:
    """Whether code sets an attribute of a name, or may."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Name) and node.id == "setattr"


def _argument_range(function: ast.FunctionDef) -> tuple[int, float]:
    """The least and the most positional arguments of a forward, besides its context."""
    if [last_name(one) for one in function.decorator_list] not in ([], ["staticmethod"]):
        return 0, inf
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args) - (function.name == "forward")
    return max(count - len(arguments.defaults), 0), inf if arguments.vararg is not None else count
