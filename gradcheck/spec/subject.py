"""Rules against scenarios that check nothing: a layer without a backward, a wrong number of inputs,
no expectation.

Such layers would end in an ERROR, in an INCONCLUSIVE, or, worse, in a PASS of a run that has
checked nothing. These rules apply to scenarios without other mistakes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from gradcheck.spec.code_rules import EMPTY_CODE, find_code, find_words
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.diagnostic import quote
from gradcheck.spec.model import Expect, Input, LayerOp, LayerRef, Scenario
from gradcheck.spec.python import (
    LAYER_BASES,
    bound_names,
    called_with_arguments,
    first_arguments,
    functions_in,
    layer_classes,
    static_forward,
    words,
)
from gradcheck.spec.violation import Violation
from gradcheck.support.suggest import nearest
from gradcheck.support.syntax_tree import last_name


def find_subject_mistakes(scenario: Scenario) -> Iterator[Violation]:
    """Yield the first reason why a scenario's layer (without a script) cannot be checked."""
    if scenario.layer is not None and scenario.script is None:
        yield from islice(_Subject(scenario).find_mistakes(), 1)


_VALUES = (ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name)
"""Expressions that have no effect as a statement, unlike a call."""


class _Subject:
    """A scenario with a layer, and the definitions in the layer's source."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.inputs = scenario, scenario.inputs
        self.tree = find_code(scenario.layer_source, "the layer").module
        self.call = find_code(scenario.call, "call")
        self.defined = bound_names(self.tree.body)
        # The layer, if its methods are certain: static functions, or the last plain class.
        self.forward_fn = static_forward(self.tree)
        classes = [cls for cls in layer_classes(self.tree).values() if _is_plain(cls)]
        self.class_ = classes[-1] if classes and not self.forward_fn else None
        expect = scenario.expect
        is_checked = expect.written_gradient != "unchecked" and bool(scenario.differentiable)
        self.asks_for_gradients = expect.raises is None and (is_checked or bool(expect.grads))

    def find_mistakes(self) -> Iterator[Violation]:
        """Yield the reasons; those that explain others come first."""
        if self.scenario.expect.raises is None:
            yield from self._wrong_context()
            yield from self._missing_returns()
        if self.call is not EMPTY_CODE:
            yield from self._unused_layer()
            yield from self._unapplied_layer()
            yield from self._unused_inputs()
        elif self.scenario.expect.raises is None:
            yield from self._wrong_argument_count()
        yield from self._missing_methods()
        yield from self._nothing_asked()

    def _wrong_context(self) -> Iterator[Violation]:
        """Yield a violation for a forward or backward that takes `self` or `cls` before the
        context, and for a backward that does not take both the context and a gradient.
        """
        methods = functions_in(self.class_.body) if self.class_ else {}
        for name in [name for name in ("forward", "backward") if name in methods]:
            method, arguments = methods[name], _argument_names(methods[name])
            if arguments[:2] in (["self", "ctx"], ["cls", "ctx"]) and _is_static(method):
                message = f"{name} is called without an object, but takes {quote(arguments[0])}"
                help = f"write 'def {name}({_after_first(method)}):' below '@staticmethod'"
            elif name == "backward" and _has_fixed_arguments(method) and len(arguments) < 2:
                message = "backward is called with the context and a gradient for each output"
                help = "write 'def backward(ctx, dy):'"
            else:
                continue
            yield Violation(("layer",), message, help, inside=_place_of(method))

    def _wrong_argument_count(self) -> Iterator[Violation]:
        """Yield a violation if a layer that is called with all inputs in order takes a different
        number.
        """
        forward = self.forward_fn
        if self.class_ is not None:
            forward = functions_in(self.class_.body).get("forward")
        if forward is None or self.scenario.kwargs or not _has_fixed_arguments(forward):
            return
        has_context = forward is not self.forward_fn and "setup_context" not in words(self.tree)
        arguments, names = _argument_names(forward), variables(self.inputs)
        most = max(0, len(arguments) - has_context)
        least = most - len(forward.args.defaults)
        if least <= len(names) <= most:
            return
        bound = f"at least {least}" if len(names) < least else f"at most {most}"
        message = f"the number of inputs is {len(names)}, but {forward.name} takes {bound}"
        if has_context and arguments[:1] != ["ctx"] and len(names) > most:
            message += " after the context"
            help = f"write 'def {forward.name}(ctx, {ast.unparse(forward.args)}):'"
        elif arguments[:1] == ["ctx"] and not has_context:
            help = f"write 'def {forward.name}({_after_first(forward)}):', without a context"
        elif len(names) > most:
            help = "give it an argument for each, or say what to run with 'call: …'"
        else:
            help = "list them under 'inputs', in order, or say what to run with 'call: …'; plain "
            help += "values are listed under 'kwargs'"
        yield Violation(("layer",), message, help, inside=_place_of(forward))

    def _missing_methods(self) -> Iterator[Violation]:
        """Yield a violation for a layer without a forward, or without a backward although its
        gradient is checked.
        """
        layer, present = self.forward_fn or self.class_, words(self.tree)
        if layer is None or "setattr" in present or self.scenario.expect.raises is not None:
            return
        backward = "backward_fn" if self.forward_fn else "backward"
        help = "add it, or write 'gradient: unchecked', with what must hold in its place"
        needed = {backward: f"{layer.name} has no {backward}, but its gradient is checked"}
        if not self.asks_for_gradients:
            needed = {}
        if self.class_ is not None:
            needed["forward"] = f"{layer.name} has no forward"
        functions = functions_in(self.tree.body)
        for name, message in needed.items():
            outside = functions.get(name) if self.class_ else None
            if outside and name not in words(self._without(outside)):
                help = "indent its 'def' like the methods of the class"
                yield Violation(("layer",), message, help, inside=_place_of(outside))
            elif name not in present:
                near = nearest(name, functions | functions_in(layer.body))
                advice = f"rename {quote(near)} to {name}" if near else help
                yield Violation(("layer",), message, advice, inside=_place_of(layer))

    def _without(self, left_out: ast.stmt) -> ast.Module:
        """Return the layer's code without a statement."""
        rest = [statement for statement in self.tree.body if statement is not left_out]
        return ast.Module(rest, type_ignores=[])

    def _unused_layer(self) -> Iterator[Violation]:
        """Yield a call that leaves out the layer."""
        layer = self.scenario.layer
        names = self.defined - {*variables(self.inputs)}
        if isinstance(layer, (LayerOp, LayerRef)):
            names = {layer.name}
        if "*" not in names and names.isdisjoint(self.call.words):
            help = f"use what the layer defines: {', '.join(sorted(names))}"
            yield Violation(("call",), "call: it does not use the layer", help)

    def _unapplied_layer(self) -> Iterator[Violation]:
        """Yield a call of the class itself in place of its apply."""
        name = self.class_.name if self.class_ and not self.scenario.expect.raises else None
        if name in called_with_arguments(self.call.tree):
            message = f"call: {name} is applied, not called"
            yield Violation(("call",), message, f"write {name}.apply(…)")
        elif isinstance(self.call.tree, ast.Expression) and isinstance(
            self.call.tree.body, ast.Lambda
        ):
            help = f"write {ast.unparse(self.call.tree.body.body)}"
            yield Violation(("call",), "call: this is a function, which nothing calls", help)
        elif not first_arguments(self.call.tree, f"{name}.forward").isdisjoint(
            map(variable, self.inputs)
        ):
            message = "call: forward is called without a context, and no backward runs after it"
            yield Violation(("call",), message, f"write {name}.apply(…)")

    def _unused_inputs(self) -> Iterator[Violation]:
        """Yield inputs that nothing uses."""
        words = find_words(self.scenario)
        if isinstance(self.scenario.layer, LayerRef):
            words, _ = self.call.global_names
        for name in self.inputs:
            if variable(name) not in words:
                message = f"nothing uses the input {quote(variable(name))}"
                help = "name it in the call, or remove it"
                if name in Input.keys():  # noqa: SIM118 - of a class
                    help = f"it is a key of an input: write '{name}: …' within the input's braces"
                yield Violation(("inputs", name), message, help, at_key=True)

    def _missing_returns(self) -> Iterator[Violation]:
        """Yield a violation for a function or method of the layer that ends with the value that it
        should return.
        """
        body = [*self.tree.body, *(self.class_.body if self.class_ else ())]
        for name, function in functions_in(body).items():
            last = function.body[-1]
            if isinstance(last, ast.Expr) and isinstance(last.value, _VALUES):
                message = f"{name} computes this, and does not return it"
                yield Violation(
                    ("layer",), message, "write 'return' before it", inside=_place_of(last)
                )

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


def _holds_something(expect: Expect) -> bool:
    """Whether anything is expected other than that the case runs."""
    sections = (expect.values, expect.raises, expect.warns, expect.grads, expect.calls.written)
    return expect.written_gradient is not None or any(sections)


def _place_of(statement: ast.stmt) -> tuple[int, int, int]:
    return statement.lineno, statement.col_offset + 1, 1


def _is_plain(cls: ast.ClassDef) -> bool:
    """Whether a class has all its methods from its body and from PyLayer or Function."""
    is_changed = cls.decorator_list or cls.keywords
    return not is_changed and {*map(last_name, cls.bases)} <= {*LAYER_BASES}


def _argument_names(function: ast.FunctionDef) -> list[str]:
    """Return the names of the positional arguments."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def _after_first(function: ast.FunctionDef) -> str:
    """Return the text of all arguments but the first, which has no default."""
    return ast.unparse(function.args).partition(", ")[2]


def _is_static(method: ast.FunctionDef) -> bool:
    """Whether a method is called without an object or class, as a static method."""
    return [*map(last_name, method.decorator_list)] in ([], ["staticmethod"])


def _has_fixed_arguments(forward: ast.FunctionDef) -> bool:
    """Whether a function takes the arguments that it lists, and no others."""
    return _is_static(forward) and forward.args.vararg is None
