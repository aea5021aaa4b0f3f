"""What a scenario with a layer checks: that there is something, and that it can be, as far as reading its code tells.

What is reported here would end in an ERROR, in an INCONCLUSIVE, or, worse, in a PASS of a run that has checked nothing.
It is looked for in files that are well formed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from math import inf

from gradcheck.spec.code import check_python, position, words_of
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.model import OPERATIONS
from gradcheck.spec.parts import all_expectations, input_shape
from gradcheck.spec.python import layer_classes, nodes, read_and_bound, static_forward, words
from gradcheck.spec.text import Place, Remark, SpecText
from gradcheck.spec.tree import Node
from gradcheck.support.syntax_tree import last_name

HOLDING = ("values", "raises", "warns", "calls", "grads")
"""Keys of an expectation that something is held against, beside the gradient check."""


def check_subject(scenario: Node, differentiable: set[str], text: SpecText) -> None:
    """Report, of a scenario whose layer is run by itself, the first reason why nothing can be checked."""
    if "layer" not in scenario.entries or "script" in scenario.entries:
        return
    subject = _Subject(scenario, differentiable, text)
    for look in (subject.arguments, subject.missing_methods, subject.unused, subject.nothing_asked):
        if (found := next(look(), None)) is not None:
            text.report(*found)
            return


class _Subject:
    """A scenario with a layer; each method but the first few finds reasons of one kind."""

    def __init__(self, scenario: Node, differentiable: set[str], text: SpecText) -> None:
        self.scenario, self.differentiable, self.text = scenario, differentiable, text
        self.layer, self.expect = scenario.entries["layer"][1], scenario.mapping("expect")
        self.inputs = scenario.under("inputs")
        code = check_python(self.layer, text, "the layer")
        self.tree = code.tree if code is not None and isinstance(code.tree, ast.Module) else None
        call = check_python(scenario.get("call"), text, "call")
        self.call = call.tree if call is not None else None

    @property
    def asks_for_gradients(self) -> bool:
        """Whether gradients are taken and looked at: by the check, or held against numbers."""
        checked = self.expect.string("gradient") != "unchecked" and bool(self.differentiable)
        return "raises" not in self.expect.entries and (checked or bool(self.expect.under("grads")))

    @cached_property
    def applied(self) -> list[ast.ClassDef]:
        """The PyLayers of the source that are applied: those that the call names, or the last."""
        if self.tree is None:
            return []
        layers = layer_classes(self.tree)
        if self.call is not None:
            return [layers[name] for name in read_and_bound(self.call)[0] if name in layers]
        return [] if "forward_fn" in _bound(self.tree.body) else list(layers.values())[-1:]

    def at(self, statement: ast.stmt) -> Place:
        """Where a statement of the layer's source begins."""
        return position(self.layer, self.text, statement.lineno, statement.col_offset + 1)

    def arguments(self) -> Iterator[Remark]:
        """A layer that is called with all inputs in order and takes more, or fewer."""
        if self.call is not None or "raises" in self.expect.entries:
            return
        count, forward = len(variables(self.inputs)), self._forward()
        if (name := self.layer.string("op")) in OPERATIONS:
            (least, most), what, place = OPERATIONS[str(name)], f"'{name}'", self.layer.place
        elif forward is not None:
            (least, most), place = _arity(forward), self.at(forward)
            what = forward.name if forward.name == "forward_fn" else f"forward of {self.applied[0].name}"
        else:
            return
        if not least <= count <= most:
            takes = f"{least:g}" if least == most else f"at least {least}" if count < least else f"at most {most:g}"
            given = f"there {'is' if count == 1 else 'are'} {count or 'no'} input{'s' * (count != 1)}"
            help = "list them under 'inputs', in order, or say what to run with 'call: …'"
            yield place, f"{what} takes {takes} argument{'s' * (takes != '1')}, but {given}", help

    def missing_methods(self) -> Iterator[Remark]:
        """A layer whose gradient is asked for, and that has no backward; or one without a forward."""
        if "raises" in self.expect.entries:
            return
        help = "add it, or write 'gradient: unchecked', with what must hold in its place"
        for cls in self.applied:
            if self._lacks(cls, "forward"):
                yield (
                    self.at(cls),
                    f"{cls.name} has no forward",
                    "add it: a staticmethod that takes ctx, then the inputs",
                )
            if self.asks_for_gradients and self._lacks(cls, "backward"):
                yield self.at(cls), f"{cls.name} has no backward, and its gradient is asked for", help
        function = static_forward(self.tree) if self.tree is not None and self.call is None else None
        if function and self.tree and self.asks_for_gradients and "backward_fn" not in _bound(self.tree.body):
            yield self.at(function), "there is no backward_fn, and the gradient of forward_fn is asked for", help

    def unused(self) -> Iterator[Remark]:
        """A call that leaves out the layer, or an input that nothing uses."""
        if self.call is None:
            return
        call, own = self.scenario.entries["call"][1], words(self.call)
        if self.tree is not None:
            named = _bound(self.tree.body) - set(variables(self.inputs))
        else:
            named = {str(self.layer.string("op") or self.layer.string("ref")).replace(":", ".").rpartition(".")[2]}
        if "*" not in named and not named & own:
            help = f"apply what the layer defines: {listing(sorted(named))}" if named else "the layer defines nothing"
            yield call, "call: the layer takes no part in it", help
        layers = {cls.name for cls in self.applied}
        calls = [n for n in ast.walk(self.call) if isinstance(n, ast.Call) and (n.args or n.keywords)]
        called = {n.func.id for n in calls if isinstance(n.func, ast.Name)}
        for name in layers & called if "raises" not in self.expect.entries else ():
            yield call, f"call: {name} is applied, not called", f"write {name}.apply(…)"
        for name, key in ((variable(name), key) for name, (key, _) in self.inputs.items() if variable(name) not in own):
            everywhere = own if self.layer.get("ref") else words_of(self.scenario, self.text)
            if everywhere is not None and name not in everywhere:
                yield key, f"nothing uses the input {quote(name)}", "name it in the call, or remove it"

    def nothing_asked(self) -> Iterator[Remark]:
        """Gradients of Tensors without an element; and a layer of which nothing is expected, and no gradient can be."""
        shapes = [input_shape(self.inputs[name][1]) for name in self.differentiable]
        if shapes and self.asks_for_gradients and all(shape is not None and 0 in shape for shape in shapes):
            help = "give one a larger shape, or write 'gradient: unchecked'"
            yield self.inputs[min(self.differentiable)][0], "no input that takes a gradient has an element", help
        said = all_expectations(self.scenario)
        holds = any("gradient" in one.entries or any(one.under(key) for key in HOLDING) for one in said)
        if not self.differentiable and not holds:
            message = "this would check nothing: no input takes a gradient, and nothing else is expected"
            help = (
                "give an input a floating dtype and no 'stop_gradient: true'; say in 'expect' what must hold; or write "
                "'gradient: unchecked' if it has but to run"
            )
            yield self.scenario.get("id") or self.scenario, message, help

    def _forward(self) -> ast.FunctionDef | None:
        """The forward that takes the inputs, where the source shows it."""
        if self.tree is not None and (function := static_forward(self.tree)) is not None:
            return function
        cls = next(iter(self.applied), None)
        if cls is None or cls.decorator_list:
            return None
        found = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
        return found[0] if len(found) == 1 else None

    def _lacks(self, cls: ast.ClassDef, method: str) -> bool:
        """Whether neither a class nor those of the source that it is derived from have a method, for certain."""
        assert self.tree is not None
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        family = [cls]
        for one in family:  # which grows
            bases = {last_name(base) for base in one.bases} - {"PyLayer"}
            if one.decorator_list or one.keywords or not bases <= set(classes):  # it may get methods from elsewhere
                return False
            family += [classes[base] for base in bases if classes[base] not in family]
        given = any(method in _bound(one.body) for one in family)
        return not given and not any(_sets(node, method) for node in nodes(self.tree))


def _bound(body: list[ast.stmt]) -> set[str]:
    """The names that a module or class with this body binds; ``*`` among them if there may be others."""
    found: set[str] = set()
    waiting: list[ast.AST] = [*body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        waiting += ast.iter_child_nodes(node)
    return found


def _sets(node: ast.AST, name: str) -> bool:
    """Whether code sets an attribute of a name, or may."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Name) and node.id == "setattr"


def _arity(function: ast.FunctionDef) -> tuple[int, float]:
    """The least and the most positional arguments of a forward, besides its context."""
    if [last_name(one) for one in function.decorator_list] not in ([], ["staticmethod"]):
        return 0, inf
    given = function.args
    count = len(given.posonlyargs) + len(given.args) - (function.name == "forward")
    return max(count - len(given.defaults), 0), inf if given.vararg is not None else count
