"""Rules against scenarios that check nothing: a layer without a backward, a wrong number of inputs,
no expectation.

Such layers would end in an ERROR, in an INCONCLUSIVE, or, worse, in a PASS of a run that has
checked nothing. These rules apply to scenarios without other mistakes.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from itertools import islice
from math import inf

from gradcheck.spec.code_rules import EMPTY_CODE, find_code, find_words
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.model import OPERATIONS, Expect, LayerOp, LayerRef, Scenario
from gradcheck.spec.python import (
    LAYER_BASES,
    bound_names,
    called_with_arguments,
    functions_in,
    layer_classes,
    read_and_bound,
    static_forward,
    words,
)
from gradcheck.spec.violation import Violation
from gradcheck.support.syntax_tree import last_name


def find_subject_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield the first reason why a scenario's layer (without a script) cannot be checked."""
    if scenario.layer is not None and scenario.script is None:
        yield from islice(_Subject(scenario).find_mistakes(), 1)


class _Subject:
    """A scenario with a layer, and the definitions in the layer's source."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.inputs = scenario, scenario.inputs
        self.tree = find_code(scenario.layer_source, "the layer").module
        self.call = find_code(scenario.call, "call")
        self.defined = bound_names(self.tree.body)
        # The layer that is applied: the static one, or the PyLayers that the call names, or the
        # last one.
        self.forward_fn = static_forward(self.tree) if self.call is EMPTY_CODE else None
        layers = layer_classes(self.tree)
        self.applied = [*layers.values()][-1:] if self.forward_fn is None else []
        if self.call is not EMPTY_CODE:
            read, _ = read_and_bound(self.call.tree)
            self.applied = [layers[name] for name in read if name in layers]
        expect = scenario.expect
        is_checked = expect.written_gradient != "unchecked" and bool(scenario.differentiable)
        self.asks_for_gradients = expect.raises is None and (is_checked or bool(expect.grads))

    def find_mistakes(self) -> Iterator[Violation]:
        """Yield the reasons; those that explain others come first."""
        if self.scenario.expect.raises is None:
            if self.call is EMPTY_CODE:
                yield from self._wrong_argument_count()
            yield from self._missing_methods()
        if self.call is not EMPTY_CODE:
            yield from self._unused_layer()
            yield from self._unused_inputs()
        yield from self._nothing_asked()

    def _wrong_argument_count(self) -> Iterator[Violation]:
        """Yield a violation if a layer that is called with all inputs in order takes a different
        number.
        """
        layer, keywords = self.scenario.layer, self.scenario.kwargs
        count = len(variables(self.inputs))
        forward = self.forward_fn or self._forward_method()
        inside = None
        if isinstance(layer, LayerOp):
            what, (least, most) = f"'{layer.op}'", OPERATIONS.get(layer.op, (0, inf))
            count += len(keywords)
        elif forward is not None:
            has_context = forward.name == "forward" and "setup_context" not in words(self.tree)
            what, (least, most) = forward.name, _argument_range(forward, int(has_context))
            inside = _place_of(forward)
            count += sum(argument.arg in keywords for argument in forward.args.args)
        else:
            return
        if not least <= count <= most:
            bound = f"at least {least}" if count < least else f"at most {most:g}"
            message = f"the number of inputs is {count}, but {what} takes {bound}"
            help = "list them under 'inputs', in order, or say what to run with 'call: …'"
            yield Violation(("layer",), message, help, inside=inside)

    def _missing_methods(self) -> Iterator[Violation]:
        """Yield a layer without a backward whose gradient is checked, and a layer without a
        forward.
        """
        help = "add it, or write 'gradient: unchecked' and state other expectations"
        for cls in self.applied:
            if self._lacks(cls, "forward"):
                how = "add it: a staticmethod that takes ctx, then the inputs"
                yield Violation(
                    ("layer",), f"{cls.name} has no forward", how, inside=_place_of(cls)
                )
            if self.asks_for_gradients and self._lacks(cls, "backward"):
                message = f"{cls.name} has no backward, but its gradient is checked"
                yield Violation(("layer",), message, help, inside=_place_of(cls))
        if self.forward_fn and self.asks_for_gradients and "backward_fn" not in self.defined:
            message = "there is no backward_fn, but the gradient of forward_fn is checked"
            yield Violation(("layer",), message, help, inside=_place_of(self.forward_fn))

    def _unused_layer(self) -> Iterator[Violation]:
        """Yield a call that leaves out the layer, or calls a class that is to be applied."""
        layer = self.scenario.layer
        names = self.defined - {*variables(self.inputs)}
        if isinstance(layer, (LayerOp, LayerRef)):
            names = {layer.name}
        if "*" not in names and names.isdisjoint(self.call.words):
            how = "" if isinstance(layer, LayerOp) else "; a class with a backward by its apply"
            help = f"use what the layer defines: {', '.join(sorted(names)) or 'nothing'}{how}"
            yield Violation(("call",), "call: it does not use the layer", help)
        called = called_with_arguments(self.call.tree)
        for cls in self.applied if self.scenario.expect.raises is None else ():
            if cls.name in called:
                message = f"call: {cls.name} is applied, not called"
                yield Violation(("call",), message, f"write {cls.name}.apply(…)")

    def _unused_inputs(self) -> Iterator[Violation]:
        """Yield inputs that nothing uses."""
        words: Container[str] = self.call.words
        if not isinstance(self.scenario.layer, LayerRef):
            words = find_words(self.scenario)
        for name in self.inputs:
            if variable(name) not in words:
                message = f"nothing uses the input {quote(variable(name))}"
                help = "name it in the call, or remove it"
                yield Violation(("inputs", name), message, help, at_key=True)

    def _nothing_asked(self) -> Iterator[Violation]:
        """Yield a violation if no Tensor with a gradient has an element, or if nothing is
        expected.
        """
        names = sorted(self.scenario.differentiable)
        is_empty = [0 in (self.inputs[name].known_shape or ()) for name in names]
        if names and self.asks_for_gradients and all(is_empty):
            help = "give one a larger shape, or write 'gradient: unchecked'"
            message = "no input that takes a gradient has an element"
            yield Violation(("inputs", names[0]), message, help, at_key=True)
        expectations = [expect for _, expect in self.scenario.expectations()]
        if not names and not any(map(_holds_something, expectations)):
            message = "this would check nothing: no input takes a gradient, and nothing else is "
            help = "give an input a floating dtype and no 'stop_gradient: true'; say in 'expect' "
            help += "what must hold; or write 'gradient: unchecked' if it only has to run"
            yield Violation(("id",), message + "expected", help)

    def _forward_method(self) -> ast.FunctionDef | None:
        """The forward of the class that is applied, if it is in the source."""
        plain = [cls for cls in self.applied if not cls.decorator_list]
        return functions_in(plain[0].body).get("forward") if plain else None

    def _lacks(self, cls: ast.ClassDef, method: str) -> bool:
        """Whether it is certain that neither a class nor its base classes in the source have a
        method.
        """
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        family = [cls]
        for member in family:  # which grows
            bases = {last_name(base) for base in member.bases} - set(LAYER_BASES)
            is_open = member.decorator_list or member.keywords or not bases <= set(classes)
            if is_open or method in bound_names(member.body):
                return False  # it has the method, or may get it from elsewhere
            family += [classes[base] for base in bases if classes[base] not in family]
        return not any(_may_set(node, method) for node in ast.walk(self.tree))


def _holds_something(expect: Expect) -> bool:
    """Whether anything is expected other than that the case runs."""
    sections = (expect.values, expect.raises, expect.warns, expect.grads, expect.calls.written)
    return expect.written_gradient is not None or any(sections)


def _place_of(statement: ast.stmt) -> tuple[int, int, int]:
    return statement.lineno, statement.col_offset + 1, 1


def _may_set(node: ast.AST, name: str) -> bool:
    """Whether code sets, or may set, an attribute of a name."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Name) and node.id == "setattr"


def _argument_range(function: ast.FunctionDef, skipped: int) -> tuple[int, float]:
    """The smallest and the largest number of positional arguments of a forward, not counting the
    first `skipped`.
    """
    if [last_name(decorator) for decorator in function.decorator_list] not in (
        [],
        ["staticmethod"],
    ):
        return 0, inf
    arguments = function.args
    count = len(arguments.posonlyargs) + len(arguments.args) - skipped
    return max(count - len(arguments.defaults), 0), inf if arguments.vararg is not None else count
